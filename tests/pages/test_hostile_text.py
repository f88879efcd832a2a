"""Whatever an agent, a far end or a name says stands on a page as text that hides nothing."""

from __future__ import annotations

from typing import Any

import pytest

from approvals.models import Decision
from tenants.models import User
from tests.approvals.house import House, shown_preview
from tests.pages.browser import Page
from tests.pages.conftest import Open

pytestmark = pytest.mark.django_db(transaction=True)

EVIL = (
    '<script>alert(1)</script><img src=x onerror="alert(1)">"\'><form action="/sign-out" method='
    '"post"><button>Approve</button></form>{{ visit.user.password }}{% csrf_token %}&lt;'
    "\u202eevil\u202c\u200b</textarea></dl></div>"
)
LABELS = ("U+202E RLO", "U+202C PDF", "U+200B ZWSP")
TRIED = {
    "summary": EVIL,
    "changes": [{"object": EVIL, "before": EVIL, "after": {EVIL: [EVIL]}}],
    "warnings": [EVIL],
}
FREE = {"type": "object", "properties": {"a": {"type": "string"}}}


def path(gate: Any, more: str = "") -> str:
    return f"/decisions/{gate.pk}{more}"


def check(page: Page) -> None:
    """The text stands there as text, and has made nothing."""
    assert page.tags.count("script") == 1
    assert not {"img", "i", "blink"} & set(page.tags)
    assert not any(name.startswith("on") or name == "style" for name in page.attributes)
    assert all(
        not form.action.endswith("sign-out") or "Approve" not in form.text for form in page.forms
    )
    assert "\u202e" not in page.text
    assert "{{ visit.user.password }}" in page.text


@pytest.fixture
def evil(house: House) -> Any:
    """A call in which every text that others write is hostile."""
    house.previews["shop.order"] = lambda *_: shown_preview(
        EVIL,
        changes=[{"object": EVIL, "before": EVIL, "after": {EVIL: [EVIL]}}],
        warnings=[EVIL],
    )
    house.tool("shop.order", arguments=FREE, headline="Buy {a}", consequence="{a} is bought")
    run = house.run(goal=EVIL)
    return house.ask(
        "shop.order",
        {"a": EVIL, EVIL: EVIL, "deep": {EVIL: [EVIL, {"b": EVIL}]}},
        run=run,
        reasoning=EVIL,
        milestone=EVIL,
        failure_modes=[EVIL],
        dry_run=TRIED,
    )


def test_on_the_decision_page(evil: Any, browser_of: Open) -> None:
    page = browser_of("alice").get(path(evil))
    check(page)
    for label in LABELS:
        assert page.text.count(label) >= 10, label
    assert "hidden characters in" in page.text


def test_on_the_review_of_several(house: House, browser_of: Open) -> None:
    house.previews["shop.order"] = lambda *_: shown_preview(EVIL, warnings=[EVIL])
    house.tool("shop.order", arguments=FREE, headline="Buy {a}", consequence="{a} is bought")
    for _ in range(2):
        gate = house.ask(
            "shop.order",
            {"a": EVIL, "deep": {EVIL: [EVIL]}},
            run=house.run(goal=EVIL),
            reasoning=EVIL,
            milestone=EVIL,
            failure_modes=[EVIL],
            dry_run=TRIED,
        )
    browser = browser_of("alice")
    page = browser.get("/inbox/review")
    check(page)
    for label in LABELS:
        assert page.text.count(label) >= 18, label
    assert "hidden characters in" in page.text
    form = page.form("/inbox/review")
    told = browser.follow(browser.post(form.action, {**form.fields, "gate": [str(gate.pk)]}))
    assert told.tags.count("script") == 1
    assert not {"img", "i"} & set(told.tags)
    assert "\u202e" not in told.text


def test_in_lists_titles_and_records(evil: Any, house: House, browser_of: Open) -> None:
    browser = browser_of("alice")
    page = browser.get("/inbox")
    assert page.tags.count("script") == 1
    assert "\u202e" not in page.text
    review = browser.send(browser.get(path(evil)), "/edit", m0=f"{EVIL}!")
    check(review)
    assert review.status == 200
    browser.send(browser.get(path(evil)), "/reject", reason=EVIL)
    record = browser.get(path(evil, "/record"))
    check(record)
    seen = browser.get(path(evil, f"/seen/{Decision.objects.get().pk}"))
    check(seen)
    assert browser.get("/decided").tags.count("script") == 1


def test_what_was_typed_comes_back_as_text(evil: Any, house: House, browser_of: Open) -> None:
    browser = browser_of("alice")
    page = browser.get(path(evil))
    refused = browser.send(page, "/respond", value=EVIL, as_json="on")
    assert refused.status == 422
    assert refused.form("/respond").fields["value"] == EVIL
    check(refused)
    refused = browser.send(page, "/edit", rest=EVIL)
    assert refused.form("/edit").fields["rest"] == EVIL
    check(refused)


def test_names_of_people_and_tenants(house: House, browser_of: Open) -> None:
    User.objects.filter(username="alice").update(first_name="<i>Al</i>", last_name="\u202eecil")
    house.tenant.name = "<b>Acme\u200b"
    house.tenant.save(update_fields=["name"])
    house.tool()
    gate = house.ask()
    house.decide("carol", gate, "reject", reason="no")
    browser = browser_of("alice")
    for page in (browser.get("/inbox"), browser.get(path(gate)), browser.get("/profile")):
        assert "<i>Al" not in page.html
        assert "<b>Acme" not in page.html
        assert "\u202e" not in page.text
        assert "U+202E RLO" in page.text


def test_a_value_cannot_pass_for_another_member(house: House, browser_of: Open) -> None:
    house.tool("shop.order", arguments=FREE)
    gate = house.ask("shop.order", {"a": '1", "amount": "9', "b \u203a c": "x", "b": {"c": "y"}})
    html = browser_of("alice").get(path(gate)).html
    assert '<dt><span class="k">a</span></dt>' in html
    assert '<dt><span class="k">b \u203a c</span></dt>' in html
    assert '<dt><span class="k">b</span><span class="k">c</span></dt>' in html
    assert '<span class="k">amount</span>' not in html


@pytest.mark.parametrize(
    "reasoning",
    [
        "x\n" * 100_000,
        "\n" * 100_000 + "the end",
        "\u200b" * 100_000,
        "\u202e\u202c" * 50_000,
        "y" * 300_000,
    ],
)
def test_a_hundred_thousand_lines_are_shown_whole(
    house: House, browser_of: Open, reasoning: str
) -> None:
    gate = house.ask(reasoning=reasoning)
    browser = browser_of("alice")
    page = browser.get(path(gate))
    assert page.status == 200
    if reasoning.startswith("x"):
        assert page.html.count("x\n") == 100_000
    elif reasoning.startswith("\n"):
        assert "100,000 line breaks the end" in page.text
    elif reasoning.startswith("y"):
        assert reasoning in page.html
    assert page.has_form("/approve")


def test_many_members_are_all_shown(house: House, browser_of: Open) -> None:
    house.tool("shop.order", arguments={"type": "object"})
    gate = house.ask("shop.order", {"n": list(range(20_000))})
    page = browser_of("alice").get(path(gate))
    assert page.html.count("<dt>") > 20_000
    assert (
        '<dt><span class="k">n</span><span class="k">19999</span></dt><dd>19999</dd>' in page.html
    )
