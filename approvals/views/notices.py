"""What a person is told by e-mail, and what nobody may decide."""

from __future__ import annotations

from typing import ClassVar

from django.http import HttpResponse
from django.urls import reverse

from approvals.services import inboxes, notices
from approvals.services.notices import Wishes
from config.errors import Forbidden
from tenants.models import Role
from tenants.views.page import PageView, see_other
from tenants.views.visits import Visit


class NoticesView(PageView):
    """A person's wishes, in the tenant they work in."""

    nav: ClassVar[str] = "profile"

    def get(self, visit: Visit) -> HttpResponse:
        context = {
            "wishes": notices.wishes_of(visit.principal.id),
            "kept": "kept" in visit.request.GET,
        }
        return self.page(visit, "approvals/notices.html", context)

    def post(self, visit: Visit) -> HttpResponse:
        typed = visit.request.POST
        notices.set_wishes(visit.principal, Wishes("asked" in typed, "reminders" in typed))
        return see_other(f"{reverse('notices')}?kept=1")


class UndecidableView(PageView):
    """The gates that nobody may decide, for those who can give authority."""

    nav: ClassVar[str] = "inbox"

    def get(self, visit: Visit) -> HttpResponse:
        if visit.role != Role.ADMIN:
            raise Forbidden("Admins see to this.")
        return self.page(visit, "approvals/undecidable.html", {"gates": inboxes.undecidable()})
