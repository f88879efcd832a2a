"""What people write in rules: read, bounded, and refused where it says what no rule can mean.

An agent is named with which one it is, since its name may be given to another: whoever writes a
rule may give the name alone, and it is the agent that has it now.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from config.errors import InvalidBody
from delegation import calls, canonical, predicates
from delegation.beside import modes_now
from delegation.canonical import Unclear
from delegation.errors import NotDelegable, NotNarrower
from delegation.modes import Mode
from delegation.predicates import Unreadable, Widens
from delegation.records import AGENT, Tool, agent_name, agent_value
from interrupts.models import Tool as Registered
from tenants.models import Agent

# What a rule by hand holds: all of it is read at each call that it may decide.
MOST_VALUES: Final = 1_000  # of one list, and as many pairs and ceilings
LONGEST: Final = 64 * 1024  # bytes of its canonical JSON


def learned_tool(name: str) -> Tool:
    """Return the tool's version in force as rules speak of it. Raises InvalidBody, NotDelegable."""
    tool = Registered.objects.select_related("current").filter(name=name, retired_at=None).first()
    if tool is None or tool.current is None:
        raise InvalidBody.at("/tool", f"there is no tool {name!r}")
    found = calls.tool_of(tool.current)
    if found is None or modes_now().of(found.risk) is Mode.OFF:
        raise NotDelegable.at("/tool", "Calls of this tool are never decided by a rule.")
    return found


def checked(tool: Tool, predicate: Mapping[str, Any]) -> dict[str, Any]:
    """Return the predicate where it speaks of the tool's calls, its agents by who they are.

    Raises InvalidBody, with a pointer.
    """
    given = dict(predicate)
    try:
        predicates.check(given)
    except Unreadable as fault:
        raise InvalidBody.at(f"/predicate{fault.at}", str(fault)) from None
    _check_bounds(given)
    named = {one["f"] for one in given["all"]} - {calls.WORKFLOW}
    if differing := sorted(named ^ calls.fields_of(tool)):
        raise InvalidBody.at("/predicate/all", f"`{differing[0]}` is missing, or no argument.")
    for at, one in enumerate(given["all"]):
        if calls.operator_of(tool, one["f"]) not in one:
            told = f"`{one['f']}` takes `{calls.operator_of(tool, one['f'])}`."
            raise InvalidBody.at(f"/predicate/all/{at}", told)
        if one["f"] != AGENT:
            _check_listed(tool, one, f"/predicate/all/{at}/in")
    _check_some(given["all"], "/predicate/all")
    return with_agents(given, "/predicate")


def narrowed(before: Mapping[str, Any], change: Mapping[str, Any], at: str) -> dict[str, Any]:
    """Return a predicate with these members. Raises NotNarrower, InvalidBody."""
    found = dict(before)
    for member, value in sorted(with_agents(change, at, _held(before)).items()):
        try:
            found = dict(predicates.narrow(found, {member: value}))
        except Unreadable as fault:
            raise InvalidBody.at(f"{at}{fault.at or '/' + member}", str(fault)) from None
        except Widens as fault:
            raise NotNarrower.at(f"{at}/{member}", str(fault)) from None
    _check_some(change.get("all", ()), f"{at}/all")
    return found


def _check_bounds(predicate: Mapping[str, Any]) -> None:
    parts = {f"all/{at}/in": one.get("in", ()) for at, one in enumerate(predicate["all"])}
    parts |= {name: predicate.get(name, ()) for name in ("except_pairs", "ceilings")}
    for name, held in parts.items():
        if len(held) > MOST_VALUES:
            raise InvalidBody.at(f"/predicate/{name}", f"Holds more than {MOST_VALUES:,}.")
    if len(predicates.canonical_json(predicate)) > LONGEST:
        raise InvalidBody.at("/predicate", f"Is longer than {LONGEST // 1024} KiB.")


def _check_some(conditions: Sequence[Mapping[str, Any]], at: str) -> None:
    for index, one in enumerate(conditions):
        if one.get("in") == []:
            told = "Leave one at least: without, it allows nothing."
            raise InvalidBody.at(f"{at}/{index}/in", told)


def _check_listed(tool: Tool, condition: Mapping[str, Any], at: str) -> None:
    name = condition["f"]
    for index, value in enumerate(condition.get("in", ())):
        try:
            canonical.check_listed(tool.roles.get(name), name, value)
        except Unclear as fault:
            raise InvalidBody.at(f"{at}/{index}", f"No call has it: {fault}.") from None


# Agents, by name or by who they are


@dataclass(frozen=True, slots=True)
class _Agents:
    """Who is meant by what a rule says of an agent."""

    by: Mapping[str, str] = field(default_factory=dict)

    def of(self, given: Any, at: str) -> str:
        found = self.by.get(given) if isinstance(given, str) else None
        if found is None:
            raise InvalidBody.at(at, "There is no such agent.")
        return found


def with_agents(members: Mapping[str, Any], at: str, held: Iterable[str] = ()) -> dict[str, Any]:
    """Return members of a predicate with each agent by who it is; those ``held`` stay as they are.

    Raises InvalidBody for one that there is not.
    """
    given = sorted({one for one in _given(members) if isinstance(one, str)} - set(held))
    agents = _Agents({**_known(given), **{one: one for one in held}})
    found = dict(members)
    if "all" in found:
        found["all"] = [
            _condition(one, agents, f"{at}/all/{index}") for index, one in enumerate(found["all"])
        ]
    if "except_pairs" in found:
        found["except_pairs"] = [
            [_half(half, agents, f"{at}/except_pairs/{index}") for half in pair]
            for index, pair in enumerate(found["except_pairs"])
        ]
    if "ceilings" in found:
        found["ceilings"] = [
            {**one, "when": _half(one["when"], agents, f"{at}/ceilings/{index}/when")}
            for index, one in enumerate(found["ceilings"])
        ]
    return found


def _condition(one: Mapping[str, Any], agents: _Agents, at: str) -> Mapping[str, Any]:
    if one.get("f") != AGENT or "in" not in one:
        return one
    found = (agents.of(value, f"{at}/in/{index}") for index, value in enumerate(one["in"]))
    return {**one, "in": list(dict.fromkeys(found))}


def _half(half: Sequence[Any], agents: _Agents, at: str) -> Sequence[Any]:
    return [AGENT, agents.of(half[1], at)] if half[0] == AGENT else half


def _given(members: Mapping[str, Any]) -> Iterator[Any]:
    """Yield what these members say of agents."""
    for one in members.get("all", ()):
        if one.get("f") == AGENT:
            yield from one.get("in", ())
    halves = [half for pair in members.get("except_pairs", ()) for half in pair]
    halves += [one["when"] for one in members.get("ceilings", ())]
    yield from (value for name, value in halves if name == AGENT)


def _held(predicate: Mapping[str, Any]) -> set[str]:
    return {one for one in _given(predicate) if isinstance(one, str)}


def _known(given: Sequence[str]) -> Mapping[str, str]:
    """Return by name, and by who they are, those of the agents that there are."""
    names = {*given, *map(agent_name, given)}
    agents = Agent.objects.filter(name__in=names, active=True)
    values = {one.name: agent_value(one.name, str(one.identity)) for one in agents}
    return {**values, **{one: one for one in values.values()}}
