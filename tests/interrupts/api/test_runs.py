"""Runs over the API: started, looked at, driven by their agent, cancelled by people."""

from dataclasses import replace
from typing import Any

import pytest

from interrupts.services import agentstate
from interrupts.transitions import checkpoints
from tenants.models import Role
from tenants.scope import tenant_scope
from tests.interrupts.api.conftest import NO_SUCH, Api

pytestmark = pytest.mark.django_db


def test_a_run_starts_running_and_shows_what_it_was_given(api: Api) -> None:
    run = api.run(
        inputs={"order": 7},
        requested_by="carol",
        budget={"steps": 5, "cost": "1.50"},
        labels={"team": "support"},
        idle_after=30,
    )
    assert run["status"] == "running"
    assert run["suspension"] is None
    assert run["suspension_counts"] == {"unknown": 0, "in_flight": 0, "partial": 0}
    assert (run["agent"], run["requested_by"], run["parent"]) == ("agent", "carol", None)
    assert (run["inputs"], run["labels"]) == ({"order": 7}, {"team": "support"})
    assert run["budget"] == {"steps": 5, "cost": "1.50"}
    assert run["usage"] == {"steps": 0, "cost": "0", "seconds": 0, "tokens": 0}
    assert (run["session"], run["epoch"], run["state_version"]) == (0, 1, 1)
    assert (run["guidance"], run["open_interrupts"], run["checkpoint"]) == ([], [], None)
    assert api.get("vera", f"runs/{run['id']}") == run


def test_a_run_made_with_a_state_has_a_first_checkpoint_that_holds_it(api: Api) -> None:
    state = {"format": "abeyance-test", "version": "1", "data": {"messages": ["hi"]}}
    run = api.run(agent_state=state)
    shown = api.get("agent", f"checkpoints/{run['checkpoint']}")
    assert shown["agent_state"]["data"] == {"messages": ["hi"]}


def test_only_an_agent_starts_a_run(api: Api) -> None:
    reply = api("alice", "POST", "runs", {"workflow": "w", "goal": "g"})
    assert (reply.status, reply.code) == (403, "agents-only")
    assert api.get("alice", "runs")["results"] == []


@pytest.mark.parametrize(
    ("members", "pointer"),
    [
        ({"goal": ""}, "/goal"),
        ({"goal": None}, "/goal"),
        ({"inputs": []}, "/inputs"),
        ({"parent": "x"}, "/parent"),
        ({"parent": NO_SUCH}, "/parent"),
        ({"requested_by": "mallory"}, "/requested_by"),
        ({"budget": {"cost": 1}}, "/budget/cost"),
        ({"budget": {"cost": "1e3"}}, "/budget/cost"),
        ({"budget": {"steps": True}}, "/budget/steps"),
        ({"budget": {"stepps": 1}}, "/budget/stepps"),
        ({"idle_after": 0}, "/idle_after"),
        ({"labels": {"a": 1}}, "/labels/a"),
        ({"agent_state": {"format": "f", "version": "1"}}, "/agent_state/data"),
        ({"colour": "red"}, "/colour"),
    ],
)
def test_a_run_that_is_not_well_formed_is_refused_with_its_place(
    api: Api, members: dict[str, Any], pointer: str
) -> None:
    reply = api("agent", "POST", "runs", {"workflow": "w", "goal": "g", **members})
    assert (reply.status, reply.code) == (422, "invalid-body")
    assert reply.pointers == [pointer]
    assert api.get("alice", "runs")["results"] == []


def test_a_child_belongs_to_its_parent_and_takes_over_its_requester(api: Api) -> None:
    parent = api.run(requested_by="carol")
    child = api.run(parent=parent["id"])
    assert (child["parent"], child["requested_by"]) == (parent["id"], "carol")
    shown = api.get("agent", f"runs/{parent['id']}/children")
    assert [one["id"] for one in shown["results"]] == [child["id"]]
    reply = api("other", "POST", "runs", {"workflow": "w", "goal": "g", "parent": parent["id"]})
    assert (reply.status, reply.code) == (403, "not-your-run")


def test_runs_are_listed_oldest_first_and_by_what_they_are(api: Api) -> None:
    first, second = api.run(), api.run(workflow="payouts")
    third = api.run("other")
    stopped = api.post("olga", f"runs/{second['id']}/interrupts", {"reason": "operator_stop"})

    def ids(query: str, who: str = "alice") -> list[str]:
        return [run["id"] for run in api.get(who, f"runs{query}")["results"]]

    assert ids("") == [first["id"], second["id"], third["id"]]
    assert ids("?workflow=payouts") == [second["id"]]
    assert ids("?status=suspended") == [second["id"]]
    assert ids("?suspension=safely_suspended") == [second["id"]]
    assert ids("?agent=other") == [third["id"]]
    assert ids("", "other") == [third["id"]]
    shown = api.get("alice", "runs?status=suspended")["results"][0]
    assert shown["open_interrupts"] == [stopped["id"]]
    assert shown == api.get("alice", f"runs/{second['id']}")
    for query in ("status=sleeping", "suspension=x", "cursor=x", "workflow=%00"):
        reply = api("alice", "GET", f"runs?{query}")
        assert (reply.status, reply.code) == (422, "invalid-query")


def test_runs_come_in_pages_of_fifty_that_lead_to_each_other(api: Api) -> None:
    ids = [api.run()["id"] for _ in range(53)]
    first = api.get("agent", "runs")
    assert [run["id"] for run in first["results"]] == ids[:50]
    assert first["previous"] is None
    assert first["next"].startswith("http://testserver/api/v1/runs?")
    second = api.get("agent", first["next"].partition("/api/v1/")[2])
    assert [run["id"] for run in second["results"]] == ids[50:]
    assert second["next"] is None
    again = api.get("agent", second["previous"].partition("/api/v1/")[2])
    assert [run["id"] for run in again["results"]] == ids[:50]


def test_an_agent_reads_its_own_runs_only(api: Api) -> None:
    run = api.run()
    step = api.step(run, "payments.refund", {"payment": "p-1"})
    now = api.get("agent", f"runs/{run['id']}")
    paths = [
        f"runs/{run['id']}{tail}"
        for tail in ("", "/steps", "/journal", "/events", "/checkpoints", "/children")
    ]
    paths += [
        f"steps/{step['id']}",
        f"interrupts/{step['interrupt']}",
        f"checkpoints/{now['checkpoint']}",
    ]
    for path in paths:
        reply = api("other", "GET", path)
        assert (reply.status, reply.code) == (403, "not-your-run"), path
        assert api("vera", "GET", path).status == 200, path
    for path in ("runs", "interrupts"):
        assert api.get("other", path)["results"] == []
        assert len(api.get("vera", path)["results"]) == 1


def test_an_agent_drives_its_own_runs_only(api: Api) -> None:
    run = api.run()
    step = api.step(run, "local.shell", {"command": "ls"})
    before = api.state(run)
    calls = {
        "claim": {},
        "usage": {},
        "acknowledge": {"guidance": []},
        "complete": {"output": 1},
        "fail": {"error": 1},
        "checkpoints": {"agent_state": {"format": "f", "version": "1", "data": 1}},
        "steps": {"tool": "crm.get", "arguments": {"customer": "c"}},
        "interrupts": {"reason": "agent_requested"},
    }
    for tail, body in calls.items():
        reply = api("other", "POST", f"runs/{run['id']}/{tail}", body)
        assert (reply.status, reply.code) == (403, "not-your-run"), tail
    reply = api("other", "POST", f"steps/{step['id']}/claim")
    assert (reply.status, reply.code) == (403, "not-your-run")
    assert api.state(run) == before


def test_a_newer_claim_ends_the_older_sessions_right(api: Api) -> None:
    run = api.run(idle_after=60)
    first = api.post("agent", f"runs/{run['id']}/claim", status=200)
    assert first["session"] == 1
    assert first["lease_expires_at"] > run["created_at"]
    second = api.post("agent", f"runs/{run['id']}/claim", status=200)
    before = api.state(run)
    for tail, body in {
        "usage": {"tokens": 1},
        "acknowledge": {"guidance": []},
        "complete": {"output": 1},
        "fail": {"error": "x"},
        "interrupts": {"reason": "agent_requested"},
        "checkpoints": {"agent_state": {"format": "f", "version": "1", "data": 1}},
        "steps": {"tool": "crm.get", "arguments": {"customer": "c"}},
    }.items():
        path = f"runs/{run['id']}/{tail}"
        reply = api("agent", "POST", path, {**body, "session": first["session"]})
        assert (reply.status, reply.code) == (409, "stale-session"), tail
        reply = api("agent", "POST", path, {**body, "session": 9})
        assert (reply.status, reply.pointers) == (422, ["/session"]), tail
    assert api.state(run) == before
    told = api.post("agent", f"runs/{run['id']}/usage", {"session": second["session"]}, status=200)
    assert told["stop_requested"] is False


def test_usage_adds_up_exactly(api: Api) -> None:
    run = api.run()
    path = f"runs/{run['id']}/usage"
    api.post("agent", path, {"cost": "0.10", "tokens": 1000, "seconds": 1.5}, status=200)
    told = api.post("agent", path, {"cost": "0.20", "tokens": 500, "seconds": 0.5}, status=200)
    assert told["usage"] == {"steps": 0, "cost": "0.3", "seconds": 2, "tokens": 1500}
    assert (told["stop_requested"], told["guidance"]) == (False, [])
    now = api.get("agent", f"runs/{run['id']}")
    assert now["usage"] == told["usage"]
    assert now["state_version"] == run["state_version"] == told["state_version"]


@pytest.mark.parametrize("cost", ["-1", "1e3", "01", ".5", "1.", "NaN", "0.12345678901", 0.1])
def test_a_cost_that_is_no_plain_amount_is_refused(api: Api, cost: Any) -> None:
    run = api.run()
    reply = api("agent", "POST", f"runs/{run['id']}/usage", {"cost": cost})
    assert (reply.status, reply.pointers) == (422, ["/cost"])
    assert api.get("agent", f"runs/{run['id']}")["usage"]["cost"] == "0"


def test_beyond_its_budget_a_run_is_told_to_stop(api: Api) -> None:
    run = api.run(budget={"cost": "1.00"})
    told = api.post("agent", f"runs/{run['id']}/usage", {"cost": "1.01"}, status=200)
    assert told["stop_requested"] is True
    assert told["state_version"] > run["state_version"]
    (held,) = api.get("alice", f"interrupts?run={run['id']}&reason=budget_exhausted")["results"]
    assert held["required_response"]["kind"] == "extension"


def test_an_extension_is_shown_among_the_limits_with_money_as_text(api: Api) -> None:
    run = api.run(budget={"cost": "1.00", "steps": 9})
    api.post("agent", f"runs/{run['id']}/usage", {"cost": "1.50"}, status=200)
    (held,) = api.get("olga", f"interrupts?run={run['id']}")["results"]
    answer = {"checkpoint": held["checkpoint"], "resolution": "resume"}
    path = f"interrupts/{held['id']}/response"
    before = api.state(run)
    reply = api("olga", "POST", path, {**answer, "value": {"cost": "1.49"}})
    assert (reply.status, reply.pointers) == (422, ["/value/cost"])
    assert api.state(run) == before
    api.post("olga", path, {**answer, "value": {"cost": 5}}, status=200)
    now = api.get("agent", f"runs/{run['id']}")
    assert (now["status"], now["budget"]) == ("running", {"cost": "5", "steps": 9})


def test_guidance_is_shown_until_it_is_acknowledged(api: Api) -> None:
    run = api.run()
    stop = api.post("olga", f"runs/{run['id']}/interrupts", {"reason": "operator_stop"})
    api.post(
        "olga",
        f"interrupts/{stop['id']}/response",
        {
            "checkpoint": stop["checkpoint"],
            "resolution": "revise",
            "value": {"guidance": "refund half"},
        },
        status=200,
    )
    told = api.post("agent", f"runs/{run['id']}/usage", status=200)["guidance"]
    assert [(one["text"], one["by"], one["acknowledged"]) for one in told] == [
        ("refund half", "olga", False)
    ]
    path = f"runs/{run['id']}/acknowledge"
    reply = api("agent", "POST", path, {"guidance": [told[0]["id"], NO_SUCH]})
    assert (reply.status, reply.pointers) == (422, ["/guidance/1"])
    for _ in range(2):
        shown = api.post("agent", path, {"guidance": [told[0]["id"]]}, status=200)
        assert shown["guidance"] == [{**told[0], "acknowledged": True}]
    assert api.post("agent", f"runs/{run['id']}/usage", status=200)["guidance"] == []


def test_a_run_ends_with_its_output_and_stays_ended(api: Api) -> None:
    run = api.run()
    ended = api.post(
        "agent", f"runs/{run['id']}/complete", {"output": {"refunded": "20.00"}}, status=200
    )
    assert (ended["status"], ended["output"]) == ("completed", {"refunded": "20.00"})
    assert ended["ended_at"] is not None
    before = api.state(run)
    for who, tail, body in (
        ("agent", "complete", {"output": 1}),
        ("agent", "fail", {"error": 1}),
        ("agent", "usage", {}),
        ("agent", "claim", {}),
        ("agent", "steps", {"tool": "crm.get", "arguments": {"customer": "c"}}),
        ("olga", "interrupts", {"reason": "operator_stop"}),
        ("olga", "cancel", {}),
    ):
        reply = api(who, "POST", f"runs/{run['id']}/{tail}", body)
        assert (reply.status, reply.code) == (409, "run-ended"), tail
    assert api.state(run) == before


def test_a_run_fails_with_its_error(api: Api) -> None:
    run = api.run()
    ended = api.post("agent", f"runs/{run['id']}/fail", {"error": "no such order"}, status=200)
    assert (ended["status"], ended["error"], ended["output"]) == ("failed", "no such order", None)


def test_a_run_with_something_outstanding_does_not_complete(api: Api) -> None:
    run = api.run()
    api.step(run, "local.shell", {"command": "ls"})
    before = api.state(run)
    reply = api("agent", "POST", f"runs/{run['id']}/complete", {"output": 1})
    assert (reply.status, reply.code) == (409, "steps-outstanding")
    assert api.state(run) == before


def test_operators_and_admins_cancel_a_run_and_nobody_else(api: Api) -> None:
    run, child_of = api.run(), {}
    child_of = api.run(parent=run["id"])
    before = api.state(run)
    for who, code in (("agent", "people-only"), ("carol", "forbidden"), ("vera", "forbidden")):
        reply = api(who, "POST", f"runs/{run['id']}/cancel")
        assert (reply.status, reply.code) == (403, code)
    assert api.state(run) == before
    assert api.post("olga", f"runs/{run['id']}/cancel", status=202)["status"] == "cancelled"
    assert api.get("alice", f"runs/{child_of['id']}")["status"] == "cancelled"


@pytest.mark.parametrize("header", ['"9"', 'W/"1"', "1", '"one"'])
def test_a_change_of_another_version_is_refused(api: Api, header: str) -> None:
    run = api.run()
    before = api.state(run)
    for who, tail, body in (
        ("olga", "cancel", {}),
        ("agent", "claim", {}),
        ("agent", "complete", {"output": 1}),
        ("agent", "steps", {"tool": "crm.get", "arguments": {"customer": "c"}}),
        ("olga", "interrupts", {"reason": "operator_stop"}),
    ):
        reply = api(who, "POST", f"runs/{run['id']}/{tail}", body, If_Match=header)
        assert (reply.status, reply.code) == (412, "version-mismatch"), tail
    assert api.state(run) == before


def test_a_change_of_the_version_seen_is_made_and_gives_the_new_one(api: Api) -> None:
    run = api.run()
    seen = api("agent", "GET", f"runs/{run['id']}").headers["ETag"]
    assert seen == '"1"'
    reply = api("agent", "POST", f"runs/{run['id']}/claim", {}, If_Match=f'"7", {seen}')
    assert (reply.status, reply.body["state_version"]) == (200, 2)
    assert reply.headers["ETag"] == '"2"'
    assert api("agent", "GET", f"runs/{run['id']}").headers["ETag"] == '"2"'


def test_an_agents_state_is_put_grown_and_fetched_whole(api: Api) -> None:
    run = api.run()
    path = f"runs/{run['id']}/checkpoints"
    kind = {"format": "abeyance-test", "version": "1"}
    whole = {**kind, "data": {"messages": ["hello"]}}
    put = api.post("agent", path, {"agent_state": whole})
    assert put["agent_state"].keys() == {"format", "version", "size", "digest"}
    assert put["state_version"] == api.get("agent", f"runs/{run['id']}")["state_version"]
    grown = {**kind, "base": put["id"], "append": {"/messages": ["bye"]}}
    after = api.post("agent", path, {"agent_state": grown})
    assert api.get("agent", f"runs/{run['id']}")["checkpoint"] == after["id"]
    for row, messages in ((put, ["hello"]), (after, ["hello", "bye"])):
        shown = api.get("agent", f"checkpoints/{row['id']}")["agent_state"]
        assert shown["data"] == {"messages": messages}
    listed = api.get("agent", path)["results"]
    assert [one["sequence"] for one in listed] == [1, 2]
    assert all("agent_state" not in one for one in listed)


def put_by_another_release(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "SCHEMA_VERSION", 99)


def put_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    read = agentstate.read
    other = "sha256:" + "0" * 64
    monkeypatch.setattr(agentstate, "read", lambda *given: replace(read(*given), digest=other))


@pytest.mark.parametrize(
    ("put", "code"),
    [(put_by_another_release, "checkpoint-version"), (put_otherwise, "damaged")],
)
def test_a_state_that_is_not_understood_or_not_what_was_put_is_not_shown(
    api: Api, monkeypatch: pytest.MonkeyPatch, put: Any, code: str
) -> None:
    with monkeypatch.context() as another:
        put(another)
        run = api.run(agent_state={"format": "f", "version": "1", "data": ["secret"]})
    path = f"checkpoints/{run['checkpoint']}"
    for who in ("agent", "olga"):
        reply = api(who, "GET", path)
        assert (reply.status, reply.code) == (409, code)
        assert "secret" not in reply.text
    assert "data" not in api.get("vera", path)["agent_state"]


def test_a_state_grows_with_the_steps_that_are_proposed(api: Api) -> None:
    run = api.run(agent_state={"format": "f", "version": "1", "data": {"messages": []}})
    path = f"runs/{run['id']}/steps"
    for number in range(2):
        base = api.get("agent", f"runs/{run['id']}")["checkpoint"]
        grown = {"format": "f", "version": "1", "base": base, "append": {"/messages": [number]}}
        step = {"tool": "crm.get", "arguments": {"customer": f"c-{number}"}, "agent_state": grown}
        assert api("agent", "POST", path, step).status == 201
    now = api.get("agent", f"runs/{run['id']}")["checkpoint"]
    shown = api.get("agent", f"checkpoints/{now}")["agent_state"]
    assert shown["data"] == {"messages": [0, 1]}


@pytest.mark.parametrize(
    "state",
    [
        {"format": 7, "data": {}},
        {"format": "f", "version": "1"},
        {"format": "f", "version": "1", "data": 1, "base": NO_SUCH, "append": {}},
        {"format": "f", "version": "1", "base": NO_SUCH, "append": {}},
        {"format": "f", "version": "1", "base": NO_SUCH, "append": {"/a": 1}},
        "state",
    ],
)
def test_a_state_that_is_none_is_refused(api: Api, state: Any) -> None:
    run = api.run()
    before = api.state(run)
    reply = api("agent", "POST", f"runs/{run['id']}/checkpoints", {"agent_state": state})
    assert (reply.status, reply.code) == (422, "invalid-body")
    assert all(pointer.startswith("/agent_state") for pointer in reply.pointers)
    assert api.state(run) == before


def test_an_agents_state_is_read_by_its_agent_operators_and_admins_only(api: Api) -> None:
    state = {"format": "f", "version": "1", "data": {"secret": 1}}
    run = api.run(agent_state=state)
    path = f"checkpoints/{run['checkpoint']}"
    for who in ("agent", "olga", "alice"):
        assert api.get(who, path)["agent_state"]["data"] == {"secret": 1}
    for who in ("carol", "vera"):
        shown = api.get(who, path)["agent_state"]
        assert shown.keys() == {"format", "version", "size", "digest"}
    assert api("other", "GET", path).code == "not-your-run"


def test_a_demoted_person_reads_no_state(api: Api) -> None:
    run = api.run(agent_state={"format": "f", "version": "1", "data": 1})
    path = f"checkpoints/{run['checkpoint']}"
    assert "data" in api.get("olga", path)["agent_state"]
    with tenant_scope(api.world.id):
        api.world.users["olga"].memberships.update(role=Role.APPROVER)
    assert "data" not in api.get("olga", path)["agent_state"]


def test_waiting_names_the_run_and_the_version_to_wait_past(api: Api) -> None:
    run = api.run()
    path = f"runs/{run['id']}"
    held = api("agent", "GET", f"{path}?wait=5&after_version=1").headers
    assert held["X-Abeyance-Wait"] == f"run:{run['id']}"
    assert held["X-Abeyance-Version"] == "1"
    for query in ("", "?wait=0", "?wait=5&after_version=0"):
        assert "X-Abeyance-Wait" not in api("agent", "GET", f"{path}{query}").headers
    for query in ("wait=61", "wait=x", "wait=-1", "wait=nan", "wait=5&after_version=x"):
        reply = api("agent", "GET", f"{path}?{query}")
        assert (reply.status, reply.code) == (422, "invalid-query")


def test_a_state_of_more_than_a_mebibyte_is_put_and_fetched_whole(api: Api) -> None:
    run = api.run()
    state = {"format": "f", "version": "1", "data": {"messages": ["hello " * 250_000]}}
    put = api.post("agent", f"runs/{run['id']}/checkpoints", {"agent_state": state})
    assert api.get("agent", f"checkpoints/{put['id']}")["agent_state"]["data"] == state["data"]
    for path, body in (
        ("runs", {"workflow": "w", "goal": "g", "agent_state": state}),
        (f"runs/{run['id']}/steps", {"tool": "t", "arguments": {}, "agent_state": state}),
    ):
        reply = api("agent", "POST", path, body)
        assert (reply.status, reply.code) == (413, "body-too-large")
