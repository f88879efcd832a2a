"""Steps that the agent runs itself: claimed, kept alive, reported."""

from datetime import timedelta

from interrupts.errors import AlreadyClaimed, Damaged, NotAuthorized
from interrupts.models import Attempt, Receipt, Step
from interrupts.services import attempts, starting
from tests.interrupts.house import earlier, fresh, kinds, refused

CALLED = frozenset({"last_seen_at", "updated_at"})


def test_a_claim_intends_and_gives_exactly_what_was_authorised(house):
    house.tool("mine", kind="agent", timeout=60)
    run = house.run()
    (step,) = house.propose(run, ("mine", {"b": 1, "a": 2}))
    attempt, claimed, arguments = starting.claim_step(house.agent, step.pk)
    assert (attempt.fence, attempt.epoch, arguments) == (1, 1, b'{"a":2,"b":1}')
    assert attempt.lease_expires_at - attempt.started_at == timedelta(seconds=60)
    assert (claimed.status, fresh(run).due_at <= attempt.lease_expires_at) == ("executing", True)
    assert kinds(run)[-1] == "attempt.started"


def test_the_service_leaves_such_a_step_alone_and_it_holds_back_no_other_group(house):
    house.tool("mine", kind="agent")
    house.tool("t")
    run = house.run()
    (step,) = house.propose(run, ("mine", {}))
    house.propose(run, ("t", {"n": 1}))
    house.propose(run, ("mine", {}), ("t", {"n": 2}))
    house.work(run)
    assert house.ran == [1]
    house.claim(step)
    house.propose(run, ("t", {"n": 3}))
    house.work(run)
    assert house.ran == [1, 3]
    assert fresh(step).status == "executing"


def test_a_step_is_claimed_once(house):
    house.tool("mine", kind="agent")
    run = house.run()
    (step,) = house.propose(run, ("mine", {}))
    attempt = house.claim(step)
    with refused(AlreadyClaimed):
        house.claim(step)
    house.report(attempt)
    with refused(AlreadyClaimed):
        house.claim(step)


def test_what_the_service_runs_is_not_claimed(house):
    house.tool("t")
    (step,) = house.propose(house.run(), ("t", {}))
    with refused(NotAuthorized):
        house.claim(step)


def test_what_was_denied_or_waits_for_its_twin_is_not_claimed(house):
    house.tool("never", kind="agent")
    house.tool("mine", kind="agent")
    house.policy.verdicts["never"] = "deny"
    run = house.run()
    (denied,) = house.propose(run, ("never", {}))
    with refused(AlreadyClaimed):
        house.claim(denied)
    (lost,) = house.propose(house.run(), ("mine", {}))
    house.report(house.claim(lost), "unknown")
    (twin,) = house.propose(run, ("mine", {}))
    with refused(NotAuthorized, but=CALLED):
        house.claim(twin)


def test_an_agent_that_did_not_begin_may_begin_at_once(house):
    house.tool("mine", kind="agent")
    run = house.run()
    (step,) = house.propose(run, ("mine", {}))
    house.report(house.claim(step), "not_performed")
    assert (fresh(step).status, fresh(step).due_at) == ("ready", None)
    again = house.claim(step)
    assert (again.fence, fresh(step).attempts) == (2, 2)
    house.report(again)
    assert fresh(step).status == "succeeded"


def test_an_agent_that_goes_silent_leaves_an_unknown_outcome(house):
    house.tool("mine", kind="agent")
    run = house.run()
    (step,) = house.propose(run, ("mine", {}))
    attempt = house.claim(step)
    house.look(run)
    assert (fresh(step).status, fresh(run).due_at) == ("executing", fresh(attempt).lease_expires_at)
    house.lapse(attempt)
    assert (fresh(step).status, fresh(attempt).outcome) == ("unknown", "unknown")
    assert "attempt.lapsed" in kinds(run)
    assert not Receipt.objects.exists()


def test_a_lease_that_was_kept_alive_does_not_lapse(house):
    house.tool("mine", kind="agent", timeout=60)
    run = house.run()
    (step,) = house.propose(run, ("mine", {}))
    attempt = house.claim(step)
    earlier(attempt, "lease_expires_at", 59)
    attempts.heartbeat(house.agent, attempt.pk, fence=1)
    house.look(run)
    assert fresh(step).status == "executing"


def test_what_was_changed_after_its_authorisation_is_not_given_out(house):
    house.tool("mine", kind="agent")
    run = house.run()
    first, second = (house.propose(run, ("mine", {"n": n}))[0] for n in (1, 2))
    Step.objects.filter(pk=first.pk).update(arguments=second.arguments)
    with refused(Damaged):
        house.claim(first)
    assert not Attempt.objects.exists()


def test_a_claim_under_an_older_authority_is_asked_again(house):
    house.tool("mine", kind="agent")
    run = house.run()
    (step,) = house.propose(run, ("mine", {}))
    house.withdraw_authority()
    asked = house.policy.asked
    house.claim(step)
    assert house.policy.asked == asked + 1
    assert fresh(step).authorized_under == 2
