"""Stages: who decides one after the other, and how many of each must approve.

A rule that names none is one stage. A person votes once over all of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Any, Final, NamedTuple, TypeVar

from approvals.policy.ends import NEVER, End, joined_end, parse_end

P = TypeVar("P")

# The approvers where rules name groups of which none is common: no group has this name.
NOBODY: Final = "(nobody)"


class Stage(NamedTuple):
    """One stage; ``approvers`` are groups, of one of which a person must be; none: whoever may.

    ``end`` is its own, from when it is opened; the whole decision may end before.
    """

    approvers: tuple[str, ...]
    quorum: int
    end: End = NEVER

    def document(self) -> dict[str, Any]:
        asked = {"approvers": list(self.approvers), "quorum": self.quorum}
        return {**asked, **self.end.document()}


ONE: Final = Stage((), 1)


def parse_stages(said: Mapping[str, Any]) -> tuple[Stage, ...]:
    """Read the stages of what may have none and is one itself then, which has no end of its own."""
    stages = said.get("stages")
    if not stages:
        return (_parse_stage(said),)
    return tuple(_parse_stage(one)._replace(end=parse_end(one)) for one in stages)


def _parse_stage(said: Mapping[str, Any]) -> Stage:
    return Stage(tuple(said.get("approvers") or ()), said.get("quorum") or 1)


def joined(demands: Iterable[Sequence[Stage]]) -> tuple[Stage, ...]:
    """Return what meets each demand: the first stages in one, then the second ones, and so on.

    In each place the largest quorum, the common approvers and the shortest end count, so a demand
    more never loosens.
    """
    places = zip_longest(*demands)
    return tuple(_together([one for one in place if one is not None]) for place in places)


def _together(stages: Sequence[Stage]) -> Stage:
    quorum = max(one.quorum for one in stages)
    return Stage(_common_approvers(stages), quorum, joined_end(one.end for one in stages))


def _common_approvers(stages: Iterable[Stage]) -> tuple[str, ...]:
    """Return the groups that each stage with approvers names; where there is none, nobody."""
    named = [frozenset(one.approvers) for one in stages if one.approvers]
    if not named:
        return ()
    return tuple(sorted(frozenset.intersection(*named))) or (NOBODY,)


def needed(stages: Iterable[Stage]) -> int:
    """Return how many approvals they take together."""
    return sum(one.quorum for one in stages)


def can_be_filled(places: Sequence[tuple[int, Collection[P]]]) -> bool:
    """Say whether so many of these people can be found for each place, and nobody for two."""
    seats = [place for place, (wanted, _) in enumerate(places) for _ in range(wanted)]
    # As many as there are seats do for a place: the others cannot take all of them away.
    people = [list(could)[: len(seats)] for _, could in places]
    taken: dict[P, int] = {}

    def find(seat: int, tried: set[P]) -> bool:
        """Seat somebody; whoever sits elsewhere moves here where that seat finds another."""
        for one in people[seats[seat]]:
            if one not in tried:
                tried.add(one)
                if one not in taken or find(taken[one], tried):
                    taken[one] = seat
                    return True
        return False

    return all(find(seat, set()) for seat in range(len(seats)))
