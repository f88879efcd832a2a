"""What learning says beside a gate, asked by approvals through `settings.LEARNED`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC
from typing import Any
from uuid import UUID

from approvals import deciders, judging
from approvals import selectors as approvals
from approvals.calls import call_of
from approvals.learned import Learned
from approvals.models import OPEN_GATES, Gate
from delegation import calls, selectors, words
from delegation.canonical import Canonical, Unclear, canonical
from delegation.models import (
    Delegation,
    DelegationDay,
    DelegationStatus,
    DelegationTemplate,
    PauseReason,
)
from delegation.modes import ORDINARY, Mode, Modes, modes
from interrupts import catalogue, content
from interrupts.models import Content, Run, Tool, ToolVersion
from tenants.scope import current_tenant_id
from tenants.sealing import SealBroken


def of_gate(gate: Gate, user_id: UUID) -> Learned:
    """Return why the person is asked although they approve the like, and what they may accept.

    Of a gate that is settled nothing is said.
    """
    if gate.state not in OPEN_GATES:
        return Learned()
    return Learned(why_asked(gate, user_id), offer(gate, user_id))


def offer(gate: Gate, user_id: UUID) -> dict[str, Any] | None:
    """Return the suggestion that the person may accept so that the gate's very call is not asked.

    None: there is none. ``{id, version, sentence, allowed, refused, asked}``: the back-test's figures.
    """
    suggested = _of_gate(gate, user_id, [DelegationStatus.SUGGESTED])
    told = [one for one in suggested if one.backtest]
    if not told or _beyond_rules(gate, user_id) is not None:
        return None
    try:
        call = _call(gate)
    except Unclear:
        return None
    covering = (one for one in told if call and calls.refusal(one.predicate, call) is None)
    rule = next(covering, None)
    return None if rule is None else _offered(rule)


def _offered(rule: Delegation) -> dict[str, Any]:
    tool = Tool.objects.values_list("name", flat=True).get(pk=rule.tool)
    told = rule.backtest or {}
    figures = {name: told[name] for name in ("allowed", "refused", "asked")}
    sentence = words.sentence(tool, rule.predicate, rule.limits)
    return {"id": str(rule.pk), "version": rule.version, "sentence": sentence, **figures}


def why_asked(gate: Gate, user_id: UUID) -> str | None:
    """Say in plain words why the person is asked although they approve the like; None: no rule.

    A spot check is not told from another prompt.
    """
    rules = _of_gate(gate, user_id, [DelegationStatus.ACTIVE, DelegationStatus.PAUSED])
    if not rules:
        return None
    if selectors.asks_everything(user_id):
        return "you asked to see everything"
    beyond = _beyond_rules(gate, user_id)
    if beyond is not None:
        return beyond
    try:
        call = _call(gate)
    except Unclear as fault:
        return fault.reason.text
    # A rule that would have allowed it says nothing, and none speaks for it.
    found = [None if call is None else _why(one, gate, call) for one in rules]
    return None if None in found else found[0]


def _of_gate(gate: Gate, user_id: UUID, statuses: Sequence[DelegationStatus]) -> list[Delegation]:
    rows = Delegation.objects.filter(
        user=user_id, tool=gate.tool_id, tool_number=_version(gate).number, status__in=statuses
    )
    return list(rows.order_by("id"))


def _beyond_rules(gate: Gate, user_id: UUID) -> str | None:
    """Say why no rule of the person's decides such a gate, whatever it covers; None: one may."""
    in_force, version = modes_now(), _version(gate)
    if in_force.of(version.risk) is Mode.OFF or calls.tool_of(version) is None:
        return "nothing of the kind is delegated"
    if gate.quorum > 1 or gate.stages:
        return "several people decide it"
    causes = {one["trigger"] for one in gate.triggers}
    if gate.twin or gate.routing.get("cool_down") or not causes <= ORDINARY:
        return "it is not only the call that is asked about"
    run = Run.objects.select_related("agent").get(pk=gate.run_id)
    if run.count_unknown:
        return "something in its run has an unknown outcome"
    facts = call_of(gate, run)
    if in_force.never and (
        (found := facts()) is None or in_force.forbids(gate.step.tool_name, found)
    ):
        return "the policy always asks about it"
    acting_for, refused = deciders.standing(user_id, gate.tool_id, run, gate.approvers, facts)
    return None if acting_for is None and refused is None else "you do not decide it for yourself"


def _call(gate: Gate) -> Canonical | None:
    """Return the gate's call as rules compare it; None: nobody can read it. Raises `Unclear`."""
    tool = calls.tool_of(_version(gate))
    run = Run.objects.select_related("agent").get(pk=gate.run_id)
    of, at = run.agent, gate.opened_at.timestamp()
    asked = calls.Asked(str(gate.step_id), at, of.name, run.workflow, str(of.identity))
    try:
        body = content.get(gate.arguments)
    except (Content.DoesNotExist, SealBroken):
        return None
    return None if tool is None else canonical(calls.request_of(asked, tool, body))


def _why(rule: Delegation, gate: Gate, call: Canonical) -> str | None:
    """Return why a rule did not allow the gate's call; None: it would have."""
    sleeps = rule.status == DelegationStatus.PAUSED
    if not sleeps or rule.pause_reason == PauseReason.DENIED:
        denied_in = judging.denials(judging.number_now()).of(gate.step.tool_name)
        if rule.confirmed_under < denied_in:
            return f"policy denied this tool in version {denied_in}: let your rule for it go on"
    if sleeps:
        return "your rule for the like of it sleeps"
    today = gate.opened_at.astimezone(UTC).date()
    day = DelegationDay.objects.filter(delegation=rule.pk, day=today).first()
    reason = calls.refusal(rule.predicate, call, None if day is None else day.spent)
    return None if reason is None else reason.text


def _version(gate: Gate) -> ToolVersion:
    return catalogue.version(current_tenant_id(), gate.tool_version_id)


def modes_now() -> Modes:
    """Return the modes of the policy in force."""
    policy = approvals.policy_in_force()
    return modes(policy.document if policy is not None else {})


@dataclass(frozen=True, slots=True)
class TemplateShown:
    """A rule that is offered to everybody, in words."""

    row: DelegationTemplate
    tool: str  # its name
    sentence: str


def templates_shown(rows: Sequence[DelegationTemplate]) -> list[TemplateShown]:
    """Return templates with their tools' names, in the order given."""
    tools = dict(Tool.objects.filter(pk__in={one.tool for one in rows}).values_list("pk", "name"))
    return [
        TemplateShown(
            one, tools[one.tool], words.sentence(tools[one.tool], one.predicate, one.limits)
        )
        for one in rows
    ]


def delegable_tools() -> Sequence[ToolVersion]:
    """Return the tools whose calls a rule may decide, by their names."""
    tools = Tool.objects.filter(retired_at=None).select_related("current__tool")
    versions = [one.current for one in tools.order_by("name") if one.current is not None]
    return [one for one in versions if calls.tool_of(one) is not None]
