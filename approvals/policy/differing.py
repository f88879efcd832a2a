"""What two verdicts that both ask people ask of them otherwise, in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, Final, Literal, NamedTuple

from approvals.policy.ends import ENDS, End
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
Reasons = Sequence[Mapping[str, Any]]
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
    wider = now.quorum < was.quorum or _is_wider(was.approvers, now.approvers)
    return wider or _ends_looser(was.end, now.end)


def _is_wider(before: Iterable[str], after: Iterable[str]) -> bool:
    """Say whether somebody may decide it who was in no group that was asked."""
    were, are = frozenset(before), frozenset(after)
    return bool(were) and (not are or not are <= were)


def _in_turn(stages: Sequence[Stage]) -> str:
    return ", then ".join(map(stage_words, stages))


def stage_words(stage: Stage) -> str:
    """Say who decides a stage, and what becomes of it where they do not."""
    who = f"{stage.quorum} of {_who(stage.approvers)}"
    if stage.end.expires_in is None:
        return who
    return f"{who} (within {stage.end.expires_in} seconds, or {_does(stage.end)})"


def _who(groups: Sequence[str]) -> str:
    return " or ".join(groups) or "whoever may decide the tool"


def _approvals(number: int) -> str:
    return f"{number} approval{'' if number == 1 else 's'}"


def _time(was: Verdict, now: Verdict) -> Iterator[Difference]:
    before, after = was.end, now.end
    if before.expires_in != after.expires_in:
        words = f"It waits {_at_most(after)}, where it waited {_at_most(before)}."
        yield Difference("expires_in", words, after.seconds > before.seconds)
    if _is_other(before, after):
        words = f"Where nobody answers {_does(after)}, where {_does(before)} before."
        yield Difference("on_expiry", words, _is_milder(before, after))
    if before.warn_before != after.warn_before:
        words = f"People are reminded {_warned(after)}, where they were {_warned(before)}."
        yield Difference("warn_before", words, looser=False)
    if before.extendable_to != after.extendable_to:
        words = f"People may extend it {_up_to(after)}, where they could {_up_to(before)}."
        yield Difference("extendable_to", words, _is_longer(before, after))
    if was.cool_down != now.cool_down:
        words = f"An approval takes effect {_after(now)}, where it did {_after(was)}."
        yield Difference("cool_down", words, now.cool_down < was.cool_down)


def _ends_looser(was: End, now: End) -> bool:
    """Say whether something waits by the end that did not, or ends milder."""
    other = _is_other(was, now) and _is_milder(was, now)
    return other or now.seconds > was.seconds or _is_longer(was, now)


def _is_other(was: End, now: End) -> bool:
    """Say whether two ends do something else; one that never comes does nothing."""
    both = was.expires_in is not None and now.expires_in is not None
    return both and (was.on_expiry, was.escalate_to) != (now.on_expiry, now.escalate_to)


def _is_milder(was: End, now: End) -> bool:
    """Say whether the end does less; to ask others than before is less."""
    before, after = (ENDS.index(one.on_expiry or "reject") for one in (was, now))
    return after < before or (before == after == 0)


def _is_longer(was: End, now: End) -> bool:
    return (now.extendable_to or 0) > (was.extendable_to or 0)


def _at_most(end: End) -> str:
    return "without an end" if end.expires_in is None else f"{end.expires_in} seconds at most"


def _does(end: End) -> str:
    if end.on_expiry == "escalate":
        return f"{end.escalate_to} are asked"
    return _DOES[end.on_expiry or "reject"]


def _warned(end: End) -> str:
    if end.warn_before is None:
        return "after half of the time" if end.expires_in is not None else "of no end"
    return f"{end.warn_before} seconds before the end"


def _up_to(end: End) -> str:
    return f"up to {end.extendable_to} seconds" if end.extendable_to else "not at all"


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
