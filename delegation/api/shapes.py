"""What answers about rules hold, for the published OpenAPI document; tests hold renderers to these."""

from __future__ import annotations

from typing import Final

from delegation.api.bodies import PREDICATE
from delegation.models import DelegationStatus, Origin, PauseReason
from interrupts.api.bodies import one_of
from interrupts.api.shapes import (
    DIGEST,
    FLAG,
    ID_OR_NONE,
    INSTANT_OR_NONE,
    INTEGER,
    NUMBER,
    TEXT,
    TEXT_OR_NONE,
    listed,
    or_none,
    shown,
)
from interrupts.models import StepStatus
from tenants.api.body import FREE, ID, INSTANT
from tenants.api.checks import Schema
from tenants.api.openapi import component

_SUMS: Final[Schema] = {"type": "object", "additionalProperties": TEXT}
_CALL: Final = shown(gate=ID_OR_NONE, arguments=FREE, verdict=TEXT, at=INSTANT)
_STILL: Final = shown(gate=ID_OR_NONE, arguments=FREE, why=TEXT_OR_NONE, at=INSTANT)

RULE: Final = component(
    "Delegation",
    shown(
        id=ID,
        person={**TEXT, "description": "Whom it speaks for."},
        status=one_of(*DelegationStatus),
        origin=one_of(*Origin),
        version=INTEGER,
        tool=TEXT,
        tool_version=INTEGER,
        risk=one_of("low", "medium"),
        conditions={
            **listed(
                shown(
                    field=TEXT,
                    words=TEXT,
                    values=listed(TEXT),
                    at_most=TEXT_OR_NONE,
                )
            ),
            "description": "The scope in plain words: of each field what it may be.",
        },
        exceptions={**listed(TEXT), "description": "Which of these it does not allow together."},
        ceilings={**listed(TEXT), "description": "Lower bounds of amounts, by a value."},
        predicate=PREDICATE,
        evidence={**FREE, "description": "What it rests on, in figures."},
        examples=listed(_CALL),
        still_asks=or_none(_STILL),
        backtest=or_none(
            {
                **shown(allowed=INTEGER, refused=INTEGER, asked=INTEGER),
                "description": "Over the person's own decisions: what it would have allowed of"
                " those approved and of those refused, and what it would have asked.",
            }
        ),
        used_today=shown(
            calls=INTEGER,
            calls_limit={"type": ["integer", "null"]},
            sums=_SUMS,
            sum_limits=_SUMS,
        ),
        uses=INTEGER,
        last_used_at=INSTANT_OR_NONE,
        check_share={**NUMBER, "description": "Of what it allows, how much is asked all the same."},
        checks=shown(answered=INTEGER, refused=INTEGER, last_at=INSTANT_OR_NONE),
        pause_reason=or_none(one_of(*PauseReason)),
        note=TEXT,
        created_at=INSTANT,
        accepted_at=INSTANT_OR_NONE,
        expires_at=INSTANT_OR_NONE,
        revoked_at=INSTANT_OR_NONE,
        sha256=DIGEST,
    ),
)
USE: Final = component(
    "DelegationUse",
    shown(
        id=ID,
        version={**INTEGER, "description": "Of the rule."},
        step=ID,
        run=ID,
        gate=ID_OR_NONE,
        headline=TEXT,
        status=one_of(*StepStatus),
        at=INSTANT,
    ),
)
TEMPLATE: Final = component(
    "DelegationTemplate",
    shown(
        id=ID,
        tool=TEXT,
        tool_version=INTEGER,
        risk=one_of("low", "medium"),
        sentence=TEXT,
        predicate=PREDICATE,
        published_by=TEXT,
        created_at=INSTANT,
        withdrawn_at=INSTANT_OR_NONE,
        sha256=DIGEST,
    ),
)
ASKS_EVERYTHING: Final = shown(asks_everything=FLAG)
