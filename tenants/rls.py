"""Row-level security and tenant-wide references, as operations for migrations.

Every table with a tenant is FORCEd: also its owner sees no row unless a role bypasses, so code
that forgets its scope gets nothing. References between tenant-owned rows name the tenant too,
so a row of another tenant cannot be referred to, whatever the code above forgets.
"""

from django.db.migrations import RunSQL

APP, SWEEP = "abeyance_app", "abeyance_sweep"
CURRENT_TENANT = "nullif(current_setting('abeyance.tenant_id', true), '')::uuid"


def tenant_table(table: str, *, key: str | None = "id") -> RunSQL:
    """Force row-level security on ``table``; (tenant, ``key``) becomes a target of references."""
    target = f"ALTER TABLE {table} ADD CONSTRAINT {table}_in_tenant UNIQUE (tenant_id, {key});"
    return RunSQL(
        f"""
        ALTER TABLE {table} ENABLE ROW LEVEL SECURITY;
        ALTER TABLE {table} FORCE ROW LEVEL SECURITY;
        CREATE POLICY {table}_tenant ON {table}
            USING (tenant_id = {CURRENT_TENANT}) WITH CHECK (tenant_id = {CURRENT_TENANT});
        {target if key else ""}
        """,
        f"""
        {f"ALTER TABLE {table} DROP CONSTRAINT {table}_in_tenant;" if key else ""}
        DROP POLICY {table}_tenant ON {table};
        ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY;
        ALTER TABLE {table} DISABLE ROW LEVEL SECURITY;
        """,
    )


def tenant_reference(
    table: str, column: str, target: str, *, key: str = "id", on_delete: str = "NO ACTION"
) -> RunSQL:
    """Let ``table.column`` refer to rows of the same tenant in ``target`` only."""
    name = f"{table}_{column}_same_tenant"
    return RunSQL(
        f"ALTER TABLE {table} ADD CONSTRAINT {name} FOREIGN KEY (tenant_id, {column})"
        f" REFERENCES {target} (tenant_id, {key}) ON DELETE {on_delete}",
        f"ALTER TABLE {table} DROP CONSTRAINT {name}",
    )


def tenant_implied(*tables: str) -> RunSQL:
    """Take the plain reference to the tenant off tables that refer to a row of it in any case.

    Each row of these names a row of the same tenant, which refers to it in turn. The plain one told
    nothing more, and locked the tenant's row in every transaction that wrote one.
    """
    return RunSQL(
        [
            f"""
            DO $$ DECLARE named text;
            BEGIN
                SELECT c.conname INTO STRICT named FROM pg_constraint c
                    WHERE c.conrelid = '{table}'::regclass AND c.contype = 'f'
                        AND c.confrelid = 'tenants_tenant'::regclass;
                EXECUTE format('ALTER TABLE {table} DROP CONSTRAINT %I', named);
            END $$;
            """  # noqa: S608 - names of ours
            for table in tables
        ],
        [
            f"ALTER TABLE {table} ADD FOREIGN KEY (tenant_id) REFERENCES tenants_tenant (id)"
            " DEFERRABLE INITIALLY DEFERRED"
            for table in tables
        ],
    )


def found_by_the_rest(*tables: str) -> RunSQL:
    """Let row-level security choose no index of these tables: what else is asked for does.

    Until a table's statistics are gathered the tenant looks as rare as an id, and a join would
    walk all that the tenant has. Who wants all of it names the tenant. The form is what matters: no
    index knows IS NOT DISTINCT FROM; that no tenant is set is false for every row as before.
    """
    return RunSQL(
        [
            f"ALTER POLICY {table}_tenant ON {table}"
            f" USING (tenant_id IS NOT DISTINCT FROM {CURRENT_TENANT})"
            for table in tables
        ],
        [
            f"ALTER POLICY {table}_tenant ON {table} USING (tenant_id = {CURRENT_TENANT})"
            for table in tables
        ],
    )


def append_only(table: str) -> RunSQL:
    """Refuse UPDATE, DELETE and TRUNCATE of ``table``, by privilege and by trigger."""
    return RunSQL(
        f"""
        REVOKE UPDATE, DELETE, TRUNCATE ON {table} FROM {APP};
        CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE ON {table}
            FOR EACH ROW EXECUTE FUNCTION tenants_refuse_rewrite();
        """,
        f"""
        DROP TRIGGER {table}_append_only ON {table};
        GRANT UPDATE, DELETE ON {table} TO {APP};
        """,
    )


def swept(table: str, columns: str, due: str) -> RunSQL:
    """Let the sweep role read ``columns`` of those rows of ``table`` that are ``due``."""
    return RunSQL(
        f"""
        GRANT SELECT ({columns}) ON {table} TO {SWEEP};
        CREATE POLICY {table}_due ON {table} FOR SELECT TO {SWEEP} USING ({due});
        """,
        f"""
        DROP POLICY {table}_due ON {table};
        REVOKE SELECT ({columns}) ON {table} FROM {SWEEP};
        """,  # noqa: S608 - a migration's own words
    )


def storage(table: str, *, fillfactor: int) -> RunSQL:
    """Leave room on each page, so that a hot update stays on it and touches no index."""
    return RunSQL(
        f"ALTER TABLE {table} SET (fillfactor = {fillfactor})",
        f"ALTER TABLE {table} RESET (fillfactor)",
    )
