"""A gate with what is shown beside it: what selectors and the hot write read, renderers take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple

from approvals import routing
from approvals.models import OPEN_GATES, Decision, Gate
from interrupts import catalogue
from interrupts.models import Question, ToolVersion
from tenants.scope import current_tenant_id

LOOKED_BACK: Final = 50  # earlier gates of a tool that `similar` counts


class Similar(NamedTuple):
    """How this tool's latest gates ended."""

    approved: int = 0
    rejected: int = 0
    edited: int = 0


@dataclass(frozen=True, slots=True)
class GateShown:
    """A gate with what is shown beside it; ``given`` and ``may_decide`` are as of now."""

    gate: Gate
    decisions: Sequence[Decision]
    bodies: Mapping[bytes, Any]
    given: int
    may_decide: bool
    similar: Similar
    questions: Sequence[Question] = ()

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
