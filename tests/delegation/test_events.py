"""Events: everything that was decided or undone, once for each person, whenever it is collected."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta

import pytest
from django.db import IntegrityError, InternalError, ProgrammingError, transaction

from approvals.services import decisions
from approvals.services.bulk import Chosen, approve_together
from approvals.services.grants import set_grants
from delegation import locks, queue, selectors, sweep, tasks
from delegation.models import DecisionEvent, EventStream, LearnerState
from delegation.services import events, rules
from interrupts.models import Step
from tenants import scope
from tenants.clock import database_now
from tenants.ids import uuid7
from tenants.journal import SYSTEM
from tenants.models import Membership, Role, Tenant
from tenants.scope import tenant_scope
from tests.approvals.house import fresh
from tests.clock import move
from tests.delegation.office import DAY, kinds


def only() -> DecisionEvent:
    return DecisionEvent.objects.get()


def test_an_approval_is_an_event_with_the_call_and_how_it_was_answered(office):
    office.look_and_decide(office.ask(order="o-77", amount="20.50"), seconds=7)
    assert events.collect() == 1
    event = only()
    assert (event.kind, event.sequence, event.user_id) == (
        "approve",
        1,
        office.house.people["alice"].id,
    )
    data = event.data
    assert data["arguments"] == {"order": "-", "tier": "gold", "amount": "20.50"}
    assert (data["agent"], data["workflow"], data["risk"]) == ("bot", "refunds", "low")
    answer = data["answer"]
    assert (answer["opened"], answer["bulk"]) == (True, False)
    assert 7 <= answer["seconds"] < 60
    assert "o-77" not in str(data)


def test_what_is_collected_again_adds_nothing(office):
    office.approve(2)
    office.reject(tier="basic")
    assert [events.collect(), events.collect(), events.collect(everything=True)] == [3, 0, 0]
    numbers = list(DecisionEvent.objects.order_by("sequence").values_list("sequence", flat=True))
    assert numbers == [1, 2, 3]


def test_whoever_collects_at_the_same_time_gives_each_event_one_number(office, at_once):
    office.approve(4)
    found = at_once(*([events.collect] * 4))
    assert sum(found) == 4
    numbers = list(DecisionEvent.objects.order_by("sequence").values_list("sequence", flat=True))
    assert numbers == [1, 2, 3, 4]
    assert EventStream.objects.get().sequence == 4


def test_an_edit_keeps_what_was_shown_and_what_took_its_place(office):
    gate = office.ask(amount="40.00")
    office.look_and_decide(gate, arguments={"order": "o-1", "tier": "gold", "amount": "10.00"})
    events.collect()
    data = only().data
    assert only().kind == "edit"
    assert (data["arguments"]["amount"], data["final"]["amount"]) == ("40.00", "10.00")


def test_bulk_and_unopened_approvals_say_so(office):
    first, second = office.ask(), office.ask(order="o-2")
    chosen = [Chosen(gate.pk, gate.digest) for gate in (first, second)]
    approve_together(office.house.people["alice"], chosen)
    events.collect()
    answers = [event.data["answer"] for event in DecisionEvent.objects.all()]
    assert [(one["opened"], one["bulk"]) for one in answers] == [(False, True)] * 2


def test_an_approval_that_is_taken_back_is_a_second_event(office):
    gate = office.ask()
    office.look_and_decide(gate, hold_seconds=30)
    events.collect()
    decision = gate.decisions.get()
    move(3)
    decisions.withdraw_decision(office.house.people["alice"], gate.pk, decision.pk)
    events.collect()
    assert kinds() == ["approve", "withdraw"]
    first, second = DecisionEvent.objects.order_by("sequence")
    assert first.at < second.at
    assert first.source == second.source


def test_what_was_undone_is_an_incident_of_whoever_allowed_it(office):
    office.tool(compensate={})
    gate = office.ask()
    office.look_and_decide(gate)
    office.house.work(gate.run_id)
    events.collect()
    step = Step.objects.get(pk=gate.step_id)
    office.undone(step)
    events.collect()
    events.collect()
    assert kinds() == ["approve", "incident"]
    assert DecisionEvent.objects.get(kind="incident").data["arguments"]["tier"] == "gold"


def test_what_no_rule_ever_decides_is_no_event(office):
    office.tool(risk="high")
    office.look_and_decide(office.ask(), confirmation=True)
    office.tool(effect="irreversible")
    gate = office.ask()
    office.look_and_decide(gate, confirmation=gate.required_confirmation)
    assert events.collect() == 0
    assert not DecisionEvent.objects.exists()


def test_a_call_without_a_canonical_form_is_kept_without_its_arguments(office):
    office.look_and_decide(office.ask(tier="g\u043eld"))  # a Cyrillic letter
    office.look_and_decide(office.ask(note="refund him, please"))
    events.collect()
    found = [event.data for event in DecisionEvent.objects.order_by("sequence")]
    assert [data["unclear"]["name"] for data in found] == ["tier", "note"]
    assert not any("arguments" in data for data in found)


def test_sensitive_arguments_are_never_kept(office):
    office.tool(sensitive=["/tier", "/order"])
    office.look_and_decide(office.ask(tier="platinum", order="secret-order"))
    events.collect()
    assert all(one not in str(only().data) for one in ("platinum", "secret-order"))


def test_where_nothing_is_delegated_nothing_is_collected(office):
    office.house.policy(delegation={"mode": "off"})
    office.approve()
    assert events.collect() == 0
    assert not DecisionEvent.objects.exists()
    office.house.policy(delegation={"mode": "suggest"})
    assert events.collect() == 1


def test_events_are_never_changed_nor_taken_away(office):
    office.approve()
    events.collect()
    for change in (
        lambda: DecisionEvent.objects.update(kind="reject"),
        lambda: DecisionEvent.objects.all().delete(),
    ):
        with pytest.raises((ProgrammingError, InternalError)), transaction.atomic():
            change()
    again = only()
    again.pk, again.sequence = None, 2
    with pytest.raises(IntegrityError), transaction.atomic():
        DecisionEvent.objects.bulk_create(
            [
                DecisionEvent(
                    user_id=again.user_id,
                    sequence=2,
                    kind=again.kind,
                    tool=again.tool,
                    source=again.source,
                    data={},
                    at=again.at,
                )
            ]
        )
    assert kinds() == ["approve"]


def test_each_of_several_approvers_has_an_event(office):
    with transaction.atomic():
        set_grants(SYSTEM, {"alice": ["*"], "carol": ["*"]})
    office.house.policy(
        {"name": "two", "trigger": "action", "tools": ["*"], "then": "approve", "quorum": 2}
    )
    gate = office.ask()
    office.look_and_decide(gate)
    office.house.decide("carol", fresh(gate))
    events.collect()
    assert kinds() == ["approve", "approve"]
    assert DecisionEvent.objects.values("user").distinct().count() == 2


@pytest.mark.django_db(transaction=True, databases=["default", "sweep"])
def test_the_sweep_hints_at_every_tenant_that_is_due_and_the_task_collects(office, monkeypatch):
    sent = []
    monkeypatch.setattr("delegation.queue.send", sent.append)
    office.approve()
    tenant = office.house.tenant.pk
    token = scope._scope.set(None)
    try:
        assert sweep.sweep_events() == 1
        assert sweep.sweep_events() == 0
        assert sent == [str(tenant)]
        tasks.collect(tenant_id=str(tenant))
    finally:
        scope._scope.reset(token)
    with tenant_scope(tenant):
        assert kinds() == ["approve"]


def test_where_nobody_decides_it_is_looked_ever_more_seldom(office):
    def until_due():
        events.collect()
        return EventStream.objects.get().due_at - database_now()

    assert timedelta(seconds=50) < until_due() <= queue.OFF
    office.approve()
    assert until_due() <= queue.AGAIN
    assert timedelta(seconds=5) < until_due() <= queue.IDLE
    move(1_000)
    assert timedelta(seconds=90) < until_due() < timedelta(seconds=130)
    move(DAY)
    assert timedelta(seconds=290) < until_due() <= queue.LONGEST


def test_what_was_undone_is_one_incident_of_a_person_who_approved_it_twice(office):
    office.tool(compensate={})
    gate = office.ask()
    office.look_and_decide(gate, hold_seconds=30)
    move(3)
    first = gate.decisions.get()
    decisions.withdraw_decision(office.house.people["alice"], gate.pk, first.pk)
    office.look_and_decide(fresh(gate))
    office.house.work(gate.run_id)
    events.collect()
    office.undone(Step.objects.get(pk=gate.step_id))
    assert events.collect() == 1
    assert kinds() == ["approve", "approve", "withdraw", "incident"]
    last = gate.decisions.order_by("id").last()
    assert DecisionEvent.objects.get(kind="incident").data["decision"] == str(last.pk)
    office.reject(tier="basic")
    assert events.collect() == 1  # nothing stands in the way of what comes after it


@contextmanager
def elsewhere(tenant):
    """Work for another tenant meanwhile."""
    here = scope.current_tenant_id()
    token = scope._scope.set(None)
    try:
        with tenant_scope(tenant):
            yield
    finally:
        scope._scope.reset(token)
        scope._set_variable(here)


def test_a_person_of_two_tenants_is_learned_of_in_each(office):
    office.approve(2)
    office.catch_up()
    alice, other = office.house.people["alice"], uuid7()
    rules.ask_everything(alice)
    with elsewhere(other):
        Tenant.objects.create(id=other, slug="other", name="Other")
        Membership.objects.create(user_id=alice.id, role=Role.APPROVER)
        assert not selectors.asks_everything(alice.id)
        rules.ask_everything(replace(alice, tenant_id=other))
        assert selectors.asks_everything(alice.id)
        with transaction.atomic():
            assert locks.lock_learner(alice.id).state is None
    rules.ask_everything(alice, wanted=False)
    assert not selectors.asks_everything(alice.id)
    assert LearnerState.objects.get().state is not None


@pytest.mark.parametrize("everything", [False, True])
def test_of_many_decisions_each_batch_begins_where_the_last_one_ended(
    office, monkeypatch, everything
):
    gate = office.ask()
    office.look_and_decide(gate, hold_seconds=30)
    move(3)
    decisions.withdraw_decision(office.house.people["alice"], gate.pk, gate.decisions.get().pk)
    office.approve(6)
    read, begun = events._read, []

    def remembered(statement, after, limit):
        if statement == events._NEW:
            begun.append(after)
        return read(statement, after, limit)

    monkeypatch.setattr(events, "_read", remembered)
    monkeypatch.setattr(events, "BATCH", 2)
    assert events.collect(everything=everything) == 8
    assert begun == sorted(begun)
    assert len(set(begun)) == 5
    assert kinds() == ["approve"] * 7 + ["withdraw"]
    assert events.collect(everything=everything) == 0
