"""How the service's score and what agents state compare with what people then decided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from approvals.hindsight.gates import COUNTED, Counts, Window, ask
from approvals.hindsight.proportions import Proportion, wilson

BANDS: Final = 10
BY_BAND: Final = f"""
SELECT looked.found, banded.* FROM (SELECT count(*) AS found FROM looked_at) looked
LEFT JOIN (
    SELECT said.what,
        CASE WHEN said.value IS NOT NULL
            THEN least(floor(said.value * {BANDS}), {BANDS - 1})::integer END AS band,
        avg(said.value)::float8, {COUNTED}
    FROM judged
    CROSS JOIN LATERAL (
        VALUES ('score', score), ('risk_score', risk_score), ('confidence', confidence))
        said (what, value)
    WHERE outcome IS NOT NULL GROUP BY 1, 2
) banded ON true
"""  # noqa: S608 - words of ours


@dataclass(frozen=True, slots=True)
class Band:
    """The gates whose calls were scored, or stated to be, from ``low`` on and below the next band.

    The last holds 1 too; that with ``low`` None those of which nothing was said. ``stated`` is the
    mean of what was.
    """

    low: float | None
    high: float | None
    counts: Counts = field(default_factory=Counts)
    stated: float | None = None

    @property
    def refusal(self) -> Proportion | None:
        return wilson(self.counts.refused, self.counts.decided)

    @property
    def approved_as_proposed(self) -> float | None:
        return self.counts.as_proposed / self.counts.decided if self.counts.decided else None

    @property
    def gap(self) -> float | None:
        """Return by how much more was stated than was approved as it was proposed."""
        if self.stated is None or self.approved_as_proposed is None:
            return None
        return self.stated - self.approved_as_proposed


@dataclass(frozen=True, slots=True)
class Calibration:
    """What was said against what was decided, by bands of a tenth and one of nothing said.

    ``score`` is the service's own, of the call as it was proposed; the others are the agent's words.
    """

    window: Window
    considered: int
    more: bool
    score: Sequence[Band]
    risk_score: Sequence[Band]
    confidence: Sequence[Band]

    @property
    def decided(self) -> int:
        return sum(band.counts.decided for band in self.confidence)

    @property
    def error(self) -> float | None:
        """Return the mean distance of stated confidence from what happened; None: none was stated.

        The expected calibration error: each band's gap, weighed by its gates (Guo et al., On
        Calibration of Modern Neural Networks, 2017).
        """
        gaps = [(abs(band.gap), band.counts.decided) for band in self.confidence if band.gap]
        among = sum(band.counts.decided for band in self.confidence if band.stated is not None)
        return sum(gap * weight for gap, weight in gaps) / among if among else None


def read_calibration(window: Window) -> Calibration:
    """Return how people decided, by band; one statement, of a bounded number of gates."""
    considered, more, rows = ask(window, BY_BAND)
    found = {(what, band): (stated, Counts(*counts)) for what, band, stated, *counts in rows}

    def bands(what: str) -> list[Band]:
        made = []
        for number in (*range(BANDS), None):
            stated, counts = found.get((what, number), (None, Counts()))
            made.append(Band(*_edges(number), counts, stated))
        return made

    said = (bands(what) for what in ("score", "risk_score", "confidence"))
    return Calibration(window, considered, more, *said)


def _edges(number: int | None) -> tuple[float | None, float | None]:
    return (None, None) if number is None else (number / BANDS, (number + 1) / BANDS)
