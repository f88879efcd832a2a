"""What people are asked, and what each answer does, in plain words."""

from collections.abc import Iterable
from decimal import Decimal

from interrupts.models import Reason, Resolution

PARENT_INTERRUPTED = "The run that started this one is interrupted. It goes on when that one does."
OPERATOR_STOP = "The run was stopped. May it go on?"
BUDGET_EXHAUSTED = "The run has used up its budget. May it have more?"
DAY_EXHAUSTED = (
    "The agent has used up what it may use in a day: {names}. It is whole again at {whole_at}."
    " May it have more today?"
)
OWNER_LOST = "The agent that drives this run has gone silent. May the run go on without waiting?"
OUTCOME_UNKNOWN = "Nobody knows whether this call was performed. What happened at the far end?"
COMPENSATION_REFUSED = "The far end refuses to undo this. Try again, or leave it as it is?"
EFFECT_FAILED = "The call was refused. May the run go on?"
AGENT_REQUESTED = "The agent asks a person to look. May it go on?"
VERIFIER_REJECTED = "A check of what was done failed. What is to become of it?"
VERDICT_UNKNOWN = "What was done could not be checked. What is to become of it?"
INPUT_REQUIRED = "The agent needs a value to go on."
MAY_COMPLETE = "May the run be completed with this result?"
CONTEXT_MISSING = "The agent misses something it needs to know."

_CONSEQUENCE = {
    Resolution.RESUME: "The run goes on; what no longer holds is asked anew.",
    Resolution.REVISE: (
        "The steps you name are withdrawn, the agent is told what to do differently,"
        " and the run goes on."
    ),
    Resolution.CANCEL: "The run is cancelled for good; what is in flight is finished first.",
    Resolution.COMPENSATE: "What was done is undone, then the run goes on.",
}
_SPECIAL = {
    (Reason.APPROVAL_REQUIRED, Resolution.RESUME): "Deciding the gate resolves this.",
    (Reason.RISK_THRESHOLD, Resolution.RESUME): "Deciding the gate resolves this.",
    (Reason.CONFIDENCE_THRESHOLD, Resolution.RESUME): "Deciding the gate resolves this.",
    (Reason.MILESTONE, Resolution.RESUME): "Deciding the gate resolves this.",
    (Reason.INPUT_REQUIRED, Resolution.RESUME): "The agent gets the value and the run goes on.",
    (Reason.CONTEXT_MISSING, Resolution.RESUME): "The agent gets the value and the run goes on.",
    (Reason.BUDGET_EXHAUSTED, Resolution.RESUME): (
        "The limits you name are in force from now on; those of a day for that day alone."
    ),
    (Reason.VERIFIER_REJECTED, Resolution.RESUME): "What was done stands, and the run goes on.",
    (Reason.OUTCOME_UNKNOWN, Resolution.RESUME): "What you found out settles the step.",
}


# Of a run's completion, which is held by no gate.
_COMPLETION = {
    Resolution.RESUME: "The run is completed with this result.",
    Resolution.REVISE: (
        "The run goes on and is not completed: the agent is told what to do differently."
    ),
}
# Of a step whose tool needs to know something, which the step's agent did not say.
_KNOWING = {
    Resolution.RESUME: (
        "It counts as known from now on. The step is judged anew, which may ask people."
    ),
    Resolution.REVISE: (
        "The step is withdrawn with those you name, the agent is told what to do differently,"
        " and the run goes on."
    ),
}


def consequences(
    reason: Reason,
    allowed: Iterable[Resolution],
    *,
    gated: bool = False,
    of_step: bool = False,
) -> list[dict[str, str]]:
    special = {one: text for (of, one), text in _SPECIAL.items() if of == reason}
    if reason == Reason.MILESTONE and not gated:
        special = _COMPLETION
    elif reason == Reason.CONTEXT_MISSING and of_step:
        special = _KNOWING
    return [
        {
            "resolution": resolution.value,
            "consequence": special.get(resolution, _CONSEQUENCE[resolution]),
        }
        for resolution in allowed
    ]


def plain(number: Decimal) -> str:
    """Write a decimal number plainly: no exponent, no zeros at the end of its fraction."""
    text = format(number, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text
