"""Approving with edits: typed fields, what they would do shown first, and errors at the field."""

from __future__ import annotations

import json
from typing import Any

import pytest

from approvals.models import Decision, Gate
from approvals.views.edit_form import form_of
from interrupts import content
from interrupts.effects import Preview
from interrupts.templates import MASK
from tests.approvals.house import House, fresh, no_preview
from tests.pages.browser import Page
from tests.pages.conftest import Open, nothing_changes

pytestmark = pytest.mark.django_db(transaction=True)

ORDER = {
    "type": "object",
    "required": ["to", "count"],
    "properties": {
        "to": {"type": "string", "title": "Recipient"},
        "count": {"type": "integer", "minimum": 1, "maximum": 9},
        "price": {"type": "number"},
        "rush": {"type": "boolean"},
        "size": {"enum": ["s", "m", 3]},
        "note": {"type": "string"},
        "card": {"type": "string"},
        "lines": {"type": "array", "items": {"type": "object"}},
    },
    "additionalProperties": False,
}
CALL = {
    "to": "Ann",
    "count": 2,
    "price": 1.50,
    "rush": False,
    "size": 3,
    "note": "first\nsecond",
    "card": "4111111111111111",
    "lines": [{"sku": "a", "n": 1}],
}


def order(house: House, call: dict[str, Any] = CALL, **more: Any) -> Gate:
    house.tool(
        "shop.order",
        arguments=ORDER,
        sensitive=["/card"],
        headline="Order {count} for {to}",
        **more,
    )
    return house.ask("shop.order", call)


def path(gate: Any, more: str = "") -> str:
    return f"/decisions/{gate.pk}{more}"


def names(page: Page) -> dict[str, str]:
    """The form's field names by the member that each is for: required ones first."""
    shown = ["to", "count", "card", "note", "price", "rush", "size"]
    return {name: f"m{place}" for place, name in enumerate(shown)}


def arguments_of(gate: Gate) -> Any:
    return json.loads(content.get(fresh(gate).arguments))


def test_each_plain_member_has_a_field_and_the_rest_is_json(house: House, browser_of: Open) -> None:
    page = browser_of("alice").get(path(order(house)))
    fields = page.form("/edit").fields
    at = names(page)
    assert {name: fields[at[name]] for name in at} == {
        "to": "Ann",
        "count": "2",
        "price": "1.5",
        "rush": "false",
        "size": "3",
        "note": "first\r\nsecond",
        "card": MASK,
    }
    assert json.loads(fields["rest"]) == {"lines": [{"sku": "a", "n": 1}]}
    assert "Recipient to" in page.text
    assert "At least 1, at most 9" in page.text


def test_a_form_sent_as_it_stands_is_no_edit(house: House, browser_of: Open) -> None:
    browser = browser_of("alice")
    page = browser.get(path(order(house)))
    with nothing_changes():
        refused = browser.send(page, "/edit")
    assert refused.status == 422
    assert "These are the arguments as they stand" in refused.text


def test_an_edit_is_shown_before_it_is_approved(house: House, browser_of: Open) -> None:
    gate = order(house)
    browser = browser_of("alice")
    page = browser.get(path(gate))
    at = names(page)
    with nothing_changes():
        review = browser.send(page, "/edit", **{at["count"]: "3", at["rush"]: "true"})
    assert review.status == 200
    assert "Order 3 for Ann" in review.text
    assert "Nothing is recorded before you approve it here." in review.text
    assert "count 2 3" in review.text
    assert "rush false true" in review.text
    assert "4111111111111111" not in review.html
    done = browser.send(review, "/approve")
    assert done.location == path(gate, "/record")
    assert arguments_of(gate) == {**CALL, "count": 3, "rush": True}
    decision = Decision.objects.get()
    assert decision.digest == gate.digest
    seen = browser.get(path(gate, f"/seen/{decision.pk}"))
    assert "What alice changed" in seen.text
    assert "count 2 3" in seen.text
    house.work(gate.run_id)
    assert house.calls == [("shop.order", {**CALL, "count": 3, "rush": True})]


@pytest.mark.parametrize(
    ("typed", "after"),
    [
        ({"to": "Bo"}, {"to": "Bo"}),
        ({"price": "2"}, {"price": 2}),
        ({"price": "2.25"}, {"price": 2.25}),
        ({"size": "m"}, {"size": "m"}),
        ({"note": "first\r\nthird"}, {"note": "first\nthird"}),
        ({"note": ""}, {"note": ""}),
        ({"card": "4000000000000002"}, {"card": "4000000000000002"}),
        ({"rest": '{"lines": []}'}, {"lines": []}),
    ],
)
def test_values_keep_their_types(
    house: House, browser_of: Open, typed: dict[str, str], after: dict[str, Any]
) -> None:
    gate = order(house)
    browser = browser_of("alice")
    page = browser.get(path(gate))
    at = {**names(page), "rest": "rest"}
    review = browser.send(page, "/edit", **{at[name]: text for name, text in typed.items()})
    assert browser.send(review, "/approve").status == 303
    got = arguments_of(gate)
    assert got == {**CALL, **after}
    assert {name: type(value) for name, value in got.items()} == {
        name: type(value) for name, value in {**CALL, **after}.items()
    }


@pytest.mark.parametrize("note", ["a\r\nb", "a\rb", "\na", "a\n", " a ", "\n\n"])
def test_what_was_not_changed_stays_to_the_character(
    house: House, browser_of: Open, note: str
) -> None:
    gate = order(house, {"to": "Ann", "count": 2, "note": note})
    browser = browser_of("alice")
    page = browser.get(path(gate))
    review = browser.send(page, "/edit", **{names(page)["count"]: "3"})
    browser.send(review, "/approve")
    assert arguments_of(gate) == {"to": "Ann", "count": 3, "note": note}


def test_who_may_not_decide_is_told_so_before_anything_of_the_edit(
    house: House, browser_of: Open
) -> None:
    gate = order(house)
    form = browser_of("alice").get(path(gate)).form("/edit")
    browser = browser_of("vera")
    own = browser.get(path(gate)).form("/sign-out").fields
    with nothing_changes():
        refused = browser.post(form.action, {**form.fields, **own})
    assert refused.status == 403
    assert "You can read this, not decide it" in refused.text


def test_an_optional_member_can_be_left_out_and_put_in(house: House, browser_of: Open) -> None:
    gate = order(house, {"to": "Ann", "count": 2, "note": "x"})
    browser = browser_of("alice")
    page = browser.get(path(gate))
    at = names(page)
    fields = page.form("/edit").fields
    assert f"{at['price']}-out" in fields
    assert f"{at['note']}-out" not in fields
    review = browser.send(page, "/edit", **{f"{at['note']}-out": "on", at["price"]: "4"})
    browser.send(review, "/approve")
    assert arguments_of(gate) == {"to": "Ann", "count": 2, "price": 4}


@pytest.mark.parametrize(
    ("member", "typed", "said"),
    [
        ("count", "two", "Write a number, such as 12 or 12.5."),
        ("count", "10", "maximum of 9"),
        ("count", "9007199254740993", "2^53"),
        ("rush", "maybe", "boolean"),
        ("size", "xl", ""),
        ("rest", '{"lines": 3}', "array"),
        ("rest", "{", "read as JSON"),
        ("rest", "[]", "This is an object"),
        ("rest", '{"lines": [], "lines": [1]}', "read as JSON"),
        ("rest", '{"bogus": 1}', "bogus"),
    ],
)
def test_what_is_wrong_is_said_at_its_field_and_what_was_typed_is_kept(
    house: House, browser_of: Open, member: str, typed: str, said: str
) -> None:
    gate = order(house)
    browser = browser_of("alice")
    page = browser.get(path(gate))
    at = {**names(page), "rest": "rest"}
    with nothing_changes():
        refused = browser.send(page, "/edit", **{at[member]: typed, at["to"]: 'kept "<b>'})
    assert refused.status == 422
    assert said in refused.text
    assert "Nothing was recorded." in refused.text
    fields = refused.form("/edit").fields
    assert (fields[at[member]], fields[at["to"]]) == (typed, 'kept "<b>')
    assert not Decision.objects.exists()


def test_an_edit_that_policy_denies_is_refused_with_its_reason(
    house: House, browser_of: Open
) -> None:
    house.policy(
        {
            "name": "few",
            "trigger": "action",
            "tools": ["*"],
            "condition": "arguments.count > 5",
            "then": "deny",
            "reason": "Too many",
        }
    )
    gate = order(house)
    browser = browser_of("alice")
    page = browser.get(path(gate))
    with nothing_changes():
        refused = browser.send(page, "/edit", **{names(page)["count"]: "6"})
    assert refused.status == 422
    assert "Too many Your answer was not recorded." in refused.text
    assert refused.form("/edit").fields[names(page)["count"]] == "6"


def test_the_phrase_to_type_is_that_of_the_edit(house: House, browser_of: Open) -> None:
    gate = order(house, effect="irreversible", confirmation="order {count}")
    browser = browser_of("alice")
    page = browser.get(path(gate))
    review = browser.send(page, "/edit", **{names(page)["count"]: "3"})
    assert "order 3" in review.text
    with nothing_changes():
        refused = browser.send(review, "/approve", confirmation="order 2", reason="why")
    assert refused.status == 422
    assert "This is not the phrase. Nothing was recorded." in refused.text
    assert refused.form("/approve").fields["reason"] == "why"
    assert browser.send(refused, "/approve", confirmation="order 3").status == 303
    assert arguments_of(gate)["count"] == 3


def test_others_decide_an_edit_afresh(house: House, browser_of: Open) -> None:
    house.policy(
        {"name": "two", "trigger": "action", "tools": ["*"], "then": "approve", "quorum": 2}
    )
    gate = order(house)
    house.decide("carol", gate)
    browser = browser_of("alice")
    page = browser.get(path(gate))
    review = browser.send(page, "/edit", **{names(page)["count"]: "3"})
    assert "Besides yours, 1 more is needed for this edit." in review.text
    browser.send(review, "/approve")
    assert fresh(gate).state == "pending"
    assert "1 missing: carol" in browser.get(path(gate)).text


def test_the_dry_run_of_the_edit_is_asked_for(house: House, browser_of: Open) -> None:
    asked: list[Any] = []

    def dry_run(arguments: Any, _call: Any) -> Preview:
        asked.append(arguments["count"])
        return Preview(f"{arguments['count']} will be sent", [], ["Stock is low"], None)

    house.previews["shop.order"] = dry_run
    gate = order(house)
    browser = browser_of("alice")
    page = browser.get(path(gate))
    with nothing_changes():
        review = browser.send(page, "/edit", **{names(page)["count"]: "3"})
    assert "3 will be sent" in review.text
    assert "Stock is low" in review.text
    assert asked == [2, 3]


def test_a_dry_run_of_the_edit_that_fails_is_said(house: House, browser_of: Open) -> None:
    gate = order(house, previewed=True)
    house.previews["shop.order"] = no_preview
    browser = browser_of("alice")
    page = browser.get(path(gate))
    review = browser.send(page, "/edit", **{names(page)["count"]: "3"})
    assert "The dry run of your edit could not be taken" in review.text


def test_arguments_made_by_hand_are_held_to_the_schema_too(house: House, browser_of: Open) -> None:
    gate = order(house)
    browser = browser_of("alice")
    page = browser.get(path(gate))
    review = browser.send(page, "/edit", **{names(page)["count"]: "3"})
    for forged in ('{"to": "Ann"}', "{", '{"to": "Ann", "count": 1e400}', "[]", '"x"'):
        with nothing_changes():
            refused = browser.send(review, "/approve", arguments=forged)
        assert refused.status in {400, 422}, forged
        assert "recorded" in refused.text
    assert not Decision.objects.exists()


def test_a_tool_without_members_is_edited_as_json(house: House, browser_of: Open) -> None:
    house.tool("raw.tool", arguments={"type": "object"})
    gate = house.ask("raw.tool", {"a": {"b": 1}})
    browser = browser_of("alice")
    page = browser.get(path(gate))
    assert "The arguments, as JSON" in page.text
    review = browser.send(page, "/edit", rest='{"a": {"b": 2}}')
    browser.send(review, "/approve")
    assert arguments_of(gate) == {"a": {"b": 2}}


def test_hidden_characters_of_a_field_are_said_and_kept(house: House, browser_of: Open) -> None:
    gate = order(house, {"to": "An\u200bn", "count": 2})
    browser = browser_of("alice")
    page = browser.get(path(gate))
    assert "Holds 1 character that this field can\u2019t show." in page.text
    review = browser.send(page, "/edit", **{names(page)["count"]: "3"})
    browser.send(review, "/approve")
    assert arguments_of(gate) == {"to": "An\u200bn", "count": 3}


def test_an_argument_of_one_of_several_types_is_edited_as_it_is_written() -> None:
    schema = {
        "properties": {"limit": {"type": ["integer", "null"]}, "note": {"type": "string"}},
        "required": ["limit"],
    }
    form = form_of(schema, {"limit": None, "note": "x"})
    assert [one.name for one in form.fields] == ["note"]
    assert form.rest is not None
    assert '"limit": null' in form.rest
