"""The tenant's catalogue: tools, their immutable versions, and the secrets calls are signed with."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db.models.functions import Now

from interrupts.catalogue import TOOL_SECRET
from interrupts.declarations import FORM, OPTIONAL, form_digest, full_form, secret_faults
from interrupts.effects import needs_secret
from interrupts.effects.validation import secrets_named
from interrupts.errors import UnknownSecret
from interrupts.models import Tool, ToolVersion
from tenants.changes import Change, Issued, State, record
from tenants.ids import uuid7
from tenants.journal import Actor
from tenants.sealing import seal
from tenants.selectors import secret_names

Declaration = Mapping[str, Any]
SECRET_PREFIX: Final = "whsec_"  # noqa: S105 - of Standard Webhooks


@dataclass(frozen=True, slots=True)
class _Plan:
    """What one declaration asks for: the tool as it will be, and its version where that is new."""

    tool: Tool
    form: dict[str, Any]
    version: ToolVersion | None
    change: Change | None

    @property
    def is_new(self) -> bool:
        return self.tool._state.adding  # noqa: SLF001 - Django's word for "not stored yet"


def set_tools(
    actor: Actor,
    wanted: Sequence[Declaration],
    *,
    others_retire: bool = False,
    issued: Issued | None = None,
) -> list[Change]:
    """Make these checked declarations the tenant's tools; with ``others_retire`` others retire.

    A tool whose declaration changed in anything but its description gets a new version, and what
    waits or is authorised under the old one is gated anew. With ``issued`` a tool that is called
    over HTTP in our own form and has no secret yet gets one. Raises UnknownSecret where one names
    a secret that the tenant has not.
    """
    _refuse_unknown_secrets(wanted)
    known = {tool.name: tool for tool in Tool.objects.select_related("current")}
    plans = [_plan(known.get(one["name"]), one) for one in wanted]
    _store(plans)
    changes = [plan.change for plan in plans if plan.change is not None]
    if others_retire:
        names = {plan.tool.name for plan in plans}
        changes += _retire([tool for name, tool in known.items() if name not in names])
    if issued is not None:
        changes += _issue_secrets(plans, issued)
    record(actor, changes)
    return changes


def retire_tools(actor: Actor, names: Collection[str]) -> list[Change]:
    """Retire these tools: nothing of them is proposed or started any more. A repeat is no change."""
    changes = _retire(list(Tool.objects.select_related("current").filter(name__in=names)))
    record(actor, changes)
    return changes


def _refuse_unknown_secrets(wanted: Sequence[Declaration]) -> None:
    if any(secrets_named(one) for one in wanted):
        faults = [*secret_faults(wanted, secret_names())]
        if faults:
            raise UnknownSecret(errors=[{"pointer": at, "detail": why} for at, why in faults])


def _plan(known: Tool | None, declaration: Declaration) -> _Plan:
    form, description = full_form(declaration), declaration.get("description", "")
    tool = known or Tool(name=declaration["name"])
    before = _state(tool) if known and not tool.retired_at else None
    version = _new_version(tool, form)
    if version is not None:
        tool.current = version
    tool.description, tool.retired_at = description, None
    after = _state(tool)
    change = None
    if before != after:
        # A change of the description alone is no reason to ask anybody anew.
        narrows = known is not None and (before is None or version is not None)
        change = Change("tool", tool.name, before, after, narrows=narrows)
    return _Plan(tool, form, version, change)


def _new_version(tool: Tool, form: dict[str, Any]) -> ToolVersion | None:
    """Return the version that ``form`` needs; None where the one in force is it."""
    stands = form_digest(form)
    if tool.current is not None and tool.current.digest == stands:
        return None
    executor = form["executor"]
    return ToolVersion(
        pk=uuid7(),
        tool=tool,
        number=tool.current.number + 1 if tool.current else 1,
        executor_kind=executor["kind"],
        timeout_seconds=executor["lease"] if executor["kind"] == "agent" else executor["timeout"],
        digest=stands,
        **form,
    )


def _state(tool: Tool) -> State:
    version = tool.current
    if version is None:
        return {"description": tool.description}
    return {
        "version": version.number,
        "description": tool.description,
        **{member: getattr(version, member) for member in FORM},
        **{name: getattr(version, name) for name in OPTIONAL if getattr(version, name)},
    }


def _store(plans: Sequence[_Plan]) -> None:
    """Write tools before their versions, and which is in force after both."""
    new = [plan.tool for plan in plans if plan.is_new]
    versions = [plan.version for plan in plans if plan.version is not None]
    in_force = {tool.pk: tool.current for tool in new}
    for tool in new:
        tool.current = None
    Tool.objects.bulk_create(new)
    ToolVersion.objects.bulk_create(versions)
    for tool in new:
        tool.current = in_force[tool.pk]
    changed = [plan.tool for plan in plans if plan.change is not None]
    Tool.objects.bulk_update(changed, ["current", "description", "retired_at"])


def _retire(tools: Sequence[Tool]) -> list[Change]:
    ending = [tool for tool in tools if tool.retired_at is None]
    Tool.objects.filter(pk__in=[tool.pk for tool in ending]).update(retired_at=Now())
    return [Change("tool", tool.name, _state(tool), None, narrows=True) for tool in ending]


def _issue_secrets(plans: Sequence[_Plan], issued: Issued) -> list[Change]:
    """Make what secrets are missing; a tool that was called without one is known anew."""
    needing = [plan for plan in plans if plan.tool.secret is None and _is_signed(plan.form)]
    for plan in needing:
        secret = SECRET_PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()
        plan.tool.secret = seal(secret.encode(), TOOL_SECRET, plan.tool.pk)
        issued.tools[plan.tool.name] = secret
    Tool.objects.bulk_update([plan.tool for plan in needing], ["secret"])
    return [
        Change("tool", plan.tool.name, {"signed": False}, {"signed": True}, narrows=True)
        for plan in needing
        if plan.change is None or plan.change.before is not None
    ]


def _is_signed(form: Mapping[str, Any]) -> bool:
    return needs_secret(
        form["executor"],
        preview=form["preview"],
        reconcile=form["reconcile"],
        compensate=form["compensate"],
        verifier=form["verifier"],
    )
