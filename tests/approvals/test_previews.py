"""Previews: taken by a worker, repeated when lost, taken anew when they have gone stale."""

from datetime import timedelta
from threading import Event

import pytest
from django.db import connection
from django.db.models import F

from approvals.errors import DigestMismatch
from approvals.models import Decision, Gate
from approvals.services import preview
from approvals.sweep import sweep_gates
from approvals.transitions import IMPRINT
from interrupts.effects.aside import within
from interrupts.work import working
from tenants.journal import SYSTEM
from tenants.scope import NoTenant, current_tenant_id
from tests.approvals.house import fresh, no_preview, shown_preview


class Killed(BaseException):
    """The worker ends in the middle of the call."""


@pytest.fixture
def previewed(house):
    house.tool(previewed=True)
    return house


def open_gate(house):
    return Gate.objects.get(pk=house.propose().gate)


def overdue(gate):
    Gate.objects.filter(pk=gate.pk).update(due_at=F("opened_at") - timedelta(seconds=1))


def test_a_gate_is_preparing_until_a_worker_has_taken_its_preview(previewed):
    gate = open_gate(previewed)
    assert (gate.state, gate.pattern) == ("preparing", "preview")
    assert previewed.sent == [(str(previewed.tenant.pk), str(gate.pk))]

    preview.take_preview(gate.pk)

    shown = fresh(gate)
    assert (shown.state, shown.preview["summary"]) == ("pending", "20.00 goes back")
    assert shown.digest != gate.digest
    assert shown.arguments_digest == gate.arguments_digest
    assert "gate.previewed" in previewed.kinds(gate.run_id)
    assert shown.due_at is None


def test_the_hint_is_sent_once_the_gate_is_there(previewed):
    seen = []

    def look(*ids):
        seen.append(Gate.objects.filter(pk=ids[1]).exists() and not connection.in_atomic_block)

    from approvals import queue

    original = queue.send
    queue.send = look
    try:
        open_gate(previewed)
    finally:
        queue.send = original
    assert seen == [True]


def test_no_transaction_is_open_while_the_tool_is_asked(previewed):
    seen = []

    def look(*_):
        seen.append(connection.in_atomic_block)
        return shown_preview()

    previewed.previews["payments.refund"] = look

    previewed.ask()

    assert seen == [False]


def test_a_preview_is_taken_once(previewed):
    asked = []

    def look(*_):
        asked.append(1)
        return shown_preview()

    previewed.previews["payments.refund"] = look
    gate = previewed.ask()
    before = previewed.trace(gate)

    preview.take_preview(gate.pk)

    assert asked == [1]
    assert previewed.trace(gate) == before


@pytest.mark.django_db(transaction=True, databases=["default", "sweep"])
def test_a_lost_hint_is_sent_again(previewed):
    gate = open_gate(previewed)
    previewed.sent.clear()
    assert sweep_gates() == 0

    overdue(gate)

    assert sweep_gates() == 1
    assert previewed.sent == [(str(previewed.tenant.pk), str(gate.pk))]
    assert sweep_gates() == 0


def test_tries_that_break_off_end_in_a_gate_without_a_preview(previewed):
    def break_off(*_):
        raise Killed

    previewed.previews["payments.refund"] = break_off
    gate = open_gate(previewed)
    for _ in range(3):
        with pytest.raises(Killed):
            preview.take_preview(gate.pk)
        assert fresh(gate).state == "preparing"
        assert fresh(gate).due_at is not None
        preview.take_preview(gate.pk)  # too soon: the try may still be on
        Gate.objects.filter(pk=gate.pk).update(preview_until=F("opened_at"))

    preview.take_preview(gate.pk)

    shown = fresh(gate)
    assert (shown.state, shown.preview, shown.ceremony) == ("pending", None, "review")
    assert shown.preview_error


def test_what_was_seen_of_other_arguments_is_not_shown(previewed):
    """A worker that is slow finds the gate gone on: decided, or asking about an edit."""
    gate = open_gate(previewed)

    def look(*_):
        from interrupts.services.runs import cancel_run

        cancel_run(previewed.people["olga"], gate.run_id)
        return shown_preview()

    previewed.previews["payments.refund"] = look

    preview.take_preview(gate.pk)

    assert (fresh(gate).state, fresh(gate).preview) == ("withdrawn", None)


def test_a_preview_too_large_to_read_is_none(previewed):
    previewed.previews["payments.refund"] = lambda *_: shown_preview("x" * 70_000)

    gate = previewed.ask()

    assert (gate.state, gate.preview) == ("pending", None)
    assert "larger" in gate.preview_error


def test_a_tool_that_does_not_answer_in_time_leaves_its_gate_without_a_preview(house, monkeypatch):
    """A python tool is left behind where it is late, and looks for no tenant meanwhile."""
    let_go, seen = Event(), []

    def look(*_):
        with pytest.raises(NoTenant):
            current_tenant_id()
        seen.append("no tenant")
        let_go.wait(60)
        return shown_preview()

    monkeypatch.setattr("interrupts.effects.python.within", within)
    house.previews["payments.refund"] = look
    house.tool(previewed=True, preview={}, timeout_seconds=0.2)
    try:
        gate = house.ask()
    finally:
        let_go.set()

    assert seen == ["no tenant"]
    assert (gate.state, gate.preview, gate.ceremony) == ("pending", None, "review")
    assert gate.preview_error == (
        "No preview could be taken. It did not answer within 0.2 seconds."
    )


def test_a_declared_preview_is_owed_where_its_tool_is_not_installed(house, monkeypatch):
    house.tool(preview={"function": "shop.look"})

    gate = house.ask()

    assert (gate.pattern, gate.preview, gate.ceremony) == ("preview", None, "review")
    assert gate.preview_error == "No installed package offers a preview named shop.look."


# Gone stale


def stale(house, first, second):
    house.previews["payments.refund"] = lambda *_: first
    gate = house.ask()
    assert gate.fresh_until is not None
    house.previews["payments.refund"] = second if callable(second) else lambda *_: second
    # As if it had been taken so long ago: the journal says so too.
    with working(gate.run_id, SYSTEM) as work:
        gate.fresh_until = gate.opened_at - timedelta(seconds=1)
        gate.save(update_fields=["fresh_until"])
        work.note("gate.updated", gate=gate.pk, imprint=work.imprint(gate, IMPRINT))
        work.state_unchanged()
    return fresh(gate)


def test_a_stale_preview_that_is_still_true_lets_the_decision_count(previewed):
    gate = stale(previewed, shown_preview(fresh_for=1), shown_preview(fresh_for=60))

    assert previewed.decide("alice", gate).state == "approved"
    assert Decision.objects.get().digest == gate.digest


def test_a_preview_that_is_never_fresh_can_be_decided(previewed):
    gate = stale(previewed, shown_preview(fresh_for=0), shown_preview(fresh_for=0))

    assert previewed.decide("alice", gate).state == "approved"


def test_a_stale_preview_that_has_changed_refuses_the_decision_with_the_new_gate(previewed):
    gate = stale(
        previewed,
        shown_preview(fresh_for=1),
        shown_preview("21.00 goes back", warnings=["balance changed"], fresh_for=60),
    )

    status, problem, _ = previewed.request(
        "alice",
        "POST",
        f"/gates/{gate.pk}/decisions",
        {"verdict": "approve", "digest": gate.digest},
    )

    now = fresh(gate)
    assert (status, problem["code"]) == (409, "digest-mismatch")
    assert problem["gate"]["what"]["digest"] == now.digest
    assert problem["gate"]["what"]["preview"]["summary"] == "21.00 goes back"
    assert now.state == "pending"
    assert not Decision.objects.exists()
    assert previewed.decide("alice", now).state == "approved"


def test_votes_for_the_older_preview_count_no_more(previewed):
    previewed.policy(
        {"name": "two", "trigger": "action", "tools": ["*"], "then": "approve", "quorum": 2}
    )
    previewed.previews["payments.refund"] = lambda *_: shown_preview(fresh_for=60)
    gate = previewed.ask()
    previewed.decide("alice", gate)
    previewed.previews["payments.refund"] = lambda *_: shown_preview("other", fresh_for=60)
    Gate.objects.filter(pk=gate.pk).update(fresh_until=F("opened_at") - timedelta(seconds=1))

    with pytest.raises(DigestMismatch):
        previewed.decide("carol", gate)

    assert not Decision.objects.get().counts
    assert previewed.decide("carol", fresh(gate)).state == "pending"


def test_a_preview_that_can_be_taken_no_more_raises_the_ceremony(previewed):
    gate = stale(previewed, shown_preview(fresh_for=1), no_preview)

    with pytest.raises(DigestMismatch):
        previewed.decide("alice", gate)

    assert (fresh(gate).preview, fresh(gate).ceremony) == (None, "review")


def test_to_reject_no_preview_is_taken_anew(previewed):
    gate = stale(previewed, shown_preview(fresh_for=1), no_preview)

    assert previewed.decide("alice", gate, "reject", reason="no").state == "rejected"
    assert fresh(gate).preview is not None


def test_hints_that_piled_up_repeat_no_try_that_is_on(previewed):
    asked = []

    def look(*_):
        asked.append(1)
        if len(asked) == 1:
            preview.take_preview(gate.pk)  # another worker, with the next hint
        return shown_preview()

    previewed.previews["payments.refund"] = look
    gate = open_gate(previewed)

    preview.take_preview(gate.pk)

    assert asked == [1]
    assert fresh(gate).preview is not None
