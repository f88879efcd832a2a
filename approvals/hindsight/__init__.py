"""What became of the gates that people were asked about: read for people, and acted on by nobody."""

from approvals.hindsight.calibration import Band, Calibration, read_calibration
from approvals.hindsight.gates import LOOKED_BACK, Counts, Window
from approvals.hindsight.overgating import LEAST_DECIDED, Overgating, RuleAsked, read_overgating
from approvals.hindsight.proportions import Proportion, wilson

__all__ = [
    "LEAST_DECIDED",
    "LOOKED_BACK",
    "Band",
    "Calibration",
    "Counts",
    "Overgating",
    "Proportion",
    "RuleAsked",
    "Window",
    "read_calibration",
    "read_overgating",
    "wilson",
]
