"""What one person reliably approves of: learned from their answers, proved, and spot-checked.

`Learner` speaks for one approver in one tenant. Its only input are events, its only clock their
times. `decide` changes nothing.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from delegation.canonical import Canonical, Unclear, canonical
from delegation.familiarity import Strange
from delegation.predicates import Spent
from delegation.presets import CAUTIOUS, EAGER, Settings, Stage
from delegation.proof import Proof
from delegation.records import DAY, Answer, Reason, Request, Risk, Ruling, State, Tool
from delegation.rules import Rule, rule_of
from delegation.units import Unit

__all__ = [
    "CAUTIOUS",
    "EAGER",
    "Answer",
    "Event",
    "Learner",
    "Reason",
    "Request",
    "Rule",
    "Ruling",
    "Settings",
    "Tool",
    "coin",
    "replay",
]

MOST_DOUBLED: Final = 4
EventKind = Literal[
    "answer", "incident", "lost", "ran", "stop", "start", "ask_everything", "ask_no_more"
]


@dataclass(frozen=True, slots=True)
class Event:
    """One entry of the stream: `at` is when it happened, in seconds since 1970 (UTC)."""

    at: float
    id: str
    kind: EventKind
    request: Request | None = None
    answer: Answer | None = None
    tool: str | None = None


def coin(key: bytes, request_id: str) -> float:
    """Return a number from 0 to 1 that only who has the key can tell beforehand."""
    drawn = hmac.digest(key, request_id.encode(), hashlib.sha256)
    return int.from_bytes(drawn[:7], "big") / 2**56


class Learner:
    """The rules of one approver. Same events, same rules, in whatever order they were stored."""

    def __init__(self, settings: Settings = CAUTIOUS, key: bytes = b"") -> None:
        self.settings = settings
        self.key = key
        self.units: dict[str, Unit] = {}
        self.proofs = {
            risk: Proof(tuple(one.alpha for one in stages))
            for risk, stages in settings.stages.items()
        }
        self.last_at = float("-inf")
        self.incidents: list[float] = []
        self.asks_everything = False
        self.stopped: set[str] = set()

    def take(self, event: Event) -> None:
        """Take one event of the stream."""
        match event:
            case Event(kind="answer", request=Request() as request, answer=Answer() as answer):
                self.observe(request, answer, event.at)
            case Event(kind="incident" | "lost", request=Request() as request):
                hear = self.incident if event.kind == "incident" else self.lost
                hear(request, event.at)
            case Event(kind="ran", request=Request() as request):
                self.ran(request, event.at)
            case Event(kind="stop", tool=str(tool)):
                self.stop(tool, event.at)
            case Event(kind="start", tool=str(tool)):
                self.start(tool, event.at)
            case Event(kind="ask_everything"):
                self.ask_everything(event.at)
            case Event(kind="ask_no_more"):
                self.ask_no_more(event.at)
            case _:
                raise ValueError(f"An event `{event.kind}` lacks what it is about.")

    def decide(self, request: Request) -> Ruling:
        """Say whether the call may run without asking, and why not. Nothing changes by it."""
        try:
            call = canonical(request)
        except Unclear as fault:
            return _asked(fault.reason)
        unit = self.units.get(request.unit)
        now = max(request.at, self.last_at)
        if unit is None:
            unit = Unit(request.tool, tuple(sorted(request.context)))
        found = self._strange(unit, call, now).reason(self.settings.fade_days)
        if refused := self._held(unit) or found:
            return _asked(refused)
        stage = self._stage(unit)
        if stage is None:
            return _asked(self._owed(unit), would=True)
        asked = coin(self.key, request.id) < stage.check
        reason = Reason("spot_check" if asked else "allowed")
        return Ruling(not asked, would=True, spot_check=asked, reason=reason, share=stage.check)

    def observe(self, request: Request, answer: Answer, at: float | None = None) -> None:
        """Learn from a person's answer; `at` is when it was given, else when it was asked for.

        One that is older than what is known already can refuse, but teaches nothing.
        """
        try:
            call = canonical(request)
        except Unclear:
            return
        now = request.at if at is None else at
        late, self.last_at = now < self.last_at, max(now, self.last_at)
        unit = self._unit(request)
        if answer.decision == "approve":
            self._approved(unit, request, call, answer, late=late)
            return
        self._refused(unit, call)
        if answer.decision == "edit" and answer.final is not None and not late:
            self._edited(unit, request, answer)
        else:
            unit.memory.day.add(self._day(request.at))

    def incident(self, request: Request, at: float | None = None) -> None:
        """Something that ran was undone or went wrong: a refusal, and a quarantine at once."""
        try:
            call = canonical(request)
        except Unclear:
            return
        self.last_at = max(self.last_at, request.at if at is None else at)
        unit = self._unit(request)
        self._refused(unit, call)
        self._went_wrong(unit)

    def lost(self, request: Request, at: float, *, undone: bool = False) -> None:
        """Something of a tool was refused, or undone, of which nobody can read what it was.

        It may have been anything that is familiar: it counts as a refusal of that, with a quarantine.
        """
        self.last_at = max(self.last_at, at)
        unit = self._unit(request)
        unit.evidence.answered(self.last_at, refused=True)
        self.proofs[unit.tool.risk].count(refused=True)
        unit.refused(self.settings)
        unit.hold(self.settings.quarantine)
        if undone:
            self._went_wrong(unit)

    def ran(self, request: Request, at: float | None = None) -> None:
        """A call ran without asking: the day has it, and it is no evidence."""
        self.last_at = max(self.last_at, request.at if at is None else at)
        try:
            call = canonical(request)
        except Unclear:
            return
        unit = self._unit(request)
        unit.evidence.ran += 1
        unit.memory.day.add(self._day(request.at), call)

    def stop(self, tool_id: str, at: float) -> None:
        """Let nothing of a tool run without asking, in any of its versions, until `start`."""
        self.last_at = max(self.last_at, at)
        self.stopped.add(tool_id)

    def start(self, tool_id: str, at: float) -> None:
        """Let what is learned of a tool count again."""
        self.last_at = max(self.last_at, at)
        self.stopped.discard(tool_id)

    def ask_everything(self, at: float) -> None:
        """Ask about everything again, until `ask_no_more`."""
        self.last_at = max(self.last_at, at)
        self.asks_everything = True

    def ask_no_more(self, at: float) -> None:
        self.last_at = max(self.last_at, at)
        self.asks_everything = False

    def rules(self, at: float | None = None) -> list[Rule]:
        """Return each unit's rule as of a time, else as of the last event."""
        return [self._rule(unit, at) for _, unit in sorted(self.units.items())]

    def rule_for(self, request: Request) -> Rule | None:
        """Return the rule that speaks for calls like this one; None: there is none yet."""
        unit = self.units.get(request.unit)
        return None if unit is None else self._rule(unit, request.at)

    def spent(self, request: Request) -> Spent:
        """Return what the day has come to before this call."""
        unit = self.units.get(request.unit)
        return Spent() if unit is None else unit.memory.day.today(self._day(request.at))

    def _day(self, at: float) -> int:
        return int(max(at, self.last_at) // DAY)

    def _unit(self, request: Request) -> Unit:
        names = tuple(sorted(request.context))
        return self.units.setdefault(request.unit, Unit(request.tool, names))

    def _held(self, unit: Unit) -> Reason | None:
        if self.asks_everything:
            return Reason("asks_everything")
        if unit.tool.id in self.stopped:
            return Reason("stopped")
        if unit.left:
            return Reason("quarantine", (), {"left": str(unit.left)})
        return None

    def _strange(self, unit: Unit, call: Canonical, now: float) -> Strange:
        return unit.memory.strange(call, now, unit.tool.risk, self.settings)

    def _stage(self, unit: Unit) -> Stage | None:
        if unit.clean < self.settings.own_proof:
            return None
        risk = unit.tool.risk
        return self.proofs[risk].stage(self.settings.stages[risk], self.settings.delta)

    def _owed(self, unit: Unit) -> Reason:
        answers, needed = self._progress(unit)
        return Reason("not_proven", (), {"answers": str(answers), "needed": str(needed)})

    def _progress(self, unit: Unit) -> tuple[int, int]:
        """Return how many answers are given and needed: of the risk's proof, then of the tool's."""
        risk = unit.tool.risk
        proof = self.proofs[risk]
        if proof.stage(self.settings.stages[risk], self.settings.delta) is None:
            return proof.answers, proof.needed(self.settings.delta)
        return unit.clean, max(unit.clean, self.settings.own_proof)

    def _rule(self, unit: Unit, at: float | None) -> Rule:
        now = self.last_at if at is None else max(at, self.last_at)
        stage = self._stage(unit)
        return rule_of(
            unit, self.settings, now, self._state(unit, stage), stage, self._progress(unit)
        )

    def _state(self, unit: Unit, stage: Stage | None) -> State:
        if self.asks_everything or unit.tool.id in self.stopped:
            return "stopped"
        if unit.left:
            return "quarantined"
        return "proven" if stage else "proving"

    def _approved(
        self, unit: Unit, request: Request, call: Canonical, answer: Answer, *, late: bool
    ) -> None:
        risk = unit.tool.risk
        is_familiar = self._strange(unit, call, self.last_at).is_nothing
        spent = unit.memory.day.add(self._day(request.at), call)
        if late or not is_attentive(answer, risk, self.settings):
            unit.evidence.careless += 1
            return
        if is_familiar:
            self.proofs[risk].count(refused=False)
            unit.approved(self.settings)
        unit.evidence.answered(self.last_at, refused=False)
        self._credit(unit, call, spent)

    def _credit(self, unit: Unit, call: Canonical, spent: Spent) -> None:
        unit.memory.credit(call, self.last_at, self.settings.kept)
        unit.memory.day.credit(spent, self.settings.kept)

    def _refused(self, unit: Unit, call: Canonical) -> None:
        """A refusal of something familiar counts against the proof; all else is explained."""
        now, risk, memory = self.last_at, unit.tool.risk, unit.memory
        spent = memory.day.today(self._day(now))
        strange = self._strange(unit, call, now)
        unit.evidence.answered(now, refused=True)
        if not memory.blame(call, strange, self.settings.familiar[risk], spent):
            return
        surprising = self._refusals() <= self.settings.surprise
        self.proofs[risk].count(refused=True)
        unit.refused(self.settings)
        if surprising:
            self._hold_all(self.settings.after_surprise)

    def _refusals(self) -> float:
        """Return the share of familiar calls that the person refused."""
        answers = sum(one.answers for one in self.proofs.values())
        return sum(one.refused for one in self.proofs.values()) / max(1, answers)

    def _hold_all(self, answers: int) -> None:
        for unit in self.units.values():
            unit.hold(answers)

    def _went_wrong(self, unit: Unit) -> None:
        """An incident asks for a quarantine, and for twice as much as the one before it did."""
        oldest = self.last_at - self.settings.incident_days * DAY
        self.incidents = [at for at in self.incidents if at > oldest]
        times = 2 ** min(len(self.incidents), MOST_DOUBLED)
        self.incidents.append(self.last_at)
        unit.evidence.incidents += 1
        unit.hold(self.settings.quarantine * times)
        self._hold_all(self.settings.after_incident * times)

    def _edited(self, unit: Unit, request: Request, answer: Answer) -> None:
        """The arguments as they were changed are approved: the person wrote them."""
        try:
            call = canonical(request, answer.final)
        except Unclear:
            return
        self._credit(unit, call, unit.memory.day.add(self._day(request.at), call))


def is_attentive(answer: Answer, risk: Risk, settings: Settings) -> bool:
    """Say whether an approval shows that the person looked; a careless one teaches nothing."""
    if answer.bulk:
        return False
    if answer.opened:
        return answer.seconds >= settings.seconds
    return risk == "low" and answer.seconds >= settings.unopened_seconds


def replay(events: Iterable[Event], settings: Settings = CAUTIOUS, key: bytes = b"") -> Learner:
    """Return the learner that these events make, in order of their times and ids."""
    learner = Learner(settings, key)
    for event in _in_order(events):
        learner.take(event)
    return learner


def _in_order(events: Iterable[Event]) -> list[Event]:
    return sorted(events, key=lambda one: (one.at, one.id))


def _asked(reason: Reason, *, would: bool = False) -> Ruling:
    return Ruling(automatic=False, would=would, spot_check=False, reason=reason)
