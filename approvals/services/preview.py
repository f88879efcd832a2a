"""Previews: asked for with no transaction open, recorded in one."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.db import connection
from django.db.models import F, Q
from django.db.models.functions import Now

from approvals import selectors, transitions
from approvals.models import Gate, GateState, Pattern
from approvals.snapshots import Asked, Taken, preview_shown
from config import jsontext
from interrupts import catalogue, content
from interrupts.effects import Call, Preview, PreviewFailed
from interrupts.work import working
from tenants.clock import database_now
from tenants.journal import SYSTEM
from tenants.models import Tenant
from tenants.scope import current_tenant_id

MARGIN: Final = timedelta(seconds=5)  # for what is around the call
GIVEN_UP: Final = "No preview could be taken: each try broke off."


@dataclass(frozen=True, slots=True)
class _Look:
    """One look at a tool's preview, and when it began (by this machine's own clock)."""

    began: float
    preview: Preview | None = None
    error: str | None = None


def take_preview(gate_id: UUID) -> None:
    """Take the preview that a gate is preparing, and ask people with it.

    Does nothing where none is being prepared, or another worker has just begun. A tool that says
    no is not asked again; tries that broke off are repeated by the sweep, within bounds.
    """
    gate = selectors.gates().filter(pk=gate_id, state=GateState.PREPARING).first()
    if gate is None or not _begin(gate):
        return
    if gate.preview_tries >= transitions.PREVIEW_TRIES:
        _record(gate, _Look(time.monotonic(), error=GIVEN_UP))
    else:
        _record(gate, _look(gate, content.get(gate.arguments)))


def renew_preview(gate_id: UUID) -> str:
    """Take a pending gate's preview anew, and return the digest of what is shown then.

    Votes for what was shown before count no more where it has changed.
    """
    gate = selectors.gates().get(pk=gate_id)
    if gate.state != GateState.PENDING or gate.preview is None:
        return gate.digest
    return _record(gate, _look(gate, content.get(gate.arguments))).digest


def _begin(gate: Gate) -> bool:
    """Say of the gate that a try has begun, where none is on; the sweep looks once it is overdue.

    Hints pile up while no worker is free: only a try that broke off is repeated by one.
    """
    until = Now() + timedelta(seconds=_seconds(gate)) + MARGIN
    nobody = Q(preview_until=None) | Q(preview_until__lte=Now())
    free = Gate.objects.filter(nobody, pk=gate.pk, state=GateState.PREPARING)
    begun = free.update(preview_tries=F("preview_tries") + 1, preview_until=until, due_at=until)
    return begun == 1


def _seconds(gate: Gate) -> float:
    version = catalogue.version(current_tenant_id(), gate.tool_version_id)
    return min(version.timeout_seconds, transitions.MAX_PREVIEW_SECONDS)


def preview_of(gate: Gate, asked: Asked) -> Taken | None:
    """Ask what the gate's call would do with other arguments; nothing of it is recorded.

    None where the gate's tool offers no preview.
    """
    if gate.pattern != Pattern.PREVIEW:
        return None
    return _taken(_look(gate, jsontext.canonical(asked.arguments)), database_now(), asked)


def _look(gate: Gate, arguments: bytes) -> _Look:
    """Ask the tool what the call would do."""
    if connection.in_atomic_block:
        raise RuntimeError("a preview is taken with no transaction open")
    tenant = current_tenant_id()
    authority = Tenant.objects.values_list("authority_version", flat=True).get(pk=tenant)
    call = Call(
        tool=gate.step.tool_name,
        tool_version=catalogue.version(tenant, gate.tool_version_id).number,
        arguments=arguments,
        run=str(gate.run_id),
        step=str(gate.step_id),
        attempt=str(gate.pk),
        idempotency_key=str(gate.step_id),
        timeout=_seconds(gate),
    )
    began = time.monotonic()
    try:
        preview = catalogue.effect(tenant, gate.tool_version_id, authority).preview(call)
    except PreviewFailed as failure:
        return _Look(began, error=str(failure))
    return _Look(began, preview=preview)


def _record(seen: Gate, look: _Look) -> Gate:
    """Show what was seen, unless the gate has gone on or asks about something else by now."""
    with working(seen.run_id, SYSTEM) as work:
        gate = selectors.gates().get(pk=seen.pk)
        same = (gate.state, bytes(gate.arguments), gate.digest) == (
            seen.state,
            bytes(seen.arguments),
            seen.digest,
        )
        if not same:
            work.state_unchanged()
            return gate
        asked = transitions.asked_about(gate, json.loads(content.get(gate.arguments)))
        transitions.take_up_preview(work, gate, asked, _taken(look, work.now, asked))
    return gate


def _taken(look: _Look, now: datetime, asked: Asked) -> Taken:
    # What was seen was true when the call began, at the earliest.
    observed_at = now - timedelta(seconds=time.monotonic() - look.began)
    if look.preview is None:
        return Taken(observed_at, error=look.error)
    try:
        shown = preview_shown(look.preview, asked)
    except PreviewFailed as failure:
        return Taken(observed_at, error=str(failure))
    fresh_for = look.preview.fresh_for
    until = None if fresh_for is None else observed_at + timedelta(seconds=fresh_for)
    return Taken(observed_at, shown=shown, fresh_until=until)
