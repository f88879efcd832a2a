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


class GateExpired(DomainError):
    """The gate has expired."""

    code, status = "gate-expired", 410


class _WithGate(DomainError):
    """A refusal that carries the gate as it is now, where there is one to decide."""

    gate: dict[str, Any] | None = None

    def document(self) -> dict[str, Any]:
        shown = {} if self.gate is None else {"gate": self.gate}
        return {**super().document(), **shown}


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


class AlreadyStarted(DomainError):
    """What was decided has begun, or stands for good."""

    code = "already-started"


class ConfirmationRequired(Problem):
    """To approve this, more is asked than a click."""

    code, status = "confirmation-required", 422


class DeniedByPolicy(Problem):
    """Policy denies the edited arguments."""

    code, status = "denied-by-policy", 422
