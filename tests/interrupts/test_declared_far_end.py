"""An ordinary API as a far end, through the engine: once, found out, undone, and never in clear."""

from __future__ import annotations

import base64
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import transaction
from django.db.models.functions import Now

from interrupts import catalogue, content
from interrupts.effects import NotPerformed
from interrupts.errors import UnknownSecret
from interrupts.models import Attempt, Receipt, Step
from interrupts.services import compensating, finding
from interrupts.services.tools import set_tools
from tenants.journal import SYSTEM
from tenants.models import Secret
from tenants.services.secrets import remove_secrets, set_secrets
from tests.interrupts.history import assert_history_holds
from tests.interrupts.house import House, everything, fresh, kinds, open_of
from tests.interrupts.provider import VALUE, Provider, declaration, install
from tests.interrupts.test_sensitive import everywhere

OTHER = "sk_live_another-value-of-it"
CALL: dict[str, Any] = {"charge": "ch/1?x", "amount": 1250}
REFUND = ("charges.refund", CALL)


@pytest.fixture
def provider(settings: Any) -> Iterator[Provider]:
    provider = Provider()
    settings.ABEYANCE_ALLOWED_HOSTS = [provider.authority]
    yield provider
    provider.close()


@pytest.fixture
def hints(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the broker would be told, beside the wakes of `house.sent`."""
    told: list[Any] = []
    for name in ("find_out", "compensate"):
        monkeypatch.setattr(f"interrupts.queue.{name}", told.append)
    return told


def find_out(step: Step) -> None:
    over = "2020-01-01T00:00:00Z"
    Step.objects.filter(pk=step.pk, ask_at__isnull=False).update(ask_at=over, unknown_at=over)
    finding.find_out(step.pk, "w")


def refund(house: House, provider: Provider, fault: str = "") -> tuple[Any, Step]:
    provider.fault = fault
    run = house.run()
    (step,) = house.propose(run, REFUND)
    house.work(run)
    provider.fault = ""
    return fresh(run), fresh(step)


def test_a_declared_call_is_made_once_under_its_key(house: House, provider: Provider) -> None:
    install(provider)
    run, step = refund(house, provider)
    assert (step.status, step.external_id, run.status) == ("succeeded", "re_1", "running")
    assert provider.keys == [str(step.pk)]
    (made,) = provider.ledger.values()
    assert (made["charge"], made["amount"]) == ("ch/1?x", "1250")
    assert provider.signed == [f"Bearer {VALUE}"]


def test_a_lost_answer_is_found_out_by_asking_and_the_call_is_not_repeated(
    house: House, provider: Provider, hints: list[Any]
) -> None:
    install(provider)
    run, step = refund(house, provider, "lose")
    assert (step.status, run.suspension, len(provider.ledger)) == ("unknown", "unknown_outcome", 1)
    find_out(step)
    step = fresh(step)
    assert (step.status, step.external_id, fresh(run).status) == ("succeeded", "re_1", "running")
    assert (len(provider.keys), len(provider.ledger)) == (1, 1)
    assert b'"reference":"' in content.get(step.result)
    assert_history_holds(run)


def test_what_never_arrived_is_sent_again_under_the_same_key(
    house: House, provider: Provider, hints: list[Any]
) -> None:
    install(provider)
    run, step = refund(house, provider, "drop")
    find_out(step)
    assert fresh(step).status == "ready"
    Step.objects.filter(pk=step.pk).update(due_at=None)
    house.work(run)
    assert (fresh(step).status, provider.keys) == ("succeeded", [str(step.pk)] * 2)
    assert len(provider.ledger) == 1


def test_a_proxys_not_found_proves_nothing(
    house: House, provider: Provider, hints: list[Any]
) -> None:
    install(provider)
    _run, step = refund(house, provider, "drop")
    provider.fault = "proxy"
    find_out(step)
    step = fresh(step)
    assert (step.status, step.asked, len(provider.keys)) == ("unknown", 1, 1)
    assert open_of(step).evidence["last_answer"] == "cannot_tell"


def test_it_is_undone_by_the_id_that_the_far_end_gave_it(
    house: House, provider: Provider, hints: list[Any]
) -> None:
    install(provider)
    run, step = refund(house, provider)
    house.cancel(run, compensate=True)
    compensating.compensate(step.pk, "w")
    assert (fresh(step).status, provider.cancelled) == ("compensated", ["re_1"])


# Secrets


def change(**values: str) -> None:
    with transaction.atomic():
        set_secrets(SYSTEM, values)


def test_a_tool_that_names_a_secret_that_is_not_there_is_not_saved(
    house: House, provider: Provider
) -> None:
    before = everything()
    with pytest.raises(UnknownSecret) as refusal, transaction.atomic():
        set_tools(SYSTEM, [declaration(provider)])
    assert [one["pointer"] for one in refusal.value.errors] == [
        f"/0/{part}/request/headers/Authorization"
        for part in ("executor", "preview", "reconcile", "compensate")
    ]
    assert everything() == before


def test_a_new_value_is_in_the_next_call(house: House, provider: Provider) -> None:
    install(provider)
    refund(house, provider)
    change(**{"pay-key": OTHER})
    refund(house, provider)
    assert provider.signed == [f"Bearer {VALUE}", f"Bearer {OTHER}"]


def test_once_a_secret_was_removed_nothing_is_called_and_the_run_is_told(
    house: House, provider: Provider
) -> None:
    install(provider, on_failure="interrupt")
    refund(house, provider)
    with transaction.atomic():
        remove_secrets(SYSTEM, ["pay-key"])
    run, step = refund(house, provider)
    assert (step.status, provider.connections) == ("failed", 1)
    assert step.error == "The secret pay-key is not set; the call was not begun."
    assert open_of(run).reason == "effect_failed"


def test_one_that_cannot_be_opened_is_not_sent_either(
    house: House, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(provider)
    monkeypatch.setattr("tenants.selectors.SECRET", "another purpose")
    _run, step = refund(house, provider)
    assert (step.status, provider.connections) == ("failed", 0)


def test_an_unknown_outcome_stays_unknown_where_its_secret_was_removed(
    house: House, provider: Provider, hints: list[Any]
) -> None:
    install(provider)
    _run, step = refund(house, provider, "lose")
    with transaction.atomic():
        remove_secrets(SYSTEM, ["pay-key"])
    find_out(step)
    assert (fresh(step).status, provider.connections) == ("unknown", 1)
    assert "pay-key" in open_of(step).evidence["last_error"]
    change(**{"pay-key": VALUE})
    find_out(step)
    assert fresh(step).status == "succeeded"


FORMS = [VALUE, OTHER, base64.b64encode(VALUE.encode()).decode()]


def test_a_secret_stands_nowhere_whatever_the_far_end_says(
    house: House, provider: Provider, hints: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    install(provider)
    change(**{"pay-key": OTHER})
    change(**{"pay-key": VALUE})
    for fault in ("", "refuse", "lose", "drop"):
        run, step = refund(house, provider, fault)
        if step.status == "unknown":
            find_out(step)
    refused = Receipt.objects.get(outcome="failed")
    assert refused.error == "The far end refused it (with status 401): Bad key •••"
    run, step = refund(house, provider)
    house.cancel(run, compensate=True)
    compensating.compensate(step.pk, "w")
    assert f"Bearer {VALUE}" in provider.signed
    said = caplog.text + repr(house.sent) + repr(hints)
    for form in FORMS:
        assert everywhere(form) == []
        assert form not in said


# Sending again to find out


@pytest.mark.parametrize("cancelled", [False, True])
def test_a_call_sent_again_that_did_not_begin_proves_nothing_of_the_lost_one(
    house: House, hints: list[Any], cancelled: bool
) -> None:
    house.tool("t", effect="idempotent")
    run, step = house.lost(n=1)

    def refuse(arguments: Any, call: Any) -> None:
        if cancelled:
            house.cancel(run)
        raise NotPerformed("the far end is away")

    house.behaviour["t"] = refuse
    find_out(step)
    step = fresh(step)
    assert (step.status, step.outcome, step.asked) == ("unknown", "unknown", 1)
    assert step.ask_at is not None
    assert open_of(step).reason == "outcome_unknown"
    assert fresh(run).status == ("cancelling" if cancelled else "suspended")
    assert [one.outcome for one in Attempt.objects.order_by("fence")] == [
        "unknown",
        "not_performed",
    ]
    assert_history_holds(run)
    if not cancelled:
        del house.behaviour["t"]
        find_out(step)
        assert (fresh(step).status, fresh(run).status) == ("succeeded", "running")


def test_it_is_sent_again_up_to_the_bound_and_then_only_a_person_settles_it(
    house: House, hints: list[Any]
) -> None:
    house.tool("t", effect="idempotent")
    run, step = house.lost(n=1)

    def refuse(arguments: Any, call: Any) -> None:
        raise NotPerformed("the far end is away")

    house.behaviour["t"] = refuse
    for _ in range(7):
        find_out(step)
    step = fresh(step)
    assert (step.status, step.ask_at, step.attempts) == ("unknown", None, 6)
    assert "reconciliation.exhausted" in kinds(run)


def test_a_repeat_that_cannot_be_formed_leaves_the_outcome_unknown(
    house: House, provider: Provider, hints: list[Any]
) -> None:
    install(provider, effect="idempotent", reconcile=None, compensate=None)
    run, step = refund(house, provider, "lose")
    # Gone otherwise than by whoever removes secrets, which makes the authorization stale.
    Secret.objects.filter(name="pay-key").update(sealed=None, removed_at=Now())
    catalogue.effect.cache_clear()
    find_out(step)
    step = fresh(step)
    assert (step.status, step.attempts, provider.connections) == ("unknown", 2, 1)
    assert_history_holds(run)
