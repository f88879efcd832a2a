"""The policy of a tenant as pure functions: is it valid, and what does it say of one call."""

from approvals.policy.completing import judge_completion
from approvals.policy.explaining import RuleSaid, explain
from approvals.policy.judging import (
    DEFAULT,
    NOBODY,
    CompiledPolicy,
    Subject,
    Verdict,
    compile_policy,
)
from approvals.policy.validation import validate_policy

__all__ = [
    "DEFAULT",
    "NOBODY",
    "CompiledPolicy",
    "RuleSaid",
    "Subject",
    "Verdict",
    "compile_policy",
    "explain",
    "judge_completion",
    "validate_policy",
]
