"""The responses that resolve an open interrupt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from config import jsontext
from config.errors import InvalidBody, faults
from interrupts import imprints, verification
from interrupts.errors import (
    AlreadyResolved,
    DecideTheGate,
    MayNot,
    StaleCheckpoint,
)
from interrupts.models import (
    Checkpoint,
    Executor,
    Guidance,
    Interrupt,
    InterruptStatus,
    Outcome,
    Reason,
    Resolution,
    ResponseKind,
    RunStatus,
    Source,
    Step,
    StepStatus,
)
from interrupts.schemas import validate_value
from interrupts.services import attempts as findings
from interrupts.services import damage, finding
from interrupts.services import steps as proposing
from interrupts.services.acting import (
    OPERATORS,
    as_person,
    may_stop,
    role_now,
)
from interrupts.services.holds import INPUTS
from interrupts.transitions import (
    checkpoints,
    compensation,
    completion,
    extensions,
    holds,
    needs,
    runs,
    steps,
)
from interrupts.transitions.attempts import recovery_hold
from interrupts.transitions.finding import how, lands_until, on_offer, recovery_schema
from interrupts.work import Work
from tenants.conditions import ANY_VERSION, IfMatch
from tenants.journal import append_to_tenant
from tenants.models import Role
from tenants.principal import Principal

UNSET: Final = object()
REVISABLE: Final = (Reason.OPERATOR_STOP, Reason.MILESTONE, Reason.VERIFIER_REJECTED, *INPUTS)


def respond(
    principal: Principal,
    interrupt_id: UUID,
    *,
    checkpoint: UUID,
    resolution: str,
    value: Any = UNSET,
    note: str | None = None,
    if_match: IfMatch = ANY_VERSION,
) -> tuple[Interrupt, bool]:
    """Answer an interrupt; the same response again is the first one (True: replayed).

    Raises MayNot, StaleCheckpoint, AlreadyResolved, DecideTheGate, InvalidBody, Damaged,
    CheckpointVersion.
    """
    run_id = Interrupt.objects.values_list("run_id", flat=True).get(pk=interrupt_id)
    with damage.noticed(run_id), as_person(principal, run_id) as work:
        interrupt = Interrupt.objects.get(pk=interrupt_id)
        response = {
            "checkpoint": str(checkpoint),
            "resolution": resolution,
            "value": None if value is UNSET else value,
            "note": note,
        }
        _may_respond(principal, work, interrupt, resolution)
        if interrupt.status == InterruptStatus.RESOLVED:
            work.state_unchanged()
            return _replay(interrupt, response), True
        if_match.check(work.run.state_version)
        if interrupt.checkpoint != checkpoint:
            raise StaleCheckpoint
        _allowed(interrupt, resolution)
        _verify(work, interrupt)
        answer = ANSWERS[Resolution(resolution)]
        answer(_Answer(principal, work, interrupt, response, value))
        interrupt.refresh_from_db()
    return interrupt, False


def _replay(interrupt: Interrupt, response: dict[str, Any]) -> Interrupt:
    first = interrupt.response
    if first is None or jsontext.canonical(first) != jsontext.canonical(response):
        raise AlreadyResolved(f"It was resolved with {interrupt.resolution}.")
    return interrupt


def _may_respond(principal: Principal, work: Work, interrupt: Interrupt, resolution: str) -> None:
    """Authority is checked under the lock: docs/glossary.md, "Who may"."""
    role = role_now(principal)
    if role == Role.VIEWER:
        raise MayNot("A viewer only looks.")
    if role in OPERATORS:
        if completion.of_completion(interrupt) and resolution == Resolution.RESUME:
            completion.check_agrees(principal, work.run)
        return
    requester = work.run.requested_by_id == principal.id
    if interrupt.kind == ResponseKind.INPUT and requester and resolution != Resolution.CANCEL:
        return
    if resolution == Resolution.REVISE and may_stop(principal, work.run):
        return
    raise MayNot("This person may not answer so.")


def _allowed(interrupt: Interrupt, resolution: str) -> None:
    if resolution not in [one["resolution"] for one in interrupt.allowed]:
        raise InvalidBody.at("/resolution", "is not among the allowed resolutions")
    if interrupt.gate is not None and resolution == Resolution.RESUME:
        raise DecideTheGate


def _verify(work: Work, interrupt: Interrupt) -> None:
    """What a run is resumed from must be what happened and what was checkpointed."""
    verification.check_history(work.run)
    checkpoints.check(Checkpoint.objects.get(pk=interrupt.checkpoint), work.run)


@dataclass(frozen=True, slots=True)
class _Answer:
    principal: Principal
    work: Work
    interrupt: Interrupt
    response: dict[str, Any]
    value: Any

    def resolve(self, resolution: Resolution) -> None:
        holds.resolve(
            self.work,
            self.interrupt,
            resolution,
            by=self.principal.actor,
            response=self.response,
        )


def _cancel(answer: _Answer) -> None:
    if role_now(answer.principal) not in OPERATORS:
        raise MayNot("Operators and admins cancel.")
    answer.work.ending = True
    answer.resolve(Resolution.CANCEL)
    if not answer.work.run.ended and answer.work.run.status != "cancelling":
        runs.cancel(answer.work, note=answer.response["note"])
    _ask_anew(answer)
    answer.work.due(answer.work.now)


def _ask_anew(answer: _Answer) -> None:
    """An outcome that nobody knows is still to be found out before the run can end."""
    if answer.interrupt.reason != Reason.OUTCOME_UNKNOWN:
        return
    step = Step.objects.get(pk=str(answer.interrupt.step))
    if step.status == StepStatus.UNKNOWN:
        holds.open_holds(answer.work, recovery_hold(answer.work, step, step.error))


def _resume(answer: _Answer) -> None:
    RESUMES[ResponseKind(answer.interrupt.kind)](answer)


def _release(answer: _Answer) -> None:
    if answer.value is not UNSET and answer.value is not None:
        raise InvalidBody.at("/value", "a release takes no value")
    answer.resolve(Resolution.RESUME)
    if completion.of_completion(answer.interrupt):
        completion.go_on(answer.work, answer.interrupt)


def _input(answer: _Answer) -> None:
    if answer.value is UNSET:
        raise InvalidBody.at("/value", "is missing")
    _check_value(answer)
    if answer.interrupt.step is not None:
        _take_as_known(answer, answer.interrupt.step)
    else:
        answer.resolve(Resolution.RESUME)


def _take_as_known(answer: _Answer, step_id: UUID) -> None:
    """Judge a step anew, which knows now what it missed: that alone lets nothing through."""
    work, step = answer.work, Step.objects.get(pk=step_id)
    _resolve_without_going_on(answer)
    if step.status == StepStatus.WAITING:
        needs.give(work, step, answer.value)
        proposing.rejudge(work, [step])
    _go_on(work)


def _resolve_without_going_on(answer: _Answer) -> None:
    """Resolve first: what is asked then, or is still over a budget, holds the run."""
    answer.work.ending = True
    answer.resolve(Resolution.RESUME)
    answer.work.ending = False


def _go_on(work: Work) -> None:
    if work.run.open_interrupts == 0 and work.run.status == RunStatus.SUSPENDED:
        holds.resume(work)


def _check_value(answer: _Answer) -> None:
    schema = answer.interrupt.schema
    if schema is not None and (wrong := validate_value(schema, answer.value)):
        raise InvalidBody("The value breaks the schema.", errors=faults(wrong, "/value"))


def _extend(answer: _Answer) -> None:
    """Raise the limits to those named; what waited for the budget is judged again."""
    if answer.value is UNSET:
        raise InvalidBody.at("/value", "is missing")
    _check_value(answer)
    work = answer.work
    is_of_day = answer.interrupt.evidence.get("budget") == "day"
    if answer.value:
        extend = extensions.extend_day if is_of_day else extensions.extend_run
        extend(work, answer.value)
    _resolve_without_going_on(answer)
    runs.check_budget(work)
    proposing.rejudge(work, proposing.held(work, "budget"))
    _go_on(work)
    if is_of_day and answer.value:
        append_to_tenant(answer.principal.actor, extensions.told_of_day(work, answer.value))


def _recover(answer: _Answer) -> None:
    """Settle an unknown step by what a person found out."""
    if answer.value is UNSET:
        raise InvalidBody.at("/value", "is missing")
    work, value = answer.work, answer.value
    step = Step.objects.get(pk=str(answer.interrupt.step))
    if step.status != StepStatus.UNKNOWN:
        raise AlreadyResolved("The step's outcome is not unknown.")
    # What is offered depends on the time: a key is honoured for so long.
    answer.interrupt.schema = recovery_schema(on_offer(work, step))
    _check_value(answer)
    if value["outcome"] == "check_again":
        work.note("reconciliation.requested", step=step.pk, by=answer.principal.actor.as_json)
        finding.check_again(work, step)
        return
    if value["outcome"] == "unresolvable":
        work.ending = True
        answer.resolve(Resolution.RESUME)
        work.note("step.unresolvable", step=step.pk)
        runs.fail_for_good(work, note="an outcome could not be found out")
        return
    if value["outcome"] == "not_performed":
        _wait_till_it_has_landed(step)
        step.ask_first = how(step) == "ask"
    # Resolved by the person first: the finding closes no interrupt of its own then.
    work.ending = True
    answer.resolve(Resolution.RESUME)
    work.ending = False
    findings.found_out(
        work,
        step,
        outcome=_FOUND[value["outcome"]],
        for_good=value["outcome"] == "skip",
        source=Source.PERSON,
        by=answer.principal.actor,
        evidence=value["evidence"],
        result=value.get("result"),
        external_id=value.get("external_id"),
    )
    if work.run.open_interrupts == 0 and work.run.status == "suspended":
        holds.resume(work)


_FOUND = {
    "performed": Outcome.SUCCEEDED,
    "not_performed": Outcome.NOT_PERFORMED,
    "skip": Outcome.NOT_PERFORMED,
}


def _wait_till_it_has_landed(step: Step) -> None:
    """A person's "not performed" shortens no wait: the call may still land.

    What an agent runs itself is not sent: it is the agent that begins it again.
    """
    if step.executor == Executor.AGENT:
        return
    if step.unknown_at is not None:
        step.due_at = lands_until(step)


def _revise(answer: _Answer) -> None:
    """The mid-task correction: withdraw the named steps, tell the agent, go on."""
    if answer.interrupt.reason not in REVISABLE:
        raise InvalidBody.at("/resolution", "open a stop to revise the run")
    guidance, withdraw = _revision(answer.value)
    work = answer.work
    missing = answer.interrupt.step if answer.interrupt.reason == Reason.CONTEXT_MISSING else None
    if missing is not None and missing not in withdraw:
        withdraw.append(missing)  # what it misses it is to be told, and propose anew
    found = {step.pk: step for step in Step.objects.filter(run=work.run, pk__in=withdraw)}
    for index, pk in enumerate(withdraw):
        step = found.get(pk)
        if step is None:
            raise InvalidBody.at(f"/value/withdraw/{index}", "is no step of this run")
        if step.status not in (StepStatus.PROPOSED, StepStatus.WAITING, StepStatus.READY):
            raise InvalidBody.at(f"/value/withdraw/{index}", f"is {step.status} already")
    told = Guidance.objects.create(
        run=work.run, text=guidance, by_id=answer.principal.id, at=work.now
    )
    work.note(
        "run.revised",
        guidance=told.pk,
        withdrawn=[str(pk) for pk in withdraw],
        imprint=work.imprint(told, imprints.GUIDANCE),
    )
    work.ending = True
    answer.resolve(Resolution.REVISE)
    work.ending = False
    for step in sorted(found.values(), key=lambda step: step.position):
        steps.withdraw(work, step, StepStatus.REVISED, guidance)
    _go_on(work)


def _revision(value: Any) -> tuple[str, list[UUID]]:
    if wrong := validate_value(REVISION_SCHEMA, None if value is UNSET else value):
        raise InvalidBody("The value is no revision.", errors=faults(wrong, "/value"))
    try:
        withdraw = [UUID(one) for one in value.get("withdraw", [])]
    except ValueError:
        raise InvalidBody.at("/value/withdraw", "are no ids") from None
    return value["guidance"], list(dict.fromkeys(withdraw))


REVISION_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["guidance"],
    "additionalProperties": False,
    "properties": {
        "guidance": {"type": "string", "minLength": 1, "maxLength": 20000},
        "withdraw": {"type": "array", "items": {"type": "string"}, "maxItems": 1000},
    },
}

RESUMES: dict[ResponseKind, Callable[[_Answer], None]] = {
    ResponseKind.RELEASE: _release,
    ResponseKind.INPUT: _input,
    ResponseKind.RECOVERY: _recover,
    ResponseKind.EXTENSION: _extend,
}


def _compensate(answer: _Answer) -> None:
    if answer.interrupt.reason == Reason.VERIFIER_REJECTED:
        _undo(answer)
    else:
        _after_refusal(answer)


def _undo(answer: _Answer) -> None:
    """What a verifier rejected is undone; the run goes on once it is."""
    if answer.value is not UNSET and answer.value is not None:
        raise InvalidBody.at("/value", "undoing takes no value")
    compensation.want(answer.work, Step.objects.get(pk=str(answer.interrupt.step)))
    answer.resolve(Resolution.COMPENSATE)


def _after_refusal(answer: _Answer) -> None:
    """A refused compensation: tried again, or left as it is."""
    if answer.value is UNSET:
        raise InvalidBody.at("/value", "is missing")
    _check_value(answer)
    step = Step.objects.get(pk=str(answer.interrupt.step))
    answer.resolve(Resolution.COMPENSATE)
    if step.status != StepStatus.COMPENSATING:
        return
    if answer.value["action"] == compensation.TRY_AGAIN:
        compensation.try_again(answer.work, step)
    else:
        compensation.leave(answer.work, step)
        runs.finish_cancel(answer.work)


ANSWERS: dict[Resolution, Callable[[_Answer], None]] = {
    Resolution.COMPENSATE: _compensate,
    Resolution.RESUME: _resume,
    Resolution.REVISE: _revise,
    Resolution.CANCEL: _cancel,
}
