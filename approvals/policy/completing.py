"""What a policy says of a run that completes: its rules about milestones before completion."""

from dataclasses import replace

from approvals.policy.conditions import Facts
from approvals.policy.judging import DEFAULT, CompiledPolicy, Subject, Verdict, run_of, strict
from approvals.policy.milestones import Point
from config.globs import matches_any


def ends(policy: CompiledPolicy, workflow: str) -> tuple[Point, ...]:
    """Return the milestones before a run of the workflow completes."""
    declared = (one for one in policy.declared if one.before_complete)
    points = {one.point for one in declared if matches_any([one.workflow], workflow)}
    return tuple(sorted(points))


def judge_completion(policy: CompiledPolicy, subject: Subject) -> Verdict:
    """Say what the strictest rule about a milestone that is reached says; none: it is allowed.

    Of the subject count agent, workflow, depth and what is known around; there is no call.
    """
    reached = ends(policy, subject.workflow)
    if not reached:
        return Verdict("allow", DEFAULT)
    subject = replace(subject, reached=reached)
    facts = Facts(agent={"name": subject.agent}, run=run_of(subject), **subject.known)
    rules = [rule for rule in policy.rules if rule.trigger == "milestone"]
    deny, approve = ([rule for rule in rules if rule.then == then] for then in ("deny", "approve"))
    return strict(deny, approve, subject, facts) or Verdict("allow", DEFAULT)
