"""A spot check, kept beside the gate that asks it; of a call whose check had no answer, anew."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from approvals.models import OPEN_GATES, Gate
from delegation import locks, selectors
from delegation.models import Delegation, SpotCheck
from interrupts.work import Work

ASKED_AGAIN: Final = 1.0  # the share of a call that is asked whatever the coin says


@dataclass(frozen=True, slots=True)
class Check:
    """A call that is asked although a rule covers it: by its shape and by itself."""

    rule: Delegation
    shape: str
    call: str
    again: bool  # a check of the like has no answer yet


def keep(work: Work, gate_id: UUID, check: Check) -> None:
    """Keep a check of the gate.

    One whose gate was closed without an answer has its place taken, with how likely that one was to
    be asked: the answer counts for both as one. One that is still open counts by itself.
    """
    rule, before = check.rule, _unanswered(check) if check.again else None
    share = ASKED_AGAIN if check.again else rule.check_share
    if before is not None and not _is_open(before):
        share, before.awaits = before.share, False
        before.save(update_fields=["awaits"])
    SpotCheck.objects.create(
        delegation=rule,
        version=rule.version,
        gate=gate_id,
        share=share,
        shape=check.shape,
        call=check.call,
        after=None if before is None else before.pk,
        at=work.now,
    )


def _unanswered(check: Check) -> SpotCheck | None:
    """Return the oldest check of the like without an answer; None: others have it in hand.

    The person's own come before those of others, who can be asked no more.
    """
    owed = selectors.unanswered(check.shape, check.call)
    own = [one.check for one in owed if one.person == check.rule.user_id]
    return locks.try_check(own or [one.check for one in owed])


def _is_open(check: SpotCheck) -> bool:
    return Gate.objects.filter(pk=check.gate, state__in=sorted(OPEN_GATES)).exists()
