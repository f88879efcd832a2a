"""What the API shows of each row: plain functions from what was read to JSON values.

Two things are never shown: values at a tool's sensitive paths, but to the agent that is to run the
call itself, and, to agents, which person decided.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Final, cast

from interrupts.models import (
    Attempt,
    Checkpoint,
    Freeze,
    Guidance,
    Interrupt,
    Question,
    Receipt,
    Run,
    Step,
    StepStatus,
    Tool,
    ToolVersion,
    Verdict,
)
from interrupts.selectors import EntryShown, Reach, RunShown, StepShown
from interrupts.templates import mask
from tenants.api.answers import instant
from tenants.principal import Principal

Shown = dict[str, Any]
NOBODY: Final[Mapping[str, str]] = {}


def decimal(number: Decimal) -> str:
    """Write a decimal number plainly: no exponent, no zeros at the end of its fraction."""
    text = format(number, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _number(number: Decimal) -> int | float:
    return int(number) if number == number.to_integral_value() else float(number)


# Runs


def damage(row: Run) -> Shown | None:
    """Say since when a run does not verify, and what was found first; None: nothing was."""
    if row.damage is None or row.damaged_at is None:
        return None
    return {"at": instant(row.damaged_at), "what": row.damage}


def run(shown: RunShown) -> Shown:
    row = shown.run
    return {
        "id": row.pk,
        "agent": row.agent.name,
        "workflow": row.workflow,
        "goal": row.goal,
        "parent": row.parent_id,
        "status": row.status,
        "suspension": row.suspension,
        "suspension_counts": {
            "unknown": row.count_unknown,
            "in_flight": row.count_in_flight,
            "partial": row.count_partial,
        },
        "requested_by": row.requested_by.username if row.requested_by else None,
        "inputs": row.inputs,
        "labels": row.labels,
        "guidance": [guidance(one) for one in shown.guidance],
        "questions": [question(one) for one in shown.questions],
        "session": row.session,
        "idle_after": row.idle_after_seconds,
        "forked_from": row.forked_from_id,
        "epoch": row.epoch,
        "state_version": row.state_version,
        "checkpoint": row.checkpoint_id,
        "open_interrupts": list(shown.open_interrupts),
        "usage": usage(row),
        "budget": _limits(row.budget),
        "output": row.output,
        "error": row.error,
        "damaged": damage(row),
        "created_at": instant(row.created_at),
        "updated_at": instant(row.updated_at),
        "ended_at": instant(row.ended_at),
    }


def usage(row: Run) -> Shown:
    return {
        "steps": row.usage_steps,
        "cost": decimal(row.usage_cost),
        "seconds": _number(row.usage_seconds),
        "tokens": row.usage_tokens,
    }


def _limits(budget: Mapping[str, Any]) -> Shown:
    """Show the limits in force; one of money is text, also where it was given as a number."""
    cost = budget.get("cost")
    if cost is None or isinstance(cost, str):
        return dict(budget)
    return {**budget, "cost": decimal(Decimal(str(cost)))}


def guidance(row: Guidance) -> Shown:
    return {
        "id": row.pk,
        "text": row.text,
        "by": row.by.username,
        "at": instant(row.at),
        "acknowledged": row.acknowledged_at is not None,
    }


def question(row: Question) -> Shown:
    """Show an agent what it is asked, and not by whom."""
    return {
        "id": row.pk,
        "step": row.step_id,
        "gate": row.gate,
        "text": row.text,
        "at": instant(row.at),
    }


# Steps


def step(shown: StepShown, principal: Principal) -> Shown:
    row = shown.step
    return {
        "id": row.pk,
        "run": row.run_id,
        "position": row.position,
        "group": row.group,
        "parallel": row.parallel,
        "key": row.key,
        "tool": row.tool_name,
        "tool_version": row.tool_number,
        "arguments": _body(row.arguments, shown),
        "digest": row.digest,
        "status": row.status,
        "reason": row.reason,
        "reason_code": row.reason_code,
        "authorization": _authorization(row, principal),
        "gate": row.gate,
        "interrupt": row.interrupt,
        "questions": [question(one) for one in shown.questions],
        "attempts": row.attempts,
        "outcome": row.outcome,
        "result": _body(row.result, shown),
        "error": row.error,
        "external_id": row.external_id,
        "receipts": [_receipt(one, shown, principal) for one in shown.receipts],
        "verdict": None if shown.verdict is None else verdict(shown.verdict),
        "state_version": row.run.state_version,
        "created_at": instant(row.created_at),
        "settled_at": instant(row.settled_at),
    }


def _body(digest: bytes | memoryview | None, shown: StepShown) -> Any:
    """Return a body with its sensitive values masked; None where there is none, or it is erased."""
    value = shown.bodies.get(bytes(digest)) if digest is not None else None
    return mask(value, shown.sensitive) if shown.sensitive else value


_PERSONS_RULE: Final = "delegation"
_PEOPLES: Final = frozenset({"user", _PERSONS_RULE})  # actors that agents are not told more of
_OF_A_RULE: Final = frozenset({"delegation", "delegation_version", "delegation_sha256"})
# A stamp is kept on what was asked about anew, or denied, since: it holds no more.
_NOT_AUTHORIZED: Final = frozenset(
    {StepStatus.WAITING, StepStatus.DENIED, StepStatus.REJECTED, StepStatus.REVISED}
)


def _authorization(row: Step, principal: Principal) -> Shown | None:
    if row.authorized_by is None or row.status in _NOT_AUTHORIZED:
        return None
    by_person = row.authorized_by == _PERSONS_RULE
    return {
        "by": row.authorized_by,
        "rule": None if principal.is_agent and by_person else row.authorized_rule,
        "policy_version": row.authorized_policy_version,
        "gate": row.authorized_gate,
        "digest": row.authorized_digest,
    }


def _receipt(row: Receipt, shown: StepShown, principal: Principal) -> Shown:
    return {
        "id": row.pk,
        "attempt": row.attempt,
        "compensation": row.compensation,
        "source": row.source,
        "outcome": row.outcome,
        "result": _body(row.result, shown),
        "external_id": row.external_id,
        "cost": decimal(row.cost) if row.cost is not None else None,
        "error": row.error,
        "evidence": row.evidence,
        "by": _who(row.by, principal),
        "observed_at": instant(row.observed_at),
    }


def verdict(row: Verdict) -> Shown:
    return {
        "status": row.status,
        "holds": row.holds,
        "receipt": row.receipt,
        "words": row.words,
        "error": row.error,
        "tries": row.tries,
        "awaited_since": instant(row.awaited_since),
        "recorded_at": instant(row.recorded_at),
    }


def _who(by: str, principal: Principal) -> str:
    return "user" if principal.is_agent and by.startswith("user:") else by


def claimed(row: Attempt, of_step: Step, arguments: bytes) -> Shown:
    """Show an agent the call it is to make: with its sensitive values, since it makes it."""
    return {
        "attempt": row.pk,
        "fence": row.fence,
        "epoch": row.epoch,
        "idempotency_key": str(of_step.pk),
        "arguments": json.loads(arguments),
        "digest": of_step.digest,
        "lease_expires_at": instant(row.lease_expires_at),
        "state_version": row.run.state_version,
    }


# Interrupts


def interrupt(row: Interrupt, principal: Principal, names: Mapping[str, str] = NOBODY) -> Shown:
    return {
        "id": row.pk,
        "run": row.run_id,
        "step": row.step,
        "gate": row.gate,
        "checkpoint": row.checkpoint,
        "reason": row.reason,
        "status": row.status,
        "in_flight": row.in_flight,
        "suspension": row.run.suspension,
        "evidence": row.evidence,
        "note": row.note,
        "required_response": {
            "kind": row.kind,
            "question": row.question,
            "schema": row.schema,
            "who": row.who,
            "allowed": row.allowed,
            "expires_at": instant(row.expires_at),
            "on_expiry": row.on_expiry,
        },
        "resolution": row.resolution,
        "response": row.response,
        "opened_by": _actor(row.opened_by, principal, names),
        "resolved_by": _actor(row.resolved_by, principal, names),
        "state_version": row.run.state_version,
        "opened_at": instant(row.opened_at),
        "resolved_at": instant(row.resolved_at),
    }


def _actor(
    actor: Mapping[str, str] | None, principal: Principal, names: Mapping[str, str]
) -> Shown | None:
    if actor is None:
        return None
    if principal.is_agent and actor["kind"] in _PEOPLES:
        return {"kind": actor["kind"], "id": None, "name": None}
    return {"kind": actor["kind"], "id": actor["id"], "name": names.get(actor["id"])}


# Checkpoints


def checkpoint(row: Checkpoint) -> Shown:
    """Show a checkpoint as lists do: without the agent's state."""
    return {
        "id": row.pk,
        "run": row.run_id,
        "sequence": row.sequence,
        "state_version": row.state_version,
        "schema_version": row.schema_version,
        "status": row.status,
        "next_step": row.next_step,
        "pending_gates": row.pending_gates,
        "receipts_through": row.receipts_through,
        "permissions": row.permissions,
        "inputs": row.inputs,
        "digest": row.digest,
        "created_at": instant(row.created_at),
    }


def agent_state(row: Checkpoint) -> Shown | None:
    """Show what may be known of an agent's state by everybody who may see its run."""
    if row.agent_format is None:
        return None
    return {
        "format": row.agent_format,
        "version": row.agent_version,
        "size": row.agent_size,
        "digest": row.agent_digest,
    }


# Tools and freezes


def tool(row: Tool, principal: Principal) -> Shown:
    version = cast(ToolVersion, row.current)
    return {
        "name": row.name,
        "version": version.number,
        "description": row.description,
        "effect": version.effect,
        "risk": version.risk,
        "arguments": version.arguments,
        "sensitive": version.sensitive,
        "confirmation": version.confirmation or None,
        "headline": version.headline or None,
        "consequence": version.consequence or None,
        "blast_radius": version.blast_radius or None,
        "failure_modes": version.failure_modes,
        "roles": version.roles,
        "key_lifetime": version.key_lifetime,
        "decisions": version.allowed_decisions,
        "cost": version.cost or None,
        "context": version.context,
        **_calls(version, principal),
        "retired_at": instant(row.retired_at),
    }


_FAR_END: Final = frozenset({"url", "request", "answer", "outcomes"})


def _calls(version: ToolVersion, principal: Principal) -> Shown:
    """Show how the tool is called; an agent is not told where, since the service calls it."""
    return {
        name: declared
        if declared is None or principal.is_person
        else {key: value for key, value in declared.items() if key not in _FAR_END}
        for name, declared in (
            ("executor", version.executor),
            ("preview", version.preview),
            ("reconcile", version.reconcile),
            ("compensate", version.compensate),
            ("verifier", version.verifier),
        )
    }


def freeze(row: Freeze) -> Shown:
    return {
        "id": row.pk,
        "scope": row.scope,
        "name": row.name or None,
        "note": row.note,
        "created_at": instant(row.created_at),
    }


def reach(scope: str, name: str, found: Reach) -> Shown:
    return {
        "scope": scope,
        "name": name or None,
        "runs": found.runs,
        "tools": [one._asdict() for one in found.tools],
        "in_flight": found.in_flight,
        "held": found.held,
        "waiting": found.waiting,
    }


# Journals


def entry(shown: EntryShown, principal: Principal) -> str:
    """Return an entry's JSON text: the very text that was hashed, and the hash beside it."""
    text = shown.text
    if principal.is_agent and any(f'"kind":"{kind}"' in text for kind in _PEOPLES):
        text = json.dumps(_without_people(json.loads(text)), ensure_ascii=False)
    return f'{text[:-1]},"hash":"{shown.hash.hex()}"}}'


def _without_people(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_people(one) for one in value]
    if not isinstance(value, dict):
        return value
    if value.get("kind") in _PEOPLES and value.keys() == {"kind", "id"}:
        return {"kind": value["kind"], "id": None}
    hidden = _OF_A_RULE if value.get("by") != _PERSONS_RULE else {*_OF_A_RULE, "rule"}
    return {key: None if key in hidden else _without_people(inner) for key, inner in value.items()}


def entries(page: Sequence[EntryShown], principal: Principal) -> str:
    return ",".join(entry(one, principal) for one in page)


def events(page: Sequence[EntryShown], principal: Principal) -> str:
    """Write entries as Server-Sent Events, whose ids are the journal's sequence numbers."""
    return "".join(
        f"id: {one.seq}\nevent: {one.kind}\ndata: {entry(one, principal)}\n\n" for one in page
    )
