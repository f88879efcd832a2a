"""Milestones that the policy declares are found by the service, whatever the agent says."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from approvals.models import Gate
from approvals.policy import validate_policy
from approvals.policy.milestones import Milestone, Point, SoFar, reached
from interrupts import verification
from interrupts.errors import CompletionDenied, MayNot, RunEnded, RunSuspended
from interrupts.models import Guidance, Interrupt, Step
from interrupts.services import holds, responses, runs, steps
from interrupts.services.holds import Asked
from tenants.models import Agent
from tests.approvals.house import CALL, fresh
from tests.interrupts.house import everything

ALLOWED = {"name": "all", "trigger": "action", "then": "allow"}
ASKS = {"name": "payout", "trigger": "milestone", "milestones": ["payout"], "then": "approve"}
DONE = {"name": "done", "trigger": "milestone", "milestones": ["done"], "then": "approve"}
ENDS = {"name": "done", "workflow": "refunds", "when": {"before_complete": True}}


def milestone(name="payout", workflow="refunds", **when):
    return {"name": name, "workflow": workflow, "when": when}


def declared(house, *milestones, rules=(ALLOWED, ASKS)):
    house.policy(*rules, milestones=list(milestones))


def call(number, tool="payments.refund"):
    return {"tool": tool, "arguments": {**CALL, "payment": f"p-{number}"}}


def propose(house, run, *proposals):
    made, _ = steps.propose(house.agent, run.pk, proposals=list(proposals))
    return [fresh(one) for one in made]


def approve(house, step):
    gate = Gate.objects.get(pk=step.gate)
    house.decide("alice", gate)
    return gate


# Steps


def test_what_a_step_reaches_follows_from_what_the_run_holds():
    first = Milestone("payout", "*", before_first="payments.*")
    third = Milestone("busy", "*", after_effects=2)
    both = [first, third, Milestone("done", "*", before_complete=True)]

    def points(tool, **so_far):
        return [point.name for point in reached(both, tool, SoFar(**so_far))]

    assert points("payments.send") == ["payout"]
    assert points("mail.send") == []
    assert points("payments.send", tools=frozenset({"payments.refund"})) == []
    assert points("payments.send", tools=frozenset({"mail.send"}), effects=2) == ["busy", "payout"]
    passed = frozenset({Point("payout", "before the first payments.*")})
    assert points("payments.send", effects=1, passed=passed) == []


def test_the_first_call_of_a_tool_is_asked_about_until_a_person_has_let_one_pass(house):
    house.tool("mail.send")
    declared(house, milestone(before_first="payments.*"))
    run = house.run()
    assert house.propose("mail.send", run=run).status == "ready"
    one, two = propose(house, run, call(1), call(2))
    assert [one.status, two.status] == ["waiting", "waiting"]
    assert Interrupt.objects.get(pk=one.interrupt).reason == "milestone"
    (trigger,) = Gate.objects.get(pk=one.gate).triggers
    told = "The step reaches the milestone payout (before the first payments.*)."
    assert trigger["explanation"] == told

    house.decide("alice", Gate.objects.get(pk=two.gate), "reject", reason="no")
    approve(house, one)
    assert propose(house, run, call(3))[0].status == "ready"
    # A run of its own has a point of its own, another workflow none.
    assert house.propose(run=house.run(), arguments=call(4)["arguments"]).status == "waiting"
    assert house.propose(run=house.run(workflow="other")).status == "ready"
    _, said, _ = house.request("ada", "GET", f"/policies/why?step={one.pk}")
    assert (said["decided"], said["verdict"], said["rule"]) == ("approve", "approve", "payout")
    assert said["seen"]["milestones"] == [["payout", "before the first payments.*"]]
    verification.check_history(fresh(run))


def test_a_person_who_refuses_has_let_nothing_pass(house):
    declared(house, milestone(before_first="payments.*"))
    run = house.run()
    (one,) = propose(house, run, call(1))
    house.decide("alice", Gate.objects.get(pk=one.gate), "reject", reason="no")
    (two,) = propose(house, run, call(2))
    assert two.status == "waiting"
    approve(house, two)
    house.request("alice", "GET", f"/gates/{two.gate}")
    decision = Gate.objects.get(pk=two.gate).decisions.get()
    status, _, _ = house.request("alice", "DELETE", f"/gates/{two.gate}/decisions/{decision.pk}")
    assert status == 200  # taken back: it does not stand
    house.decide("alice", Gate.objects.get(pk=two.gate), "respond", value={"done": "by hand"})
    assert propose(house, run, call(3))[0].status == "waiting"


def test_a_call_that_happened_without_a_person_was_the_first(house):
    asks = {**ASKS, "condition": "decimal(arguments.amount) > decimal('100')"}
    declared(house, milestone(before_first="payments.*"), rules=(ALLOWED, asks))
    run = house.run()
    assert propose(house, run, call(1))[0].status == "ready"
    large = {"tool": "payments.refund", "arguments": {**CALL, "amount": "101.00"}}
    other = house.run()
    propose(house, other, call(2))
    assert propose(house, other, large)[0].status == "waiting"  # the first may yet fail
    house.work(run)
    assert propose(house, run, large)[0].status == "ready"


def test_effects_are_counted_that_happened_may_have_and_may_yet(house):
    house.tool("crm.get", effect="read", arguments={"type": "object"})
    declared(house, milestone(after_effects=2))
    run = house.run()
    reads = [{"tool": "crm.get", "arguments": {}} for _ in range(3)]
    made = propose(house, run, *reads, call(1), call(2), call(3), call(4))
    assert [one.status for one in made] == ["ready"] * 5 + ["waiting"] * 2

    other = house.run()
    maybe, refused = propose(house, other, call(1), call(2))
    for step, end in ((maybe, "unknown"), (refused, "failed")):
        for status in ("executing", end):
            Step.objects.filter(pk=step.pk).update(status=status, attempts=1)
    assert propose(house, other, call(5))[0].status == "ready"  # one may have happened
    assert propose(house, other, call(6))[0].status == "waiting"  # and one may yet


def test_the_agents_word_only_adds(house):
    declared(house, milestone(before_first="payments.*"))
    run = house.run()
    one = house.propose(run=run, milestone="nothing")
    assert one.status == "waiting"
    approve(house, one)
    house.work(run)
    again = house.propose(run=run, milestone="payout", arguments=call(2)["arguments"])
    assert again.status == "waiting"
    told = Gate.objects.get(pk=again.gate).triggers[0]["explanation"]
    assert told == "The step is the milestone payout, says the agent."


def test_a_newer_policy_asks_again_only_about_another_point(house):
    declared(house, milestone(before_first="payments.*"))
    run = house.run()
    (one,) = propose(house, run, call(1))
    approve(house, one)
    declared(house, milestone(before_first="payments.*"))
    assert propose(house, run, call(2))[0].status == "ready"
    declared(house, milestone(before_first="payments.refund"))
    assert propose(house, run, call(3))[0].status == "waiting"


def test_a_proposal_reads_what_its_run_holds_once_and_only_where_a_milestone_could_be(house):
    declared(house, milestone(before_first="mail.*"))
    house.policy(
        ALLOWED, {**ASKS, "tools": ["payments.*"]}, milestones=[milestone(after_effects=9)]
    )

    def reads(run):
        with CaptureQueriesContext(connection) as seen:
            propose(house, run, *(call(n) for n in range(3)))
        return sum("is_ahead" in query["sql"] for query in seen)

    assert reads(house.run()) == 1
    assert reads(house.run(workflow="other")) == 0


def test_a_draft_is_tried_on_the_milestones_that_recorded_steps_reach(house):
    house.policy(ALLOWED)
    run = house.run()
    for number in range(3):
        propose(house, run, call(number))
        house.work(run)
    body = {"policy": {"rules": [ALLOWED, ASKS], "milestones": [milestone(after_effects=2)]}}
    _, said, _ = house.request("ada", "POST", "/policies/simulate", body)
    assert [one["simulated"] for one in said["results"]] == ["approve", "allow", "allow"]
    declared(house, milestone(before_first="payments.*"))
    checked = {**call(1), "workflow": "refunds"}
    assert house.request("bot", "POST", "/policies/check", checked)[1]["rule"] == "payout"
    assert house.request("bot", "POST", "/policies/check", call(1))[1]["rule"] == "all"


# A run that completes


def hold_of(run):
    return Interrupt.objects.get(run=run.pk, reason="milestone", status="open")


def answer(house, who, interrupt, resolution, **more):
    return responses.respond(
        house.people[who],
        interrupt.pk,
        checkpoint=interrupt.checkpoint,
        resolution=resolution,
        **more,
    )[0]


@pytest.fixture
def ending(house):
    """A run whose completion a person must agree to, proposed to be completed."""
    declared(house, ENDS, rules=(ALLOWED, DONE))
    run = house.run()
    runs.complete_run(house.agent, run.pk, output={"paid": "20.00"})
    return run


def test_a_run_is_completed_once_a_person_agrees_to_its_result(house, ending):
    run = fresh(ending)
    assert (run.status, run.output) == ("suspended", None)
    interrupt = hold_of(ending)
    assert interrupt.evidence["output"] == {"paid": "20.00"}
    assert interrupt.evidence["milestones"] == [["done", "before completion"]]
    assert [one["resolution"] for one in interrupt.allowed] == ["resume", "revise", "cancel"]
    with pytest.raises(RunSuspended):
        runs.complete_run(house.agent, ending.pk, output={"paid": "30.00"})
    for who in ("alice", "vera"):
        before = everything()
        with pytest.raises(MayNot):
            answer(house, who, interrupt, "resume")
        assert everything() == before

    answer(house, "olga", interrupt, "resume")
    run = fresh(ending)
    assert (run.status, run.output, run.open_interrupts) == ("completed", {"paid": "20.00"}, 0)
    answer(house, "olga", interrupt, "resume")  # again is the same
    with pytest.raises(RunEnded):
        runs.complete_run(house.agent, run.pk, output={"paid": "20.00"})
    assert list(verification.of_run(run)) == []
    other = house.run(workflow="other")
    assert runs.complete_run(house.agent, other.pk, output=None).status == "completed"


def test_who_refuses_tells_the_agent_and_the_run_goes_on(house, ending):
    answer(house, "olga", hold_of(ending), "revise", value={"guidance": "refund the rest"})
    run = fresh(ending)
    assert (run.status, run.output) == ("running", None)
    assert Guidance.objects.get(run=run).text == "refund the rest"
    assert runs.complete_run(house.agent, run.pk, output={"paid": "20.00"}).status == "suspended"
    answer(house, "olga", hold_of(ending), "cancel")
    assert fresh(ending).status == "cancelled"
    assert list(verification.of_run(fresh(ending))) == []


def test_nobody_agrees_for_whom_it_runs_or_whose_agent_it_is(house, ending):
    Agent.objects.filter(pk=house.agent.id).update(owner=house.people["olga"].id)
    before = everything()
    with pytest.raises(MayNot):
        answer(house, "olga", hold_of(ending), "resume")
    assert everything() == before
    own = house.run(requested_by="ada")
    runs.complete_run(house.agent, own.pk, output=None)
    with pytest.raises(MayNot):
        answer(house, "ada", hold_of(own), "resume")
    answer(house, "ada", hold_of(ending), "resume")
    assert fresh(ending).status == "completed"


def test_what_was_agreed_to_is_completed_by_the_agent_where_something_else_held_the_run(
    house, ending
):
    stop, _ = holds.open_interrupt(
        house.people["olga"], ending.pk, asked=Asked(reason="operator_stop")
    )
    answer(house, "olga", hold_of(ending), "resume")
    assert fresh(ending).status == "suspended"
    answer(house, "olga", stop, "resume")
    assert fresh(ending).status == "running"
    other = runs.complete_run(house.agent, ending.pk, output={"paid": "30.00"})
    assert other.status == "suspended"  # agreed to was another result
    answer(house, "olga", hold_of(ending), "revise", value={"guidance": "as agreed"})
    assert runs.complete_run(house.agent, ending.pk, output={"paid": "20.00"}).status == "completed"


def test_a_run_that_policy_does_not_let_complete_stays_as_it_is(house):
    never = {**DONE, "then": "deny", "reason": "Do something.", "condition": "usage.steps == 0"}
    declared(house, ENDS, rules=(ALLOWED, never))
    run = house.run()
    before = everything()
    with pytest.raises(CompletionDenied, match="Do something"):
        runs.complete_run(house.agent, run.pk, output=None)
    assert everything() == before
    propose(house, run, call(1))
    house.work(run)
    assert runs.complete_run(house.agent, run.pk, output=None).status == "completed"


def test_an_agreement_completes_nothing_that_is_denied_by_now(house, ending):
    declared(house, ENDS, rules=(ALLOWED, {**DONE, "then": "deny", "reason": "Not any more."}))
    before = everything()
    with pytest.raises(CompletionDenied):
        answer(house, "olga", hold_of(ending), "resume")
    assert everything() == before


# What can be declared


@pytest.mark.parametrize(
    ("milestones", "rule", "places"),
    [
        ([milestone(before_first="payments.*")], {}, []),
        ([milestone(after_effects=1), milestone(before_first="mail.*")], {}, []),
        ([milestone(before_complete=True)], {"condition": "usage.steps > 3"}, []),
        ({}, {}, ["/milestones"]),
        ([milestone()], {}, ["/milestones/0/when"]),
        ([milestone(after_effects=1, before_first="x")], {}, ["/milestones/0/when"]),
        ([milestone(after_effects=0)], {}, ["/milestones/0/when/after_effects"]),
        ([milestone(after_effects=True)], {}, ["/milestones/0/when/after_effects"]),
        ([milestone(before_first="a**")], {}, ["/milestones/0/when/before_first"]),
        ([milestone(before_complete=False)], {}, ["/milestones/0/when/before_complete"]),
        ([milestone(workflow="?", after_effects=1)], {}, ["/milestones/0/workflow"]),
        ([{"name": "payout", "when": {"after_effects": 1}}], {}, ["/milestones/0"]),
        ([milestone("", after_effects=1)], {}, ["/milestones/0/name"]),
        ([milestone("payoff", after_effects=1)], {}, ["/milestones/0/name"]),
        ([milestone(after_effects=1)] * 2, {}, ["/milestones/1"]),
        ([milestone(before_complete=True)], {"quorum": 2}, ["/rules/0/quorum"]),
        ([milestone(before_complete=True)], {"tools": ["*"]}, ["/rules/0/tools"]),
        (
            [milestone(before_complete=True)],
            {"condition": "decimal(arguments.amount) > decimal('1')"},
            ["/rules/0/condition"],
        ),
    ],
)
def test_a_milestone_that_means_nothing_is_refused_with_its_place(milestones, rule, places):
    document = {"rules": [{**ASKS, **rule}], "milestones": milestones}
    assert [place for place, _ in validate_policy(document)] == places
