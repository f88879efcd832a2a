"""What axe finds on a page, and what shows all of a page to it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page

from tests.browser import chromium

RULES: Final = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
VIOLATIONS: Final = "options => axe.run(options).then(found => found.violations)"
# Forms that are closed would go unseen; one name lets only one of them be open.
OPEN_ALL: Final = """() => document.querySelectorAll("details").forEach(one => {
  one.removeAttribute("name"); one.open = true; })"""
TOO_WIDE: Final = """() => Math.max(0,
  document.documentElement.scrollWidth - document.documentElement.clientWidth)"""


def faults(page: Page) -> list[str]:
    """Return what axe finds, with where."""
    if not page.evaluate("() => 'axe' in window"):  # it stays until the page is left
        page.evaluate(AXE_SCRIPT)
    options = {"runOnly": RULES, "resultTypes": ["violations"]}
    found: list[dict[str, Any]] = page.evaluate(VIOLATIONS, options)
    return [
        f"{one['id']}: {node['target']} {node['failureSummary']}"
        for one in found
        for node in one["nodes"]
    ]


def faults_everywhere(page: Page) -> Iterator[str]:
    """Look at a page in each width and scheme; it is left as wide and light as it came."""
    page.evaluate(OPEN_ALL)
    for width, height in chromium.HEIGHTS.items():
        page.set_viewport_size({"width": width, "height": height})
        if over := page.evaluate(TOO_WIDE):
            yield f"{width}: {over} px too wide"
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            yield from (f"{width} {scheme}: {one}" for one in faults(page))
    page.set_viewport_size({"width": 1360, "height": chromium.HEIGHTS[1360]})
    page.emulate_media(color_scheme="light")
