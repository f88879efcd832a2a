"""What policy would say of a call, without proposing it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from approvals import circumstances, judging, reaching
from approvals.policy import Verdict
from config.errors import faults
from interrupts import catalogue
from interrupts.errors import InvalidArguments
from tenants.clock import database_now
from tenants.models import Tenant
from tenants.principal import Principal
from tenants.scope import current_tenant_id


def check_policy(
    principal: Principal,
    *,
    tool: str,
    arguments: dict[str, Any],
    at: datetime | None = None,
    usage: dict[str, Any] | None = None,
    **said: Any,
) -> tuple[Verdict, int]:
    """Return what policy says of the call, and by which version; nothing is recorded.

    ``said`` are confidence, risk_score, milestone and workflow, each where it is given. The call
    is taken for the first step of a run that has used nothing, now; or at another time, with what
    ``usage`` names as used. Policy alone speaks: no delegation, budget, twin or freeze. Raises
    UnknownTool, InvalidArguments.
    """
    tenant = current_tenant_id()
    authority = Tenant.objects.values_list("authority_version", flat=True).get(pk=tenant)
    version = catalogue.current_version(tool, authority)
    if wrong := catalogue.validator(tenant, version.pk).validate(arguments):
        raise InvalidArguments(errors=faults(wrong, "/arguments"))
    in_force = judging.policy(judging.number_under(authority))
    supposed = circumstances.Supposed(
        at=at or database_now(),
        usage=usage or {},
        agent=principal.id if principal.is_agent else None,
    )
    subject = judging.subject(
        tool,
        version,
        arguments,
        said,
        supposed.known(in_force.compiled, tool, version.tool_id),
        reaching.supposed(in_force.compiled, tool, said.get("workflow", "")),
        agent=principal.name if principal.is_agent else "",
        workflow=said.get("workflow", ""),
    )
    return in_force.compiled.judge(subject), in_force.number
