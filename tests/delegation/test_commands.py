"""`manage.py delegation`: everything that was learned, made again; and a step explained."""

from __future__ import annotations

import re
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from approvals import selectors as approvals
from delegation.models import Delegation, LearnerState
from tenants import scope
from tests.approvals.house import fresh
from tests.clock import move


def said(*arguments, told=False):
    """Run the command outside the tenant's scope, as a shell does; return what it printed, or what
    it told of itself."""
    out, beside, tenant = StringIO(), StringIO(), scope.current_tenant_id()
    token = scope._scope.set(None)
    try:
        call_command("delegation", *arguments, stdout=out, stderr=beside)
    finally:
        scope._scope.reset(token)
        scope._set_variable(tenant)
    return (beside if told else out).getvalue()


def test_what_was_learned_is_checked_and_written_anew(office):
    office.approve(8)
    office.catch_up()
    assert said("rebuild", "--check") == "it is what the events make\n"
    assert re.fullmatch(r"8 events in \d+\.\d s\n", said("rebuild", told=True))
    kept = LearnerState.objects.get()
    LearnerState.objects.update(state={**kept.state, "last_at": 0})
    with pytest.raises(CommandError):
        said("rebuild", "--check", "--tenant", "acme")
    assert fresh(kept).state["last_at"] == 0
    assert "written anew" in said("rebuild")
    assert fresh(kept).state == kept.state
    assert said("rebuild", "--check") == "it is what the events make\n"


def test_a_step_is_explained_to_whoever_has_the_machine(office):
    rule = office.rule()
    step = office.propose()
    told = said("explain", "--tenant", "acme", "--step", str(step.pk))
    assert str(rule.pk) in told
    for wrong in (
        ("--tenant", "nobody", "--step", str(step.pk)),
        ("--tenant", "acme", "--step", str(rule.pk)),
    ):
        with pytest.raises(CommandError):
            said("explain", *wrong)


def test_what_rules_decided_is_not_counted_among_what_people_decided_of_the_like(office):
    office.look_and_decide(office.ask())
    office.rule()
    for at in range(3):
        office.propose(order=f"o-{at}")
    gate = office.ask(tier="silver")
    shown = approvals.shown_gate(gate, office.house.people["alice"].id)
    assert shown.similar.approved == 1


def test_a_learned_rule_fades_with_what_it_was_learned_from(office):
    office.house.policy(delegation={"mode": "automatic"})
    office.approve(26)
    office.catch_up()
    rule = Delegation.objects.get()
    assert rule.status == "active"
    move(46 * 86_400)
    office.catch_up()
    assert next(one for one in fresh(rule).predicate["all"] if one["f"] == "tier")["in"] == []
    Delegation.objects.update(check_share=0)
    assert office.propose().status == "waiting"
