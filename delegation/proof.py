"""How sure it is that a person refuses what their rules cover less often than alpha.

Among the calls that a rule covered and the person answered, X is 1 where they refused. Against
"refusals come at a rate of alpha or more" stands the wealth of bets on the contrary,

    E(n, r; alpha) = sum over k of w_k (1 + l_k alpha)^(n-r) (1 - l_k (1 - alpha))^r,
    l_k = s_k / (1 - alpha),

for n answers with r refusals. Where mu is the probability, given all the past, that the next one is
refused, its factor 1 + l (alpha - X) has the mean 1 + l (alpha - mu). So the product of
(1 + l (alpha - X)) / (1 + l (alpha - mu)) is a martingale with mean 1, and since the logarithm is
concave its denominator is at most 1 wherever the running mean of mu is alpha or more: the
probability that E ever reaches 1/d at such a time is at most d (Ville 1939; Waudby-Smith and
Ramdas, arXiv 2010.09686). Mixtures keep this, looking after each answer keeps it, and rules may
change as they like as long as they use the past only. It is about the person's answers, not about
the truth, and about the calls that were asked: those that ran are like them because the coin that
chooses between the two looks at no content.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from delegation.presets import Stage

MIXTURE: Final = ((0.6, 1.0), (0.2, 0.5), (0.2, 0.2))  # (w, s)
HOPELESS_ANSWERS: Final = 40
HOPELESS: Final = 0.05  # of what E begins with
MOST_NEEDED: Final = 10_000
TINY: Final = 1e-9
LARGEST_LOG: Final = 700.0


def bet(size: float, alpha: float, refused: int) -> float:
    """Return the factor of one answer for the bet s_k = `size`."""
    return 1 + size / (1 - alpha) * (alpha - refused)


def wealth(answers: int, refused: int, alpha: float) -> float:
    """Return E(n, r; alpha)."""
    total = 0.0
    for share, size in MIXTURE:
        log = (answers - refused) * math.log(bet(size, alpha, 0))
        if refused:
            lost = bet(size, alpha, 1)
            log += refused * math.log(lost) if lost > TINY else -math.inf
        total += share * math.exp(min(log, LARGEST_LOG))
    return total


@dataclass(slots=True)
class Proof:
    """The answers to covered calls since the proof was begun, for the `tries`-th time anew."""

    alphas: tuple[float, ...]
    tries: int = 0
    answers: int = 0
    refused: int = 0

    def count(self, *, refused: bool) -> None:
        """Take one answer into account; a proof without hope is begun anew, at a higher price."""
        self.answers += 1
        self.refused += refused
        if refused and self.answers >= HOPELESS_ANSWERS and self.wealth(0) < HOPELESS:
            self.tries += 1
            self.answers = self.refused = 0

    def wealth(self, stage: int) -> float:
        return wealth(self.answers, self.refused, self.alphas[stage])

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
        return bisect_left(
            range(MOST_NEEDED),
            self.line(delta),
            lo=self.answers,
            key=lambda answers: wealth(answers, self.refused, self.alphas[0]),
        )
