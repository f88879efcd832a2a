"""Hosts of an older release go on writing rows beside a newer one, and know none of its columns."""

import pytest
from django.db import connection, transaction
from guardian.shortcuts import assign_perm

from approvals.models import GroupPermission, ToolPermission
from interrupts.models import Run, ToolVersion
from tenants.ids import uuid7
from tenants.models import Agent, Group, User

NEW = {
    Run: {"verdicts_awaited": 0, "verdicts_holding": 0, "reserved_cost": 0},
    ToolVersion: {"decisions": [], "cost": "", "context": [], "verifier": None},
    Agent: {"daily_budget": {}},
}


def as_older(row, new, **own):
    """Write a copy of the row, with values of its own, that names none of the new columns."""
    columns = [one.column for one in row._meta.concrete_fields if one.name not in new]
    names = ", ".join(f'"{one}"' for one in columns)
    values = ", ".join("%s" if one in own else f'"{one}"' for one in columns)
    given = [own[one] for one in columns if one in own]
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {row._meta.db_table} ({names})"
            f" SELECT {values} FROM {row._meta.db_table} WHERE id = %s",
            [*given, row.pk],
        )


@pytest.mark.parametrize("model", NEW)
def test_what_an_older_host_writes_has_what_its_newer_columns_mean_by_nothing(house, model):
    version = house.tool("t", decisions=["approve"], cost="1.00", context=[{"name": "x"}])
    rows = {Run: house.run(), ToolVersion: version, Agent: Agent.objects.get(pk=house.agent.id)}
    own = {Run: {}, ToolVersion: {"number": 2}, Agent: {"name": "another"}}
    pk = uuid7()
    as_older(rows[model], NEW[model], id=pk, **own[model])
    written = model.objects.get(pk=pk)
    assert {name: getattr(written, name) for name in NEW[model]} == NEW[model]


def test_what_an_older_host_grants_has_no_limits(house):
    tool = house.tool("t").tool
    granted = assign_perm("decide_tool", User.objects.get(pk=house.people["alice"].id), tool)
    ToolPermission.objects.filter(pk=granted.pk).update(limits=["arguments.n < 5"])
    as_older(granted, {"limits": []}, id=uuid7(), user_id=house.people["olga"].id)
    assert ToolPermission.objects.get(user=house.people["olga"].id).limits == []


def test_what_a_group_was_given_ends_with_it_where_an_older_host_removes_it(house):
    for name in ("finance", "leads"):
        group = Group.objects.create(name=name)
        GroupPermission.objects.create(group=group, tool=house.tool(name).tool)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("DELETE FROM tenants_group WHERE name = 'finance'")
    assert GroupPermission.objects.get().group.name == "leads"
