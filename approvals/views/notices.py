"""What a person is told by e-mail, and what nobody may decide."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, Final

from django.http import HttpResponse
from django.urls import reverse

from approvals.services import inboxes, notices
from config.errors import Forbidden
from tenants.models import Role
from tenants.views.page import PageView, see_other
from tenants.views.visits import Visit

_OFFERS: Final[Mapping[str, str]] = {
    "asked": "When a decision waits for me. When many come within a minute, they share one mail.",
    "reminders": "Once more, when half of the time to decide has passed.",
    "expiries": "When one that waited for me has expired.",
    "answers": "When an agent has answered a question of mine about a decision.",
    "votes": "When somebody else approves, changes or rejects what I had approved.",
    "outcomes": "When what I approved has failed, its outcome is unknown, or was found out.",
    "recoveries": "When an outcome stays unknown and is to be settled by an operator or admin.",
    "interrupts": "When a run is interrupted and I am one of those who say how it goes on.",
    "rules": "When a rule for what I approve is suggested to me, or one of mine is paused.",
}


class NoticesView(PageView):
    """A person's wishes, in the tenant they work in."""

    nav: ClassVar[str] = "profile"

    def get(self, visit: Visit) -> HttpResponse:
        wishes = notices.wishes_of(visit.principal.id)
        context = {
            "offered": [
                (name, says, getattr(wishes, name)) for name, says in _offered(visit).items()
            ],
            "kept": "kept" in visit.request.GET,
        }
        return self.page(visit, "approvals/notices.html", context)

    def post(self, visit: Visit) -> HttpResponse:
        typed = visit.request.POST
        wishes = {name: name in typed for name in _offered(visit)}
        notices.set_wishes(
            visit.principal, replace(notices.wishes_of(visit.principal.id), **wishes)
        )
        return see_other(f"{reverse('notices')}?kept=1")


def _offered(visit: Visit) -> Mapping[str, str]:
    """Return what the person can be told of, by the wish's name; only settlers settle."""
    settles = visit.role in (Role.OPERATOR, Role.ADMIN)
    return {name: says for name, says in _OFFERS.items() if settles or name != "recoveries"}


class UndecidableView(PageView):
    """The gates that nobody may decide, for those who can give authority."""

    nav: ClassVar[str] = "inbox"

    def get(self, visit: Visit) -> HttpResponse:
        if visit.role != Role.ADMIN:
            raise Forbidden("Admins see to this.")
        return self.page(visit, "approvals/undecidable.html", {"gates": inboxes.undecidable()})
