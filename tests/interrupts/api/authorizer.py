"""An authorizer that judges by the effect alone: the engine's API is tested apart from policy."""

from collections.abc import Sequence
from typing import Any, Literal
from uuid import UUID

from interrupts.authorizer import Judgement
from interrupts.models import Effect, Interrupt, Run, Step
from interrupts.work import Work
from tenants.models import Membership, Role

VERDICTS: dict[str, Literal["allow", "approve", "deny"]] = {
    Effect.READ: "allow",
    Effect.IDEMPOTENT: "allow",
    Effect.REVERSIBLE: "approve",
    Effect.IRREVERSIBLE: "deny",
}


class ByEffect:
    """Reads and idempotent calls are allowed, reversible ones asked about, the rest is denied."""

    def judge(self, work: Work, step: Step, arguments: bytes) -> Judgement:
        verdict = VERDICTS[step.effect]
        reason = "never" if verdict == "deny" else None
        return Judgement(verdict, f"{step.effect}-calls", 1, reason=reason)

    def judge_completion(self, work: Work) -> Judgement:
        return Judgement("allow", "completions", 1)

    def reauthorize(self, work: Work, step: Step, arguments: bytes) -> Judgement | None:
        return None

    def open_gate(
        self, work: Work, step: Step, judgement: Judgement, gate_id: UUID, interrupt: Interrupt
    ) -> None:
        return

    def close_gate(
        self, work: Work, gate_id: UUID, state: Literal["withdrawn", "superseded"], why: str
    ) -> None:
        return

    def expire_gate(self, work: Work, gate_id: UUID) -> tuple[bool, str]:
        return False, "reject"

    def tell_of_outcome(self, work: Work, step: Step) -> None:
        return

    def tell_of_interrupt(self, work: Work, interrupt: Interrupt) -> None:
        return

    def may_decide_any(self, user_id: UUID, run: Run) -> bool:
        return Membership.objects.filter(user_id=user_id, role=Role.APPROVER).exists()

    def daily_limits(self, work: Work) -> dict[str, Any]:
        return {}

    def limits(self, run: Run) -> dict[str, Any]:
        return {}

    def policy_version(self) -> int:
        return 1

    def allowed_hosts(self) -> Sequence[str]:
        return ()
