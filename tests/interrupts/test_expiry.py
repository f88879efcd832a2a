"""A missing response: whatever it does, it never lets a run go on as if it had been given."""

from datetime import timedelta

import pytest

from interrupts.services import looking
from tests.interrupts.house import earlier, fresh, kinds, nothing_changes, open_of


def expire(house, interrupt, run):
    earlier(interrupt, "expires_at", 7200)
    house.look(run)


def test_an_input_that_nobody_gives_cancels_the_run(house):
    run = house.run()
    asked = house.interrupt(house.agent, run, "input_required", expires_in=60)
    assert (asked.on_expiry, asked.expires_at - asked.opened_at) == (
        "cancel",
        timedelta(seconds=60),
    )
    expire(house, asked, run)
    assert (fresh(run).status, fresh(asked).resolution) == ("cancelled", "time_out")
    assert "run.resumed" not in kinds(run)
    assert kinds(run).count("interrupt.expired") == 1


def test_one_that_escalates_goes_on_holding_the_run_and_asks_operators(house):
    run = house.run()
    asked = house.interrupt(house.agent, run, "input_required", expires_in=60, on_expiry="escalate")
    expire(house, asked, run)
    asked = fresh(asked)
    assert (asked.status, asked.expires_at, asked.who) == ("open", None, ["operator", "admin"])
    assert fresh(run).status == "suspended"
    house.look(run)
    assert kinds(run).count("interrupt.escalated") == 1


def test_nothing_expires_before_its_time(house):
    run = house.run()
    asked = house.interrupt(house.agent, run, "input_required", expires_in=60)
    assert fresh(run).due_at <= asked.expires_at
    with nothing_changes(but=frozenset({"updated_at", "due_at"})):
        house.look(run)
    assert fresh(run).due_at == asked.expires_at


def test_a_gate_that_nobody_decides_rejects_its_step(house):
    house.tool("asked")
    house.policy.verdicts["asked"] = "approve"
    house.policy.expires_in = 60
    run = house.run()
    (step,) = house.propose(run, ("asked", {"n": 1}))
    held = open_of(step)
    expire(house, held, run)
    assert (fresh(step).status, fresh(held).resolution) == ("rejected", "time_out")
    assert fresh(run).status == "running"
    house.work(run)
    assert house.ran == []


def test_what_only_expired_may_be_asked_again(house):
    house.tool("asked")
    house.policy.verdicts["asked"] = "approve"
    house.policy.expires_in = 60
    run = house.run()
    (step,) = house.propose(run, ("asked", {"n": 1}))
    expire(house, open_of(step), run)
    (again,) = house.propose(run, ("asked", {"n": 1}))
    assert fresh(again).status == "waiting"
    house.decide(again, "not this one")
    (rejected,) = house.propose(run, ("asked", {"n": 1}))
    assert (fresh(rejected).status, rejected.reason) == ("rejected", "not this one")


def test_a_gate_may_end_the_run_when_nobody_decides(house):
    house.tool("asked")
    house.policy.verdicts["asked"] = "approve"
    house.policy.expires_in = 60
    run = house.run()
    (step,) = house.propose(run, ("asked", {}))
    house.policy.expiries[step.gate] = (True, "cancel")
    expire(house, open_of(step), run)
    assert (fresh(run).status, fresh(step).status) == ("cancelled", "cancelled")


def test_a_gate_that_is_not_over_by_its_own_clock_stays(house):
    house.tool("asked")
    house.policy.verdicts["asked"] = "approve"
    house.policy.expires_in = 60
    run = house.run()
    (step,) = house.propose(run, ("asked", {}))
    house.policy.expiries[step.gate] = (False, "reject")
    expire(house, open_of(step), run)
    assert (fresh(step).status, fresh(run).status) == ("waiting", "suspended")


def test_one_that_expires_ends_the_others_too(house):
    run = house.run()
    stop = house.stop(run)
    first, second = (
        house.interrupt(house.agent, run, "input_required", question=q, expires_in=60)
        for q in ("Which?", "When?")
    )
    earlier(second, "expires_at", 7200)
    expire(house, first, run)
    assert [fresh(one).resolution for one in (stop, first, second)] == [
        "cancel",
        "time_out",
        "cancel",
    ]
    assert fresh(run).status == "cancelled"


@pytest.mark.parametrize("on_expiry", ["cancel", "escalate"])
def test_a_run_is_never_resumed_by_time(house, on_expiry):
    house.tool("t")
    run = house.run()
    house.propose(run, ("t", {"n": 1}))
    asked = house.interrupt(house.agent, run, "input_required", expires_in=60, on_expiry=on_expiry)
    expire(house, asked, run)
    house.work(run)
    looking.look(run.pk)
    assert house.ran == []
