"""What people ask an agent about a gate, and what it answers."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from approvals import selectors
from approvals.api import bodies, rendering, shapes
from approvals.models import Gate
from approvals.services import questions
from approvals.services.questions import Asked
from interrupts.api.runs import NOT_YOUR_RUN
from tenants.api.answers import REPLAYED, answer, etag
from tenants.api.operation import operation
from tenants.api.view import ApiCall, TenantView
from tenants.idempotency import Answer
from tenants.principal import Principal

_OF_A_GATE: Final = {"gate-expired": 410, "already-decided": 409, "version-mismatch": 412}


def _answer(asked: Asked, principal: Principal, status: int) -> Answer:
    headers = etag(asked.question.run.state_version)
    if asked.replayed:
        status, headers = 200, {**headers, REPLAYED: "true"}
    return answer(rendering.asked(asked.question, principal), status, headers)


class QuestionsView(TenantView):
    subject = Gate

    @operation(
        "Ask the agent about a gate",
        description="Whoever may decide it asks; the gate goes on waiting as it is, and the agent"
        " that waits for it wakes. The same question again, while it has no answer, is answered"
        " 200, with `Idempotent-Replayed: true`.",
        who="people",
        body=bodies.ASK,
        answers={201: shapes.ASKED, 200: shapes.ASKED},
        refusals={
            "people-only": 403,
            "not-an-approver": 403,
            "not-your-stage": 403,
            "own-request": 403,
            "beyond-authority": 403,
            **_OF_A_GATE,
            "gate-preparing": 409,
            "too-many-questions": 409,
        },
        versioned=True,
    )
    def post(self, call: ApiCall, pk: UUID) -> Answer:
        asked = questions.ask_agent(call.principal, pk, **call.body, if_match=call.if_match)
        return _answer(asked, call.principal, 201)


class AnswerView(TenantView):
    subject = Gate

    @operation(
        "Answer what was asked about a gate",
        description="The run's agent answers, once: the same answer again is answered alike.",
        who="agents",
        body=bodies.ANSWER,
        answers={200: shapes.ASKED},
        refusals={
            "agents-only": 403,
            **NOT_YOUR_RUN,
            "stale-session": 409,
            "already-answered": 409,
            **_OF_A_GATE,
        },
        versioned=True,
    )
    def post(self, call: ApiCall, pk: UUID, question: UUID) -> Answer:
        asked = questions.answer_question(
            call.principal, pk, question, **call.body, if_match=call.if_match
        )
        return _answer(asked, call.principal, 200)

    def exists(self, **kwargs: Any) -> bool:
        return selectors.has_question(kwargs["pk"], kwargs["question"])
