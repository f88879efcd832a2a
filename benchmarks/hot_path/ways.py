"""Five ways to make the same commit: record a step's outcome and intend the next step."""

import hashlib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
from django.db import connection, transaction

from benchmarks.hot_path.ground import SECONDS_LEFT, WORKER, Course
from benchmarks.hot_path.statement import statement
from config.keys import current_key_id, keyed_digest, stream_key
from interrupts import hot
from interrupts.hot import ADVANCE, NO_READS
from interrupts.models import Attempt, Content, Receipt, Run, Source, Step, StepStatus
from tenants.authority import hold_authority
from tenants.clock import database_now
from tenants.ids import uuid7
from tenants.journal import SYSTEM, Entry
from tenants.models import JournalEntry, Tenant

BY_STATEMENT, BY_PREPARED_STATEMENT = statement(), statement(binary=True)
BY_FUNCTION = ADVANCE.replace("%b", "%s")


class NotCommitted(Exception):
    """A way recorded or intended nothing where it should have."""


def through_the_orm(course: Course) -> None:
    """Commit with Django's models, and the chain's hash in Python."""
    attempt = uuid7()
    with transaction.atomic(durable=True):
        hold_authority()
        run = Run.objects.select_for_update(no_key=True).get(pk=course.run)
        now = database_now()
        entries = [*_record(course, run, now), _intend(course, run, attempt, now)]
        run.next_step += 1
        _chain(course, run, entries, now)
        run.state_version += 1
        run.updated_at = now
        run.due_at = run.due_at or now + timedelta(seconds=2)
        run.save(
            update_fields=[
                "next_step",
                "journal_seq",
                "journal_hash",
                "state_version",
                "usage_cost",
                "updated_at",
                "due_at",
            ]
        )
    course.goes_on(attempt)


def _record(course: Course, run: Run, now: datetime) -> list[Entry]:
    done, tenant = course.outcome(), course.ground.tenant
    step = Step.objects.get(pk=done.step, status=StepStatus.EXECUTING)
    if step.fence != done.fence:
        raise NotCommitted
    digest = keyed_digest(tenant, done.result or b"")
    body = Content(tenant_id=tenant, digest=digest, body=done.result)
    Content.objects.bulk_create([body], ignore_conflicts=True)
    Attempt.objects.filter(pk=done.attempt).update(settled_at=now, outcome=done.outcome)
    step.status, step.outcome, step.result = done.outcome, done.outcome, digest
    step.external_id, step.error, step.settled_at = done.external_id, done.error, now
    fields = ["status", "outcome", "result", "external_id", "error", "settled_at"]
    step.save(update_fields=fields)
    receipt = Receipt.objects.create(
        run=run,
        step=step,
        attempt=done.attempt,
        source=Source.EXECUTOR,
        outcome=done.outcome,
        result=digest,
        external_id=done.external_id,
        cost=done.cost,
        error=done.error,
        by=f"worker:{WORKER}",
        observed_at=now,
    )
    recorded = {
        "attempt": done.attempt,
        "external_id": done.external_id,
        "outcome": done.outcome,
        "receipt": receipt.pk,
        "result": digest.hex(),
        "source": "executor",
        "step": step.pk,
    }
    settled = {
        "outcome": done.outcome,
        "position": step.position,
        "reason": None,
        "status": done.outcome,
        "step": step.pk,
    }
    return [Entry("receipt.recorded", recorded), Entry("step.settled", settled)]


def _intend(course: Course, run: Run, attempt: Any, now: datetime) -> Entry:
    tenant = Tenant.objects.get(pk=course.ground.tenant)
    step = Step.objects.get(run=run, position=run.next_step + 1, status=StepStatus.READY)
    stamp = (step.authorized_under, step.authorized_digest, step.authorized_tool_version)
    if tenant.freezes or stamp != (tenant.authority_version, step.digest, step.tool_version_id):
        raise NotCommitted
    Content.objects.get(tenant_id=tenant.pk, digest=step.arguments)
    step.status, step.due_at = StepStatus.EXECUTING, None
    step.fence += 1
    step.attempts += 1
    Attempt.objects.create(
        pk=attempt,
        step=step,
        run=run,
        fence=step.fence,
        epoch=run.epoch,
        worker=WORKER,
        started_at=now,
        lease_seconds=step.timeout_seconds + 2,
        lease_expires_at=now + timedelta(seconds=step.timeout_seconds + 2),
    )
    step.save(update_fields=["status", "fence", "attempts", "due_at"])
    started = {"attempt": attempt, "fence": step.fence, "step": step.pk, "worker": WORKER}
    return Entry("attempt.started", started)


def _chain(course: Course, run: Run, entries: list[Entry], now: datetime) -> None:
    key = stream_key(run.pk, current_key_id())
    at = now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    made = []
    for entry in entries:
        run.journal_seq += 1
        text = (
            f'{{"actor":{SYSTEM.text},"at":"{at}","data":{entry.text},"kind":"{entry.kind}",'
            f'"seq":{run.journal_seq}}}'
        )
        inner = hashlib.sha256(key.inner + bytes(run.journal_hash) + text.encode()).digest()
        run.journal_hash = hashlib.sha256(key.outer + inner).digest()
        made.append(
            JournalEntry(
                stream=run.pk,
                seq=run.journal_seq,
                tenant_id=course.ground.tenant,
                kind=entry.kind,
                at=now,
                text=text,
                key_id=key.key_id,
                hash=run.journal_hash,
            )
        )
    JournalEntry.objects.bulk_create(made)


def statement_parameters(course: Course, attempt: Any) -> dict[str, Any]:
    """Return what the one statement takes to record the course's step and intend ``attempt``."""
    done, key = course.outcome(), stream_key(course.run, current_key_id())
    return {
        "tenant": course.ground.tenant,
        "run": course.run,
        "key_id": key.key_id,
        "inner": key.inner,
        "outer": key.outer,
        "worker": WORKER,
        "step": done.step,
        "attempt": done.attempt,
        "fence": done.fence,
        "receipt": uuid7(),
        "outcome": done.outcome,
        "result": keyed_digest(course.ground.tenant, done.result or b""),
        "body": done.result,
        "cipher": "",
        "external_id": done.external_id,
        "cost": done.cost,
        "error": done.error,
        "next": attempt,
        "epoch": 1,
        "seconds_left": SECONDS_LEFT,
    }


def function_parameters(course: Course, attempt: Any) -> list[Any]:
    """Return the same for the function, in its order."""
    given = statement_parameters(course, attempt)
    order = (
        *("tenant", "run", "key_id", "inner", "outer", "worker", "step", "attempt", "fence"),
        *("receipt", "outcome", "result", "body", "cipher", "external_id", "cost", "error"),
        *("next", "epoch", "seconds_left"),
    )
    return [*(given[name] for name in order), *NO_READS, 0]


def by_statement(course: Course) -> None:
    """Commit with one data-modifying statement through Django's cursor."""
    attempt = uuid7()
    with connection.cursor() as cursor:
        cursor.execute(BY_STATEMENT, statement_parameters(course, attempt))
        _went_on(course, attempt, cursor.fetchone()[1])


def by_prepared_statement(course: Course) -> None:
    """Commit with the same statement, prepared by psycopg on Django's connection."""
    attempt = uuid7()
    row = _prepared(BY_PREPARED_STATEMENT, statement_parameters(course, attempt))
    _went_on(course, attempt, row[1])


def _prepared(text: str, parameters: dict[str, Any]) -> tuple[Any, ...]:
    connection.ensure_connection()
    raw: Any = connection.connection
    raw.prepare_threshold = 0
    try:
        with connection.wrap_database_errors, psycopg.Cursor(raw) as cursor:
            cursor.execute(text, parameters, binary=True)
            row = cursor.fetchone()
    finally:
        raw.prepare_threshold = None
    if row is None:
        raise NotCommitted
    return tuple(row)


def by_function(course: Course) -> None:
    """Commit with the engine's function through Django's cursor."""
    attempt = uuid7()
    with connection.cursor() as cursor:
        cursor.execute(BY_FUNCTION, function_parameters(course, attempt))
        _went_on(course, attempt, cursor.fetchone()[3])


def by_prepared_function(course: Course) -> None:
    """Commit as the engine does."""
    attempt = uuid7()
    at = hot.advance(
        course.ground.tenant,
        course.run,
        worker=WORKER,
        done=[course.outcome()],
        attempt=attempt,
        epoch=1,
        seconds_left=SECONDS_LEFT,
    )
    _went_on(course, attempt, at.step)


def _went_on(course: Course, attempt: Any, step: Any) -> None:
    if step != course.steps[course.at + 1]:
        raise NotCommitted
    course.goes_on(attempt)


WAYS: dict[str, Callable[[Course], None]] = {
    "Django's ORM": through_the_orm,
    "one statement (CTE)": by_statement,
    "one statement (CTE), prepared": by_prepared_statement,
    "our function": by_function,
    "our function, prepared": by_prepared_function,
}
