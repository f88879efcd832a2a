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
from interrupts.effects.verifiers import Ruling, Says, Seen, Verifier, verifier_for

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
    "Ruling",
    "Says",
    "SecretReader",
    "Seen",
    "Verifier",
    "effect_for",
    "judge_for",
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
        return PythonEffect(executor.get("function"), (preview or {}).get("function"))
    own = HttpEffect(
        url=executor.get("url"),
        preview_url=_url(preview),
        reconcile_url=_url(reconcile),
        compensate_url=_url(compensate),
        secret=secret,
        allowed_hosts=_allowed(allowed_hosts),
        quote_refusals=quote_refusals,
    )
    named = dict(zip(PARTS, (executor, preview, reconcile, compensate), strict=True))
    declared = {
        name: Part.of(name, part) for name, part in named.items() if part and "request" in part
    }
    return DeclaredEffect(own, declared, tenant, read_secrets) if declared else own


def judge_for(
    declared: Mapping[str, Any],
    *,
    secret: str | None,
    allowed_hosts: Iterable[str],
    tenant: str = "",
    read_secrets: SecretReader = _no_secrets,
) -> Verifier:
    """Return who judges what a tool did; requests are signed and bounded as the tool's own.

    A declared request is not signed; `tenant` and `read_secrets` are as of a tool's.
    """
    own = HttpEffect(
        url=None,
        preview_url=None,
        reconcile_url=None,
        compensate_url=None,
        secret=secret,
        allowed_hosts=_allowed(allowed_hosts),
    )
    return verifier_for(declared, own, tenant, read_secrets)


def _allowed(hosts: Iterable[str]) -> frozenset[str]:
    return frozenset(host.lower() for host in (*hosts, *settings.ABEYANCE_ALLOWED_HOSTS))


def needs_secret(
    executor: Mapping[str, Any],
    *,
    preview: _Part,
    reconcile: _Part,
    compensate: _Part,
    verifier: _Part = None,
) -> bool:
    """Tell whether a tool has requests to sign: those over HTTP whose form is our own."""
    parts = (executor, preview, reconcile, compensate, verifier)
    return any(part and "url" in part for part in parts)


def offers_of(
    executor: Mapping[str, Any],
    *,
    tool: str,
    preview: _Part,
    reconcile: _Part,
    compensate: _Part,
) -> Offers:
    """Tell what a tool offers: by its URLs, or by the installed function that it names.

    A preview that is declared is owed, also where what takes it is not installed here.
    """
    if executor["kind"] != "python":
        return Offers(bool(preview), bool(reconcile), bool(compensate))
    try:
        found = tool_named(executor.get("function", tool))
    except NotInstalled:
        return Offers(preview=preview is not None, reconcile=False, compensate=False)
    return Offers(
        preview is not None or found.preview is not None,
        found.reconcile is not None,
        found.compensate is not None,
    )


def _url(part: _Part) -> str | None:
    return part.get("url") if part else None
