"""The catalogue: versions for ever, secrets made once, and nobody approved for another tool."""

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction
from standardwebhooks import Webhook

from interrupts import catalogue
from interrupts.declarations import full_form
from interrupts.models import Tool, ToolVersion
from interrupts.services.tools import set_tools
from tenants.changes import Issued
from tenants.journal import Actor
from tenants.models import JournalEntry, Tenant
from tenants.scope import tenant_scope
from tenants.sealing import SealBroken, unseal
from tenants.services.organisations import make_tenant

pytestmark = pytest.mark.django_db

ADA = Actor("user", "ada")
REFUND: dict[str, Any] = {
    "name": "payments.refund",
    "description": "Refund a payment",
    "effect": "irreversible",
    "risk": "high",
    "arguments": {"type": "object", "properties": {"amount": {"type": "string"}}},
    "executor": {"kind": "http", "url": "http://127.0.0.1:9000/refund"},
}
SHELL: dict[str, Any] = {
    "name": "local.shell",
    "effect": "irreversible",
    "risk": "high",
    "arguments": {"type": "object"},
    "executor": {"kind": "agent"},
}


@pytest.fixture
def acme() -> Iterator[Tenant]:
    tenant, _ = make_tenant(ADA, slug="acme", name="Acme")
    with tenant_scope(tenant.pk):
        yield tenant


def refund(**changed: Any) -> dict[str, Any]:
    return {**copy.deepcopy(REFUND), **changed}


def authority_version(tenant: Tenant) -> int:
    return Tenant.objects.get(pk=tenant.pk).authority_version


def test_a_tool_is_declared_once(acme: Tenant) -> None:
    before = authority_version(acme)
    (change, _) = set_tools(ADA, [REFUND, SHELL])
    assert (change.kind, change.name) == ("added", "payments.refund")
    tool = Tool.objects.select_related("current").get(name="payments.refund")
    assert tool.current.number == 1
    assert tool.current.executor == {**REFUND["executor"], "timeout": 10}
    assert tool.current.timeout_seconds == 10
    assert Tool.objects.get(name="local.shell").current.timeout_seconds == 60
    assert set_tools(ADA, [REFUND, SHELL]) == []
    assert ToolVersion.objects.count() == 2
    assert authority_version(acme) == before


@pytest.mark.parametrize(
    "changed",
    [
        {"risk": "low"},
        {"effect": "idempotent"},
        {"headline": "Refund {amount}"},
        {"sensitive": ["/amount"]},
        {"key_lifetime": 0},
        {"failure_modes": ["x"]},
        {"on_failure": "interrupt"},
        {"executor": {"kind": "http", "url": "http://127.0.0.1:9000/refund", "timeout": 11}},
        {"preview": {"url": "http://127.0.0.1:9000/preview"}},
        {"arguments": {"type": "object"}},
    ],
)
def test_another_declaration_is_another_version(acme: Tenant, changed: dict[str, Any]) -> None:
    set_tools(ADA, [REFUND])
    before = authority_version(acme)
    (change,) = set_tools(ADA, [refund(**changed)])
    assert change.narrows
    assert authority_version(acme) == before + 1
    tool = Tool.objects.select_related("current").get()
    assert tool.current.number == 2
    assert sorted(ToolVersion.objects.values_list("number", flat=True)) == [1, 2]
    set_tools(ADA, [REFUND])
    assert Tool.objects.select_related("current").get().current.number == 3


def test_another_description_is_the_same_version(acme: Tenant) -> None:
    set_tools(ADA, [REFUND])
    before = authority_version(acme)
    (change,) = set_tools(ADA, [refund(description="Give it back")])
    assert change.fields == {"description": ("Refund a payment", "Give it back")}
    tool = Tool.objects.select_related("current").get()
    assert (tool.current.number, tool.description) == (1, "Give it back")
    assert authority_version(acme) == before


def test_what_is_left_out_is_what_is_said_by_default() -> None:
    said = refund(
        sensitive=[],
        confirmation="",
        failure_modes=[],
        key_lifetime=None,
        executor={**REFUND["executor"], "timeout": 10},
    )
    assert full_form(said) == full_form(REFUND)


def test_a_version_cannot_be_changed(acme: Tenant) -> None:
    set_tools(ADA, [REFUND])
    for change in (
        "UPDATE interrupts_toolversion SET risk = 'low'",
        "DELETE FROM interrupts_toolversion",
    ):
        with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(change)
    assert ToolVersion.objects.get().risk == "high"


def test_a_retired_tool_comes_back_as_the_version_it_was(acme: Tenant) -> None:
    set_tools(ADA, [REFUND, SHELL])
    before = authority_version(acme)
    (change,) = set_tools(ADA, [SHELL], others_retire=True)
    assert (change.kind, change.narrows) == ("removed", True)
    assert authority_version(acme) == before + 1
    assert Tool.objects.get(name="payments.refund").retired_at
    assert set_tools(ADA, [SHELL], others_retire=True) == []
    (change,) = set_tools(ADA, [REFUND, SHELL])
    assert change.kind == "added"
    tool = Tool.objects.select_related("current").get(name="payments.refund")
    assert (tool.retired_at, tool.current.number) == (None, 1)


def test_a_secret_is_made_once_and_cannot_be_read_in_the_database(acme: Tenant) -> None:
    first, again = Issued(), Issued()
    set_tools(ADA, [REFUND, SHELL], issued=first)
    set_tools(ADA, [refund(risk="low"), SHELL], issued=again)
    assert list(first.tools) == ["payments.refund"]
    assert not again
    secret = first.tools["payments.refund"]
    assert Webhook(secret).sign("msg_1", webhook_time(), "{}").startswith("v1,")
    tool = Tool.objects.select_related("current").get(name="payments.refund")
    assert secret.removeprefix("whsec_").encode() not in bytes(tool.secret)
    assert catalogue.secret_of(tool.current) == secret
    text = "".join(JournalEntry.objects.values_list("text", flat=True))
    assert "whsec_" not in text


def test_a_secret_opens_at_its_own_tool_only(acme: Tenant) -> None:
    set_tools(ADA, [REFUND, refund(name="other")], issued=Issued())
    one, other = Tool.objects.order_by("name")
    with pytest.raises(SealBroken):
        unseal(bytes(one.secret), catalogue.TOOL_SECRET, other.pk)
    broken = bytes(one.secret)[:-1] + bytes([bytes(one.secret)[-1] ^ 1])
    with pytest.raises(SealBroken):
        unseal(broken, catalogue.TOOL_SECRET, one.pk)


def test_a_secret_that_comes_later_makes_what_was_known_stale(acme: Tenant) -> None:
    set_tools(ADA, [REFUND])
    before = authority_version(acme)
    issued = Issued()
    (change,) = set_tools(ADA, [REFUND], issued=issued)
    assert change.fields == {"signed": (False, True)}
    assert list(issued.tools) == ["payments.refund"]
    assert authority_version(acme) == before + 1


def webhook_time() -> Any:
    from datetime import UTC, datetime

    return datetime(2026, 1, 1, tzinfo=UTC)
