"""Steps over the API: proposed, judged, shown, and run by the agent itself."""

from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from config import jsontext
from interrupts.models import Content, Step
from interrupts.templates import MASK
from tenants.models import IdempotentAnswer
from tenants.scope import tenant_scope
from tests.interrupts.api.conftest import CARD, NO_SUCH, Api

pytestmark = pytest.mark.django_db


def propose(api: Api, run: Any, body: Any, who: str = "agent", **headers: str) -> Any:
    return api(who, "POST", f"runs/{run['id']}/steps", body, **headers)


def call(tool: str = "crm.get", **arguments: Any) -> dict[str, Any]:
    return {"tool": tool, "arguments": arguments or {"customer": "c-1"}}


def test_a_step_that_policy_allows_is_ready_and_says_why(api: Api) -> None:
    run = api.run()
    step = api.step(run, key="look")
    assert (step["status"], step["position"], step["key"]) == ("ready", 1, "look")
    assert step["authorization"] == {
        "by": "policy",
        "rule": "read-calls",
        "policy_version": 1,
        "gate": None,
        "digest": step["digest"],
    }
    expected = {"tool": "crm.get", "tool_version": 1, "arguments": {"customer": "c-1"}}
    assert step["digest"] == jsontext.digest(expected)
    assert (step["attempts"], step["outcome"], step["receipts"]) == (0, None, [])
    assert api.get("agent", f"steps/{step['id']}") == step
    assert api.get("vera", f"runs/{run['id']}/steps")["results"] == [step]


def test_a_step_that_policy_asks_about_waits_with_a_gate_and_an_interrupt(api: Api) -> None:
    run = api.run()
    step = api.step(run, "payments.refund", {"payment": "p-1", "amount": "20.00"})
    assert (step["status"], step["authorization"]) == ("waiting", None)
    assert UUID(step["gate"])
    now = api.get("agent", f"runs/{run['id']}")
    assert (now["status"], now["suspension"]) == ("suspended", "safely_suspended")
    assert now["open_interrupts"] == [step["interrupt"]]
    assert step["state_version"] == now["state_version"]


def test_a_denied_step_is_recorded_with_the_reason(api: Api) -> None:
    run = api.run()
    step = api.step(run, "db.drop", {"table": "users"})
    assert (step["status"], step["reason"], step["gate"]) == ("denied", "never", None)
    assert api.get("agent", f"runs/{run['id']}")["status"] == "running"


def test_the_steps_of_one_turn_are_a_group(api: Api) -> None:
    run = api.run()
    reply = propose(api, run, {"steps": [call(), call("note.write", text="x")], "parallel": True})
    assert reply.status == 201
    first, second = reply.body["steps"]
    assert first["group"] == second["group"]
    assert [one["position"] for one in (first, second)] == [1, 2]
    assert first["parallel"] is True
    assert reply.headers["ETag"] == f'"{reply.body["state_version"]}"'
    more = propose(api, run, {**call(), "group": first["group"]}).body
    assert (more["group"], more["position"]) == (first["group"], 3)
    reply = propose(api, run, {**call(), "group": NO_SUCH})
    assert (reply.status, reply.pointers) == (422, ["/group"])


def test_a_known_key_gives_its_step_whatever_state_the_run_is_in(api: Api) -> None:
    run = api.run()
    step = api.step(run, "note.write", {"text": "x"}, key="greet")
    again = {**call("note.write", text="x"), "key": "greet"}
    for _ in range(2):
        reply = propose(api, run, again)
        assert (reply.status, reply.body["id"]) == (200, step["id"])
        api("olga", "POST", f"runs/{run['id']}/interrupts", {"reason": "operator_stop"})
    before = api.state(run)
    reply = propose(api, run, {**call("note.write", text="y"), "key": "greet"})
    assert (reply.status, reply.code) == (409, "step-key-reused")
    assert propose(api, run, call()).code == "run-suspended"
    assert api.state(run) == before


def test_a_group_with_one_fault_is_refused_as_a_whole(api: Api) -> None:
    run = api.run()
    reply = propose(api, run, {"steps": [call(), call("note.write", text=7)]})
    assert (reply.status, reply.code) == (422, "invalid-arguments")
    assert reply.pointers == ["/steps/1/arguments/text"]
    reply = propose(api, run, {"steps": [call(), call("no.such")]})
    assert (reply.status, reply.code, reply.pointers) == (422, "unknown-tool", ["/steps/1/tool"])
    assert api.get("agent", f"runs/{run['id']}/steps")["results"] == []


@pytest.mark.parametrize(
    ("raw", "pointer"),
    [
        (b'{"tool": "note.write", "arguments": {"text": "x"', None),
        (b'{"tool": "note.write", "arguments": {"text": "x"}} x', None),
        (b'{"tool": "note.write", "arguments": {"text": "\xff"}}', None),
        (b'{"tool": "note.write", "arguments": {"text": "x"}, "confidence": NaN}', "/confidence"),
        (b'{"tool": "note.write", "arguments": {"text": "x"}, "cost": Infinity}', "/cost"),
        (b'{"tool": "note.write", "arguments": {"text": "x\\u0000b"}}', "/arguments/text"),
        (b'{"tool": "note.write", "arguments": {"text": "x\\ud800"}}', "/arguments/text"),
        (b'{"tool": "note.write", "arguments": {"text": "x", "text": "x"}}', "/arguments/text"),
        (
            b'{"tool": "t", "arguments": {}, "context": [{"fresh_until": 9007199254740993}]}',
            "/context/0/fresh_until",
        ),
        (
            b'{"tool": "note.write", "arguments": ' + b'{"a":' * 100 + b"1" + b"}" * 101,
            "/arguments" + "/a" * 63,
        ),
        (b"[]", ""),
        (b"null", ""),
        (b'"x"', ""),
        (b'{"tool": 7, "arguments": {}}', "/tool"),
        (b'{"tool": "note.write"}', "/arguments"),
        (b'{"tool": "note.write", "arguments": []}', "/arguments"),
        (b'{"tool": "note.write", "arguments": {"text": "x"}, "confidence": 1.5}', "/confidence"),
        (b'{"tool": "note.write", "arguments": {"text": "x"}, "confidence": true}', "/confidence"),
        (b'{"tool": "note.write", "arguments": {"text": "x"}, "confidense": 0.5}', "/confidense"),
        (b'{"tool": "note.write", "arguments": {"text": "x"}, "key": ""}', "/key"),
        (b'{"tool": "note.write", "arguments": {"text": "x"}, "session": 0}', "/session"),
        (
            b'{"tool": "t", "arguments": {}, "context": [{"name": "x", "fresh_until": "soon"}]}',
            "/context/0/fresh_until",
        ),
        (b'{"steps": []}', "/steps"),
        (b'{"steps": [{"tool": "crm.get"}]}', "/steps/0/arguments"),
        (b'{"steps": [{"tool": "crm.get", "arguments": {}, "session": 1}]}', "/steps/0/session"),
        (b'{"steps": [{"tool": "crm.get", "arguments": {}}], "tool": "crm.get"}', "/tool"),
    ],
)
def test_hostile_json_is_refused_with_its_place_and_nothing_is_recorded(
    api: Api, raw: bytes, pointer: str | None
) -> None:
    run = api.run()
    before = api.state(run)
    reply = api("agent", "POST", f"runs/{run['id']}/steps", raw=raw)
    if pointer is None:
        assert (reply.status, reply.code) == (400, "malformed-json")
    else:
        assert (reply.status, reply.code) == (422, "invalid-body")
        assert pointer in reply.pointers
    assert api.state(run) == before
    assert api.get("agent", f"runs/{run['id']}/steps")["results"] == []


def test_a_page_of_steps_costs_a_bounded_number_of_statements(api: Api) -> None:
    run = api.run()
    path = f"runs/{run['id']}/steps"

    def statements() -> int:
        with CaptureQueriesContext(
            connection,
        ) as queries:
            api.get("agent", path)
        return len(queries)

    propose(api, run, {"steps": [call(customer="one")]})
    one = statements()
    propose(api, run, {"steps": [call(customer=f"c-{n}") for n in range(49)]})
    assert len(api.get("agent", path)["results"]) == 50
    assert statements() == one
    propose(api, run, {"steps": [call(customer=f"d-{n}") for n in range(10)]})
    first = api.get("agent", path)
    assert [step["position"] for step in first["results"]] == list(range(1, 51))
    second = api.get("agent", first["next"].partition("/api/v1/")[2])
    assert [step["position"] for step in second["results"]] == list(range(51, 61))


def test_a_page_does_not_read_what_it_does_not_show(api: Api) -> None:
    run = api.run(inputs={"text": "x" * 1000})
    api.step(run, "payments.refund", {"payment": "p-1"})
    for path in (f"runs/{run['id']}/steps", f"interrupts?run={run['id']}"):
        with CaptureQueriesContext(connection) as queries:
            assert len(api.get("vera", path)["results"]) == 1
        assert not any('"inputs"' in query["sql"] for query in queries.captured_queries)


def test_each_step_of_a_page_shows_its_own_receipts_and_results(api: Api) -> None:
    run = api.run()
    path = f"runs/{run['id']}/steps"

    def done(number: int) -> None:
        step = api.step(run, "local.shell", {"command": f"ls {number}"})
        grant = api.post("agent", f"steps/{step['id']}/claim", status=200)
        receipt = {"fence": 1, "outcome": "succeeded", "result": {"files": number}}
        api.post("agent", f"attempts/{grant['attempt']}/receipt", receipt)

    def statements() -> int:
        with CaptureQueriesContext(connection) as queries:
            api.get("agent", path)
        return len(queries)

    done(0)
    one = statements()
    for number in range(1, 6):
        done(number)
    api.step(run)
    assert statements() == one
    *worked, waiting = api.get("agent", path)["results"]
    assert [step["result"] for step in worked] == [{"files": number} for number in range(6)]
    for step in worked:
        assert [receipt["result"] for receipt in step["receipts"]] == [step["result"]]
        assert api.get("agent", f"steps/{step['id']}") == step
    assert waiting["receipts"] == []


def claimed(api: Api, tool: str = "local.shell", **arguments: Any) -> tuple[Any, Any, Any]:
    run = api.run()
    step = api.step(run, tool, arguments or {"command": "ls"})
    grant = api.post("agent", f"steps/{step['id']}/claim", status=200)
    return run, step, grant


def test_a_claim_hands_the_call_over_once(api: Api) -> None:
    run, step, grant = claimed(api)
    assert grant["arguments"] == {"command": "ls"}
    assert (grant["fence"], grant["epoch"], grant["digest"]) == (1, 1, step["digest"])
    assert grant["idempotency_key"]
    now = api.get("agent", f"steps/{step['id']}")
    assert (now["status"], now["attempts"]) == ("executing", 1)
    assert grant["state_version"] == now["state_version"]
    before = api.state(run)
    reply = api("agent", "POST", f"steps/{step['id']}/claim")
    assert (reply.status, reply.code) == (409, "already-claimed")
    assert api.state(run) == before


def test_a_claim_whose_answer_was_lost_is_answered_again(api: Api) -> None:
    run = api.run()
    step = api.step(run, "local.shell", {"command": "ls"})
    path = f"steps/{step['id']}/claim"
    first = api("agent", "POST", path, {}, Idempotency_Key="k")
    again = api("agent", "POST", path, {}, Idempotency_Key="k")
    assert (again.status, again.text) == (200, first.text)
    assert again.headers["Idempotent-Replayed"] == "true"
    assert again.headers["ETag"] == first.headers["ETag"]
    assert api.get("agent", f"steps/{step['id']}")["attempts"] == 1


def test_what_the_service_runs_itself_is_not_claimed(api: Api) -> None:
    step = api.step(api.run())
    reply = api("agent", "POST", f"steps/{step['id']}/claim")
    assert (reply.status, reply.code) == (409, "not-authorized")
    assert api.get("agent", f"steps/{step['id']}")["attempts"] == 0


def test_a_heartbeat_keeps_the_lease_and_tells_of_a_stop(api: Api) -> None:
    run, _, grant = claimed(api)
    path = f"attempts/{grant['attempt']}/heartbeat"
    told = api.post("agent", path, {"fence": 1}, status=200)
    assert told["lease_expires_at"] >= grant["lease_expires_at"]
    assert told["cancel_requested"] is False
    stop = {"reason": "operator_stop", "in_flight": "cancel"}
    api.post("olga", f"runs/{run['id']}/interrupts", stop)
    assert api.post("agent", path, {"fence": 1}, status=200)["cancel_requested"] is True
    before = api.state(run)
    assert api("agent", "POST", path, {"fence": 2}).code == "stale-claim"
    assert api("other", "POST", path, {"fence": 1}).code == "not-your-run"
    assert api.state(run) == before


def test_a_receipt_settles_the_step_once(api: Api) -> None:
    run, step, grant = claimed(api)
    path = f"attempts/{grant['attempt']}/receipt"
    receipt = {
        "fence": 1,
        "outcome": "succeeded",
        "result": {"files": 3},
        "external_id": "x-1",
        "cost": "0.250",
    }
    shown = api.post("agent", path, receipt)
    assert (shown["status"], shown["outcome"]) == ("succeeded", "succeeded")
    assert (shown["result"], shown["external_id"]) == ({"files": 3}, "x-1")
    (taken,) = shown["receipts"]
    assert (taken["source"], taken["cost"], taken["attempt"]) == ("agent", "0.25", grant["attempt"])
    assert taken["by"] == f"agent:{api.world.agent.pk}"
    before = api.state(run)
    assert api.post("agent", path, receipt, status=200) == shown
    assert api.state(run) == before
    reply = api("agent", "POST", path, {**receipt, "outcome": "failed"})
    assert (reply.status, reply.code) == (409, "receipt-conflict")
    reply = api("agent", "POST", path, {**receipt, "fence": 2})
    assert (reply.status, reply.code) == (409, "stale-claim")
    assert api.get("agent", f"steps/{step['id']}") == shown
    assert api.get("agent", f"runs/{run['id']}")["usage"]["cost"] == "0.25"


def test_a_conflicting_receipt_stands_in_the_journal(api: Api) -> None:
    run, _, grant = claimed(api)
    path = f"attempts/{grant['attempt']}/receipt"
    api.post("agent", path, {"fence": 1, "outcome": "succeeded", "result": 1})
    api("agent", "POST", path, {"fence": 1, "outcome": "failed"}, Idempotency_Key="k")
    kinds = [one["kind"] for one in api.get("agent", f"runs/{run['id']}/journal")["results"]]
    assert kinds[-1] == "receipt.conflict"


def test_what_the_agent_did_not_begin_is_ready_again(api: Api) -> None:
    _, step, grant = claimed(api)
    path = f"attempts/{grant['attempt']}/receipt"
    shown = api.post("agent", path, {"fence": 1, "outcome": "not_performed"})
    assert (shown["status"], shown["outcome"], shown["settled_at"]) == (
        "ready",
        "not_performed",
        None,
    )
    again = api.post("agent", f"steps/{step['id']}/claim", status=200)
    assert (again["fence"], again["idempotency_key"]) == (2, grant["idempotency_key"])
    reply = api("agent", "POST", f"attempts/{grant['attempt']}/heartbeat", {"fence": 1})
    assert reply.code == "stale-claim"


def test_an_agent_finds_out_what_became_of_an_unknown_step(api: Api) -> None:
    run, step, grant = claimed(api)
    path = f"steps/{step['id']}/reconciliation"
    found = {"outcome": "performed", "evidence": "the file is there", "result": 3}
    before = api.state(run)
    assert api("agent", "POST", path, found).code == "not-unknown"
    assert api("agent", "POST", path, {"outcome": "performed"}).pointers == ["/evidence"]
    assert api("alice", "POST", path, found).code == "agents-only"
    assert api.state(run) == before
    api.post("agent", f"attempts/{grant['attempt']}/receipt", {"fence": 1, "outcome": "unknown"})
    now = api.get("agent", f"runs/{run['id']}")
    assert (now["status"], now["suspension"]) == ("suspended", "unknown_outcome")
    assert now["suspension_counts"]["unknown"] == 1
    shown = api.post("agent", path, found, status=200)
    assert (shown["status"], shown["result"]) == ("succeeded", 3)
    assert shown["receipts"][-1]["evidence"] == "the file is there"


def test_a_sensitive_value_is_shown_to_nobody_but_the_agent_that_makes_the_call(api: Api) -> None:
    run = api.run()
    charge = call("cards.charge", card_number=CARD, amount="5.00")
    proposed = propose(api, run, charge, Idempotency_Key="k")
    assert proposed.body["arguments"] == {"card_number": MASK, "amount": "5.00"}
    step = proposed.body
    grant = api("agent", "POST", f"steps/{step['id']}/claim", Idempotency_Key="k2")
    assert grant.body["arguments"] == {"card_number": CARD, "amount": "5.00"}
    told = {"charged": True, "card_number": CARD}
    receipt = {"fence": 1, "outcome": "succeeded", "result": told}
    api.post("agent", f"attempts/{grant.body['attempt']}/receipt", receipt)
    api.post("agent", f"runs/{run['id']}/usage", status=200)
    texts = [proposed.text, propose(api, run, charge, Idempotency_Key="k").text]
    texts += [
        api(who, "GET", path).text
        for who in ("agent", "alice", "vera")
        for path in (
            f"steps/{step['id']}",
            f"runs/{run['id']}",
            f"runs/{run['id']}/steps",
            f"runs/{run['id']}/journal",
            f"runs/{run['id']}/events",
            f"runs/{run['id']}/checkpoints",
            "tools/cards.charge",
        )
    ]
    assert [text for text in texts if CARD in text] == []
    assert api.get("alice", f"steps/{step['id']}")["result"] == {
        "charged": True,
        "card_number": MASK,
    }


def test_a_refusal_quotes_no_sensitive_value(api: Api) -> None:
    run = api.run()
    for wrong in ({"card_number": CARD, "amount": 5}, {"card_number": int(CARD), "amount": "5"}):
        reply = propose(api, run, {"tool": "cards.charge", "arguments": wrong})
        assert reply.code == "invalid-arguments"
        assert CARD not in reply.text
        assert CARD not in api("agent", "GET", f"runs/{run['id']}/journal").text


def test_a_sensitive_value_is_stored_sealed_only(api: Api) -> None:
    run = api.run()
    body = {**call("cards.charge", card_number=CARD, amount="5.00")}
    step = propose(api, run, body, Idempotency_Key="k").body
    api("agent", "POST", f"steps/{step['id']}/claim", Idempotency_Key="k2")
    with tenant_scope(api.world.id):
        stored = [bytes(one) for one in Content.objects.values_list("body", flat=True)]
        stored += [bytes(one) for one in IdempotentAnswer.objects.values_list("body", flat=True)]
        told = [str(one) for one in Step.objects.values_list("proposal", flat=True)]
    assert stored
    assert not any(CARD.encode() in one for one in stored)
    assert not any(CARD in one for one in told)


def test_an_erased_body_is_shown_as_nothing(api: Api) -> None:
    step = api.step(api.run())
    with connection.cursor() as cursor, tenant_scope(api.world.id):
        cursor.execute("DELETE FROM interrupts_content")
    shown = api.get("agent", f"steps/{step['id']}")
    assert (shown["arguments"], shown["digest"]) == (None, step["digest"])


def test_a_step_waits_for_its_run(api: Api) -> None:
    step = api.step(api.run())
    version = step["state_version"]
    held = api("agent", "GET", f"steps/{step['id']}?wait=5&after_version={version}").headers
    assert held["X-Abeyance-Wait"] == f"run:{step['run']}"
    assert held["X-Abeyance-Version"] == str(version)
    past = api("agent", "GET", f"steps/{step['id']}?wait=5&after_version={version - 1}").headers
    assert "X-Abeyance-Wait" not in past
