"""How a tool is called: the Effect protocol and its executors.

Nothing here knows the database. A call goes out with no transaction open, and what came back is an
outcome that the engine records.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from interrupts.effects.base import (
    Call,
    Effect,
    Finding,
    Observed,
    Outcome,
    Preview,
    PreviewFailed,
    Reconciled,
)
from interrupts.effects.declared.effect import PARTS, DeclaredEffect, Part, SecretReader
from interrupts.effects.exchange import NotSent
from interrupts.effects.http import HttpEffect
from interrupts.effects.python import (
    NotInstalled,
    NotPerformed,
    PythonEffect,
    PythonTool,
    Refused,
    tool_named,
)

__all__ = [
    "Call",
    "Effect",
    "Finding",
    "HttpEffect",
    "NotPerformed",
    "NotSent",
    "Observed",
    "Offers",
    "Outcome",
    "Preview",
    "PreviewFailed",
    "PythonEffect",
    "PythonTool",
    "Reconciled",
    "Refused",
    "SecretReader",
    "effect_for",
    "needs_secret",
    "offers_of",
]

_Part = Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Offers:
    """What can be asked of a tool besides running it."""

    preview: bool
    reconcile: bool
    compensate: bool


def _no_secrets(_names: frozenset[str]) -> Mapping[str, str]:
    return {}


def effect_for(
    executor: Mapping[str, Any],
    *,
    preview: _Part,
    reconcile: _Part,
    compensate: _Part,
    secret: str | None,
    allowed_hosts: Iterable[str],
    quote_refusals: bool = False,
    tenant: str = "",
    read_secrets: SecretReader = _no_secrets,
) -> Effect:
    """Return the executor of a tool version's declaration.

    `secret` is the tool's `whsec_…`. `allowed_hosts` are the `host:port` pairs that may be private;
    the setting ABEYANCE_ALLOWED_HOSTS adds the deployment's. `quote_refusals` is for tools without
    sensitive arguments. `tenant` is what a declared request calls the tenant, and `read_secrets`
    reads what it signs in with, at each call. An agent's tool has no `execute` here, only what it
    declares besides.
    """
    if executor["kind"] == "python":
        return PythonEffect(executor.get("function"))
    own = HttpEffect(
        url=executor.get("url"),
        preview_url=_url(preview),
        reconcile_url=_url(reconcile),
        compensate_url=_url(compensate),
        secret=secret,
        allowed_hosts=frozenset(
            host.lower() for host in (*allowed_hosts, *settings.ABEYANCE_ALLOWED_HOSTS)
        ),
        quote_refusals=quote_refusals,
    )
    named = dict(zip(PARTS, (executor, preview, reconcile, compensate), strict=True))
    declared = {
        name: Part.of(name, part) for name, part in named.items() if part and "request" in part
    }
    return DeclaredEffect(own, declared, tenant, read_secrets) if declared else own


def needs_secret(
    executor: Mapping[str, Any], *, preview: _Part, reconcile: _Part, compensate: _Part
) -> bool:
    """Tell whether a tool has requests to sign: those over HTTP whose form is our own."""
    return any(part and "url" in part for part in (executor, preview, reconcile, compensate))


def offers_of(
    executor: Mapping[str, Any],
    *,
    tool: str,
    preview: _Part,
    reconcile: _Part,
    compensate: _Part,
) -> Offers:
    """Tell what a tool offers: by its URLs, or by the installed function that it names."""
    if executor["kind"] != "python":
        return Offers(bool(preview), bool(reconcile), bool(compensate))
    try:
        found = tool_named(executor.get("function", tool))
    except NotInstalled:
        return Offers(preview=False, reconcile=False, compensate=False)
    return Offers(
        found.preview is not None, found.reconcile is not None, found.compensate is not None
    )


def _url(part: _Part) -> str | None:
    return part.get("url") if part else None
