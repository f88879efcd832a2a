"""Runs, steps, interrupts and the rest as the API shows them when they are new."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

Shown = dict[str, Any]
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


def new_id() -> str:
    return str(uuid4())


def instant(seconds: float) -> str:
    return (BEGAN + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


def digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
    return f"sha256:{hashlib.sha256(text).hexdigest()}"


def run(body: Mapping[str, Any], at: float) -> Shown:
    return {
        "id": new_id(),
        "agent": "agent",
        "workflow": body["workflow"],
        "goal": body["goal"],
        "parent": body.get("parent"),
        "status": "running",
        "suspension": None,
        "suspension_counts": {"unknown": 0, "in_flight": 0, "partial": 0},
        "requested_by": body.get("requested_by"),
        "inputs": body.get("inputs", {}),
        "labels": body.get("labels", {}),
        "guidance": [],
        "questions": [],
        "session": 0,
        "idle_after": body.get("idle_after"),
        "forked_from": None,
        "epoch": 1,
        "state_version": 1,
        "checkpoint": None,
        "open_interrupts": [],
        "usage": {"steps": 0, "cost": "0", "seconds": 0, "tokens": 0},
        "budget": body.get("budget", {}),
        "output": None,
        "error": None,
        "damaged": None,
        "created_at": instant(at),
        "updated_at": instant(at),
        "ended_at": None,
    }


def step(of_run: Shown, body: Mapping[str, Any], position: int, group: str, at: float) -> Shown:
    return {
        "id": new_id(),
        "run": of_run["id"],
        "position": position,
        "group": group,
        "parallel": False,
        "key": body.get("key"),
        "tool": body["tool"],
        "tool_version": 1,
        "arguments": body["arguments"],
        "digest": step_digest(body["tool"], body["arguments"]),
        "status": "ready",
        "reason": None,
        "reason_code": None,
        "authorization": None,
        "gate": None,
        "interrupt": None,
        "questions": [],
        "attempts": 0,
        "outcome": None,
        "result": None,
        "error": None,
        "external_id": None,
        "receipts": [],
        "verdict": None,
        "state_version": of_run["state_version"],
        "created_at": instant(at),
        "settled_at": None,
    }


def step_digest(tool: str, arguments: Any) -> str:
    return digest({"tool": tool, "tool_version": 1, "arguments": arguments})


def authorization(of_step: Shown, by: str) -> Shown:
    return {
        "by": by,
        "rule": "scripted",
        "policy_version": 1,
        "gate": of_step["gate"],
        "digest": of_step["digest"],
    }


def receipt(of_step: Shown, outcome: str, source: str, at: float, **seen: Any) -> Shown:
    return {
        "id": new_id(),
        "attempt": new_id() if of_step["attempts"] else None,
        "compensation": False,
        "source": source,
        "outcome": outcome,
        "result": None,
        "external_id": None,
        "cost": None,
        "error": None,
        "evidence": None,
        "by": "user" if source == "person" else source,
        "observed_at": instant(at),
        **seen,
    }


def interrupt(of_run: Shown, reason: str, question: str, at: float, **more: Any) -> Shown:
    return {
        "id": new_id(),
        "run": of_run["id"],
        "step": None,
        "gate": None,
        "checkpoint": new_id(),
        "reason": reason,
        "status": "open",
        "in_flight": "finish",
        "suspension": None,
        "evidence": more.get("evidence", {}),
        "note": more.get("note"),
        "required_response": {
            "kind": {"approval_required": "decision", "outcome_unknown": "recovery"}.get(
                reason, "input" if reason == "input_required" else "release"
            ),
            "question": question,
            "schema": more.get("schema"),
            "who": ["operator", "admin"],
            "allowed": [{"resolution": "resume", "consequence": "The run goes on."}],
            "expires_at": None,
            "on_expiry": None,
        },
        "resolution": None,
        "response": None,
        "opened_by": {"kind": "agent", "id": of_run["agent"], "name": None},
        "resolved_by": None,
        "state_version": of_run["state_version"],
        "opened_at": instant(at),
        "resolved_at": None,
    }


def question(of_step: Shown, text: str, at: float) -> Shown:
    return {
        "id": new_id(),
        "step": of_step["id"],
        "gate": of_step["gate"],
        "text": text,
        "at": instant(at),
        "answer": None,
        "answered_at": None,
    }


def open_question(of: Shown) -> Shown:
    """A question as runs and steps show it while it has no answer."""
    return {name: of[name] for name in ("id", "step", "gate", "text", "at")}


def asked(question: Shown, of_run: Shown) -> Shown:
    """A question as its answer is answered."""
    shown = {name: question[name] for name in ("id", "gate", "text", "answer", "answered_at")}
    return {**shown, "asked_at": question["at"], "state_version": of_run["state_version"]}


def grown(data: Any, append: Mapping[str, list[Any]]) -> Any:
    """Return a state's data with more in its lists."""
    whole = json.loads(json.dumps(data))
    for pointer, items in append.items():
        found = whole
        for name in pointer.split("/")[1:]:
            found = found[name.replace("~1", "/").replace("~0", "~")]
        found.extend(items)
    return whole


def checkpoint(of_run: Shown, state: Mapping[str, Any], sequence: int, at: float) -> Shown:
    return {
        "id": new_id(),
        "run": of_run["id"],
        "sequence": sequence,
        "state_version": of_run["state_version"],
        "schema_version": 2,
        "status": of_run["status"],
        "next_step": 1,
        "pending_gates": [],
        "receipts_through": 1,
        "permissions": {},
        "inputs": digest(of_run["inputs"]),
        "digest": digest([of_run["id"], sequence]),
        "created_at": instant(at),
        "agent_state": {
            "format": state["format"],
            "version": state["version"],
            "size": len(json.dumps(state["data"])),
            "digest": digest(state["data"]),
            "data": state["data"],
        },
    }


def tool(name: str, executor: Mapping[str, Any]) -> Shown:
    return {
        "name": name,
        "version": 1,
        "description": "",
        "effect": "idempotent",
        "risk": "low",
        "arguments": {},
        "sensitive": [],
        "confirmation": None,
        "headline": None,
        "consequence": None,
        "blast_radius": None,
        "failure_modes": [],
        "roles": {},
        "key_lifetime": None,
        "decisions": ["approve", "edit", "reject", "request_changes", "respond"],
        "cost": None,
        "context": [],
        "executor": executor,
        "preview": None,
        "reconcile": None,
        "compensate": None,
        "verifier": None,
        "retired_at": None,
    }
