"""Rules that admins offer to everybody who decides a tool; they skip nobody's proof."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

from delegation import beside
from delegation.api import bodies, shapes
from delegation.models import DelegationTemplate
from delegation.services import rules
from tenants.api.answers import answer, instant
from tenants.api.operation import operation
from tenants.api.pagination import CURSOR_QUERY, page, page_schema
from tenants.api.view import ApiCall, TenantView
from tenants.idempotency import Answer

_REFUSALS: Final = {"people-only": 403}
_OF_ADMINS: Final = {**_REFUSALS, "forbidden": 403}


def rendered(found: Sequence[DelegationTemplate]) -> list[dict[str, Any]]:
    return [
        {
            "id": one.row.pk,
            "tool": one.tool,
            "tool_version": one.row.tool_number,
            "risk": one.row.risk,
            "sentence": one.sentence,
            "predicate": one.row.predicate,
            "published_by": one.row.published_by.username,
            "created_at": instant(one.row.created_at),
            "withdrawn_at": instant(one.row.withdrawn_at),
            "sha256": one.row.sha256,
        }
        for one in beside.templates_shown(found)
    ]


def _one(row: DelegationTemplate) -> dict[str, Any]:
    return rendered([row])[0]


class TemplatesView(TenantView):
    @operation(
        "List the templates of rules",
        who="people",
        query=CURSOR_QUERY,
        answers={200: page_schema(shapes.TEMPLATE)},
        refusals={**_REFUSALS, "invalid-query": 422},
    )
    def get(self, call: ApiCall) -> Answer:
        rows = DelegationTemplate.objects.select_related("published_by")
        return page(call.request, rows, rendered)

    @operation(
        "Offer a rule to everybody",
        description="It is suggested to whoever decides the tool, once their own answers are"
        " proved; each turns it on, or not.",
        who="people",
        body=bodies.BY_HAND,
        answers={201: shapes.TEMPLATE},
        refusals={**_OF_ADMINS, "not-delegable": 422, "too-many-rules": 422},
    )
    def post(self, call: ApiCall) -> Answer:
        made = rules.publish_template(call.principal, call.body["tool"], call.body["predicate"])
        return answer(_one(made), 201)


class WithdrawTemplateView(TenantView):
    subject = DelegationTemplate

    @operation(
        "Offer a template no more",
        description="What people took up stays theirs. Again is no change.",
        who="people",
        answers={200: shapes.TEMPLATE},
        refusals=_OF_ADMINS,
    )
    def post(self, call: ApiCall, pk: UUID) -> Answer:
        return answer(_one(rules.withdraw_template(call.principal, pk)))
