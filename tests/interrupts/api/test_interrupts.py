"""Interrupts over the API: opened, listed, answered once."""

from typing import Any

import pytest

from tests.interrupts.api.conftest import NO_SUCH, Api

pytestmark = pytest.mark.django_db
INPUT = {
    "reason": "input_required",
    "question": "Which account?",
    "schema": {
        "type": "object",
        "required": ["account"],
        "properties": {"account": {"type": "string", "minLength": 3}},
    },
}


def open_(api: Api, run: Any, who: str = "olga", **members: Any) -> Any:
    body = {"reason": "operator_stop", **members}
    return api.post(who, f"runs/{run['id']}/interrupts", body)


def respond(api: Api, held: Any, who: str = "olga", **members: Any) -> Any:
    body = {"checkpoint": held["checkpoint"], "resolution": "resume", **members}
    return api(who, "POST", f"interrupts/{held['id']}/response", body)


def test_a_stop_suspends_the_run_and_says_what_it_needs(api: Api) -> None:
    run = api.run()
    held = open_(api, run, note="look at this", evidence={"alert": 7}, in_flight="cancel")
    assert (held["status"], held["reason"], held["in_flight"]) == (
        "open",
        "operator_stop",
        "cancel",
    )
    assert (held["evidence"], held["note"]) == ({"alert": 7}, "look at this")
    assert held["suspension"] == "safely_suspended"
    needed = held["required_response"]
    assert (needed["kind"], needed["schema"], needed["expires_at"]) == ("release", None, None)
    assert {one["resolution"] for one in needed["allowed"]} == {"resume", "revise", "cancel"}
    assert needed["who"] == ["operator", "admin", "requester", "decider"]
    assert (held["resolution"], held["response"], held["resolved_by"]) == (None, None, None)
    olga = api.world.users["olga"]
    assert held["opened_by"] == {"kind": "user", "id": str(olga.pk), "name": "olga"}
    assert api.get("olga", f"interrupts/{held['id']}") == held
    assert api.get("olga", f"runs/{run['id']}")["status"] == "suspended"


def test_the_same_stop_again_is_the_one_that_is_open(api: Api) -> None:
    run = api.run()
    held = open_(api, run)
    before = api.state(run)
    path = f"runs/{run['id']}/interrupts"
    assert api.post("alice", path, {"reason": "operator_stop"}, status=200) == held
    assert api.state(run) == before
    api.post("alice", path, {"reason": "operator_stop", "question": "And this?"})
    assert len(api.get("alice", f"interrupts?run={run['id']}")["results"]) == 2


def test_who_may_stop_and_who_may_not(api: Api) -> None:
    run = api.run(requested_by="carol")
    before = api.state(run)
    for who, reason, code in (
        ("agent", "operator_stop", "people-only"),
        ("vera", "operator_stop", "forbidden"),
        ("carol", "agent_requested", "forbidden"),
    ):
        reply = api(who, "POST", f"runs/{run['id']}/interrupts", {"reason": reason})
        assert (reply.status, reply.code) == (403, code)
    assert api.state(run) == before
    open_(api, run, "carol")
    open_(api, run, "agent", reason="agent_requested")


@pytest.mark.parametrize(
    ("members", "pointer"),
    [
        ({"reason": "outcome_unknown"}, "/reason"),
        ({"reason": None}, "/reason"),
        ({"in_flight": "kill"}, "/in_flight"),
        ({"expires_in": 0}, "/expires_in"),
        ({"expires_in": "1h"}, "/expires_in"),
        ({"on_expiry": "approve"}, "/on_expiry"),
        ({"question": ""}, "/question"),
        ({"schema": []}, "/schema"),
        ({"evidence": "x"}, "/evidence"),
        ({"colour": "red"}, "/colour"),
    ],
)
def test_an_interrupt_that_is_not_well_formed_is_refused(
    api: Api, members: dict[str, Any], pointer: str
) -> None:
    run = api.run()
    before = api.state(run)
    body = {"reason": "agent_requested", **members}
    reply = api("agent", "POST", f"runs/{run['id']}/interrupts", body)
    assert (reply.status, reply.code, reply.pointers) == (422, "invalid-body", [pointer])
    assert api.state(run) == before


def test_a_schema_that_is_none_is_refused_when_it_is_asked_with(api: Api) -> None:
    run = api.run()
    before = api.state(run)
    body = {**INPUT, "schema": {"type": "strng"}}
    reply = api("agent", "POST", f"runs/{run['id']}/interrupts", body)
    assert reply.status == 422
    assert all(pointer.startswith("/schema") for pointer in reply.pointers)
    assert api.state(run) == before


def test_an_expiry_is_an_instant_and_cancels_unless_it_says_otherwise(api: Api) -> None:
    held = open_(api, api.run(), "agent", reason="agent_requested", expires_in=60)
    needed = held["required_response"]
    assert needed["expires_at"] > held["opened_at"]
    assert needed["on_expiry"] == "cancel"


def test_a_missing_value_is_given_once(api: Api) -> None:
    run = api.run()
    held = open_(api, run, "agent", **INPUT)
    assert held["required_response"]["schema"] == INPUT["schema"]
    before = api.state(run)
    wrong = respond(api, held, value={"account": "x"})
    assert (wrong.status, wrong.pointers) == (422, ["/value/account"])
    assert respond(api, held).pointers == ["/value"]
    assert api.state(run) == before
    first = respond(api, held, value={"account": "acc-9"})
    assert (first.status, first.body["status"]) == (200, "resolved")
    assert "Idempotent-Replayed" not in first.headers
    assert first.body["resolution"] == "resume"
    assert first.body["response"]["value"] == {"account": "acc-9"}
    assert first.body["resolved_by"]["name"] == "olga"
    before = api.state(run)
    again = respond(api, held, "alice", value={"account": "acc-9"})
    assert (again.status, again.body) == (200, first.body)
    assert again.headers["Idempotent-Replayed"] == "true"
    for other in ({"value": {"account": "acc-8"}}, {"value": {"account": "acc-9"}, "note": "n"}):
        reply = respond(api, held, **other)
        assert (reply.status, reply.code) == (409, "already-resolved")
    assert api.state(run) == before
    shown = api.get("agent", f"interrupts/{held['id']}")
    assert shown["response"]["value"] == {"account": "acc-9"}
    assert api.get("agent", f"runs/{run['id']}")["status"] == "running"


def test_agents_are_not_told_which_person_answered(api: Api) -> None:
    run = api.run()
    held = open_(api, run)
    respond(api, held)
    shown = api.get("agent", f"interrupts/{held['id']}")
    nobody = {"kind": "user", "id": None, "name": None}
    assert (shown["opened_by"], shown["resolved_by"]) == (nobody, nobody)
    olga = str(api.world.users["olga"].pk)
    for path in (f"runs/{run['id']}/journal", f"runs/{run['id']}/events", "interrupts"):
        assert olga not in api("agent", "GET", path).text
        assert olga in api("vera", "GET", path).text


def test_a_response_that_may_not_be_is_refused_and_changes_nothing(api: Api) -> None:
    run = api.run()
    held = open_(api, run)
    step_gate = api.get("olga", f"runs/{run['id']}")
    before = api.state(run)
    for who, members, status, code in (
        ("agent", {}, 403, "people-only"),
        ("vera", {}, 403, "forbidden"),
        ("carol", {}, 403, "forbidden"),
        ("olga", {"checkpoint": NO_SUCH}, 409, "stale-checkpoint"),
        ("olga", {"checkpoint": "x"}, 422, "invalid-body"),
        ("olga", {"resolution": "compensate"}, 422, "invalid-body"),
        ("olga", {"resolution": "time_out"}, 422, "invalid-body"),
        ("olga", {"resolution": "revise"}, 422, "invalid-body"),
        ("olga", {"colour": 1}, 422, "invalid-body"),
    ):
        reply = respond(api, held, who, **members)
        assert (reply.status, reply.code) == (status, code), (who, members)
    stale = api(
        "olga",
        "POST",
        f"interrupts/{held['id']}/response",
        {"checkpoint": held["checkpoint"], "resolution": "resume"},
        If_Match='"1"',
    )
    assert (stale.status, stale.code) == (412, "version-mismatch")
    assert api.state(run) == before
    assert api.get("olga", f"interrupts/{held['id']}") == held
    assert api.get("olga", f"runs/{run['id']}") == step_gate


def test_what_a_gate_holds_is_released_by_deciding_the_gate(api: Api) -> None:
    run = api.run()
    step = api.step(run, "payments.refund", {"payment": "p-1"})
    held = api.get("olga", f"interrupts/{step['interrupt']}")
    assert (held["step"], held["gate"]) == (step["id"], step["gate"])
    before = api.state(run)
    reply = respond(api, held)
    assert (reply.status, reply.code) == (409, "decide-the-gate")
    assert api.state(run) == before


def test_interrupts_are_listed_by_what_they_are(api: Api) -> None:
    first, second = api.run(), api.run()
    stop = open_(api, first)
    asked = open_(api, second, "agent", reason="agent_requested")
    respond(api, stop)

    def ids(query: str, who: str = "alice") -> list[str]:
        return [one["id"] for one in api.get(who, f"interrupts{query}")["results"]]

    assert ids("") == [stop["id"], asked["id"]]
    assert ids("?status=open") == [asked["id"]]
    assert ids("?reason=operator_stop") == [stop["id"]]
    assert ids(f"?run={second['id']}") == [asked["id"]]
    assert ids(f"?run={NO_SUCH}") == []
    assert ids("", "other") == []
    for query in ("status=x", "reason=x", "run=x"):
        reply = api("alice", "GET", f"interrupts?{query}")
        assert (reply.status, reply.code) == (422, "invalid-query")


def test_an_interrupt_waits_for_its_run(api: Api) -> None:
    held = open_(api, api.run())
    query = f"?wait=5&after_version={held['state_version']}"
    told = api("agent", "GET", f"interrupts/{held['id']}{query}").headers
    assert told["X-Abeyance-Wait"] == f"run:{held['run']}"
