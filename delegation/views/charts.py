"""The chart of what asked a person and what ran without: numbers in, places of rectangles out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final

from delegation.figures import DayCount

WIDTH: Final = 360
HEIGHT: Final = 130
_LEFT: Final = 28
_TOP: Final = 8
_BOTTOM: Final = 20
_WEEK: Final = 7


@dataclass(frozen=True, slots=True)
class Bar:
    """One day: where its two rectangles stand, what ran on top of what asked."""

    x: str
    width: str
    asked_y: str
    asked_height: str
    ran_y: str
    ran_height: str


@dataclass(frozen=True, slots=True)
class Chart:
    """The bars with their axis, and the same in figures."""

    bars: Sequence[Bar]
    days: Sequence[DayCount]
    top: int  # what the highest bar's height stands for
    first: date
    last: date
    asked: int
    ran: int
    asked_of_week: int
    ran_of_week: int
    baseline: int = HEIGHT - _BOTTOM
    ceiling: int = _TOP
    left: int = _LEFT
    width: int = WIDTH
    height: int = HEIGHT

    @property
    def share(self) -> int:
        """Of all that came up, how much ran without asking, in hundredths."""
        return round(100 * self.ran / max(self.asked + self.ran, 1))


def chart(days: Sequence[DayCount]) -> Chart | None:
    """Draw the days, the oldest first; None where none of them has anything to show."""
    top = max((one.asked + one.ran for one in days), default=0)
    if not top:
        return None
    slot = (WIDTH - _LEFT) / len(days)
    week = days[-_WEEK:]
    return Chart(
        bars=[_bar(one, _LEFT + index * slot, slot, top) for index, one in enumerate(days)],
        days=days,
        top=top,
        first=days[0].day,
        last=days[-1].day,
        asked=sum(one.asked for one in days),
        ran=sum(one.ran for one in days),
        asked_of_week=sum(one.asked for one in week),
        ran_of_week=sum(one.ran for one in week),
    )


def _bar(one: DayCount, left: float, slot: float, top: int) -> Bar:
    scale = (HEIGHT - _TOP - _BOTTOM) / top
    asked, ran = one.asked * scale, one.ran * scale
    floor = HEIGHT - _BOTTOM
    return Bar(
        x=f"{left + slot * 0.15:.1f}",
        width=f"{slot * 0.7:.1f}",
        asked_y=f"{floor - asked:.1f}",
        asked_height=f"{asked:.1f}",
        ran_y=f"{floor - asked - ran:.1f}",
        ran_height=f"{ran:.1f}",
    )
