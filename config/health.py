"""Is the service alive, and is it ready: the database, its migrations and its roles are right."""

from collections.abc import Iterator
from functools import cache

import kombu.exceptions
from celery import current_app
from django.db import Error, connection
from django.db.migrations.loader import MigrationLoader
from django.http import HttpRequest, JsonResponse
from django.urls import path

from config.database import APP, OWNER

OK = "ok"
ALWAYS_APPEND_ONLY = ("tenants_journalentry", "interrupts_receipt")

UNFORCED = """
SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
WHERE a.attname = 'tenant_id' AND NOT a.attisdropped AND c.relkind IN ('r', 'p')
  AND c.relnamespace = 'public'::regnamespace
  AND NOT (c.relrowsecurity AND c.relforcerowsecurity)
ORDER BY 1
"""
REWRITABLE = """
SELECT c.relname FROM pg_class c
WHERE c.relkind IN ('r', 'p') AND c.relnamespace = 'public'::regnamespace
  AND (c.relname = ANY(%(named)s) OR EXISTS (
      SELECT FROM pg_trigger t WHERE t.tgrelid = c.oid AND t.tgname LIKE '%%\\_append\\_only'))
  AND (has_any_column_privilege(%(role)s, c.oid, 'UPDATE')
      OR has_table_privilege(%(role)s, c.oid, 'DELETE'))
ORDER BY 1
"""
TRUNCATABLE = """
SELECT c.relname FROM pg_class c
WHERE c.relkind IN ('r', 'p') AND c.relnamespace = 'public'::regnamespace
  AND has_table_privilege(%(role)s, c.oid, 'TRUNCATE')
ORDER BY 1
"""
OWNED = """
SELECT d.classid::regclass::text || ' ' || d.objid FROM pg_shdepend d
WHERE d.refclassid = 'pg_authid'::regclass AND d.refobjid = %(role)s::regrole AND d.deptype = 'o'
  AND d.dbid IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))
ORDER BY 1
"""
POWERS = """
SELECT current_user, r.rolsuper, r.rolbypassrls, pg_has_role(current_user, %(owner)s, 'USAGE')
FROM pg_roles r WHERE r.rolname = current_user
"""


def live(_request: HttpRequest) -> JsonResponse:
    """The process answers."""
    return JsonResponse({"status": "live"})


def ready(_request: HttpRequest) -> JsonResponse:
    """Whether requests can be served; a broker that is away, or a drain, changes nothing of it."""
    try:
        faults = list(database_faults())
        checks = {"database": OK if not faults else "; ".join(faults)}
        told = {} if faults else drained()
    except Error as fault:
        checks, told = {"database": f"unreachable: {type(fault).__name__}"}, {}
    is_ready = all(state == OK for state in checks.values())
    return JsonResponse(
        {
            "status": "ready" if is_ready else "unready",
            "checks": {**checks, "broker": broker(), **told},
        },
        status=200 if is_ready else 503,
    )


def database_faults() -> Iterator[str]:
    """Say what is wrong with the database: migrations not applied, and roles that may too much."""
    if missing := unapplied_migrations():
        yield f"{len(missing)} migrations are not applied, {missing[0]} first"
        return
    yield from role_faults()


def unapplied_migrations() -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass('django_migrations') IS NOT NULL")
        (migrated,) = cursor.fetchone()
        if migrated:
            cursor.execute("SELECT app, name FROM django_migrations")
        applied = set(cursor.fetchall()) if migrated else set()
    return [f"{app}.{name}" for app, name in migrations_on_disk() if (app, name) not in applied]


@cache
def migrations_on_disk() -> tuple[tuple[str, str], ...]:
    loader = MigrationLoader(None)
    replaced = {key for migration in loader.replacements.values() for key in migration.replaces}
    return tuple(sorted(set(loader.disk_migrations) - replaced))


def role_faults() -> Iterator[str]:
    """Say where the role that requests run as could get around row-level security or history."""
    with connection.cursor() as cursor:
        cursor.execute(POWERS, {"owner": OWNER})
        role, is_superuser, bypasses, is_owner = cursor.fetchone()
        if role != APP:
            yield f"requests run as {role} in place of {APP}"
        if is_superuser or bypasses or is_owner:
            yield f"{role} bypasses row-level security"
        for sql, fault in (
            (OWNED, f"{role} owns"),
            (UNFORCED, "row-level security is not forced on"),
            (REWRITABLE, f"{role} may rewrite"),
            (TRUNCATABLE, f"{role} may truncate"),
        ):
            cursor.execute(sql, {"role": role, "named": list(ALWAYS_APPEND_ONLY)})
            if names := [name for (name,) in cursor.fetchall()]:
                yield f"{fault} {', '.join(names)}"


def drained() -> dict[str, str]:
    """Say which workers begin nothing, where there are any: requests are served all the same."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT host, since FROM interrupts_drain ORDER BY since")
        drains = [f"{host} since {since.isoformat()}" for host, since in cursor.fetchall()]
    return {"drained": "; ".join(drains)} if drains else {}


def broker() -> str:
    with current_app.connection_for_write() as channel:
        try:
            channel.ensure_connection(max_retries=1, timeout=1)
        except (kombu.exceptions.OperationalError, OSError):
            return "unreachable"
    return OK


urlpatterns = [path("healthz/live", live), path("healthz/ready", ready)]
