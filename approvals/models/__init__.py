"""Who may let a run go on: declared policy, gates, and what people said of them."""

from approvals.models.authority import (
    GroupPermission,
    Substitution,
    TenantPermission,
    ToolPermission,
)
from approvals.models.gates import (
    FINAL_GATES,
    FITS_BULK,
    GATE_MOVES,
    OPEN_GATES,
    Assignment,
    Ceremony,
    Decision,
    Gate,
    GateState,
    Pattern,
    Verdict,
    View,
)
from approvals.models.notices import NoticePreference
from approvals.models.policies import PolicyStatus, PolicyVersion

__all__ = [
    "FINAL_GATES",
    "FITS_BULK",
    "GATE_MOVES",
    "OPEN_GATES",
    "Assignment",
    "Ceremony",
    "Decision",
    "Gate",
    "GateState",
    "GroupPermission",
    "NoticePreference",
    "Pattern",
    "PolicyStatus",
    "PolicyVersion",
    "Substitution",
    "TenantPermission",
    "ToolPermission",
    "Verdict",
    "View",
]
