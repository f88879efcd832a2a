"""What answers hold, for the published OpenAPI document; tests hold renderers to these."""

from __future__ import annotations

from typing import Any, Final

from interrupts.api.bodies import one_of
from interrupts.models import (
    Choice,
    Effect,
    FreezeScope,
    InFlight,
    InterruptStatus,
    Outcome,
    Reason,
    Resolution,
    ResponseKind,
    Risk,
    RunStatus,
    Source,
    StepStatus,
    Suspension,
    VerdictStatus,
)
from tenants.api.body import ANY, FREE, ID, INSTANT, nullable
from tenants.api.checks import Schema
from tenants.api.openapi import component

TEXT: Final[Schema] = {"type": "string"}
INTEGER: Final[Schema] = {"type": "integer"}
NUMBER: Final[Schema] = {"type": "number"}
FLAG: Final[Schema] = {"type": "boolean"}
DIGEST: Final[Schema] = {"type": "string", "pattern": "^sha256:[0-9a-f]{64}$"}
AMOUNT: Final[Schema] = {
    "type": "string",
    "pattern": r"^[0-9]+(\.[0-9]+)?$",
    "description": "An amount as text, exact.",
}
TEXT_OR_NONE: Final = nullable(TEXT)
ID_OR_NONE: Final = nullable(ID)
INSTANT_OR_NONE: Final = nullable(INSTANT)


def shown(**properties: Schema) -> Schema:
    """Return the schema of an object that always has all of these members."""
    return {"type": "object", "required": list(properties), "properties": properties}


def listed(item: Schema) -> Schema:
    return {"type": "array", "items": item}


def or_none(schema: Schema) -> Schema:
    return {"oneOf": [schema, {"type": "null"}]}


def _one_of_or_none(*values: Any) -> Schema:
    return {"type": ["string", "null"], "enum": [*(str(value) for value in values), None]}


STATE_VERSION: Final[Schema] = {
    "type": "integer",
    "description": "The version of the run's state: its ETag, and what `after_version` means.",
}
ACTOR: Final = component(
    "Actor",
    {
        **shown(
            kind=one_of("agent", "user", "system", "delegation"), id=TEXT_OR_NONE, name=TEXT_OR_NONE
        ),
        "description": "Who acted. Agents are not told which person did.",
    },
)
GUIDANCE: Final = component(
    "Guidance", shown(id=ID, text=TEXT, by=TEXT, at=INSTANT, acknowledged=FLAG)
)
OPEN_QUESTION: Final = component(
    "OpenQuestion",
    {
        **shown(id=ID, step=ID, gate=ID, text=TEXT, at=INSTANT),
        "description": "What a person asks the agent about a step that waits; its answer is missing.",
    },
)
USAGE: Final = component("Usage", shown(steps=INTEGER, cost=AMOUNT, seconds=NUMBER, tokens=INTEGER))
LIMITS: Final = component(
    "Limits",
    {
        "type": "object",
        "properties": {"steps": INTEGER, "cost": AMOUNT, "seconds": NUMBER, "tokens": INTEGER},
        "additionalProperties": False,
    },
)

RUN: Final = component(
    "Run",
    shown(
        id=ID,
        agent=TEXT,
        workflow=TEXT,
        goal=TEXT,
        parent=ID_OR_NONE,
        status=one_of(*RunStatus),
        suspension=_one_of_or_none(*Suspension),
        suspension_counts=shown(unknown=INTEGER, in_flight=INTEGER, partial=INTEGER),
        requested_by=TEXT_OR_NONE,
        inputs=FREE,
        labels=FREE,
        guidance=listed(GUIDANCE),
        questions=listed(OPEN_QUESTION),
        session=INTEGER,
        idle_after=nullable(NUMBER),
        forked_from=ID_OR_NONE,
        epoch=INTEGER,
        state_version=STATE_VERSION,
        checkpoint=ID_OR_NONE,
        open_interrupts=listed(ID),
        usage=USAGE,
        budget=LIMITS,
        output=ANY,
        error=ANY,
        damaged=nullable(shown(at=INSTANT, what=TEXT)),
        created_at=INSTANT,
        updated_at=INSTANT,
        ended_at=INSTANT_OR_NONE,
    ),
)
CLAIMED_RUN: Final = shown(
    session=INTEGER, lease_expires_at=INSTANT_OR_NONE, state_version=STATE_VERSION
)
USAGE_REPORTED: Final = shown(
    stop_requested=FLAG, guidance=listed(GUIDANCE), usage=USAGE, state_version=STATE_VERSION
)

RECEIPT: Final = component(
    "Receipt",
    shown(
        id=ID,
        attempt=ID_OR_NONE,
        compensation=FLAG,
        source=one_of(*Source),
        outcome=one_of(*Outcome),
        result=ANY,
        external_id=TEXT_OR_NONE,
        cost=nullable(AMOUNT),
        error=TEXT_OR_NONE,
        evidence=TEXT_OR_NONE,
        by=TEXT,
        observed_at=INSTANT,
    ),
)
VERDICT: Final = component(
    "Verdict",
    {
        **shown(
            status=one_of(*VerdictStatus),
            holds=FLAG,
            receipt=ID,
            words=TEXT_OR_NONE,
            error=TEXT_OR_NONE,
            tries=INTEGER,
            awaited_since=INSTANT,
            recorded_at=INSTANT_OR_NONE,
        ),
        "description": "What the tool's verifier says of the receipt; its words are nobody else's."
        " While it `holds`, the run starts no step.",
    },
)
STEP: Final = component(
    "Step",
    shown(
        id=ID,
        run=ID,
        position=INTEGER,
        group=ID,
        parallel=FLAG,
        key=TEXT_OR_NONE,
        tool=TEXT,
        tool_version=INTEGER,
        arguments={**FREE, "type": ["object", "null"]},
        digest=DIGEST,
        status=one_of(*StepStatus),
        reason=TEXT_OR_NONE,
        reason_code={
            **TEXT_OR_NONE,
            "description": "Of the declared reason that a person chose: see a gate's `reasons`.",
        },
        authorization=or_none(
            shown(
                by=one_of("policy", "decision", "delegation"),
                rule={
                    **TEXT_OR_NONE,
                    "description": "Null to agents where it is a rule of a person's.",
                },
                policy_version=INTEGER,
                gate=ID_OR_NONE,
                digest=DIGEST,
            )
        ),
        gate=ID_OR_NONE,
        interrupt=ID_OR_NONE,
        questions=listed(OPEN_QUESTION),
        attempts=INTEGER,
        outcome=_one_of_or_none(*Outcome),
        result=ANY,
        error=TEXT_OR_NONE,
        external_id=TEXT_OR_NONE,
        receipts=listed(RECEIPT),
        verdict=or_none(VERDICT),
        state_version=STATE_VERSION,
        created_at=INSTANT,
        settled_at=INSTANT_OR_NONE,
    ),
)
PROPOSED: Final[Schema] = {"oneOf": [STEP, shown(steps=listed(STEP), state_version=STATE_VERSION)]}
CLAIMED_STEP: Final = shown(
    attempt=ID,
    fence=INTEGER,
    epoch=INTEGER,
    idempotency_key=TEXT,
    arguments=FREE,
    digest=DIGEST,
    lease_expires_at=INSTANT_OR_NONE,
    state_version=STATE_VERSION,
)
BEAT: Final = shown(lease_expires_at=INSTANT_OR_NONE, cancel_requested=FLAG)

INTERRUPT: Final = component(
    "Interrupt",
    shown(
        id=ID,
        run=ID,
        step=ID_OR_NONE,
        gate=ID_OR_NONE,
        checkpoint=ID,
        reason=one_of(*Reason),
        status=one_of(*InterruptStatus),
        in_flight=one_of(*InFlight),
        suspension=_one_of_or_none(*Suspension),
        evidence=FREE,
        note=TEXT_OR_NONE,
        required_response=shown(
            kind=one_of(*ResponseKind),
            question=TEXT,
            schema={**FREE, "type": ["object", "null"]},
            who=listed(TEXT),
            allowed=listed(shown(resolution=one_of(*Resolution), consequence=TEXT)),
            expires_at=INSTANT_OR_NONE,
            on_expiry=TEXT_OR_NONE,
        ),
        resolution=_one_of_or_none(*Resolution),
        response=or_none(FREE),
        opened_by=ACTOR,
        resolved_by=or_none(ACTOR),
        state_version=STATE_VERSION,
        opened_at=INSTANT,
        resolved_at=INSTANT_OR_NONE,
    ),
)

_CHECKPOINT: Final[dict[str, Schema]] = {
    "id": ID,
    "run": ID,
    "sequence": INTEGER,
    "state_version": {
        "type": "integer",
        "description": "The version of the run's state that the checkpoint left it at.",
    },
    "schema_version": INTEGER,
    "status": one_of(*RunStatus),
    "next_step": INTEGER,
    "pending_gates": listed(ID),
    "receipts_through": INTEGER,
    "permissions": FREE,
    "inputs": DIGEST,
    "digest": DIGEST,
    "created_at": INSTANT,
}
AGENT_STATE: Final[Schema] = {
    "type": "object",
    "required": ["format", "version", "size", "digest"],
    "properties": {
        "format": TEXT,
        "version": TEXT,
        "size": INTEGER,
        "digest": DIGEST,
        "data": {"description": "For the run's own agent, operators and admins only."},
    },
}
CHECKPOINT_LISTED: Final = component("CheckpointListed", shown(**_CHECKPOINT))
CHECKPOINT: Final = component("Checkpoint", shown(**_CHECKPOINT, agent_state=or_none(AGENT_STATE)))

_CALLED: Final[Schema] = {
    "type": ["object", "null"],
    "additionalProperties": True,
    "description": "As declared; agents are not told where and how it is called.",
}
TOOL: Final = component(
    "Tool",
    shown(
        name=TEXT,
        version=INTEGER,
        description=TEXT,
        effect=one_of(*Effect),
        risk=one_of(*Risk),
        arguments={**FREE, "description": "The JSON Schema of the arguments."},
        sensitive=listed(TEXT),
        confirmation=TEXT_OR_NONE,
        headline=TEXT_OR_NONE,
        consequence=TEXT_OR_NONE,
        blast_radius=TEXT_OR_NONE,
        failure_modes=listed(TEXT),
        roles=FREE,
        key_lifetime=nullable(INTEGER),
        decisions=listed(one_of(*Choice)),
        cost=nullable({**AMOUNT, "description": "What one call is expected to cost."}),
        context=listed(shown(name=TEXT, longest_age=INTEGER)),
        executor=_CALLED,
        preview=_CALLED,
        reconcile=_CALLED,
        compensate=_CALLED,
        verifier=_CALLED,
        retired_at=INSTANT_OR_NONE,
    ),
)
FREEZE: Final = component(
    "Freeze",
    shown(id=ID, scope=one_of(*FreezeScope), name=TEXT_OR_NONE, note=TEXT, created_at=INSTANT),
)
FROZEN: Final = shown(
    id=ID,
    scope=one_of(*FreezeScope),
    name=TEXT_OR_NONE,
    note=TEXT,
    created_at=INSTANT,
    in_flight=listed(ID),
)
_REACHED: Final = {"in_flight": INTEGER, "held": INTEGER, "waiting": INTEGER}
REACH: Final = shown(
    scope=one_of(*FreezeScope),
    name=TEXT_OR_NONE,
    runs=INTEGER,
    tools=listed(shown(tool=TEXT, **_REACHED)),
    **_REACHED,
)
ENTRY: Final = component(
    "JournalEntry",
    shown(
        seq=INTEGER,
        at=INSTANT,
        actor=shown(kind=one_of("agent", "user", "system", "delegation"), id=TEXT_OR_NONE),
        kind=TEXT,
        data=FREE,
        hash={"type": "string", "pattern": "^[0-9a-f]{64}$"},
    ),
)
