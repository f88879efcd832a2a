"""Promises the database keeps by itself, as operations for migrations."""

from collections.abc import Iterable, Mapping

from django.db.migrations import RunSQL


def legal_moves(table: str, column: str, moves: Mapping[str, Iterable[str]]) -> RunSQL:
    """Refuse a change of ``table.column`` that the table of moves does not have.

    The trigger is called for what is refused, and for nothing else: to call its function takes some
    ten times as long as to ask its condition, since it is given both rows. The condition is a
    function's call, whose plan is kept: the table of moves itself would be read anew for every
    statement. What it does not say is no move.
    """
    legal = ", ".join(sorted(f"'{start} {end}'" for start, ends in moves.items() for end in ends))
    name = f"{table}_{column}_moves"
    may = f"{table}_{column}_may_move"
    return RunSQL(
        f"""
        CREATE FUNCTION {may}(p_from varchar, p_to varchar) RETURNS boolean
            LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
            AS $$ BEGIN RETURN p_from = p_to OR p_from || ' ' || p_to = ANY (ARRAY[{legal}]); END $$;
        CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF OLD.{column} <> NEW.{column}
                AND OLD.{column} || ' ' || NEW.{column} <> ALL (ARRAY[{legal}])
            THEN
                RAISE EXCEPTION 'no such move of %: % to %',
                    TG_TABLE_NAME, OLD.{column}, NEW.{column}
                    USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME;
            END IF;
            RETURN NEW;
        END $$;
        CREATE TRIGGER {name} BEFORE UPDATE OF {column} ON {table} FOR EACH ROW
            WHEN ({may}(OLD.{column}, NEW.{column}) IS NOT TRUE) EXECUTE FUNCTION {name}();
        """,
        f"""
        DROP TRIGGER {name} ON {table};
        DROP FUNCTION {name};
        DROP FUNCTION {may};
        """,
    )


def promise(table: str, name: str, columns: Mapping[str, str], holds: str) -> RunSQL:
    """Add the CHECK ``name`` that ``holds`` of these columns (name to type), as a function's call.

    PostgreSQL reads a CHECK's expression anew for every statement, and a call is short.
    """
    taken = ", ".join(f"{column} {kind}" for column, kind in columns.items())
    return RunSQL(
        f"""
        CREATE FUNCTION {name}({taken}) RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
            AS $$ BEGIN RETURN {holds}; END $$;
        ALTER TABLE {table} ADD CONSTRAINT {name} CHECK ({name}({", ".join(columns)}));
        """,
        f"ALTER TABLE {table} DROP CONSTRAINT {name}; DROP FUNCTION {name};",
    )


def frozen_when(table: str, condition: str) -> RunSQL:
    """Refuse to change or remove a row of ``table`` once ``condition`` held for it."""
    return RunSQL(
        f"""
        CREATE TRIGGER {table}_frozen BEFORE UPDATE OR DELETE ON {table} FOR EACH ROW
            WHEN ({condition}) EXECUTE FUNCTION tenants_refuse_rewrite();
        """,
        f"DROP TRIGGER {table}_frozen ON {table}",
    )


def only_these_change(table: str, columns: str) -> RunSQL:
    """Take from the app role the right to change any other column, and to delete."""
    return RunSQL(
        f"""
        REVOKE UPDATE, DELETE ON {table} FROM abeyance_app;
        GRANT UPDATE ({columns}) ON {table} TO abeyance_app;
        """,
        f"GRANT UPDATE, DELETE ON {table} TO abeyance_app",
    )
