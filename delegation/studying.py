"""What a person's events teach, in order, under the settings that a tenant chose."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from django.db.models import QuerySet

from delegation import backtests
from delegation.beside import modes_now
from delegation.learner import Learner
from delegation.models import DecisionEvent, EventKind, LearnerState
from delegation.modes import Modes
from delegation.presets import CAUTIOUS, EAGER, Settings
from delegation.records import Request

PORTION: Final = 2_000  # events that are learned from in one transaction


def settings_of(modes: Modes) -> Settings:
    return EAGER if modes.preset == EAGER.name else CAUTIOUS


def settings_kept(kept: LearnerState) -> Settings:
    """Return the settings under which a state was learned; of none, those of the policy in force."""
    said = {} if kept.state is None else kept.state
    of_presets = (one for one in (CAUTIOUS, EAGER) if one.digest == said.get("settings"))
    return next(of_presets, None) or settings_of(modes_now())


@dataclass(slots=True)
class Studied:
    """A person's learner with what it took, and what of it is kept."""

    learner: Learner
    shadow: dict[str, dict[str, int]]

    def take(self, event: DecisionEvent) -> None:
        """Learn from one event."""
        request, at = backtests.request_of(event), event.at.timestamp()
        if request is None:
            if (unread := backtests.lost(event)) is not None:
                self.learner.lost(unread, at, undone=event.kind == EventKind.INCIDENT)
            return
        if event.kind == EventKind.RAN:
            self.learner.ran(request, at)
        elif event.kind == EventKind.INCIDENT:
            self.learner.incident(request, at)
        else:
            self._shade(event, request)
            self.learner.observe(request, backtests.answer_of(event), at)

    def _shade(self, event: DecisionEvent, request: Request) -> None:
        """Count what would have run without asking if only that were proven."""
        ruling = self.learner.decide(request)
        if event.kind == EventKind.WITHDRAW or not ruling.would:
            return
        if ruling.reason.kind != "not_proven":
            return
        tally = self.shadow.setdefault(request.unit, {"would": 0, "refused": 0})
        tally["would"] += 1
        tally["refused"] += event.kind != EventKind.APPROVE


def study(events: Iterable[DecisionEvent], settings: Settings) -> Studied:
    """Return what these events, in order, teach."""
    studied = Studied(Learner(settings), {})
    for event in events:
        studied.take(event)
    return studied


def latest_of(user_id: UUID) -> QuerySet[DecisionEvent]:
    """Return a person's events, those that are learned from last first."""
    return DecisionEvent.objects.filter(user=user_id).order_by("-at", "-source", "-kind")


def events_of(user_id: UUID, through: int) -> Iterator[DecisionEvent]:
    """Yield a person's events with a number up to this in the order in which they are learned from.

    They are read in portions: there may be any number.
    """
    found = DecisionEvent.objects.filter(user=user_id, sequence__lte=through)
    return found.order_by("at", "source", "kind").iterator(PORTION)
