"""What requests may say: each schema is published, and checked before any service is called."""

from __future__ import annotations

from typing import Any, Final

from interrupts.models import FreezeScope, InFlight, Outcome, Reason, Resolution
from tenants.api.body import (
    ANY,
    FREE,
    ID,
    INSTANT,
    EitherShape,
    members,
    text,
)
from tenants.api.checks import Schema

MOST_STEPS: Final = 100  # of one proposal
YEAR_SECONDS: Final = 366 * 24 * 3600
_LONG_TEXT: Final = 20_000

# Twelve digits before the point, so that no number of reports outgrows the column of their sum.
COST: Final[Schema] = {
    "type": "string",
    "pattern": r"^(0|[1-9][0-9]{0,11})(\.[0-9]{1,10})?$",
    "description": "An amount as text, exact: digits and a point, no sign and no exponent.",
    "examples": ["0.10"],
}
COUNT: Final[Schema] = {"type": "integer", "minimum": 0, "maximum": 10**12}
SECONDS: Final[Schema] = {"type": "number", "minimum": 0, "maximum": 10**12}
LATER: Final[Schema] = {"type": "number", "exclusiveMinimum": 0, "maximum": YEAR_SECONDS}
SESSION: Final[Schema] = {
    "type": "integer",
    "minimum": 1,
    "maximum": 2**31 - 1,
    "description": "The number that a claim of the run gave; an older one than the run's is stale.",
}
FENCE: Final[Schema] = {"type": "integer", "minimum": 1, "maximum": 2**31 - 1}
SHARE: Final[Schema] = {"type": "number", "minimum": 0, "maximum": 1}
FLAG: Final[Schema] = {"type": "boolean"}
NAME: Final[Schema] = text(100, least=1)
NOTE: Final[Schema] = text(10_000)
LIMITS: Final[Schema] = members(
    {}, {"steps": COUNT, "cost": COST, "seconds": SECONDS, "tokens": COUNT}
)

_STATE_NAME: Final[dict[str, Schema]] = {"format": NAME, "version": NAME}
WHOLE_STATE: Final[Schema] = members({**_STATE_NAME, "data": ANY})
GROWN_STATE: Final[Schema] = members(
    {
        **_STATE_NAME,
        "base": ID,
        "append": {
            "type": "object",
            "additionalProperties": {"type": "array", "items": ANY},
            "maxProperties": 100,
            "description": "Items to add, by the JSON Pointer of a list in the base's `data`.",
        },
    }
)
ANY_STATE: Final[Schema] = {"oneOf": [WHOLE_STATE, GROWN_STATE]}


def one_of(*values: Any) -> Schema:
    return {"type": "string", "enum": [str(value) for value in values]}


# Runs

START_RUN: Final = members(
    {"workflow": text(200, least=1), "goal": text(_LONG_TEXT, least=1)},
    {
        "inputs": FREE,
        "parent": ID,
        "requested_by": text(150, least=1),
        "budget": LIMITS,
        "labels": {
            "type": "object",
            "additionalProperties": text(1000),
            "maxProperties": 100,
        },
        "idle_after": LATER,
        "agent_state": WHOLE_STATE,
    },
)
REPORT_USAGE: Final = members(
    {}, {"tokens": COUNT, "cost": COST, "seconds": SECONDS, "session": SESSION}
)
ACKNOWLEDGE: Final = members(
    {"guidance": {"type": "array", "items": ID, "maxItems": 1000}}, {"session": SESSION}
)
COMPLETE_RUN: Final = members({"output": ANY}, {"session": SESSION})
FAIL_RUN: Final = members({"error": ANY}, {"session": SESSION})
CANCEL_RUN: Final = members({}, {"note": NOTE, "compensate": FLAG})
FORK_RUN: Final = members({"checkpoint": ID})
PUT_STATE: Final = members({"agent_state": ANY_STATE}, {"session": SESSION})

# Steps

# What the agent found when it tried the call itself; as a whole no larger than a tool's preview.
DRY_RUN: Final = members(
    {
        "summary": text(10_000, least=1),
        "changes": {
            "type": "array",
            "items": members({"object": text(1000, least=1)}, {"before": ANY, "after": ANY}),
            "maxItems": 200,
        },
    },
    {"warnings": {"type": "array", "items": text(1000, least=1), "maxItems": 50}},
)
_STEP_REQUIRED: Final[dict[str, Schema]] = {"tool": NAME, "arguments": FREE}
_STEP_OPTIONAL: Final[dict[str, Schema]] = {
    "key": text(255, least=1, description="The agent's own name for the step, unique for ever."),
    "reasoning": text(_LONG_TEXT),
    "confidence": SHARE,
    "risk_score": SHARE,
    "milestone": NAME,
    "failure_modes": {"type": "array", "items": text(1000), "maxItems": 50},
    "dry_run": DRY_RUN,
    "cost": COST,
    "context": {
        "type": "array",
        "items": members({"name": text(200, least=1), "fresh_until": INSTANT}),
        "maxItems": 100,
    },
    "agent_state": ANY_STATE,
}
_PROPOSAL: Final[dict[str, Schema]] = {"session": SESSION, "parallel": FLAG, "group": ID}
PROPOSE_STEP: Final = members(_STEP_REQUIRED, {**_STEP_OPTIONAL, **_PROPOSAL})
PROPOSE_STEPS: Final = members(
    {
        "steps": {
            "type": "array",
            "items": members(_STEP_REQUIRED, _STEP_OPTIONAL),
            "minItems": 1,
            "maxItems": MOST_STEPS,
        }
    },
    _PROPOSAL,
)
PROPOSE: Final = EitherShape("steps", having=PROPOSE_STEPS, lacking=PROPOSE_STEP)
BESIDE_STEPS: Final = frozenset(_PROPOSAL)

COMPENSATE: Final = members({}, {"note": NOTE})
CLAIM_STEP: Final = members({}, {"session": SESSION})
HEARTBEAT: Final = members({"fence": FENCE})
RECEIPT: Final = members(
    {"fence": FENCE, "outcome": one_of(*Outcome)},
    {
        "result": ANY,
        "external_id": text(1000),
        "cost": COST,
        "error": text(_LONG_TEXT),
    },
)
RECONCILIATION: Final = members(
    {"outcome": one_of("performed", "not_performed"), "evidence": text(10_000, least=1)},
    {"result": ANY, "external_id": text(1000)},
)

# Interrupts

OPEN_INTERRUPT: Final = members(
    {
        "reason": one_of(
            Reason.OPERATOR_STOP,
            Reason.AGENT_REQUESTED,
            Reason.INPUT_REQUIRED,
            Reason.CONTEXT_MISSING,
        )
    },
    {
        "question": text(10_000, least=1),
        "schema": FREE,
        "in_flight": one_of(*InFlight),
        "evidence": FREE,
        "expires_in": LATER,
        "on_expiry": one_of("cancel", "escalate"),
        "note": NOTE,
        "session": SESSION,
    },
)
RESPOND: Final = members(
    {
        "checkpoint": ID,
        # `time_out` is written by the service alone.
        "resolution": one_of(*(one for one in Resolution if one != Resolution.TIME_OUT)),
    },
    {"value": ANY, "note": NOTE},
)

# Freezes

FREEZE: Final = members({"scope": one_of(*FreezeScope), "note": NOTE}, {"name": NAME})
