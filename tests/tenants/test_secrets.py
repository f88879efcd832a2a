"""What a tenant signs in with elsewhere: sealed, replaced, removed, and shown to nobody."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import IntegrityError, connection, transaction

from tenants.changes import Change
from tenants.errors import InvalidSecret
from tenants.journal import Actor
from tenants.models import JournalEntry, Secret, Tenant
from tenants.scope import tenant_scope
from tenants.sealing import SealBroken
from tenants.selectors import secret_names, secret_values, value_of
from tenants.services import secrets as services
from tenants.services.organisations import make_tenant
from tests.interrupts.test_sensitive import everywhere

ADA = Actor("user", "ada")
VALUE, OTHER = "sk_live_4eC39HqLyjWDarjtT1zdp7dc", "sk_live_another-value-of-it"


@pytest.fixture
def acme(transactional_db: None) -> Iterator[Tenant]:
    tenant, _ = make_tenant(ADA, slug="acme", name="Acme")
    with tenant_scope(tenant.pk):
        yield tenant


def set_secrets(actor: Actor, values: dict[str, str], **more: Any) -> list[Change]:
    with transaction.atomic():
        return services.set_secrets(actor, values, **more)


def remove_secrets(actor: Actor, names: list[str]) -> list[Change]:
    with transaction.atomic():
        return services.remove_secrets(actor, names)


def told(tenant: Tenant) -> list[tuple[str, Any, Any]]:
    rows = JournalEntry.objects.filter(stream=tenant.pk).order_by("seq")
    said = [(row.kind, json.loads(row.text)) for row in rows]
    return [(kind, one["data"], one["actor"]["id"]) for kind, one in said if "secret" in kind]


def authority(tenant: Tenant) -> int:
    return Tenant.objects.get(pk=tenant.pk).authority_version


def test_a_secret_is_sealed_and_opens_for_who_sends_it(acme: Tenant) -> None:
    (change,) = set_secrets(ADA, {"pay-key": VALUE})
    assert (change.kind, change.narrows, change.after) == ("added", False, {"version": 1})
    assert secret_values({"pay-key", "no-such"}) == {"pay-key": VALUE}
    assert secret_names() == {"pay-key"}
    assert everywhere(VALUE) == []


def test_another_value_is_the_next_version_in_the_place_of_the_older(acme: Tenant) -> None:
    set_secrets(ADA, {"pay-key": VALUE})
    before = bytes(Secret.objects.get().sealed or b"")
    assert set_secrets(ADA, {"pay-key": VALUE}) == []
    (change,) = set_secrets(ADA, {"pay-key": OTHER})
    assert change.fields == {"version": (1, 2)}
    row = Secret.objects.get()
    assert (row.version, value_of(row)) == (2, OTHER)
    row.sealed = before  # an older value put back opens no more
    with pytest.raises(SealBroken):
        value_of(row)


def test_one_that_was_removed_holds_nothing_and_withdraws_what_it_authorised(acme: Tenant) -> None:
    set_secrets(ADA, {"pay-key": VALUE})
    before = authority(acme)
    (change,) = remove_secrets(ADA, ["pay-key"])
    assert (change.kind, change.narrows, authority(acme)) == ("removed", True, before + 1)
    assert (secret_values({"pay-key"}), secret_names()) == ({}, frozenset())
    assert Secret.objects.get().sealed is None
    assert remove_secrets(ADA, ["pay-key"]) == []
    (again,) = set_secrets(ADA, {"pay-key": VALUE})
    assert (again.kind, again.after) == ("added", {"version": 2})


def test_the_journal_says_who_set_which_version_and_not_what_it_holds(acme: Tenant) -> None:
    set_secrets(ADA, {"pay-key": VALUE})
    set_secrets(ADA, {"pay-key": OTHER})
    remove_secrets(ADA, ["pay-key"])
    first, second, none = {"version": 1}, {"version": 2}, None
    assert told(acme) == [
        ("secret.added", {"name": "pay-key", "before": none, "after": first}, "ada"),
        ("secret.changed", {"name": "pay-key", "before": first, "after": second}, "ada"),
        ("secret.removed", {"name": "pay-key", "before": second, "after": none}, "ada"),
    ]


@pytest.mark.parametrize(
    "value",
    [
        "",
        "short",
        "x" * 8001,
        "eight chars\n",
        "two\nlines of it",
        " ahead-of-it",
        "schlüssel-lang",
    ],
)
def test_what_can_stand_in_no_header_is_no_secret(acme: Tenant, value: str) -> None:
    with pytest.raises(InvalidSecret) as refusal:
        set_secrets(ADA, {"fine": VALUE, "pay-key": value})
    assert not value or value not in str(refusal.value.document())
    assert (Secret.objects.count(), told(acme)) == (0, [])


@pytest.mark.parametrize("name", ["", "-x", "a b", "a/b", "ä", "x" * 101])
def test_a_name_is_plain(acme: Tenant, name: str) -> None:
    with pytest.raises(InvalidSecret):
        set_secrets(ADA, {name: VALUE})
    assert Secret.objects.count() == 0


def test_another_tenants_secrets_are_not_there(acme: Tenant) -> None:
    set_secrets(ADA, {"pay-key": VALUE})
    taken = Secret.objects.get()
    with connection.cursor() as cursor:
        cursor.execute("RESET abeyance.tenant_id")
        cursor.execute("SELECT count(*) FROM tenants_secret")
        assert cursor.fetchone() == (0,)
        cursor.execute(f"SET abeyance.tenant_id = '{acme.pk}'")
    with pytest.raises(IntegrityError), transaction.atomic():
        Secret.objects.filter(pk=taken.pk).update(sealed=None)


# The command


def secret(monkeypatch: pytest.MonkeyPatch, *words: str, given: str = "") -> str:
    monkeypatch.setattr("sys.stdin", io.StringIO(given))
    output = io.StringIO()
    call_command("secret", *words, stdout=output)
    return output.getvalue()


@pytest.fixture
def outside(transactional_db: None) -> Tenant:
    return make_tenant(ADA, slug="acme", name="Acme")[0]


OF_ACME = ("--tenant", "acme")
PAY_KEY = (*OF_ACME, "--name", "pay-key")


def test_a_value_comes_from_standard_input_and_goes_nowhere_else(
    outside: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = secret(monkeypatch, "set", *PAY_KEY, given=f"{VALUE}\n")
    said += secret(monkeypatch, "set", *PAY_KEY, given=VALUE)
    said += secret(monkeypatch, "set", *PAY_KEY, given=f"{OTHER}\r\n")
    said += secret(monkeypatch, "list", *OF_ACME)
    assert said.splitlines()[:3] == [
        "pay-key: version 1",
        "it was so already",
        "pay-key: version 2",
    ]
    assert (VALUE in said, OTHER in said, "pay-key  version 2" in said) == (False, False, True)
    with tenant_scope(outside.pk):
        assert secret_values({"pay-key"}) == {"pay-key": OTHER}
        assert [actor for *_, actor in told(outside)] == ["secret", "secret"]
    assert secret(monkeypatch, "remove", *PAY_KEY) == "pay-key: removed\n"
    assert "removed" in secret(monkeypatch, "list", *OF_ACME)


@pytest.mark.parametrize(
    ("words", "given"),
    [
        (("set", "--tenant", "nobody", "--name", "pay-key"), VALUE),
        (("set", *PAY_KEY), "short"),
        (("set", *PAY_KEY), "two lines\nof something"),
        (("set", *OF_ACME, "--name", "a b"), VALUE),
    ],
)
def test_what_the_command_refuses_changes_nothing(
    outside: Tenant, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], given: str
) -> None:
    with pytest.raises(CommandError) as refusal:
        secret(monkeypatch, *words, given=given)
    assert given not in str(refusal.value)
    with tenant_scope(outside.pk):
        assert (Secret.objects.count(), told(outside)) == (0, [])
