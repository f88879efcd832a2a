"""A payment provider with a protocol of its own: forms, its own headers, and a ledger."""

from __future__ import annotations

import socket
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from django.db import transaction

from interrupts.models import Tool
from interrupts.services.tools import set_tools
from tenants.journal import SYSTEM
from tenants.services.secrets import set_secrets
from tests.interrupts.effects.far_end import Asked, FarEnd, answering, resetting

VALUE = "sk_live_4eC39HqLyjWDarjtT1zdp7dc"
MISSING = {"error": {"code": "resource_missing", "message": "No such refund"}}


class Provider(FarEnd):
    """Refunds once a `Request-Id`, however it answers; `fault` is what it does instead."""

    def __init__(self) -> None:
        super().__init__()
        self.behave = self.serve
        self.ledger: dict[str, dict[str, Any]] = {}
        self.keys: list[str] = []
        self.signed: list[str] = []
        self.cancelled: list[str] = []
        self.fault = ""

    def serve(self, connection: socket.socket, asked: Asked) -> None:
        self.signed.append(asked.headers.get("authorization", ""))
        path = urlsplit(asked.path)
        if asked.method == "POST":
            self._refund(connection, asked, unquote(path.path.split("/")[3]))
        elif asked.method == "DELETE":
            self.cancelled.append(path.path.split("/")[3])
            answering(200, {"status": "cancelled"})(connection, asked)
        else:
            self._find(connection, asked, parse_qs(path.query).get("reference", [""])[0])

    def _refund(self, connection: socket.socket, asked: Asked, charge: str) -> None:
        key = asked.headers["request-id"]
        self.keys.append(key)
        if self.fault == "refuse":
            said = f"Bad key {asked.headers['authorization']}"
            answering(401, {"error": {"message": said}})(connection, asked)
            return
        if self.fault != "drop":
            form = {name: values[0] for name, values in parse_qs(asked.body.decode()).items()}
            made = {"id": f"re_{len(self.ledger) + 1}", "charge": charge, "status": "done", **form}
            self.ledger.setdefault(key, made)
        if self.fault:
            resetting(connection, asked)
            return
        echo = {"echo": asked.headers["authorization"]}
        answering(201, {**self.ledger[key], **echo})(connection, asked)

    def _find(self, connection: socket.socket, asked: Asked, key: str) -> None:
        if self.fault == "proxy":
            answering(404, b"<h1>Not Found</h1>")(connection, asked)
        elif key in self.ledger:
            echo = {"echo": asked.headers["authorization"]}
            answering(200, {**self.ledger[key], **echo})(connection, asked)
        else:
            answering(404, MISSING)(connection, asked)


def declaration(provider: Provider, **more: Any) -> dict[str, Any]:
    """The provider's refund as a tool."""
    base = f"http://{provider.authority}/v1"
    signed = {"Authorization": {"secret": "pay-key", "prefix": "Bearer "}}
    return {
        "name": "charges.refund",
        "effect": "reversible",
        "risk": "low",
        "key_lifetime": 86400,
        "arguments": {
            "type": "object",
            "required": ["charge", "amount"],
            "properties": {"charge": {"type": "string"}, "amount": {"type": "integer"}},
            "additionalProperties": False,
        },
        "executor": {
            "kind": "http",
            "timeout": 3,
            "request": {
                "url": f"{base}/charges/{{arguments.charge}}/refunds",
                "headers": signed,
                "idempotency_header": "Request-Id",
                "form": {"amount": "{arguments.amount}", "reference": "{key}"},
            },
            "answer": {"external_id": "/id", "error": "/error/message"},
        },
        "preview": {
            "request": {"url": f"{base}/refunds", "headers": signed},
            "answer": {"summary": "Refund {arguments.amount}: {answer.error.message}"},
        },
        "reconcile": {
            "settle_after": 1,
            "request": {
                "url": f"{base}/refunds",
                "query": {"reference": "{key}"},
                "headers": signed,
            },
            "answer": {"external_id": "/id"},
            "outcomes": [
                {
                    "status": 200,
                    "where": {"/status": ["done"], "/reference": ["{key}"]},
                    "means": "performed",
                },
                {
                    "status": 404,
                    "where": {"/error/code": ["resource_missing"]},
                    "means": "not_performed",
                },
            ],
        },
        "compensate": {
            "request": {"method": "DELETE", "url": f"{base}/refunds/{{external_id}}"}
            | {"headers": signed},
        },
        **more,
    }


def install(provider: Provider, **more: Any) -> Tool:
    """Give the current tenant the provider's key, and the tool."""
    with transaction.atomic():
        set_secrets(SYSTEM, {"pay-key": VALUE})
        set_tools(SYSTEM, [declaration(provider, **more)])
    return Tool.objects.get(name="charges.refund")
