"""A browser without a script, in the engine's house: what it is shown, and the forms it sends."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import unescape
from typing import Any

from django.test import Client

from tenants.api.auth import SESSION_TENANT
from tenants.models import User
from tenants.scope import current_tenant_id
from tests.interrupts.house import House

_FORM = re.compile(r'<form[^>]*action="(?P<action>[^"]*)"[^>]*>(?P<inside>.*?)</form>', re.DOTALL)
_HIDDEN = re.compile(r'<input type="hidden" name="(?P<name>[^"]*)" value="(?P<value>[^"]*)"')


class Browser:
    """Signed in as one of the house's people; it follows no redirect by itself."""

    def __init__(self, house: House, who: str) -> None:
        self.client = Client(enforce_csrf_checks=True)
        self.client.force_login(
            User.objects.get(pk=house.people[who].id), "django.contrib.auth.backends.ModelBackend"
        )
        session = self.client.session
        session[SESSION_TENANT] = str(current_tenant_id())
        session.save()

    def get(self, path: str, status: int = 200) -> str:
        response = self.client.get(path)
        assert response.status_code == status, response.content.decode()[:2000]
        return response.content.decode()

    def post(self, path: str, page: str, status: int = 303, **typed: Any) -> str:
        """Send a form of the page with what was typed; return where it leads, or what it shows."""
        sent = {"csrfmiddlewaretoken": token_of(page), **typed}
        response = self.client.post(path, sent)
        assert response.status_code == status, response.content.decode()[:4000]
        return response.headers["Location"] if status == 303 else response.content.decode()


def token_of(page: str) -> str:
    found = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)
    assert found is not None, "the page has no form"
    return found[1]


def forms(page: str) -> list[tuple[str, Mapping[str, str], str]]:
    """The page's forms: where each goes, its hidden fields, and its markup."""
    found = []
    for match in _FORM.finditer(page):
        hidden = {one["name"]: unescape(one["value"]) for one in _HIDDEN.finditer(match["inside"])}
        hidden.pop("csrfmiddlewaretoken", None)
        found.append((unescape(match["action"]), hidden, match["inside"]))
    return found


def form(page: str, **wanted: str) -> tuple[str, dict[str, str]]:
    """The one form of the page whose hidden fields are as wanted, and where it goes."""
    (found,) = [
        (action, dict(hidden))
        for action, hidden, _ in forms(page)
        if wanted.items() <= hidden.items()
    ]
    return found


def offered(page: str) -> list[str]:
    """The answers on offer, in order."""
    return [hidden["answer"] for _, hidden, _ in forms(page) if "answer" in hidden]


def text_of(page: str) -> str:
    """What the main part of the page says."""
    main = page[page.index("<main") : page.index("</main>")]
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", main)).split())
