"""A tenant file to change, and the command that applies it."""

from __future__ import annotations

import copy
import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import call_command
from django.core.management.base import CommandError

ACME: dict[str, Any] = {
    "tenant": "acme",
    "name": "Acme",
    "members": [
        {"username": "ada", "email": "ada@acme.test", "role": "admin"},
        {"username": "alice", "email": "alice@acme.test", "role": "approver", "may_decide": ["*"]},
        {"username": "bob", "email": "bob@acme.test", "role": "approver", "may_decide": ["mail.*"]},
        {"username": "vera", "email": "vera@acme.test", "role": "viewer"},
    ],
    "groups": {"finance": ["bob", "alice"]},
    "agents": [{"name": "bot", "owner": "ada"}, {"name": "cron"}],
    "tools": [
        {
            "name": "payments.refund",
            "description": "Refund a payment",
            "effect": "irreversible",
            "risk": "high",
            "arguments": {
                "type": "object",
                "required": ["payment", "amount"],
                "properties": {
                    "payment": {"type": "string"},
                    "amount": {"type": "string"},
                    "card": {"type": "string"},
                },
                "additionalProperties": False,
            },
            "sensitive": ["/card"],
            "confirmation": "refund {amount}",
            "headline": "Refund {amount} of {payment}",
            "failure_modes": ["The wrong payment is refunded"],
            "roles": {"payment": "id", "amount": "number"},
            "executor": {"kind": "http", "url": "http://127.0.0.1:9000/refund", "timeout": 3},
            "reconcile": {"url": "http://127.0.0.1:9000/refund/{key}"},
        },
        {
            "name": "mail.send",
            "effect": "irreversible",
            "risk": "low",
            "arguments": {"type": "object", "properties": {"to": {"type": "string"}}},
            "executor": {"kind": "http", "url": "http://127.0.0.1:9000/mail"},
        },
        {
            "name": "local.shell",
            "effect": "irreversible",
            "risk": "high",
            "arguments": {"type": "object"},
            "executor": {"kind": "agent", "lease": 5},
        },
    ],
    "policy": {
        "allowed_hosts": ["127.0.0.1:9000"],
        "rules": [{"name": "reads", "trigger": "action", "tools": ["*.get"], "then": "allow"}],
        "budgets": {"steps": 200, "cost": "50.00"},
        "delegation": {"mode": "off"},
    },
}


def acme(**sections: Any) -> dict[str, Any]:
    """Return a copy of the file with other sections."""
    return {**copy.deepcopy(ACME), **sections}


def other(slug: str, **sections: Any) -> dict[str, Any]:
    """Return the same tenant under another name, with people of its own."""
    people = [
        {**one, "username": f"{one['username']}-{slug}", "email": f"{one['username']}@{slug}.test"}
        for one in ACME["members"]
    ]
    made = acme(tenant=slug, name=slug, members=people, groups={}, agents=[{"name": "bot"}])
    return {**made, **sections}


@dataclass
class Applied:
    """What the command said, and what it gave out."""

    output: str
    error: str
    credentials: dict[str, Any]

    @property
    def succeeded(self) -> bool:
        return not self.error


Apply = Callable[..., Applied]


@pytest.fixture
def apply(tmp_path: Path) -> Apply:
    """Apply documents (or a text), by default with credentials to a file that one test keeps."""
    out = tmp_path / "credentials.json"

    def run(*documents: dict[str, Any] | str, dry_run: bool = False, given: bool = True) -> Applied:
        file = tmp_path / "tenants.yaml"
        texts = [one if isinstance(one, str) else yaml.safe_dump(one) for one in documents]
        file.write_text("\n---\n".join(texts))
        output, error = io.StringIO(), ""
        try:
            call_command(
                "apply",
                str(file),
                credentials_out=out if given else None,
                dry_run=dry_run,
                stdout=output,
            )
        except CommandError as fault:
            error = str(fault)
        credentials = json.loads(out.read_text()) if out.exists() else {}
        return Applied(output.getvalue(), error, credentials)

    return run
