"""`make screenshots`: every page as a picture under docs/pages/, of a service started for it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from abeyance import Abeyance
from playwright.sync_api import Browser, Page

from config.supervisor.paths import PROJECT
from tests.browser import chromium
from tests.browser.conftest import sign_in
from tests.browser.desk import Desk
from tests.browser.places import Place, places
from tests.live import live

FOLDER: Final = PROJECT / "docs" / "pages"
IN_THE_DARK: Final = {"inbox", "decision", "decision-typed", "run-unknown", "sign-in"}
QUALITY: Final = 60


def main() -> None:
    executable = chromium.program()
    if executable is None:
        sys.exit("screenshots: there is no chromium (apt install chromium)")
    service = live().demo
    with (
        Abeyance(service.url, service.agent_key) as client,
        chromium.started(executable) as browser,
    ):
        take_all(browser, Desk(service, client))
    live().stop()


def take_all(browser: Browser, desk: Desk) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    people: dict[str, Page] = {}
    for place in places(desk):
        page = people.get(place.who)
        if page is None:
            page = people[place.who] = chromium.window(browser, desk.service.url, 1360).new_page()
            if place.who:
                sign_in(page, desk, place.who)
        page.goto(place.path)
        if place.first:
            place.first(page)
        take(page, place)


def take(page: Page, place: Place) -> None:
    for scheme in ("light", "dark") if place.name in IN_THE_DARK else ("light",):
        page.emulate_media(color_scheme=scheme)
        for width, height in chromium.HEIGHTS.items():
            page.set_viewport_size({"width": width, "height": height})
            # A window as tall as the page: what is fixed to its edges then hides nothing.
            tall = max(height, page.evaluate("document.documentElement.scrollHeight"))
            page.set_viewport_size({"width": width, "height": tall})
            path = FOLDER / f"{place.name}-{width}{'-dark' if scheme == 'dark' else ''}.jpg"
            page.screenshot(path=path, type="jpeg", quality=QUALITY)
            say(path)
    page.set_viewport_size({"width": 1360, "height": chromium.HEIGHTS[1360]})
    page.emulate_media(color_scheme="light")


def say(path: Path) -> None:
    size = path.stat().st_size // 1024
    print(f"{path.relative_to(PROJECT)} {size} KB", flush=True)  # noqa: T201 - for a terminal


if __name__ == "__main__":
    main()
