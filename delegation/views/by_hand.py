"""A rule made by a person themself: a form of the tool's arguments, then the review of every rule."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from django.http import HttpResponse
from django.urls import reverse

from approvals.views.answers import refuse_unstorable
from approvals.views.decision import wrong_fields
from config.errors import InvalidBody, Problem
from delegation import beside
from delegation.calls import tool_of
from delegation.services import rules
from interrupts.models import ToolVersion
from tenants.models import Agent, Role
from tenants.views.page import PageView, see_other
from tenants.views.visits import Visit

AGENT: Final = "@agent"
MOST_AGENTS: Final = 200
_COUNT: Final = re.compile("[1-9][0-9]{0,5}|1000000")
_NO_TEXT: Final = ("integer", "boolean", "null")


@dataclass(frozen=True, slots=True)
class Asked:
    """One argument of a tool as the form asks about it: what it may be, by the role it has."""

    key: str
    name: str
    role: str  # enum | domain | path | number | id
    typed: str = ""


class ByHandView(PageView):
    """Chooses a tool and its bounds; what it makes is a suggestion, active once it is reviewed."""

    nav: ClassVar[str] = "delegation"

    def get(self, visit: Visit) -> HttpResponse:
        return _page(self, visit, visit.request.GET.get("tool", ""))

    def post(self, visit: Visit) -> HttpResponse:
        sent = visit.request.POST.dict()
        refuse_unstorable(sent)
        version = _version(sent.get("tool", ""))
        predicate = _predicate(version, sent)
        if "offer" in sent:
            rules.publish_template(visit.principal, version.tool.name, predicate)
            return see_other(f"{reverse('rule-templates')}?done=1")
        made = rules.propose_by_hand(visit.principal, version.tool.name, predicate)
        return see_other(f"{reverse('rule', args=[made.pk])}?done=made")

    def refused(self, visit: Visit, problem: Problem, **kwargs: Any) -> HttpResponse:
        if visit.request.method != "POST":
            return super().refused(visit, problem, **kwargs)
        return _page(self, visit, visit.request.POST.get("tool", ""), problem)


def _page(view: PageView, visit: Visit, tool: str, refusal: Problem | None = None) -> HttpResponse:
    found = {one.tool.name: one for one in beside.delegable_tools()}
    chosen = found.get(tool)
    sent = visit.request.POST.dict() if refusal is not None else {}
    context = {
        "tools": sorted(found),
        "chosen": chosen,
        "asked": _asked(chosen, sent) if chosen else (),
        "agents": [
            (f"agent-{one.pk}", one.name, refusal is None or f"agent-{one.pk}" in sent)
            for one in _agents()
        ],
        "is_admin": visit.role == Role.ADMIN,
        "sent": sent,
        "refusal": refusal,
        "wrong": wrong_fields(refusal),
    }
    status = refusal.status if refusal is not None else 200
    return view.page(visit, "delegation/by_hand.html", context, status=status)


def _agents() -> Sequence[Agent]:
    return list(Agent.objects.filter(active=True).order_by("name")[:MOST_AGENTS])


def _asked(version: ToolVersion, sent: Mapping[str, str]) -> list[Asked]:
    return [
        Asked(f"a{at}", name, role, sent.get(f"a{at}", ""))
        for at, (name, role) in enumerate(sorted(_roles(version).items()))
    ]


def _roles(version: ToolVersion) -> Mapping[str, str]:
    found = tool_of(version)
    return found.roles if found is not None else {}


def _version(tool: str) -> ToolVersion:
    """Return the version of a tool whose calls a rule may decide. Raises InvalidBody."""
    for one in beside.delegable_tools():
        if one.tool.name == tool:
            return one
    raise InvalidBody.at("/tool", "No rule decides calls of this tool.")


def _predicate(version: ToolVersion, sent: Mapping[str, str]) -> dict[str, Any]:
    """Return the rule that the form says. Raises InvalidBody where it names nothing."""
    agents = [one.name for one in _agents() if f"agent-{one.pk}" in sent]
    if not agents:
        raise InvalidBody.at("/agents", "Choose one at least.")
    asked: list[dict[str, Any]] = [{"f": AGENT, "in": agents}]
    asked += [_condition(one, version) for one in _asked(version, sent)]
    per_day = _per_day(sent)
    return {"all": asked, "except_pairs": [], "ceilings": [], "per_day": per_day}


def _condition(one: Asked, version: ToolVersion) -> dict[str, Any]:
    if one.role == "id":
        return {"f": one.name, "any": True}
    if not one.typed.strip():
        raise InvalidBody.at(f"/{one.key}", "Say what it may be.")
    if one.role == "number":
        return {"f": one.name, "le": one.typed.strip()}
    lines = dict.fromkeys(line.strip() for line in one.typed.splitlines() if line.strip())
    return {"f": one.name, "in": [_value(line, one.name, version) for line in lines]}


def _value(line: str, name: str, version: ToolVersion) -> str:
    """Return a value as rules write it: a text as it stands, all else as its JSON after a ``=``."""
    declared: Any = version.arguments
    for part in name.split("."):
        inner = declared.get("properties", {}) if isinstance(declared, dict) else {}
        declared = inner.get(part, {})
    is_other = isinstance(declared, dict) and declared.get("type") in _NO_TEXT
    return f"={line}" if is_other else line


def _per_day(sent: Mapping[str, str]) -> dict[str, Any]:
    calls = sent.get("calls", "").strip()
    if not _COUNT.fullmatch(calls):
        raise InvalidBody.at("/calls", "Say how many a day at most: a whole number from 1.")
    return {"calls": int(calls)}
