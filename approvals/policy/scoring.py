"""What a policy's scorers say of a call: how risky it is, from 0 to 1, whatever the agent says."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from approvals.policy.conditions import Condition, ConditionError, Facts

HIGHEST: Final = 1.0


@dataclass(frozen=True, slots=True)
class Scorer:
    """One scorer of a policy, its expression compiled."""

    name: str
    tools: tuple[str, ...]
    expression: Condition

    def score(self, facts: Facts) -> "Score":
        """Return what it says of the call; what has no answer from 0 to 1 counts as 1."""
        try:
            return Score(self.expression.score(facts), f"So says the scorer {self.name}.")
        except ConditionError as why:
            told = f"The scorer {self.name} gave no score ({why}), which counts as {HIGHEST}."
            return Score(HIGHEST, told)


class Score(NamedTuple):
    """A score from 0 to 1, and where it comes from."""

    value: float
    explanation: str


def score(scorers: Iterable[Scorer], facts: Facts) -> Score | None:
    """Return the largest that they say, of equal ones the first by name; None: there are none."""
    said = sorted((one.name, one.score(facts)) for one in scorers)
    return max((one for _, one in said), key=lambda one: one.value, default=None)


def parse_scorer(scorer: Mapping[str, Any]) -> Scorer:
    """Read one validated scorer."""
    return Scorer(scorer["name"], tuple(scorer["tools"]), Condition(scorer["score"]))
