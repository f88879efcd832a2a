"""Interrupts: opened by an agent or a person, answered by people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from config.errors import Forbidden, NotFound
from interrupts import selectors
from interrupts.api import bodies, rendering, shapes
from interrupts.api.access import agent_of, may_see
from interrupts.api.runs import NOT_YOUR_RUN
from interrupts.models import InFlight, Interrupt, InterruptStatus, Reason, Run
from interrupts.services import holds, responses
from interrupts.services.holds import Asked
from interrupts.services.responses import UNSET
from tenants.api.answers import REPLAYED, answer, etag
from tenants.api.body import ID
from tenants.api.checks import Schema
from tenants.api.http import WAIT_QUERY, choice, identifier, waiting
from tenants.api.operation import operation
from tenants.api.pagination import CURSOR_QUERY, page, page_schema
from tenants.api.view import ApiCall, TenantView
from tenants.idempotency import Answer
from tenants.principal import Principal

INTERRUPT_QUERY: Final[dict[str, Schema]] = {
    "status": bodies.one_of(*InterruptStatus),
    "reason": bodies.one_of(*Reason),
    "run": ID,
    **CURSOR_QUERY,
}


def render(rows: Sequence[Interrupt], principal: Principal) -> list[dict[str, Any]]:
    names = {} if principal.is_agent else selectors.usernames(rows)
    return [rendering.interrupt(row, principal, names) for row in rows]


def interrupt_answer(
    interrupt_id: UUID,
    principal: Principal,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """Answer with the interrupt as it is now."""
    row = selectors.interrupts().get(pk=interrupt_id)
    (shown,) = render([row], principal)
    return answer(shown, status, {**etag(row.run.state_version), **(headers or {})})


class OpenInterruptView(TenantView):
    subject = Run

    @operation(
        "Interrupt a run",
        description="Its own agent, or people: `operator_stop` by whoever may stop it, the others"
        " by operators and admins. While one with the same reason and question is open: that one"
        " (200).",
        body=bodies.OPEN_INTERRUPT,
        answers={201: shapes.INTERRUPT, 200: shapes.INTERRUPT},
        refusals={
            **NOT_YOUR_RUN,
            "people-only": 403,
            "agents-only": 403,
            "run-ended": 409,
            "stale-session": 409,
            "version-mismatch": 412,
        },
        versioned=True,
    )
    def post(self, call: ApiCall, pk: UUID) -> Answer:
        body = dict(call.body)
        session = body.pop("session", None)
        body["reason"] = Reason(body["reason"])
        body["in_flight"] = InFlight(body.get("in_flight", InFlight.FINISH))
        try:
            row, is_new = holds.open_interrupt(
                call.principal, pk, asked=Asked(**body), session=session, if_match=call.if_match
            )
        except Forbidden:
            # Who may depends on the body, and is refused before the run is looked for.
            if not self.exists(pk=pk):
                raise NotFound from None
            raise
        return interrupt_answer(row.pk, call.principal, 201 if is_new else 200)


class InterruptsView(TenantView):
    @operation(
        "List interrupts",
        description="An agent sees those of its own runs.",
        query=INTERRUPT_QUERY,
        answers={200: page_schema(shapes.INTERRUPT)},
    )
    def get(self, call: ApiCall) -> Answer:
        wanted = {
            "status": choice(call.request, "status", InterruptStatus.values),
            "reason": choice(call.request, "reason", Reason.values),
            "run_id": identifier(call.request, "run"),
        }
        rows = selectors.interrupts(agent_of(call.principal)).filter(
            **{name: value for name, value in wanted.items() if value is not None}
        )
        return page(call.request, rows, lambda found: render(found, call.principal))


class InterruptView(TenantView):
    subject = Interrupt

    @operation(
        "Look at an interrupt",
        query=WAIT_QUERY,
        answers={200: shapes.INTERRUPT},
        refusals=NOT_YOUR_RUN,
        waits=True,
    )
    def get(self, call: ApiCall, pk: UUID) -> Answer:
        row = selectors.interrupts().get(pk=pk)
        run = may_see(call.principal, row.run)
        held = waiting(call, run.pk, run.state_version)
        (shown,) = render([row], call.principal)
        return answer(shown, headers={**etag(run.state_version), **held})


class ResponseView(TenantView):
    subject = Interrupt

    @operation(
        "Answer an interrupt",
        description="The same response again is answered as the first, with"
        " `Idempotent-Replayed: true`.",
        who="people",
        body=bodies.RESPOND,
        answers={200: shapes.INTERRUPT},
        refusals={
            "people-only": 403,
            "stale-checkpoint": 409,
            "already-resolved": 409,
            "decide-the-gate": 409,
            "damaged": 409,
            "checkpoint-version": 409,
            "version-mismatch": 412,
        },
        versioned=True,
    )
    def post(self, call: ApiCall, pk: UUID) -> Answer:
        body = call.body
        row, is_replay = responses.respond(
            call.principal,
            pk,
            checkpoint=UUID(body["checkpoint"]),
            resolution=body["resolution"],
            value=body.get("value", UNSET),
            note=body.get("note"),
            if_match=call.if_match,
        )
        headers = {REPLAYED: "true"} if is_replay else {}
        return interrupt_answer(row.pk, call.principal, headers=headers)
