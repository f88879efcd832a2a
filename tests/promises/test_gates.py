"""Gates: what no statement can make of them, and who can never decide one."""

from __future__ import annotations

import pytest
from django.db import IntegrityError, transaction

from approvals import hot
from approvals.errors import DigestMismatch
from approvals.models import Decision, Gate, PolicyVersion
from approvals.services import decisions
from config.errors import PeopleOnly
from interrupts.models import Step
from tenants.ids import uuid7
from tests.approvals.house import CALL, empty_house, fresh, house
from tests.database import as_owner
from tests.threads import crew_of

__all__ = ["empty_house", "house"]  # fixtures


@pytest.fixture
def gate(house):
    gate = house.ask()
    house.look(gate, "alice", "carol")
    return gate


def broken(promise):
    return pytest.raises(IntegrityError, match=promise)


def test_a_step_has_one_pending_gate(house, gate):
    values = {field.attname: getattr(gate, field.attname) for field in Gate._meta.concrete_fields}
    with broken("one_pending_gate_per_step"), transaction.atomic():
        Gate(**{**values, "id": uuid7()}).save(force_insert=True)


def test_a_gate_moves_as_the_table_of_moves_says(house, gate):
    house.decide("alice", gate, "reject", reason="no")
    with broken("approvals_gate_state_moves"), transaction.atomic():
        Gate.objects.filter(pk=gate.pk).update(state="approved")


def test_nothing_expires_into_approval(house, gate):
    with broken("a_gate_expires_into_no_approval"), transaction.atomic():
        Gate.objects.filter(pk=gate.pk).update(on_expiry="approve")


@pytest.mark.parametrize(
    ("stages", "stage"), [([], 1), ([{"quorum": 1}], None), ([{"quorum": 1}], 0)]
)
def test_of_several_stages_one_is_open(house, gate, stages, stage):
    with broken("a_gate_with_stages_has_an_open_one"), transaction.atomic():
        Gate.objects.filter(pk=gate.pk).update(stages=stages, stage=stage)


@pytest.mark.parametrize("said", [{"reason_code": "late"}, {"reason_text": "Too late."}])
def test_a_chosen_reason_is_kept_with_what_it_says(house, gate, said):
    house.decide("alice", gate, "reject", reason="no")
    (row,) = Decision.objects.filter(gate=gate).values()
    with broken("a_chosen_reason_has_its_text"), transaction.atomic():
        Decision.objects.create(**{**row, "id": uuid7(), "counts": False, **said})


@pytest.mark.parametrize("way", ["hot", "long"])
def test_what_was_not_shown_is_not_approved(house, gate, way, monkeypatch):
    if way == "long":
        monkeypatch.setattr(hot, "approve", lambda *_: None)
    before = house.trace(gate)
    with pytest.raises(DigestMismatch):
        house.decide("alice", gate, digest="sha256:" + "0" * 64)
    assert house.trace(gate) == before


def test_an_agent_decides_no_gate(house, gate):
    before = house.trace(gate)
    with pytest.raises(PeopleOnly):
        decisions.decide_gate(house.agent, gate.pk, verdict="approve", digest=gate.digest)
    body = {"verdict": "approve", "digest": gate.digest}
    path = f"/gates/{gate.pk}/decisions"
    with crew_of(house.tenant.pk) as crew:
        status, answer, _ = crew.start(lambda: house.request("bot", "POST", path, body)).result()
    assert (status, answer["code"]) == (403, "people-only")
    assert house.trace(gate) == before


def test_exactly_what_was_approved_runs(house, gate):
    house.decide("alice", gate)
    step = Step.objects.get(pk=gate.step_id)
    assert (step.authorized_by, step.authorized_digest) == ("decision", step.digest)
    house.work(gate.run_id)
    assert house.calls == [("payments.refund", dict(CALL))]


def test_a_published_policy_is_not_changed(house):
    house.policy({"name": "all", "trigger": "action", "tools": ["*"], "then": "approve"})
    version = PolicyVersion.objects.latest("number")
    with pytest.raises(Exception, match="append-only"), as_owner() as owner:
        owner.execute(
            "UPDATE approvals_policyversion SET document = '{}' WHERE id = %s", [version.pk]
        )
    assert fresh(version).document == version.document
