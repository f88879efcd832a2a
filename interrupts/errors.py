"""What the engine refuses, by the codes of the API."""

from config.errors import DomainError, Problem


class IllegalMove(DomainError):
    """The state it is in has no such move."""

    code = "illegal-move"


class NotYourRun(DomainError):
    """This run belongs to another agent."""

    code, status = "not-your-run", 403


class MayNot(DomainError):
    """This person has no authority for that."""

    code, status = "forbidden", 403


class RunSuspended(DomainError):
    """The run is suspended and starts nothing."""

    code = "run-suspended"


class RunEnded(DomainError):
    """The run has ended, or is being cancelled."""

    code = "run-ended"


class StepsOutstanding(DomainError):
    """Something of the run is not settled yet."""

    code = "steps-outstanding"


class StaleSession(DomainError):
    """A newer session drives this run."""

    code = "stale-session"


class StepKeyReused(DomainError):
    """This key names another step of the run."""

    code = "step-key-reused"
    is_of_binding = True


class UnknownTool(Problem):
    """The tenant has no such tool."""

    code, status = "unknown-tool", 422


class InvalidArguments(Problem):
    """The arguments break the tool's schema."""

    code, status = "invalid-arguments", 422


class StaleCheckpoint(DomainError):
    """The response names another checkpoint than the interrupt's."""

    code = "stale-checkpoint"


class AlreadyResolved(DomainError):
    """The interrupt was resolved otherwise."""

    code = "already-resolved"


class DecideTheGate(DomainError):
    """A gate caused this interrupt: deciding the gate resolves it."""

    code = "decide-the-gate"


class NotAuthorized(DomainError):
    """The step may not start now."""

    code = "not-authorized"


class AlreadyClaimed(DomainError):
    """The step is being worked on, or is settled."""

    code = "already-claimed"


class StaleClaim(DomainError):
    """The attempt is settled, lapsed or superseded."""

    code = "stale-claim"


class ReceiptConflict(DomainError):
    """The attempt was settled by another receipt."""

    code = "receipt-conflict"


class NotUnknown(DomainError):
    """The step's outcome is not unknown."""

    code = "not-unknown"


class CompletionDenied(DomainError):
    """Policy denies that the run completes as it stands."""

    code = "completion-denied"


class Damaged(DomainError):
    """What is stored is not what was authorised or checkpointed; nothing of it runs."""

    code = "damaged"


class CheckpointVersion(DomainError):
    """The checkpoint was taken by another release, and this one can't read it; nothing goes on."""

    code = "checkpoint-version"


class UnknownSecret(Problem):
    """The tool signs in with a secret that the tenant has not."""

    code = "unknown-secret"
    status = 422
