"""Indexes that a plan made without statistics could mistake for the one it needs.

Row-level security asks for the tenant in every statement. Where nothing is known of a table yet, an
index that begins with the tenant looks as good as the primary key, and walks through all that the
tenant has: a step's commit once cost three times as much after the first 1,600.
"""

from typing import Any

import psycopg
import pytest
from django.db import connections

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


def as_owner() -> psycopg.Connection[Any]:
    parameters = connections["owner"].get_connection_params()
    plain = {k: v for k, v in parameters.items() if k not in {"context", "cursor_factory"}}
    return psycopg.connect(**plain)


@pytest.mark.django_db
def test_no_index_begins_with_the_tenant_unless_the_rest_tells_rows_apart():
    with as_owner() as owner:
        assert owner.execute(BEGINS_WITH_TENANT, [SMALL]).fetchall() == []


@pytest.mark.django_db
def test_an_index_that_does_is_found():
    with as_owner() as owner, owner.transaction(force_rollback=True):
        owner.execute("CREATE INDEX ill_made ON interrupts_step (tenant_id, status)")
        assert owner.execute(BEGINS_WITH_TENANT, [SMALL]).fetchall() == [("ill_made",)]
