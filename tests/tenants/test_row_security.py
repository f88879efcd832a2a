"""What the database itself promises, whatever the code above forgets: read from its catalogue."""

from typing import Any

import pytest
from django.apps import apps
from django.db import DatabaseError, connection, transaction

from tenants.models import Agent, AgentKey, Group, GroupMember, Membership, UserToken
from tenants.scope import tenant_scope
from tests.tenants.conftest import World

pytestmark = pytest.mark.django_db

# Rows of the whole service: who there is, and what Django keeps about itself.
SHARED = {
    "auth_group",
    "auth_group_permissions",
    "auth_permission",
    "django_admin_log",
    "django_content_type",
    "django_migrations",
    "django_session",
    "guardian_groupobjectpermission",
    "guardian_userobjectpermission",
    "interrupts_drain",
    "interrupts_sweepround",
    "interrupts_tally",
    "tenants_signincount",
    "tenants_user",
    "tenants_user_groups",
    "tenants_user_user_permissions",
}

# The step's own reference, which names the tenant, leads to the run; the hot path pays for one.
REACHED_BY_THE_STEP = {("interrupts_attempt", "run_id"), ("interrupts_receipt", "run_id")}


def rows(sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return list(cursor.fetchall())


def tables_with_tenant() -> set[str]:
    return {
        name
        for (name,) in rows(
            "SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid"
            " WHERE c.relkind IN ('r', 'p') AND a.attname = 'tenant_id' AND NOT a.attisdropped"
            " AND c.relnamespace = 'public'::regnamespace"
        )
    }


def test_tests_run_as_the_app_role_which_bypasses_nothing() -> None:
    (role,) = rows(
        "SELECT rolname, rolsuper, rolbypassrls, rolcreaterole, rolcreatedb FROM pg_roles"
        " WHERE rolname = current_user"
    )
    assert role == ("abeyance_app", False, False, False, False)
    assert rows("SELECT relname FROM pg_class WHERE relowner = current_user::regrole") == []


def test_every_table_of_tenants_has_forced_row_level_security() -> None:
    lax = rows(
        "SELECT relname FROM pg_class WHERE relname = ANY(%s)"
        " AND NOT (relrowsecurity AND relforcerowsecurity)",
        list(tables_with_tenant() | {"tenants_tenant"}),
    )
    assert lax == []
    assert len(tables_with_tenant()) > 20


def test_every_table_belongs_to_tenants_or_is_named_as_shared() -> None:
    known = {model._meta.db_table for model in apps.get_models(include_auto_created=True)}
    assert known - tables_with_tenant() - {"tenants_tenant"} <= SHARED


def test_every_row_of_a_tenant_leads_to_its_tenant() -> None:
    references = rows(
        "SELECT c.conrelid::regclass::text, c.confrelid::regclass::text FROM pg_constraint c"
        " WHERE c.contype = 'f' AND c.convalidated AND EXISTS (SELECT FROM unnest(c.conkey) k"
        "   JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = k"
        "   WHERE a.attname = 'tenant_id')"
        # One that may be null refers to nothing where it is.
        " AND NOT EXISTS (SELECT FROM unnest(c.conkey) k JOIN pg_attribute a"
        "   ON a.attrelid = c.conrelid AND a.attnum = k WHERE NOT a.attnotnull)"
    )
    leads = {"tenants_tenant"}
    while more := {table for table, to in references if to in leads} - leads:
        leads |= more
    assert tables_with_tenant() - leads == {"tenants_journalentry"}  # its stream may be the tenant


def test_every_policy_for_the_app_role_is_about_the_sessions_tenant() -> None:
    open_policies = rows(
        "SELECT tablename, policyname FROM pg_policies"
        " WHERE tablename = ANY(%s) AND NOT ('abeyance_sweep' = ANY(roles))"
        " AND (qual IS NULL OR qual NOT LIKE '%%abeyance.tenant_id%%'"
        "      OR with_check IS NULL OR with_check NOT LIKE '%%abeyance.tenant_id%%')",
        list(tables_with_tenant()),
    )
    assert open_policies == []


def test_without_a_tenant_no_table_shows_a_row(acme: World, umbrella: World) -> None:
    for table in tables_with_tenant():
        assert rows(f'SELECT count(*) FROM "{table}"') == [(0,)], table


def test_the_app_role_may_truncate_nothing() -> None:
    may = rows(
        "SELECT table_name FROM information_schema.role_table_grants"
        " WHERE grantee = 'abeyance_app' AND privilege_type IN ('TRUNCATE', 'TRIGGER')"
    )
    assert may == []


def test_references_between_tenants_rows_name_the_tenant() -> None:
    """Each foreign key column of a tenant's table that points to one has a composite key."""
    owned = tables_with_tenant()
    composite = {
        (table, column)
        for table, columns in rows(
            "SELECT conrelid::regclass::text, array_agg(a.attname::text) FROM pg_constraint k"
            " JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = ANY(k.conkey)"
            " WHERE contype = 'f' GROUP BY k.oid, conrelid HAVING bool_or(a.attname = 'tenant_id')"
        )
        for column in columns
        if column != "tenant_id"
    }
    missing = {
        (model._meta.db_table, field.column)
        for model in apps.get_models()
        if model._meta.db_table in owned
        for field in model._meta.local_fields
        if field.is_relation
        and field.column != "tenant_id"
        and field.related_model._meta.db_table in owned
        and (model._meta.db_table, field.column) not in composite
    }
    assert missing - REACHED_BY_THE_STEP == set()


def test_a_row_of_another_tenant_cannot_be_referred_to(acme: World, umbrella: World) -> None:
    with tenant_scope(umbrella.id):
        theirs = Membership.objects.get()
        their_agent = Agent.objects.get()
    with tenant_scope(acme.id):
        group = Group.objects.create(name="finance")
        for make in (
            lambda: GroupMember.objects.create(group=group, membership=theirs),
            lambda: UserToken.objects.create(membership=theirs, hash=b"1", hint=""),
            lambda: AgentKey.objects.create(agent=their_agent, hash=b"2", hint=""),
        ):
            with pytest.raises(DatabaseError), transaction.atomic():
                make()
        assert not GroupMember.objects.exists()


def test_only_two_functions_reach_across_tenants() -> None:
    definers = rows(
        "SELECT p.proname, r.rolname, r.rolcanlogin FROM pg_proc p JOIN pg_roles r"
        " ON r.oid = p.proowner WHERE p.prosecdef AND p.pronamespace = 'public'::regnamespace"
        " ORDER BY 1"
    )
    names = ["tenants_of_person", "tenants_sign_in"]
    assert definers == [(name, "abeyance_keys", False) for name in names]
    open_to = rows(
        "SELECT routine_name::text, grantee::text FROM information_schema.role_routine_grants"
        " WHERE routine_name = ANY(%s) AND grantee <> 'abeyance_keys' ORDER BY 1",
        names,
    )
    assert open_to == [(name, "abeyance_app") for name in names]


def test_a_tenants_row_is_changed_in_its_own_scope_only(acme: World, umbrella: World) -> None:
    change = "UPDATE tenants_tenant SET name = 'x' WHERE id = %s RETURNING 1"
    assert rows(change, umbrella.id) == []
    with tenant_scope(acme.id):
        assert rows(change, umbrella.id) == []
        assert rows(change, acme.id) == [(1,)]
    with pytest.raises(DatabaseError), transaction.atomic():
        rows(
            "INSERT INTO tenants_tenant (id, slug, name, authority_version, freezes, journal_seq,"
            " journal_hash) VALUES (gen_random_uuid(), 'y', 'y', 1, 0, 0, '') RETURNING 1"
        )
