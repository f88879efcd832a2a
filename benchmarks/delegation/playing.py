"""One pass of a learner through a world, and of learners through a team whose gates go to three."""

from __future__ import annotations

import hashlib
import heapq
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from random import Random
from typing import Final, Literal

from benchmarks.delegation.baselines import Learner
from benchmarks.delegation.people import answer
from benchmarks.delegation.world import (
    DAYS,
    TOOLS,
    Asked,
    Calls,
    Person,
    Stream,
    Told,
    Truth,
    make_person,
    make_world,
)

LATE_DAYS: Final = 15
Speaker = Literal["addressee", "anyone"]


@dataclass
class Played:
    """What happened: counts by person, and what is looked at one by one."""

    kinds: dict[str, str]
    counts: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    first: dict[str, int] = field(default_factory=dict)
    smuggled: dict[str, Counter[bool]] = field(default_factory=lambda: defaultdict(Counter))
    incidents: Counter[tuple[str, str, int]] = field(default_factory=Counter)
    last_leak: dict[str, float] = field(default_factory=dict)


class Game:
    """Asks the learner first, then the people; tells it what they say, and later what was undone."""

    def __init__(self, learner: Learner, people: Mapping[str, Person]) -> None:
        self.learner, self.people = learner, people
        self.played = Played({name: one.kind for name, one in people.items()})
        self.prompts: dict[str, deque[float]] = defaultdict(deque)
        self.undone: list[tuple[float, str, Asked]] = []

    def play(self, stream: Stream) -> Played:
        for asked, truth in stream:
            while self.undone and self.undone[0][0] <= asked.t:
                self.learner.observe(heapq.heappop(self.undone)[2], Told("incident", "reject"))
            self._one(asked, truth)
        return self.played

    def _one(self, asked: Asked, truth: Truth) -> None:
        spoken = None
        if TOOLS[asked.tool].risk != "high":
            spoken = next(
                (one for one in self.speakers(asked) if self.learner.decide(one)[0]), None
            )
        self._count(asked, truth, ran=spoken is not None)
        if spoken is not None:
            self._ran(asked, spoken, truth)
            return
        asked = replace(asked, approver=self.answerer(asked))
        person, recent = self.people[asked.approver], self.prompts[asked.approver]
        while recent and recent[0] < asked.t - 1:
            recent.popleft()
        told = answer(person, asked, truth, len(recent))
        recent.append(asked.t)
        if not truth.ok and told.decision == "approve":
            self.played.counts[asked.approver]["human_wrong"] += 1
        if TOOLS[asked.tool].risk != "high":
            self.learner.observe(asked, told)

    def speakers(self, asked: Asked) -> Iterable[Asked]:
        """Yield the call as each whose rules may speak for it would be asked it."""
        return (asked,)

    def answerer(self, asked: Asked) -> str:
        return asked.approver

    def _count(self, asked: Asked, truth: Truth, *, ran: bool) -> None:
        counts, delegable = self.played.counts[asked.approver], TOOLS[asked.tool].risk != "high"
        late = delegable and asked.t >= DAYS - LATE_DAYS
        counts.update(
            n=1,
            delegable=int(delegable),
            late=int(late),
            flipped=int(truth.flipped),
            ran=int(ran),
            ran_late=int(ran and late),
        )
        if truth.attack and not truth.ok:
            self.played.smuggled[truth.attack][ran] += 1
        if ran:
            self.played.first.setdefault(asked.approver, counts["n"])

    def _ran(self, asked: Asked, spoken: Asked, truth: Truth) -> None:
        if truth.ok:
            return
        counts = self.played.counts[asked.approver]
        counts.update(wrong=1, avoidable=int(not truth.blind), leaked=int(truth.flipped))
        self.played.incidents[asked.approver, asked.tool, int(asked.t)] += round(truth.damage)
        if truth.flipped:
            changed_at = self.people[asked.approver].changed_at
            self.played.last_leak[asked.approver] = asked.t - changed_at
        if truth.luck[6] < (0.6 if truth.damage >= 100 else 0.3):
            heapq.heappush(self.undone, (asked.t + 0.5 + 2.5 * truth.luck[7], asked.rid, spoken))


TEAMS: Final = (
    ("careful", ("careful", "careful", "noisy")),
    ("careful", ("careful", "noisy", "rubber")),
    ("hidden", ("careful", "careful", "careful")),
    ("drift", ("careful", "noisy", "careful")),
    ("adversarial", ("careful", "careful", "rubber")),
    ("careful", ("careful", "rubber", "rubber")),
)


class TeamGame(Game):
    """Each gate goes to three; who answers first answers. One policy is the tenant's.

    `addressee`: a keyed coin names one of the three beforehand, and that person's rules alone may
    speak. `anyone`: whoever of the three has a rule for it, which is what the service does not do.
    """

    def __init__(
        self,
        learner: Learner,
        people: Mapping[str, Person],
        teams: Mapping[str, tuple[str, ...]],
        speaker: Speaker,
    ) -> None:
        super().__init__(learner, people)
        self.teams, self.speaker = teams, speaker

    def speakers(self, asked: Asked) -> Iterable[Asked]:
        team = self.teams[asked.approver]
        if self.speaker == "addressee":
            drawn = hashlib.sha256(asked.rid.encode()).digest()
            team = (team[drawn[0] % len(team)],)
        return (replace(asked, approver=name) for name in team)

    def answerer(self, asked: Asked) -> str:
        """Who skims is quicker, so answers twice as often."""
        team = self.teams[asked.approver]
        quickness = [2 if self.people[name].kind == "rubber" else 1 for name in team]
        place = Random(asked.rid).random() * sum(quickness)  # noqa: S311 - no secret
        for name, share in zip(team, quickness, strict=True):
            place -= share
            if place < 0:
                return name
        return team[-1]


def make_teams(
    seed: int, days: float = DAYS
) -> tuple[dict[str, Person], dict[str, tuple[str, ...]], Stream]:
    """Return people, who of them are asked for each tenant, and what the tenants' agents ask.

    A tenant's calls and policy are those of one person three times as busy, whose kind says what
    may be wrong with them; the three who answer differ in care.
    """
    people, teams, stream = {}, {}, []
    for at, (kind, members) in enumerate(TEAMS):
        drawn = Random(f"team {seed}:{at}")  # noqa: S311 - a seeded world, no secret
        tenant = make_person(drawn, f"t{seed}x{at}", kind, days)
        people[tenant.name] = tenant
        teams[tenant.name] = tuple(f"{tenant.name}.{place}" for place in range(len(members)))
        for name, care in zip(teams[tenant.name], members, strict=True):
            people[name] = replace(tenant, name=name, kind=care)
        stream += list(Calls(drawn, tenant, days, 3 * drawn.uniform(10, 34)))
    stream.sort(key=lambda one: (one[0].t, one[0].rid))
    return people, teams, stream


def play_people(make: Callable[[], Learner], seeds: Iterable[int]) -> list[Played]:
    """Play worlds where each person answers for themself."""
    return [Game(make(), people).play(stream) for people, stream in map(make_world, seeds)]


def play_teams(make: Callable[[], Learner], seeds: Iterable[int], speaker: Speaker) -> list[Played]:
    """Play worlds where each gate goes to three."""
    return [
        TeamGame(make(), people, teams, speaker).play(stream)
        for people, teams, stream in map(make_teams, seeds)
    ]
