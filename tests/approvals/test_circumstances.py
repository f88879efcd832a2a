"""Conditions ask about the step, the run's usage and the time; a verdict is explained by those of then."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from approvals.policy import validate_policy
from approvals.policy.circumstances import time_facts, usage_facts
from interrupts import verification
from interrupts.models import Run, Step
from interrupts.services import runs, steps
from tests.approvals.house import CALL, fresh

ALLOWED = {"name": "all", "trigger": "action", "then": "allow"}


def asks(condition, **more):
    return {"name": "r", "trigger": "action", "then": "approve", "condition": condition, **more}


def call(number):
    return {"tool": "payments.refund", "arguments": {**CALL, "payment": f"p-{number}"}}


def test_what_was_spent_is_known_to_the_last_digit():
    used = usage_facts(3, 7, Decimal("9007199254740993.0000000001"), Decimal("1.500"))
    assert used["cost"] == "9007199254740993.0000000001"
    assert usage_facts(0, 0, Decimal("100.0000000000"), Decimal(0))["cost"] == "100"


def test_the_time_is_what_a_clock_shows_in_the_policys_zone():
    at = datetime(2026, 11, 29, 23, 30, tzinfo=UTC)
    there = time_facts(at, "Europe/Berlin")
    assert there["at"] == time_facts(at, "UTC")["at"] == "2026-11-29T23:30:00Z"
    assert (there["date"], there["hour"], there["minute"]) == ("2026-11-30", 0, 30)
    assert (there["weekday"], time_facts(at, "UTC")["weekday"]) == (1, 7)


@pytest.mark.parametrize("zone", ["Berlin", "", 1, None, "Etc/GMT+1"])
def test_a_time_zone_that_is_none_is_refused(zone):
    assert [at for at, _ in validate_policy({"time_zone": zone})] == ["/time_zone"]
    assert validate_policy({"time_zone": "Europe/Berlin"}) == []


def test_a_run_that_has_spent_is_asked_and_why_tells_by_what_it_had_spent_then(house):
    rule = asks("decimal(usage.cost) > decimal('9.50') || usage.tokens > 100")
    house.policy(ALLOWED, rule)
    run = house.run()
    runs.report_usage(house.agent, run.pk, cost=Decimal("9.50"), tokens=100)
    within = house.propose(run=run)
    assert (within.status, within.judged["usage"]["cost"]) == ("ready", "9.5")
    runs.report_usage(house.agent, run.pk, cost=Decimal("0.0000000001"))
    beyond = house.propose(run=run, arguments={**CALL, "payment": "p-2"})
    assert beyond.status == "waiting"

    for step, decided in ((within, "allow"), (beyond, "approve")):
        _, said, _ = house.request("ada", "GET", f"/policies/why?step={step.pk}")
        assert (said["decided"], said["verdict"]) == (decided, decided)
        assert said["seen"]["usage"]["cost"] == step.judged["usage"]["cost"]
    body = {"policy": {"rules": [ALLOWED, rule]}}
    assert house.request("ada", "POST", "/policies/simulate", body)[1]["summary"]["changed"] == 0
    verification.check_history(fresh(run))


def test_what_policy_saw_is_vouched_for_by_the_journal(house):
    house.policy(ALLOWED, asks("usage.steps > 5"))
    step = house.propose()
    Step.objects.filter(pk=step.pk).update(judged={"usage": {"steps": 9}})
    (fault,) = verification.of_run(Run.objects.get(pk=step.run_id))
    assert "judged" in str(fault)


def test_the_steps_of_one_proposal_count_each_other(house):
    house.policy({**ALLOWED, "condition": "usage.steps < 2"})
    made, _ = steps.propose(house.agent, house.run().pk, proposals=[call(n) for n in range(4)])
    assert [fresh(one).status for one in made] == ["ready", "ready", "waiting", "waiting"]


def test_a_step_is_known_by_its_number_and_its_key(house):
    house.policy({**ALLOWED, "condition": "step.number == 2 && step.key == 'k' && run.depth == 0"})
    run = house.run()
    assert house.propose(run=run).status == "waiting"
    second = Run.objects.get(pk=house.run().pk)
    house.policy({**ALLOWED, "condition": "step.number == 1 && step.key == 'k' && run.depth == 0"})
    assert house.propose(run=second, key="k").status == "ready"


def test_nothing_is_kept_of_what_no_rule_asks_about(house):
    house.policy(ALLOWED, asks("usage.steps > 5", tools=["mail.*"]))
    assert house.propose().judged is None


def test_a_call_is_checked_at_another_time_and_after_other_usage(house):
    night = asks("time.hour < 8 || time.weekday > 5")
    house.policy(ALLOWED, night, {**asks("usage.steps >= 3"), "name": "many"},
                 time_zone="Europe/Berlin")  # fmt: skip
    before = Step.objects.count()

    def checked(**more):
        body = {"tool": "payments.refund", "arguments": CALL, **more}
        return house.request("bot", "POST", "/policies/check", body)

    assert checked(at="2026-11-30T06:30:00Z")[1]["rule"] == "r"
    assert checked(at="2026-11-30T07:30:00Z")[1]["rule"] == "all"
    assert checked(at="2026-11-30T07:30:00Z", usage={"steps": 3})[1]["rule"] == "many"
    status, said, _ = checked(at="yesterday")
    assert (status, said["errors"][0]["pointer"]) == (422, "/at")
    assert Step.objects.count() == before


def test_a_step_is_judged_by_the_time_of_its_proposal_and_explained_by_it(house):
    house.policy(ALLOWED, asks("timestamp(time.at) < timestamp('2000-01-01T00:00:00Z')"))
    step = house.propose()
    assert datetime.fromisoformat(step.judged["at"]) == step.created_at
    Step.objects.filter(pk=step.pk).update(judged={"at": "1999-12-31T00:00:00+00:00"})
    _, said, _ = house.request("ada", "GET", f"/policies/why?step={step.pk}")
    assert (said["decided"], said["verdict"]) == ("allow", "approve")
