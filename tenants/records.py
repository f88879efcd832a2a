"""New rows as JSON, for statements that write several at once (see `tenants.statements`).

A row has the same columns each time, whatever is null of it, so the server plans it once.
"""

from __future__ import annotations

import json
from datetime import date
from functools import cache
from typing import Any
from uuid import UUID

from django.db import models


@cache
def _columns(model: type[models.Model]) -> tuple[tuple[str, str], ...]:
    """Return the attributes of a model's rows with the columns that they are kept in."""
    fields = model._meta.concrete_fields  # noqa: SLF001 - Django documents it
    return tuple((field.attname, str(field.column)) for field in fields)


def insert_sql(model: type[models.Model]) -> str:
    """Return the SQL that inserts a row of the model, which is its one parameter: `as_record`."""
    table = model._meta.db_table  # noqa: SLF001 - Django documents it
    columns = ", ".join(f'"{column}"' for _, column in _columns(model))
    return (
        f"INSERT INTO {table} ({columns})"  # noqa: S608 - names of ours
        f" SELECT {columns} FROM jsonb_populate_record(NULL::{table}, %b::jsonb)"
    )


def as_record(row: models.Model) -> str:
    """Return a new row with every column that it has, as JSON."""
    kept = {column: getattr(row, name) for name, column in _columns(type(row))}
    return json.dumps(kept, default=_plain)


def _plain(value: Any) -> str:
    if isinstance(value, bytes | memoryview):
        return f"\\x{bytes(value).hex()}"
    if isinstance(value, date):  # a time is one too
        return value.isoformat()
    if isinstance(value, UUID):
        return str(value)
    raise TypeError(f"{type(value)} has no place in a row")
