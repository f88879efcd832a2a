"""What holds of every page in a browser: no fault that axe finds, none of the policy, none aside."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import pytest
from playwright.sync_api import Browser, Page, StorageState

from tests.browser import chromium
from tests.browser.axe import faults, faults_everywhere
from tests.browser.desk import Desk
from tests.browser.places import Place, places

pytestmark = pytest.mark.slow
# The browser itself says of these that their status is no 200.
REFUSED: Final = {"sign-in-refused", "review-of-nothing-ticked", "not-found"}
NOT_GIVEN: Final = "Failed to load resource: the server responded with a status of 4"


@pytest.fixture(scope="module")
def pages(
    browser: Browser, desk: Desk, signed_in: Callable[[str], StorageState]
) -> Iterator[list[tuple[Place, Page]]]:
    """A browser for each person, and every place to go to with it."""
    found = places(desk)
    people: dict[str, Page] = {}
    for who in {one.who for one in found}:
        state = {"storage_state": signed_in(who)} if who else {}
        people[who] = chromium.window(browser, desk.service.url, 1360, **state).new_page()
    yield [(one, people[one.who]) for one in found]
    for page in people.values():
        page.context.close()


def test_no_page_has_a_fault_in_any_width_or_scheme(pages: list[tuple[Place, Page]]) -> None:
    wrong: list[str] = []
    said: list[str] = []
    for page in {page for _, page in pages}:
        page.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda fault: said.append(str(fault)))
    for place, page in pages:
        answer = page.goto(place.path)
        assert answer
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy, place.name
        assert "unsafe" not in policy, place.name
        if place.first:
            place.first(page)
        told = [one for one in said if place.name not in REFUSED or NOT_GIVEN not in one]
        wrong += [f"{place.name}: {one}" for one in told]
        said.clear()
        wrong += [f"{place.name} {one}" for one in faults_everywhere(page)]
        said.clear()
    assert not wrong, "\n".join(wrong)


def test_a_fault_would_be_found(browser: Browser) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        page.set_content("<img src='data:,'><p style='color: #ccc'>pale</p>")
        found = " ".join(faults(page))
    assert "image-alt" in found
    assert "color-contrast" in found
