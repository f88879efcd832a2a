"""Indexes that a plan made without statistics could mistake for the one it needs.

Row-level security asks for the tenant in every statement. Where nothing is known of a table yet, an
index that begins with the tenant looks as good as the primary key, and walks through all that the
tenant has: a step's commit once cost three times as much after the first 1,600.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest
from django.db import connection, connections
from django.test.utils import CaptureQueriesContext

from approvals import circumstances, hot
from approvals.hindsight import calibration, gates, overgating
from approvals.services import simulation
from tenants.ids import uuid7
from tenants.rls import APP
from tenants.scope import tenant_scope
from tests.database import forget_statistics, superuser

BEGINS_WITH_TENANT = """
SELECT i.indexrelid::regclass::text FROM pg_index i
JOIN pg_class c ON c.oid = i.indrelid AND c.relnamespace = 'public'::regnamespace
JOIN pg_attribute first ON first.attrelid = c.oid AND first.attnum = i.indkey[0]
LEFT JOIN pg_attribute second ON second.attrelid = c.oid AND second.attnum = i.indkey[1]
WHERE first.attname = 'tenant_id' AND NOT i.indisunique AND second.attname IS DISTINCT FROM 'id'
    AND c.relname <> ALL (%s)
"""
# A tenant has a handful of these.
SMALL = ["approvals_tenantpermission"]


# What row-level security asks for must choose no index of tables of which a tenant may have many.
MANY = [
    "approvals_assignment",
    "approvals_decision",
    "approvals_gate",
    "approvals_view",
    "interrupts_attempt",
    "interrupts_checkpoint",
    "interrupts_content",
    "interrupts_interrupt",
    "interrupts_question",
    "interrupts_receipt",
    "interrupts_run",
    "interrupts_step",
]
FAMILY = "SELECT 1 FROM interrupts_run r WHERE r.root = %b AND (r.id = %b OR %b = ANY (r.path))"
WHOLE_TENANT = re.compile(r"Index Cond: \(tenant_id = [^\n]*current_setting[^\n]*$", re.MULTILINE)


def as_owner() -> psycopg.Connection[Any]:
    parameters = connections["owner"].get_connection_params()
    plain = {k: v for k, v in parameters.items() if k not in {"context", "cursor_factory"}}
    return psycopg.connect(**plain)


@pytest.mark.django_db
def test_no_index_begins_with_the_tenant_unless_the_rest_tells_rows_apart() -> None:
    with as_owner() as owner:
        assert owner.execute(BEGINS_WITH_TENANT, [SMALL]).fetchall() == []


@pytest.mark.django_db
def test_an_index_that_does_is_found() -> None:
    with as_owner() as owner, owner.transaction(force_rollback=True):
        owner.execute("CREATE INDEX ill_made ON interrupts_step (tenant_id, status)")
        assert owner.execute(BEGINS_WITH_TENANT, [SMALL]).fetchall() == [("ill_made",)]


@pytest.mark.django_db
def test_row_level_security_alone_finds_nothing_of_which_a_tenant_has_many() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT tablename FROM pg_policies WHERE tablename = ANY (%s)"
            " AND policyname = tablename || '_tenant' AND qual LIKE '%%IS DISTINCT FROM%%'"
            " ORDER BY tablename",
            [MANY],
        )
        assert [name for (name,) in cursor.fetchall()] == MANY


@pytest.mark.django_db
@pytest.mark.parametrize("text", [hot.SEE, FAMILY], ids=["seen", "family"])
def test_no_frequent_statement_walks_all_that_a_tenant_has(text: str) -> None:
    found = plan(text)
    assert "Index Cond" in found
    assert not WHOLE_TENANT.search(found), found


@pytest.mark.django_db
@pytest.mark.parametrize("question", [calibration.BY_BAND, overgating.BY_RULE])
def test_what_looks_back_finds_what_belongs_to_a_gate_by_its_own_id(
    question: str,
) -> None:
    window = gates.Window(datetime(2026, 1, 1, tzinfo=UTC), "mail.send", "refunds")
    with tenant_scope(uuid7()):
        asked = gates.asking(window, question, names=["a"], versions=[1])
    found = plan(*asked)
    assert not re.search(r"Seq Scan on (approvals|interrupts)_", found), found
    assert not WHOLE_TENANT.search(found), found


@pytest.mark.django_db
def test_an_agents_history_is_found_by_its_runs_and_theirs() -> None:
    named = {"agent": uuid7(), "tool": uuid7(), "first": uuid7(), "runs": 200, "steps": 2000}
    found = plan(circumstances._HISTORY, named)
    assert not re.search(r"Seq Scan on interrupts_", found), found
    assert not WHOLE_TENANT.search(found), found


@pytest.mark.django_db
def test_a_policy_is_tried_on_no_steps_from_before_the_time_that_is_asked_for() -> None:
    with tenant_scope(uuid7()), CaptureQueriesContext(connection) as asked:
        simulation._before(None, datetime(2026, 1, 1, tzinfo=UTC), 200)
    found = plan(asked[0]["sql"], {})
    assert re.search(r"Index Cond: .*\(id >= ", found), found
    assert not WHOLE_TENANT.search(found), found


def plan(text: str, named: Mapping[str, Any] | None = None) -> str:
    """Return the plan that is made of tables of which nothing is known yet, without the parameters.

    With ``named`` the parameters are known, as they are to a statement that Django sends.
    """
    with superuser() as connection, connection.transaction(force_rollback=True):
        forget_statistics(connection, MANY)
        connection.execute(f"SET LOCAL ROLE {APP}")
        if named is None:
            lines = connection.execute("EXPLAIN (GENERIC_PLAN) " + numbered(text)).fetchall()
        else:
            # Of a table of the ten pages that are taken for granted, reading all may be cheapest.
            connection.execute("SET LOCAL enable_seqscan = off")
            written = psycopg.ClientCursor(connection).mogrify(text, named)
            lines = connection.execute("EXPLAIN " + written).fetchall()
        return "\n".join(line for (line,) in lines)


def numbered(text: str) -> str:
    places = iter(range(1, 100))
    return re.sub("%b", lambda _: f"${next(places)}", text)
