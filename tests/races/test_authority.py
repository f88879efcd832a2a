"""Once a withdrawal or a freeze has answered, nothing starts under the older authority."""

import dataclasses

import pytest
from django.db import transaction
from django.db.models.functions import Now

from config.errors import Problem, Unauthenticated
from interrupts.authorizer import Judgement
from interrupts.models import Attempt, Step
from interrupts.services import starting
from interrupts.services.starting import claim_step
from tenants.authority import raise_authority
from tenants.ids import uuid7
from tenants.models import AgentKey, Tenant
from tenants.scope import tenant_scope
from tests.interrupts.house import fresh
from tests.races.conftest import attempt_pending, run_locked, waiting
from tests.threads import Pause, crew_of

WAYS = ["worker", "claim"]


def make(house, way):
    """A ready step, and what intends it."""
    house.tool("t", kind="python" if way == "worker" else "agent")
    run = house.run()
    (step,) = house.propose(run, ("t", {"n": 1}))
    if way == "worker":
        return run, step, lambda: house.work(run)

    def claim():
        try:
            return house.claim(step).pk
        except Problem as refusal:
            return refusal

    return run, step, claim


def begun():
    return set(Attempt.objects.values_list("pk", flat=True))


@pytest.mark.parametrize("way", WAYS)
def test_an_intent_that_waited_for_the_run_sees_what_was_withdrawn_meanwhile(house, crew, way):
    run, step, intend = make(house, way)
    house.policy.renewals["t"] = Judgement("deny", "withdrawn", 2)
    with run_locked(crew, run):
        intent = waiting(crew, intend)
        # The intent holds the drain lock from before it waited: the withdrawal waits for it.
        withdrawal = waiting(crew, house.withdraw_authority)
        assert Step.objects.get(pk=step.pk).authorized_under == 1
    withdrawal.result()
    intent.result()
    assert (fresh(step).status, begun(), house.ran) == ("denied", set(), [])


@pytest.mark.parametrize("way", WAYS)
def test_a_withdrawal_answers_only_after_the_intents_that_saw_the_older_authority(house, crew, way):
    _, step, intend = make(house, way)
    house.policy.renewals["t"] = Judgement("deny", "withdrawn", 2)

    def withdraw():
        house.withdraw_authority()
        return begun()

    with attempt_pending(crew, step):
        intent = waiting(crew, intend)
        withdrawal = waiting(crew, withdraw)
        assert not withdrawal.over
    intent.result()
    assert withdrawal.result() == begun()
    assert len(begun()) == 1


@pytest.mark.parametrize("way", WAYS)
def test_a_freeze_lists_the_intents_that_had_not_seen_it(house, crew, way):
    _, step, intend = make(house, way)
    called = Pause()
    house.behaviour["t"] = lambda *_: called.here()
    with attempt_pending(crew, step):
        intent = waiting(crew, intend)
        freeze = waiting(crew, lambda: house.freeze()[1])
        assert not freeze.over
    listed = set(freeze.result())
    called.go_on()
    intent.result()
    assert listed == begun()
    assert len(begun()) == 1


@pytest.mark.parametrize("way", WAYS)
def test_an_intent_that_waited_for_the_run_is_held_by_a_freeze_set_meanwhile(house, crew, way):
    run, step, intend = make(house, way)
    with run_locked(crew, run):
        intent = waiting(crew, intend)
        freeze = waiting(crew, lambda: house.freeze()[1])
    assert freeze.result() == []
    intent.result()
    assert (fresh(step).status, begun(), house.ran) == ("ready", set(), [])


def test_a_claim_that_waited_for_the_run_is_refused_once_its_key_was_revoked(house, crew):
    run, step, _ = make(house, "claim")
    key = AgentKey.objects.create(agent_id=house.agent.id, hash=b"h" * 32, hint="h")
    signed_in = dataclasses.replace(house.agent, credential_id=key.pk)

    def claim():
        with pytest.raises(Unauthenticated):
            claim_step(signed_in, step.pk)

    def revoke():
        with transaction.atomic():
            AgentKey.objects.filter(pk=key.pk).update(revoked_at=Now())
            raise_authority()

    with run_locked(crew, run):
        intent = waiting(crew, claim)
        withdrawal = waiting(crew, revoke)
    withdrawal.result()
    intent.result()
    assert begun() == set()


def test_another_tenants_withdrawal_waits_for_nobody_here(house, crew):
    run, _, intend = make(house, "worker")
    other = uuid7()
    with run_locked(crew, run), crew_of(other) as elsewhere:
        intent = waiting(crew, intend)

        def withdraw():
            with tenant_scope(other):
                Tenant.objects.create(id=other, slug="umbrella", name="Umbrella")
                with transaction.atomic():
                    return raise_authority()

        assert elsewhere.start(withdraw).result() == 2
        assert not intent.over
    intent.result()


def test_a_freeze_is_lifted_for_every_run_that_it_holds(house, crew, monkeypatch):
    """One is being looked at meanwhile, and has seen the freeze: it is not forgotten."""
    run, _, _ = make(house, "worker")
    freeze, _ = house.freeze()
    pause, frozen = Pause(), starting.frozen

    def looked_at(*args):
        seen = frozen(*args)
        pause.here()
        return seen

    monkeypatch.setattr(starting, "frozen", looked_at)
    look = crew.start(lambda: house.look(run))
    pause.reached()
    lift = waiting(crew, lambda: house.thaw(freeze))
    pause.go_on()
    look.result()
    lift.result()
    assert fresh(run).due_at is not None
