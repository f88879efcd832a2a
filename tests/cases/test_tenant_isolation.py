"""Cases of the kind tenant-isolation: what is another tenant's is not there."""

from __future__ import annotations

import re
from functools import partial
from typing import Any
from uuid import uuid4

import pytest
from django.core.management.base import CommandError
from django.urls import reverse
from django.utils.module_loading import autodiscover_modules

from tenants.admin.site import site
from tests.cases.world import BY_AGENT, Pair, World, as_superuser, browser_of, document

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "sweep"])
autodiscover_modules("admin", register_to=site)  # as config/urls.py does
STATE = {"format": "f", "version": "1", "data": {"l": []}}


def test_what_is_named_of_another_tenant_is_nothing(world: World) -> None:
    """rf-ten-01 (davisilvarafacho/django-islands#6; danbyte-net/danbyte#192)."""
    tool = world.tool("t", executor=BY_AGENT)
    world.given(tool, world.tool("theirs"), groups={"G9": ["appr1"]})
    ours = document("acme", world.port, [tool], [], groups={}, may_decide={})
    world.apply(ours)  # what only globex has: a tool, a group, people, runs
    theirs = world.run("ops@globex", agent_state=STATE)
    step = world.propose(theirs, "t", who="ops@globex")
    run = world.run()
    mine = world.propose(run, "t", key="k")
    world.decide(mine)
    grown = {**STATE, "base": theirs["checkpoint"], "append": {"/l": [1]}}
    del grown["data"]
    start = {"workflow": "w", "goal": "g"}
    call = {"tool": "t", "arguments": {}}
    named: list[tuple[str, str, str, dict[str, Any], str]] = [
        ("ops", "/runs", "/parent", start, theirs["id"]),
        ("ops", "/runs", "/requested_by", start, "req-globex"),
        ("ops", f"/runs/{run['id']}/steps", "/tool", call, "theirs"),
        ("ops", f"/runs/{run['id']}/steps", "/group", call, step["group"]),
        ("ops", f"/runs/{run['id']}/checkpoints", "/agent_state/base", {"agent_state": grown}, ""),
        ("opr", "/freezes", "/name", {"scope": "tool", "note": ""}, "theirs"),
        ("appr1", f"/gates/{mine['gate']}/assignment", "/to", {}, "appr1-globex"),
        ("opr", f"/runs/{run['id']}/fork", "/checkpoint", {}, theirs["checkpoint"]),
        ("appr1", "/policies/check", "/tool", {"arguments": {}}, "theirs"),
    ]
    for who, path, pointer, body, value in named:
        sent, absent = dict(body), dict(body)
        name = pointer[1:]
        if value:
            sent[name] = value
            absent[name] = str(uuid4())
        else:
            absent["agent_state"] = {**grown, "base": str(uuid4())}
        reply = world.send(who, "POST", path, sent)
        other = world.send(who, "POST", path, absent)
        assert 400 <= reply.status < 500, (path, reply)
        assert (reply.status, reply.code) == (other.status, other.code), path
        assert str(reply.body).replace(value or theirs["checkpoint"], "X") == str(
            other.body
        ).replace(str(absent.get(name) or absent["agent_state"]["base"]), "X"), path
    gate = {"gate": step["gate"], "digest": f"sha256:{'0' * 64}"}
    told = world.post("appr1", "/gates/decisions", {"decisions": [gate]})["results"]
    assert told[0]["problem"]["code"] == "not-found"
    for policy in (
        {"rules": [{"name": "r", "trigger": "action", "then": "approve", "approvers": ["G9"]}]},
    ):
        with pytest.raises(CommandError, match="approvers/0: There is no such group"):
            world.apply({**ours, "policy": policy})
    for path in ("/policies/why?step=", "/runs?agent=", "/gates?tool=", "/interrupts?run="):
        value = {"/policies/why?step=": step["id"], "/interrupts?run=": theirs["id"]}.get(
            path, "theirs"
        )
        reply = world.send("adm", "GET", f"{path}{value}")
        assert reply.status == 404 or reply.body["results"] == []
    # And below the code: no row refers to another tenant's.
    with as_superuser() as looking:
        found = looking.execute(
            "SELECT conrelid::regclass::text FROM pg_constraint WHERE contype = 'f'"
            " AND connamespace = 'public'::regnamespace AND cardinality(conkey) = 2"
        ).fetchall()
    assert {"interrupts_step", "approvals_gate", "approvals_toolpermission"} <= {
        name for (name,) in found
    }
    assert [one["id"] for one in world.get("opr", "/runs")["results"]] == [run["id"]]


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
    for model, admin in site._registry.items():  # noqa: SLF001 - Django's own
        name = f"admin:{admin.opts.app_label}_{admin.opts.model_name}"
        listed = reverse(f"{name}_changelist")
        pages += [listed, f"{listed}?q=globex", reverse(f"{name}_add")]
        page = browser.get(listed).content.decode()
        found = re.findall(rf'href="({listed}[^/"?]+/change/)', page)
        for change in found[:1]:
            pages += [change, change.replace("/change/", "/history/")]
            pages += [change.replace("/change/", "/delete/")]
        assert model is not None
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
        shown = answer.content.decode().replace("q=globex", "").replace('value="globex"', "")
        assert "globex" not in shown.lower(), url
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

    def add(browser: Any, name: str) -> tuple[int, str]:
        answer = browser.post("/admin/tenants/group/add/", {"name": name, "members": []})
        return answer.status_code, "already exists" * ("already" in answer.content.decode())

    tabs = [browser_of(world, "adm"), browser_of(world, "adm")]
    for name in ("a", "b", "c", "d"):
        told = pair.at_once(*(partial(add, tab, name) for tab in tabs))
        assert sorted(status for status, _ in told) in ([200, 302], [302, 302]), told
    said = add(browser_of(world, "adm"), "prod-deploys")
    world.apply(document("globex", world.port, [world.tool("t")], [], groups={}, may_decide={}))
    assert add(browser_of(world, "adm"), "prod-deploys") == said
    assert add(browser_of(world, "adm-globex", "globex"), "prod-deploys")[0] == 302


def test_no_filter_reaches_what_the_caller_does_not_see(world: World) -> None:
    """rf-ten-05 (philipn/django-rest-framework-filters#100; dpgaspar/Flask-AppBuilder#1860).

    Character by character, filters across relations gave a stored hash away.
    """
    secret = world.tool("t", sensitive=["/canary"], arguments={"type": "object"})
    world.given(secret)
    world.propose(world.run(), "t", {"canary": "canary-4711"})
    world.propose(world.run("ops@globex"), "t", {"canary": "canary-4712"}, who="ops@globex")
    lists = ("/runs", "/gates", "/interrupts", "/tools", "/freezes", "/policies")
    filters = (
        "steps__args__contains=canary", "steps__arguments__contains=zzz",
        "created_by__password__startswith=p", "requested_by__password__startswith=zzz",
        "agent__owner__user__password__startswith=p", "gates__run__tenant__name=globex",
        "tenant=globex", "tenant__slug=globex", "unknown=1", "ordering=agent__hash", "fields=hash",
        "q=canary", "id__in=1", "goal__regex=.*",
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
    for path in (*pages, "/admin/approvals/gate/", "/admin/interrupts/step/"):
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
            assert "globex" not in page.replace("agent=globex", "").replace('"globex"', "")
