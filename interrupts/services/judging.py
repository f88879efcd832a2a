"""Having receipts judged by their tools' verifiers, with no transaction open during the call.

An ask is claimed first: it is one of so many tries, and for its time nobody else asks. So whoever
crashes at it is found by that time being over, and what an older try says late counts no more.
Where no verifier says anything within its tries the verdict is unknown, and a person is asked.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from interrupts import catalogue, content, queue
from interrupts.effects import Call, Ruling, Seen, Verifier
from interrupts.models import Content, Receipt, Step, ToolVersion, Verdict, VerdictStatus
from interrupts.services import draining
from interrupts.services.finding import HELD_UP, LOST_HINT
from interrupts.transitions import judging
from interrupts.transitions.finding import version_of
from interrupts.work import Work, working
from tenants.journal import SYSTEM
from tenants.scope import current_tenant_id
from tenants.sealing import SealBroken

LONGEST_BACKOFF: Final = 3600.0  # seconds
NO_WORD: Final = "Whoever asked the verifier did not come back."
UNREADABLE: Final = "What was done can't be read any more."
NOT_KEPT: Final = "Its words are not kept: they might repeat what is sensitive."


@dataclass(frozen=True, slots=True)
class _Asked:
    """A try at having a receipt judged."""

    run: UUID
    step: UUID
    tries: int
    call: Call
    seen: Seen
    verifier: Verifier


def send_due(work: Work) -> None:
    """Have every verdict asked for whose time has come, and set when to look again."""
    if not work.run.verdicts_awaited:
        return
    for verdict in Verdict.objects.filter(run=work.run, status=VerdictStatus.AWAITED):
        at = max(one for one in (verdict.ask_at, verdict.asking_until) if one is not None)
        if at <= work.now:
            queue.judge(verdict.step_id)
            at = work.now + HELD_UP  # a hint that is lost is sent again
        work.due(at)


def judge(step_id: UUID, worker: str) -> None:
    """Ask the verifier of one step's tool about its receipt, and record what came."""
    # Hints come twice and late: only what is still awaited is asked for.
    awaited = Verdict.objects.filter(step=step_id, status=VerdictStatus.AWAITED)
    run_id = awaited.values_list("run_id", flat=True).first()
    if run_id is None:
        return
    with working(run_id, SYSTEM) as work:
        asked = _begin(work, step_id, worker)
    if asked is not None:
        _take(asked, asked.verifier.judge(asked.call, asked.seen))


def _begin(work: Work, step_id: UUID, worker: str) -> _Asked | None:
    """Claim the next try, committed before the verifier is asked."""
    step, verdict = Step.objects.get(pk=step_id), Verdict.objects.get(step=step_id)
    version = version_of(step)
    if not _may_ask(work, verdict, worker):
        work.state_unchanged()
        return None
    if verdict.tries >= _declared(version)["attempts"]:  # the last one ended without a word
        judging.record(work, step, verdict, Ruling(None, error=verdict.error or NO_WORD))
        return None
    asked = _ask_of(work, step, verdict, version)
    verdict.tries += 1
    if asked is None:
        judging.record(work, step, verdict, Ruling(None, error=UNREADABLE))
    else:
        verdict.asking_until = work.now + timedelta(seconds=asked.call.timeout) + LOST_HINT
        verdict.save(update_fields=["tries", "asking_until"])
        work.due(verdict.asking_until)
        work.state_unchanged()
    return asked


def _may_ask(work: Work, verdict: Verdict, worker: str) -> bool:
    if verdict.ask_at is None or verdict.ask_at > work.now:
        return False
    if verdict.asking_until is not None and verdict.asking_until > work.now:
        return False
    return not draining.may_not_begin(worker)


def _declared(version: ToolVersion) -> dict[str, Any]:
    if version.verifier is None:
        raise ValueError("the version has no verifier")
    return dict(version.verifier)


def _ask_of(work: Work, step: Step, verdict: Verdict, version: ToolVersion) -> _Asked | None:
    """Return what is asked; None where what is to be judged is not there any more."""
    receipt = Receipt.objects.get(pk=verdict.receipt)
    try:
        found = content.get_many([step.arguments, receipt.result])
    except (Content.DoesNotExist, SealBroken):
        return None
    result = None if receipt.result is None else json.loads(found[bytes(receipt.result)])
    return _Asked(
        run=work.run.pk,
        step=step.pk,
        tries=verdict.tries + 1,
        call=Call(
            tool=step.tool_name,
            tool_version=step.tool_number,
            arguments=found[bytes(step.arguments)],
            run=str(work.run.pk),
            step=str(step.pk),
            attempt=str(receipt.attempt or ""),
            idempotency_key=str(step.pk),
            timeout=_declared(version)["timeout"],
        ),
        seen=Seen(
            id=str(receipt.pk),
            source=receipt.source,
            result=result,
            external_id=receipt.external_id,
            observed_at=receipt.observed_at.isoformat(),
        ),
        verifier=catalogue.verifier(current_tenant_id(), version.pk, work.authority_version),
    )


def _take(asked: _Asked, ruling: Ruling) -> None:
    """Record what the verifier said; to a verdict that is recorded it adds nothing."""
    with working(asked.run, SYSTEM) as work:
        step, verdict = Step.objects.get(pk=asked.step), Verdict.objects.get(step=asked.step)
        if overtaken(verdict, asked.tries):
            work.state_unchanged()
            return
        version = version_of(step)
        if ruling.says is None and verdict.tries < _declared(version)["attempts"]:
            _ask_later(work, verdict, ruling, version)
            return
        if version.sensitive and ruling.words:
            ruling = Ruling(ruling.says, NOT_KEPT, ruling.error)
        judging.record(work, step, verdict, ruling)


def overtaken(verdict: Verdict, tries: int) -> bool:
    """Say whether what a try says counts no more: it is recorded, or a newer try is at it."""
    return verdict.status != VerdictStatus.AWAITED or verdict.tries != tries


def _ask_later(work: Work, verdict: Verdict, ruling: Ruling, version: ToolVersion) -> None:
    """Ask again with doubling backoff."""
    backoff = _declared(version)["backoff"] * (1 << min(verdict.tries - 1, 16))
    verdict.ask_at = work.now + timedelta(seconds=min(backoff, LONGEST_BACKOFF))
    verdict.asking_until, verdict.error = None, ruling.error
    verdict.save(update_fields=["ask_at", "asking_until", "error"])
    work.due(verdict.ask_at)
    work.note(
        "verdict.unanswered",
        verdict=verdict.pk,
        step=verdict.step_id,
        tries=verdict.tries,
        error=work.imprint_of(verdict.error),
    )
    work.state_unchanged()
