"""What a tool needs to know for a call of it: said, and fresh, or a person is asked."""

from datetime import UTC, datetime, timedelta

import pytest

from config.errors import InvalidBody
from interrupts import verification
from interrupts.errors import MayNot, NotAuthorized, RunSuspended
from interrupts.models import Step
from interrupts.services import steps
from interrupts.transitions import needs
from interrupts.transitions import steps as moving
from interrupts.work import working
from tenants.journal import SYSTEM
from tests.interrupts.house import HEARTBEAT, fresh, kinds, open_of, refused

NEEDS = [{"name": "balance", "longest_age": 300}, {"name": "rates", "longest_age": 60}]
LATER = "2999-01-01T00:00:00Z"
KNOWN = {"balance": LATER, "rates": LATER}


def propose(house, run, said=None, *, n=1, tool="t"):
    context = [{"name": name, "fresh_until": until} for name, until in (said or {}).items()]
    document = {"tool": tool, "arguments": {"n": n}, "context": context}
    (step,), _ = steps.propose(house.agent, run.pk, proposals=[document])
    return fresh(step)


def stale(step, *names):
    """Let what a step knows be over: as its row and its journal would say it later."""
    with working(step.run_id, SYSTEM) as work:
        step = fresh(step)
        gone = work.now - timedelta(seconds=1)
        known = {
            name: gone if name in names else datetime.fromisoformat(until)
            for name, until in step.context.items()
        }
        needs._write(work, step, known)
        step.save(update_fields=needs.MEMBERS)
        if step.authorized_by is not None:
            moving.stamp(work, step, by=step.authorized_by, rule="r", policy_version=1,
                         gate=step.authorized_gate)  # fmt: skip
            step.save(update_fields=moving.STAMP)


def whole(run):
    assert list(verification.of_run(fresh(run))) == []


def test_how_old_it_is_at_most_is_counted_from_the_proposal_and_the_agent_only_shortens_it(house):
    house.tool("t", context=NEEDS)
    soon = (datetime.now(UTC) + timedelta(seconds=100)).isoformat()
    step = propose(house, house.run(), {"balance": soon, "rates": LATER, "other": LATER})
    until = {name: datetime.fromisoformat(one) for name, one in step.context.items()}
    assert until == {
        "balance": datetime.fromisoformat(soon),
        "rates": step.created_at + timedelta(seconds=60),
    }
    assert (step.status, step.context_until) == ("ready", until["rates"])
    assert step.authorized_until == step.context_until
    whole(step.run)


def test_a_tool_that_needs_nothing_is_as_it_was(house):
    house.tool("t")
    step = propose(house, house.run(), {"balance": "2020-01-01T00:00:00Z"})
    assert (step.status, step.context, step.authorized_until) == ("ready", None, None)


def test_a_step_that_does_not_know_what_it_needs_waits_and_says_what(house):
    house.tool("t", context=NEEDS)
    run = house.run()
    step = propose(house, run, {"rates": "2020-01-01T00:00:00Z"})
    held = open_of(run)
    assert (fresh(run).status, step.status, step.held_by) == ("suspended", "waiting", "context")
    assert (held.reason, held.kind, held.step) == ("context_missing", "input", step.pk)
    assert held.evidence["missing"] == ["balance"]
    assert held.evidence["stale"] == {"rates": "2020-01-01T00:00:00+00:00"}
    assert "balance (not said), rates (stale since 2020-01-01 00:00:00 UTC)" in held.question
    assert fresh(run).usage_steps == 0
    house.work(run)
    assert house.ran == []
    whole(run)


def test_each_answer_says_what_becomes_of_the_step_that_misses_it(house):
    house.tool("t", context=NEEDS)
    run, asking = house.run(), house.run()
    propose(house, run)
    asked = house.interrupt(house.agent, asking, "context_missing")
    of_step, of_run = (
        {one["resolution"]: one["consequence"] for one in held.allowed}
        for held in (open_of(run), asked)
    )
    assert "The step is judged anew, which may ask people." in of_step["resume"]
    assert of_step["revise"].startswith("The step is withdrawn with those you name")
    assert of_run["resume"] == "The agent gets the value and the run goes on."
    assert of_run["revise"].startswith("The steps you name are withdrawn")


def test_what_a_person_says_of_it_makes_it_known_and_policy_judges_it_then(house):
    house.tool("t", context=NEEDS)
    house.policy.verdicts["t"] = "approve"
    run = house.run()
    step = propose(house, run, {"rates": LATER})
    held = open_of(run)
    with refused(MayNot):
        house.respond(held, by="alice", value={"balance": "12.00"})
    for value in ({}, {"rates": "x"}, {"balance": ""}, {"balance": "1", "more": "2"}):
        with refused(InvalidBody):
            house.respond(held, value=value)

    house.respond(held, value={"balance": "12.00, looked up at 10:00"})

    step = fresh(step)
    assert (step.held_by, fresh(run).status) == ("gate", "suspended")
    assert open_of(run).reason == "approval_required"
    assert fresh(run).usage_steps == 1
    whole(run)
    house.decide(step)
    house.work(run)
    assert house.ran == [1]
    whole(run)


def test_a_revision_withdraws_the_step_that_missed_it(house):
    house.tool("t", context=NEEDS)
    run = house.run()
    step = propose(house, run)
    house.respond(open_of(run), "revise", value={"guidance": "look the balance up first"})
    assert (fresh(step).status, fresh(step).reason) == ("revised", "look the balance up first")
    assert fresh(run).status == "running"
    assert propose(house, run, KNOWN).status == "ready"
    whole(run)


@pytest.mark.parametrize("end", ["cancel", "withdraw"])
def test_whatever_ends_the_step_ends_what_is_asked_about_it(house, end):
    house.tool("t", context=NEEDS)
    run = house.run()
    step = propose(house, run)
    if end == "cancel":
        house.cancel(run)
    else:
        stop = house.stop(run)
        house.respond(stop, "revise", value={"guidance": "no", "withdraw": [str(step.pk)]})
    assert fresh(run).open_interrupts == 0
    assert fresh(run).status == ("cancelled" if end == "cancel" else "running")
    whole(run)


def test_a_step_that_policy_denies_is_asked_nothing(house):
    house.tool("t", context=NEEDS)
    house.policy.verdicts["t"] = "deny"
    run = house.run()
    assert (propose(house, run).status, fresh(run).status) == ("denied", "running")


@pytest.mark.parametrize("kind", ["python", "agent"])
def test_what_went_stale_before_it_ran_does_not_run_and_is_judged_anew(house, kind):
    house.tool("t", kind=kind, context=NEEDS)
    run = house.run()
    step = propose(house, run, KNOWN)
    stale(step, "rates")
    if kind == "python":
        house.work(run)
    else:
        with pytest.raises((NotAuthorized, RunSuspended)):
            house.claim(step)
    assert (fresh(step).status, fresh(step).held_by, house.ran) == ("waiting", "context", [])
    assert open_of(run).evidence["stale"].keys() == {"rates"}
    whole(run)
    house.policy.verdicts["t"] = "approve"
    house.respond(open_of(run), value={"rates": "4.2"})
    assert (fresh(step).held_by, fresh(run).usage_steps) == ("gate", 1)
    whole(run)


def test_an_approval_does_not_outlive_what_it_was_given_on(house):
    house.tool("t", context=NEEDS)
    house.policy.verdicts["t"] = "approve"
    run = house.run()
    step = propose(house, run, KNOWN)
    house.decide(step)
    gate = fresh(step).authorized_gate
    assert fresh(step).authorized_until == fresh(step).context_until
    stale(step, "balance", "rates")
    house.work(run)
    assert (fresh(step).held_by, house.ran) == ("context", [])
    assert (gate, "superseded") in house.policy.closed
    house.respond(open_of(run), value={"balance": "1", "rates": "2"})
    assert (fresh(step).held_by, fresh(step).gate == gate) == ("gate", False)
    whole(run)


def test_an_agent_cannot_say_it_afterwards(house):
    house.tool("t", context=NEEDS)
    run = house.run()
    propose(house, run)
    with refused(RunSuspended, but=HEARTBEAT):
        propose(house, run, KNOWN, n=2)
    assert kinds(run).count("step.context") == Step.objects.count() == 1
