"""What two verdicts that both ask people ask of them otherwise, in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, Final, Literal, NamedTuple

from approvals.policy.judging import Verdict
from approvals.policy.stages import Stage

What = Literal[
    "quorum",
    "approvers",
    "stages",
    "expires_in",
    "on_expiry",
    "warn_before",
    "extendable_to",
    "cool_down",
    "reasons",
]
WHAT: Final[tuple[What, ...]] = What.__args__  # type: ignore[attr-defined]
ENDS: Final = ("escalate", "reject", "cancel")  # what expiry does, the strictest last
Reasons = Sequence[Mapping[str, Any]]
_NEVER: Final = float("inf")
_DOES: Final = {"cancel": "the run is cancelled", "reject": "the call is rejected"}


class Difference(NamedTuple):
    """One demand that is another; ``looser``: somebody may decide, or something waits, by it that
    did not, or less is asked for."""

    what: What
    words: str
    looser: bool


def differences(
    was: Verdict, now: Verdict, reasons_were: Reasons = (), reasons_are: Reasons = ()
) -> tuple[Difference, ...]:
    """Return what ``now`` demands that ``was`` does not, or not so, the looser first.

    The reasons are those that people choose from by each policy.
    """
    found = [*_people(was, now), *_time(was, now), *_reasons(reasons_were, reasons_are)]
    return tuple(sorted(found, key=lambda one: (not one.looser, WHAT.index(one.what))))


def _people(was: Verdict, now: Verdict) -> Iterator[Difference]:
    """Whom it takes: of stages, place by place."""
    before, after = _stages(was), _stages(now)
    if max(len(before), len(after)) > 1:
        if before != after:
            words = f"It is decided by {_in_turn(after)}, where it was {_in_turn(before)}."
            yield Difference("stages", words, _is_looser(before, after))
        return
    if was.quorum != now.quorum:
        words = f"It takes {_approvals(now.quorum)}, where it took {_approvals(was.quorum)}."
        yield Difference("quorum", words, now.quorum < was.quorum)
    if was.approvers != now.approvers:
        words = f"It asks {_who(now.approvers)}, where it asked {_who(was.approvers)}."
        yield Difference("approvers", words, _is_wider(was.approvers, now.approvers))


def _stages(verdict: Verdict) -> tuple[Stage, ...]:
    return verdict.stages or (Stage(verdict.approvers, verdict.quorum),)


def _is_looser(before: Sequence[Stage], after: Sequence[Stage]) -> bool:
    return any(
        was is not None and (now is None or _asks_less(was, now))
        for was, now in zip_longest(before, after)
    )


def _asks_less(was: Stage, now: Stage) -> bool:
    return now.quorum < was.quorum or _is_wider(was.approvers, now.approvers)


def _is_wider(before: Iterable[str], after: Iterable[str]) -> bool:
    """Say whether somebody may decide it who was in no group that was asked."""
    were, are = frozenset(before), frozenset(after)
    return bool(were) and (not are or not are <= were)


def _in_turn(stages: Sequence[Stage]) -> str:
    return ", then ".join(f"{one.quorum} of {_who(one.approvers)}" for one in stages)


def _who(groups: Sequence[str]) -> str:
    return " or ".join(groups) or "whoever may decide the tool"


def _approvals(number: int) -> str:
    return f"{number} approval{'' if number == 1 else 's'}"


def _time(was: Verdict, now: Verdict) -> Iterator[Difference]:
    if was.expires_in != now.expires_in:
        words = f"It waits {_at_most(now.expires_in)}, where it waited {_at_most(was.expires_in)}."
        yield Difference("expires_in", words, _longer(was.expires_in, now.expires_in))
    if _ends(was) != _ends(now) and None not in (was.expires_in, now.expires_in):
        words = f"Where nobody answers {_does(now)}, where {_does(was)} before."
        yield Difference("on_expiry", words, _ends_looser(was, now))
    if was.warn_before != now.warn_before:
        words = f"People are reminded {_before(now)}, where they were {_before(was)}."
        yield Difference("warn_before", words, looser=False)
    if was.extendable_to != now.extendable_to:
        words = f"People may extend it {_up_to(now)}, where they could {_up_to(was)}."
        yield Difference(
            "extendable_to", words, (now.extendable_to or 0) > (was.extendable_to or 0)
        )
    if was.cool_down != now.cool_down:
        words = f"An approval takes effect {_after(now)}, where it did {_after(was)}."
        yield Difference("cool_down", words, now.cool_down < was.cool_down)


def _longer(was: int | None, now: int | None) -> bool:
    before, after = (_NEVER if one is None else one for one in (was, now))
    return after > before


def _ends(verdict: Verdict) -> tuple[str | None, str | None]:
    return verdict.on_expiry, verdict.escalate_to


def _ends_looser(was: Verdict, now: Verdict) -> bool:
    """Say whether the end is a milder one; to ask others than before is one."""
    before, after = (ENDS.index(one.on_expiry or "reject") for one in (was, now))
    return after < before or (before == after == 0)


def _at_most(seconds: int | None) -> str:
    return "without an end" if seconds is None else f"{seconds} seconds at most"


def _does(verdict: Verdict) -> str:
    if verdict.on_expiry == "escalate":
        return f"{verdict.escalate_to} are asked"
    return _DOES[verdict.on_expiry or "reject"]


def _before(verdict: Verdict) -> str:
    if verdict.warn_before is None:
        return "after half of the time" if verdict.expires_in is not None else "of no end"
    return f"{verdict.warn_before} seconds before the end"


def _up_to(verdict: Verdict) -> str:
    return f"up to {verdict.extendable_to} seconds" if verdict.extendable_to else "not at all"


def _after(verdict: Verdict) -> str:
    return f"after {verdict.cool_down} seconds" if verdict.cool_down else "at once"


def _reasons(were: Reasons, are: Reasons) -> Iterator[Difference]:
    """What people choose from as they decide; where something was to be chosen and is not is looser."""
    if list(were) != list(are):
        words = f"People choose from {_codes(are)}, where they chose from {_codes(were)}."
        yield Difference("reasons", words, not _demanded(were) <= _demanded(are))


def _codes(reasons: Reasons) -> str:
    return ", ".join(one["code"] for one in reasons) or "no reasons"


def _demanded(reasons: Reasons) -> frozenset[str]:
    return frozenset(choice for one in reasons for choice in one["decisions"])
