"""How sure it is that a person refuses what their rules cover less often than alpha.

Among covered calls that the person answered, X is 1 where they refused. Against "refusals come at a
rate of alpha or more" stands the wealth of bets on the contrary,

    E(alpha) = sum over k of w_k * product over answers of (1 + l_k * q/p * (alpha - X)),
    l_k = s_k / (1 - alpha),

where p is the probability with which this call was asked and q that with which any covered call
of the time was asked at least; q may depend on the past only, p on the call as well. Given the
past, a call is asked and answered X = 1 with probability p * mu, so each factor has a mean of
1 + l_k * q * (alpha - mu), and E has a mean of at most 1 at every time at which the q-weighted mean
of mu is alpha or more: P(E >= 1/d at any such time) <= d (Ville 1939; Waudby-Smith and Ramdas,
arXiv 2010.09686). Mixtures keep it, looking after each answer keeps it, and rules may change as
they like as long as they use the past only. It is about the person's answers, not about the truth.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from delegation.presets import Stage

MIXTURE: Final = ((0.6, 1.0), (0.2, 0.5), (0.2, 0.2))  # (w, s)
HOPELESS_ANSWERS: Final = 40
HOPELESS: Final = 0.05  # of what E begins with
MOST_AHEAD: Final = 10_000


def bet(size: float, alpha: float, refused: int, weight: float = 1.0) -> float:
    """Return the factor of one answer; `size` is s_k, `weight` q/p."""
    return 1 + size / (1 - alpha) * weight * (alpha - refused)


@dataclass(slots=True)
class Proof:
    """The answers to covered calls since the proof was begun, for the `tries`-th time anew.

    `weighed` holds clean answers and refusals by their weight q/p: the wealth of all bets follows
    from the counts alone.
    """

    alphas: tuple[float, ...]
    tries: int = 0
    weighed: dict[float, tuple[int, int]] = field(default_factory=dict)

    @property
    def answers(self) -> int:
        return sum(clean + refused for clean, refused in self.weighed.values())

    @property
    def refused(self) -> int:
        return sum(refused for _, refused in self.weighed.values())

    def count(self, *, refused: bool, weight: float = 1.0) -> None:
        """Take one answer into account; a proof without hope is begun anew, at a higher price."""
        clean, others = self.weighed.get(weight, (0, 0))
        self.weighed[weight] = (clean + (not refused), others + refused)
        if refused and self.answers >= HOPELESS_ANSWERS and self.wealth(0) < HOPELESS:
            self.tries += 1
            self.weighed = {}

    def wealth(self, stage: int, ahead: int = 0) -> float:
        """Return E for the stage's alpha, or what it were with so many clean answers more."""
        alpha, total = self.alphas[stage], 0.0
        for share, size in MIXTURE:
            log = ahead * math.log(bet(size, alpha, 0))
            for weight, (clean, refused) in sorted(self.weighed.items()):
                log += clean * math.log(bet(size, alpha, 0, weight))
                log += refused * _log(bet(size, alpha, 1, weight)) if refused else 0.0
            total += share * math.exp(min(log, 700.0))
        return total

    def line(self, delta: float) -> float:
        """What the wealth must reach: two risks share delta, and so do all tries (their sum is 1)."""
        return 2 * (self.tries + 1) * (self.tries + 2) / delta

    def stage(self, stages: Sequence[Stage], delta: float) -> Stage | None:
        """Return the last stage that is shown, each one only after those before it; None: none."""
        line, reached = self.line(delta), None
        for at, one in enumerate(stages):
            if self.wealth(at) < line:
                break
            reached = one
        return reached

    def needed(self, delta: float) -> int:
        """Return how many answers the first stage takes, if from here on none is a refusal."""
        line, ahead = self.line(delta), 0
        while ahead < MOST_AHEAD and self.wealth(0, ahead) < line:
            ahead += 1
        return self.answers + ahead


def _log(factor: float) -> float:
    return math.log(factor) if factor > 0 else -math.inf
