"""People's browsers in front of the running service, with its demo."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from abeyance import Abeyance
from playwright.sync_api import Browser, Page, StorageState

from tests.browser import chromium
from tests.browser.desk import Desk
from tests.live import live

Open = Callable[..., Page]
# Shorter than a session is fresh enough for what can't be undone (tenants/api/auth.py).
SIGNED_IN_SECONDS = 300

# Left out whole, so that their being skipped is one line; test_there_is_one.py says it.
collect_ignore = (
    []
    if chromium.program() or chromium.is_required()
    else ["test_admin_pages.py", "test_clicks.py", "test_delegation.py", "test_pages.py"]
)


# Playwright drives an event loop in the thread of the tests, in which Django's models refuse to
# work. So the browser ends with this package's tests and not with the session.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    executable = chromium.program()
    if executable is None:
        (pytest.fail if chromium.is_required() else pytest.skip)(chromium.MISSING)
    with chromium.started(executable) as browser:
        yield browser


@pytest.fixture(scope="package")
def desk(browser: Browser) -> Iterator[Desk]:
    service = live().demo
    with Abeyance(service.url, service.agent_key) as client:
        yield Desk(service, client)


@pytest.fixture(scope="package")
def signed_in(browser: Browser, desk: Desk) -> Callable[[str], StorageState]:
    """Sign people in by the page, each once in a while, and return what their browser then keeps."""
    kept: dict[str, tuple[float, StorageState]] = {}

    def state_of(who: str) -> StorageState:
        # Anew before the session is too old for what can't be undone.
        if who not in kept or time.monotonic() - kept[who][0] > SIGNED_IN_SECONDS:
            with chromium.window(browser, desk.service.url, 1360) as context:
                sign_in(context.new_page(), desk, who)
                kept[who] = time.monotonic(), context.storage_state()
        return kept[who][1]

    return state_of


@pytest.fixture
def open_as(
    browser: Browser, desk: Desk, signed_in: Callable[[str], StorageState]
) -> Iterator[Open]:
    """Open a browser in which the person is signed in."""
    with ExitStack() as windows:

        def opened(who: str, width: int = 1360, **more: Any) -> Page:
            state = signed_in(who)
            context = chromium.window(browser, desk.service.url, width, storage_state=state, **more)
            return windows.enter_context(context).new_page()

        yield opened


def sign_in(page: Page, desk: Desk, who: str) -> None:
    page.goto("/sign-in")
    page.get_by_label("Name or e-mail address").fill(who)
    page.get_by_label("Password").fill(password(desk, who))
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/inbox")


def password(desk: Desk, who: str) -> str:
    found: str = desk.service.credentials["users"][who]["password"]
    return found
