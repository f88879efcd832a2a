"""What runs without asking a person: their rules, one rule with its review, everything it allowed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final
from urllib.parse import urlencode
from uuid import UUID

from django.http import HttpResponse

from approvals.views.decision import wrong_fields
from config.errors import Problem
from delegation import beside, figures, selectors, uses
from delegation.models import OPEN_RULES, DelegationStatus
from delegation.selectors import Card
from delegation.services import rules
from delegation.views import charts, forms
from delegation.views.shown import Shown
from tenants.views.page import PageView, Words
from tenants.views.visits import Visit

DAYS: Final = 30
WORDS: Final[Mapping[str, Words]] = {
    "forbidden": Words("This rule is somebody else\u2019s", rules.NOT_SHOWN),
}


class RulesView(PageView):
    """A person's rules: suggested, active, paused, and what they saved."""

    nav: ClassVar[str] = "delegation"

    def get(self, visit: Visit) -> HttpResponse:
        return rules_page(self, visit)


class RuleView(PageView):
    """One rule, whole, with what may be done about it."""

    nav: ClassVar[str] = "delegation"
    words: ClassVar[Mapping[str, Words]] = WORDS

    def get(self, visit: Visit, pk: UUID) -> HttpResponse:
        return rule_page(self, visit, pk)


class UsesView(PageView):
    """Everything a rule allowed, the latest first."""

    nav: ClassVar[str] = "delegation"
    words: ClassVar[Mapping[str, Words]] = WORDS

    def get(self, visit: Visit, pk: UUID) -> HttpResponse:
        before = visit.request.GET.get("before", "")
        card = shown_card(visit, pk)
        rows, onward = uses.latest(pk, _id(before))
        context = {
            "card": card,
            "rule": card.delegation,
            "rows": rows,
            "later": bool(before),
            "onward": urlencode({"before": onward}) if onward else None,
        }
        return self.page(visit, "delegation/uses.html", context)


def rules_page(view: PageView, visit: Visit, refusal: Problem | None = None) -> HttpResponse:
    user_id = visit.principal.id
    found = selectors.of_person(user_id)
    context = {
        "sections": [
            ("suggested", "Suggested, not active", [Shown(one) for one in found.suggested]),
            ("active", "Active", [Shown(one) for one in found.active]),
            ("paused", "Paused, asking again", [Shown(one) for one in found.paused]),
        ],
        "counts": {
            "active": len(found.active),
            "paused": len(found.paused),
            "suggested": len(found.suggested),
        },
        "chart": charts.chart(figures.chart(user_id, DAYS)),
        "removed": figures.removed(user_id, DAYS),
        "asks_everything": selectors.asks_everything(user_id),
        "modes": beside.modes_now(),
        "done": visit.request.GET.get("done", ""),
        "refusal": refusal,
    }
    status = refusal.status if refusal is not None else 200
    return view.page(visit, "delegation/rules.html", context, status=status)


def shown_card(visit: Visit, pk: UUID) -> Card:
    """Return a rule that the person may see. Raises Delegation.DoesNotExist, Forbidden."""
    card = selectors.card(pk)
    rules.admit(visit.principal, card.delegation)
    return card


def rule_page(
    view: PageView, visit: Visit, pk: UUID, refusal: Problem | None = None
) -> HttpResponse:
    """Show one rule; after a refusal with what was refused."""
    card = shown_card(visit, pk)
    rule = card.delegation
    own = rule.user_id == visit.principal.id
    context: dict[str, Any] = {
        "card": card,
        "shown": Shown(card, own),
        "rule": rule,
        "own": own,
        "is_open": rule.status in OPEN_RULES,
        "can_begin": rule.status in {DelegationStatus.SUGGESTED, DelegationStatus.PAUSED},
        "fields": forms.fields_of(rule.predicate),
        "per_day": forms.per_day_of(rule),
        "refusal": refusal,
        "wrong": wrong_fields(refusal),
        "done": visit.request.GET.get("done", ""),
    }
    status = refusal.status if refusal is not None else 200
    return view.page(visit, "delegation/rule.html", context, status=status)


def _id(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
