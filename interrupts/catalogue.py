"""The tenant's tools as a process knows them: versions never change, so they are read once.

What is current is remembered for one authority version, which every change of a tool raises.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from uuid import UUID

from django.db import InterfaceError, OperationalError

from interrupts import effects
from interrupts.authorizer import authorizer
from interrupts.errors import UnknownTool
from interrupts.models import Tool, ToolVersion
from interrupts.schemas import Validator
from tenants.models import Tenant
from tenants.scope import current_tenant_id
from tenants.sealing import unseal
from tenants.selectors import secret_values

TOOL_SECRET = "tool-secret"  # noqa: S105 - the purpose that such a secret is sealed for


@lru_cache(maxsize=10_000)
def _current(tenant: UUID, authority_version: int, name: str) -> ToolVersion | None:  # noqa: ARG001
    tool = Tool.objects.select_related("current").filter(name=name, retired_at=None).first()
    return tool.current if tool else None


def current_version(name: str, authority_version: int, *, at: str = "") -> ToolVersion:
    """Return the version in force of the tool of that name; UnknownTool names its place."""
    version = _current(current_tenant_id(), authority_version, name)
    if version is None:
        # Not remembered: a tool that comes later raises no version.
        _current.cache_clear()
        raise UnknownTool.at(f"{at}/tool", f"there is no tool {name!r}")
    return version


@lru_cache(maxsize=10_000)
def version(tenant: UUID, version_id: UUID) -> ToolVersion:  # noqa: ARG001 - keeps tenants apart
    return ToolVersion.objects.get(pk=version_id)


@lru_cache(maxsize=10_000)
def validator(tenant: UUID, version_id: UUID) -> Validator:
    found = version(tenant, version_id)
    return Validator(found.arguments, sensitive=found.sensitive)


@lru_cache(maxsize=1000)
def effect(tenant: UUID, version_id: UUID, authority_version: int) -> effects.Effect:  # noqa: ARG001
    """Return what calls the tool; the hosts it may reach are the policy's that is in force."""
    found = version(tenant, version_id)
    secret = secret_of(found)
    return effects.effect_for(
        found.executor,
        preview=found.preview,
        reconcile=found.reconcile,
        compensate=found.compensate,
        secret=secret,
        allowed_hosts=authorizer().allowed_hosts(),
        quote_refusals=not found.sensitive,
        tenant=Tenant.objects.values_list("slug", flat=True).get(pk=tenant),
        read_secrets=_read_secrets,
    )


@lru_cache(maxsize=1000)
def verifier(tenant: UUID, version_id: UUID, authority_version: int) -> effects.Verifier:  # noqa: ARG001
    """Return who judges what the tool did, reached as the tool itself is."""
    found = version(tenant, version_id)
    if found.verifier is None:
        raise ValueError("the version has no verifier")
    return effects.judge_for(
        found.verifier,
        secret=secret_of(found),
        allowed_hosts=authorizer().allowed_hosts(),
        tenant=Tenant.objects.values_list("slug", flat=True).get(pk=tenant),
        read_secrets=_read_secrets,
    )


def _read_secrets(names: frozenset[str]) -> Mapping[str, str]:
    """Read what a call signs in with, as it is now; where it can't be read the call is not sent."""
    try:
        return secret_values(names)
    except (OperationalError, InterfaceError) as fault:
        raise effects.NotSent("The secrets could not be read.") from fault


def offers(found: ToolVersion, tool: str) -> effects.Offers:
    """Tell what the version of the tool of that name offers."""
    return effects.offers_of(
        found.executor,
        tool=tool,
        preview=found.preview,
        reconcile=found.reconcile,
        compensate=found.compensate,
    )


def authority_now() -> int:
    """Read the tenant's authority version, for what is done outside a lock."""
    return Tenant.objects.values_list("authority_version", flat=True).get(pk=current_tenant_id())


def secret_of(found: ToolVersion) -> str | None:
    """Return the tool's signing secret, opened; None where it has none."""
    sealed = Tool.objects.values_list("secret", flat=True).get(pk=found.tool_id)
    if sealed is None:
        return None
    return unseal(bytes(sealed), TOOL_SECRET, found.tool_id).decode()


@lru_cache(maxsize=10_000)
def tool_name(tenant: UUID, tool_id: UUID) -> str:  # noqa: ARG001 - keeps tenants apart
    return Tool.objects.values_list("name", flat=True).get(pk=tool_id)
