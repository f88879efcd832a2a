"""What a run may be: its nouns, its states and the moves between them."""

from interrupts.models.holds import InFlight, Interrupt, InterruptStatus
from interrupts.models.runs import AgentDay, Checkpoint, Content, Guidance, Run
from interrupts.models.states import (
    ENDED,
    OPEN_STEPS,
    RUN_MOVES,
    STEP_MOVES,
    VERDICT_MOVES,
    Choice,
    Effect,
    Executor,
    Outcome,
    Reason,
    Resolution,
    ResponseKind,
    Risk,
    RunStatus,
    StepStatus,
    Suspension,
    VerdictStatus,
)
from interrupts.models.steps import Attempt, Question, Receipt, Source, Step
from interrupts.models.tools import Freeze, FreezeScope, Tool, ToolVersion
from interrupts.models.upkeep import EVERY_HOST, Drain, SweepRound, Tally
from interrupts.models.verdicts import Verdict

__all__ = [
    "ENDED",
    "EVERY_HOST",
    "OPEN_STEPS",
    "RUN_MOVES",
    "STEP_MOVES",
    "VERDICT_MOVES",
    "AgentDay",
    "Attempt",
    "Checkpoint",
    "Choice",
    "Content",
    "Drain",
    "Effect",
    "Executor",
    "Freeze",
    "FreezeScope",
    "Guidance",
    "InFlight",
    "Interrupt",
    "InterruptStatus",
    "Outcome",
    "Question",
    "Reason",
    "Receipt",
    "Resolution",
    "ResponseKind",
    "Risk",
    "Run",
    "RunStatus",
    "Source",
    "Step",
    "StepStatus",
    "Suspension",
    "SweepRound",
    "Tally",
    "Tool",
    "ToolVersion",
    "Verdict",
    "VerdictStatus",
]
