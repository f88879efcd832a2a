"""The policy of a tenant as pure functions: is it valid, and what does it say of one call."""

from approvals.policy.completing import ends, judge_completion
from approvals.policy.denials import Denials
from approvals.policy.explaining import RuleSaid, explain
from approvals.policy.judging import (
    DEFAULT,
    CompiledPolicy,
    Subject,
    Verdict,
    compile_policy,
    facts_of,
)
from approvals.policy.reasons import offered, told
from approvals.policy.stages import NOBODY
from approvals.policy.validation import budget_faults, validate_policy

__all__ = [
    "DEFAULT",
    "NOBODY",
    "CompiledPolicy",
    "Denials",
    "RuleSaid",
    "Subject",
    "Verdict",
    "budget_faults",
    "compile_policy",
    "ends",
    "explain",
    "facts_of",
    "judge_completion",
    "offered",
    "told",
    "validate_policy",
]
