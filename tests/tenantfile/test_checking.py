"""Whatever is wrong with a document is found before anything is changed, each with its path."""

from collections.abc import Callable
from typing import Any

import pytest

from approvals.tenantfile.checking import check_documents
from interrupts.models import Effect
from tenants.models import Tenant, User
from tests.tenantfile.conftest import ACME, Apply, acme, other

pytestmark = pytest.mark.django_db

Change = Callable[[dict[str, Any]], None]


def put(*path: str | int, value: Any) -> Change:
    def change(document: dict[str, Any]) -> None:
        *parents, last = path
        at: Any = document
        for part in parents:
            at = at[part]
        at[last] = value

    return change


def add(section: str, entry: Any) -> Change:
    return lambda document: document[section].append(entry)


def tool(member: str, value: Any) -> Change:
    return put("tools", 0, member, value=value)


MAIL = {"kind": "http", "url": "http://127.0.0.1:1/"}


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (put("tenant", value="Acme Ltd"), "tenant"),
        (put("tenant", value=None), "tenant"),
        (put("tenant", value="a" * 64), "tenant"),
        (put("nmae", value="x"), "nmae"),
        (put("name", value=""), "name"),
        (put("members", value={}), "members"),
        (put("members", 0, "role", value="owner"), "members/0/role"),
        (put("members", 0, "role", value=False), "members/0/role"),  # YAML's `no`
        (put("members", 0, "username", value=True), "members/0/username"),
        (put("members", 0, "username", value="a b"), "members/0/username"),
        (put("members", 0, "username", value="alice"), "members/1/username"),
        (put("members", 0, "email", value="ada"), "members/0/email"),
        (put("members", 1, "may_decide", value="*"), "members/1/may_decide"),
        (put("members", 1, "may_decide", 0, value="mail.?"), "members/1/may_decide/0"),
        *(
            (put("members", 1, "may_decide", 0, value=entry), f"members/1/may_decide/0{at}")
            for entry, at in (
                ({"tools": ["*"]}, "/condition"),
                ({"tools": [], "condition": "true"}, "/tools"),
                ({"tools": "*", "condition": "true"}, "/tools"),
                ({"tools": ["*", "mail.?"], "condition": "true"}, "/tools/1"),
                ({"tools": ["*"], "condition": "true", "until": "x"}, "/until"),
                ({"tools": ["*"], "condition": "amount < 5"}, "/condition"),
                ({"tools": ["*"], "condition": "run.workflow == 'w'"}, "/condition"),
                ({"tools": ["*"], "condition": "x" * 2001}, "/condition"),
                ({"tools": ["*"], "condition": True}, "/condition"),
            )
        ),
        (put("members", 0, "password", value="x"), "members/0/password"),
        (add("members", {"username": "eve"}), "members/4/email"),
        (put("agents", 0, "daily_budget", value=[]), "agents/0/daily_budget"),
        (put("agents", 0, "daily_budget", value={"cost": 5}), "agents/0/daily_budget/cost"),
        (put("agents", 0, "daily_budget", value={"money": 5}), "agents/0/daily_budget/money"),
        (put("policy", "daily_budget", value={"steps": -1}), "policy/daily_budget/steps"),
        (tool("cost", 0.5), "tools/0/cost"),
        (tool("cost", "-1"), "tools/0/cost"),
        (tool("cost", ""), "tools/0/cost"),
        (tool("context", [{"name": "balance"}]), "tools/0/context/0/longest_age"),
        (
            tool("context", [{"name": "a", "longest_age": 0}]),
            "tools/0/context/0/longest_age",
        ),
        (
            tool("context", [{"name": "a", "longest_age": 9}, {"name": "a", "longest_age": 9}]),
            "tools/0/context/1/name",
        ),
        (put("groups", "finance", 0, value="eve"), "groups/finance/0"),
        (put("groups", "finance", 0, value="alice"), "groups/finance/1"),
        (put("groups", "a b", value=[]), "groups/a b"),
        *(
            (put("groups", "finance", value=value), f"groups/finance{place}")
            for value, place in (
                ("bob", ""),
                ({}, "/members"),
                ({"members": ["bob", "eve"]}, "/members/1"),
                ({"members": ["bob", "bob"]}, "/members/1"),
                ({"members": [], "may_decide": "*"}, "/may_decide"),
                ({"members": [], "may_decide": ["*", "mail.["]}, "/may_decide/1"),
                (
                    {"members": [], "may_decide": [{"tools": ["*"], "condition": "x < 5"}]},
                    "/may_decide/0/condition",
                ),
                ({"members": [], "quorum": 2}, "/quorum"),
            )
        ),
        (put("agents", 0, "owner", value="eve"), "agents/0/owner"),
        (put("agents", 0, "name", value="cron"), "agents/1/name"),
        (put("agents", 0, "name", value="a/b"), "agents/0/name"),
        (put("agents", 0, "key", value="x"), "agents/0/key"),
        (tool("name", "pay ments"), "tools/0/name"),
        (tool("name", ".refund"), "tools/0/name"),
        (tool("name", "mail.send"), "tools/1/name"),
        (tool("efect", "read"), "tools/0/efect"),
        (tool("effect", "none"), "tools/0/effect"),
        (tool("risk", "extreme"), "tools/0/risk"),
        (tool("arguments", {"type": "array"}), "tools/0/arguments/type"),
        (tool("arguments", {"type": "object", "required": "x"}), "tools/0/arguments"),
        (tool("arguments", {"type": "object", "$ref": "http://x/"}), "tools/0/arguments"),
        (tool("sensitive", ["card"]), "tools/0/sensitive/0"),
        (tool("headline", "Refund {amont}"), "tools/0/headline"),
        (tool("headline", "Refund {amount"), "tools/0/headline"),
        (tool("consequence", "{nothing}"), "tools/0/consequence"),
        (tool("confirmation", "refund {card}"), "tools/0/confirmation"),
        (tool("roles", {"amount": "money"}), "tools/0/roles/amount"),
        (tool("roles", {"amont": "number"}), "tools/0/roles/amont"),
        (tool("failure_modes", [""]), "tools/0/failure_modes/0"),
        (tool("key_lifetime", -1), "tools/0/key_lifetime"),
        (tool("key_lifetime", 1.5), "tools/0/key_lifetime"),
        (tool("on_failure", "ignore"), "tools/0/on_failure"),
        (tool("executor", {"kind": "ssh"}), "tools/0/executor/kind"),
        (tool("executor", {**MAIL, "url": "ftp://x/"}), "tools/0/executor/url"),
        (tool("executor", {**MAIL, "url": "http://a:b@x/"}), "tools/0/executor/url"),
        (tool("executor", {**MAIL, "timeout": 0}), "tools/0/executor/timeout"),
        (tool("executor", {**MAIL, "timeout": 1000}), "tools/0/executor/timeout"),
        (tool("executor", {**MAIL, "tiemout": 1}), "tools/0/executor/tiemout"),
        (tool("executor", {"kind": "python", "function": "no.such"}), "tools/0/executor/function"),
        (tool("reconcile", {"url": "http://127.0.0.1:1/refund"}), "tools/0/reconcile/url"),
        (tool("preview", {}), "tools/0/preview/url"),
        (tool("effect", "reversible"), "tools/0/effect"),
        (put("policy", "ruels", value=[]), "policy/ruels"),
        (put("policy", "rules", 0, "then", value="maybe"), "policy/rules/0/then"),
        (put("policy", "rules", 0, "tools", value=["["]), "policy/rules/0/tools/0"),
        (put("policy", "rules", 0, "condition", value="1 +"), "policy/rules/0/condition"),
        (put("policy", "allowed_hosts", value=["http://x"]), "policy/allowed_hosts/0"),
        (put("policy", "budgets", "cost", value=1.5), "policy/budgets/cost"),
        (put("policy", "delegation", "mode", value="always"), "policy/delegation/mode"),
    ],
)
def test_a_fault_is_told_with_its_path(change: Change, path: str) -> None:
    document = acme()
    change(document)
    faults = check_documents([document])
    slug = (
        document["tenant"] if document["tenant"] in ("acme", "Acme Ltd", "a" * 64) else "document 1"
    )
    assert any(fault.startswith(f"{slug}: {path}") for fault in faults), faults


def test_a_valid_document_has_no_fault() -> None:
    assert check_documents([ACME, other("umbrella"), {"tenant": "bare"}]) == []


def test_every_fault_of_every_document_is_told_at_once() -> None:
    one, two = acme(), other("umbrella")
    one["tools"][0]["risk"] = "x"
    one["agents"][0]["owner"] = "eve"
    two["tools"][1]["executor"] = {}
    assert [":".join(fault.split(":")[:2]) for fault in check_documents([one, two])] == [
        "acme: agents/0/owner",
        "acme: tools/0/risk",
        "umbrella: tools/1/executor/kind",
    ]


@pytest.mark.parametrize("document", [[], "acme", 7, {}, {"tenant": 7}])
def test_what_is_no_document_is_told_by_its_place(document: Any) -> None:
    (fault,) = check_documents([document])
    assert fault.startswith("document 1: ")


def test_a_tenant_stands_in_a_file_once() -> None:
    assert check_documents([ACME, ACME]) == ["acme: tenant: Is there 2 times in the file."]


def test_a_username_is_one_persons_in_the_file_and_in_the_service() -> None:
    mallory = {"username": "alice", "email": "mallory@umbrella.test", "role": "admin"}
    thief = {"tenant": "umbrella", "members": [mallory]}
    told = "umbrella: members/0/email: This username is a person's with another e-mail address."
    assert check_documents([ACME, thief]) == [told]
    User.objects.create(username="alice", email="alice@acme.test")
    assert check_documents([thief]) == [told]
    User.objects.filter(username="alice").update(email="")
    assert check_documents([thief]) == [told]
    assert check_documents([{"tenant": "x", "members": [{**mallory, "email": "ALICE@acme.test"}]}])
    User.objects.filter(username="alice").update(email="alice@acme.test")
    assert not check_documents(
        [{"tenant": "x", "members": [{**mallory, "email": "ALICE@acme.test"}]}]
    )


@pytest.mark.django_db(transaction=True)
def test_a_file_with_a_fault_changes_nothing(apply: Apply) -> None:
    broken = acme()
    broken["policy"]["rules"][0]["then"] = "maybe"
    applied = apply(other("umbrella"), broken)
    assert applied.error.startswith("nothing was changed\nacme: policy/rules/0/then: ")
    assert applied.credentials == {}
    assert not Tenant.objects.exists()
    assert not User.objects.exists()


def test_each_effect_can_be_declared() -> None:
    for effect in Effect:
        document = acme()
        document["tools"][0]["effect"] = str(effect)
        document["tools"][0]["compensate"] = {"url": "http://127.0.0.1:9000/refund/{key}/undo"}
        assert check_documents([document]) == []
