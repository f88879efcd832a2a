"""What holds of every page: its headers, its one heading, and that a GET changes nothing."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.db import DatabaseError
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from approvals.models import Decision
from approvals.services import substitutions
from tenants.clock import database_now
from tests.approvals.house import House
from tests.pages.browser import outside
from tests.pages.conftest import Open, nothing_changes
from tests.pages.test_delegation import rule

pytestmark = pytest.mark.django_db(transaction=True)
STATIC = Path(django_settings.BASE_DIR) / "approvals" / "static" / "approvals"


@pytest.fixture
def paths(house: House) -> list[str]:
    """Every path of this app's and of sign-in, with what it names."""
    gate = house.ask()
    settled = house.ask(arguments={"payment": "q", "amount": "1"})
    house.look(settled, "alice")
    house.decide("alice", settled, "reject", reason="no")
    decision = Decision.objects.get()
    ends_at = database_now() + timedelta(days=1)
    alice = house.people["alice"]
    learned = rule(house)
    stands_in = substitutions.set_as(alice, substitute="bob", ends_at=ends_at).row
    return [
        *(
            reverse(name)
            for name in (
                *("inbox", "review", "reviewed", "decided", "profile", "password", "tenant"),
                *("substitutions", "delegation", "new-rule", "ask-everything", "rule-templates"),
            )
        ),
        *(reverse(name, args=[learned.pk]) for name in ("rule", "rule-uses")),
        reverse("rule-act", args=[learned.pk, "revoke"]),
        reverse("withdraw-template", args=[learned.pk]),
        *(reverse(name, args=[gate.pk]) for name in ("decision", "record", "edit")),
        *(reverse(name, args=[settled.pk]) for name in ("decision", "record")),
        reverse("end-substitution", args=[stands_in.pk]),
        reverse("assignment", args=[gate.pk]),
        reverse("extension", args=[gate.pk]),
        reverse("questions", args=[gate.pk]),
        reverse("why", args=[gate.step_id]),
        *(reverse(name, args=[settled.pk, decision.pk]) for name in ("seen", "withdraw")),
        *(reverse("answer", args=[gate.pk, one]) for one in ("approve", "reject", "changes")),
        "/",
        "/sign-in",
        "/sign-out",
        "/nowhere",
        f"/decisions/{decision.pk}",
    ]


def test_no_get_changes_anything(house: House, browser_of: Open, paths: list[str]) -> None:
    browser = browser_of("alice")
    with nothing_changes():
        for path in paths:
            assert browser.get(path).status in {200, 301, 302, 303, 404, 405}, path
            head = outside(lambda path=path: browser.client.head(path))
            assert head.status_code in {200, 301, 302, 303, 404, 405}, path
            assert head.content == b"", path


def test_every_named_page_of_these_apps_is_among_them(paths: list[str]) -> None:
    known = {re.sub(r"[0-9a-f-]{36}", "ID", path) for path in paths}
    mine = [
        one
        for module in ("tenants.urls", "approvals.urls", "delegation.urls")
        for one in get_resolver(module).url_patterns
        if isinstance(one, URLPattern | URLResolver)
    ]
    told_elsewhere = {"notices", "undecidable"}
    for one in mine:
        if getattr(one, "name", None) in told_elsewhere:
            continue
        shape = "/" + re.sub(r"<id:\w+>", "ID", str(one.pattern)).replace("<slug:answer>", "reject")
        shape = shape.replace("<slug:act>", "revoke")
        assert shape in known, shape


def test_the_database_refuses_what_a_page_would_write(
    house: House, browser_of: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(*_: Any) -> str:
        house.tool("sneaked.in")
        return "0"

    monkeypatch.setattr("approvals.waiting.count", write)
    with pytest.raises(DatabaseError, match="read-only transaction"):
        browser_of("alice").get("/inbox")


def test_people_s_pages_take_nothing_from_elsewhere(
    house: House, browser_of: Open, paths: list[str]
) -> None:
    browser = browser_of("alice")
    for path in paths:
        page = browser.get(path)
        policy = page.response.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy, path
        assert "frame-ancestors 'none'" in policy, path
        assert "unsafe" not in policy, path
        assert page.response.headers["X-Content-Type-Options"] == "nosniff", path
        assert page.response.headers["Referrer-Policy"] == "same-origin", path
        assert not re.search(r"""(?:src|href|action)=["'](?:https?:)?//""", page.html), path
        assert not re.search(r"<[^>]+\s(?:style|on\w+)=", page.html), path
        assert not re.search(r"<script(?![^>]*\ssrc=)", page.html), path
        assert "<style" not in page.html, path


def test_pages_are_kept_by_nobody(house: House, browser_of: Open, paths: list[str]) -> None:
    browser = browser_of("alice")
    for path in paths:
        page = browser.get(path)
        if path not in {"/", "/sign-out", "/nowhere"}:
            assert "no-store" in page.response.headers["Cache-Control"], path


def test_a_page_has_one_heading_a_language_and_a_title(
    house: House, browser_of: Open, paths: list[str]
) -> None:
    browser = browser_of("alice")
    for path in paths:
        page = browser.get(path)
        if page.status in {200, 404}:
            assert page.tags.count("h1") == 1, path
            assert page.tags.count("main") == 1, path
            assert '<html lang="en"' in page.html, path
            assert re.search(r"<title>[^<]+ · Abeyance</title>", page.html), path
            found = re.findall(r'\sid="([^"]+)"', page.html)
            assert len(found) == len(set(found)), path


def test_the_script_is_left_out_for_who_does_not_want_it(house: House, browser_of: Open) -> None:
    browser = browser_of("alice")
    assert "pages.js" in browser.get("/inbox").html
    browser.send(browser.get("/profile"), "/profile", shortcuts=None)
    assert "<script" not in browser.get("/inbox").html


def test_what_fails_is_a_page_that_says_so(
    house: House, browser_of: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = browser_of("alice")
    browser.client.raise_request_exception = False
    monkeypatch.setattr("approvals.waiting.counts", lambda _: 1 / 0)
    page = browser.get("/inbox")
    assert page.status == 500
    assert "The fault is ours" in page.text
    assert "ZeroDivisionError" not in page.html


def test_a_method_that_a_page_does_not_take_is_told(house: House, browser_of: Open) -> None:
    browser = browser_of("alice")
    token = browser.get("/inbox").form("/sign-out").fields
    page = browser.post("/inbox", token)
    assert (page.status, page.response.headers["Allow"]) == (405, "GET")
    made = outside(
        lambda: browser.client.delete("/inbox", headers={"X-CSRFToken": next(iter(token.values()))})
    )
    assert made.status_code == 405


def test_a_token_opens_no_page(house: House) -> None:
    gate = house.ask()
    made = outside(
        lambda: Client().get(
            f"/decisions/{gate.pk}", headers={"Authorization": f"Bearer {house.secrets['alice']}"}
        )
    )
    assert made.status_code == 303
    assert made.headers["Location"].startswith("/sign-in")


def test_dark_colours_stand_twice_and_alike() -> None:
    text = (STATIC / "tokens.css").read_text()
    by_system = re.search(r':root:not\(\[data-theme="light"\]\) \{(.*?)\n\}', text, re.DOTALL)
    by_choice = re.search(r':root\[data-theme="dark"\] \{(.*?)\n\}', text, re.DOTALL)
    assert by_system is not None
    assert by_choice is not None
    names = r"(--[\w-]+):\s*([^;]+);"
    system, chosen = (dict(re.findall(names, one[1])) for one in (by_system, by_choice))
    assert system == chosen
    assert len(system) > 40


def test_every_colour_is_a_token() -> None:
    for sheet in STATIC.glob("*.css"):
        if sheet.name != "tokens.css":
            rules = re.sub(r"/\*.*?\*/", "", sheet.read_text(), flags=re.DOTALL)
            rules = rules.replace("rgb(10 15 22 / .5)", "")
            assert not re.search(r"#[0-9a-fA-F]{3,8}\b(?=[\s;,)])", rules), sheet.name


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_chosen_theme_is_there_from_the_first_byte(
    house: House, browser_of: Open, theme: str
) -> None:
    browser = browser_of("alice")
    browser.send(browser.get("/profile"), "/profile", theme=theme)
    for path in ("/inbox", "/tenant"):
        assert f'<html lang="en" data-theme="{theme}">' in browser.get(path).html
