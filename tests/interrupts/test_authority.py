"""Current authorization: what is stamped, what makes a stamp stale, and what follows then."""

from datetime import timedelta

import pytest

from interrupts.authorizer import Judgement
from interrupts.errors import NotAuthorized
from interrupts.models import Attempt, Step
from tenants.models import Agent
from tests.interrupts.house import earlier, fresh, kinds, open_of


@pytest.fixture
def ready(house):
    house.tool("t")
    run = house.run()
    (step,) = house.propose(run, ("t", {"n": 1}))
    return run, step


def test_a_step_is_stamped_with_what_it_was_authorised_under(house, ready):
    _run, step = ready
    step = fresh(step)
    assert (step.authorized_by, step.authorized_rule, step.authorized_under) == (
        "policy",
        "rule-allow",
        1,
    )
    assert step.authorized_digest == step.digest
    assert step.authorized_tool_version == step.tool_version_id


def test_a_current_stamp_asks_nobody(house, ready):
    run, _ = ready
    asked = house.policy.asked
    house.work(run)
    assert (house.policy.asked, house.ran) == (asked, [1])


def test_a_stale_stamp_is_asked_about_once_and_renewed(house, ready):
    run, step = ready
    house.withdraw_authority()
    asked = house.policy.asked
    house.work(run)
    assert (house.policy.asked, house.ran) == (asked + 1, [1])
    assert fresh(step).authorized_under == 2
    assert kinds(run).count("step.authorized") == 2


@pytest.mark.parametrize("effect", ["idempotent", "read"])
def test_what_is_denied_now_does_not_run(house, effect):
    house.tool("t", effect=effect)
    run = house.run()
    (step,) = house.propose(run, ("t", {"n": 1}))
    house.withdraw_authority()
    house.policy.renewals["t"] = Judgement("deny", "tightened", 2, reason="not any more")
    house.work(run)
    assert (fresh(step).status, fresh(step).reason) == ("denied", "not any more")
    assert house.ran == []
    assert fresh(run).status == "running"


def test_what_has_to_be_asked_about_now_is_held_by_a_new_gate(house):
    house.tool("t")
    house.policy.verdicts["t"] = "approve"
    run = house.run()
    (step,) = house.propose(run, ("t", {"n": 1}))
    first = step.gate
    house.decide(step)
    house.withdraw_authority()
    house.policy.renewals["t"] = Judgement("approve", "stricter", 2)
    house.work(run)
    step = fresh(step)
    assert (step.status, house.ran) == ("waiting", [])
    assert step.gate != first
    assert house.policy.closed == [(first, "superseded")]
    assert open_of(step).gate == step.gate
    house.decide(step)
    house.work(run)
    assert house.ran == [1]


def test_what_policy_would_allow_by_itself_now_runs_by_policy(house, ready):
    run, step = ready
    house.withdraw_authority()
    house.policy.renewals["t"] = Judgement("allow", "looser", 2)
    house.work(run)
    assert (fresh(step).authorized_rule, house.ran) == ("looser", [1])


def test_an_authorization_that_ran_out_is_asked_about(house, ready):
    run, step = ready
    now = step.created_at
    Step.objects.filter(pk=step.pk).update(authorized_until=now + timedelta(seconds=60))
    house.policy.renewals["t"] = Judgement("deny", "over", 1)
    earlier(step, "authorized_until", 3600)
    house.work(run)
    assert (fresh(step).status, house.ran) == ("denied", [])


@pytest.mark.parametrize("verdict", ["approve", "deny"])
def test_another_call_than_the_authorised_one_is_judged_anew_and_never_stamped(house, verdict):
    """The approval still holds, for what was approved: not for what the row says now."""
    house.tool("t")
    house.policy.verdicts["t"] = "approve"
    run = house.run()
    (step,) = house.propose(run, ("t", {"n": 1}))
    house.decide(step)
    (other,) = house.propose(house.run(), ("t", {"n": 2}))
    Step.objects.filter(pk=step.pk).update(arguments=other.arguments, digest=other.digest)
    house.policy.verdicts["t"] = verdict
    house.work(run)
    assert house.ran == []
    assert fresh(step).status == {"approve": "waiting", "deny": "denied"}[verdict]


def test_an_authorization_that_ran_out_holds_for_nothing(house, ready):
    """Whoever is asked says that it still holds: it is judged as if it were proposed now."""
    run, step = ready
    Step.objects.filter(pk=step.pk).update(authorized_until=step.created_at)
    house.policy.verdicts["t"] = "approve"
    house.work(run)
    assert (fresh(step).status, house.ran) == ("waiting", [])


def test_what_an_agent_proposed_that_was_deactivated_is_denied(house, ready):
    run, step = ready
    Agent.objects.filter(pk=house.agent.id).update(active=False)
    house.withdraw_authority()
    house.work(run)
    assert (fresh(step).status, house.ran) == ("denied", [])
    assert "deactivated" in fresh(step).reason


def test_what_an_agent_proposes_that_was_deactivated_meanwhile_is_denied(house):
    """It had signed in before, so nothing but the judgement under the lock keeps it from running."""
    house.tool("t")
    run = house.run()
    Agent.objects.filter(pk=house.agent.id).update(active=False)
    house.withdraw_authority()
    (step,) = house.propose(run, ("t", {"n": 1}))
    house.work(run)
    assert (fresh(step).status, house.ran) == ("denied", [])
    assert "deactivated" in fresh(step).reason


def test_another_version_than_the_authorised_one_is_judged_anew(house, ready):
    run, step = ready
    newer = house.new_version(step.tool)
    Step.objects.filter(pk=step.pk).update(tool_version=newer, tool_number=2)
    house.policy.verdicts["t"] = "deny"
    house.work(run)
    assert (fresh(step).status, house.ran) == ("denied", [])


def test_a_frozen_step_is_not_asked_about(house, ready):
    run, _ = ready
    house.freeze("tool", "t")
    asked = house.policy.asked
    house.work(run)
    assert (house.policy.asked, house.ran) == (asked, [])


def test_a_claim_that_is_denied_on_the_way_is_refused_and_the_denial_stays(house):
    house.tool("mine", kind="agent")
    run = house.run()
    (step,) = house.propose(run, ("mine", {}))
    house.withdraw_authority()
    house.policy.renewals["mine"] = Judgement("deny", "tightened", 2)
    with pytest.raises(NotAuthorized):
        house.claim(step)
    assert fresh(step).status == "denied"
    assert not Attempt.objects.exists()
