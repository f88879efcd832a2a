"""A call of a step in the learner's words, and what an event keeps of it.

Only what a tool's roles declare is looked at. Of an argument that is free (`id`) an event keeps that
it was there, of a path its folder and of a mail address its host: nothing else is ever compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from delegation import canonical, predicates
from delegation.canonical import Canonical, Unclear
from delegation.familiarity import text
from delegation.predicates import Predicate, Spent
from delegation.records import AGENT, Reason, Request, Role, Tool
from interrupts import paths
from interrupts.models import Effect, Risk, ToolVersion

WORKFLOW: Final = "@workflow"
LOST: Final = "not kept any more"  # why nothing is compared of what was erased before it was read
_FILE: Final = "_"


def tool_of(version: ToolVersion) -> Tool | None:
    """Return a tool's version as it is learned from; None: no rule ever decides calls of it.

    That is of high risk, irreversible, without roles, or with free text among its arguments. An
    argument that is sensitive counts as undeclared unless it is free.
    """
    if version.effect == Effect.IRREVERSIBLE or version.risk == Risk.HIGH:
        return None
    roles: dict[str, Role] = version.roles
    if not roles or "text" in roles.values():
        return None
    hidden = paths.parse_pointers(version.sensitive)
    kept = {
        name: role
        for name, role in roles.items()
        if role == "id" or not paths.overlaps(tuple(name.split(".")), hidden)
    }
    return Tool(str(version.tool_id), version.number, _risk(version.risk), kept)


def _risk(risk: str) -> Any:
    return str(risk)


@dataclass(frozen=True, slots=True)
class Asked:
    """Who asks for a call: what the service knows around its arguments."""

    id: str  # the step
    at: float  # seconds since 1970 (UTC)
    agent: str  # its name
    workflow: str
    identity: str  # which of those that have or had the name


def request_of(asked: Asked, tool: Tool, body: bytes) -> Request:
    """Return the call with these arguments, canonical JSON. Raises `Unclear`."""
    arguments, known = dict(_flat(canonical.read(body))), {"workflow": asked.workflow}
    return Request(asked.id, asked.at, asked.agent, tool, arguments, known, asked.identity)


def _flat(arguments: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the leaves by their dotted names, as roles name them; an object without members is one.

    It is not the same as its absence: to many tools it says "all" or "by default".
    """
    for name, value in arguments.items():
        if "." in name:
            raise Unclear("arguments", "a name that cannot be told from others")
        if isinstance(value, dict) and value:
            yield from _flat(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", value


def kept(request: Request, arguments: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the arguments as an event keeps them: of the same canonical form. Raises `Unclear`."""
    given = request.arguments if arguments is None else arguments
    found = canonical.canonical(request, given)
    return {name: _kept(name, role, given, found) for name, role in request.tool.roles.items()}


def _kept(name: str, role: Role, given: Mapping[str, Any], found: Canonical) -> Any:
    if role == "id":
        return canonical.FREE
    if role == "number":
        return format(found.amounts[name], "f")
    if role == "path":
        folder = found.values[name]
        return _FILE if folder == "." else f"{folder.rstrip('/')}/{_FILE}"
    return found.values[name] if role == "domain" else given[name]


def shape_of(tool: Tool, call: Canonical) -> str:
    """Return the digest of all that calls are compared by: what is free differs within it.

    The workflow is not of it: an agent names it as it likes, and it changes nothing of the call.
    """
    values = {name: value for name, value in call.values.items() if name != WORKFLOW}
    amounts = {name: text(amount) for name, amount in call.amounts.items()}
    return predicates.sha256(
        {"tool": [tool.id, tool.version], "values": values, "amounts": amounts}
    )


def same_of(shape: str, request: Request) -> str:
    """Return the digest of one call: of its shape, and of what is free or kept in part as given."""
    roles = request.tool.roles
    given = {name: one for name, one in request.arguments.items() if roles[name] != "number"}
    return predicates.sha256({"shape": shape, "given": given})


def refusal(predicate: Predicate, call: Canonical, spent: Spent | None = None) -> Reason | None:
    """Return why a rule does not allow a call; None: it does.

    A rule that names no workflow speaks of every one.
    """
    return predicates.refusal(predicate, _as_named(predicate, call), spent)


def _as_named(predicate: Predicate, call: Canonical) -> Canonical:
    if WORKFLOW not in call.values or any(one["f"] == WORKFLOW for one in predicate["all"]):
        return call
    values = {name: value for name, value in call.values.items() if name != WORKFLOW}
    return replace(call, values=values)


def fields_of(tool: Tool) -> frozenset[str]:
    """Return the fields that a rule for the tool has to name; the workflow it may."""
    return frozenset({AGENT, *tool.roles})


def operator_of(tool: Tool, field: str) -> str:
    """Return the one operator that a rule may use of a field, by the argument's role."""
    return {"number": "le", "id": "any"}.get(tool.roles.get(field, ""), "in")
