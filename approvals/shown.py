"""A gate with what is shown beside it: what selectors and the hot write read, renderers take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple

from approvals import routing, snapshots
from approvals.models import OPEN_GATES, Decision, Gate, GateState
from approvals.policy.ends import NEVER, End
from approvals.snapshots import PreviousStep
from approvals.stages import Vote
from interrupts import catalogue
from interrupts.models import Question, ToolVersion
from tenants.scope import current_tenant_id

LOOKED_BACK: Final = 50  # latest gates of a tool that `similar` counts


class Similar(NamedTuple):
    """How this tool's latest gates ended, but for those that rules decided."""

    approved: int = 0
    rejected: int = 0
    edited: int = 0


def similar_sql(tool: str) -> str:
    """Return the expression of `Similar` as an array, of a tool whose id this SQL is."""
    return f"approvals_ends({tool}, NULL, {LOOKED_BACK})"


@dataclass(frozen=True, slots=True)
class StageShown:
    """One stage of a gate as it stands now: who decides it, and their approvals that stand.

    ``end`` is its own, counted from when it is opened; ``ends_at`` that of the open one, whether
    the gate ends by it or with the whole decision.
    """

    number: int
    approvers: Sequence[str]
    quorum: int
    votes: Sequence[Decision]
    state: Literal["approved", "open", "waiting", "ended"]
    end: End = NEVER
    ends_at: datetime | None = None

    @property
    def given(self) -> int:
        return len(self.votes)

    @property
    def missing(self) -> int:
        return max(self.quorum - self.given, 0)


@dataclass(frozen=True, slots=True)
class GateShown:
    """A gate with what is shown beside it; ``given`` and ``may_decide`` are as of now.

    ``votes`` are those that ``given`` counts, where the gate has stages. ``previous`` are the steps
    before the gate's as they are now, where it does not keep them as they were.
    """

    gate: Gate
    decisions: Sequence[Decision]
    bodies: Mapping[bytes, Any]
    given: int
    may_decide: bool
    similar: Similar | None  # None: an agent's, or nothing is left to decide
    questions: Sequence[Question] = ()
    votes: Sequence[Vote] = ()
    previous: Sequence[PreviousStep] = ()
    acting_for: str | None = None  # whose authority it would be by, where not the viewer's own

    @property
    def version(self) -> ToolVersion:
        return catalogue.version(current_tenant_id(), self.gate.tool_version_id)

    @property
    def allowed_decisions(self) -> list[str]:
        """What people may choose of it by its tool's version; nothing once it is final."""
        return self.version.allowed_decisions if self.gate.state in OPEN_GATES else []

    @property
    def extendable_until(self) -> datetime | None:
        """Until when people may have it wait at most; None: no longer than it does."""
        return routing.extendable_until(self.gate) if self.gate.state in OPEN_GATES else None

    @property
    def looked_back(self) -> int:
        return LOOKED_BACK

    @property
    def arguments(self) -> Any:
        return self.bodies.get(bytes(self.gate.arguments))

    @property
    def facts(self) -> dict[str, Any]:
        """What a person is shown of the gate, as it is kept with who was shown it."""
        return snapshots.snapshot(self.gate, self.arguments, self.version, self.previous)

    @property
    def stages(self) -> list[StageShown]:
        """Return the stages in order; none where the gate has none."""
        if not self.gate.stages:
            return []
        by_id = {one.pk: one for one in self.decisions}
        return [
            StageShown(
                number,
                stage.approvers,
                stage.quorum,
                # One given between the two reads has its vote here, and no decision yet.
                [
                    by_id[one.decision]
                    for one in self.votes
                    if one.stage == number and one.decision in by_id
                ],
                self._state(number),
                stage.end,
                self.gate.expires_at if self._state(number) == "open" else None,
            )
            for number, stage in enumerate(self.gate.all_stages, 1)
        ]

    def _state(self, number: int) -> Literal["approved", "open", "waiting", "ended"]:
        gate = self.gate
        if gate.state == GateState.APPROVED or number < (gate.stage or 0):
            return "approved"
        if gate.state not in OPEN_GATES:
            return "ended"
        return "open" if number == gate.stage else "waiting"
