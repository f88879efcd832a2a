"""A tenant file names secrets and says where their values come from; it holds none of them."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from interrupts.models import Tool
from tenants.models import JournalEntry, Secret, Tenant
from tenants.scope import tenant_scope
from tenants.selectors import secret_values
from tests.tenantfile.conftest import ACME, Apply, acme

pytestmark = pytest.mark.django_db(transaction=True)

VALUE, OTHER = "sk_live_4eC39HqLyjWDarjtT1zdp7dc", "sk_live_another-value-of-it"
ENV = [{"name": "pay-key", "env": "PAY_KEY"}]


def with_tool(**sections: Any) -> dict[str, Any]:
    """Return the file with a tool that signs in with `pay-key`."""
    tool = copy.deepcopy(ACME["tools"][1])
    tool["executor"] = {
        "kind": "http",
        "request": {
            "url": "https://mail.test/v3/send",
            "headers": {"Authorization": {"secret": "pay-key", "prefix": "Bearer "}},
        },
    }
    return acme(tools=[tool], **sections)


def values() -> dict[str, str]:
    tenant = Tenant.objects.filter(slug="acme").first()
    if tenant is None:
        return {}
    with tenant_scope(tenant.pk):
        return secret_values(set(Secret.objects.values_list("name", flat=True)))


@pytest.fixture
def pay_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAY_KEY", VALUE)


def test_a_value_comes_from_the_environment_and_is_told_by_its_version(
    apply: Apply, pay_key: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = apply(with_tool(secrets=ENV))
    assert (first.error, values()) == ("", {"pay-key": VALUE})
    assert "  + secret pay-key: version 1\n" in first.output
    assert apply(with_tool(secrets=ENV)).output == "no changes\n"
    monkeypatch.setenv("PAY_KEY", OTHER)
    dry = apply(with_tool(secrets=ENV), dry_run=True)
    assert values() == {"pay-key": VALUE}
    second = apply(with_tool(secrets=ENV))
    assert values() == {"pay-key": OTHER}
    for told in (dry, second):
        assert "  ~ secret pay-key\n      version: 1 -> 2\n" in told.output
    said = "".join(one.output + repr(one.credentials) for one in (first, dry, second))
    assert (VALUE in said, OTHER in said) == (False, False)
    with tenant_scope(Tenant.objects.get(slug="acme").pk):
        journal = "".join(JournalEntry.objects.values_list("text", flat=True))
        assert Tool.objects.get(name="mail.send").secret is None  # nothing of it is ours to sign
    assert ("secret" in journal, VALUE in journal) == (True, False)


def test_a_value_comes_from_a_file(apply: Apply, tmp_path: Path) -> None:
    (tmp_path / "key").write_text(f"{VALUE}\n")
    entry = {"name": "pay-key", "file": str(tmp_path / "key")}
    assert apply(with_tool(secrets=[entry])).error == ""
    assert values() == {"pay-key": VALUE}


def test_one_that_is_only_named_keeps_what_it_holds(apply: Apply, pay_key: None) -> None:
    apply(with_tool(secrets=ENV))
    assert apply(with_tool(secrets=[{"name": "pay-key"}])).output == "no changes\n"
    assert values() == {"pay-key": VALUE}


def test_a_file_without_the_section_leaves_them_alone_and_one_with_it_is_the_whole(
    apply: Apply, pay_key: None
) -> None:
    apply(with_tool(secrets=ENV))
    assert apply(with_tool()).output == "no changes\n"
    ended = apply(acme(secrets=[]))
    assert "  - secret pay-key: removed, what it held is destroyed\n" in ended.output
    assert values() == {}


@pytest.mark.parametrize(
    ("document", "fault"),
    [
        (with_tool(), "tools/0/executor/request/headers/Authorization: There is no secret"),
        (with_tool(secrets=[]), "tools/0/executor/request/headers/Authorization: There is no"),
        (acme(secrets=[{"name": "k"}]), "secrets/0/name: It holds no value yet"),
        (acme(secrets=[{"name": "k", "env": "NO_SUCH"}]), "secrets/0/env: The environment has no"),
        (acme(secrets=[{"name": "k", "env": "SHORT"}]), "secrets/0/env: A secret has 8"),
        (acme(secrets=[{"name": "k", "file": "/no/such"}]), "secrets/0/file: /no/such: No such"),
        (acme(secrets=[{"name": "k", "env": "PAY_KEY", "file": "x"}]), "secrets/0/file: A value"),
        (acme(secrets=[{"name": "k", "value": VALUE}]), "secrets/0/value: "),
        (acme(secrets=[{"name": "a b", "env": "PAY_KEY"}]), "secrets/0/name: Must be letters"),
        (acme(secrets=[*ENV, *ENV]), "secrets/1/name: Is there twice."),
        (acme(secrets={}), "secrets: "),
    ],
)
def test_what_is_wrong_is_told_with_its_path_and_changes_nothing(
    apply: Apply, pay_key: None, monkeypatch: pytest.MonkeyPatch, document: Any, fault: str
) -> None:
    monkeypatch.setenv("SHORT", "sh0rt-1")
    refused = apply(document)
    assert f"acme: {fault}" in refused.error
    assert (VALUE in refused.error, "sh0rt-1" in refused.error) == (False, False)
    assert Tenant.objects.count() == 0
