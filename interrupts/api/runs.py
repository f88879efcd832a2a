"""Runs: started, looked at, driven by their agent, cancelled by people."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from django.db.models import QuerySet

from interrupts import selectors
from interrupts.api import bodies, rendering, shapes
from interrupts.api.access import agent_of, may_read_state, may_see, seen_run
from interrupts.models import Checkpoint, Run, RunStatus, Suspension
from interrupts.services import checkpoints as checkpoint_services
from interrupts.services import forks as fork_services
from interrupts.services import runs as services
from interrupts.services.runs import owner_silent_at
from tenants.api.answers import answer, etag, instant
from tenants.api.checks import Schema
from tenants.api.http import WAIT_QUERY, choice, plain, waiting
from tenants.api.operation import operation
from tenants.api.pagination import CURSOR_QUERY, page, page_schema
from tenants.api.parsing import MIB
from tenants.api.view import ApiCall, TenantView
from tenants.idempotency import Answer
from tenants.models import Role

OPERATORS: Final = frozenset({Role.OPERATOR, Role.ADMIN})
STATE_LIMIT: Final = 17 * MIB  # of a body with an agent's state, which may have 16 MiB
NOT_YOUR_RUN: Final = {"not-your-run": 403}
OF_THE_AGENT: Final = {**NOT_YOUR_RUN, "agents-only": 403, "version-mismatch": 412}
SESSIONS: Final = {**OF_THE_AGENT, "run-ended": 409, "stale-session": 409}
RUN_QUERY: Final[dict[str, Schema]] = {
    "status": bodies.one_of(*RunStatus),
    "suspension": bodies.one_of(*Suspension),
    "workflow": {"type": "string"},
    "agent": {"type": "string", "description": "The agent's name."},
    **CURSOR_QUERY,
}


def run_answer(run_id: UUID, status: int = 200) -> Answer:
    """Answer with the run as it is now."""
    shown = selectors.shown_run(run_id)
    return answer(rendering.run(shown), status, etag(shown.run.state_version))


def run_page(call: ApiCall, rows: QuerySet[Run]) -> Answer:
    return page(call.request, filtered(call, rows), render_runs)


def filtered(call: ApiCall, rows: QuerySet[Run]) -> QuerySet[Run]:
    """Keep the runs that the query asks for."""
    wanted = {
        "status": choice(call.request, "status", RunStatus.values),
        "suspension": choice(call.request, "suspension", Suspension.values),
        "workflow": plain(call.request, "workflow"),
        "agent__name": plain(call.request, "agent"),
    }
    return rows.filter(**{name: value for name, value in wanted.items() if value is not None})


def render_runs(rows: Sequence[Run]) -> list[dict[str, Any]]:
    return [rendering.run(shown) for shown in selectors.shown_runs(rows)]


class RunsView(TenantView):
    @operation(
        "Start a run",
        description="A child takes over its parent's requester where it names none.",
        who="agents",
        body=bodies.START_RUN,
        answers={201: shapes.RUN},
        refusals={"agents-only": 403, **NOT_YOUR_RUN, "run-suspended": 409, "run-ended": 409},
    )
    def post(self, call: ApiCall) -> Answer:
        body = dict(call.body)
        parent = body.pop("parent", None)
        run = services.start_run(call.principal, parent=UUID(parent) if parent else None, **body)
        return run_answer(run.pk, 201)

    @operation(
        "List runs",
        description="An agent sees its own.",
        query=RUN_QUERY,
        answers={200: page_schema(shapes.RUN)},
    )
    def get(self, call: ApiCall) -> Answer:
        return run_page(call, selectors.runs(agent_of(call.principal)))


class RunView(TenantView):
    subject = Run

    @operation(
        "Look at a run",
        query=WAIT_QUERY,
        answers={200: shapes.RUN},
        refusals=NOT_YOUR_RUN,
        waits=True,
    )
    def get(self, call: ApiCall, pk: UUID) -> Answer:
        shown = selectors.shown_run(pk)
        version = may_see(call.principal, shown.run).state_version
        held = waiting(call, pk, version)
        return answer(rendering.run(shown), headers={**etag(version), **held})


class ChildrenView(TenantView):
    subject = Run

    @operation(
        "List the runs that a run started",
        query=RUN_QUERY,
        answers={200: page_schema(shapes.RUN)},
        refusals=NOT_YOUR_RUN,
    )
    def get(self, call: ApiCall, pk: UUID) -> Answer:
        seen_run(call.principal, pk)
        return run_page(call, selectors.runs(agent_of(call.principal)).filter(parent_id=pk))


class ClaimRunView(TenantView):
    subject = Run

    @operation(
        "Take a run for the calling process",
        description="A new session: calls that name an older one are refused from now on. Also"
        " while the run is suspended; closes an open `owner_lost` interrupt.",
        who="agents",
        answers={200: shapes.CLAIMED_RUN},
        refusals={**OF_THE_AGENT, "run-ended": 409},
        versioned=True,
    )
    def post(self, call: ApiCall, pk: UUID) -> Answer:
        run = services.claim_run(call.principal, pk, if_match=call.if_match)
        return answer(
            {
                "session": run.session,
                "lease_expires_at": instant(owner_silent_at(run)),
                "state_version": run.state_version,
            },
            headers=etag(run.state_version),
        )


class UsageView(TenantView):
    subject = Run

    @operation(
        "Report what the agent used",
        description="Counts against the budget, so send an `Idempotency-Key`; beyond a limit the"
        " run is suspended at once. Also tells what the agent was told and has not acknowledged.",
        who="agents",
        body=bodies.REPORT_USAGE,
        answers={200: shapes.USAGE_REPORTED},
        refusals=SESSIONS,
        versioned=True,
    )
    def post(self, call: ApiCall, pk: UUID) -> Answer:
        body = call.body
        run = services.report_usage(
            call.principal,
            pk,
            tokens=body.get("tokens", 0),
            cost=Decimal(body.get("cost", "0")),
            seconds=_seconds(body.get("seconds", 0)),
            session=body.get("session"),
            if_match=call.if_match,
        )
        return answer(
            {
                "stop_requested": run.status != RunStatus.RUNNING,
                "guidance": [rendering.guidance(one) for one in selectors.unacknowledged(run)],
                "usage": rendering.usage(run),
                "state_version": run.state_version,
            },
            headers=etag(run.state_version),
        )


def _seconds(given: float) -> Decimal:
    """Return a duration as the run keeps it: to the millisecond."""
    return Decimal(str(given)).quantize(Decimal("0.001"))


class AcknowledgeView(TenantView):
    subject = Run

    @operation(
        "Say that the agent has read its guidance",
        who="agents",
        body=bodies.ACKNOWLEDGE,
        answers={200: shapes.RUN},
        refusals=SESSIONS,
        versioned=True,
    )
    def post(self, call: ApiCall, pk: UUID) -> Answer:
        services.acknowledge(
            call.principal,
            pk,
            guidance=[UUID(one) for one in call.body["guidance"]],
            session=call.body.get("session"),
            if_match=call.if_match,
        )
        return run_answer(pk)


class CompleteView(TenantView):
    subject = Run

    @operation(
        "End a run as completed",
        description="Where a milestone of policy asks first, the run is suspended by an interrupt"
        " (`milestone`), and is completed with this output once a person agrees to it.",
        who="agents",
        body=bodies.COMPLETE_RUN,
        answers={200: shapes.RUN},
        refusals={
            **SESSIONS,
            "run-suspended": 409,
            "steps-outstanding": 409,
            "completion-denied": 409,
        },
        versioned=True,
    )
    def post(self, call: ApiCall, pk: UUID) -> Answer:
        services.complete_run(call.principal, pk, **call.body, if_match=call.if_match)
        return run_answer(pk)


class FailView(TenantView):
    subject = Run

    @operation(
        "End a run as failed",
        description="Its children are cancelled.",
        who="agents",
        body=bodies.FAIL_RUN,
        answers={200: shapes.RUN},
        refusals={**SESSIONS, "run-suspended": 409, "steps-outstanding": 409},
        versioned=True,
    )
    def post(self, call: ApiCall, pk: UUID) -> Answer:
        services.fail_run(call.principal, pk, **call.body, if_match=call.if_match)
        return run_answer(pk)


class CancelView(TenantView):
    subject = Run

    @operation(
        "Cancel a run and every run below it",
        description="What is in flight is finished first; again while it is cancelling: 202.",
        who="people",
        roles=OPERATORS,
        body=bodies.CANCEL_RUN,
        answers={202: shapes.RUN},
        refusals={"people-only": 403, "run-ended": 409, "version-mismatch": 412},
        versioned=True,
    )
    def post(self, call: ApiCall, pk: UUID) -> Answer:
        services.cancel_run(call.principal, pk, **call.body, if_match=call.if_match)
        return run_answer(pk, 202)


class ForkView(TenantView):
    subject = Run

    @operation(
        "Go on from a checkpoint of an ended run, as a new run",
        description="Of the same agent, without steps and usage. What succeeded under a step's"
        " `key` in the old run is not done again: proposing it answers with that step.",
        who="people",
        roles=OPERATORS,
        body=bodies.FORK_RUN,
        answers={201: shapes.RUN},
        refusals={
            "people-only": 403,
            "run-not-ended": 409,
            "damaged": 409,
            "checkpoint-version": 409,
        },
        versioned=True,
    )
    def post(self, call: ApiCall, pk: UUID) -> Answer:
        fork = fork_services.fork_run(call.principal, pk, **call.body)
        return run_answer(fork.pk, 201)


class CheckpointsView(TenantView):
    subject = Run

    @operation(
        "Put the agent's own state",
        description="Whole, or as what was added to the lists of an earlier one. It moves the"
        " run's `checkpoint`, never an interrupt's.",
        who="agents",
        body=bodies.PUT_STATE,
        limit=STATE_LIMIT,
        answers={201: shapes.CHECKPOINT},
        refusals=SESSIONS,
        versioned=True,
    )
    def post(self, call: ApiCall, pk: UUID) -> Answer:
        row = checkpoint_services.put_state(call.principal, pk, **call.body, if_match=call.if_match)
        shown = {**rendering.checkpoint(row), "agent_state": rendering.agent_state(row)}
        return answer(shown, 201, etag(row.state_version))

    @operation(
        "List a run's checkpoints",
        query=CURSOR_QUERY,
        answers={200: page_schema(shapes.CHECKPOINT_LISTED)},
        refusals=NOT_YOUR_RUN,
    )
    def get(self, call: ApiCall, pk: UUID) -> Answer:
        seen_run(call.principal, pk)
        rows = selectors.checkpoints(pk)
        return page(
            call.request, rows, lambda found: list(map(rendering.checkpoint, found)), by="sequence"
        )


class CheckpointView(TenantView):
    subject = Checkpoint

    @operation(
        "Look at a checkpoint",
        description="With the agent's state whole for the run's own agent, operators and admins.",
        answers={200: shapes.CHECKPOINT},
        refusals={**NOT_YOUR_RUN, "damaged": 409, "checkpoint-version": 409},
    )
    def get(self, call: ApiCall, pk: UUID) -> Answer:
        row = selectors.checkpoint(pk)
        may_see(call.principal, row.run)
        state = rendering.agent_state(row)
        if state is not None and may_read_state(call.principal, row):
            state["data"] = checkpoint_services.agent_state_of(row)
        return answer({**rendering.checkpoint(row), "agent_state": state})
