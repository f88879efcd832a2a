"""What requests about rules may say: published, and checked before any service."""

from __future__ import annotations

from typing import Final

from delegation.drafts import MOST_VALUES as MOST_BY_HAND
from delegation.services.rules import MAX_NOTE
from interrupts.api.shapes import AMOUNT
from tenants.api.body import members, text
from tenants.api.checks import Schema

MOST_CONDITIONS: Final = 200
MOST_VALUES: Final = 5_000

_FIELD: Final = text(101, least=1, description="An argument, or `@agent`.")
_VALUE: Final = text(500)
_NAMED: Final[Schema] = {
    "type": "array",
    "items": _VALUE,
    "minItems": 2,
    "maxItems": 2,
    "description": "`[field, value]`.",
}
_CONDITION: Final = members(
    {"f": _FIELD},
    {
        "in": {"type": "array", "items": _VALUE, "maxItems": MOST_VALUES},
        "le": AMOUNT,
        "any": {"type": "boolean"},
    },
)
_COUNT: Final[Schema] = {"type": "integer", "minimum": 0, "maximum": 2**31 - 1}
PER_DAY: Final = members(
    {},
    {
        "calls": _COUNT,
        "free": {**_COUNT, "description": "How many calls of a day no sum is looked at for."},
        "sum": {"type": "object", "additionalProperties": AMOUNT},
    },
)
_MEMBERS: Final[dict[str, Schema]] = {
    "all": {
        "type": "array",
        "items": _CONDITION,
        "maxItems": MOST_CONDITIONS,
        "description": "Every field of a call, each with one of `in`, `le`, `any`.",
    },
    "except_pairs": {
        "type": "array",
        "items": {"type": "array", "items": _NAMED, "minItems": 2, "maxItems": 2},
        "maxItems": MOST_VALUES,
    },
    "ceilings": {
        "type": "array",
        "items": members({"f": _FIELD, "le": AMOUNT, "when": _NAMED}),
        "maxItems": MOST_VALUES,
    },
    "per_day": PER_DAY,
}
PREDICATE: Final = members({"all": _MEMBERS["all"]}, {**_MEMBERS})
_VERSION: Final[Schema] = {
    "type": "integer",
    "minimum": 1,
    "maximum": 2**31 - 1,
    "description": "The rule's `version` that was read: another one is refused.",
}

ACCEPT: Final = members(
    {"version": _VERSION},
    {"per_day": {**PER_DAY, "description": "Less of it in a day than the rule would allow."}},
)
TIGHTEN: Final = members(
    {
        "version": _VERSION,
        "change": {
            **members({}, _MEMBERS),
            "description": "Members of the predicate that take the place of the rule's own.",
        },
    }
)
PAUSE: Final = members({}, {"note": text(MAX_NOTE)})
BY_HAND: Final = members(
    {
        "tool": text(100, least=1),
        "predicate": {
            **PREDICATE,
            "description": f"Lists, pairs and ceilings hold {MOST_BY_HAND:,} at most each.",
        },
    }
)
ASK_EVERYTHING: Final = members(
    {}, {"wanted": {"type": "boolean", "default": True, "description": "`false`: no more."}}
)
