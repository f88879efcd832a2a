"""What a policy says of a run that completes: its rules about milestones before completion."""

from dataclasses import replace

from approvals.policy.conditions import Facts
from approvals.policy.judging import DEFAULT, CompiledPolicy, Subject, Verdict, run_of, strict
from config.globs import matches_any


def judge_completion(policy: CompiledPolicy, subject: Subject) -> Verdict:
    """Say what the strictest rule about a milestone that is reached says; none: it is allowed.

    Of the subject count agent, workflow, depth and what is known around; there is no call.
    """
    ends = {
        one.point
        for one in policy.declared
        if one.before_complete and matches_any([one.workflow], subject.workflow)
    }
    if not ends:
        return Verdict("allow", DEFAULT)
    subject = replace(subject, reached=tuple(sorted(ends)))
    facts = Facts(agent={"name": subject.agent}, run=run_of(subject), **subject.known)
    rules = [rule for rule in policy.rules if rule.trigger == "milestone"]
    deny, approve = ([rule for rule in rules if rule.then == then] for then in ("deny", "approve"))
    return strict(deny, approve, subject, facts) or Verdict("allow", DEFAULT)
