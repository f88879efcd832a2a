"""Cases of the kind object-permissions: a right is on one thing, read when it is used."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from django.contrib.auth.models import Group, Permission
from django.db import connection
from django.test.utils import CaptureQueriesContext

from approvals.models import ToolPermission
from interrupts.models import Tool
from tenants.models import User
from tenants.scope import tenant_scope
from tests.cases.world import BY_AGENT, World, as_superuser, browser_of
from tests.database import as_owner

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "sweep"])


def test_no_right_outlives_what_it_is_on(world: World) -> None:
    """rf-perm-01 (django-guardian/django-guardian#15; TOMToolkit/tom_base#1249).

    Generic references leave rights behind, which fit whatever comes under the same id.
    """
    old = world.tool("old.tool")
    world.given(old, world.tool("t"), may_decide={"req": ["old.*"]})
    step = world.propose(world.run(), "old.tool")
    assert world.gate(step, "req")["may_decide"] is True
    world.given(world.tool("t"), may_decide={"req": ["old.*"]})  # retired
    with tenant_scope(world.tenant):
        assert not ToolPermission.objects.filter(user__username="req").exists()
    assert world.inbox("req") == []
    # Made again, it is given to nobody who had it.
    world.given(old, world.tool("t"))
    step = world.propose(world.run(), "old.tool")
    gate = world.gate(step, "req")
    assert (gate["may_decide"], world.inbox("req")) == (False, [])
    path = f"/gates/{gate['id']}/decisions"
    assert world.refused("req", "POST", path, world.decision(gate), status=403).code == (
        "not-an-approver"
    )

    # A row of a right refers to its tool, in its tenant: neither can go without the other.
    with tenant_scope(world.tenant):
        tool, user = Tool.objects.get(name="t").pk, User.objects.get(username="req").pk
        given = Permission.objects.get(codename="decide_tool", content_type__model="tool").pk
    add = (
        "INSERT INTO approvals_toolpermission"
        " (id, tenant_id, user_id, permission_id, content_object_id)"
        " SELECT gen_random_uuid(), t.id, %s, %s, %s FROM tenants_tenant t WHERE slug = %s"
    )
    with as_owner() as owner, pytest.raises(psycopg.errors.ForeignKeyViolation):
        owner.execute(add, [user, given, tool, "globex"])
    with as_owner() as owner:
        owner.execute(add, [user, given, tool, "acme"])
    with as_owner() as owner, pytest.raises(psycopg.IntegrityError):
        owner.execute("DELETE FROM interrupts_tool WHERE id = %s", [tool])


def test_a_right_to_all_of_a_kind_opens_nothing(world: World) -> None:
    """rf-perm-03 (encode/django-rest-framework#3163; django-guardian/django-guardian#325).

    The helper's default counts rights that are given for every object there is.
    """
    world.given(world.tool("t"), may_decide={"req": []})
    every = Permission.objects.filter(codename="decide_tool")
    assert every.count() == 2
    group, _ = Group.objects.get_or_create(name="deciders of everything")
    group.permissions.set(every)
    for name in ("req", "viewer", "opr", "adm"):
        user = User.objects.get(username=name)
        user.user_permissions.set(every)
        user.groups.add(group)
        User.objects.filter(pk=user.pk).update(is_superuser=name == "req", is_staff=True)
    step = world.propose(world.run(), "t")
    for name in ("req", "viewer", "opr", "adm"):
        gate = world.gate(step, name)
        assert (gate["may_decide"], world.inbox(name)) == (False, []), name
        path = f"/gates/{gate['id']}/decisions"
        reply = world.refused(name, "POST", path, world.decision(gate), status=403)
        assert reply.code == ("forbidden" if name == "viewer" else "not-an-approver")
        form = {"digest": gate["what"]["digest"]}
        page = browser_of(world, name).post(f"/decisions/{gate['id']}/approve", form)
        assert page.status_code == 403
    assert world.gate(step)["decisions"] == []


def test_a_right_is_read_when_it_is_used(world: World) -> None:
    """rf-perm-05 (Open-Source-Legal/OpenContracts#2355; django-guardian/django-guardian#360).

    A user object that a process held kept saying yes after the group was left.
    """
    ask = {"name": "ask", "trigger": "action", "tools": ["*"], "then": "approve"}
    tools = [world.tool("t"), world.tool("own", executor=BY_AGENT)]
    both = {"groups": {"ops": ["appr1", "appr2"]}, "rules": [{**ask, "approvers": ["ops"]}]}
    world.given(*tools, **both)
    browser = browser_of(world, "appr1")  # signed in all the while
    first = world.propose(world.run(), "t")
    approved = world.propose(world.run(), "own")
    gate = world.gate(first)
    world.decide(approved)
    world.given(*tools, groups={"ops": ["appr2"]}, rules=both["rules"])  # the group is left
    body, path = world.decision(gate), f"/gates/{gate['id']}/decisions"
    assert world.refused("appr1", "POST", path, body, status=403).code == "not-an-approver"
    form = {"digest": gate["what"]["digest"]}
    assert browser.post(f"/decisions/{gate['id']}/approve", form).status_code == 403
    assert world.inbox("appr1") == []
    # What they had approved and has not begun is asked about anew, of who is there now.
    reply = world.send("ops", "POST", f"/steps/{approved['id']}/claim", {})
    assert (reply.status, reply.code) == (409, "not-authorized")
    anew = world.gate(world.fresh(approved), "appr2")
    assert (anew["state"], anew["may_decide"]) == ("pending", True)


def test_a_right_that_is_taken_away_in_the_admin_is_gone(world: World) -> None:
    """rf-perm-05, by the administrator's form, with the gate's page open."""
    world.given(world.tool("t"), world.tool("own"))
    step = world.propose(world.run(), "t")
    browser, gate = browser_of(world, "appr2"), world.gate(step, "appr2")
    with as_superuser() as looking:
        (member,) = looking.execute(
            "SELECT m.id FROM tenants_membership m JOIN tenants_user u ON u.id = m.user_id"
            " WHERE u.username = 'appr2'"
        ).fetchone() or (None,)
    said = {"role": "approver", "may_decide": "own"}
    saved = browser_of(world, "adm").post(f"/admin/tenants/membership/{member}/change/", said)
    assert saved.status_code == 302
    form = {"digest": gate["what"]["digest"]}
    assert browser.post(f"/decisions/{gate['id']}/approve", form).status_code == 403
    path = f"/gates/{gate['id']}/decisions"
    assert world.refused("appr2", "POST", path, world.decision(gate), status=403).code == (
        "not-an-approver"
    )
    assert world.gate(step)["decisions"] == []


def test_an_inbox_costs_what_it_shows_and_not_what_there_is(world: World) -> None:
    """rf-perm-06 (django-guardian/django-guardian#989; django-guardian/django-guardian#811).

    Rights were looked up by text keys, cast a row at a time.
    """
    with as_superuser() as looking:
        keys = looking.execute(
            "SELECT data_type FROM information_schema.columns"
            " WHERE (table_name, column_name) IN (('approvals_toolpermission', 'content_object_id'),"
            " ('approvals_tenantpermission', 'tenant_id'), ('approvals_assignment', 'gate_id'))"
        ).fetchall()
    assert keys == [("uuid",)] * 3
    world.given(world.tool("t"))
    counted: list[tuple[int, int, int]] = []
    for number in (2, 10):
        for n in range(number):
            world.propose(world.run(), "t", {"n": n})
        seen: list[int] = []
        for path in ("/gates?state=pending&mine=true", "/gates?state=pending"):
            with CaptureQueriesContext(connection) as captured:
                listed: Any = world.get("appr1", path)["results"]
            seen.append(len(captured))
        browser = browser_of(world, "appr1")
        with CaptureQueriesContext(connection) as captured:
            assert browser.get("/inbox").status_code == 200
        counted.append((seen[0], seen[1], len(captured)))
        assert all("::text" not in one["sql"] for one in captured)
    assert len(listed) == 12
    assert counted[0] == counted[1]
