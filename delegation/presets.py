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
    """What makes a call familiar, by risk.

    A value was approved `m` times since it was last blamed, and a pair of values `m2` times; an
    amount is within the `k`-th largest approved. `free` calls a day need no approval of their
    number.
    """

    m: int
    m2: int
    k: int
    free: int


@dataclass(frozen=True, slots=True)
class Stage:
    """While refusals are shown to be rarer than `alpha`, the share `check` is asked all the same."""

    alpha: float
    check: float


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that is chosen, for one tenant. Counts are of a person's answers."""

    name: str
    familiar: Mapping[Risk, Familiar]
    stages: Mapping[Risk, tuple[Stage, ...]]  # from the largest alpha down
    own_proof: int  # clean familiar answers that a tool needs besides
    quarantine: int  # clean answers that end one
    after_refusal: int  # clean answers of a tool after one refusal of something familiar
    after_surprise: int  # of each tool, where the person had hardly ever refused
    after_incident: int  # of each other tool
    every_pair: bool = False  # of the agent and what is known as well, not of arguments alone
    every_ceiling: bool = False  # by each value, not by those that a refusal showed to matter
    again: int = 1  # approvals more for a value, for each time it was blamed
    delta: float = 0.05
    surprise: float = 0.01  # the share of refusals below which another one is a surprise
    window: int = 25  # familiar answers of a tool in which `strikes` refusals are too many
    strikes: int = 2
    incident_days: int = 30  # in which each further incident doubles what is needed
    fade_days: int = 45
    seconds: float = 2.0  # that an approval takes of somebody who looked
    unopened_seconds: float = 4.0  # the same for low risk without the details opened
    kept: int = 40  # amounts

    @property
    def digest(self) -> str:
        """What tells these settings from others, as `sha256:<hex>`."""
        said = json.dumps(asdict(self), sort_keys=True)
        return "sha256:" + hashlib.sha256(said.encode()).hexdigest()


_CAUTIOUS_STAGES: Final = (
    Stage(0.30, 0.30),
    Stage(0.20, 0.22),
    Stage(0.10, 0.17),
    Stage(0.05, 0.12),
)
_EAGER_STAGES: Final = (Stage(0.70, 0.20), Stage(0.30, 0.20), Stage(0.10, 0.15), Stage(0.05, 0.12))

CAUTIOUS: Final = Settings(
    name="cautious",
    familiar={"low": Familiar(2, 1, 1, 5), "medium": Familiar(2, 1, 2, 3)},
    stages={"low": _CAUTIOUS_STAGES, "medium": _CAUTIOUS_STAGES},
    own_proof=3,
    quarantine=40,
    after_refusal=5,
    after_surprise=5,
    after_incident=10,
    every_pair=True,
    every_ceiling=True,
)
EAGER: Final = Settings(
    name="eager",
    familiar={"low": Familiar(1, 1, 1, 10), "medium": Familiar(1, 1, 1, 3)},
    stages={"low": _EAGER_STAGES, "medium": _EAGER_STAGES},
    own_proof=1,
    quarantine=20,
    after_refusal=3,
    after_surprise=5,
    after_incident=3,
)
