"""Cases of the kind tenant-isolation: what is another tenant's is not there."""

from __future__ import annotations

import json
import re
from functools import partial
from typing import Any
from uuid import uuid4

import pytest
from django.core.management.base import CommandError
from django.test import Client
from django.urls import reverse
from django.utils.module_loading import autodiscover_modules

from tenants.admin.site import site
from tenants.models import Agent, Group, Membership
from tenants.scope import tenant_scope
from tests.cases.world import BY_AGENT, Pair, World, as_superuser, browser_of, document

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "sweep"])
autodiscover_modules("admin", register_to=site)  # as config/urls.py does
ASKED = re.compile('(?:q|agent)(?:=|%3d)globex|value="globex"|“globex”', re.IGNORECASE)
STATE = {"format": "f", "version": "1", "data": {"l": []}}


def filled(body: Any, value: str) -> Any:
    return json.loads(json.dumps(body).replace("$", value))


def test_what_is_named_of_another_tenant_is_nothing(world: World) -> None:
    """rf-ten-01 (davisilvarafacho/django-islands#6; danbyte-net/danbyte#192)."""
    tool = world.tool("t", executor=BY_AGENT)
    world.given(tool, world.tool("theirs"))
    world.apply(document("acme", world.port, [tool], [], groups={}, may_decide={}))
    theirs = world.run("ops@globex", agent_state=STATE)
    step = world.propose(theirs, "t", who="ops@globex")
    run, ended, asked = (world.run() for _ in range(3))
    world.post("ops", f"/runs/{ended['id']}/complete", {"output": None})
    gate = world.propose(asked, "t")["gate"]
    start = {"workflow": "w", "goal": "g"}
    call = {"tool": "t", "arguments": {}}
    grown = {"format": "f", "version": "1", "base": "$", "append": {"/l": [1]}}
    here = f"/runs/{run['id']}"
    named: list[tuple[str, str, Any, str]] = [
        ("ops", "/runs", {**start, "parent": "$"}, theirs["id"]),
        ("ops", "/runs", {**start, "requested_by": "$"}, "req-globex"),
        ("ops", f"{here}/steps", {**call, "tool": "$"}, "theirs"),
        ("ops", f"{here}/steps", {**call, "group": "$"}, step["group"]),
        ("ops", f"{here}/steps", {**call, "agent_state": grown}, theirs["checkpoint"]),
        ("ops", f"{here}/checkpoints", {"agent_state": grown}, theirs["checkpoint"]),
        ("opr", f"/runs/{ended['id']}/fork", {"checkpoint": "$"}, theirs["checkpoint"]),
        ("appr1", f"/gates/{gate}/assignment", {"to": "$"}, "appr1-globex"),
        ("appr1", "/policies/check", {"tool": "$", "arguments": {}}, "theirs"),
    ]
    for who, path, body, value in named:
        absent = str(uuid4())
        reply = world.refused(who, "POST", path, filled(body, value), status=422)
        other = world.refused(who, "POST", path, filled(body, absent), status=422)
        said, meant = (json.dumps(one.body) for one in (reply, other))
        assert said.replace(value, "$") == meant.replace(absent, "$"), path
    pair = {"gate": step["gate"], "digest": f"sha256:{'0' * 64}"}
    (told,) = world.post("appr1", "/gates/decisions", {"decisions": [pair]})["results"]
    assert told["problem"]["code"] == "not-found"


def test_what_is_asked_for_of_another_tenant_is_not_there(world: World) -> None:
    """rf-ten-01, in queries, in a policy, and below the code."""
    tool = world.tool("t", executor=BY_AGENT)
    world.given(tool, world.tool("theirs"), groups={"G9": ["appr1"]})
    theirs = world.run("ops@globex")
    step = world.propose(theirs, "t", who="ops@globex")
    run = world.run()
    rule = {"name": "r", "trigger": "action", "tools": ["t"], "then": "approve"}
    ours = document(
        "acme", world.port, [tool], [{**rule, "approvers": ["G9"]}], groups={}, may_decide={}
    )
    with pytest.raises(CommandError, match="approvers/0: There is no such group"):
        world.apply(ours)
    for query in (f"/gates?tool=theirs&run={theirs['id']}", f"/interrupts?run={theirs['id']}"):
        assert world.get("adm", query)["results"] == []
    path = f"/policies/why?step={step['id']}"
    assert (
        world.send("adm", "GET", path).body
        == world.send("adm", "GET", f"/policies/why?step={uuid4()}").body
    )
    assert [one["id"] for one in world.get("opr", "/runs")["results"]] == [run["id"]]
    with as_superuser() as looking:
        found = looking.execute(
            "SELECT conrelid::regclass::text FROM pg_constraint WHERE contype = 'f'"
            " AND connamespace = 'public'::regnamespace AND cardinality(conkey) = 2"
        ).fetchall()
    both = {name for (name,) in found}
    assert {"interrupts_step", "approvals_gate", "approvals_toolpermission"} <= both


def test_no_page_of_the_admin_tells_of_another_tenant(world: World) -> None:
    """rf-ten-03 (citusdata/django-multitenant#87; citusdata/django-multitenant#35).

    The form's class was made before there was a tenant: its drop-downs offered everybody's.
    """
    world.given(world.tool("t", executor=BY_AGENT), groups={"ops": ["appr1"]})
    globex = document(
        "globex", world.port, [world.tool("globex.t")], [], groups={"globex-ops": []}, may_decide={}
    )
    globex["agents"] = [*globex["agents"], {"name": "globex-bot"}]
    world.apply(globex)
    for who in ("ops", "ops@globex"):
        run = world.run(who, goal=f"for {who}", workflow=who.replace("@", "-"))
        world.propose(run, "t" if who == "ops" else "globex.t", who=who)
    world.decide(world.propose(world.run(), "t"))
    browser = browser_of(world, "adm")
    pages = [reverse("admin:index"), "/admin/journal/", "/admin/tenant/"]
    for admin in site._registry.values():
        name = f"admin:{admin.opts.app_label}_{admin.opts.model_name}"
        listed = reverse(f"{name}_changelist")
        pages += [listed, reverse(f"{name}_add")]
        page = browser.get(listed).content.decode()
        found = re.findall(rf'href="({listed}[^/"?]+/change/)', page)
        pages += found[:1]
    for app, model_name, field in (
        ("tenants", "groupmember", "membership"),
        ("tenants", "agentkey", "agent"),
        ("tenants", "agent", "owner"),
    ):
        asked = f"app_label={app}&model_name={model_name}&field_name={field}&term="
        pages.append(f"/admin/autocomplete/?{asked}")
    for url in pages:
        answer = browser.get(url)
        assert answer.status_code in (200, 302, 303, 403, 404), url
        shown = ASKED.sub("", answer.content.decode().lower())  # what was asked for is said again
        assert "globex" not in shown, url
    # There, it is: the test would find it.
    theirs = browser_of(world, "adm-globex", "globex")
    assert "globex-bot" in theirs.get("/admin/tenants/agent/").content.decode()


def test_a_name_is_taken_in_one_tenant_only(world: World, pair: Pair) -> None:
    """rf-ten-04 (ansible/pinakes#518)."""
    rule = {"name": "prod-deploys", "trigger": "action", "tools": ["t"], "then": "approve"}
    groups = {"prod-deploys": ["appr1"]}
    world.given(world.tool("t"), rules=[rule], groups=groups)  # the same names in both tenants
    for who in ("adm", "adm@globex"):
        assert world.get(who, "/policies/current")["policy"]["rules"][0]["name"] == "prod-deploys"
    twice = document("acme", world.port, [world.tool("t")], [rule, rule], groups={}, may_decide={})
    with pytest.raises(CommandError, match="rules/1/name: Another rule has this name"):
        world.apply(twice)

    def add(browser: Client, table: str, said: dict[str, str]) -> int:
        answer = browser.post(f"/admin/{table}/add/", said)
        return answer.status_code

    tabs = [browser_of(world, "adm"), browser_of(world, "adm")]
    made = {
        "tenants/group": {"name": "{}"},
        "tenants/agent": {"name": "{}", "owner": ""},
        "approvals/policyversion": {"document": '{"rules": []}', "why": "{}"},
        "tenants/membership": {
            "username": "{}",
            "email": "{}@acme.test",
            "role": "viewer",
            "may_decide": "",
        },
    }
    for table, form in made.items():
        for n in range(4):
            said = {field: text.replace("{}", f"n{n}") for field, text in form.items()}
            told = pair.at_once(*(partial(add, tab, table, said) for tab in tabs))
            assert set(told) <= {200, 302}, (table, told)
    with tenant_scope(world.tenant):
        for rows in (
            Group.objects.filter(name__startswith="n"),
            Agent.objects.filter(name__startswith="n"),
            Membership.objects.filter(user__username__startswith="n"),
        ):
            assert rows.count() == 4
    ours = add(browser_of(world, "adm"), "tenants/group", {"name": "prod-deploys"})
    world.apply(document("globex", world.port, [world.tool("t")], [], groups={}, may_decide={}))
    assert add(browser_of(world, "adm"), "tenants/group", {"name": "prod-deploys"}) == ours
    theirs = browser_of(world, "adm-globex", "globex")
    assert add(theirs, "tenants/group", {"name": "prod-deploys"}) == 302


def test_no_filter_reaches_what_the_caller_does_not_see(world: World) -> None:
    """rf-ten-05 (philipn/django-rest-framework-filters#100; dpgaspar/Flask-AppBuilder#1860).

    Character by character, filters across relations gave a stored hash away.
    """
    secret = world.tool("t", sensitive=["/canary"], arguments={"type": "object"})
    world.given(secret)
    world.propose(world.run(), "t", {"canary": "canary-4711"})
    world.propose(world.run("ops@globex"), "t", {"canary": "canary-4712"}, who="ops@globex")
    lists = ("/runs", "/gates", "/interrupts", "/policies")
    filters = (
        "steps__args__contains=canary", "steps__arguments__contains=zzz",
        "created_by__password__startswith=p", "requested_by__password__startswith=zzz",
        "agent__owner__user__password__startswith=p", "gates__run__tenant__name=globex",
        "tenant__slug=globex", "unknown=1", "ordering=agent__hash",
        "goal__regex=.*",
    )  # fmt: skip
    for path in lists:
        plain = world.get("adm", path)
        for query in filters:
            reply = world.send("adm", "GET", f"{path}?{query}")
            assert reply.status in (200, 400, 422), (path, query)
            if reply.status == 200:
                assert {**reply.body, "next": 0} == {**plain, "next": 0}, (path, query)
    browser = browser_of(world, "adm")
    pages = ("/admin/interrupts/run/", "/admin/tenants/membership/", "/admin/tenants/agentkey/")
    for path in pages:
        for query in (
            "agent__owner__user__password__startswith=p", "user__password__startswith=p",
            "hash__startswith=a", "run__agent__agentkey__hash__startswith=a",
            "tenant__slug=globex", "run__tenant__slug=globex",
        ):  # fmt: skip
            answer = browser.get(f"{path}?{query}")
            led_on = answer.headers.get("Location", "")
            refused = answer.status_code in (400, 404) or "e=1" in led_on
            assert refused or answer.context["cl"].result_count == 0, (path, query)
    for path in ("/runs", "/inbox", "/decided", "/notices"):
        for query in ("q=canary-4711", "agent=globex", "password=p", "user__password=p"):
            page = browser.get(f"{path}?{query}").content.decode()
            assert "canary-4712" not in page
            assert "globex" not in ASKED.sub("", page), (path, query)
