"""What answers about gates and policy hold, for the published OpenAPI document."""

from __future__ import annotations

from typing import Final

from approvals.models import Ceremony, GateState, Pattern, Verdict
from approvals.policy.reasons import DECISIONS
from interrupts.api.bodies import one_of
from interrupts.api.shapes import (
    DIGEST,
    FLAG,
    ID_OR_NONE,
    INSTANT_OR_NONE,
    INTEGER,
    NUMBER,
    STATE_VERSION,
    TEXT,
    TEXT_OR_NONE,
    listed,
    or_none,
    shown,
)
from interrupts.models import Choice, Effect, Risk
from tenants.api.body import ANY, FREE, ID, INSTANT, nullable
from tenants.api.checks import Schema
from tenants.api.openapi import component

TRIGGER: Final = shown(
    rule=TEXT,
    trigger=one_of("action", "risk", "confidence", "milestone", "budget", "default"),
    explanation=TEXT,
)
PREVIEW: Final = shown(
    summary=TEXT,
    changes=listed(shown(object=TEXT, before=ANY, after=ANY)),
    warnings=listed(TEXT),
    observed_at=INSTANT,
    fresh_until=INSTANT_OR_NONE,
)
DRY_RUN: Final = shown(
    summary=TEXT,
    changes=PREVIEW["properties"]["changes"],
    warnings=listed(TEXT),
    outdated={**FLAG, "description": "It is of other arguments: people edited them since."},
    differs_in={
        **listed(TEXT),
        "type": ["array", "null"],
        "description": "Objects of which the tool's own preview says something else; null: it"
        " can't be told.",
    },
)
_FOR_PEOPLE: Final = "Left out for agents."
INTEGER_OR_NONE: Final = nullable(INTEGER)
QUORUM: Final = shown(needed=INTEGER, given=INTEGER)
_OWN_END: Final[dict[str, Schema]] = {
    "expires_in": {
        **INTEGER_OR_NONE,
        "description": "Seconds from when it is opened, where it has an end of its own.",
    },
    "on_expiry": TEXT_OR_NONE,
    "escalate_to": TEXT_OR_NONE,
}
ASKED_STAGES: Final = {
    **listed(shown(approvers=listed(TEXT), quorum=INTEGER, **_OWN_END)),
    "description": "Who decides one after the other; none: all together.",
}
STAGE: Final = component(
    "GateStage",
    shown(
        number=INTEGER,
        state=one_of("approved", "open", "waiting", "ended"),
        approvers={**listed(TEXT), "description": "Groups; none: whoever may decide the tool."},
        quorum=QUORUM,
        decisions={**listed(ID), "description": "The approvals of it that stand."},
        **_OWN_END,
        expires_at={
            **INSTANT_OR_NONE,
            "description": "When it ends, of the open one: by itself or with the whole decision.",
        },
    ),
)
DECISION: Final = component(
    "Decision",
    {
        "type": "object",
        "properties": {
            "id": ID,
            "by": {**TEXT, "description": _FOR_PEOPLE},
            "acting_for": {
                **TEXT_OR_NONE,
                "description": f"For whom they stood in: it was by that one's authority. {_FOR_PEOPLE}",
            },
            "delegation": {
                **ID_OR_NONE,
                "description": f"The rule that decided it, in their name. {_FOR_PEOPLE}",
            },
            "verdict": one_of(*Verdict),
            "digest": DIGEST,
            "edits": or_none(FREE),
            "reason": TEXT_OR_NONE,
            "reason_code": {**TEXT_OR_NONE, "description": "Of the declared one that was chosen."},
            "reason_text": {**TEXT_OR_NONE, "description": "What that one says."},
            "policy_version": INTEGER,
            "stage": {**INTEGER_OR_NONE, "description": "In which it was said, if any."},
            "counts": FLAG,
            "at": INSTANT,
            "withdrawn_at": INSTANT_OR_NONE,
        },
        "required": [
            "id",
            "verdict",
            "digest",
            "edits",
            "reason",
            "reason_code",
            "reason_text",
            "policy_version",
            "stage",
            "counts",
            "at",
            "withdrawn_at",
        ],
    },
)
QUESTION: Final = component(
    "Question",
    {
        "type": "object",
        "properties": {
            "id": ID,
            "text": TEXT,
            "by": {**TEXT, "description": _FOR_PEOPLE},
            "at": INSTANT,
            "answer": {**TEXT_OR_NONE, "description": "The agent's words, which prove nothing."},
            "answered_at": INSTANT_OR_NONE,
        },
        "required": ["id", "text", "at", "answer", "answered_at"],
    },
)
_ASKED: Final[Schema] = shown(
    id=ID,
    gate=ID,
    text=TEXT,
    asked_at=INSTANT,
    answer=TEXT_OR_NONE,
    answered_at=INSTANT_OR_NONE,
    state_version=STATE_VERSION,
)
ASKED: Final = component(
    "AskedQuestion",
    {
        **_ASKED,
        "properties": {
            **_ASKED["properties"],
            "asked_by": {**TEXT, "description": _FOR_PEOPLE},
        },
    },
)
_GATE: Final[Schema] = shown(
    id=ID,
    run=ID,
    step=ID,
    interrupt=ID_OR_NONE,
    pattern=one_of(*Pattern),
    state=one_of(*GateState),
    risk=one_of(*Risk),
    effect=one_of(*Effect),
    ceremony=one_of(*Ceremony),
    what=shown(
        headline=TEXT,
        consequence=TEXT_OR_NONE,
        tool=TEXT,
        tool_version=INTEGER,
        arguments={**FREE, "type": ["object", "null"]},
        arguments_digest=DIGEST,
        digest=DIGEST,
        preview_error=TEXT_OR_NONE,
        preview=or_none(PREVIEW),
    ),
    why=shown(
        goal=TEXT,
        started_by=listed(ID),
        reasoning=TEXT_OR_NONE,
        confidence=nullable(NUMBER),
        risk_score=nullable(NUMBER),
        milestone=TEXT_OR_NONE,
        dry_run=or_none(
            {**DRY_RUN, "description": "Of the agent's own making: its word, and no preview."}
        ),
        previous_steps=listed(
            shown(id=ID, position=INTEGER, tool=TEXT, status=TEXT, outcome=TEXT_OR_NONE)
        ),
    ),
    what_could_go_wrong=shown(
        failure_modes=listed(TEXT),
        named_by_agent=listed(TEXT),
        reversible=FLAG,
        compensation=TEXT_OR_NONE,
        blast_radius=TEXT_OR_NONE,
    ),
    triggers=listed(TRIGGER),
    policy_version=INTEGER,
    twin=ID_OR_NONE,
    quorum={**QUORUM, "description": "Of all stages together, where there are any."},
    approvers={**listed(TEXT), "description": "Of stages, those of the open one."},
    stage={**INTEGER_OR_NONE, "description": "The open one, or the last that was, from 1."},
    stages={**listed(STAGE), "description": "None where people decide it together."},
    may_decide=FLAG,
    undecidable=FLAG,
    required_confirmation=TEXT_OR_NONE,
    allowed=listed(shown(verdict=one_of(*Verdict), consequence=TEXT)),
    allowed_decisions={
        **listed(one_of(*Choice)),
        "description": "What its tool lets people choose; `edit` is to approve with `arguments`.",
    },
    reasons={
        **listed(
            shown(code=TEXT, text=TEXT, decisions=listed(one_of(*DECISIONS)), needs_note=FLAG)
        ),
        "description": "Which the tenant declares: `reason_code` names one.",
    },
    expires_at=INSTANT_OR_NONE,
    extendable_until={
        **INSTANT_OR_NONE,
        "description": "Until when people who may decide it may have it wait at most; null: no"
        " longer than it does.",
    },
    on_expiry=TEXT_OR_NONE,
    escalate_to={**TEXT_OR_NONE, "description": "The group that is asked after those asked first."},
    escalated={**FLAG, "description": "That group is asked now."},
    cool_down={**NUMBER, "description": "Seconds that an approval waits before it takes effect."},
    opened_at=INSTANT,
    settled_at=INSTANT_OR_NONE,
    decisions=listed(DECISION),
    questions=listed(QUESTION),
    state_version=STATE_VERSION,
)
GATE: Final = component(
    "Gate",
    {
        **_GATE,
        "properties": {
            **_GATE["properties"],
            "acting_for": {
                **TEXT_OR_NONE,
                "description": "For whom the caller would decide, by that one's authority; null:"
                f" for themself, or not at all. {_FOR_PEOPLE}",
            },
            "similar": {
                **or_none(shown(approved=INTEGER, rejected=INTEGER, edited=INTEGER)),
                "description": "How the tool's latest gates ended; null once nothing is left to"
                f" decide. {_FOR_PEOPLE}",
            },
            "why_asked": {
                **TEXT_OR_NONE,
                "description": "What keeps a rule of the caller's from deciding it, in words; null in"
                f" lists. {_FOR_PEOPLE}",
            },
            "delegation_offer": {
                **or_none(
                    shown(
                        id=ID,
                        version=INTEGER,
                        sentence=TEXT,
                        allowed=INTEGER,
                        refused=INTEGER,
                        asked=INTEGER,
                    )
                ),
                "description": "A rule that the caller may accept so that the like runs without"
                f" asking them, with its back-test; null in lists. {_FOR_PEOPLE}",
            },
        },
    },
)
SUBSTITUTION: Final = component(
    "Substitution",
    shown(
        id=ID,
        person=TEXT,
        substitute=TEXT,
        starts_at=INSTANT,
        ends_at=INSTANT,
        ended_at={**INSTANT_OR_NONE, "description": "When somebody ended it before its time."},
    ),
)
_REFUSED: Final = shown(code=TEXT, title=TEXT, detail=TEXT)
_TOLD: Final[Schema] = shown(gate=ID, status=one_of("approved", "counted", "refused"))
BULK: Final = component(
    "BulkDecisions",
    shown(
        results=listed(
            {
                **_TOLD,
                "properties": {
                    **_TOLD["properties"],
                    "problem": {**_REFUSED, "description": "Of what was refused: why."},
                },
            }
        )
    ),
)
POLICY: Final = component(
    "Policy",
    shown(
        policy_version=INTEGER,
        policy=FREE,
        digest=TEXT_OR_NONE,
        why=TEXT_OR_NONE,
        published_at=INSTANT_OR_NONE,
        published_by=TEXT_OR_NONE,
    ),
)
CHECKED: Final = component(
    "PolicyCheck",
    shown(
        verdict=one_of("allow", "approve", "deny"),
        rule=TEXT,
        reason=TEXT_OR_NONE,
        triggers=listed(TRIGGER),
        stages=ASKED_STAGES,
        policy_version=INTEGER,
    ),
)

VERDICT: Final = one_of("allow", "approve", "deny")
EXPLAINED: Final = component(
    "PolicyExplanation",
    shown(
        step=ID,
        policy_version=INTEGER,
        decided=or_none(VERDICT),
        verdict=or_none(VERDICT),
        rule=TEXT_OR_NONE,
        reason=TEXT_OR_NONE,
        rules=or_none(
            listed(
                shown(
                    rule=TEXT,
                    trigger=one_of("action", "risk", "confidence", "milestone"),
                    then=VERDICT,
                    counts=FLAG,
                    explanation=TEXT,
                )
            )
        ),
        stages=ASKED_STAGES,
        now=or_none(shown(policy_version=INTEGER, verdict=VERDICT, rule=TEXT, stages=ASKED_STAGES)),
        seen=nullable({**FREE, "description": "What policy saw then that may be otherwise now."}),
    ),
)
_COUNTS: Final[dict[str, Schema]] = {
    "decided": {**INTEGER, "description": "By people, once by whatever quorum."},
    "as_proposed": INTEGER,
    "edited": INTEGER,
    "refused": {**INTEGER, "description": "Rejected, or sent back for changes."},
    "responded": INTEGER,
    "undone": {
        **INTEGER,
        "description": "Of those approved: compensated, or the approval taken back.",
    },
}
_NUMBER_OR_NONE: Final = nullable(NUMBER)
_PROPORTION: Final = component(
    "Proportion",
    {
        **shown(rate=NUMBER, lower=NUMBER, upper=NUMBER),
        "description": "What was seen, and the 95 % Wilson interval of what it stands for.",
    },
)
_BAND: Final[dict[str, Schema]] = {
    "from": {**_NUMBER_OR_NONE, "description": "Null, as `to`: nothing was scored or stated."},
    "to": {**_NUMBER_OR_NONE, "description": "Not in the band itself, but 1 is."},
    **_COUNTS,
    "stated": {**_NUMBER_OR_NONE, "description": "The mean of what was scored or stated."},
    "as_proposed_rate": _NUMBER_OR_NONE,
    "refusal": or_none(_PROPORTION),
}
CALIBRATION: Final = component(
    "Calibration",
    shown(
        since=INSTANT,
        tool=TEXT_OR_NONE,
        workflow=TEXT_OR_NONE,
        considered=INTEGER,
        more=FLAG,
        decided=INTEGER,
        calibration_error=_NUMBER_OR_NONE,
        score=listed(shown(**_BAND)),
        risk_score=listed(shown(**_BAND)),
        confidence=listed(
            shown(
                **_BAND,
                gap={
                    **_NUMBER_OR_NONE,
                    "description": "`stated` less `as_proposed_rate`: above 0 is too sure.",
                },
            )
        ),
    ),
)
OVERGATING: Final = component(
    "Overgating",
    shown(
        since=INSTANT,
        considered=INTEGER,
        more=FLAG,
        policy_version=INTEGER,
        minimum=INTEGER,
        rules=listed(
            shown(
                rule=TEXT,
                since_version=INTEGER,
                asked=INTEGER,
                alone={**INTEGER, "description": "No other rule asked about the same call."},
                **_COUNTS,
                reasons={
                    **listed(shown(code=TEXT, times=INTEGER)),
                    "description": "The declared reasons that people chose, the most frequent first.",
                },
                median_seconds=_NUMBER_OR_NONE,
                refusal=or_none(_PROPORTION),
                in_vain=FLAG,
                meaning=TEXT,
            )
        ),
    ),
)
