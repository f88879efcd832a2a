"""How a guard is taken away: from the database as its owner, or out of the code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import Any

import psycopg
import pytest

Owner = psycopg.Connection[Any]
Removal = Callable[[Owner, pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class Guard:
    """A guard, the promise it keeps, and the tests that go red without it.

    ``red`` is what else than a failed assertion, or a refusal that did not come, may be seen then.
    """

    name: str
    promise: str
    remove: Removal
    tests: tuple[str, ...]
    red: str = ""


def statements(*sql: str) -> Removal:
    def remove(owner: Owner, _: pytest.MonkeyPatch) -> None:
        for statement in sql:
            owner.execute(statement)

    return remove


def drop_constraint(table: str, name: str) -> Removal:
    return statements(f"ALTER TABLE {table} DROP CONSTRAINT {name}")


def drop_index(name: str) -> Removal:
    return statements(f"DROP INDEX {name}")


def drop_trigger(table: str, name: str) -> Removal:
    return statements(f"DROP TRIGGER {name} ON {table}")


def rewrite(function: str, *changes: tuple[str, str]) -> Removal:
    """Replace words of a function's source; each must stand there."""

    def remove(owner: Owner, _: pytest.MonkeyPatch) -> None:
        row = owner.execute("SELECT pg_get_functiondef(%s::regproc)", [function]).fetchone()
        source = row[0] if row else ""
        for old, new in changes:
            assert old in source, f"{function} has no {old!r}"
            source = source.replace(old, new)
        owner.execute(source)

    return remove


def patch(target: str, make: Callable[[Any], Any]) -> Removal:
    """Put ``make(what is there)`` in the place of an attribute, by its dotted path."""

    def remove(_: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
        holder, name = target.rsplit(".", 1)
        found = resolve_name(holder)
        monkeypatch.setattr(found, name, make(getattr(found, name)))

    return remove


def both(*removals: Removal) -> Removal:
    def remove(owner: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
        for removal in removals:
            removal(owner, monkeypatch)

    return remove


def nothing(_: Any) -> Callable[..., None]:
    return lambda *_args, **_more: None


def always(*, value: Any) -> Callable[[Any], Callable[..., Any]]:
    return lambda _: lambda *_args, **_more: value
