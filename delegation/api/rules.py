"""What runs without asking a person, and what they do about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

from delegation import selectors, uses
from delegation.api import bodies, rendering, shapes
from delegation.models import Delegation, DelegationStatus, DelegationUse
from delegation.services import rules
from interrupts.api.bodies import one_of
from tenants.api.answers import answer
from tenants.api.http import choice
from tenants.api.operation import operation
from tenants.api.pagination import CURSOR_QUERY, page, page_schema
from tenants.api.view import ApiCall, TenantView
from tenants.idempotency import Answer
from tenants.principal import Principal

_REFUSALS: Final = {"people-only": 403}
_NOT_YOURS: Final = {**_REFUSALS, "forbidden": 403}
_OF_ACTS: Final = {**_NOT_YOURS, "already-revoked": 409}


class RulesView(TenantView):
    @operation(
        "List your rules",
        description="Those that speak for the caller, whatever became of them; `status` narrows.",
        who="people",
        query={"status": one_of(*DelegationStatus), **CURSOR_QUERY},
        answers={200: page_schema(shapes.RULE)},
        refusals={**_REFUSALS, "invalid-query": 422},
    )
    def get(self, call: ApiCall) -> Answer:
        rows = Delegation.objects.filter(user=call.principal.id)
        if (status := choice(call.request, "status", DelegationStatus.values)) is not None:
            rows = rows.filter(status=status)

        def render(found: Sequence[Delegation]) -> list[dict[str, Any]]:
            return [rendering.rule(card) for card in selectors.cards(found)]

        return page(call.request, rows, render)

    @operation(
        "Make a rule by hand",
        description="It is a suggestion with its back-test, and begins once it is accepted.",
        who="people",
        body=bodies.BY_HAND,
        answers={201: shapes.RULE},
        refusals={**_REFUSALS, "not-delegable": 422, "too-many-rules": 422},
    )
    def post(self, call: ApiCall) -> Answer:
        made = rules.propose_by_hand(call.principal, call.body["tool"], call.body["predicate"])
        return answer(rendering.rule(selectors.card(made.pk)), 201)


class RuleView(TenantView):
    subject = Delegation

    @operation(
        "Look at a rule",
        description="Its person, and admins.",
        who="people",
        answers={200: shapes.RULE},
        refusals=_NOT_YOURS,
    )
    def get(self, call: ApiCall, pk: UUID) -> Answer:
        return answer(rendering.rule(_seen_by(call.principal, pk)))


class UsesView(TenantView):
    subject = Delegation

    @operation(
        "List what ran under a rule",
        description="Its person, and admins.",
        who="people",
        query=CURSOR_QUERY,
        answers={200: page_schema(shapes.USE)},
        refusals={**_NOT_YOURS, "invalid-query": 422},
    )
    def get(self, call: ApiCall, pk: UUID) -> Answer:
        rules.admit(call.principal, Delegation.objects.get(pk=pk))

        def render(found: Sequence[DelegationUse]) -> list[dict[str, Any]]:
            return [rendering.use(one) for one in uses.told(found)]

        return page(call.request, uses.of_rule(pk), render)


class AcceptView(TenantView):
    subject = Delegation

    @operation(
        "Let a rule begin",
        description="A suggestion, or one that is paused: its person alone, who says which version"
        " of it they read.",
        who="people",
        body=bodies.ACCEPT,
        answers={200: shapes.RULE},
        refusals={
            **_OF_ACTS,
            "rule-changed": 409,
            "too-many-rules": 422,
            "not-narrower": 422,
            "not-delegable": 422,
        },
    )
    def post(self, call: ApiCall, pk: UUID) -> Answer:
        limits = {"per_day": call.body["per_day"]} if "per_day" in call.body else None
        rules.accept(call.principal, pk, limits=limits, version=call.body["version"])
        return _now(pk)


class TightenView(TenantView):
    subject = Delegation

    @operation(
        "Make a rule narrower",
        description="Its person alone. What is suggested, active or paused stays so, as its next"
        " version.",
        who="people",
        body=bodies.TIGHTEN,
        answers={200: shapes.RULE},
        refusals={**_OF_ACTS, "rule-changed": 409, "not-narrower": 422},
    )
    def post(self, call: ApiCall, pk: UUID) -> Answer:
        rules.tighten(call.principal, pk, call.body["change"], version=call.body["version"])
        return _now(pk)


class PauseView(TenantView):
    subject = Delegation

    @operation(
        "Have a rule sleep",
        description="Its person, and admins. Once it is answered, nothing starts by it. Again is"
        " no change.",
        who="people",
        body=bodies.PAUSE,
        answers={200: shapes.RULE},
        refusals={**_OF_ACTS, "not-suggested": 409},
    )
    def post(self, call: ApiCall, pk: UUID) -> Answer:
        rules.pause(call.principal, pk, call.body.get("note", ""))
        return _now(pk)


class RevokeView(TenantView):
    subject = Delegation

    @operation(
        "End a rule for good",
        description="Its person, and admins. Once it is answered, nothing starts by it. Again is"
        " no change.",
        who="people",
        answers={200: shapes.RULE},
        refusals=_OF_ACTS,
    )
    def post(self, call: ApiCall, pk: UUID) -> Answer:
        rules.revoke(call.principal, pk)
        return _now(pk)


class DismissView(TenantView):
    subject = Delegation

    @operation(
        "Do not suggest it again",
        description="Its person alone, of a suggestion.",
        who="people",
        answers={200: shapes.RULE},
        refusals={**_NOT_YOURS, "not-suggested": 409},
    )
    def post(self, call: ApiCall, pk: UUID) -> Answer:
        rules.dismiss(call.principal, pk)
        return _now(pk)


class AskEverythingView(TenantView):
    @operation(
        "Ask me about everything again",
        description="Every rule of the caller's sleeps: once it is answered, nothing starts by one."
        " `wanted: false` takes it back.",
        who="people",
        body=bodies.ASK_EVERYTHING,
        answers={200: shapes.ASKS_EVERYTHING},
        refusals=_REFUSALS,
    )
    def post(self, call: ApiCall) -> Answer:
        rules.ask_everything(call.principal, wanted=call.body.get("wanted", True))
        return answer({"asks_everything": selectors.asks_everything(call.principal.id)})


def _now(pk: UUID) -> Answer:
    return answer(rendering.rule(selectors.card(pk)))


def _seen_by(principal: Principal, pk: UUID) -> selectors.Card:
    card = selectors.card(pk)
    rules.admit(principal, card.delegation)
    return card
