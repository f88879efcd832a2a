"""Decisions at once: one of them wins, the others are told, and nothing is counted twice."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, connections, transaction

from approvals import hot
from approvals.errors import (
    AlreadyDecided,
    AlreadyStarted,
    DigestMismatch,
    NotAnApprover,
    NotYourStage,
)
from approvals.models import Decision, Gate
from approvals.services.bulk import Chosen, approve_together
from approvals.services.decisions import withdraw_decision
from approvals.services.grants import set_grants
from interrupts.models import Interrupt, Run, Step
from tenants.journal import SYSTEM
from tenants.scope import tenant_scope
from tests.approvals.house import CALL, House, empty_house, fresh, house

__all__ = ["empty_house", "house"]  # fixtures

TWO = {"name": "two", "trigger": "action", "tools": ["*"], "then": "approve", "quorum": 2}


@pytest.fixture(params=["hot", "long"])
def way(request, monkeypatch) -> str:
    """Go the hot way where it is open, and the long one in its place."""
    if request.param == "long":
        monkeypatch.setattr(hot, "approve", lambda *_: None)
    return str(request.param)


def at_once(house: House, *acts: Callable[[], Any]) -> list[Any]:
    """Do all of it at the same moment, each on a connection of its own; return what each gave."""
    start = threading.Barrier(len(acts))
    gave: list[Any] = [None] * len(acts)

    def act(index: int) -> None:
        try:
            with tenant_scope(house.tenant.pk):
                start.wait(10)
                gave[index] = acts[index]()
        except Exception as raised:  # noqa: BLE001 - what was raised is what the test looks at
            gave[index] = raised
        finally:
            connections.close_all()

    threads = [threading.Thread(target=act, args=[index]) for index in range(len(acts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not any(thread.is_alive() for thread in threads)
    return gave


def kinds(gave: list[Any]) -> Counter[str]:
    return Counter(
        type(one).__name__
        if isinstance(one, BaseException)
        else ("replayed" if one.replayed else "decided")
        for one in gave
    )


def test_ten_identical_decisions_are_one(house, way):
    gate = house.ask()

    gave = at_once(house, *[lambda: house.decided("alice", gate, "approve")] * 10)

    assert kinds(gave) == {"decided": 1, "replayed": 9}
    assert Decision.objects.count() == 1
    assert house.kinds(gate.run_id).count("gate.decided") == 1
    assert house.kinds(gate.run_id).count("step.authorized") == 1
    assert house.work(gate.run_id) == 1
    assert house.calls == [("payments.refund", CALL)]


def test_ten_identical_requests_are_answered_201_once(house, way):
    gate = house.ask()
    body = {"verdict": "approve", "digest": gate.digest}

    def send() -> int:
        return house.request("alice", "POST", f"/gates/{gate.pk}/decisions", body)[0]

    def without_scope() -> list[int]:
        start, gave = threading.Barrier(10), []

        def act() -> None:
            try:
                start.wait(10)
                gave.append(send())
            finally:
                connections.close_all()

        threads = [threading.Thread(target=act) for _ in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        return gave

    assert Counter(without_scope()) == {201: 1, 200: 9}


def test_of_contrary_decisions_one_wins_and_the_other_is_told(house, way):
    for _ in range(5):
        gate = house.ask()

        gave = at_once(
            house,
            lambda gate=gate: house.decided("alice", gate, "approve"),
            lambda gate=gate: house.decided("carol", gate, "reject", reason="no"),
        )

        assert kinds(gave) == {"decided": 1, "AlreadyDecided": 1}
        (decision,) = Decision.objects.filter(gate=gate)
        state = {"approve": "approved", "reject": "rejected"}[decision.verdict]
        assert fresh(gate).state == state
        assert Interrupt.objects.get(pk=gate.interrupt_id).status == "resolved"
        assert Run.objects.get(pk=gate.run_id).status == "running"
        assert house.work(gate.run_id) == (decision.verdict == "approve")


def test_two_votes_at_once_make_the_quorum_once(house, way):
    house.policy(TWO)
    gate = house.ask()

    gave = at_once(
        house,
        lambda: house.decided("alice", gate, "approve"),
        lambda: house.decided("carol", gate, "approve"),
    )

    assert kinds(gave) == {"decided": 2}
    assert fresh(gate).state == "approved"
    assert house.kinds(gate.run_id).count("step.authorized") == 1
    assert house.work(gate.run_id) == 1


@pytest.fixture
def staged(house) -> House:
    """Alice and bob are of the first stage, carol and olga of the second."""
    for who in ("bob", "olga"):
        house.grant(who, "*")
    house.group("finance", "alice", "bob")
    house.group("leads", "carol", "olga")
    return house


def stages(first: int, second: int) -> dict[str, Any]:
    asked = {"finance": first, "leads": second}
    listed = [{"approvers": [name], "quorum": quorum} for name, quorum in asked.items()]
    return {
        "name": "staged",
        "trigger": "action",
        "tools": ["*"],
        "then": "approve",
        "stages": listed,
    }


def votes_at_once(house: House, gate: Gate, *who: str) -> Counter[str]:
    return kinds(
        at_once(house, *[lambda one=one: house.decided(one, gate, "approve") for one in who])
    )


def test_two_votes_at_once_complete_a_stage_once(staged, way):
    staged.policy(stages(2, 2))
    gate = staged.ask()

    assert votes_at_once(staged, gate, "alice", "bob") == {"decided": 2}
    assert fresh(gate).stage == 2
    assert staged.kinds(gate.run_id).count("gate.stage_opened") == 1
    assert votes_at_once(staged, gate, "carol", "olga") == {"decided": 2}
    assert fresh(gate).state == "approved"
    assert staged.kinds(gate.run_id).count("step.authorized") == 1
    assert staged.work(gate.run_id) == 1


def test_of_two_votes_at_once_where_one_completes_the_stage_the_other_is_refused(staged, way):
    staged.policy(stages(1, 1))
    gate = staged.ask()

    assert votes_at_once(staged, gate, "alice", "bob") == {"decided": 1, "NotYourStage": 1}
    assert staged.kinds(gate.run_id).count("gate.stage_opened") == 1
    assert Decision.objects.filter(gate=gate).count() == 1


def test_a_first_stage_taken_back_while_the_last_is_decided_lets_nothing_run(staged, way):
    staged.policy(stages(1, 1))
    for _ in range(3):
        gate = staged.ask()
        first = staged.decided("alice", gate, "approve").decision

        gave = at_once(
            staged,
            lambda gate=gate, first=first: withdraw_decision(
                staged.people["alice"], gate.pk, first.pk
            ),
            lambda gate=gate: staged.decided("carol", gate, "approve"),
        )

        assert not isinstance(gave[0], BaseException)
        assert isinstance(gave[1], NotYourStage) or gave[1].decision.verdict == "approve"
        assert (fresh(gate).state, fresh(gate).stage) == ("pending", 1)
        assert not Decision.objects.filter(gate=gate, counts=True).exists()
        assert staged.work(gate.run_id) == 0


def test_of_two_edits_at_once_one_is_of_what_is_shown_no_more(house, way):
    house.policy(TWO)
    gate = house.ask()
    edits = {
        who: {**CALL, "amount": amount} for who, amount in (("alice", "1.00"), ("carol", "2.00"))
    }

    gave = at_once(
        house,
        *[
            lambda who=who, edit=edit: house.decided(who, gate, "approve", arguments=edit)
            for who, edit in edits.items()
        ],
    )

    assert kinds(gave) == {"decided": 1, "DigestMismatch": 1}
    (decision,) = Decision.objects.all()
    assert decision.counts
    assert fresh(gate).arguments == decision.edits
    assert any(isinstance(one, DigestMismatch) for one in gave)


def test_authority_withdrawn_while_a_decision_waits_for_the_lock_is_gone(house, way):
    gate = house.ask()
    gave: list[Any] = []

    def decide() -> None:
        with pytest.raises(NotAnApprover):
            house.decide("alice", gate)
        gave.append("refused")

    def withdraw() -> None:
        # Its drain comes after its commit, and waits for the decision.
        with transaction.atomic():
            set_grants(SYSTEM, {"alice": ["mail.*"]})
        gave.append("drained")

    with transaction.atomic():
        Run.objects.select_for_update().get(pk=gate.run_id)
        deciding = apart(house, decide)
        wait_until(lambda: waiting_for_locks() >= 1)
        withdrawing = apart(house, withdraw)
        wait_until(lambda: not may_decide(house, "alice"))
        assert gave == []
    deciding.join(30)
    withdrawing.join(30)

    assert sorted(gave) == ["drained", "refused"]
    assert fresh(gate).state == "pending"
    assert not Decision.objects.exists()


def apart(house: House, act: Callable[[], None]) -> threading.Thread:
    """Start the act on a connection of its own."""

    def run() -> None:
        try:
            with tenant_scope(house.tenant.pk):
                act()
        finally:
            connections.close_all()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def may_decide(house: House, who: str) -> bool:
    from approvals.models import TenantPermission

    return TenantPermission.objects.filter(user=house.people[who].id).exists()


def waiting_for_locks() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        return int(cursor.fetchone()[0])


def wait_until(holds: Callable[[], bool]) -> None:
    pause = threading.Event()
    for _ in range(500):
        if holds():
            return
        pause.wait(0.02)
    raise AssertionError("it did not come to that")


def test_an_approval_is_taken_back_or_its_step_starts(house, way):
    for _ in range(5):
        house.calls.clear()
        gate = house.ask()
        decided = house.decided("alice", gate, "approve")

        gave = at_once(
            house,
            lambda gate=gate: house.work(gate.run_id),
            lambda made=decided: withdraw_decision(
                house.people["alice"], made.gate.pk, made.decision.pk
            ),
        )

        step = Step.objects.get(pk=gate.step_id)
        if isinstance(gave[1], AlreadyStarted):
            assert (step.status, len(house.calls)) == ("succeeded", 1)
        else:
            assert isinstance(gave[1], Gate)
            assert (step.status, house.calls) == ("waiting", [])
            assert fresh(gate).state == "pending"


def test_a_gate_is_settled_by_its_run_being_cancelled_or_by_a_decision(house, way):
    from interrupts.services.runs import cancel_run

    for _ in range(5):
        gate = house.ask()

        gave = at_once(
            house,
            lambda gate=gate: house.decided("alice", gate, "approve"),
            lambda gate=gate: cancel_run(house.people["olga"], gate.run_id),
        )

        cancelled = isinstance(gave[0], AlreadyDecided)
        assert fresh(gate).state == ("withdrawn" if cancelled else "approved")
        assert Run.objects.get(pk=gate.run_id).status == "cancelled"
        assert house.work(gate.run_id) == 0
        assert house.calls == []


def test_several_approved_in_contrary_orders_wait_for_none_of_each_other(house):
    house.policy(TWO)
    gates = [house.ask() for _ in range(8)]
    chosen = [Chosen(gate.pk, gate.digest) for gate in gates]

    hers, theirs = at_once(
        house,
        lambda: approve_together(house.people["alice"], chosen),
        lambda: approve_together(house.people["carol"], chosen[::-1]),
    )

    votes = Counter(one.status for one in [*hers, *theirs])
    assert votes == {"counted": 8, "approved": 8}
    assert all(fresh(gate).state == "approved" for gate in gates)
    assert Decision.objects.count() == 16


def test_one_that_is_rejected_meanwhile_keeps_no_other_back(house):
    for _ in range(10):
        gates = [house.ask() for _ in range(3)]
        chosen = [Chosen(gate.pk, gate.digest) for gate in gates]
        last = gates[-1]

        told, contrary = at_once(
            house,
            lambda chosen=chosen: approve_together(house.people["alice"], chosen),
            lambda last=last: house.decided("carol", last, "reject", reason="no"),
        )

        assert [one.status for one in told[:2]] == ["approved", "approved"]
        approved = told[-1].status == "approved"
        assert isinstance(contrary, AlreadyDecided) == approved
        assert fresh(last).state == ("approved" if approved else "rejected")
        assert Decision.objects.filter(gate=last).count() == 1
