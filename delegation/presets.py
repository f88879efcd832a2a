"""How carefully it is learned: what each risk needs, and the two settings a tenant chooses from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Final

from delegation.records import Risk


@dataclass(frozen=True, slots=True)
class Familiar:
    """How often a value (`m`) and a pair of values (`m2`) must have been approved, and that an
    amount is within the `k`-th largest approved."""

    m: int
    m2: int
    k: int


@dataclass(frozen=True, slots=True)
class Stage:
    """While refusals are shown to be rarer than `alpha`, this share of calls is asked all the same."""

    alpha: float
    check: float


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that is chosen, for one tenant."""

    name: str
    familiar: Mapping[Risk, Familiar]
    stages: Mapping[Risk, tuple[Stage, ...]]  # from the largest alpha down
    own_proof: int  # clean familiar answers that a tool needs besides
    delta: float = 0.05
    window: int = 25  # familiar answers of a tool in which two refusals are too many
    strikes: int = 2
    quarantine: int = 20  # clean answers that end one
    fade_days: int = 30
    strike_days: int = 2  # in which a refusal of something familiar has half asked
    seconds: float = 1.5  # that an approval takes of somebody who looked
    unopened_seconds: float = 4.0  # the same for low risk without the details opened
    free_calls: int = 3  # a day
    kept: int = 40  # amounts

    @property
    def digest(self) -> str:
        """What tells these settings from others, as `sha256:<hex>`."""
        said = json.dumps(asdict(self), sort_keys=True)
        return "sha256:" + hashlib.sha256(said.encode()).hexdigest()


CAUTIOUS: Final = Settings(
    name="cautious",
    familiar={"low": Familiar(2, 1, 1), "medium": Familiar(3, 1, 2)},
    stages={
        "low": (Stage(0.20, 0.25), Stage(0.10, 0.12), Stage(0.05, 0.06)),
        "medium": (Stage(0.20, 0.40), Stage(0.10, 0.25), Stage(0.05, 0.12), Stage(0.02, 0.06)),
    },
    own_proof=6,
)
EAGER: Final = Settings(
    name="eager",
    familiar={"low": Familiar(2, 1, 1), "medium": Familiar(2, 1, 1)},
    stages={
        "low": (Stage(0.30, 0.15), Stage(0.10, 0.10), Stage(0.05, 0.05)),
        "medium": (Stage(0.30, 0.20), Stage(0.10, 0.12), Stage(0.05, 0.06)),
    },
    own_proof=2,
    quarantine=10,
)
