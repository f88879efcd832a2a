"""Who decides for whom."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

from approvals.api import bodies, shapes
from approvals.models import Substitution
from approvals.services import substitutions
from tenants.api.answers import REPLAYED, answer, instant
from tenants.api.checks import read_instant
from tenants.api.operation import operation
from tenants.api.pagination import CURSOR_QUERY, page, page_schema
from tenants.api.view import ApiCall, TenantView
from tenants.idempotency import Answer

_REFUSALS: Final = {"people-only": 403}


def rendered(row: Substitution) -> dict[str, Any]:
    return {
        "id": row.pk,
        "person": row.person.username,
        "substitute": row.substitute.username,
        "starts_at": instant(row.starts_at),
        "ends_at": instant(row.ends_at),
        "ended_at": instant(row.ended_at),
    }


class SubstitutionsView(TenantView):
    @operation(
        "List who decides for whom",
        description="What is not over, now and to come: the caller's own and those they stand in"
        " for; for admins all.",
        who="people",
        query=CURSOR_QUERY,
        answers={200: page_schema(shapes.SUBSTITUTION)},
        refusals={**_REFUSALS, "invalid-query": 422},
    )
    def get(self, call: ApiCall) -> Answer:
        def render(rows: Sequence[Substitution]) -> list[dict[str, Any]]:
            return [rendered(row) for row in rows]

        return page(call.request, substitutions.seen_by(call.principal), render)

    @operation(
        "Have another decide for you",
        description="By your authority and its limits, until `ends_at`. An admin says it of"
        " anybody, and never makes themself the substitute. Just so again is answered 200, with"
        " `Idempotent-Replayed: true`.",
        who="people",
        body=bodies.SUBSTITUTE,
        answers={201: shapes.SUBSTITUTION, 200: shapes.SUBSTITUTION},
        refusals={**_REFUSALS, "own-authority": 403},
    )
    def post(self, call: ApiCall) -> Answer:
        times = {
            name: read_instant(call.body[name])
            for name in ("starts_at", "ends_at")
            if name in call.body
        }
        made = substitutions.set_as(call.principal, **{**call.body, **times})
        headers = {REPLAYED: "true"} if made.replayed else {}
        return answer(rendered(made.row), 200 if made.replayed else 201, headers)


class SubstitutionView(TenantView):
    subject = Substitution

    @operation(
        "End a substitution at once",
        description="The person, the substitute and admins. What was approved by it and has not"
        " started counts no more. One that is over is answered alike.",
        who="people",
        answers={200: shapes.SUBSTITUTION},
        refusals=_REFUSALS,
    )
    def delete(self, call: ApiCall, pk: UUID) -> Answer:
        return answer(rendered(substitutions.end_as(call.principal, pk)))
