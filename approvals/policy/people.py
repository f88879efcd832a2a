"""Whether the groups that a policy's rules name exist, and hold the people that it takes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import combinations
from typing import Any, Final

from approvals.policy.stages import can_be_filled
from config.globs import overlap
from config.jsontext import pointer

Fault = tuple[str, str]

MAX_QUORUM: Final = 20
MAX_STAGES: Final = 10
MAX_COMPARISONS: Final = 1_000_000


def approver_faults(
    rule: dict[str, Any], groups: Mapping[str, Collection[str]] | None
) -> Iterator[Fault]:
    """Yield each group that does not exist, and each stage that its groups are too few for."""
    if groups is None:
        return
    stages = _stages_of(rule)
    for place, stage in stages:
        if isinstance(approvers := stage.get("approvers"), list):
            places = [place + pointer("approvers", index) for index in range(len(approvers))]
            yield from _groups_of(f"{place}/approvers", places, approvers, stage, groups)
        if place and isinstance(to := stage.get("escalate_to"), str):
            at = f"{place}/escalate_to"
            yield from _groups_of(at, [at], [to], stage, groups)
    if isinstance(to := rule.get("escalate_to"), str):
        # They are asked in the place of whichever stage was not answered.
        largest = max(stages, key=lambda one: _wanted(one[1]), default=("", rule))[1]
        yield from _groups_of("/escalate_to", ["/escalate_to"], [to], largest, groups)
    if 1 < len(stages) <= MAX_STAGES and not _can_be_staffed(
        [stage for _, stage in stages], groups
    ):
        yield "/stages", "A person approves once: for all stages their groups hold too few people."


def _stages_of(rule: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return a rule's stages with their places; a rule that names none is one."""
    if not isinstance(stages := rule.get("stages"), list):
        return [("", rule)]
    of_kind = [(pointer("stages", index), stage) for index, stage in enumerate(stages)]
    return [(place, stage) for place, stage in of_kind if isinstance(stage, dict)]


def _wanted(stage: dict[str, Any]) -> int:
    """Return a stage's quorum; 0 for one that is not sound."""
    quorum = stage.get("quorum", 1)
    sound = isinstance(quorum, int) and not isinstance(quorum, bool)
    return quorum if sound and 1 <= quorum <= MAX_QUORUM else 0


def _can_be_staffed(stages: list[dict[str, Any]], groups: Mapping[str, Collection[str]]) -> bool:
    """Say whether enough people are in these groups; which do not exist is told elsewhere."""
    places: list[tuple[int, set[str]]] = []
    for stage in stages:
        names = stage.get("approvers")
        if isinstance(names, list) and not any(_is_unknown(name, groups) for name in names):
            places.append((_wanted(stage), {one for name in names for one in groups[name]}))
    alone = all(len(people) >= wanted for wanted, people in places)
    return not alone or can_be_filled(places)


def _groups_of(
    place: str,
    places: list[str],
    names: list[Any],
    rule: dict[str, Any],
    groups: Mapping[str, Collection[str]],
) -> Iterator[Fault]:
    """Each group exists, and together they hold as many people as the quorum needs."""
    unknown = [index for index, name in enumerate(names) if _is_unknown(name, groups)]
    yield from ((places[index], "There is no such group.") for index in unknown)
    people = {person for name in names if not _is_unknown(name, groups) for person in groups[name]}
    needed = _wanted(rule)
    if not unknown and len(people) < needed:
        yield place, f"These groups hold {len(people)} people, the quorum is {needed}."


def _is_unknown(name: Any, groups: Mapping[str, Collection[str]]) -> bool:
    return not isinstance(name, str) or name not in groups


def without_common_approvers(rules: list[tuple[int, dict[str, Any]]]) -> Iterator[Fault]:
    """Two rules that can match one call and name no common group let nobody decide."""
    narrow = [(index, rule) for index, rule in rules if any(_named(rule))]
    if sum(len(_globs(rule)) for _, rule in narrow) ** 2 > MAX_COMPARISONS:
        yield "", "The rules with approvers name too many tools."
        return
    for (_, one), (index, other) in combinations(narrow, 2):
        named = zip(_named(one), _named(other), _stages_of(other), strict=False)
        apart = [
            place for left, right, (place, _) in named if left and right and left.isdisjoint(right)
        ]
        if apart and _can_meet(one, other):
            detail = f"No group here is one of {one['name']}, which can match the same call."
            yield from ((f"{pointer(index)}{place}/approvers", detail) for place in apart)


def _named(rule: dict[str, Any]) -> list[set[str]]:
    """Return the groups that each stage of a sound rule names."""
    return [set(stage.get("approvers", ())) for _, stage in _stages_of(rule)]


def _globs(rule: dict[str, Any]) -> list[str]:
    globs: list[str] = rule.get("tools", ["*"])
    return globs


def _can_meet(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return any(overlap(left, right) for left in _globs(one) for right in _globs(other))
