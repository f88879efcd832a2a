"""The policy in force, and what it would say."""

from __future__ import annotations

from approvals import selectors
from approvals.api import bodies, rendering, shapes
from approvals.services.checks import check_policy
from tenants.api.answers import answer
from tenants.api.operation import operation
from tenants.api.view import ApiCall, TenantView
from tenants.idempotency import Answer


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
        description="Of a call by the caller: the policy alone. Nothing is recorded.",
        changes=False,
        body=bodies.CHECK,
        answers={200: shapes.CHECKED},
        refusals={"unknown-tool": 422, "invalid-arguments": 422},
    )
    def post(self, call: ApiCall) -> Answer:
        verdict, number = check_policy(call.principal, **call.body)
        return answer(
            {
                "verdict": verdict.verdict,
                "rule": verdict.rule,
                "reason": verdict.reason,
                "triggers": [dict(one) for one in verdict.triggers],
                "policy_version": number,
            }
        )
