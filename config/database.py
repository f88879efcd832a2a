"""The database's four roles and Django's three ways in.

`owner` owns every table and migrates; `app` is what requests and workers run as, under row-level
security; `sweep` sees what is due and nothing else; `keys` cannot log in and owns the one function
that finds the tenant of a key.
"""

from collections.abc import Mapping
from typing import Any

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from config.supervisor.failures import CannotStart
from config.supervisor.paths import DataFolder
from config.supervisor.postgres import PORT

NAME = "abeyance"
OWNER, APP = "abeyance_owner", "abeyance_app"
SWEEP, KEYS = "abeyance_sweep", "abeyance_keys"
ROLES: Mapping[str, str] = {
    OWNER: "NOSUPERUSER BYPASSRLS NOCREATEROLE",
    APP: "NOSUPERUSER NOBYPASSRLS NOCREATEROLE NOCREATEDB",
    SWEEP: "NOSUPERUSER NOBYPASSRLS NOCREATEROLE NOCREATEDB",
    KEYS: "NOSUPERUSER BYPASSRLS NOCREATEROLE NOCREATEDB NOLOGIN",
}
ALIASES: Mapping[str, str] = {"default": APP, "owner": OWNER, "sweep": SWEEP}
URL_OF_ALIAS: Mapping[str, str] = {"default": "DATABASE_APP_URL", "sweep": "DATABASE_SWEEP_URL"}
MIGRATING = 0x61627901  # the advisory lock that one migration at a time holds


def databases(environ: Mapping[str, str], folder: DataFolder) -> dict[str, dict[str, Any]]:
    """Return Django's DATABASES: on DATABASE_URL, else on the embedded cluster."""
    return {alias: _settings(alias, environ, folder) for alias in ALIASES}


def _settings(alias: str, environ: Mapping[str, str], folder: DataFolder) -> dict[str, Any]:
    url = environ.get(URL_OF_ALIAS.get(alias, ""), "") or environ.get("DATABASE_URL", "")
    if url:
        parts = parse_url(url)
    else:
        parts = {"host": str(folder.postgres_socket), "port": PORT, "dbname": NAME}
        parts["user"] = ALIASES[alias]
    session = f"-c role={ALIASES[alias]} -c TimeZone=UTC"
    options = {"options": f"{parts.pop('options', '')} {session}".strip(), "connect_timeout": 5}
    known = ("dbname", "user", "password", "host", "port")
    name, user, password, host, port = (str(parts.pop(key, "")) for key in known)
    return {
        "ENGINE": "config.backend",
        "NAME": name,
        "USER": user,
        "PASSWORD": password,
        "HOST": host,
        "PORT": port,
        "CONN_MAX_AGE": None,
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": {**options, "application_name": f"abeyance {alias}", **parts},
    }


def connect_parameters(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return psycopg's parameters for one of Django's DATABASES, for use without Django."""
    names = {"dbname": "NAME", **{key.lower(): key for key in ("USER", "PASSWORD", "HOST", "PORT")}}
    given = {key: settings[name] for key, name in names.items() if settings[name]}
    return {**given, **settings["OPTIONS"]}


def parse_url(url: str) -> dict[str, Any]:
    """Return the parts of a PostgreSQL URL; CannotStart says that it is none, without quoting it."""
    try:
        parts = dict(conninfo_to_dict(url))
    except psycopg.ProgrammingError:
        raise CannotStart("DATABASE_URL is not a PostgreSQL URL") from None
    return {"dbname": NAME, **parts}


def make_roles(conninfo: str, *, login: bool, createdb: bool = False) -> None:
    """Make the four roles what they must be; a repeat changes nothing.

    `login` is for the embedded cluster, whose socket only its user reaches. Elsewhere the roles are
    assumed by whoever owns DATABASE_URL. Raises CannotStart where that login may not.
    """
    with connected(conninfo) as connection:
        connection.execute("SELECT pg_advisory_lock(%s)", [MIGRATING])
        try:
            for role, attributes in ROLES.items():
                _make_role(connection, role, attributes, login=login and role != KEYS)
            _relate_roles(connection, login=login, createdb=createdb)
        except psycopg.errors.InsufficientPrivilege as refusal:
            raise CannotStart(
                f"the login of DATABASE_URL may not make the roles {', '.join(ROLES)}"
                f" ({refusal.diag.message_primary}); let a superuser start the service once"
            ) from refusal


def connected(conninfo: str) -> psycopg.Connection:
    try:
        return psycopg.connect(conninfo, autocommit=True, connect_timeout=10)
    except psycopg.OperationalError as fault:
        reason = str(fault).strip().splitlines()[-1]
        raise CannotStart(f"can't connect to the database of DATABASE_URL: {reason}") from fault


def _make_role(connection: psycopg.Connection, role: str, attributes: str, *, login: bool) -> None:
    wanted = f"{attributes} {'LOGIN' if login else ''}"
    known = connection.execute(
        "SELECT rolsuper, rolbypassrls, rolcreaterole, rolcanlogin FROM pg_roles WHERE rolname = %s",
        [role],
    ).fetchone()
    if known is None:
        statement = f"CREATE ROLE {{}} {wanted}"
    elif known == (False, " BYPASSRLS" in attributes, False, known[3] or login):
        return
    else:
        statement = f"ALTER ROLE {{}} {wanted}"
    connection.execute(sql.SQL(statement).format(sql.Identifier(role)))


def _relate_roles(connection: psycopg.Connection, *, login: bool, createdb: bool) -> None:
    # The owner hands its functions over to the keys role, so it must be able to become it.
    connection.execute(f"GRANT {KEYS} TO {OWNER}")
    if createdb:
        connection.execute(f"ALTER ROLE {OWNER} CREATEDB")
    if login:
        return
    for role in (OWNER, APP, SWEEP):
        connection.execute(
            sql.SQL(
                "DO $$ BEGIN IF NOT pg_has_role(current_user, {name}, 'SET') THEN"
                " GRANT {role} TO CURRENT_USER; END IF; END $$"
            ).format(name=sql.Literal(role), role=sql.Identifier(role))
        )
    connection.execute(f"GRANT ALL ON SCHEMA public TO {OWNER} WITH GRANT OPTION")


def make_database(conninfo: str, name: str = NAME) -> None:
    """Make the database, owned by the owner role; a repeat changes nothing."""
    with psycopg.connect(conninfo, autocommit=True) as connection:
        known = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name])
        if known.fetchone() is None:
            connection.execute(
                sql.SQL("CREATE DATABASE {} OWNER {}").format(
                    sql.Identifier(name), sql.Identifier(OWNER)
                )
            )


PRIVILEGES_BEFORE = f"""
REVOKE ALL ON SCHEMA public FROM PUBLIC;
GRANT USAGE ON SCHEMA public TO {APP}, {SWEEP};
GRANT USAGE, CREATE ON SCHEMA public TO {KEYS};
ALTER DEFAULT PRIVILEGES GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO {APP};
ALTER DEFAULT PRIVILEGES GRANT USAGE, SELECT ON SEQUENCES TO {APP};
"""
"""What the owner gives before it migrates: the app role gets to read and write, never TRUNCATE."""

PRIVILEGES_AFTER = f"REVOKE INSERT, UPDATE, DELETE ON django_migrations FROM {APP};"
"""The app role reads what is migrated, for the readiness check, and writes none of it."""
