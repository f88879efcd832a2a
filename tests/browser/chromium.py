"""The browser of these tests: Debian's chromium, found where it is installed, never fetched."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from playwright.sync_api import Browser, BrowserContext, sync_playwright

PROGRAMS: Final = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS: Final = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
MISSING: Final = "the pages are not tried in a browser: there is no chromium (apt install it)"
PATIENCE_MS: Final = 60_000  # on a machine that has much else to do
HEIGHTS: Final = {1360: 900, 390: 844}


def program() -> str | None:
    """Return where chromium is, if it is here."""
    return next((found for name in PROGRAMS if (found := shutil.which(name))), None)


def is_required() -> bool:
    """Say whether the tests may not go without one."""
    return os.environ.get("ABEYANCE_BROWSER") == "required"


@contextmanager
def started(executable: str) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=executable, args=list(ARGUMENTS), timeout=PATIENCE_MS
        )
        try:
            yield browser
        finally:
            browser.close()


def window(browser: Browser, url: str, width: int, **more: object) -> BrowserContext:
    """Open a browser of somebody's own, which knows nobody yet."""
    context = browser.new_context(
        base_url=url,
        viewport={"width": width, "height": HEIGHTS[width]},
        has_touch=width < 600,
        reduced_motion="reduce",
        **more,  # type: ignore[arg-type]
    )
    context.set_default_timeout(PATIENCE_MS)
    return context
