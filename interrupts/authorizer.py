"""What the engine asks of authorization, upwards: named by settings.AUTHORIZER, resolved once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any, Literal, Protocol
from uuid import UUID

from django.conf import settings
from django.utils.module_loading import import_string

from interrupts.models import Interrupt, Reason, Run, Step
from interrupts.work import Work
from tenants.journal import Actor

Verdict = Literal["allow", "approve", "deny"]


@dataclass(frozen=True, slots=True)
class Judgement:
    """What policy says of one step, and under what it says so."""

    verdict: Verdict
    rule: str
    policy_version: int
    reason: str | None = None  # what a denied agent is told
    valid_until: datetime | None = None
    interrupt_reason: Reason = Reason.APPROVAL_REQUIRED  # by the strictest trigger
    expires_at: datetime | None = None
    on_expiry: str | None = None
    detail: dict[str, Any] = field(default_factory=dict)  # the authorizer's own, handed back to it
    seen: dict[str, Any] | None = None  # what it saw that may be otherwise later, kept on the step
    by: str = "policy"  # what allows the step: policy, or a delegation
    speaker: Actor | None = None  # whose word it is in the journal; None: whoever acts


class Authorizer(Protocol):
    """Every method runs under the lock of the step's run, in its transaction."""

    def judge(self, work: Work, step: Step, arguments: bytes) -> Judgement:
        """Say whether the step may run, must be asked about or is denied, now."""

    def judge_completion(self, work: Work) -> Judgement:
        """Say whether the run may complete now, a person is asked first, or it is denied.

        ``detail["points"]`` are the milestones asked about, each a list of texts.
        """

    def reauthorize(self, work: Work, step: Step, arguments: bytes) -> Judgement | None:
        """Judge an authorised step whose stamp is stale; None: its authorization still holds.

        A step that a person approved still holds while the policy asks for no more than was
        given, and those who gave it may still decide.
        """

    def open_gate(
        self, work: Work, step: Step, judgement: Judgement, gate_id: UUID, interrupt: Interrupt
    ) -> None:
        """Open the gate ``gate_id`` that ``judgement`` (an ``approve``) asks for."""

    def record(self, work: Work, step: Step, judgement: Judgement) -> UUID:
        """Write down by what else than policy ``judgement`` allows a step; return its gate."""

    def close_gate(
        self, work: Work, gate_id: UUID, state: Literal["withdrawn", "superseded"], why: str
    ) -> None:
        """Close an open gate without a verdict; one that is final stays as it is."""

    def expire_gate(self, work: Work, gate_id: UUID) -> tuple[bool, str]:
        """Say whether the gate has expired by ``work.now`` and what its expiry does; mark it."""

    def tell_of_outcome(self, work: Work, step: Step) -> None:
        """Have those told whom it concerns that an outcome is unknown, failed, or found out."""

    def tell_of_interrupt(self, work: Work, interrupt: Interrupt) -> None:
        """Have those told who are to answer an interrupt that was opened just now."""

    def may_decide_any(self, user_id: UUID, run: Run) -> bool:
        """Say whether the person may decide a tool of one of the run's steps."""

    def limits(self, run: Run) -> dict[str, Any]:
        """Return the tenant's budget limits now in force."""

    def daily_limits(self, work: Work) -> dict[str, Any]:
        """Return what the run's agent may use in a day, all its runs together; empty: anything."""

    def policy_version(self) -> int:
        """Return the number of the policy version in force."""

    def allowed_hosts(self) -> Sequence[str]:
        """Return the `host:port` pairs with private addresses that tools may call."""


@lru_cache(maxsize=1)
def authorizer() -> Authorizer:
    made: Authorizer = import_string(settings.AUTHORIZER)()
    return made
