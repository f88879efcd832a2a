"""What requests about gates and policy may say: published, and checked before any service."""

from __future__ import annotations

from typing import Final

from approvals.cases import MAX_HOLD_SECONDS
from approvals.models import Verdict
from approvals.policy.reasons import MAX_CODE
from approvals.services.assignments import MAX_NOTE
from approvals.services.bulk import MOST
from approvals.services.extensions import MAX_NOTE as MAX_EXTENSION_NOTE
from approvals.services.questions import MAX_ANSWER, MAX_QUESTION
from approvals.services.simulation import MOST_STEPS, USUAL_STEPS
from interrupts.api.bodies import LIMITS, SESSION, SHARE, one_of
from tenants.api.body import ANY, FREE, ID, INSTANT, members, text

MAX_REASON: Final = 10_000
MAX_CONFIRMATION: Final = 2_000

DECIDE: Final = members(
    {
        "verdict": one_of(*Verdict),
        "digest": text(100, least=1, description="The gate's `what.digest` that was seen."),
    },
    {
        "arguments": {
            **FREE,
            "description": "With `approve`: run these in place of those shown. A masked value sent"
            " back as it was shown stays what it is.",
        },
        "value": {**ANY, "description": "With `respond`: the step's result."},
        "reason": text(
            MAX_REASON,
            description="The person's own words. Needed to reject and to request changes, where no"
            " reasons are declared or the chosen one needs a note.",
        ),
        "reason_code": text(
            MAX_CODE,
            least=1,
            description="Of one of the gate's `reasons` for this decision. Needed where there are"
            " any, but for approving what is shown.",
        ),
        "confirmation": {
            "oneOf": [{"type": "boolean"}, text(MAX_CONFIRMATION)],
            "description": "`true` where the ceremony is explicit, the text where it is typed.",
        },
        "hold_seconds": {
            "type": "number",
            "minimum": 0,
            "maximum": MAX_HOLD_SECONDS,
            "description": "With `approve` of what is of low risk: start no sooner, so that the"
            " decision can be taken back.",
        },
    },
)

BULK: Final = members(
    {
        "decisions": {
            "type": "array",
            "minItems": 1,
            "maxItems": MOST,
            "items": members({"gate": ID, "digest": DECIDE["properties"]["digest"]}),
            "description": "Each gate once, with the digest that was seen of it.",
        }
    }
)
ASK: Final = members({"text": text(MAX_QUESTION, least=1)})
ANSWER: Final = members({"text": text(MAX_ANSWER, least=1)}, {"session": SESSION})

REASSIGN: Final = members(
    {"to": text(150, least=1, description="A username.")}, {"note": text(MAX_NOTE)}
)

SUBSTITUTE: Final = members(
    {
        "substitute": text(150, least=1, description="A username."),
        "ends_at": {**INSTANT, "description": "It ends by itself then."},
    },
    {
        "starts_at": {**INSTANT, "description": "Absent: now."},
        "person": text(150, least=1, description="For whom, where an admin says it of another."),
    },
)
EXTEND: Final = members(
    {
        "expires_at": {
            **INSTANT,
            "description": "Later than it is, and no later than the gate's `extendable_until`.",
        },
        "note": text(MAX_EXTENSION_NOTE, least=1),
    }
)

CHECK: Final = members(
    {"tool": text(200, least=1), "arguments": FREE},
    {
        "confidence": SHARE,
        "risk_score": SHARE,
        "milestone": text(200),
        "workflow": text(200),
        "at": {**INSTANT, "description": "When it is supposed to be proposed; now."},
        "usage": {**LIMITS, "description": "What its run is supposed to have used; nothing."},
    },
)

SIMULATE: Final = members(
    {"policy": {**FREE, "description": "A policy as the tenant file has it."}},
    {
        "since": {**INSTANT, "description": "Try it on steps proposed since; 30 days ago."},
        "limit": {
            "type": "integer",
            "minimum": 1,
            "maximum": MOST_STEPS,
            "default": USUAL_STEPS,
        },
        "after": {**ID, "description": "Where to go on: `next` of the answer before."},
    },
)
