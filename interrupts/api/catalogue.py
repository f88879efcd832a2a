"""What a tenant's agents may propose, and the switch that stops it."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from interrupts import selectors
from interrupts.api import bodies, rendering, shapes
from interrupts.api.bodies import one_of
from interrupts.api.runs import OPERATORS
from interrupts.models import Freeze, FreezeScope
from interrupts.services import freezes as services
from tenants.api.answers import answer, nothing
from tenants.api.checks import Schema
from tenants.api.http import choice, plain
from tenants.api.operation import operation
from tenants.api.pagination import CURSOR_QUERY, page, page_schema
from tenants.api.view import ApiCall, TenantView
from tenants.errors import InvalidQuery
from tenants.idempotency import Answer

REACH_QUERY: Final[dict[str, Schema]] = {
    "scope": {**one_of(*FreezeScope), "description": "What is to be frozen; absent: tenant."},
    "name": {"type": "string", "description": "Of the agent or the tool."},
}


class ToolsView(TenantView):
    @operation(
        "List the tools that can be proposed",
        query=CURSOR_QUERY,
        answers={200: page_schema(shapes.TOOL)},
    )
    def get(self, call: ApiCall) -> Answer:
        return page(
            call.request,
            selectors.tools(),
            lambda rows: [rendering.tool(row, call.principal) for row in rows],
        )


class ToolView(TenantView):
    @operation("Look at a tool", answers={200: shapes.TOOL}, refusals={"not-found": 404})
    def get(self, call: ApiCall, name: str) -> Answer:
        return answer(rendering.tool(selectors.tool(name), call.principal))

    def exists(self, **kwargs: Any) -> bool:
        return selectors.is_tool(kwargs["name"])


class FreezesView(TenantView):
    @operation(
        "Let no effect in scope start",
        description="Once it has answered none does, in any worker; proposals and decisions are"
        " still taken. The answer lists the attempts that were already in flight.",
        who="people",
        roles=OPERATORS,
        body=bodies.FREEZE,
        answers={201: shapes.FROZEN},
        refusals={"people-only": 403},
        # What is in flight is known once the freeze has committed and older intents are drained.
        own_transaction=True,
    )
    def post(self, call: ApiCall) -> Answer:
        row, in_flight = services.freeze(call.principal, **call.body)
        return answer({**rendering.freeze(row), "in_flight": in_flight}, 201)

    @operation(
        "List the freezes in force",
        who="people",
        query=CURSOR_QUERY,
        answers={200: page_schema(shapes.FREEZE)},
        refusals={"people-only": 403},
    )
    def get(self, call: ApiCall) -> Answer:
        return page(
            call.request, selectors.freezes(), lambda rows: list(map(rendering.freeze, rows))
        )


class FreezeReachView(TenantView):
    @operation(
        "Ask what a freeze would stop",
        description="Now, by tool: what is in flight would end, what is held would start next if"
        " nothing is frozen, what is waiting once it is decided. Nothing is recorded.",
        who="people",
        query=REACH_QUERY,
        answers={200: shapes.REACH},
        refusals={"people-only": 403, "invalid-query": 422},
    )
    def get(self, call: ApiCall) -> Answer:
        scope = choice(call.request, "scope", FreezeScope.values) or FreezeScope.TENANT
        name = plain(call.request, "name") or ""
        if fault := services.name_fault(scope, name):
            raise InvalidQuery.at("/name", fault)
        return answer(rendering.reach(scope, name, selectors.freeze_reach(scope, name)))


class FreezeView(TenantView):
    subject = Freeze

    @operation(
        "Lift a freeze",
        description="What it held goes on; again is no change.",
        who="people",
        roles=OPERATORS,
        answers={204: None},
        refusals={"people-only": 403},
    )
    def delete(self, call: ApiCall, pk: UUID) -> Answer:
        services.thaw(call.principal, pk)
        return nothing()
