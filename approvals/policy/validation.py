"""Whether a policy document can be published: every member known, every rule meaning something.

What this version does not do is refused, never ignored: a policy that reads stricter than it acts
would be worse than none.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final

from approvals.policy import milestones
from approvals.policy.conditions import condition_faults
from approvals.policy.judging import DEFAULT
from approvals.policy.limits import limit_faults
from approvals.policy.people import (
    MAX_QUORUM,
    MAX_STAGES,
    Fault,
    approver_faults,
    without_common_approvers,
)
from approvals.policy.reasons import reason_faults
from config.globs import glob_fault
from config.jsontext import pointer, value_faults
from tenants.zones import is_zone

Check = Callable[[Any], Iterator[Fault]]

MAX_RULES: Final = 500
MAX_SCORERS: Final = 100
MAX_ITEMS: Final = 100
MAX_TEXT: Final = 500
MAX_NAME: Final = 100
MAX_SECONDS: Final = 366 * 86_400

_HOST: Final = re.compile(r"(?:\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+):(\d{1,5})", re.ASCII)
_COST: Final = re.compile(r"\d{1,15}(\.\d{1,9})?", re.ASCII)
_TRIGGERS: Final = ("action", "risk", "confidence", "milestone")
_VERDICTS: Final = ("allow", "approve", "deny")
_OF_TRIGGER: Final = {"risk": "at_least", "confidence": "below", "milestone": "milestones"}
_OF_ASKING: Final = (
    "quorum",
    "approvers",
    "stages",
    "expires_in",
    "on_expiry",
    "escalate_to",
    "warn_before",
    "cool_down",
    "extendable_to",
)
_RULE_MEMBERS: Final = ("name", "trigger", "then", "tools", "condition", "reason")


def validate_policy(
    document: Any, groups: Mapping[str, Collection[str]] | None = None
) -> list[Fault]:
    """Return what is wrong with a policy document, each with its pointer; none: publish it.

    `groups` are the tenant's groups with their members; where they are given, a rule's approvers
    are groups that exist and hold as many people as the rule's quorum.
    """
    if found := value_faults(document):
        return found
    return list(_document_faults(document, groups))


def budget_faults(value: Any) -> list[Fault]:
    """Return what is wrong with the limits of a budget, each with its pointer."""
    return [*_object(value, _BUDGETS)]


def _document_faults(
    document: Any, groups: Mapping[str, Collection[str]] | None
) -> Iterator[Fault]:
    checks: dict[str, Check] = {
        "allowed_hosts": lambda hosts: _list(hosts, _host, "allowed hosts", at_least=0),
        "rules": lambda rules: _rules(rules, groups),
        "scorers": _scorers,
        "reasons": reason_faults,
        "milestones": milestones.faults,
        "time_zone": _time_zone,
        "budgets": lambda budgets: _object(budgets, _BUDGETS),
        "daily_budget": lambda budget: _object(budget, _BUDGETS),
        "delegation": _delegation,
    }
    yield from _object(document, checks)
    if isinstance(document, dict):
        yield from milestones.unheard(document)


def _object(value: Any, checks: Mapping[str, Check]) -> Iterator[Fault]:
    if not isinstance(value, dict):
        yield "", "An object stands here."
        return
    for name, member in value.items():
        if name in checks:
            yield from _below(checks[name](member), name)
        else:
            yield pointer(name), f"No such member; there are {', '.join(checks)}."


def _list(value: Any, check: Check, what: str, *, at_least: int = 1) -> Iterator[Fault]:
    if not isinstance(value, list) or not at_least <= len(value) <= MAX_ITEMS:
        yield "", f"A list of {at_least} to {MAX_ITEMS} {what} stands here."
        return
    for index, item in enumerate(value):
        yield from _below(check(item), index)
        if item in value[:index]:
            yield pointer(index), "It stands here twice."


def _below(found: Iterator[Fault], name: str | int) -> Iterator[Fault]:
    return ((pointer(name) + place, detail) for place, detail in found)


# Rules


def _rules(rules: Any, groups: Mapping[str, Collection[str]] | None) -> Iterator[Fault]:
    if not isinstance(rules, list) or len(rules) > MAX_RULES:
        yield "", f"A list of at most {MAX_RULES} rules stands here."
        return
    names: set[Any] = set()
    sound: list[tuple[int, dict[str, Any]]] = []
    for index, rule in enumerate(rules):
        found = list(_rule(rule, names, groups))
        yield from _below(iter(found), index)
        if not found:
            sound.append((index, rule))
    yield from without_common_approvers(sound)


def _rule(
    rule: Any, names: set[Any], groups: Mapping[str, Collection[str]] | None
) -> Iterator[Fault]:
    if not isinstance(rule, dict):
        yield "", "A rule is an object."
        return
    own = _own_member(rule.get("trigger"))
    yield from _members_of_rule(rule, own)
    yield from _name(rule.get("name"), names)
    yield from _one_of(rule.get("trigger"), _TRIGGERS, "trigger")
    yield from _one_of(rule.get("then"), _VERDICTS, "then")
    if rule.get("then") == "allow" and own:
        yield "/then", "What an agent says of itself never allows; ask or deny."
    for member, check in _CHECKS.items():
        if member in rule:
            yield from _below(check(rule[member]), member)
        if "stages" in rule and member in _OF_STAGE and member in rule:
            yield pointer(member), f"Each of the stages says its {member}."
    yield from _expiry(rule)
    yield from _ends_of_stages(rule)
    yield from approver_faults(rule, groups)


def _own_member(trigger: Any) -> str | None:
    return _OF_TRIGGER.get(trigger) if isinstance(trigger, str) else None


def _members_of_rule(rule: dict[str, Any], own: str | None) -> Iterator[Fault]:
    if own and own not in rule:
        yield pointer(own), f"A rule with the trigger {rule['trigger']} says {own}."
    for member in rule:
        if member in _OF_TRIGGER.values() and member != own:
            yield pointer(member), f"{member} belongs to another trigger."
        elif member in _OF_ASKING and rule.get("then") != "approve":
            yield pointer(member), f"{member} belongs to a rule that asks (then: approve)."
        elif member not in (*_RULE_MEMBERS, *_OF_ASKING, own):
            yield pointer(member), "A rule has no such member."


def _name(name: Any, names: set[Any], of: str = "rule") -> Iterator[Fault]:
    if not isinstance(name, str) or not 1 <= len(name) <= MAX_NAME or not name.isprintable():
        yield "/name", f"A {of} has a name of 1 to {MAX_NAME} visible characters."
    elif name == DEFAULT:
        yield "/name", f"{DEFAULT} names what holds where no rule matches."
    elif name in names:
        yield "/name", f"Another {of} has this name."
    else:
        names.add(name)


def _one_of(value: Any, known: tuple[str, ...], member: str) -> Iterator[Fault]:
    if value not in known:
        yield pointer(member), f"{member} is one of {', '.join(known)}."


def _glob(value: Any) -> Iterator[Fault]:
    if detail := glob_fault(value):
        yield "", detail


def _condition(value: Any) -> Iterator[Fault]:
    yield from (("", detail) for detail in condition_faults(value))


def _text(value: Any) -> Iterator[Fault]:
    if not isinstance(value, str) or not 1 <= len(value) <= MAX_TEXT:
        yield "", f"A text of 1 to {MAX_TEXT} characters stands here."


def _short_text(value: Any) -> Iterator[Fault]:
    if not isinstance(value, str) or not 1 <= len(value) <= MAX_NAME:
        yield "", f"A text of 1 to {MAX_NAME} characters stands here."


def _number(value: Any, least: float, most: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most


def _whole(value: Any, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _score(value: Any) -> Iterator[Fault]:
    if not _number(value, 0, 1):
        yield "", "A number from 0 to 1 stands here."


def _bound(value: Any) -> Iterator[Fault]:
    if not _number(value, 0, 1) or value == 0:
        yield "", "A number above 0 and up to 1 stands here; nothing is below 0."


def _quorum(value: Any) -> Iterator[Fault]:
    if not _whole(value, 1, MAX_QUORUM):
        yield "", f"A quorum is a whole number from 1 to {MAX_QUORUM}."


def _stages(value: Any) -> Iterator[Fault]:
    if not isinstance(value, list) or not 1 <= len(value) <= MAX_STAGES:
        yield "", f"A list of 1 to {MAX_STAGES} stages stands here."
        return
    for index, stage in enumerate(value):
        yield from _below(_object(stage, {**_OF_STAGE, **_OF_END}), index)
        if isinstance(stage, dict):
            yield from _below(_expiry(stage), index)


def _seconds(value: Any) -> Iterator[Fault]:
    if not _whole(value, 1, MAX_SECONDS):
        yield "", f"A whole number of seconds from 1 to {MAX_SECONDS} stands here."


def _on_expiry(value: Any) -> Iterator[Fault]:
    if value == "approve":
        yield "", "Nothing expires into approval."
    elif value not in ("reject", "cancel", "escalate"):
        yield "", "on_expiry is one of reject, cancel, escalate."


_OF_STAGE: Final[Mapping[str, Check]] = {
    "approvers": lambda names: _list(names, _short_text, "groups"),
    "quorum": _quorum,
}
_OF_END: Final[Mapping[str, Check]] = {
    "expires_in": _seconds,
    "on_expiry": _on_expiry,
    "escalate_to": _short_text,
    "warn_before": _seconds,
    "extendable_to": _seconds,
}
_CHECKS: Final[Mapping[str, Check]] = {
    "tools": lambda globs: _list(globs, _glob, "globs"),
    "condition": _condition,
    "reason": _text,
    "at_least": _score,
    "below": _bound,
    "milestones": lambda names: _list(names, _short_text, "milestones"),
    **_OF_STAGE,
    "stages": _stages,
    **_OF_END,
    "cool_down": _seconds,
}


def _ends_of_stages(rule: dict[str, Any]) -> Iterator[Fault]:
    """A stage that ends no sooner than the whole decision has no end of its own."""
    whole, stages = rule.get("expires_in"), rule.get("stages")
    for index, stage in enumerate(stages if isinstance(stages, list) else ()):
        own = stage.get("expires_in") if isinstance(stage, dict) else None
        if isinstance(own, int) and isinstance(whole, int) and own >= whole:
            place = pointer("stages", index, "expires_in")
            yield place, f"The whole decision ends sooner, after {whole} seconds."


def _expiry(rule: dict[str, Any]) -> Iterator[Fault]:
    if "on_expiry" in rule and "expires_in" not in rule:
        yield "/on_expiry", "on_expiry says what happens after expires_in, which is missing."
    if (rule.get("on_expiry") == "escalate") != ("escalate_to" in rule):
        missing = "on_expiry" if "escalate_to" in rule else "escalate_to"
        yield pointer(missing), "on_expiry: escalate and escalate_to, a group, stand together."
    warned, given = rule.get("warn_before"), rule.get("expires_in")
    if isinstance(warned, int) and not (isinstance(given, int) and warned < given):
        yield "/warn_before", "People are warned some time before expires_in is over."
    longest = rule.get("extendable_to")
    if isinstance(longest, int) and not (isinstance(given, int) and given < longest):
        yield "/extendable_to", "People may extend expires_in, to what is longer."


# What stands beside the rules


def _scorers(scorers: Any) -> Iterator[Fault]:
    if not isinstance(scorers, list) or len(scorers) > MAX_SCORERS:
        yield "", f"A list of at most {MAX_SCORERS} scorers stands here."
        return
    names: set[Any] = set()
    for index, scorer in enumerate(scorers):
        yield from _below(_scorer(scorer, names), index)


def _scorer(scorer: Any, names: set[Any]) -> Iterator[Fault]:
    if not isinstance(scorer, dict):
        yield "", "A scorer is an object."
        return
    yield from _name(scorer.get("name"), names, "scorer")
    yield from _object({name: scorer[name] for name in scorer if name != "name"}, _OF_SCORER)
    missing = [member for member in _OF_SCORER if member not in scorer]
    yield from ((pointer(member), f"A scorer says its {member}.") for member in missing)


_OF_SCORER: Final[Mapping[str, Check]] = {
    "tools": lambda globs: _list(globs, _glob, "globs"),
    "score": lambda value: (("", detail) for detail in condition_faults(value, "score")),
}


def _time_zone(value: Any) -> Iterator[Fault]:
    if not isinstance(value, str) or not is_zone(value):
        yield "", "A time zone is named after a place (Europe/Berlin), or UTC."


def _host(value: Any) -> Iterator[Fault]:
    form = _HOST.fullmatch(value) if isinstance(value, str) else None
    if form is None or not 1 <= int(form[1]) <= 65_535:
        yield "", "An allowed host is written host:port."


def _count(value: Any) -> Iterator[Fault]:
    if not _whole(value, 0, 2**53 - 1):
        yield "", "A whole number from 0 stands here."


def _duration(value: Any) -> Iterator[Fault]:
    if not _number(value, 0, 2**53 - 1):
        yield "", "A number of seconds from 0 stands here."


def _cost(value: Any) -> Iterator[Fault]:
    if not isinstance(value, str) or _COST.fullmatch(value) is None:
        yield "", 'A cost is a decimal number as text: "50.00".'


# What need not be asked any more


def _delegation(value: Any) -> Iterator[Fault]:
    yield from _object(value, _OF_DELEGATION)
    if isinstance(value, dict) and "mode" in value:
        for risk in ("low", "medium"):
            if risk in value:
                yield pointer(risk), "mode says it of every risk; say low and medium, or mode."


def _mode(value: Any) -> Iterator[Fault]:
    if value not in ("off", "suggest", "automatic"):
        yield "", "A mode is one of off, suggest, automatic."


def _preset(value: Any) -> Iterator[Fault]:
    if value not in ("cautious", "eager"):
        yield "", "preset is one of cautious, eager."


def _never(value: Any) -> Iterator[Fault]:
    checks: Mapping[str, Check] = {"tools": _CHECKS["tools"], "condition": _limit}
    yield from _object(value, checks)
    if isinstance(value, dict) and "tools" not in value:
        yield "/tools", "What is never delegated names its tools."


def _limit(value: Any) -> Iterator[Fault]:
    yield from (("", detail) for detail in limit_faults(value))


_OF_DELEGATION: Final[Mapping[str, Check]] = {
    "mode": _mode,
    "low": _mode,
    "medium": _mode,
    "preset": _preset,
    "never": lambda value: _list(value, _never, "entries"),
}


_BUDGETS: Final[Mapping[str, Check]] = {
    "steps": _count,
    "cost": _cost,
    "seconds": _duration,
    "tokens": _count,
}
