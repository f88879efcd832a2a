"""Rules over HTTP."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from jsonschema import Draft202012Validator

from approvals.models import Gate
from delegation.models import Delegation, DelegationUse
from interrupts.models import Run, Step, Tool
from tenants.api import openapi
from tenants.clock import database_now
from tenants.ids import uuid7
from tests.approvals.house import House, empty_house, house
from tests.delegation.office import ROLES, SCHEMA, TOOL, known
from tests.pages.conftest import nothing_changes
from tests.pages.test_delegation import PREDICATE, rule

__all__ = ["empty_house", "house"]

pytestmark = pytest.mark.django_db(transaction=True)
ACTS = ("accept", "tighten", "pause", "revoke", "dismiss")
AGENT_BOT = {"f": "@agent", "in": ["bot"]}
NARROWER = {"version": 1, "change": {"per_day": {"calls": 3, "sum": {"amount": "100"}}}}


def body(act: str) -> Any:
    return {"accept": {"version": 1}, "tighten": NARROWER}.get(act, {})


def test_a_persons_rules_are_listed_and_narrowed_by_status(house: House) -> None:
    made, slept = rule(house), rule(house, origin="person", status="paused", pause_reason="person")
    rule(house, "carol")
    status, found, _ = house.request("alice", "GET", "/delegations")
    assert (status, [one["id"] for one in found["results"]]) == (200, [str(made.pk), str(slept.pk)])
    one = found["results"][0]
    assert (one["person"], one["tool"], one["status"]) == ("alice", "payments.refund", "suggested")
    assert {"field": "amount", "at_most": "75"}.items() <= one["conditions"][2].items()
    assert one["predicate"] == PREDICATE
    assert one["used_today"]["calls_limit"] == 5
    assert house.request("alice", "GET", f"/delegations/{made.pk}")[1] == one
    paused = house.request("alice", "GET", "/delegations?status=paused")[1]["results"]
    assert [(row["id"], row["pause_reason"]) for row in paused] == [(str(slept.pk), "person")]
    assert house.request("alice", "GET", "/delegations?status=dead")[0] == 422
    assert house.request("bob", "GET", "/delegations")[1]["results"] == []


def test_rules_are_for_people_and_one_is_its_persons_own_and_an_admins(house: House) -> None:
    made = rule(house, status="active")
    paths = [f"/delegations/{made.pk}", f"/delegations/{made.pk}/uses"]
    acts = [(f"/delegations/{made.pk}/{act}", body(act)) for act in ACTS]
    with nothing_changes():
        for path in ["/delegations", *paths]:
            told = house.request("bot", "GET", path)
            assert (told[0], told[1]["code"]) == (403, "people-only")
        by_hand = {"tool": "payments.refund", "predicate": PREDICATE}
        for path, sent in [*acts, ("/delegations", by_hand), ("/delegations/ask-everything", {})]:
            told = house.request("bot", "POST", path, sent)
            assert (told[0], told[1]["code"]) == (403, "people-only"), path
        for who in ("bob", "olga", "vera"):
            for path in paths:
                assert house.request(who, "GET", path)[1]["code"] == "forbidden", (who, path)
            for path, sent in acts:
                assert house.request(who, "POST", path, sent)[1]["code"] == "forbidden", (who, path)
        for act in ("accept", "tighten", "dismiss"):
            told = house.request("ada", "POST", f"/delegations/{made.pk}/{act}", body(act))
            assert (told[0], told[1]["code"]) == (403, "forbidden"), act
        for act in ACTS:
            assert house.request("alice", "POST", f"/delegations/{uuid7()}/{act}", {})[0] == 404
    assert house.request("ada", "GET", paths[0])[0] == 200
    told = house.request("ada", "POST", f"/delegations/{made.pk}/pause", {"note": "a while"})
    assert (told[0], told[1]["pause_reason"], told[1]["note"]) == (200, "admin", "a while")


def test_a_rule_is_narrowed_accepted_and_revoked(house: House) -> None:
    path = f"/delegations/{rule(house).pk}"
    with nothing_changes():
        wider = {"version": 1, "change": {"per_day": {"calls": 6, "sum": {"amount": "120"}}}}
        told = house.request("alice", "POST", f"{path}/tighten", wider)
        assert (told[0], told[1]["code"]) == (422, "not-narrower")
        for wrong in ({}, {"version": 1}, {"version": 0, "change": {}}, {"change": {"x": 1}}):
            told = house.request("alice", "POST", f"{path}/tighten", wrong)
            assert (told[0], told[1]["code"]) == (422, "invalid-body"), wrong
    status, narrowed, _ = house.request("alice", "POST", f"{path}/tighten", NARROWER)
    assert (status, narrowed["version"], narrowed["status"]) == (200, 2, "suggested")
    with nothing_changes():
        stale = house.request("alice", "POST", f"{path}/accept", {"version": 1})
    assert (stale[0], stale[1]["code"]) == (409, "rule-changed")
    key = {"Idempotency-Key": "on"}
    first = house.request("alice", "POST", f"{path}/accept", {"version": 2}, **key)
    assert (first[0], first[1]["status"]) == (200, "active")
    again = house.request("alice", "POST", f"{path}/accept", {"version": 2}, **key)
    assert (again[1], again[2]["Idempotent-Replayed"]) == (first[1], "true")
    assert house.request("alice", "POST", f"{path}/revoke", {})[1]["status"] == "revoked"
    with nothing_changes():
        late = house.request("alice", "POST", f"{path}/accept", {"version": 2})
    assert (late[0], late[1]["code"]) == (409, "already-revoked")


def test_a_rule_by_hand_is_a_suggestion_of_what_may_be_delegated(house: House) -> None:
    house.tool("shop.note", roles={"amount": "number", "payment": "id"})
    house.tool("shop.drop", risk="high", roles={"amount": "number"})
    house.tool("shop.say", roles={"amount": "text"})
    predicate = {
        "all": [
            {"f": "@agent", "in": ["bot"]},
            {"f": "amount", "le": "20"},
            {"f": "payment", "any": True},
        ],
        "per_day": {"calls": 2},
    }
    with nothing_changes():
        for tool, code in (
            ("shop.drop", "not-delegable"),
            ("shop.say", "not-delegable"),
            ("no.such", "invalid-body"),
        ):
            sent = {"tool": tool, "predicate": predicate}
            told = house.request("alice", "POST", "/delegations", sent)
            assert (told[0], told[1]["code"]) == (422, code), tool
        wrong = {"tool": "shop.note", "predicate": {"all": []}}
        assert house.request("alice", "POST", "/delegations", wrong)[0] == 422
    sent = {"tool": "shop.note", "predicate": predicate}
    status, made, _ = house.request("alice", "POST", "/delegations", sent)
    assert (status, made["status"], made["origin"]) == (201, "suggested", "person")
    assert Delegation.objects.get().predicate == known(predicate)
    assert made["conditions"][0]["values"] == ["bot"]


def test_answers_are_what_is_published(house: House) -> None:
    made = rule(house, status="active")
    step = Step.objects.get(pk=house.ask().step_id)
    DelegationUse.objects.create(delegation=made, version=1, step=step.pk, at=database_now())
    published = openapi.document()["components"]
    for path, name in (("", "Delegation"), ("/uses", "DelegationUse")):
        shape = {"$ref": f"#/components/schemas/{name}", "components": published}
        found = house.request("alice", "GET", f"/delegations/{made.pk}{path}")[1]
        for one in found.get("results", [found]):
            assert list(Draft202012Validator(shape).iter_errors(one)) == []
            assert set(one) == set(published["schemas"][name]["properties"])


def test_what_ran_under_a_rule_is_a_page(house: House) -> None:
    made = rule(house, status="active")
    step = Step.objects.get(pk=house.ask().step_id)
    for _ in range(51):
        DelegationUse.objects.create(
            delegation=made, version=1, decision=None, step=step.pk, at=database_now()
        )
    status, found, _ = house.request("alice", "GET", f"/delegations/{made.pk}/uses")
    assert (status, len(found["results"])) == (200, 50)
    assert found["results"][0]["step"] == str(step.pk)
    onward = found["next"].partition("/api/v1")[2]
    assert len(house.request("alice", "GET", onward)[1]["results"]) == 1


def test_everything_is_asked_again_and_not(house: House) -> None:
    path = "/delegations/ask-everything"
    assert house.request("alice", "POST", path, {})[1] == {"asks_everything": True}
    assert house.request("alice", "POST", path, {"wanted": False})[1] == {"asks_everything": False}


def test_admins_offer_rules_to_everybody_and_withdraw_them(house: House) -> None:
    house.tool("shop.note", roles={"amount": "number", "payment": "id"})
    predicate = {
        "all": [
            {"f": "@agent", "in": ["bot"]},
            {"f": "amount", "le": "20"},
            {"f": "payment", "any": True},
        ]
    }
    sent = {"tool": "shop.note", "predicate": predicate}
    with nothing_changes():
        for who, code in (("bot", "people-only"), ("alice", "forbidden"), ("olga", "forbidden")):
            told = house.request(who, "POST", "/delegation-templates", sent)
            assert (told[0], told[1]["code"]) == (403, code)
        wrong = {**sent, "tool": "no.such"}
        assert house.request("ada", "POST", "/delegation-templates", wrong)[0] == 422
    status, made, _ = house.request("ada", "POST", "/delegation-templates", sent)
    assert (status, made["tool"], made["published_by"]) == (201, "shop.note", "ada")
    assert "amount is at most 20" in made["sentence"]
    path = f"/delegation-templates/{made['id']}/withdraw"
    with nothing_changes():
        assert house.request("alice", "POST", path, {})[1]["code"] == "forbidden"
    gone = house.request("ada", "POST", path, {})[1]
    assert gone["withdrawn_at"] is not None
    assert house.request("ada", "POST", path, {})[1] == gone
    assert house.request("alice", "GET", "/delegation-templates")[1]["results"] == [gone]


def test_a_gate_offers_its_person_a_rule_and_tells_an_agent_nothing(house: House) -> None:
    house.tool("shop.note", roles={"amount": "number", "payment": "id"})
    made = rule(house, tool=Tool.objects.get(name="shop.note").pk, predicate=of_note("75"))
    gate = house.ask("shop.note")
    mine = house.request("alice", "GET", f"/gates/{gate.pk}")[1]
    assert mine["delegation_offer"]["id"] == str(made.pk)
    assert house.request("carol", "GET", f"/gates/{gate.pk}")[1]["delegation_offer"] is None
    of_agent = house.request("bot", "GET", f"/gates/{gate.pk}")[1]
    assert {"delegation_offer", "why_asked"}.isdisjoint(of_agent)
    assert "delegation" not in json.dumps(house.request("bot", "GET", "/gates")[1])


def of_note(most: str) -> dict[str, Any]:
    payment = {"f": "payment", "any": True}
    asked = [AGENT_BOT, {"f": "amount", "le": most}, payment]
    return known({"all": asked, "per_day": {"calls": 5}})


def test_nothing_is_offered_of_a_gate_that_no_rule_decides(house: House) -> None:
    roles = {"amount": "number", "payment": "id"}
    house.tool("shop.note", roles=roles)
    of_tool = {"tool": Tool.objects.get(name="shop.note").pk, "predicate": of_note("75")}
    suggested = rule(house, **of_tool)
    spoken = rule(house, status="active", **{**of_tool, "origin": "person"})

    def told(gate: Gate) -> tuple[Any, Any]:
        one = house.request("alice", "GET", f"/gates/{gate.pk}")[1]
        return one["delegation_offer"] and one["delegation_offer"]["id"], one["why_asked"]

    Delegation.objects.filter(pk=spoken.pk).update(predicate=of_note("1"))
    assert told(house.ask("shop.note")) == (
        str(suggested.pk),
        "above what you approved for this tool (1)",
    )
    several = {"name": "several", "trigger": "action", "then": "approve", "quorum": 2}
    for policy, why in (
        ({"rules": [several]}, "several people decide it"),
        ({"rules": [{**several, "quorum": 1, "cool_down": 60}]}, "it is not only the call"),
        ({"rules": [], "delegation": {"mode": "off"}}, "nothing of the kind is delegated"),
        ({"rules": [], "delegation": {"never": [{"tools": ["shop.*"]}]}}, "the policy always"),
    ):
        house.policy(*policy.pop("rules"), **policy)
        offered, said = told(house.ask("shop.note"))
        assert offered is None, why
        assert said is not None, why
        assert said.startswith(why), said
    house.policy()
    gate = house.ask("shop.note")
    Run.objects.filter(pk=gate.run_id).update(count_unknown=1)
    assert told(gate) == (None, "something in its run has an unknown outcome")
    house.tool("shop.said")  # nothing is declared of its arguments
    Delegation.objects.filter(pk=suggested.pk).update(tool=Tool.objects.get(name="shop.said").pk)
    assert told(house.ask("shop.said"))[0] is None


def test_an_agent_is_told_that_a_rule_decided_and_nothing_of_which(house: House) -> None:
    house.tool("shop.note", roles={"amount": "number", "payment": "id"})
    sent = {"tool": "shop.note", "predicate": of_note("75")}
    made = house.request("alice", "POST", "/delegations", sent)[1]
    house.request("alice", "POST", f"/delegations/{made['id']}/accept", {"version": 1})
    Delegation.objects.update(check_share=0)
    step = house.propose("shop.note")
    assert step.authorized_by == "delegation"
    run, gate = f"/runs/{step.run_id}", f"/gates/{step.gate}"
    own = [f"/steps/{step.pk}", run, f"{run}/steps", f"{run}/journal", gate, "/gates"]
    secrets = (made["id"], made["sha256"].removeprefix("sha256:"), str(made["person"]))
    for path in own:
        told = house.request("bot", "GET", path)
        assert told[0] == 200
        assert not [one for one in secrets if one in json.dumps(told[1])], path
    assert house.request("bot", "GET", own[0])[1]["authorization"]["by"] == "delegation"
    bearer = {"Authorization": f"Bearer {house.secrets['bot']}"}
    followed = Client().get(f"/api/v1{run}/events", headers=bearer).content.decode()
    assert "gate.decided" in followed
    assert not [one for one in secrets if one in followed]
    kept = json.dumps(house.request("alice", "GET", f"{run}/journal")[1])
    assert made["id"] in kept, "people are told"


def test_a_page_of_rules_takes_as_many_statements_however_many_there_are(house: House) -> None:
    def statements() -> int:
        with CaptureQueriesContext(connection) as found:
            assert house.request("alice", "GET", "/delegations")[0] == 200
        return len(found)

    rule(house)
    alone = statements()
    for at in range(6):
        rule(house, origin="person", status="active", tool_number=at + 1)
    assert statements() == alone


ORDER = {"f": "order", "any": True}
AMOUNT = {"f": "amount", "le": "50"}


def of_all(*conditions: Any, **more: Any) -> dict[str, Any]:
    return {"all": [AGENT_BOT, AMOUNT, ORDER, *conditions], **more}


def of_tiers(*tiers: str, **more: Any) -> dict[str, Any]:
    return of_all({"f": "tier", "in": list(tiers)}, **more)


MEANINGLESS: Final[list[tuple[Any, str]]] = [
    (of_tiers(), "/predicate/all/3/in"),
    (of_tiers("gold", "gold"), "/predicate"),
    (of_tiers("gold", " gold"), "/predicate/all/3/in/1"),
    (of_tiers("go\u202eld"), "/predicate/all/3/in/0"),
    (of_tiers("=NaN"), "/predicate/all/3/in/0"),
    (of_tiers("=9007199254740993"), "/predicate/all/3/in/0"),
    (of_all({"f": "tier", "le": "4"}), "/predicate/all/3"),
    (of_all({"f": "tier", "not_in": ["gold"]}), "/predicate/all/3/not_in"),
    (of_tiers("gold", per_day={"sum": {"amout": "100"}}), "/predicate/per_day/sum"),
    (of_tiers("gold", per_day={"sum": {"tier": "100"}}), "/predicate/per_day/sum"),
    (of_tiers("gold", per_day={"sum": {"amount": "-1"}}), "/predicate/per_day/sum/amount"),
    (
        of_tiers("gold", ceilings=[{"f": "sum", "le": "4", "when": ["tier", "gold"]}]),
        "/predicate/ceilings/0/f",
    ),
    (
        of_tiers("gold", ceilings=[{"f": "amount", "le": "4", "when": ["teir", "gold"]}]),
        "/predicate/ceilings/0/when",
    ),
    (
        of_tiers("gold", except_pairs=[[["tier", "gold"], ["agent", "bot"]]]),
        "/predicate/except_pairs/0",
    ),
    (
        of_tiers("gold", except_pairs=[[["tier", "gold"], ["tier", "gold"]]]),
        "/predicate/except_pairs/0",
    ),
]


def test_a_rule_that_bounds_nothing_or_allows_nothing_is_refused_where_it_says_so(
    empty_house: House,
) -> None:
    house = empty_house
    house.tool(TOOL, arguments=SCHEMA, roles=ROLES)
    with nothing_changes():
        for predicate, pointer in MEANINGLESS:
            sent = {"tool": TOOL, "predicate": predicate}
            status, told, _ = house.request("alice", "POST", "/delegations", sent)
            assert (status, told["code"]) == (422, "invalid-body"), predicate
            assert told["errors"][0]["pointer"].startswith(pointer), predicate


def test_a_narrowing_leaves_something_and_names_what_is_there(empty_house: House) -> None:
    house = empty_house
    house.tool(TOOL, arguments=SCHEMA, roles=ROLES)
    sent = {"tool": TOOL, "predicate": of_tiers("gold", "=5")}
    path = f"/delegations/{house.request('alice', 'POST', '/delegations', sent)[1]['id']}"
    for change, pointer in (
        ({"all": of_tiers()["all"]}, "/change/all/3/in"),
        ({"per_day": {"sum": {"amout": "1"}}}, "/change/per_day/sum"),
        ({"ceilings": [{"f": "x", "le": "4", "when": ["tier", "gold"]}]}, "/change/ceilings/0/f"),
    ):
        with nothing_changes():
            body = {"version": 1, "change": change}
            status, told, _ = house.request("alice", "POST", f"{path}/tighten", body)
        assert (status, told["errors"][0]["pointer"]) == (422, pointer)
