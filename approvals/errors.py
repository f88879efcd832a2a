"""What approvals refuses, by the codes of the API."""

from __future__ import annotations

from typing import Any

from config.errors import DomainError, Problem


class NotAnApprover(DomainError):
    """This person has no authority over what the gate asks about."""

    code, status = "not-an-approver", 403


class OwnRequest(DomainError):
    """Nobody decides what runs for them, or what their own agent does."""

    code, status = "own-request", 403


class BeyondAuthority(DomainError):
    """This is more than this person may decide."""

    code, status = "beyond-authority", 403
    limits: tuple[str, ...] = ()

    @classmethod
    def of(cls, limits: tuple[str, ...]) -> BeyondAuthority:
        """Return the refusal of a call that these limits of the person's authority do not allow."""
        told = " and ".join(limits)
        made = cls(f"You may decide this only within your limit: {told}")
        made.limits = limits
        return made

    def document(self) -> dict[str, Any]:
        return {**super().document(), "limits": list(self.limits)}


class GateExpired(DomainError):
    """The gate has expired."""

    code, status = "gate-expired", 410


class _WithGate(DomainError):
    """A refusal that carries the gate as it is now, where there is one to decide."""

    gate: dict[str, Any] | None = None

    def document(self) -> dict[str, Any]:
        shown = {} if self.gate is None else {"gate": self.gate}
        return {**super().document(), **shown}


class NotYourStage(_WithGate):
    """The gate is decided in stages, and this person is not of the one that is open."""

    code, status = "not-your-stage", 403


class AlreadyDecided(_WithGate):
    """The gate is final."""

    code = "already-decided"


class DigestMismatch(_WithGate):
    """The decision is about something else than what the gate shows now."""

    code = "digest-mismatch"
    is_of_binding = True


class AlreadyAnswered(DomainError):
    """The question has another answer."""

    code = "already-answered"


class TooManyQuestions(DomainError):
    """As much as may be has been asked about this gate."""

    code = "too-many-questions"


class GatePreparing(DomainError):
    """The gate's preview is being taken; ask again in a moment."""

    code = "gate-preparing"
    usual_headers = {"Retry-After": "1"}


class NotInBulk(DomainError):
    """This is decided by itself: only what is of low risk is approved with others."""

    code = "not-in-bulk"


class NotExtendable(DomainError):
    """Policy gives nobody more time for this gate, or it has no end."""

    code = "not-extendable"


class AlreadyStarted(DomainError):
    """What was decided has begun, or stands for good."""

    code = "already-started"


class ConfirmationRequired(Problem):
    """To approve this, more is asked than a click."""

    code, status = "confirmation-required", 422


class ReasonRequired(Problem):
    """One of the declared reasons is chosen, and with some of them a note is given."""

    code, status = "reason-required", 422


class UnknownReason(Problem):
    """No reason of this code is declared for this decision."""

    code, status = "unknown-reason", 422


class DecisionNotAllowed(Problem):
    """The tool allows no such decision about its calls."""

    code, status = "decision-not-allowed", 422


class DeniedByPolicy(Problem):
    """Policy denies the edited arguments."""

    code, status = "denied-by-policy", 422
