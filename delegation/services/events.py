"""Events collected after the fact: what people decided, and what was undone of what they allowed.

Decisions are written by their own transactions, which know nothing of this. Whatever is committed
and not yet an event becomes one, once for each person (a unique constraint), however often, late
or at how many places at once it is collected; numbers have no gaps, since they are given under the
stream's lock.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.db import connection, transaction

from approvals import snapshots
from approvals.snapshots import Asked as Shown
from delegation import calls, locks, queue
from delegation.beside import modes_now
from delegation.canonical import Unclear
from delegation.models import DecisionEvent, EventKind, EventStream, SpotCheck
from delegation.records import Request, Tool
from interrupts import catalogue, content
from interrupts.models import Content
from tenants.clock import database_now
from tenants.models import JournalEntry, identity_of
from tenants.scope import current_tenant_id
from tenants.sealing import SealBroken

BATCH: Final = 500
EARLIEST: Final = UUID(int=0)
LATER: Final = frozenset({EventKind.WITHDRAW, EventKind.INCIDENT})  # than the decision they are of
# Ids carry the time at which they were made; what commits later than this after its id was made is
# found by the daily look at everything.
LATEST_COMMIT: Final = timedelta(minutes=15)

_DECISIONS: Final = """
SELECT d.id, d.user_id, d.verdict, d.edits, d.approves, d.at, d.delegation IS NOT NULL, d.bulk,
    g.id, g.opened_at, g.arguments, g.arguments_digest, g.tool_version_id, g.step_id, g.run_id,
    a.name, a.id, a.begun_again_at, r.workflow, (SELECT min(v.at) FROM approvals_view v
        WHERE v.gate_id = g.id AND v.user_id = d.user_id AND v.digest = d.digest)
FROM approvals_decision d
JOIN approvals_gate g ON g.id = d.gate_id
JOIN interrupts_run r ON r.id = g.run_id
JOIN tenants_agent a ON a.id = r.agent_id
WHERE g.risk IN ('low', 'medium') AND g.effect <> 'irreversible' AND {which}
ORDER BY d.id LIMIT %(limit)s
"""
_NEW: Final = _DECISIONS.format(
    which="""d.id > %(after)s AND NOT EXISTS (
    SELECT FROM delegation_decisionevent e
    WHERE e.source = d.id AND e.user_id = d.user_id AND e.kind <> 'withdraw')"""
)
_TAKEN_BACK: Final = _DECISIONS.format(
    which="""d.withdrawn_at IS NOT NULL AND NOT EXISTS (
    SELECT FROM delegation_decisionevent e
    WHERE e.source = d.id AND e.user_id = d.user_id AND e.kind = 'withdraw')"""
)
# Of several approvals of one person (one taken back, then given anew) it is about the last.
_UNDONE: Final = """
SELECT DISTINCT ON (t.id, d.user_id) t.id, t.observed_at, d.id, d.user_id, e.data, e.tool, e.gate
FROM interrupts_receipt t
JOIN interrupts_step s ON s.id = t.step_id
JOIN approvals_decision d ON d.gate_id = s.authorized_gate AND d.verdict = 'approve'
JOIN delegation_decisionevent e ON e.source = d.id AND e.user_id = d.user_id
    AND e.kind IN ('approve', 'edit', 'ran')
WHERE t.id > %(after)s
    AND (t.compensation AND t.outcome = 'succeeded'
        OR t.source = 'reconciliation' AND t.outcome = 'failed')
    AND NOT EXISTS (SELECT FROM delegation_decisionevent x
        WHERE x.source = t.id AND x.user_id = d.user_id AND x.kind = 'incident')
ORDER BY t.id, d.user_id, d.id DESC LIMIT %(limit)s
"""


class _Decided(NamedTuple):
    """A decision with its gate, run and agent, as read."""

    decision: UUID
    user: UUID
    verdict: str
    edits: memoryview | None
    approves: str
    at: datetime
    by_rule: bool
    bulk: bool
    gate: UUID
    opened_at: datetime
    arguments: memoryview
    arguments_digest: str
    tool_version: UUID
    step: UUID
    run: UUID
    agent: str
    agent_id: UUID
    begun_again_at: datetime | None
    workflow: str
    seen_at: datetime | None

    @property
    def identity(self) -> str:
        """Which agent it was; empty where one that has the name no more: nobody knows it now."""
        if self.begun_again_at is not None and self.opened_at < self.begun_again_at:
            return ""
        return str(identity_of(self.agent_id, self.begun_again_at))


def collect(*, everything: bool = False) -> int:
    """Append what is new to the tenant's events; return how many these are. Again adds nothing.

    ``everything`` looks at every decision there is, not at the latest only. Where nothing is
    delegated, nothing is looked at.
    """
    if modes_now().is_off:
        _look_again(queue.OFF)
        return 0
    count, after = 0, None
    while found := _collect(after, everything=everything):
        count += len(found)
        if len(found) < BATCH:
            break
        after = max((one.source for one in found if one.kind not in LATER), default=after)
    _look_again(queue.AGAIN if count else _idle())
    return count


def _idle() -> timedelta:
    """Return when to look again where nothing was new: a tenth of the time since something was.

    What narrows is hinted at by itself; a tenant in which nobody decides costs next to nothing.
    """
    newest = DecisionEvent.objects.order_by("-sequence").values_list("at", flat=True).first()
    if newest is None:
        return queue.OFF
    return min(max((database_now() - newest) / 10, queue.IDLE), queue.LONGEST)


def _look_again(after: timedelta) -> None:
    with transaction.atomic():
        stream = locks.lock_stream()
        stream.due_at = database_now() + after
        stream.save(update_fields=["due_at"])


def _collect(after: UUID | None, *, everything: bool) -> list[DecisionEvent]:
    """Append one batch, in a transaction of its own.

    ``after``: the last decision of the batch before, since none is looked at twice.
    """
    with transaction.atomic():
        stream = locks.lock_stream()
        first = EARLIEST if everything else stream.decisions_through
        found = _append(stream, _decided(first if after is None else after))
        if room := BATCH - len(found):
            # What was undone may be of a decision that became an event just now.
            found += _append(stream, _undone(stream, room, everything=everything))
        if found and len(found) < BATCH:
            # Whatever has an older id and is no event by now has not committed yet, or is none.
            oldest = _before(max(one.source for one in found))
            stream.decisions_through = max(stream.decisions_through, oldest)
            stream.receipts_through = max(stream.receipts_through, oldest)
        stream.save(update_fields=["sequence", "decisions_through", "receipts_through"])
    return found


def _append(stream: EventStream, found: list[DecisionEvent]) -> list[DecisionEvent]:
    for one in found:
        stream.sequence += 1
        one.sequence = stream.sequence
    return DecisionEvent.objects.bulk_create(found)


def _before(newest: UUID) -> UUID:
    """Return the first id that was made so long before this one; ids keep their own time."""
    milliseconds = (newest.int >> 80) - LATEST_COMMIT // timedelta(milliseconds=1)
    return UUID(int=max(milliseconds, 0) << 80)


def _decided(after: UUID) -> list[DecisionEvent]:
    rows = _read(_NEW, after, BATCH)
    made = [_event(row, _kind(row)) for row in rows]
    if len(rows) < BATCH:
        back = _read(_TAKEN_BACK, after, BATCH - len(rows))
        made += [_withdrawn(row) for row in back]
    _answer_checks(rows)
    return made


def _read(statement: str, after: UUID, limit: int) -> list[_Decided]:
    with connection.cursor() as cursor:
        cursor.execute(statement, {"after": after, "limit": limit})
        return [_Decided(*row) for row in cursor.fetchall()]


def _kind(row: _Decided) -> EventKind:
    if row.by_rule:
        return EventKind.RAN
    if row.verdict != "approve":
        return EventKind.REJECT
    return EventKind.APPROVE if row.edits is None else EventKind.EDIT


def _event(row: _Decided, kind: EventKind) -> DecisionEvent:
    version = catalogue.version(current_tenant_id(), row.tool_version)
    tool = calls.tool_of(version)
    data: dict[str, Any] = {
        "decision": str(row.decision),
        "step": str(row.step),
        "tool_number": version.number,
        "agent": row.agent,
        "identity": row.identity,
        "workflow": row.workflow,
        "asked_at": row.opened_at.timestamp(),
    }
    if tool is not None:
        data |= {"risk": tool.risk, "roles": dict(tool.roles), **_call(row, tool)}
    if kind != EventKind.RAN:
        data["answer"] = _answer(row)
    return DecisionEvent(
        user_id=row.user,
        kind=kind,
        tool=version.tool_id,
        gate=row.gate,
        source=row.decision,
        data=data,
        at=row.at,
    )


def _answer(row: _Decided) -> dict[str, Any]:
    """Return how it was answered: the seconds since the person was first shown what they decided."""
    opened = row.seen_at is not None
    seconds = (row.at - row.seen_at).total_seconds() if row.seen_at is not None else 0.0
    return {"seconds": round(max(seconds, 0.0), 3), "opened": opened, "bulk": row.bulk}


def _call(row: _Decided, tool: Tool) -> dict[str, Any]:
    """Return the arguments that were shown and, after an edit, those in their place.

    ``unclear`` says why nothing is learned from them, where that is so.
    """
    at = row.opened_at.timestamp()
    asked = calls.Asked(str(row.step), at, row.agent, row.workflow, row.identity)
    shown = _shown(row)
    if shown is None:
        return {"unclear": {"name": "arguments", "why": calls.LOST}}
    try:
        request = calls.request_of(asked, tool, shown)
        found: dict[str, Any] = {"arguments": calls.kept(request)}
    except Unclear as fault:
        return {"unclear": {"name": fault.name, "why": fault.why}}
    if row.edits is not None:
        found["final"] = _final(row, asked, tool)
    return found


def _final(row: _Decided, asked: calls.Asked, tool: Tool) -> dict[str, Any] | None:
    body = None if row.edits is None else _body(row.edits)
    if body is None:
        return None
    with suppress(Unclear):
        request: Request = calls.request_of(asked, tool, body)
        return calls.kept(request)
    return None


def _shown(row: _Decided) -> bytes | None:
    """Return the arguments that the person had before them; None: they are not kept any more.

    An edit, by this person or a later one, stands in the gate in the place of what it was made of.
    """
    if row.edits is None and row.approves == row.arguments_digest:
        return _body(row.arguments)
    before = _edited_before(row) or _proposed(row)
    body = None if before is None else _body(before)
    if body is None or row.edits is not None:
        return body
    return body if _digest(row, body) == row.approves else None


def _digest(row: _Decided, body: bytes) -> str:
    tenant = current_tenant_id()
    version = catalogue.version(tenant, row.tool_version)
    return snapshots.arguments_digest(Shown("", version, json.loads(body)), tenant)


def _edited_before(row: _Decided) -> bytes | None:
    """Return the digest of the last edit of the gate before this decision."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT d.edits FROM approvals_decision d WHERE d.gate_id = %s AND d.id < %s"
            " AND d.edits IS NOT NULL ORDER BY d.id DESC LIMIT 1",
            [row.gate, row.decision],
        )
        found = cursor.fetchone()
    return None if found is None else bytes(found[0])


def _proposed(row: _Decided) -> bytes | None:
    """Return the digest of the arguments as the agent proposed them, by the run's journal."""
    entries = JournalEntry.objects.filter(stream=row.run, kind="step.proposed")
    for text in entries.order_by("seq").values_list("text", flat=True):
        data = json.loads(text)["data"]
        if data["step"] == str(row.step):
            return bytes.fromhex(data["arguments"])
    return None


def _body(digest: memoryview | bytes) -> bytes | None:
    try:
        return content.get(bytes(digest))
    except (Content.DoesNotExist, SealBroken):
        return None


def _withdrawn(row: _Decided) -> DecisionEvent:
    """Return the event of an approval that was taken back, at the time when it was."""
    made = _event(row, EventKind.WITHDRAW)
    with connection.cursor() as cursor:
        cursor.execute("SELECT withdrawn_at FROM approvals_decision WHERE id = %s", [row.decision])
        (made.at,) = cursor.fetchone()
    return made


def _undone(stream: EventStream, limit: int, *, everything: bool) -> list[DecisionEvent]:
    """Return what was undone, or found to have failed, of what somebody had allowed."""
    after = EARLIEST if everything else stream.receipts_through
    with connection.cursor() as cursor:
        cursor.execute(_UNDONE, {"after": after, "limit": limit})
        rows = cursor.fetchall()
    return [_incident(*row) for row in rows]


def _incident(
    receipt: UUID, at: datetime, decision: UUID, user: UUID, data: Any, tool: UUID, gate: UUID
) -> DecisionEvent:
    told = json.loads(data) if isinstance(data, str) else data
    return DecisionEvent(
        user_id=user,
        kind=EventKind.INCIDENT,
        tool=tool,
        gate=gate,
        source=receipt,
        data={**told, "decision": str(decision)},
        at=at,
    )


def _answer_checks(rows: Iterable[_Decided]) -> None:
    """Say on spot checks how the person whom the rule speaks for decided them, or that others did.

    What was approved as changed was not approved as the rule would have run it.
    """
    said = {
        (row.gate, row.user): row.verdict if row.edits is None else EventKind.EDIT.value
        for row in rows
        if not row.by_rule
    }
    if not said:
        return
    gates: Sequence[UUID] = [gate for gate, _ in said]
    open_checks = SpotCheck.objects.filter(gate__in=gates, verdict=None)
    for check in open_checks.select_related("delegation"):
        check.awaits = False
        check.verdict = said.get((check.gate, check.delegation.user_id))
        check.save(update_fields=["verdict", "awaits"])
