"""What was refused and erased before anybody learned of it: nobody can say what it was not."""

from __future__ import annotations

import pytest

from delegation.models import DecisionEvent, Delegation, DelegationStatus
from delegation.presets import CAUTIOUS
from delegation.services import rules
from delegation.services.rebuilding import check
from interrupts.models import Step
from tests.approvals.house import fresh
from tests.database import as_owner
from tests.delegation.histories import GOOD, call, practised
from tests.delegation.office import PREDICATE, ROLES, SCHEMA


def erase(step_id):
    """Erase a call's arguments, as its tenant may."""
    digest = Step.objects.values_list("arguments", flat=True).get(pk=step_id)
    with as_owner() as owner:
        owner.execute("DELETE FROM interrupts_content WHERE digest = %s", [bytes(digest)])


def other_rule(office, tool="mail.send"):
    """A rule of Alice's for another tool, of which nothing was refused."""
    office.house.tool(tool, arguments=SCHEMA, roles=ROLES)
    made = rules.propose_by_hand(office.house.people["alice"], tool, PREDICATE)
    return rules.accept(office.house.people["alice"], made.pk)


@pytest.mark.parametrize("verdict", ["reject", "request_changes"])
def test_every_rule_of_the_tool_sleeps_until_its_person_looks_at_it(office, verdict):
    apart, rule = other_rule(office), office.rule()
    # Of what the rule does not cover: nobody can tell any more.
    gate = office.look_and_decide(office.ask(tier="platinum", order="o-9"), verdict)
    erase(gate.step_id)
    office.catch_up()
    event = DecisionEvent.objects.get(kind="reject")
    assert "arguments" not in event.data
    assert (fresh(rule).status, fresh(rule).pause_reason) == ("paused", "unreadable")
    assert fresh(apart).status == "active"
    assert office.propose().status == "waiting"
    assert office.house.calls == []
    office.catch_up()
    assert fresh(rule).status == "paused"
    rules.accept(office.house.people["alice"], rule.pk)
    Delegation.objects.update(check_share=0)
    assert office.propose().authorized_by == "delegation"
    assert check() == []


def test_what_was_undone_and_erased_stops_them_too(office):
    office.tool(compensate={})
    rule = office.rule()
    step = office.propose(order="o-7")
    office.house.work(step.run_id)
    office.undone(fresh(step))
    erase(step.pk)
    office.catch_up()
    assert (fresh(rule).status, fresh(rule).pause_reason) == ("paused", "unreadable")
    assert check() == []


def test_a_learned_rule_is_not_woken_by_what_is_learned_since(office):
    office.house.policy(delegation={"mode": "automatic"})
    office.approve(26)
    office.catch_up()
    rule = Delegation.objects.get(status=DelegationStatus.ACTIVE)
    Delegation.objects.update(check_share=1)
    gate = office.reject(order="o-8")
    erase(gate.step_id)
    office.approve(3)
    office.catch_up()
    assert (fresh(rule).status, fresh(rule).pause_reason) == ("paused", "unreadable")
    office.approve(CAUTIOUS.quarantine + 5)
    office.catch_up()
    assert (fresh(rule).status, Delegation.objects.count()) == ("paused", 1)
    assert check() == []


def test_a_learned_rule_that_sleeps_already_sleeps_on_until_its_person_looks_at_it(office):
    office.house.policy(delegation={"mode": "automatic"})
    office.approve(26)
    office.catch_up()
    rule = Delegation.objects.get(status=DelegationStatus.ACTIVE)
    Delegation.objects.update(check_share=1)
    office.reject(order="o-8")
    office.reject(order="o-9")
    office.catch_up()
    assert (fresh(rule).status, fresh(rule).pause_reason) == ("paused", "refused")
    erase(office.reject(order="o-10").step_id)
    office.catch_up()
    assert (fresh(rule).status, fresh(rule).pause_reason) == ("paused", "unreadable")
    rules.accept(office.house.people["alice"], rule.pk)
    assert fresh(rule).status == "active"
    assert check() == []


def test_it_counts_against_the_proof_and_asks_about_all_of_the_tool():
    taught, plain = practised(times=12), practised(times=12)
    at = call(20_000).at
    taught.lost(call(20_000), at)
    (unit,) = taught.units.values()
    assert unit.left == taught.settings.quarantine
    assert taught.proofs["medium"].refused == 1 + plain.proofs["medium"].refused
    asked = call(20_001)
    assert plain.decide(asked).automatic
    assert taught.decide(asked).reason.kind == "quarantine"
    taught.observe(asked, GOOD)
    assert unit.evidence.refused == 1
