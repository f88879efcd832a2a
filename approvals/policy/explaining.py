"""What each rule of a policy says of one call: whether it counts, and why or why not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from approvals.policy.conditions import Condition, ConditionError, Facts
from approvals.policy.judging import (
    STRICTEST,
    Kind,
    Rule,
    Subject,
    facts_of,
    parse_rule,
    told_score,
    with_score,
)
from approvals.policy.scoring import parse_scorer, score
from config.globs import matches_any


@dataclass(frozen=True, slots=True)
class RuleSaid:
    """One rule's word; ``counts``: it is among those of which the strictest decides."""

    rule: str
    trigger: str
    then: Kind
    counts: bool
    explanation: str


def explain(document: Mapping[str, Any], subject: Subject) -> list[RuleSaid]:
    """Return what every rule of a validated policy says of the call.

    First those that count, deny before approve before allow; each part by name.
    """
    facts = facts_of(subject)
    scorers = map(parse_scorer, document.get("scorers") or ())
    of_tool = [one for one in scorers if matches_any(one.tools, subject.tool)]
    subject = with_score(subject, score(of_tool, facts))
    rules = [parse_rule(rule) for rule in document.get("rules") or ()]
    return sorted((_said(rule, subject, facts) for rule in rules), key=_place)


def _place(said: RuleSaid) -> tuple[bool, int, str]:
    return not said.counts, STRICTEST.index(said.then), said.rule


def _said(rule: Rule, subject: Subject, facts: Facts) -> RuleSaid:
    if rule.tools is not None and not matches_any(rule.tools, subject.tool):
        return _word(rule, f"It is for other tools: {_listed(rule.tools)}.")
    if (why := rule.explanation(subject, facts)) is not None:
        return _word(rule, why, counts=True)
    if (why := _untriggered(rule, subject)) is not None or rule.condition is None:
        return _word(rule, why or "")
    return _word(rule, _unmet(rule.condition, facts))


def _word(rule: Rule, explanation: str, *, counts: bool = False) -> RuleSaid:
    return RuleSaid(rule.name, rule.trigger, rule.then, counts, explanation)


def _untriggered(rule: Rule, subject: Subject) -> str | None:
    """Say why its trigger is not met; None where it is."""
    if rule.is_triggered(subject):
        return None
    if rule.trigger == "risk":
        if subject.risk_score is None:
            return "No scorer is for its tool, and the agent stated no risk score."
        return told_score(subject, f"is below {rule.at_least}.")
    if rule.trigger == "confidence":
        if subject.confidence is None:
            return "The agent stated no confidence."
        return f"The stated confidence {subject.confidence} is not below {rule.below}."
    return f"The step is none of its milestones: {_listed(rule.milestones)}."


def _unmet(condition: Condition, facts: Facts) -> str:
    try:
        condition.holds(facts)
    except ConditionError as why:
        told = f"could not be evaluated ({why}), so the rule allows nothing"
        return f"Its condition {told}: {condition.source}"
    return f"Its condition does not hold: {condition.source}"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))
