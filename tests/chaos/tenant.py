"""The tenant that chaos works in: a tool of each kind, with short waits."""

from __future__ import annotations

from typing import Any

SLUG = "chaos"
# What is lost is asked about once it can no longer land: farend.LANDS_WITHIN_SECONDS.
TIMEOUT_SECONDS, SETTLE_SECONDS = 1, 2
LEASE_SECONDS = TIMEOUT_SECONDS + 2
ASKED = {"settle_after": SETTLE_SECONDS, "attempts": 5, "backoff": 0.5}


def document(host: str) -> dict[str, Any]:
    """The tenant file's one document, with the far end at ``host``."""
    return {
        "tenant": SLUG,
        "name": "Chaos",
        "members": [
            {"username": "olga", "email": "olga@chaos.test", "role": "operator"},
            {"username": "ann", "email": "ann@chaos.test", "role": "approver", "may_decide": ["*"]},
            {"username": "ben", "email": "ben@chaos.test", "role": "approver", "may_decide": ["*"]},
        ],
        "agents": [{"name": "bot"}],
        "tools": _tools(host),
        "policy": {
            "allowed_hosts": [host],
            "rules": [
                {
                    "name": "free",
                    "trigger": "action",
                    "tools": ["do.note", "do.tell", "do.move", "do.look"],
                    "then": "allow",
                }
            ],
            "budgets": {},
            "delegation": {"mode": "off"},
        },
    }


def _tools(host: str) -> list[dict[str, Any]]:
    at = f"http://{host}"
    return [
        # Found out by asking.
        _tool(at, "note", "idempotent", "low", **_asked(at, "note")),
        _tool(at, "pay", "reversible", "low", **_asked(at, "pay"), **_undone(at, "pay")),
        {
            **_tool(at, "book", "reversible", "medium", **_asked(at, "book")),
            **_undone(at, "book"),
            "preview": {"url": f"{at}/preview/book"},
        },
        # Found out by sending it again under its key, by a person, and by its agent.
        _tool(at, "tell", "idempotent", "low"),
        _tool(at, "wire", "irreversible", "high", key_lifetime=0),
        _tool(at, "move", "idempotent", "low", executor={"kind": "agent", "lease": LEASE_SECONDS}),
        _tool(at, "look", "read", "low"),
    ]


def _tool(at: str, name: str, effect: str, risk: str, **more: Any) -> dict[str, Any]:
    executor = {"kind": "http", "url": f"{at}/effects/{name}", "timeout": TIMEOUT_SECONDS}
    return {
        "name": f"do.{name}",
        "description": name,
        "effect": effect,
        "risk": risk,
        "arguments": {"type": "object"},
        "key_lifetime": 86400,
        "executor": executor,
        **more,
    }


def _asked(at: str, name: str) -> dict[str, Any]:
    return {"reconcile": {"url": f"{at}/effects/{name}/{{key}}", **ASKED}}


def _undone(at: str, name: str) -> dict[str, Any]:
    return {"compensate": {"url": f"{at}/effects/{name}/{{key}}/compensate"}}
