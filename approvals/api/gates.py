"""Gates and what people say of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from django.db.models import QuerySet

from approvals import hot, learned, selectors
from approvals.api import bodies, rendering, shapes
from approvals.errors import AlreadyDecided, DigestMismatch, NotYourStage
from approvals.learned import Learned
from approvals.models import FINAL_GATES, Ceremony, Gate, GateState, Verdict
from approvals.services import assignments, bulk, decisions, extensions, gates
from approvals.services.bulk import Chosen
from approvals.services.decisions import Decided
from approvals.shown import GateShown
from interrupts.api.bodies import one_of
from interrupts.api.runs import NOT_YOUR_RUN
from interrupts.models import Risk
from tenants import refusals
from tenants.api.answers import REPLAYED, answer, etag
from tenants.api.auth import is_fresh
from tenants.api.checks import Schema, read_instant
from tenants.api.http import WAIT_QUERY, choice, plain, waiting
from tenants.api.operation import operation
from tenants.api.pagination import CURSOR_QUERY, page, page_schema
from tenants.api.view import ApiCall, TenantView
from tenants.errors import FreshSignInRequired
from tenants.idempotency import Answer, KeyName
from tenants.principal import Principal
from tenants.statements import Statement

GATE_QUERY: Final[dict[str, Schema]] = {
    "state": one_of(*GateState),
    "mine": {
        **one_of("true", "false"),
        "description": "`true`: those that wait for you; with a final `state`, those you had a"
        " say in.",
    },
    "tool": {"type": "string"},
    "risk": one_of(*Risk),
    **CURSOR_QUERY,
}
_DECISION_REFUSALS: Final = {
    "people-only": 403,
    "not-an-approver": 403,
    "not-your-stage": 403,
    "own-request": 403,
    "beyond-authority": 403,
    "fresh-sign-in-required": 403,
    "gate-expired": 410,
    "already-decided": 409,
    "gate-preparing": 409,
    "digest-mismatch": 409,
    "damaged": 409,
    "checkpoint-version": 409,
    "version-mismatch": 412,
    "decision-not-allowed": 422,
    "confirmation-required": 422,
    "unknown-reason": 422,
    "reason-required": 422,
    "invalid-arguments": 422,
    "denied-by-policy": 422,
}


def gate_answer(
    gate: Gate,
    principal: Principal,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    shown: GateShown | None = None,
) -> Answer:
    """Answer with the gate as this caller is shown it."""
    if shown is None:
        shown = selectors.shown_gate(gate, None if principal.is_agent else principal.id)
    version = etag(gate.run.state_version)
    return answer(rendering.gate(shown, principal), status, {**version, **(headers or {})})


class GatesView(TenantView):
    @operation(
        "List gates",
        description="An agent sees those of its own runs.",
        query=GATE_QUERY,
        answers={200: page_schema(shapes.GATE)},
    )
    def get(self, call: ApiCall) -> Answer:
        principal = call.principal

        def render(found: Any) -> list[dict[str, Any]]:
            viewer = None if principal.is_agent else principal.id
            return [
                rendering.gate(shown, principal) for shown in selectors.shown_gates(found, viewer)
            ]

        return page(call.request, _listed(call), render)


def _listed(call: ApiCall) -> QuerySet[Gate]:
    request, principal = call.request, call.principal
    state = choice(request, "state", GateState.values)
    rows = selectors.gates(principal.id if principal.is_agent else None)
    if choice(request, "mine", ("true", "false")) == "true":
        rows = selectors.mine(principal.id, settled=state in FINAL_GATES)
    if state is not None:
        rows = rows.filter(state=state)
    if (tool := plain(request, "tool")) is not None:
        rows = rows.filter(tool__name=tool)
    if (risk := choice(request, "risk", Risk.values)) is not None:
        rows = rows.filter(risk=risk)
    return rows


class GateView(TenantView):
    subject = Gate

    @operation(
        "Look at a gate",
        description="That a person was shown it is kept: to approve what is more than of low risk"
        " one must have opened what the digest names.",
        query=WAIT_QUERY,
        answers={200: shapes.GATE},
        refusals=NOT_YOUR_RUN,
        waits=True,
    )
    def get(self, call: ApiCall, pk: UUID) -> Answer:
        shown = gates.look_at_gate(call.principal, pk)
        run = shown.gate.run
        held = waiting(call, run.pk, run.state_version)
        headers = {**etag(run.state_version), **held}
        made = rendering.gate(shown, call.principal, _learned(call.principal, shown))
        return answer(made, headers=headers)


def _learned(principal: Principal, shown: GateShown) -> Learned | None:
    """Return what is learned of a person's answers; None where they do not decide the gate."""
    if principal.is_agent or not shown.may_decide:
        return None
    return learned.of_gate(shown.gate, principal.id)


class DecisionsView(TenantView):
    subject = Gate

    @operation(
        "Decide a gate",
        description="Exactly the same decision of the same person again is answered 200, with"
        " `Idempotent-Replayed: true`. Where the gate shows something else by now, or another has"
        " taken its place, or another stage of it is open, the refusal carries that gate as `gate`.",
        who="people",
        body=bodies.DECIDE,
        answers={201: shapes.GATE, 200: shapes.GATE},
        refusals=_DECISION_REFUSALS,
        versioned=True,
        own_transaction=True,
    )
    def post(self, call: ApiCall, pk: UUID) -> Answer:
        keyed = "HTTP_IDEMPOTENCY_KEY" in call.request.META
        made: list[Answer] = []
        if call.body["verdict"] == Verdict.APPROVE and not is_fresh(call.request):
            _refuse_what_cannot_be_undone(pk)

        def keep(decided: Decided) -> Answer:
            made.append(_decision_answer(call, decided))
            return made[0]

        try:
            decided = decisions.decide_gate(
                call.principal,
                pk,
                held=hot.seen(pk, call.found),
                **call.body,
                if_match=call.if_match,
                answer=keep if keyed else None,
            )
        except (AlreadyDecided, DigestMismatch, NotYourStage) as refusal:
            refusal.gate = _gate_now(pk, call.principal)
            raise
        return made[0] if made else _decision_answer(call, decided)

    def beside(self, **kwargs: Any) -> Statement:
        return hot.looking(kwargs["pk"])

    def at_once(self, call: ApiCall, name: KeyName, **kwargs: Any) -> Answer | None:
        if not call.if_match.any or not is_fresh(call.request):
            return None
        return decisions.approve_at_once(
            call.principal,
            hot.seen(kwargs["pk"], call.found),
            name,
            call.body,
            lambda decided: _decision_answer(call, decided),
        )


class BulkDecisionsView(TenantView):
    @operation(
        "Approve several gates",
        description="Each is decided for itself, as by itself: what is refused of one keeps no"
        " other back. Only what is of low risk, can be undone and takes no ceremony; the rest is"
        " `not-in-bulk`. `counted` is a vote where more are needed. The same request again leaves"
        " what was approved as it is, and approves the rest.",
        who="people",
        body=bodies.BULK,
        answers={200: shapes.BULK},
        refusals={"people-only": 403},
        own_transaction=True,
    )
    def post(self, call: ApiCall) -> Answer:
        chosen = [Chosen(UUID(one["gate"]), one["digest"]) for one in call.body["decisions"]]
        told = bulk.approve_together(call.principal, chosen)
        for one in told:
            if one.problem is not None:
                refusals.tell(call.principal, call.request, one.problem, one.gate)
        return answer({"results": [rendering.told(one) for one in told]})


def _decision_answer(call: ApiCall, decided: Decided) -> Answer:
    if decided.replayed:
        return gate_answer(decided.gate, call.principal, headers={REPLAYED: "true"})
    return gate_answer(decided.gate, call.principal, 201, shown=decided.shown)


def _refuse_what_cannot_be_undone(pk: UUID) -> None:
    """Refuse an approval from a session whose person gave their password long ago."""
    if Gate.objects.only("ceremony").get(pk=pk).ceremony == Ceremony.TYPED:
        raise FreshSignInRequired(
            "Sign in again, or give a token, to approve what can't be undone."
        )


def _gate_now(gate_id: UUID, principal: Principal) -> dict[str, Any]:
    gate = gates.newest_gate(selectors.gates().get(pk=gate_id))
    shown = rendering.gate(selectors.shown_gate(gate, principal.id), principal)
    plain_json: dict[str, Any] = json.loads(answer(shown).body)
    return plain_json


class AssignmentView(TenantView):
    subject = Gate

    @operation(
        "Hand a gate to another who may decide it",
        description="For whom it waits, and operators and admins. It stands first in that person's"
        " inbox and leaves the caller's; whoever may decide it still may.",
        who="people",
        body=bodies.REASSIGN,
        answers={200: shapes.GATE},
        refusals={
            "people-only": 403,
            "not-an-approver": 403,
            "not-your-stage": 403,
            "own-request": 403,
            "beyond-authority": 403,
            "gate-expired": 410,
            "already-decided": 409,
            "version-mismatch": 412,
        },
        versioned=True,
    )
    def post(self, call: ApiCall, pk: UUID) -> Answer:
        assignments.reassign_gate(call.principal, pk, **call.body, if_match=call.if_match)
        return gate_answer(selectors.gates().get(pk=pk), call.principal)


class ExtensionView(TenantView):
    subject = Gate

    @operation(
        "Give a gate more time",
        description="Whoever may decide it may have it expire later: up to `extendable_until`,"
        " never sooner. What its expiry does stays as it is; people are reminded anew.",
        who="people",
        body=bodies.EXTEND,
        answers={200: shapes.GATE},
        refusals={
            "people-only": 403,
            "not-an-approver": 403,
            "own-request": 403,
            "beyond-authority": 403,
            "not-your-stage": 403,
            "gate-expired": 410,
            "already-decided": 409,
            "not-extendable": 409,
            "version-mismatch": 412,
        },
        versioned=True,
    )
    def post(self, call: ApiCall, pk: UUID) -> Answer:
        extensions.extend_gate(
            call.principal,
            pk,
            expires_at=read_instant(call.body["expires_at"]),
            note=call.body["note"],
            if_match=call.if_match,
        )
        return gate_answer(selectors.gates().get(pk=pk), call.principal)


class DecisionView(TenantView):
    subject = Gate

    @operation(
        "Take an approval back",
        description="One's own, until its step starts: the gate asks again. Taken back already:"
        " answered alike.",
        who="people",
        answers={200: shapes.GATE},
        refusals={
            "people-only": 403,
            "already-decided": 409,
            "already-started": 409,
            "version-mismatch": 412,
        },
        versioned=True,
    )
    def delete(self, call: ApiCall, pk: UUID, decision: UUID) -> Answer:
        gate = decisions.withdraw_decision(call.principal, pk, decision, if_match=call.if_match)
        return gate_answer(gate, call.principal)

    def exists(self, **kwargs: Any) -> bool:
        return selectors.has_decision(kwargs["pk"], kwargs["decision"])
