"""A spot check is not escaped: what left one without an answer is asked again until it has one."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import call_command
from django.db import transaction

from approvals.models import Gate
from approvals.services.grants import set_grants
from delegation import explaining, figures
from delegation.models import Delegation, SpotCheck
from delegation.services import rules
from delegation.services.rebuilding import check
from interrupts.models import Interrupt
from interrupts.services import looking, runs, steps
from tenants.journal import SYSTEM
from tests.approvals.house import fresh
from tests.delegation.office import CALL, PREDICATE, TOOL, known


def drawn(monkeypatch, number):
    """Have every coin say this; 1: no call is a spot check by chance."""
    monkeypatch.setattr("delegation.authorizer.coin", lambda _key, _name: number)


@pytest.fixture
def checked(office, monkeypatch):
    """A call that a rule of Alice's covers and a coin had asked; from then on no coin does."""
    office.rule(share=0.25)
    drawn(monkeypatch, 0.0)
    gate = Gate.objects.get(pk=office.propose().gate)
    drawn(monkeypatch, 1.0)
    return gate


def leave(office, gate, how):
    """Leave a gate without any answer."""
    if how == "cancelled":
        runs.cancel_run(office.house.people["olga"], gate.run_id)
    elif how == "expired":
        past = gate.opened_at - timedelta(seconds=1)
        Gate.objects.filter(pk=gate.pk).update(expires_at=past)
        Interrupt.objects.filter(pk=gate.interrupt_id).update(expires_at=past)
        looking.look(gate.run_id)
    assert not gate.decisions.exists()
    assert (fresh(gate).state in ("pending", "preparing")) == (how == "open")


@pytest.mark.parametrize("how", ["open", "cancelled", "expired"])
def test_a_call_whose_spot_check_was_left_is_asked_again_until_somebody_answers(
    office, checked, how
):
    leave(office, checked, how)
    before = office.house.calls[:]
    again = office.propose()
    assert (again.status, again.authorized_by) == ("waiting", None)
    first, second = SpotCheck.objects.order_by("id")
    assert (second.after, second.gate) == (first.pk, again.gate)
    once_more = office.propose()
    assert once_more.status == "waiting"
    assert office.house.calls == before
    for gate in Gate.objects.filter(state="pending"):
        office.look_and_decide(gate)
    assert office.propose().authorized_by == "delegation"
    office.catch_up()
    assert not SpotCheck.objects.filter(awaits=True, verdict="approve").exists()
    assert office.propose().authorized_by == "delegation"
    assert check() == []


def test_another_name_for_the_same_does_not_escape_a_check_that_was_closed(office, checked):
    assert office.propose(order="o-2").authorized_by == "delegation"  # open: another call
    leave(office, checked, "cancelled")
    assert office.propose(order="o-3", amount="20").status == "waiting"
    assert office.propose(order="o-4", tier="basic").authorized_by == "delegation"
    assert office.propose(order="o-5", amount="21.00").authorized_by == "delegation"


def test_what_is_asked_in_the_place_of_a_check_counts_as_that_one_would_have(office, checked):
    leave(office, checked, "cancelled")
    gate = Gate.objects.get(pk=office.propose().gate)
    first, second = SpotCheck.objects.order_by("id")
    assert (first.awaits, first.share, second.share) == (False, 0.25, 0.25)
    beside = SpotCheck.objects.get(gate=office.propose().gate)
    assert (beside.share, beside.after) == (1.0, second.pk)  # it was asked whatever any coin said
    office.look_and_decide(gate, "reject")
    office.look_and_decide(Gate.objects.get(pk=beside.gate))
    office.catch_up()
    # Four for the refusal, one for the approval beside it, none for what nobody answered.
    assert figures.tenant_figures().wrong_rate == pytest.approx(4 / 5)


def test_what_is_proposed_together_with_a_spot_check_escapes_it_as_little(office, monkeypatch):
    office.rule(share=0.25)
    coins = iter([0.0, 1.0])
    monkeypatch.setattr("delegation.authorizer.coin", lambda _key, _name: next(coins))
    run = office.house.run()
    proposals = [{"tool": TOOL, "arguments": CALL}] * 2
    made, _ = steps.propose(office.house.agent, run.pk, proposals=proposals)
    assert [one.authorized_by for one in made] == [None, None]
    assert SpotCheck.objects.count() == 1


def test_whose_check_is_not_answered_is_asked_though_another_would_be_drawn(
    office, checked, monkeypatch
):
    with transaction.atomic():
        set_grants(SYSTEM, {"alice": ["*"], "carol": ["*"]})
    office.rule(who="carol")
    leave(office, checked, "cancelled")
    carol = office.house.people["carol"].id
    monkeypatch.setattr(
        "delegation.speaking.in_drawn_order",
        lambda people, *_: iter(sorted(people, key=lambda person: person != carol)),
    )
    monkeypatch.setattr("delegation.authorizer.coin", lambda *_: 0.9)
    again = office.propose()
    assert again.status == "waiting"
    assert SpotCheck.objects.latest("id").delegation.user.username == "alice"
    # Whoever of them answers, it was answered.
    office.house.look(Gate.objects.get(pk=again.gate), "carol")
    office.house.decide("carol", Gate.objects.get(pk=again.gate))
    office.catch_up()
    assert SpotCheck.objects.latest("id").verdict is None
    assert office.propose().authorized_by == "delegation"


def carols_too(office, monkeypatch):
    """Carol has the same rule as Alice, and is drawn before her."""
    with transaction.atomic():
        set_grants(SYSTEM, {"alice": ["*"], "carol": ["*"]})
    office.rule(who="carol")
    carol = office.house.people["carol"].id
    monkeypatch.setattr(
        "delegation.speaking.in_drawn_order",
        lambda people, *_: iter(sorted(people, key=lambda person: person != carol)),
    )


def test_another_name_for_the_work_does_not_escape_a_check(office, checked):
    assert office.propose(run=office.house.run(workflow="elsewhere")).status == "waiting"
    leave(office, checked, "cancelled")
    assert office.propose(run=office.house.run(workflow="anywhere")).status == "waiting"


@pytest.mark.parametrize("how", ["requester", "narrowed", "revoked"])
def test_a_check_of_whom_nobody_can_ask_any_more_is_asked_of_who_is_drawn(
    office, checked, monkeypatch, how
):
    carols_too(office, monkeypatch)
    leave(office, checked, "cancelled")
    alice, rule = office.house.people["alice"], checked_rule()
    before, run = office.house.calls[:], None
    if how == "requester":
        run = office.house.run(requested_by="alice")
    elif how == "narrowed":
        basic = [*PREDICATE["all"][:3], {"f": "tier", "in": ["basic"]}]
        rules.tighten(alice, rule.pk, known({"all": basic}))
    else:
        rules.revoke(alice, rule.pk)
    again = office.propose(run=run)
    assert (again.status, again.authorized_by) == ("waiting", None)
    assert office.house.calls == before
    first, second = SpotCheck.objects.order_by("id")
    assert (first.awaits, second.after, second.share) == (False, first.pk, 0.25)
    assert second.delegation.user.username == "carol"
    assert office.propose().status == "waiting"  # until somebody answers
    for gate in Gate.objects.filter(state="pending"):
        office.house.look(gate, "carol")
        office.house.decide("carol", gate)
    assert office.propose().authorized_by == "delegation"


def checked_rule():
    """The rule of the first check."""
    return SpotCheck.objects.earliest("id").delegation


def test_a_step_that_was_asked_again_says_so_to_whoever_has_the_machine(office, checked):
    first = SpotCheck.objects.get()
    rule = Delegation.objects.get()
    told = explaining.explain(checked.step_id)
    assert (
        f"spot check of rule {rule.pk} in version 1: one in 4.0 is asked all the same" in told[-1]
    )
    leave(office, checked, "cancelled")
    again = office.propose()
    out = StringIO()
    said = explaining.explain(again.pk)
    assert f"spot check {first.pk} of the like had no answer" in said[-1]
    call_command("delegation", "rebuild", "--check", "--tenant", "acme", stdout=out)
    assert "it is what the events make" in out.getvalue()
