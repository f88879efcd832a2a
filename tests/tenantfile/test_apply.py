"""A tenant becomes what its file says: once, wholly, or not at all."""

import io
import json
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import DatabaseError, connections
from django.test import Client

from approvals.models import GroupPermission, PolicyVersion, TenantPermission, ToolPermission
from interrupts.models import Tool, ToolVersion
from tenants.models import Agent, Group, JournalEntry, Membership, Tenant, User
from tenants.scope import tenant_scope
from tests.tenantfile.conftest import ACME, Apply, acme, other

pytestmark = pytest.mark.django_db(transaction=True)


def tenant(slug: str = "acme") -> Tenant:
    return Tenant.objects.get(slug=slug)


def journal(slug: str = "acme") -> list[str]:
    found = tenant(slug)
    with tenant_scope(found.pk):
        rows = JournalEntry.objects.filter(stream=found.pk).order_by("seq")
        return list(rows.values_list("kind", flat=True))


def everything() -> dict[str, Any]:
    """What a refusal must leave as it was."""
    found: dict[str, Any] = {"users": sorted(User.objects.values_list("username", "password"))}
    for one in Tenant.objects.order_by("slug"):
        with tenant_scope(one.pk):
            found[one.slug] = {
                "tenant": (one.name, one.authority_version, one.journal_seq),
                "members": sorted(
                    Membership.objects.values_list("user__username", "role", "active")
                ),
                "agents": sorted(Agent.objects.values_list("name", "active")),
                "groups": sorted(Group.objects.values_list("name", flat=True)),
                "tools": sorted(Tool.objects.values_list("name", "current__number", "retired_at")),
                "policies": sorted(PolicyVersion.objects.values_list("number", "digest")),
                "grants": ToolPermission.objects.count() + TenantPermission.objects.count(),
            }
    return found


def test_a_file_makes_a_tenant(apply: Apply) -> None:
    applied = apply(ACME)
    assert applied.succeeded, applied.error
    with tenant_scope(tenant().pk):
        assert dict(Membership.objects.values_list("user__username", "role")) == {
            "ada": "admin",
            "alice": "approver",
            "bob": "approver",
            "vera": "viewer",
        }
        assert dict(Agent.objects.values_list("name", "owner__username")) == {
            "bot": "ada",
            "cron": None,
        }
        assert sorted(Tool.objects.values_list("name", "current__number")) == [
            ("local.shell", 1),
            ("mail.send", 1),
            ("payments.refund", 1),
        ]
        policy = PolicyVersion.objects.get()
        assert (policy.number, policy.status, policy.document) == (1, "published", ACME["policy"])
        assert TenantPermission.objects.get().user.username == "alice"
        permission = ToolPermission.objects.get()
        assert (permission.user.username, permission.content_object.name) == ("bob", "mail.send")
    assert "+ member alice: role approver" in applied.output
    assert "policy.added" in journal()


def test_the_second_time_nothing_changes(apply: Apply) -> None:
    apply(ACME, other("umbrella"))
    before = everything()
    again = apply(ACME, other("umbrella"))
    assert again.output.strip() == "no changes"
    assert everything() == before


def test_credentials_sign_in_and_are_given_out_once(apply: Apply, client: Client) -> None:
    first = apply(ACME).credentials
    assert set(first["acme"]["agents"]) == {"bot", "cron"}
    assert set(first["acme"]["users"]) == {"ada", "alice", "bob", "vera"}
    assert set(first["acme"]["users"]["ada"]) == {"password", "token"}
    assert set(first["acme"]["tools"]) == {"payments.refund", "mail.send"}
    assert all(one.startswith("whsec_") for one in first["acme"]["tools"].values())
    for secret in (first["acme"]["agents"]["bot"], first["acme"]["users"]["vera"]["token"]):
        answer = client.options("/api/v1/nowhere", headers={"Authorization": f"Bearer {secret}"})
        assert answer.status_code == 404
    assert apply(ACME).credentials == first


def test_what_is_newly_made_is_added_to_what_was_given_out(apply: Apply) -> None:
    first = apply(ACME).credentials
    people = [*ACME["members"], {"username": "eve", "email": "eve@acme.test", "role": "viewer"}]
    second = apply(acme(members=people), other("umbrella")).credentials
    assert set(second) == {"acme", "umbrella"}
    assert set(second["acme"]["users"]) == {*first["acme"]["users"], "eve"}
    assert second["acme"]["users"]["ada"] == first["acme"]["users"]["ada"]


def test_without_a_place_for_them_no_credentials_are_made(apply: Apply) -> None:
    assert apply(ACME, given=False).succeeded
    with tenant_scope(tenant().pk):
        assert not Tool.objects.exclude(secret=None).exists()
    later = apply(ACME).credentials["acme"]
    assert set(later["agents"]) == {"bot", "cron"}
    assert set(later["users"]["ada"]) == {"token"}
    assert set(later["tools"]) == {"payments.refund", "mail.send"}


def test_the_credentials_are_their_owners_alone(tmp_path: Path, apply: Apply) -> None:
    apply(ACME)
    out = tmp_path / "credentials.json"
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert [one.name for one in tmp_path.iterdir() if "credentials" in one.name] == [out.name]


@pytest.mark.parametrize("content", ["not json", "[]", '{"acme": 1}', '{"acme": {"x": {}}}'])
def test_a_file_that_holds_something_else_is_not_overwritten(
    tmp_path: Path, apply: Apply, content: str
) -> None:
    out = tmp_path / "credentials.json"
    out.write_text(content)
    (tmp_path / "tenants.yaml").write_text(json.dumps(ACME))
    with pytest.raises(CommandError, match="nothing was changed"):
        call_command("apply", tmp_path / "tenants.yaml", credentials_out=out)
    assert out.read_text() == content
    assert not Tenant.objects.exists()


def test_a_folder_that_is_not_there_is_told_before_anything_is_changed(tmp_path: Path) -> None:
    (tmp_path / "tenants.yaml").write_text(json.dumps(ACME))
    with pytest.raises(CommandError, match="no such folder"):
        call_command("apply", tmp_path / "tenants.yaml", credentials_out=tmp_path / "no" / "c.json")
    assert not Tenant.objects.exists()


def test_where_the_changes_fail_no_credentials_are_left(
    tmp_path: Path, apply: Apply, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise DatabaseError("the disk is full")

    monkeypatch.setattr("approvals.tenantfile.applying.publish_policy", fail)
    applied = apply(ACME)
    assert "nothing was changed: the database says: the disk is full" in applied.error
    assert applied.credentials == {}
    assert [one.name for one in tmp_path.iterdir()] == ["tenants.yaml"]
    assert not Tenant.objects.exists()
    assert not User.objects.exists()


def test_where_the_file_cannot_be_put_in_its_place_it_is_said_where_it_is(
    tmp_path: Path, apply: Apply, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "replace", fail)
    applied = apply(ACME)
    assert "the changes were made, but" in applied.error
    staged = Path(applied.error.rpartition(" in ")[2].strip())
    assert set(json.loads(staged.read_text())) == {"acme"}
    assert tenant()


def test_a_dry_run_tells_everything_and_makes_nothing(tmp_path: Path, apply: Apply) -> None:
    dry = apply(ACME, dry_run=True)
    assert "+ tool payments.refund" in dry.output
    assert "none was made" in dry.output
    assert dry.credentials == {}
    assert not Tenant.objects.exists()
    assert not User.objects.exists()
    wet = apply(ACME)
    assert wet.output.splitlines()[:-2] == dry.output.splitlines()[:-1]


@pytest.mark.parametrize("broken", [0, 1])
def test_one_invalid_document_changes_nothing_of_any(apply: Apply, broken: int) -> None:
    apply(ACME)
    before = everything()
    documents = [acme(name="Acme Ltd"), other("umbrella")]
    documents[broken]["tools"][0]["executor"]["url"] = "ftp://127.0.0.1/x"
    applied = apply(*documents)
    assert f"{documents[broken]['tenant']}: tools/0/executor/url: " in applied.error
    assert everything() == before


def test_a_policy_that_comes_back_is_a_new_version(apply: Apply) -> None:
    apply(ACME)
    before = everything()
    apply(acme(policy={"rules": []}))
    apply(ACME)
    after = everything()
    assert [number for number, _ in after["acme"]["policies"]] == [1, 2, 3]
    assert {**after["acme"], "policies": 0, "tenant": 0} == {
        **before["acme"],
        "policies": 0,
        "tenant": 0,
    }


def test_what_is_left_out_ends(apply: Apply, client: Client) -> None:
    given = apply(ACME).credentials["acme"]
    version = tenant().authority_version
    applied = apply(
        acme(members=ACME["members"][:1], groups={}, agents=[{"name": "cron"}], tools=[])
    )
    for line in (
        "- member bob: deactivated, their tokens are revoked",
        "- agent bot: deactivated, its keys are revoked",
        "- group finance: removed",
        "- tool mail.send: retired",
        "- authority alice: may decide nothing",
    ):
        assert line in applied.output
    assert tenant().authority_version > version
    with tenant_scope(tenant().pk):
        assert not Tool.objects.filter(retired_at=None).exists()
        assert ToolVersion.objects.count() == 3
        assert not ToolPermission.objects.exists()
        assert not TenantPermission.objects.exists()
    for secret in (given["agents"]["bot"], given["users"]["bob"]["token"]):
        answer = client.options("/api/v1/nowhere", headers={"Authorization": f"Bearer {secret}"})
        assert answer.status_code == 401
    back = apply(ACME)
    assert "+ member bob" in back.output
    assert back.credentials["acme"]["agents"]["bot"] != given["agents"]["bot"]
    assert back.credentials["acme"]["users"]["bob"]["password"] == given["users"]["bob"]["password"]
    assert back.credentials["acme"]["tools"] == given["tools"]


def test_the_difference_is_told_by_member(apply: Apply) -> None:
    apply(ACME)
    changed = acme()
    changed["members"][3]["role"] = "operator"
    changed["agents"][0]["owner"] = "alice"
    changed["agents"][1]["daily_budget"] = {"steps": 9, "cost": "1.50"}
    changed["tools"][2] |= {"cost": "0.50", "context": [{"name": "host", "longest_age": 60}]}
    changed["tools"][1]["risk"] = "medium"
    changed["members"][2]["may_decide"] = ["payments.*", "mail.send"]
    output = apply(changed).output
    assert "~ member vera\n      role: viewer -> operator" in output
    assert "~ agent bot\n      owner: ada -> alice" in output
    assert '~ agent cron\n      daily_budget: null -> {"cost": "1.50", "steps": 9}' in output
    assert (
        "~ tool local.shell\n      version: 1 -> 2\n      cost: null -> 0.50\n"
        '      context: null -> [{"longest_age": 60, "name": "host"}]'
    ) in output
    assert "~ tool mail.send\n      version: 1 -> 2\n      risk: low -> medium" in output
    assert (
        '~ authority bob\n      may_decide: ["mail.send"] -> ["mail.send", "payments.refund"]'
        in output
    )
    assert apply(changed).output.splitlines()[-1] == "no changes"


def test_a_limit_is_told_by_member_and_again_is_no_change(apply: Apply) -> None:
    apply(ACME)
    changed = acme()
    limit = "decimal(arguments.amount) <= decimal('500')"
    changed["members"][2]["may_decide"] = [{"tools": ["payments.*"], "condition": limit}]
    told = json.dumps([{"tools": ["payments.refund"], "condition": limit}])
    assert (
        f'~ authority bob\n      may_decide: ["mail.send"] -> {told}'
        in apply(changed, dry_run=True).output
    )
    assert apply(changed).succeeded
    assert "no changes" in apply(changed).output
    changed["members"][2]["may_decide"] = ["payments.refund"]
    assert f'may_decide: {told} -> ["payments.refund"]' in apply(changed).output


def test_what_a_group_may_decide_is_told_and_ends_with_the_group(apply: Apply) -> None:
    apply(ACME)
    changed = acme()
    given = {"members": ["bob"], "may_decide": ["payments.*", "mails.*"]}
    changed["groups"]["finance"] = given
    changed["groups"]["clerks"] = {"members": ["bob"], "may_decide": ["mail.send"]}
    output = apply(changed).output
    assert '+ group authority finance: may_decide ["payments.refund"]' in output
    assert "note: acme: groups/finance/may_decide/1: mails.* matches no tool" in output
    assert apply(changed).output.splitlines()[-1] == "no changes"
    changed["groups"]["finance"] = ["bob"]
    del changed["groups"]["clerks"]
    output = apply(changed).output
    for name in ("clerks", "finance"):
        assert f"- group authority {name}: may decide nothing by being in it" in output
    assert journal()[-3:] == ["group_authority.removed", "group.removed", "group_authority.removed"]
    assert apply(changed).output.splitlines()[-1] == "no changes"
    with tenant_scope(tenant().pk):
        assert not GroupPermission.objects.exists()


def test_a_glob_that_matches_no_tool_is_noted(apply: Apply) -> None:
    changed = acme()
    changed["members"][2]["may_decide"] = ["mails.*"]
    applied = apply(changed)
    assert applied.succeeded
    assert "note: acme: members/2/may_decide/0: mails.* matches no tool" in applied.output


def test_every_change_stands_in_the_tenants_journal(apply: Apply) -> None:
    apply(ACME)
    kinds = journal()
    assert kinds[0] == "tenant.added"
    assert {
        "member.added",
        "group.added",
        "agent.added",
        "tool.added",
        "authority.added",
        "policy.added",
    } <= set(kinds)
    with tenant_scope(tenant().pk):
        text = "".join(JournalEntry.objects.values_list("text", flat=True))
    assert "aby_" not in text
    assert "whsec_" not in text


def test_a_folder_that_may_not_be_written_to_is_told(
    apply: Apply, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.access", lambda *_: False)
    applied = apply(ACME)
    assert "may not be written to" in applied.error
    assert not Tenant.objects.exists()


def test_two_files_at_once_are_applied_one_after_the_other(tmp_path: Path) -> None:
    documents = [ACME, other("umbrella")]
    barrier = threading.Barrier(2)

    def apply_in(order: list[dict[str, Any]], number: int) -> str:
        output = io.StringIO()
        file = tmp_path / f"{number}.yaml"
        file.write_text("\n---\n".join(map(json.dumps, order)))
        barrier.wait(20)
        try:
            call_command("apply", file, stdout=output)
        finally:
            connections.close_all()
        return output.getvalue()

    with ThreadPoolExecutor(2) as pool:
        one = pool.submit(apply_in, documents, 1)
        two = pool.submit(apply_in, documents[::-1], 2)
        outputs = sorted((one.result(60), two.result(60)), key=len)
    assert outputs[0].strip() == "no changes"
    assert "+ tenant umbrella" in outputs[1]
