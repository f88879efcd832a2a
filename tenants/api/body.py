"""The shape of a request body: one JSON Schema that is both published and checked.

Members that no one declared are refused, unless a schema says ``additionalProperties: true``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from config.errors import InvalidBody
from tenants.api.checks import Found, Schema, compile_check

ID: Final[Schema] = {"type": "string", "format": "uuid"}
INSTANT: Final[Schema] = {"type": "string", "format": "date-time"}
FREE: Final[Schema] = {"type": "object", "additionalProperties": True}
ANY: Final[Schema] = {}
MONEY: Final[Schema] = {
    "type": "string",
    "pattern": r"^(0|[1-9][0-9]{0,17})(\.[0-9]{1,10})?$",
    "description": "A decimal number as text, exact: digits and a point, no sign or exponent.",
    "examples": ["0.10"],
}


def text(limit: int, *, least: int = 0, **more: Any) -> Schema:
    """Return the schema of a text of ``least`` to ``limit`` characters."""
    return {"type": "string", "minLength": least, "maxLength": limit, **more}


def nullable(schema: Schema) -> Schema:
    """Return ``schema`` with null allowed too."""
    return {**schema, "type": [schema["type"], "null"]}


def members(required: Mapping[str, Schema], optional: Mapping[str, Schema] | None = None) -> Schema:
    """Return the schema of an object with these members and no others."""
    return {
        "type": "object",
        "required": list(required),
        "properties": {**required, **(optional or {})},
        "additionalProperties": False,
    }


class Shape:
    """A body's schema, compiled: ``check`` refuses every fault of a body at once."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self._check = compile_check(schema)

    def faults(self, body: Any) -> Found:
        """Return every fault of ``body``, each with its pointer."""
        found: Found = []
        self._check(body, "", found)
        return found

    def check(self, body: Any) -> None:
        """Raise InvalidBody with all faults of ``body``, if it has any."""
        if found := self.faults(body):
            raise InvalidBody(errors=found)


class EitherShape(Shape):
    """Two shapes of a body, told apart by whether it has ``member``."""

    def __init__(self, member: str, having: Schema, lacking: Schema) -> None:
        self.schema = {"oneOf": [lacking, having]}
        with_it, without_it = compile_check(having), compile_check(lacking)

        def check(value: Any, at: str, found: Found) -> None:
            has = isinstance(value, dict) and member in value
            (with_it if has else without_it)(value, at, found)

        self._check = check


NO_BODY: Final = Shape(members({}))
