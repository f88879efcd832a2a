"""All that was learned, made again from the events and held against what is kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from django.db import transaction

from delegation import locks, predicates, state
from delegation.learner import Learner
from delegation.models import DecisionEvent, Delegation, DelegationStatus, LearnerState, Origin
from delegation.studying import events_of, settings_kept, study

PEOPLE: Final = 20  # whose states are read at once
LEARNED_STATES = (DelegationStatus.SUGGESTED, DelegationStatus.ACTIVE)


@dataclass(frozen=True, slots=True)
class Difference:
    """Something that is kept otherwise than the events say."""

    about: str
    what: str

    def __str__(self) -> str:
        return f"{self.about}: {self.what}"


def check() -> list[Difference]:
    """Return what of the tenant's states and learned rules is not what its events make."""
    found: list[Difference] = []
    for kept in LearnerState.objects.order_by("user_id").iterator(PEOPLE):
        found += _differences(kept)
    return found


def extent() -> int:
    """Return how many events the tenant's rules are learned from."""
    return DecisionEvent.objects.count()


def rebuild() -> list[UUID]:
    """Write each state anew that is not what the events make; return whose these were."""
    changed = []
    for user_id in LearnerState.objects.order_by("user_id").values_list("user_id", flat=True):
        with transaction.atomic():
            kept = locks.lock_learner(user_id)
            learner, shadow = _again(kept)
            if state.dump(learner) != kept.state or shadow != kept.shadow:
                kept.state, kept.shadow = state.dump(learner), shadow
                kept.save(update_fields=["state", "shadow"])
                changed.append(user_id)
    return changed


def _again(kept: LearnerState) -> tuple[Learner, dict[str, dict[str, int]]]:
    """Learn again from those events from which it was learned, under the settings of then.

    Where the policy has another preset since, everybody is learned of again by the next pass.
    """
    events = events_of(kept.user_id, kept.sequence)
    studied = study(events, settings_kept(kept))
    return studied.learner, studied.shadow


def _differences(kept: LearnerState) -> list[Difference]:
    learner, shadow = _again(kept)
    found = []
    if kept.state is not None and state.dump(learner) != kept.state:
        found.append(Difference(f"person {kept.user_id}", "what was learned is another state"))
    if kept.shadow != shadow:
        found.append(Difference(f"person {kept.user_id}", "the tally is another"))
    rows = Delegation.objects.filter(user=kept.user_id, status__in=LEARNED_STATES)
    for row in rows.filter(origin=Origin.LEARNED).order_by("id"):
        digest = _digest(learner, row)
        if digest != row.sha256 or predicates.sha256(row.predicate) != row.sha256:
            found.append(Difference(f"rule {row.pk}", f"the events make {digest}"))
    return found


def _digest(learner: Learner, row: Delegation) -> str | None:
    """Return the digest of the rule as of when its row was brought up to what is learned."""
    for rule in learner.rules(row.evidence["as_of"]):
        if (rule.tool.id, rule.tool.version) == (str(row.tool), row.tool_number):
            return rule.sha256
    return None
