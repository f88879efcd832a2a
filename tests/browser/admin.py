"""The admin's pages, found as who administers finds them: from the index, by links."""

from __future__ import annotations

import re
from collections.abc import Iterator

from playwright.sync_api import Page

from tests.browser.desk import Desk
from tests.browser.places import places

INDEX = "/admin/"
LOOKING_BACK = [
    f"/admin/approvals/policyversion/{page}" for page in ("calibration/", "overgating/?minimum=1")
]
_ROW = re.compile(r"/admin/\w+/\w+/[0-9a-f-]{36}/change/")


def prepare(desk: Desk, page: Page) -> None:
    """Have something stand in most tables: what the demo does, a draft, and a freeze."""
    places(desk)
    page.goto("/admin/approvals/policyversion/add/")
    page.get_by_label("Why").fill("Nothing changes by it")
    save(page)
    page.goto("/admin/interrupts/freeze/add/")
    page.get_by_label("Scope").select_option("tool")
    page.get_by_label("Name").fill("db.drop_table")
    page.get_by_label("Note").fill("It is never dropped anyway.")
    page.get_by_role("button", name="Freeze").click()
    page.wait_for_url("**/change/")


def save(page: Page) -> None:
    page.get_by_role("button", name="Save", exact=True).click()
    page.wait_for_url(re.compile(r"/admin/\w+/\w+/(\?.*)?$"))


def paths(page: Page) -> Iterator[str]:
    """Give the path of each page; the page is left wherever the last of them was looked up."""
    page.goto(INDEX)
    tables = [one for one in links(page) if re.fullmatch(r"/admin/\w+/\w+/", one)]
    adds = [one for one in links(page) if one.endswith("/add/")]
    yield from (INDEX, "/admin/journal/", "/admin/tenant/", *tables, *adds, *LOOKING_BACK)
    for number, table in enumerate(tables):
        page.goto(table)
        row = next((one for one in links(page) if _ROW.fullmatch(one)), None)
        if row is None:
            continue
        page.goto(row)
        yield row
        acts = [one for one in links(page) if one.startswith(row.removesuffix("change/"))]
        # One history is like another.
        yield from (one for one in acts if one != row and (not number or "/history/" not in one))


def links(page: Page) -> list[str]:
    """Return where the page's links lead to, each once."""
    found = page.eval_on_selector_all("#main a[href]", "all => all.map(one => one.pathname)")
    return list(dict.fromkeys(found))
