"""Steps: proposed, looked at, and run by the agent itself where their tool says so."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from django.db.models import prefetch_related_objects

from config import jsontext
from config.keys import keyed_digest
from interrupts import selectors
from interrupts.api import bodies, rendering, shapes
from interrupts.api.access import may_see, seen_run
from interrupts.api.runs import NOT_YOUR_RUN, OF_THE_AGENT, OPERATORS, SESSIONS
from interrupts.models import Attempt, Run, Step
from interrupts.services import attempts as attempt_services
from interrupts.services import compensating, starting
from interrupts.services import steps as services
from tenants.api.answers import answer, etag, instant
from tenants.api.http import WAIT_QUERY, waiting
from tenants.api.operation import operation
from tenants.api.pagination import CURSOR_QUERY, page, page_schema
from tenants.api.view import ApiCall, TenantView
from tenants.idempotency import Answer
from tenants.principal import Principal
from tenants.scope import current_tenant_id

OF_AN_ATTEMPT: Final = {**NOT_YOUR_RUN, "agents-only": 403, "stale-claim": 409}


def step_answer(step: Step, principal: Principal, status: int = 200) -> Answer:
    """Answer with the step as it is now."""
    now = selectors.steps().get(pk=step.pk)
    shown = rendering.step(selectors.shown_step(now), principal)
    return answer(shown, status, etag(now.run.state_version))


class StepsView(TenantView):
    subject = Run

    @operation(
        "Propose a step, or the steps of one turn as a group",
        description="Each is judged by policy at once. A known `key` with the same call gives its"
        " step (200), also while the run is suspended or ended.",
        who="agents",
        body=bodies.PROPOSE,
        answers={201: shapes.PROPOSED, 200: shapes.PROPOSED},
        refusals={
            **SESSIONS,
            "run-suspended": 409,
            "step-key-reused": 409,
            "unknown-tool": 422,
            "invalid-arguments": 422,
        },
        versioned=True,
    )
    def post(self, call: ApiCall, pk: UUID) -> Answer:
        body = call.body
        single = "steps" not in body
        proposals = [_without(body, bodies.BESIDE_STEPS)] if single else body["steps"]
        group = body.get("group")
        made, is_new = services.propose(
            call.principal,
            pk,
            proposals=proposals,
            session=body.get("session"),
            parallel=body.get("parallel", False),
            group=UUID(group) if group else None,
            if_match=call.if_match,
            single=single,
        )
        prefetch_related_objects(made, "run")
        shown = [
            rendering.step(one, call.principal)
            for one in selectors.shown_steps(made, _arguments_of(proposals))
        ]
        version = made[0].run.state_version
        told = shown[0] if single else {"steps": shown, "state_version": version}
        return answer(told, 201 if is_new else 200, etag(version))

    @operation(
        "List a run's steps",
        query=CURSOR_QUERY,
        answers={200: page_schema(shapes.STEP)},
        refusals=NOT_YOUR_RUN,
    )
    def get(self, call: ApiCall, pk: UUID) -> Answer:
        seen_run(call.principal, pk)

        def render(rows: Sequence[Step]) -> list[dict[str, Any]]:
            return [rendering.step(one, call.principal) for one in selectors.shown_steps(rows)]

        return page(call.request, selectors.steps().filter(run_id=pk), render, by="position")


def _without(body: Mapping[str, Any], names: frozenset[str]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if name not in names}


def _arguments_of(proposals: Sequence[Mapping[str, Any]]) -> dict[bytes, Any]:
    """Return the arguments that came with the request by the digest they are stored under."""
    tenant = current_tenant_id()
    texts = [jsontext.canonical(proposal["arguments"]) for proposal in proposals]
    return {keyed_digest(tenant, text): json.loads(text) for text in texts}


class StepView(TenantView):
    subject = Step

    @operation(
        "Look at a step",
        query=WAIT_QUERY,
        answers={200: shapes.STEP},
        refusals=NOT_YOUR_RUN,
        waits=True,
    )
    def get(self, call: ApiCall, pk: UUID) -> Answer:
        # The version is read first: what is read after it may be newer, never older.
        step = selectors.steps().get(pk=pk)
        run = may_see(call.principal, step.run)
        held = waiting(call, run.pk, run.state_version)
        shown = rendering.step(selectors.shown_step(step), call.principal)
        return answer(shown, headers={**etag(run.state_version), **held})


class ClaimStepView(TenantView):
    subject = Step

    @operation(
        "Begin a step that the agent runs itself",
        description="Send an `Idempotency-Key`: a claim whose answer was lost is answered again.",
        who="agents",
        body=bodies.CLAIM_STEP,
        answers={200: shapes.CLAIMED_STEP},
        refusals={
            **OF_THE_AGENT,
            "not-authorized": 409,
            "run-suspended": 409,
            "run-ended": 409,
            "already-claimed": 409,
            "stale-session": 409,
        },
    )
    def post(self, call: ApiCall, pk: UUID) -> Answer:
        row, step, arguments = starting.claim_step(
            call.principal, pk, session=call.body.get("session")
        )
        shown = rendering.claimed(row, step, arguments)
        return answer(shown, headers=etag(row.run.state_version))


class ReconciliationView(TenantView):
    subject = Step

    @operation(
        "Say what became of a step of unknown outcome",
        who="agents",
        body=bodies.RECONCILIATION,
        answers={200: shapes.STEP},
        refusals={**NOT_YOUR_RUN, "agents-only": 403, "not-unknown": 409},
    )
    def post(self, call: ApiCall, pk: UUID) -> Answer:
        step = attempt_services.reconcile(call.principal, pk, **call.body)
        return step_answer(step, call.principal)


class CompensationView(TenantView):
    subject = Step

    @operation(
        "Have an effect undone",
        description="Also of an ended run. Wanted or done already: 202, and nothing changes.",
        who="people",
        roles=OPERATORS,
        body=bodies.COMPENSATE,
        answers={202: shapes.STEP},
        refusals={"people-only": 403, "not-compensable": 409},
    )
    def post(self, call: ApiCall, pk: UUID) -> Answer:
        step = compensating.compensate_step(call.principal, pk, **call.body)
        return step_answer(step, call.principal, 202)


class HeartbeatView(TenantView):
    subject = Attempt

    @operation(
        "Keep an attempt's lease",
        description="Also while the run is suspended or cancelling.",
        who="agents",
        body=bodies.HEARTBEAT,
        answers={200: shapes.BEAT},
        refusals=OF_AN_ATTEMPT,
    )
    def post(self, call: ApiCall, pk: UUID) -> Answer:
        row = attempt_services.heartbeat(call.principal, pk, fence=call.body["fence"])
        return answer(
            {
                "lease_expires_at": instant(row.lease_expires_at),
                "cancel_requested": row.cancel_requested,
            }
        )


class ReceiptView(TenantView):
    subject = Attempt

    @operation(
        "Report what came of an attempt",
        description="A fact: taken also after the lease lapsed, after an `unknown`, and for a"
        " superseded attempt. The same receipt again is answered 200.",
        who="agents",
        body=bodies.RECEIPT,
        answers={201: shapes.STEP, 200: shapes.STEP},
        refusals={**OF_AN_ATTEMPT, "receipt-conflict": 409},
    )
    def post(self, call: ApiCall, pk: UUID) -> Answer:
        body = dict(call.body)
        if "cost" in body:
            body["cost"] = Decimal(body["cost"])
        row, is_new = attempt_services.report(call.principal, pk, **body)
        return step_answer(Step(pk=row.step_id), call.principal, 201 if is_new else 200)
