"""What was learned of a person, brought up to their events, and their rules up to that."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.db import transaction

from approvals import judging
from delegation import backtests, calls, locks, state
from delegation.beside import modes_now
from delegation.canonical import Canonical
from delegation.learner import Learner
from delegation.models import (
    DecisionEvent,
    Delegation,
    DelegationStatus,
    DelegationTemplate,
    EventKind,
    EventStream,
    LearnerState,
    Origin,
    PauseReason,
)
from delegation.modes import Mode, Modes
from delegation.presets import Settings
from delegation.rules import Rule
from delegation.services import events
from delegation.studying import PORTION, Studied, events_of, latest_of, settings_of, study
from delegation.transitions import days, rules
from interrupts.models import Tool
from tenants.clock import database_now
from tenants.journal import SYSTEM

FAMILIAR: Final = 5  # answers without a refusal, to something familiar, that make a suggestion
STOPPED_FOR: Final = timedelta(days=30)  # in which what was revoked is not suggested again
LONGEST_BACKTEST: Final = 2_000
# Of what sleeps for these, its person says when it goes on.
HELD_BY_PEOPLE: Final = (
    PauseReason.PERSON,
    PauseReason.ADMIN,
    PauseReason.UNREADABLE,
    PauseReason.DENIED,
)
S = DelegationStatus


def catch_up() -> None:
    """Collect what is new and learn from it; a pass that broke off is made up for by the next.

    Once a day everything is looked at, and rules are brought to what is familiar by then.
    """
    now = database_now()
    complete = EventStream.objects.filter(complete_at__gt=now - timedelta(days=1)).exists()
    heed_denials(everything=not complete)
    events.collect(everything=not complete)
    _learn_what_is_new()
    if not complete:
        fade()
        EventStream.objects.update(complete_at=now)


def _learn_what_is_new() -> None:
    """Learn from what is new; where the policy has another preset by now, again of everybody."""
    stream, preset = EventStream.objects.first(), settings_of(modes_now()).name
    if stream is None or (stream.learned, stream.preset) == (stream.sequence, preset):
        return
    new = DecisionEvent.objects.filter(sequence__gt=stream.learned, sequence__lte=stream.sequence)
    people = set(new.values_list("user_id", flat=True))
    if stream.preset != preset:
        people.update(LearnerState.objects.values_list("user_id", flat=True))
    learn(people)
    # Another pass may have gone further meanwhile.
    EventStream.objects.filter(learned__lt=stream.sequence).update(learned=stream.sequence)
    EventStream.objects.exclude(preset=preset).update(preset=preset)


def learn(people: Iterable[UUID]) -> None:
    """Learn from what is new of these people, in transactions of a bounded size; again: nothing."""
    # What policy begins to deny from here on is heeded of what begins here, by the next pass.
    policy, modes = judging.number_now(), modes_now()
    for user_id in sorted(people):
        is_over = False
        while not is_over:
            with transaction.atomic():
                is_over = _learn(user_id, policy, modes)


def fade() -> None:
    """Bring every person's rules to what is familiar by now, and end those whose time is over."""
    learn(LearnerState.objects.values_list("user_id", flat=True))
    expire()


def heed_denials(*, everything: bool = True) -> None:
    """Have rules sleep whose tool policy began to deny since they began, or were last let go on.

    Unless ``everything`` is asked for, nothing is looked at again under the same policy version.
    """
    policy = judging.number_now()
    heeded = EventStream.objects.filter(denials_through=policy)
    if not everything and (policy == judging.NO_POLICY or heeded.exists()):
        return
    latest = judging.denials(policy).latest
    older = Delegation.objects.filter(status__in=[S.ACTIVE, S.PAUSED], confirmed_under__lt=latest)
    for user_id in sorted(set(older.values_list("user_id", flat=True))):
        with transaction.atomic():
            _heed_denials(locks.lock_rules(user_id), policy)
    EventStream.objects.update(denials_through=policy)


def _heed_denials(held: Sequence[Delegation], policy: int) -> None:
    """Have those of a person's rules sleep that policy denied meanwhile, until their person says."""
    denials = judging.denials(policy)
    older = [one for one in held if one.confirmed_under < denials.latest]
    tools = Tool.objects.filter(pk__in={one.tool for one in older})
    names = dict(tools.values_list("pk", "name")) if older else {}
    for rule in older:
        denied_in = denials.of(names[rule.tool])
        if rule.confirmed_under >= denied_in:
            continue
        why = PauseReason.DENIED, SYSTEM, database_now(), f"version {denied_in}"
        if rule.status == S.ACTIVE:
            rules.pause(rule, *why)
        elif rule.origin == Origin.LEARNED and _wakes_by_itself(rule):
            rules.sleep_on(rule, *why)


def expire() -> None:
    """End the rules whose time is over."""
    now = database_now()
    due = Delegation.objects.filter(
        expires_at__lte=now, status__in=[S.SUGGESTED, S.ACTIVE, S.PAUSED]
    )
    for pk in sorted(due.values_list("pk", flat=True)):
        with transaction.atomic():
            rule = locks.lock_rule(pk)
            if rule.status in (S.SUGGESTED, S.ACTIVE, S.PAUSED):
                rules.end(rule, S.EXPIRED, SYSTEM, now)


def _learn(user_id: UUID, policy: int, modes: Modes) -> bool:
    """Learn from the next portion of a person's events; say whether it was the last.

    Their rules follow then only: what comes next may refuse what a portion shows.
    """
    kept, settings = locks.lock_learner(user_id), settings_of(modes)
    new = _portion(user_id, kept.sequence)
    studied = _studied(kept, new, settings)
    if new or (kept.state is not None and kept.state.get("settings") != settings.digest):
        kept.through_at, kept.through = max([*map(_order, new), *_learned_through(kept)])
        kept.sequence = max([kept.sequence, *(one.sequence for one in new)])
        kept.state, kept.shadow = state.dump(studied.learner), studied.shadow
        kept.save()
    held, is_over = locks.lock_rules(user_id), len(new) < PORTION
    _heed_denials(held, policy)
    _count_in_days(held, new)
    for event in new:
        _heed_refusal(held, event)
    if is_over:
        _Sync(user_id, policy, modes, studied.learner, held, database_now()).all()
    return is_over


def _portion(user_id: UUID, after: int) -> list[DecisionEvent]:
    """Return the next events of a person by their numbers, in the order they are learned from."""
    found = DecisionEvent.objects.filter(user=user_id, sequence__gt=after).order_by("sequence")
    return sorted(found[:PORTION], key=lambda one: (*_order(one), one.kind))


def _order(event: DecisionEvent) -> tuple[datetime, UUID]:
    return event.at, event.source


def _learned_through(kept: LearnerState) -> list[tuple[datetime, UUID]]:
    """Return the last event that was learned from, in their order; nothing: none was."""
    if kept.through_at is None or kept.through is None:
        return []
    return [(kept.through_at, kept.through)]


def _studied(kept: LearnerState, new: Sequence[DecisionEvent], settings: Settings) -> Studied:
    """Go on from what is kept; from the first event where one came late, or settings changed.

    What is appended meanwhile is not among them: the next portion has it.
    """
    through = max([kept.sequence, *(one.sequence for one in new)])
    in_order = all(_order(new[0]) > last for last in _learned_through(kept)) if new else True
    if kept.state is not None and in_order:
        with suppress(state.OtherVersion):
            studied = Studied(state.load(kept.state, settings), dict(kept.shadow))
            for event in new:
                studied.take(event)
            return studied
    return study(events_of(kept.user_id, through), settings)


def _count_in_days(held: Sequence[Delegation], new: Sequence[DecisionEvent]) -> None:
    """Count what the person approved in the days of the rules that cover it: the bounds are of both.

    The days are locked in order: by rule, then as they came.
    """
    for rule in held:
        counted: dict[date, list[Canonical]] = defaultdict(list)
        for event in new:
            if event.kind == EventKind.APPROVE and (call := _covered(rule, event)) is not None:
                counted[event.at.astimezone(UTC).date()].append(call)
        for on, done in sorted(counted.items()):
            day = locks.lock_day(rule.pk, on)
            for call in done:
                days.count(day, call)
            day.save(update_fields=["calls", "sums"])


def _covered(rule: Delegation, event: DecisionEvent) -> Canonical | None:
    """Return an event's call where the rule covers it, whatever its day has come to."""
    call = backtests.call_of(event) if _is_of(rule, event) else None
    covers = call is not None and calls.refusal(rule.predicate, call) is None
    return call if covers else None


def _heed_refusal(held: Sequence[Delegation], event: DecisionEvent) -> None:
    """Have an accepted rule sleep that would have allowed what its person refused, or was undone.

    Where nobody can read what that was, every rule of the tool does, until its person looks at it.
    """
    if event.kind not in backtests.REFUSALS:
        return
    lost = backtests.lost(event) is not None
    for rule in held:
        if rule.status == S.ACTIVE and (_is_of(rule, event) if lost else _refuses(rule, event)):
            rules.pause(rule, _why_asleep(event, lost=lost), SYSTEM, database_now())
        elif lost and _is_of(rule, event) and _wakes_by_itself(rule):
            rules.sleep_on(rule, PauseReason.UNREADABLE, SYSTEM, database_now())


def _wakes_by_itself(rule: Delegation) -> bool:
    return rule.status == S.PAUSED and rule.pause_reason not in HELD_BY_PEOPLE


def _refuses(rule: Delegation, event: DecisionEvent) -> bool:
    """Say whether a rule, which follows no learner, would have allowed what was refused."""
    return rule.origin != Origin.LEARNED and _covered(rule, event) is not None


def _is_of(rule: Delegation, event: DecisionEvent) -> bool:
    return rule.unit == _unit_of(event)


def _why_asleep(event: DecisionEvent, *, lost: bool) -> PauseReason:
    if lost:
        return PauseReason.UNREADABLE
    return PauseReason.INCIDENT if event.kind == EventKind.INCIDENT else PauseReason.REFUSED


def _unit_of(event: DecisionEvent) -> str:
    return f"{event.tool}@{event.data['tool_number']}"


@dataclass(frozen=True, slots=True)
class _Sync:
    """A person's rules as rows, brought to what the learner says."""

    user: UUID
    policy: int  # the version under which it is learned
    modes: Modes
    learner: Learner
    held: Sequence[Delegation]
    now: datetime

    def all(self) -> None:
        for rule in self.learner.rules(self.now.timestamp()):
            self._one(rule)

    def _one(self, rule: Rule) -> None:
        row = self._row(rule)
        if row is not None:
            self._follow(row, rule)
        elif self._may_begin(rule):
            rules.begin_new(self._made(rule), SYSTEM, self.now, self.policy)
        elif self._may_suggest(rule):
            made = self._made(rule)
            made.backtest = self._backtest(rule.predicate, rule)
            rules.suggest(made, SYSTEM, self.now)
        if rule.state == "proven":
            self._offer_templates(rule)

    def _row(self, rule: Rule) -> Delegation | None:
        learned = (one for one in self.held if one.origin == Origin.LEARNED)
        return next((one for one in learned if one.unit == _unit(rule)), None)

    def _follow(self, row: Delegation, rule: Rule) -> None:
        """Bring a learned rule's row to what is learned; what only people wake stays as it is."""
        if row.status == S.PAUSED and row.pause_reason in HELD_BY_PEOPLE:
            return
        row.evidence, row.check_share = self._evidence(rule), self._share(rule)
        if row.status == S.SUGGESTED:
            self._follow_suggestion(row, rule)
            return
        row.expires_at = self.now + rules.LASTS
        rules.change(row, rule.predicate, SYSTEM, self.now)
        proven = rule.state == "proven"
        if row.status == S.ACTIVE and not proven:
            rules.pause(row, _why_not(rule), SYSTEM, self.now)
        elif row.status == S.PAUSED and proven and self._mode(rule) is Mode.AUTOMATIC:
            rules.begin(row, SYSTEM, self.now, self.policy)

    def _follow_suggestion(self, row: Delegation, rule: Rule) -> None:
        if rule.is_empty or rule.state == "quarantined" or self._mode(rule) is Mode.OFF:
            rules.end(row, S.EXPIRED, SYSTEM, self.now)
        elif self._mode(rule) is Mode.AUTOMATIC and rule.state == "proven":
            row.predicate, row.sha256 = dict(rule.predicate), rule.sha256
            rules.begin(row, SYSTEM, self.now, self.policy)
        else:
            if rule.sha256 != row.sha256:
                row.backtest = self._backtest(rule.predicate, rule)
            rules.change(row, rule.predicate, SYSTEM, self.now)

    def _mode(self, rule: Rule) -> Mode:
        return self.modes.of(rule.tool.risk)

    def _may_begin(self, rule: Rule) -> bool:
        proven = rule.state == "proven" and not rule.is_empty
        return proven and self._mode(rule) is Mode.AUTOMATIC and self._is_wanted(rule)

    def _may_suggest(self, rule: Rule) -> bool:
        unit = next(one for one in self.learner.units.values() if one.tool == rule.tool)
        known = unit.clean >= FAMILIAR and not unit.left and not rule.is_empty
        return known and self._mode(rule) is Mode.SUGGEST and self._is_wanted(rule)

    def _is_wanted(self, rule: Rule) -> bool:
        """Whether the person has no rule of their own there, and has stopped or dismissed none."""
        if any(one.unit == _unit(rule) for one in self.held):
            return False
        ended = Delegation.objects.filter(
            user=self.user, tool=rule.tool.id, tool_number=rule.tool.version, status=S.REVOKED
        )
        since = self.now - STOPPED_FOR
        return not (
            ended.filter(dismissed_at__isnull=False).exists()
            or ended.filter(revoked_at__gt=since).exists()
        )

    def _made(self, rule: Rule) -> Delegation:
        return Delegation(
            user_id=self.user,
            tool=UUID(rule.tool.id),
            tool_number=rule.tool.version,
            origin=Origin.LEARNED,
            risk=rule.tool.risk,
            predicate=dict(rule.predicate),
            evidence=self._evidence(rule),
            check_share=self._share(rule),
            sha256=rule.sha256,
        )

    def _evidence(self, rule: Rule) -> dict[str, Any]:
        said = rule.document()
        names = ("evidence", "state", "answers", "needed", "alpha")
        return {**{name: said[name] for name in names}, "as_of": self.now.timestamp()}

    def _share(self, rule: Rule) -> float:
        """Return which share is asked all the same: the largest while nothing is proven."""
        first = self.learner.settings.stages[rule.tool.risk][0]
        return first.check if rule.check is None else rule.check

    def _backtest(self, predicate: Any, rule: Rule) -> dict[str, Any]:
        return backtest_of(self.user, rule.tool.id, rule.tool.version, predicate)

    def _offer_templates(self, rule: Rule) -> None:
        """Suggest what admins offer for a tool, once the person's own answers are proven."""
        templates = DelegationTemplate.objects.filter(
            tool=rule.tool.id, tool_number=rule.tool.version, withdrawn_at=None
        )
        if self._mode(rule) is Mode.OFF:
            return
        for template in templates:
            if not Delegation.objects.filter(user=self.user, template=template.pk).exists():
                made = self._made(rule)
                made.origin, made.template = Origin.TEMPLATE, template.pk
                made.predicate, made.limits = template.predicate, template.limits
                made.sha256 = template.sha256
                made.backtest = self._backtest(template.predicate, rule)
                rules.suggest(made, SYSTEM, self.now)


def _unit(rule: Rule) -> str:
    return f"{rule.tool.id}@{rule.tool.version}"


def _why_not(rule: Rule) -> PauseReason:
    if rule.state != "quarantined":
        return PauseReason.UNPROVEN
    return PauseReason.INCIDENT if rule.evidence.incidents else PauseReason.REFUSED


def backtest_of(user_id: UUID, tool: str | UUID, number: int, predicate: Any) -> dict[str, Any]:
    """Return what a rule would have done over the person's latest decisions on the tool."""
    found = latest_of(user_id).filter(tool=tool, data__tool_number=number)
    latest = list(found[:LONGEST_BACKTEST])
    return backtests.backtest(predicate, reversed(latest))
