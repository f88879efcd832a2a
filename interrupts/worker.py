"""Working a run: call, record, intend the next, until a boundary or the time is up."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar
from uuid import UUID

from django.db import InterfaceError, OperationalError

from config.stopping import is_stopping
from interrupts import catalogue, content, hot, queue
from interrupts.digests import step_digest
from interrupts.effects import Call, Observed
from interrupts.effects import Outcome as Saw
from interrupts.errors import Damaged
from interrupts.hot import Advanced, Done, Start
from interrupts.models import Effect, Outcome
from interrupts.services import (
    attempts,
    cancelling,
    damage,
    draining,
    finding,
    looking,
    starting,
)
from interrupts.transitions.receipts import Seen
from interrupts.verification import Told, live
from tenants.ids import uuid7
from tenants.journal import SYSTEM
from tenants.scope import current_tenant_id, renew_connection
from tenants.sealing import SealBroken

TURN_SECONDS = 20.0  # how long one task works a run
HARD_LIMIT_SECONDS = 240.0  # when Celery ends the process (settings.CELERY_TASK_TIME_LIMIT)
LEASE_MARGIN_SECONDS = 2.0  # what a lease is longer than its call's timeout (interrupts_advance)
MARGIN_SECONDS = 5.0  # for recording, within the hard limit
RECORD_SECONDS, RECORD_PAUSE_SECONDS = 60.0, 0.5  # a database that is gone may be back by then
# Reads that are recorded in one commit: so many, begun within so long, each as quick as that.
READS_TOGETHER, READS_SECONDS, QUICK_SECONDS = 16, 0.005, 0.002
MOST_TOOLS_REMEMBERED = 10_000
FORGED = "A step was to start that the run's journal does not authorise."
DAMAGED = "The stored call is not the one that was authorised; it was not sent."
WITHDRAWN = "The read was withdrawn before it was made."
HELD_UP = "The worker was held up until its lease was over; nothing was sent."
T = TypeVar("T")
logger = logging.getLogger(__name__)
_quick: dict[UUID, bool] = {}  # by version of a tool: whether its last read here was quick


def worker_name() -> str:
    return f"{draining.this_host()}:{os.getpid()}"


@dataclass(slots=True)
class _Turn:
    tenant: UUID
    run: UUID
    epoch: int
    worker: str
    told: Told  # by the run's journal, as far as this turn has read it
    began: float = field(default_factory=time.monotonic)
    started: set[UUID] = field(default_factory=set)  # steps, since it was read
    damaged: bool = False

    @property
    def seconds_left(self) -> float:
        return HARD_LIMIT_SECONDS - MARGIN_SECONDS - (time.monotonic() - self.began)

    @property
    def is_over(self) -> bool:
        return self.damaged or is_stopping() or time.monotonic() - self.began > TURN_SECONDS

    def wake_another(self) -> None:
        queue.send(str(self.tenant), str(self.run), self.epoch)


@dataclass(slots=True)
class _Finished:
    """A call that has come back: as the hot write takes it, and as it was seen."""

    done: Done
    seen: Seen
    took: float = 0.0  # seconds
    counts: bool = False  # in what is reserved of a budget, or in its agent's day

    @property
    def is_quick(self) -> bool:
        """Whether it is a read that may wait to be recorded with what comes after it."""
        quick = self.done.is_quick_read and self.took < QUICK_SECONDS
        return quick and not self.counts and not self.seen.is_judged

    @property
    def is_plain(self) -> bool:
        """Whether the hot write may settle the step by it: succeeded, or failed and only told."""
        if self.counts:
            return False
        if self.seen.outcome == Outcome.SUCCEEDED:
            return not self.seen.is_judged
        return self.seen.outcome == Outcome.FAILED and self.seen.on_failure == "tell"


def work_run(run_id: UUID, epoch: int) -> int:
    """Work a run of the current tenant as far as it goes; return how many calls were made.

    Stops where nothing may start now, where the epoch is an older one, and after TURN_SECONDS or
    when the worker is told to stop: a successor is woken then. Starts no effect whose timeout
    exceeds what is left of the hard limit, and none on a host that is drained: the run stays due,
    and the sweep wakes another host's worker, or this one after the drain.
    """
    with damage.shown(run_id):
        told = live.check_ready(run_id)
        return _work(_Turn(current_tenant_id(), run_id, epoch, worker_name(), told))
    return 0


def _work(turn: _Turn) -> int:
    finished: list[_Finished] = []  # and not yet recorded; all but the last are quick reads
    calls = 0
    while True:
        if finished and not finished[-1].is_plain:
            finished = _record_with_what_was_before(turn, finished)
        attempt = None if turn.is_over else uuid7()
        if finished:
            at = _insist(turn, partial(_advance, turn, finished, attempt))
        else:
            at = _advance(turn, finished, attempt)
        if finished and at.recorded == "long":
            finished = _record_long(turn, finished)
        elif attempt is not None and at.start is not None:
            if at.more:
                turn.wake_another()
            finished = _call_all(turn, at, attempt)
            calls += max(1, len(finished))
        elif _made_ready(turn, at):
            finished = []
        else:
            _leave(turn, at, over=attempt is None)
            return calls


def _insist(turn: _Turn, ask: Callable[[], T]) -> T:
    """Ask the database again, on another connection where this one is lost.

    What came back is seen only once, and what was intended is sent now or not at all. A commit
    whose answer was lost is no harm: what it recorded is found, and what it intended is found by
    its lease.
    """
    until, lost = time.monotonic() + RECORD_SECONDS, False
    while True:
        try:
            if lost:
                renew_connection()
            return ask()
        except (OperationalError, InterfaceError):
            if time.monotonic() > until:
                raise
            lost = True
            logger.warning("run %s: the database is asked again", turn.run, exc_info=True)
            time.sleep(RECORD_PAUSE_SECONDS)


def _made_ready(turn: _Turn, at: Advanced) -> bool:
    """Do what the next step needs before it may start; True: look again what may start."""
    if at.step is None or at.verdict not in ("renew", "ask"):
        return False
    if at.verdict == "renew":
        starting.renew(turn.run, at.step, SYSTEM)
    else:
        finding.ask_first(at.step)
    return True


def _leave(turn: _Turn, at: Advanced, *, over: bool) -> None:
    if over or at.verdict == "handover":
        turn.wake_another()
    elif at.verdict == "later":
        looking.look(turn.run)  # sets when it is due


def _advance(turn: _Turn, finished: Sequence[_Finished], attempt: UUID | None) -> Advanced:
    quick = bool(finished) and finished[-1].is_quick
    return hot.advance(
        turn.tenant,
        turn.run,
        worker=turn.worker,
        done=[one.done for one in finished],
        attempt=attempt,
        epoch=turn.epoch,
        seconds_left=turn.seconds_left,
        ahead=READS_TOGETHER - 1 if quick else 0,
    )


def _call_all(turn: _Turn, at: Advanced, attempt: UUID) -> list[_Finished]:
    """Make the call that is to be made, and the reads after it while all come back at once."""
    finished: list[_Finished] = []
    until = time.monotonic() + READS_SECONDS
    for start in (at.start, *at.ahead):
        if start is None or (finished and not _may_go_on(turn, finished[-1], start, until)):
            break
        one = _call(turn, start, uuid7() if finished else attempt)
        if one is None:
            break
        finished.append(one)
    return finished


def _may_go_on(turn: _Turn, last: _Finished, start: Start, until: float) -> bool:
    """Whether a read may be made before those that have come back are recorded.

    Nobody is kept waiting for what came back: no longer than until a tool that was quick the last
    time is slow. What costs something is recorded first, since its run may have no more to spend.
    """
    return (
        last.is_quick
        and _quick.get(start.tool_version, False)
        and time.monotonic() < until
        and not turn.is_over
    )


def _call(turn: _Turn, start: Start, attempt: UUID) -> _Finished | None:
    """Send exactly what was authorised; no transaction is open during the call.

    None: a read that the journal does not know, which has no intent that would be told the end of.
    """
    try:
        withdrawn = _insist(turn, partial(_check_vouched_for, turn, start, attempt))
    except Damaged as damaged:
        turn.damaged = True
        damage.show(turn.run, damaged.detail)
        if start.fence is None:
            return None
        return _finished(turn, start, attempt, Observed(Saw.FAILED, error=DAMAGED))
    if withdrawn:
        return _finished(
            turn, start, attempt, Observed(Saw.NOT_PERFORMED, error=WITHDRAWN, sent=False)
        )
    version = catalogue.version(turn.tenant, start.tool_version)
    arguments = _arguments(turn, start)
    tool = catalogue.tool_name(turn.tenant, version.tool_id)
    if arguments is None or step_digest(tool, version.number, arguments) != start.digest:
        logger.error("step %s is damaged: its arguments are not those authorised", start.step)
        return _finished(turn, start, attempt, Observed(Saw.FAILED, error=DAMAGED))
    seconds = _seconds_of_lease(start, version.timeout_seconds)
    if seconds <= 0:
        logger.warning("attempt %s was held up and is not made", attempt)
        return _finished(
            turn, start, attempt, Observed(Saw.NOT_PERFORMED, error=HELD_UP, sent=False)
        )
    call = Call(
        tool=tool,
        tool_version=version.number,
        arguments=arguments,
        run=str(turn.run),
        step=str(start.step),
        attempt=str(attempt),
        idempotency_key=str(start.step),
        timeout=min(version.timeout_seconds, seconds),
    )
    effect = catalogue.effect(turn.tenant, version.pk, start.authority)
    is_read = start.fence is None
    began = time.monotonic()
    observed = cancelling.execute(effect, call, is_read=is_read)
    finished = _finished(turn, start, attempt, observed, took=time.monotonic() - began)
    if is_read:
        _remember(start.tool_version, is_quick=finished.is_quick)
    return finished


def _remember(version: UUID, *, is_quick: bool) -> None:
    """Remember whether the last read of a tool was quick."""
    if len(_quick) >= MOST_TOOLS_REMEMBERED:
        _quick.clear()
    _quick[version] = is_quick


def _seconds_of_lease(start: Start, timeout: float) -> float:
    """How long the call may take at most: whoever is held up after the intent sends no later."""
    return timeout + LEASE_MARGIN_SECONDS - (time.monotonic() - start.asked_at)


def _check_vouched_for(turn: _Turn, start: Start, attempt: UUID) -> bool:
    """Raise Damaged unless the journal says that this call was authorised, once an intent.

    True: it is a read, which no intent holds, and was withdrawn meanwhile.
    """
    is_read = start.fence is None
    if is_read and catalogue.version(turn.tenant, start.tool_version).effect != Effect.READ:
        raise Damaged(FORGED)
    if start.step not in turn.started and live.may_start(turn.told, start.step, start.digest):
        turn.started.add(start.step)
        return False
    # What was proposed, authorised or tried again since the journal was read.
    turn.told, _ = live.read_on(turn.run)
    turn.started.clear()
    turn.started.add(start.step)
    if is_read:
        return _is_withdrawn(turn, start)
    if not live.intended(turn.told, start.step, attempt, start.digest):
        raise Damaged(FORGED)
    return False


def _is_withdrawn(turn: _Turn, start: Start) -> bool:
    """Whether a read is to start no more, by its row as by the journal; Damaged where they differ."""
    if live.may_start(turn.told, start.step, start.digest):
        return False
    turn.told = live.check_ready(turn.run)
    return True


def _arguments(turn: _Turn, start: Start) -> bytes | None:
    """Return the arguments as they were put; None where they were erased or do not open."""
    if start.arguments is None:
        return None
    try:
        return content.unseal(turn.tenant, bytes(start.arguments), start.cipher or "")
    except SealBroken:
        return None


def _finished(
    turn: _Turn, start: Start, attempt: UUID, observed: Observed, *, took: float = 0.0
) -> _Finished:
    version = catalogue.version(turn.tenant, start.tool_version)
    seen = Seen.by_worker(observed, turn.worker, version)
    done = Done(
        step=start.step,
        attempt=attempt,
        fence=start.fence,
        outcome=seen.outcome.value,
        result=seen.result,
        external_id=seen.external_id,
        cost=seen.cost,
        error=seen.error,
        sensitive=seen.sensitive,
    )
    # Beside what is reserved, whatever costs something may be beyond the budget.
    counts = turn.told.counts(start.step) or bool(seen.cost and turn.told.reserved)
    return _Finished(done, seen, took, counts)


def _record_with_what_was_before(turn: _Turn, finished: Sequence[_Finished]) -> list[_Finished]:
    """Record what is not plain, and before it, together, the quick reads that came before it."""
    *before, last = finished
    if before:
        at = _insist(turn, partial(_advance, turn, before, None))
        if at.recorded == "long":
            _record_long(turn, before)
    return _record_long(turn, [last])


def _record_long(turn: _Turn, finished: Sequence[_Finished]) -> list[_Finished]:
    """Record by the long way, which has every state that a run and a step may be in.

    Returns what is left to be recorded: nothing.
    """
    for one in finished:
        _insist(turn, partial(_record_one, turn, one.done, one.seen))
    return []


def _record_one(turn: _Turn, done: Done, seen: Seen) -> None:
    if done.fence is None:
        attempts.record_read(turn.run, done.step, seen, SYSTEM, turn.worker)
    else:
        attempts.record_seen(turn.run, done.step, done.attempt, seen, SYSTEM)
