"""Faults that can be ordered: the next calls of a tool go wrong in a way that is named."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

MODES: Final[Mapping[str, str]] = {
    "lost_answer": "is performed, and the answer lost",
    "lost_request": "is lost, and nothing performed",
    "refuse": "is refused",
    "busy": "is told to come back later",
    "error": "is performed, and answered with an error",
}


@dataclass(slots=True)
class Order:
    """What goes wrong: `times` calls of the tool whose arguments hold all of `match`.

    `lookups` says whether such a call can be asked about afterwards, or only seen in the ledger.
    """

    tool: str
    mode: str
    match: dict[str, Any] = field(default_factory=dict)
    times: int = 1
    lookups: bool = True

    def __str__(self) -> str:
        calls = "The next call" if self.times == 1 else f"Each of the next {self.times} calls"
        which = "".join(f", {name} {value}" for name, value in self.match.items())
        return f"{calls} of {self.tool}{which}: {MODES[self.mode]}."


class InvalidOrder(ValueError):
    """The order names a fault that there is not, or a member that it has not."""


class Faults:
    """The orders in force, and the keys that can't be asked about."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._orders: list[Order] = []
        self._silent: set[str] = set()

    def order(self, wanted: Mapping[str, Any]) -> Order:
        """Take an order, in place of one for the same calls."""
        try:
            order = Order(**wanted)
        except TypeError as fault:
            raise InvalidOrder(str(fault)) from fault
        if order.mode not in MODES:
            raise InvalidOrder(f"the modes are {', '.join(MODES)}")
        if not isinstance(order.times, int) or not isinstance(order.match, dict):
            raise InvalidOrder("times is a number, and match an object of arguments")
        with self._lock:
            same = (order.tool, order.match)
            self._orders = [one for one in self._orders if (one.tool, one.match) != same]
            self._orders.append(order)
        return order

    def take(self, tool: str, key: str | None, arguments: Mapping[str, Any]) -> str | None:
        """Return the fault that this call meets, which uses one of its times up."""
        with self._lock:
            for order in self._orders:
                if order.tool == tool and order.match.items() <= arguments.items():
                    order.times -= 1
                    self._orders = [one for one in self._orders if one.times > 0]
                    if key is not None and not order.lookups:
                        self._silent.add(key)
                    return order.mode
        return None

    def can_be_asked_about(self, key: str) -> bool:
        return key not in self._silent

    def listed(self) -> list[dict[str, Any]]:
        return [asdict(one) for one in self._orders]

    def __str__(self) -> str:
        return "\n".join(map(str, self._orders)) or "None."
