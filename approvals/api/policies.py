"""The policy in force, what it would say, and what people made of what it asked."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from approvals import selectors
from approvals.api import bodies, lookback, rendering, shapes, simulation
from approvals.hindsight import (
    LEAST_DECIDED,
    LOOKED_BACK,
    Window,
    read_calibration,
    read_overgating,
)
from approvals.services.checks import check_policy
from approvals.services.simulation import USUAL_STEPS, simulate, why
from interrupts.api.runs import OPERATORS
from tenants.api.answers import answer
from tenants.api.body import ID
from tenants.api.checks import Schema, read_instant
from tenants.api.http import identifier, integer, moment, plain
from tenants.api.operation import operation
from tenants.api.pagination import CURSOR_QUERY, page, page_schema
from tenants.api.view import ApiCall, TenantView
from tenants.clock import database_now
from tenants.errors import InvalidQuery
from tenants.idempotency import Answer

WHY_QUERY: Final[dict[str, Schema]] = {"step": {**ID, "description": "Which step; needed."}}

SINCE: Final[dict[str, Schema]] = {
    "since": {
        "type": "string",
        "format": "date-time",
        "description": f"Gates opened since then; absent: in the last {LOOKED_BACK.days} days.",
    }
}
CALIBRATION_QUERY: Final[dict[str, Schema]] = {
    **SINCE,
    "tool": {"type": "string", "description": "Of this tool alone."},
    "workflow": {
        "type": "string",
        "description": "Of the gates considered, those in runs of this workflow.",
    },
}
OVERGATING_QUERY: Final[dict[str, Schema]] = {
    **SINCE,
    "minimum": {
        "type": "integer",
        "minimum": 1,
        "default": LEAST_DECIDED,
        "description": "How often people must have decided before anything is said of a rule.",
    },
}


class CurrentPolicyView(TenantView):
    @operation(
        "Look at the policy in force",
        description="Version 0: none was published, so reads are allowed and all else asks.",
        who="people",
        answers={200: shapes.POLICY},
        refusals={"people-only": 403},
    )
    def get(self, call: ApiCall) -> Answer:  # noqa: ARG002 - the same for every member
        return answer(rendering.policy(selectors.policy_in_force()))


class CheckPolicyView(TenantView):
    @operation(
        "Ask what policy would say",
        description="Of a call by the caller, as the first step of a run: the policy alone."
        " Nothing is recorded.",
        changes=False,
        body=bodies.CHECK,
        answers={200: shapes.CHECKED},
        refusals={"unknown-tool": 422, "invalid-arguments": 422},
    )
    def post(self, call: ApiCall) -> Answer:
        body = dict(call.body)
        if "at" in body:
            body["at"] = read_instant(body["at"])
        verdict, number = check_policy(call.principal, **body)
        return answer(
            {
                "verdict": verdict.verdict,
                "rule": verdict.rule,
                "reason": verdict.reason,
                "triggers": [dict(one) for one in verdict.triggers],
                "stages": rendering.stages(verdict),
                "policy_version": number,
            }
        )


class PoliciesView(TenantView):
    @operation(
        "List the policy's published versions",
        description="Oldest first, each with who published it, when and why.",
        who="people",
        query=CURSOR_QUERY,
        answers={200: page_schema(shapes.POLICY)},
        refusals={"people-only": 403, "invalid-query": 422},
    )
    def get(self, call: ApiCall) -> Answer:
        return page(
            call.request, selectors.published_policies(), rendering.policy_versions, by="number"
        )


class SimulatePolicyView(TenantView):
    @operation(
        "Try a policy on recorded steps",
        description="What it would have said of them, newest first, against what was decided."
        " Where both ask people it says what they are asked otherwise, and which of it is looser;"
        " completions are tried of runs whose newest step is among those steps."
        " Nothing is recorded and nothing is decided again. Where `next` is not null there are"
        " more: send it as `after`.",
        who="people",
        roles=OPERATORS,
        changes=False,
        body=bodies.SIMULATE,
        answers={200: simulation.SIMULATED},
        refusals={"people-only": 403},
    )
    def post(self, call: ApiCall) -> Answer:
        body = call.body
        made = simulate(
            body["policy"],
            since=read_instant(body["since"]) if "since" in body else None,
            limit=body.get("limit", USUAL_STEPS),
            after=UUID(body["after"]) if "after" in body else None,
        )
        return answer(simulation.simulated(made))


class WhyView(TenantView):
    @operation(
        "Ask why a step was allowed, asked about or denied",
        description="Each rule of the version that judged it: whether it counts, and why or why"
        " not; and what the policy in force says of the same call now.",
        who="people",
        query=WHY_QUERY,
        answers={200: shapes.EXPLAINED},
        refusals={"people-only": 403, "invalid-query": 422},
    )
    def get(self, call: ApiCall) -> Answer:
        step = identifier(call.request, "step")
        if step is None:
            raise InvalidQuery.at("/step", "The id of a step stands here.")
        return answer(rendering.explained(why(step)))


class CalibrationView(TenantView):
    @operation(
        "Compare scores and what agents state with what people decided",
        description="By bands of a tenth of the service's `score`, and of the `risk_score` and"
        " `confidence` that agents state. Of the latest"
        " gates up to a bound; `more` says that there were others. It changes nothing.",
        who="people",
        roles=OPERATORS,
        query=CALIBRATION_QUERY,
        answers={200: shapes.CALIBRATION},
        refusals={"people-only": 403},
    )
    def get(self, call: ApiCall) -> Answer:
        request = call.request
        window = Window(
            since=moment(request, "since") or database_now() - LOOKED_BACK,
            tool=plain(request, "tool"),
            workflow=plain(request, "workflow"),
        )
        return answer(lookback.calibration(read_calibration(window)))


class OvergatingView(TenantView):
    @operation(
        "Find rules that ask in vain",
        description="Each rule of the policy in force that asks, and `default`: those first that"
        " asked `minimum` times or more of people who approved each time as proposed. A rule that"
        " was changed is told of since it reads as it does. It changes nothing: people decide.",
        who="people",
        roles=OPERATORS,
        query=OVERGATING_QUERY,
        answers={200: shapes.OVERGATING},
        refusals={"people-only": 403},
    )
    def get(self, call: ApiCall) -> Answer:
        least = integer(call.request, "minimum", least=1)
        window = Window(moment(call.request, "since") or database_now() - LOOKED_BACK)
        return answer(lookback.overgating(read_overgating(window, least or LEAST_DECIDED)))
