"""When what is asked ends unanswered, and what that does: never an approval."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

ENDS: Final = ("escalate", "reject", "cancel")  # what expiry does, the strictest last
_NEVER: Final = float("inf")


class End(NamedTuple):
    """The end of what is asked, in seconds from when it is; ``expires_in`` None: it has none.

    ``warn_before`` is before the end, ``extendable_to`` from when it is asked, as ``expires_in``.
    """

    expires_in: int | None = None
    on_expiry: str | None = None
    escalate_to: str | None = None
    warn_before: int | None = None
    extendable_to: int | None = None

    @property
    def seconds(self) -> float:
        return _NEVER if self.expires_in is None else self.expires_in

    def document(self) -> dict[str, Any]:
        return {name: said for name, said in self._asdict().items() if said is not None}


NEVER: Final = End()


def parse_end(said: Mapping[str, Any]) -> End:
    """Read the end of a validated rule, or of one of its stages."""
    found = End(**{name: said[name] for name in End._fields if name in said})
    if found.expires_in is None or found.on_expiry is not None:
        return found
    return found._replace(on_expiry="reject")


def joined_end(all_of: Iterable[End]) -> End:
    """Return the end that meets each: the shortest, and of the same time the strictest.

    People are warned as early as any says, and extend it as far as each that ends it allows.
    """
    ends = list(all_of)
    soonest = min((one.seconds for one in ends), default=_NEVER)
    warned = [one.warn_before for one in ends if one.warn_before is not None]
    warn_before = max((before for before in warned if before < soonest), default=None)
    if soonest == _NEVER:
        return End(warn_before=warn_before)
    does = strictest((one.on_expiry, one.escalate_to) for one in ends if one.seconds == soonest)
    return End(int(soonest), *does, warn_before, _extendable_to(ends, soonest))


def _extendable_to(ends: Iterable[End], expires_in: float) -> int | None:
    """Return how long people may make it at most: as long as each that ends it allows."""
    said = [one.extendable_to or one.expires_in for one in ends]
    longest = min((end for end in said if end is not None), default=0)
    return longest if longest > expires_in else None


def strictest(ends: Iterable[tuple[str | None, str | None]]) -> tuple[str, str | None]:
    """Say what expiry does: cancel over reject over asking others, who must be the same ones."""
    all_of = set(ends)
    if any(then == "cancel" for then, _ in all_of):
        return "cancel", None
    others = {to for then, to in all_of if then == "escalate"}
    if len(all_of) == len(others) == 1:
        return "escalate", others.pop()
    return "reject", None
