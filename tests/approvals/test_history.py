"""What became of an agent's earlier calls enters conditions and scores; a score is kept as it was given."""

import dataclasses
from datetime import datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from approvals import circumstances
from interrupts import verification
from interrupts.models import Run, Step
from interrupts.services import steps
from tenants.clock import database_now
from tenants.ids import first_id
from tenants.models import Agent
from tests.approvals.house import CALL, fresh

ALLOWED = {"name": "all", "trigger": "action", "then": "allow"}
RECORD = {
    "name": "record",
    "tools": ["payments.*"],
    "score": "history.refused > 0 ? 0.9 : (history.performed > 0 ? 0.1 : 0.6)",
}
RISKY = {"name": "risky", "trigger": "risk", "at_least": 0.5, "then": "approve"}
NOTHING = {"performed": 0, "refused": 0, "denied": 0, "failed": 0, "undone": 0, "unknown": 0}


def call(number):
    return {"tool": "payments.refund", "arguments": {**CALL, "payment": f"p-{number}"}}


def history_asked(queries):
    return sum("looked_at" in query["sql"] for query in queries)


def test_an_agents_record_with_a_tool_raises_and_lowers_its_score(house):
    house.tool("payments.send")
    house.policy(ALLOWED, RISKY, scorers=[RECORD])
    first = house.ask()
    step = fresh(first.step)
    assert step.judged == {"history": NOTHING, "score": 0.6}
    house.decide("alice", first)
    house.work(first.run)

    known = house.propose(arguments={**CALL, "payment": "p-2"})
    assert (known.status, known.judged["score"]) == ("ready", 0.1)
    assert house.propose("payments.send").judged["history"] == NOTHING  # of another tool
    other = dataclasses.replace(house.agent, id=Agent.objects.get(name="other").pk, name="other")
    assert circumstances.history_of({}, other.id, known.tool_id) == NOTHING

    house.policy(ALLOWED, {**RISKY, "at_least": 0}, scorers=[RECORD])
    house.decide("alice", house.ask(arguments={**CALL, "payment": "p-3"}), "reject", reason="no")
    house.policy(ALLOWED, RISKY, scorers=[RECORD])
    again = house.propose(arguments={**CALL, "payment": "p-4"})
    assert (again.status, again.judged["score"]) == ("waiting", 0.9)
    assert again.judged["history"] == {**NOTHING, "performed": 1, "refused": 1}

    # Explained by what was so then, whatever became of the agent since.
    _, said, _ = house.request("ada", "GET", f"/policies/why?step={known.pk}")
    assert (said["verdict"], said["seen"]["history"]["refused"]) == ("allow", 0)
    verification.check_history(fresh(again.run))


def test_the_history_is_read_once_a_proposal_and_only_where_something_asks_for_it(house):
    house.policy(ALLOWED, scorers=[RECORD])
    run = house.run()
    with CaptureQueriesContext(connection) as seen:
        steps.propose(house.agent, run.pk, proposals=[call(n) for n in range(4)])
    assert history_asked(seen) == 1
    house.policy(ALLOWED, scorers=[{**RECORD, "tools": ["mail.*"]}])
    with CaptureQueriesContext(connection) as seen:
        assert house.propose(run=run, arguments={**CALL, "payment": "p-9"}).judged is None
    assert history_asked(seen) == 0


def test_no_more_is_counted_than_the_latest_runs_of_thirty_days(house, monkeypatch):
    house.policy(ALLOWED)
    runs = [house.run() for _ in range(3)]
    for number, run in enumerate(runs):
        house.propose(run=run, arguments={**CALL, "payment": f"p-{number}"})
        house.work(run)
    tool = Step.objects.get(run=runs[0]).tool_id

    def performed(until: datetime | None = None) -> int:
        found = circumstances.history_of({}, house.agent.id, tool, until)
        return found["performed"]

    assert performed() == 3
    assert performed(database_now() + timedelta(days=31)) == 0
    monkeypatch.setattr(circumstances, "MOST_RUNS", 2)
    assert performed() == 2
    monkeypatch.setattr(circumstances, "MOST_STEPS", 1)
    assert performed() == 1
    assert first_id(database_now() - circumstances.HISTORY) < runs[0].pk


def test_a_score_is_kept_as_it_was_given_and_set_against_what_people_decided(house):
    amount = {
        "name": "amount",
        "tools": ["payments.*"],
        "score": "decimal(arguments.amount) > decimal('100') ? 0.95 : 0.15",
    }
    asks = {"name": "all", "trigger": "action", "then": "approve"}
    house.policy(asks, scorers=[amount])  # no rule looks at the score
    house.decide("alice", house.ask(risk_score=0.3))
    large = house.ask(arguments={**CALL, "amount": "101.00"})
    house.decide("alice", large, arguments=CALL)
    house.policy(asks)
    house.decide("alice", house.ask(arguments={**CALL, "payment": "p-2"}))

    step = fresh(large.step)
    assert (step.judged["score"], step.authorized_by) == (0.95, "decision")
    status, said, _ = house.request("ada", "GET", "/policies/calibration")
    assert status == 200
    decided = {one["from"]: (one["as_proposed"], one["edited"], one["stated"])
               for one in said["score"] if one["decided"]}  # fmt: skip
    assert decided == {0.1: (1, 0, 0.15), 0.9: (0, 1, 0.95), None: (1, 0, None)}
    assert {one["from"] for one in said["risk_score"] if one["decided"]} == {0.3, None}


@pytest.mark.parametrize("who", ["bot", "ada"])
def test_a_call_is_checked_with_the_callers_own_record(house, who):
    house.policy({**ALLOWED, "condition": "history.performed >= 1"})
    run = house.run()
    gate = house.ask(run=run)
    house.decide("alice", gate)
    house.work(run)
    before = Run.objects.count()
    _, said, _ = house.request("bot" if who == "bot" else who, "POST", "/policies/check", call(1))
    assert said["verdict"] == ("allow" if who == "bot" else "approve")
    assert Run.objects.count() == before
