"""Working a run: call, record, intend the next, until a boundary or the time is up."""

from __future__ import annotations

import logging
import os
import socket
import time
from dataclasses import dataclass
from uuid import UUID

from config import jsontext
from interrupts import catalogue, content, hot, queue
from interrupts.effects import Call, Observed
from interrupts.effects import Outcome as Saw
from interrupts.errors import Damaged
from interrupts.hot import Advanced, Done
from interrupts.models import Outcome, Source, ToolVersion
from interrupts.services import attempts, looking, steps
from interrupts.services.steps import step_digest
from interrupts.transitions.attempts import Seen
from tenants.ids import uuid7
from tenants.journal import SYSTEM
from tenants.scope import current_tenant_id

TURN_SECONDS = 20.0  # how long one task works a run
HARD_LIMIT_SECONDS = 240.0  # when Celery ends the process (settings.CELERY_TASK_TIME_LIMIT)
MARGIN_SECONDS = 5.0  # for recording, within the hard limit
logger = logging.getLogger(__name__)


def worker_name() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"


@dataclass(slots=True)
class _Turn:
    tenant: UUID
    run: UUID
    epoch: int
    worker: str
    began: float

    @property
    def seconds_left(self) -> float:
        return HARD_LIMIT_SECONDS - MARGIN_SECONDS - (time.monotonic() - self.began)

    @property
    def is_over(self) -> bool:
        return time.monotonic() - self.began > TURN_SECONDS


def work_run(run_id: UUID, epoch: int) -> int:
    """Work a run of the current tenant as far as it goes; return how many calls were made.

    Stops where nothing may start now, where the epoch is an older one, and after TURN_SECONDS: a
    successor is woken then. Starts no effect whose timeout exceeds what is left of the hard limit.
    """
    turn = _Turn(current_tenant_id(), run_id, epoch, worker_name(), time.monotonic())
    done: Done | None = None
    seen: Seen | None = None
    calls = 0
    while True:
        attempt = None if turn.is_over else uuid7()
        at = _advance(turn, done, attempt)
        if at.recorded == "long":
            assert done is not None and seen is not None
            _record_long(turn, done, seen)
            done = seen = None
            continue
        if attempt is None or at.verdict == "handover":
            queue.send(str(turn.tenant), str(turn.run), turn.epoch)
            return calls
        if at.verdict == "renew":
            assert at.step is not None
            steps.renew(turn.run, at.step, SYSTEM)
            done = seen = None
            continue
        if at.verdict == "later":
            looking.look(turn.run)  # sets when it is due
            return calls
        if at.verdict not in ("read", "intended"):
            return calls
        if at.more:
            queue.send(str(turn.tenant), str(turn.run), turn.epoch)
        done, seen = _call(turn, at, attempt)
        calls += 1
        if seen is not None and not _is_plain(seen):
            _record_long(turn, done, seen)
            done = seen = None


def _advance(turn: _Turn, done: Done | None, attempt: UUID | None) -> Advanced:
    return hot.advance(
        turn.tenant,
        turn.run,
        worker=turn.worker,
        done=done,
        attempt=attempt,
        epoch=turn.epoch,
        seconds_left=turn.seconds_left,
    )


def _is_plain(seen: Seen) -> bool:
    """Whether the hot write may settle the step by it: succeeded, or failed and only told."""
    return seen.outcome == Outcome.SUCCEEDED or (
        seen.outcome == Outcome.FAILED and seen.on_failure == "tell"
    )


def _call(turn: _Turn, at: Advanced, attempt: UUID) -> tuple[Done, Seen]:
    """Send exactly what was authorised; no transaction is open during the call."""
    assert at.step is not None and at.tool_version is not None and at.arguments is not None
    version = catalogue.version(turn.tenant, at.tool_version)
    arguments = content.unseal(turn.tenant, bytes(at.arguments), at.cipher or "")
    tool = catalogue.tool_name(turn.tenant, version.tool_id)
    if step_digest(tool, version.number, arguments) != at.digest:
        observed = Observed(Saw.FAILED, error=Damaged.__doc__)
        logger.error("step %s is damaged: its arguments are not those authorised", at.step)
    else:
        observed = catalogue.effect(turn.tenant, version.pk, at.authority or 0).execute(
            Call(
                tool=tool,
                tool_version=version.number,
                arguments=arguments,
                run=str(turn.run),
                step=str(at.step),
                attempt=str(attempt),
                idempotency_key=str(at.step),
                timeout=version.timeout_seconds,
            )
        )
    return _seen(turn, at, attempt, version, observed)


def _seen(
    turn: _Turn, at: Advanced, attempt: UUID, version: ToolVersion, observed: Observed
) -> tuple[Done, Seen]:
    assert at.step is not None
    succeeded = observed.outcome == Saw.SUCCEEDED
    result = jsontext.canonical(observed.result) if succeeded else None
    seen = Seen(
        outcome=Outcome(observed.outcome.value),
        source=Source.EXECUTOR,
        by=f"worker:{turn.worker}",
        result=result,
        external_id=observed.external_id,
        cost=observed.cost,
        error=observed.error,
        retry_after=observed.retry_after,
        sensitive=bool(version.sensitive),
        on_failure=version.on_failure,
    )
    done = Done(
        step=at.step,
        attempt=attempt,
        fence=at.fence if at.verdict == "intended" else None,
        outcome=seen.outcome.value,
        result=result,
        external_id=observed.external_id,
        cost=observed.cost,
        error=observed.error,
        sensitive=seen.sensitive,
    )
    return done, seen


def _record_long(turn: _Turn, done: Done, seen: Seen) -> None:
    if done.fence is None:
        attempts.record_read(turn.run, done.step, seen, SYSTEM, turn.worker)
    else:
        attempts.record_seen(turn.run, done.step, done.attempt, seen, SYSTEM)
