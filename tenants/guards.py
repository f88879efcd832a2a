"""Promises the database keeps by itself, as operations for migrations."""

from collections.abc import Iterable, Mapping

from django.db.migrations import RunSQL


def legal_moves(table: str, column: str, moves: Mapping[str, Iterable[str]]) -> RunSQL:
    """Refuse a change of ``table.column`` that the table of moves does not have."""
    legal = ", ".join(
        sorted(f"('{start}', '{end}')" for start, ends in moves.items() for end in ends)
    )
    name = f"{table}_{column}_moves"
    return RunSQL(
        f"""
        CREATE OR REPLACE FUNCTION tenants_refuse_move() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            RAISE EXCEPTION 'no such move in %: %', TG_TABLE_NAME, TG_ARGV[0]
                USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME;
        END $$;
        CREATE TRIGGER {name} BEFORE UPDATE OF {column} ON {table} FOR EACH ROW
            WHEN (OLD.{column} IS DISTINCT FROM NEW.{column}
                  AND (OLD.{column}, NEW.{column}) NOT IN ({legal}))
            EXECUTE FUNCTION tenants_refuse_move('{column}');
        """,
        f"DROP TRIGGER {name} ON {table}",
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
