"""A share of few, told with how far off it may be."""

from __future__ import annotations

from math import sqrt
from typing import Final, NamedTuple

Z_95: Final = 1.959963984540054  # the normal distribution's 0.975 quantile


class Proportion(NamedTuple):
    """A share that was seen, and between which it lies with 95 % confidence: each from 0 to 1."""

    rate: float
    lower: float
    upper: float


def wilson(found: int, among: int) -> Proportion | None:
    """Return the share with its Wilson score interval; None of nothing.

    E. B. Wilson, Probable Inference, the Law of Succession, and Statistical Inference (JASA 22,
    1927). It holds for few and for none found, where the usual interval is empty.
    """
    if among == 0:
        return None
    rate, z_squared = found / among, Z_95**2
    middle = (found + z_squared / 2) / (among + z_squared)
    half = Z_95 * sqrt(rate * (1 - rate) * among + z_squared / 4) / (among + z_squared)
    # At either end the bound is exact, and not a rounding error beyond it.
    lower = 0.0 if found == 0 else middle - half
    upper = 1.0 if found == among else middle + half
    return Proportion(rate, lower, upper)
