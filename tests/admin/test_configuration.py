"""Admins change things through services: with a journal entry, and never for themselves."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.db import transaction
from django.test import Client

from approvals.models import Assignment, PolicyVersion, Substitution
from approvals.services.grants import held_by, set_grants
from approvals.tenantfile import policytext
from config.keys import secret_hash
from interrupts.models import Freeze, Step, Tool, ToolVersion
from tenants.errors import OwnAuthority
from tenants.journal import SYSTEM, Actor
from tenants.models import (
    Agent,
    AgentKey,
    Group,
    GroupMember,
    JournalEntry,
    Membership,
    Tenant,
    User,
    UserToken,
)
from tenants.scope import tenant_scope
from tenants.services.agents import AgentWanted, set_agents
from tenants.services.groups import set_groups
from tenants.services.people import MemberWanted, set_members
from tests.admin.conftest import Place, signed_in
from tests.approvals.house import House

MAIL = {
    "name": "mail.send",
    "description": "",
    "effect": "idempotent",
    "risk": "low",
    "arguments": '{"type": "object", "properties": {"to": {"type": "string"}}}',
    "on_failure": "tell",
    "executor": '{"kind": "http", "url": "https://mail.test/send"}',
}


def entries(place: Place) -> list[tuple[str, dict[str, Any], dict[str, str]]]:
    with tenant_scope(place.id):
        rows = JournalEntry.objects.filter(stream=place.id).order_by("seq")
        read = [(row.kind, json.loads(row.text)) for row in rows]
    return [(kind, said["data"], said["actor"]) for kind, said in read]


def head(place: Place) -> tuple[int, int]:
    tenant = Tenant.objects.get(pk=place.id)
    return tenant.journal_seq, tenant.authority_version


def member(place: Place, who: str) -> Membership:
    with tenant_scope(place.id):
        return Membership.objects.get(user=place.people[who])


def make_tool(place: Place, browser: Client, **more: str) -> Tool:
    answer = browser.post("/admin/interrupts/tool/add/", {**MAIL, **more})
    assert answer.status_code in {200, 302}, answer.content
    with tenant_scope(place.id):
        return Tool.objects.select_related("current").get(name=more.get("name", "mail.send"))


def test_a_new_person_gets_a_password_that_is_shown_once(acme: Place) -> None:
    browser = acme.browser("ada")
    with tenant_scope(acme.id):
        assert not Membership.objects.filter(user__username="nora").exists()
    made = browser.post(
        "/admin/tenants/membership/add/",
        {"username": "nora", "email": "nora@acme.test", "role": "approver", "may_decide": "*"},
    )
    password = re.findall(r"<code[^>]*>([^<]+)</code>", made.content.decode())
    assert (made.status_code, len(password)) == (200, 1)
    assert made.headers["Cache-Control"].count("no-store") == 1
    nora = User.objects.get(username="nora")
    assert nora.check_password(password[0])
    with tenant_scope(acme.id):
        assert held_by(nora.pk) == ["*"]
        pk = Membership.objects.get(user=nora).pk
    assert (
        password[0] not in browser.get(f"/admin/tenants/membership/{pk}/change/").content.decode()
    )
    actor = {"id": str(acme.people["ada"].pk), "kind": "user"}
    assert entries(acme)[-2:] == [
        ("member.added", {"name": "nora", "before": None, "after": {"role": "approver"}}, actor),
        (
            "authority.added",
            {"name": "nora", "before": None, "after": {"may_decide": ["*"]}},
            actor,
        ),
    ]
    assert not LogEntry.objects.exists()


def test_another_role_and_other_tools_stand_in_the_journal_before_and_after(acme: Place) -> None:
    browser, bob = acme.browser("ada"), member(acme, "bob")
    make_tool(acme, browser)
    url = f"/admin/tenants/membership/{bob.pk}/change/"
    assert browser.post(url, {"role": "operator", "may_decide": "mail.*"}).status_code == 302
    assert [one[:2] for one in entries(acme)[-2:]] == [
        (
            "member.changed",
            {"name": "bob", "before": {"role": "approver"}, "after": {"role": "operator"}},
        ),
        (
            "authority.added",
            {"name": "bob", "before": None, "after": {"may_decide": ["mail.send"]}},
        ),
    ]
    before = head(acme)
    assert browser.post(url, {"role": "operator", "may_decide": "mail.*"}).status_code == 302
    assert head(acme) == before


def test_a_limit_is_shown_edited_and_journaled_before_and_after(acme: Place) -> None:
    browser, bob = acme.browser("ada"), member(acme, "bob")
    make_tool(acme, browser)
    url = f"/admin/tenants/membership/{bob.pk}/change/"
    limit, line = "tool.risk == 'low'", "mail.* where tool.risk == 'low'"
    assert browser.post(url, {"role": "approver", "may_decide": line}).status_code == 302
    limited = {"may_decide": [{"condition": limit, "tools": ["mail.send"]}]}
    assert entries(acme)[-1][:2] == (
        "authority.added",
        {"name": "bob", "before": None, "after": limited},
    )
    shown = browser.get(url).context["adminform"].form.initial["may_decide"]
    assert shown == "mail.send where tool.risk == 'low'"
    before = head(acme)
    assert browser.post(url, {"role": "approver", "may_decide": shown}).status_code == 302
    answer = browser.post(url, {"role": "approver", "may_decide": "mail.* where amount < 5"})
    assert "There is no amount here" in str(answer.context["adminform"].form.errors)
    assert head(acme) == before
    assert browser.post(url, {"role": "approver", "may_decide": "mail.*"}).status_code == 302
    assert entries(acme)[-1][:2] == (
        "authority.changed",
        {"name": "bob", "before": limited, "after": {"may_decide": ["mail.send"]}},
    )


def test_an_admin_says_who_stands_in_for_whom_and_never_themself_for_another(acme: Place) -> None:
    browser = acme.browser("ada")
    add = "/admin/approvals/substitution/add/"
    asked = {
        "absent": str(member(acme, "bob").pk),
        "stands_in": str(member(acme, "olga").pk),
        "starts_at": "",
        "ends_at": "2999-12-31 18:00",
    }
    before = head(acme)
    for wrong in ({"stands_in": str(member(acme, "ada").pk)}, {"stands_in": asked["absent"]}):
        answer = browser.post(add, {**asked, **wrong})
        assert (answer.status_code, bool(answer.context["adminform"].form.errors)) == (200, True)
    assert browser.post(add, {**asked, "ends_at": "2020-01-01 18:00"}).status_code == 200
    assert head(acme) == before

    assert browser.post(add, asked).status_code == 302
    with tenant_scope(acme.id):
        row = Substitution.objects.get()
    assert (row.person_id, row.substitute_id) == (acme.people["bob"].pk, acme.people["olga"].pk)
    version = head(acme)[1]
    end = f"/admin/approvals/substitution/{row.pk}/end/"
    assert browser.get(end).status_code == 200
    assert browser.post(end).status_code == 303
    with tenant_scope(acme.id):
        assert Substitution.objects.get().ended_at is not None
    assert head(acme)[1] == version + 1
    assert [one[0] for one in entries(acme)[-2:]] == ["substitution.added", "substitution.removed"]


def test_a_glob_that_is_none_is_told_at_its_field(acme: Place) -> None:
    browser, before = acme.browser("ada"), head(acme)
    url = f"/admin/tenants/membership/{member(acme, 'bob').pk}/change/"
    answer = browser.post(url, {"role": "approver", "may_decide": "mail.[send"})
    assert answer.status_code == 200
    assert "may_decide" in answer.context["adminform"].form.errors
    assert head(acme) == before


def test_nobody_gives_themselves_what_they_may_decide(acme: Place) -> None:
    browser, before = acme.browser("ada"), head(acme)
    url = f"/admin/tenants/membership/{member(acme, 'ada').pk}/change/"
    answer = browser.post(url, {"role": "admin", "may_decide": "*"})
    assert "Nobody gives themselves" in answer.content.decode()
    with tenant_scope(acme.id):
        assert held_by(acme.people["ada"].pk) == []
    assert head(acme) == before


@pytest.mark.parametrize("what", ["grant", "role", "join", "group", "owner"])
def test_the_services_refuse_authority_for_oneself(acme: Place, what: str) -> None:
    ada = Actor("user", str(acme.people["ada"].pk))
    outside = User.objects.create(username="root", is_superuser=True, email="r@s.test")
    with tenant_scope(acme.id), transaction.atomic():
        set_agents(SYSTEM, [AgentWanted("bot", "ada")])
        set_groups(SYSTEM, {"finance": []})
    acts = {
        "grant": lambda: set_grants(ada, {"ada": ["*"]}),
        "role": lambda: set_members(ada, [MemberWanted("ada", "ada@acme.test", "operator")]),
        "join": lambda: set_members(
            Actor("user", str(outside.pk)), [MemberWanted("root", "r@s.test", "admin")]
        ),
        "group": lambda: set_groups(ada, {"finance": ["ada"]}),
        "owner": lambda: set_agents(ada, [AgentWanted("bot", "bob")]),
    }
    before = head(acme)
    with tenant_scope(acme.id), pytest.raises(OwnAuthority), transaction.atomic():
        acts[what]()
    assert head(acme) == before
    with tenant_scope(acme.id):
        assert held_by(acme.people["ada"].pk) == []
        assert not GroupMember.objects.exists()
        assert Membership.objects.get(user=acme.people["ada"]).role == "admin"
        assert Agent.objects.get(name="bot").owner == acme.people["ada"]


def test_another_admin_may_give_it(acme: Place) -> None:
    alan = Actor("user", str(acme.people["alan"].pk))
    with tenant_scope(acme.id), transaction.atomic():
        set_grants(alan, {"ada": ["*"]})
        set_groups(alan, {"finance": ["ada"]})
        assert held_by(acme.people["ada"].pk) == ["*"]


def test_groups_are_made_changed_and_removed(acme: Place) -> None:
    browser = acme.browser("ada")
    add = {"name": "finance", "members": [str(member(acme, "bob").pk)]}
    assert browser.post("/admin/tenants/group/add/", add).status_code == 302
    with tenant_scope(acme.id):
        group = Group.objects.get(name="finance")
    again = browser.post("/admin/tenants/group/add/", {"name": "finance"})
    assert "name" in again.context["adminform"].form.errors
    assert (
        browser.post(f"/admin/tenants/group/{group.pk}/change/", {"members": []}).status_code == 302
    )
    given = {"members": [], "may_decide": "mail.[\n* where tool.risk == 'low'"}
    refused = browser.post(f"/admin/tenants/group/{group.pk}/change/", given)
    assert "may_decide" in refused.context["adminform"].form.errors
    given["may_decide"] = "* where tool.risk == 'low'"
    for _ in range(2):
        answer = browser.post(f"/admin/tenants/group/{group.pk}/change/", given)
        assert answer.status_code == 302
    shown = browser.get(f"/admin/tenants/group/{group.pk}/change/").context["adminform"].form
    assert shown.initial["may_decide"] == given["may_decide"]
    assert browser.get(f"/admin/tenants/group/{group.pk}/remove/").status_code == 200
    with tenant_scope(acme.id):
        assert Group.objects.filter(pk=group.pk).exists()
    assert browser.post(f"/admin/tenants/group/{group.pk}/remove/").status_code == 303
    low = {"may_decide": [{"condition": "tool.risk == 'low'", "tools": ["*"]}]}
    assert [(kind, data["before"], data["after"]) for kind, data, _ in entries(acme)[-5:]] == [
        ("group.added", None, {"members": ["bob"]}),
        ("group.changed", {"members": ["bob"]}, {"members": []}),
        ("group_authority.added", None, low),
        ("group_authority.removed", low, None),
        ("group.removed", {"members": []}, None),
    ]


def test_what_a_group_may_decide_is_shown_of_who_is_in_it_and_not_given_by_them(
    acme: Place,
) -> None:
    browser = acme.browser("ada")
    with tenant_scope(acme.id), transaction.atomic():
        set_groups(SYSTEM, {"finance": ["ada", "bob"]})
        group = Group.objects.get(name="finance")
        both = [str(one.membership_id) for one in group.members.all()]
    url = f"/admin/tenants/group/{group.pk}/change/"
    before = head(acme)
    answer = browser.post(url, {"members": both, "may_decide": "*"})
    assert b"Nobody gives a group that they are in what it may decide." in answer.content
    assert head(acme) == before
    assert browser.post(url, {"members": both[1:], "may_decide": "*"}).status_code == 302
    inside = member(acme, "bob" if str(member(acme, "bob").pk) in both[1:] else "ada")
    shown = browser.get(f"/admin/tenants/membership/{inside.pk}/change/")
    assert b"finance: *" in shown.content


def test_an_agents_budget_of_a_day_is_set_shown_and_taken_off(acme: Place) -> None:
    browser = acme.browser("ada")
    daily = {"daily_steps": "200", "daily_cost": "12.50", "daily_seconds": "", "daily_tokens": ""}
    browser.post("/admin/tenants/agent/add/", {"name": "bot", "owner": "", **daily})
    with tenant_scope(acme.id):
        bot = Agent.objects.get(name="bot")
    assert bot.daily_budget == {"steps": 200, "cost": "12.50"}
    url = f"/admin/tenants/agent/{bot.pk}/change/"
    shown = browser.get(url).content.decode()
    assert 'value="200"' in shown
    assert 'value="12.50"' in shown
    before = head(acme)
    wrong = browser.post(url, {"owner": "", **daily, "daily_steps": "-1"})
    assert "daily_steps" in wrong.context["adminform"].form.errors
    assert head(acme) == before
    assert browser.post(url, {"owner": ""}).status_code == 302
    kind, data, _ = entries(acme)[-1]
    assert (kind, data["after"]) == ("agent.changed", {"owner": None})
    assert head(acme) == (before[0] + 1, before[1] + 1)
    assert browser.get("/admin/interrupts/agentday/").status_code == 200


def test_a_key_is_shown_once_kept_as_a_hash_and_revoked(acme: Place) -> None:
    browser = acme.browser("ada")
    made = browser.post("/admin/tenants/agent/add/", {"name": "bot", "owner": ""})
    (first,) = re.findall(r"aby_agent_[\w-]+", made.content.decode())
    with tenant_scope(acme.id):
        bot = Agent.objects.get(name="bot")
    made = browser.post("/admin/tenants/agentkey/add/", {"agent": str(bot.pk)})
    (second,) = re.findall(r"aby_agent_[\w-]+", made.content.decode())
    with tenant_scope(acme.id):
        keys = list(AgentKey.objects.order_by("id"))
    assert [bytes(key.hash) for key in keys] == [secret_hash(first), secret_hash(second)]
    for path in ("", f"{keys[1].pk}/change/", f"{keys[1].pk}/history/", f"{keys[1].pk}/revoke/"):
        shown = browser.get(f"/admin/tenants/agentkey/{path}").content.decode()
        assert second not in shown
        assert bytes(keys[1].hash).hex() not in shown
    before = head(acme)
    assert browser.post(f"/admin/tenants/agentkey/{keys[1].pk}/revoke/").status_code == 303
    kind, data, _ = entries(acme)[-1]
    assert (kind, data["name"], data["after"]) == ("key.removed", "bot", None)
    assert data["before"] == {"id": str(keys[1].pk), "hint": second[:16]}
    assert head(acme) == (before[0] + 1, before[1] + 1)
    bearer = {"Authorization": f"Bearer {second}"}
    assert Client().get("/api/v1/runs", headers=bearer).status_code == 401
    assert browser.post(f"/admin/tenants/agentkey/{keys[1].pk}/revoke/").status_code == 303
    assert head(acme) == (before[0] + 1, before[1] + 1)


def test_a_change_of_a_tool_makes_its_next_version(acme: Place) -> None:
    browser = acme.browser("ada")
    tool = make_tool(acme, browser)
    url = f"/admin/interrupts/tool/{tool.pk}/change/"
    assert browser.get(url).status_code == 200
    changed = {**MAIL, "risk": "high"}
    assert browser.post(url, changed).status_code == 302
    assert browser.post(url, changed).status_code == 302  # the same again makes none
    with tenant_scope(acme.id):
        rows = list(ToolVersion.objects.order_by("number").values_list("number", "risk"))
        assert rows == [(1, "low"), (2, "high")]
    kind, data, _ = entries(acme)[-1]
    assert (kind, data["before"]["risk"], data["after"]["risk"]) == ("tool.changed", "low", "high")


def test_a_fault_of_a_declaration_is_told_at_its_field(acme: Place) -> None:
    browser, before = acme.browser("ada"), head(acme)
    wrong = {**MAIL, "arguments": '{"type": "nothing"}', "headline": "{missing}"}
    answer = browser.post("/admin/interrupts/tool/add/", wrong)
    assert "arguments" in answer.context["adminform"].form.errors
    wrong = {**MAIL, "executor": '{"kind": "http"}'}
    answer = browser.post("/admin/interrupts/tool/add/", wrong)
    assert "/url" in str(answer.context["adminform"].form.errors["executor"])
    assert head(acme) == before


def test_a_signing_secret_is_shown_once(acme: Place) -> None:
    browser = acme.browser("ada")
    made = browser.post("/admin/interrupts/tool/add/", MAIL)
    (secret,) = re.findall(r"whsec_[\w+/=]+", made.content.decode())
    with tenant_scope(acme.id):
        tool = Tool.objects.get()
    for path in ("", f"{tool.pk}/change/", f"{tool.pk}/history/"):
        assert secret not in browser.get(f"/admin/interrupts/tool/{path}").content.decode()
    assert browser.post(f"/admin/interrupts/tool/{tool.pk}/retire/").status_code == 303
    with tenant_scope(acme.id):
        assert Tool.objects.get().retired_at is not None


def draft_of(place: Place) -> PolicyVersion:
    with tenant_scope(place.id):
        return PolicyVersion.objects.filter(status="draft").order_by("-number").first()


ALLOW = {"name": "reads", "trigger": "action", "tools": ["*.get"], "then": "allow"}


def test_a_draft_is_checked_published_and_stays(acme: Place) -> None:
    browser = acme.browser("ada")
    add = {"document": json.dumps({"rules": [ALLOW]}), "why": "reads"}
    assert browser.post("/admin/approvals/policyversion/add/", add).status_code == 302
    draft = draft_of(acme)
    url = f"/admin/approvals/policyversion/{draft.pk}"
    page = browser.get(f"{url}/publish/")
    assert "reads" in page.content.decode()
    before = head(acme)
    stale = {"seen": draft.digest, "instead_of": "7"}
    assert browser.post(f"{url}/publish/", stale).status_code == 412
    assert (head(acme), draft_of(acme)) == (before, draft)
    seen = {"seen": draft.digest, "instead_of": "0"}
    assert browser.post(f"{url}/publish/", seen).status_code == 303
    with tenant_scope(acme.id):
        published = PolicyVersion.objects.get(pk=draft.pk)
    assert (published.status, published.published_by_id) == ("published", acme.people["ada"].pk)
    assert [kind for kind, *_ in entries(acme)[-2:]] == ["draft.added", "policy.added"]
    assert head(acme)[1] == before[1] + 1
    before = head(acme)
    for path in ("change", "discard", "publish"):
        answer = browser.post(f"{url}/{path}/", {**add, **seen})
        assert answer.status_code in {403, 404, 422}, path
    assert head(acme) == before


@pytest.mark.parametrize("then", ["deny", "allow"])
def test_before_a_draft_is_published_it_is_tried_on_what_was_recorded(
    lived: House, then: str
) -> None:
    browser = signed_in(User.objects.get(username="ada"), lived.tenant.pk)
    rule = {"name": "all", "trigger": "action", "tools": ["*"], "then": then}
    rule |= {"reason": "no"} if then == "deny" else {}
    with tenant_scope(lived.tenant.pk):
        draft = PolicyVersion.objects.get(status="draft")
        steps = list(Step.objects.values_list("pk", flat=True))
    url = f"/admin/approvals/policyversion/{draft.pk}"
    changed = {"document": json.dumps({"rules": [rule]}), "why": "all"}
    assert browser.post(f"{url}/change/", changed).status_code == 302
    before = lived_head(lived)

    page = browser.get(f"{url}/publish/").content.decode()

    assert f"Tried on the latest {len(steps)} steps" in page
    assert f"decided <b>{len(steps)}</b> of them otherwise" in page
    assert all(f'href="/steps/{step}/why"' in page for step in steps)
    assert ("(looser)" in page) is (then == "allow")
    assert lived_head(lived) == before


def lived_head(lived: House) -> tuple[int, int]:
    with tenant_scope(lived.tenant.pk):
        return JournalEntry.objects.count(), PolicyVersion.objects.count()


def test_a_draft_with_faults_is_not_kept_and_each_is_told_with_its_pointer(acme: Place) -> None:
    browser, before = acme.browser("ada"), head(acme)
    wrong = {"rules": [{**ALLOW, "then": "perhaps"}, {**ALLOW, "approvers": ["nobody"]}]}
    answer = browser.post(
        "/admin/approvals/policyversion/add/", {"document": json.dumps(wrong), "why": ""}
    )
    told = str(answer.context["adminform"].form.errors["document"])
    assert "/rules/0/then: " in told
    assert "/rules/1/name: " in told
    assert draft_of(acme) is None
    assert head(acme) == before


YAML = """rules:
  - name: reads
    trigger: action
    then: allow
    tools: ["*.get"]
  - name: pays
    trigger: action
    then: approve
    approvers: [nobody]
    expires_in: yes
"""


def test_a_draft_is_written_as_yaml_its_faults_at_their_lines_and_its_difference_beside_it(
    acme: Place,
) -> None:
    browser, before = acme.browser("ada"), head(acme)
    path = "/admin/approvals/policyversion/add/"
    answer = browser.post(path, {"document": YAML, "why": ""})
    told = answer.context["adminform"].form.errors["document"]
    assert "Line 9, “approvers: [nobody]”: /rules/1/approvers/0: There is no such group." in told
    assert any(one.startswith("Line 10, “expires_in: yes”: /rules/1/expires_in: ") for one in told)
    bombs = (
        "a: &a [1]\nrules: *a\n",
        "rules: []\nrules: []\n",
        "rules: [\n",
        "",
        "---\n---\n1\n",
        "a: 2026-13-45",
    )
    for wrong in (*bombs, "rules: []\n---\nrules: []\n"):
        refused = browser.post(path, {"document": wrong, "why": ""})
        assert refused.status_code == 200, wrong
    assert (draft_of(acme), head(acme)) == (None, before)

    sound = (
        YAML.replace("[nobody]", "[ops]")
        .replace("yes", "60")
        .replace("  - name: pays", "  -\n    name: pays")
    )
    with tenant_scope(acme.id), transaction.atomic():
        set_groups(SYSTEM, {"ops": ["bob"]})
    assert browser.post(path, {"document": sound, "why": "pay"}).status_code == 302
    draft = draft_of(acme)
    assert [rule["name"] for rule in draft.document["rules"]] == ["reads", "pays"]
    page = browser.get(f"/admin/approvals/policyversion/{draft.pk}/change/").content.decode()
    assert "Against the version in force" in page
    assert "+- name: pays" in page
    assert "  expires_in: 60" in page


def test_a_policy_written_as_yaml_is_the_same_when_it_is_read() -> None:
    odd = [
        "yes",
        "no",
        "1e2",
        "0x10",
        "2026-01-01",
        "null",
        "~",
        "a: b",
        "- x",
        "*a",
        "&a",
        "é ",
        "",
        "\n",
        "#",
    ]
    document = {"rules": [{"name": one, "reason": one, "at_least": 0.7} for one in odd], "n": 1e-7}
    assert policytext.read(policytext.write(document)) == document
    assert policytext.read(json.dumps(document)) == document
    (told,) = policytext.with_lines(json.dumps({"a": "x" * 200}), [("/a", "No.")])
    assert told == f"Line 1, “{json.dumps({'a': 'x' * 200})[:80]}…”: /a: No."


def test_an_older_draft_comes_into_force_over_a_newer_version(acme: Place) -> None:
    browser = acme.browser("ada")
    for why in ("older", "newer"):
        rules = [{**ALLOW, "name": why}]
        add = {"document": json.dumps({"rules": rules}), "why": why}
        browser.post("/admin/approvals/policyversion/add/", add)
    with tenant_scope(acme.id):
        older, newer = PolicyVersion.objects.order_by("number")
    for draft, instead_of in ((newer, 0), (older, 2)):
        asked = {"seen": draft.digest, "instead_of": str(instead_of)}
        path = f"/admin/approvals/policyversion/{draft.pk}/publish/"
        assert browser.post(path, asked).status_code == 303
    with tenant_scope(acme.id):
        in_force = PolicyVersion.objects.filter(status="published").order_by("-number").first()
    assert (in_force.pk, in_force.number) == (older.pk, 3)


def test_a_freeze_is_set_and_lifted(acme: Place) -> None:
    browser = acme.browser("ada")
    answer = browser.post("/admin/interrupts/freeze/add/", {"scope": "tenant", "note": "stop"})
    assert answer.status_code == 303
    with tenant_scope(acme.id):
        made = Freeze.objects.get()
    assert browser.get(f"/admin/interrupts/freeze/{made.pk}/lift/").status_code == 200
    assert Tenant.objects.get(pk=acme.id).freezes == 1
    assert browser.post(f"/admin/interrupts/freeze/{made.pk}/lift/").status_code == 303
    assert Tenant.objects.get(pk=acme.id).freezes == 0
    assert [kind for kind, *_ in entries(acme)[-2:]] == ["freeze.set", "freeze.lifted"]


def test_what_a_freeze_stops_is_shown_before_it_is_set(acme: Place) -> None:
    browser = acme.browser("ada")
    path = "/admin/interrupts/freeze/add/"
    asked = browser.post(path, {"scope": "tenant", "note": "stop", "look": "1"})
    assert "What it stops now" in asked.content.decode()
    unknown = browser.post(path, {"scope": "tool", "name": "no.such", "look": "1"})
    assert "there is no such tool" in unknown.content.decode()
    assert Tenant.objects.get(pk=acme.id).freezes == 0
    with tenant_scope(acme.id):
        assert not Freeze.objects.exists()


def test_who_leaves_loses_everything_and_the_journal_says_so(acme: Place) -> None:
    browser, bob = acme.browser("ada"), member(acme, "bob")
    with tenant_scope(acme.id), transaction.atomic():
        set_grants(SYSTEM, {"bob": ["*"]})
    assert browser.post(f"/admin/tenants/membership/{bob.pk}/end/").status_code == 303
    with tenant_scope(acme.id):
        assert not Membership.objects.get(pk=bob.pk).active
        assert held_by(bob.user_id) == []
    assert [kind for kind, *_ in entries(acme)[-2:]] == ["authority.removed", "member.removed"]
    history = browser.get(f"/admin/tenants/membership/{bob.pk}/history/").content.decode()
    assert "member.removed" in history


def test_a_person_known_elsewhere_joins_without_a_new_password(
    acme: Place, umbrella: Place
) -> None:
    browser, charlie = acme.browser("ada"), umbrella.people["charlie"]
    add = {"username": "charlie", "role": "viewer", "may_decide": ""}
    before, password = head(acme), charlie.password
    other = browser.post("/admin/tenants/membership/add/", {**add, "email": "x@acme.test"})
    assert "email" in other.context["adminform"].form.errors
    assert head(acme) == before
    joined = browser.post(
        "/admin/tenants/membership/add/", {**add, "email": "charlie@umbrella.test"}
    )
    assert joined.status_code == 302
    assert User.objects.get(username="charlie").password == password


def test_a_tenant_is_renamed_and_nothing_else_of_it_changes(acme: Place) -> None:
    browser, before = acme.browser("ada"), head(acme)
    url = f"/admin/tenants/tenant/{acme.id}/change/"
    said = {"name": "Acme Ltd", "slug": "other", "authority_version": "99"}
    assert browser.post(url, said).status_code == 302
    tenant = Tenant.objects.get(pk=acme.id)
    assert (tenant.name, tenant.slug, tenant.authority_version) == ("Acme Ltd", "acme", before[1])
    assert entries(acme)[-1][:2] == (
        "tenant.changed",
        {"name": "acme", "before": {"name": "Acme"}, "after": {"name": "Acme Ltd"}},
    )


def test_inboxes_follow_what_an_admin_gives_and_takes(lived: House) -> None:
    browser = signed_in(User.objects.get(username="ada"), lived.tenant.pk)
    with tenant_scope(lived.tenant.pk):
        bob = Membership.objects.get(user__username="bob")

    def waiting() -> int:
        with tenant_scope(lived.tenant.pk):
            return Assignment.objects.filter(user=bob.user_id).count()

    assert waiting() == 0
    url = f"/admin/tenants/membership/{bob.pk}/change/"
    for globs, waits in (("mail.*", 1), ("", 0)):
        answer = browser.post(url, {"role": "approver", "may_decide": globs})
        assert (answer.status_code, waiting()) == (302, waits)


def test_a_persons_token_is_revoked_here_and_never_made(lived: House) -> None:
    browser = signed_in(User.objects.get(username="ada"), lived.tenant.pk)
    bearer = {"Authorization": f"Bearer {lived.secrets['carol']}"}
    assert Client().get("/api/v1/gates", headers=bearer).status_code == 200
    with tenant_scope(lived.tenant.pk):
        token = UserToken.objects.get(membership__user__username="carol")
    assert browser.post("/admin/tenants/usertoken/add/", {}).status_code == 403
    assert browser.post(f"/admin/tenants/usertoken/{token.pk}/revoke/").status_code == 303
    assert Client().get("/api/v1/gates", headers=bearer).status_code == 401
