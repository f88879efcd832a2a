"""A secret is written in the admin and never shown again; a tool names what there is."""

from __future__ import annotations

import json
import re

import pytest

from interrupts.models import Tool
from tenants.models import Secret
from tenants.scope import tenant_scope
from tenants.selectors import secret_values
from tests.admin.conftest import Place
from tests.admin.test_configuration import MAIL, entries, head

VALUE, OTHER = "sk_live_4eC39HqLyjWDarjtT1zdp7dc", "sk_live_another-value-of-it"
ADD = "/admin/tenants/secret/add/"
REQUEST = {
    "url": "https://mail.test/v3/send",
    "headers": {"Authorization": {"secret": "mail-key", "prefix": "Bearer "}},
    "json": {"to": "{arguments.to}"},
}
DECLARED = json.dumps({"kind": "http", "request": REQUEST, "answer": {"body": "none"}})


def row(place: Place) -> Secret:
    with tenant_scope(place.id):
        return Secret.objects.get()


def value(place: Place) -> str | None:
    with tenant_scope(place.id):
        return secret_values({"mail-key"}).get("mail-key")


def test_a_secret_is_set_replaced_and_removed_and_never_shown(acme: Place) -> None:
    browser = acme.browser("ada")
    pages = [browser.post(ADD, {"name": "mail-key", "value": VALUE})]
    assert (pages[0].status_code, value(acme), row(acme).version) == (302, VALUE, 1)
    change = f"/admin/tenants/secret/{row(acme).pk}/change/"
    pages.append(browser.post(change, {"value": OTHER}))
    assert (pages[1].status_code, value(acme), row(acme).version) == (302, OTHER, 2)
    for url in (change, change.replace("change", "history"), "/admin/tenants/secret/"):
        pages.append(browser.get(url))
        assert pages[-1].status_code == 200
    pages.append(browser.get(ADD.replace("add/", f"{row(acme).pk}/remove/")))
    assert value(acme) == OTHER
    pages.append(browser.post(ADD.replace("add/", f"{row(acme).pk}/remove/")))
    assert (pages[-1].status_code, value(acme)) == (303, None)
    pages += [browser.get(change), browser.get("/admin/journal/")]
    for page in pages:
        assert VALUE.encode() not in page.content
        assert OTHER.encode() not in page.content
    first, second = {"version": 1}, {"version": 2}
    actor = {"id": str(acme.people["ada"].pk), "kind": "user"}
    assert entries(acme)[-3:] == [
        ("secret.added", {"name": "mail-key", "before": None, "after": first}, actor),
        ("secret.changed", {"name": "mail-key", "before": first, "after": second}, actor),
        ("secret.removed", {"name": "mail-key", "before": second, "after": None}, actor),
    ]


def test_a_browser_is_asked_to_keep_neither_name_nor_value(acme: Place) -> None:
    page = acme.browser("ada").get(ADD).content.decode()
    fields = {
        name: kept
        for tag in re.findall(r"<input[^>]*>", page)
        for name in re.findall(r' name="(name|value)"', tag)
        for kept in re.findall(r'autocomplete="([^"]*)"', tag)
    }
    assert fields == {"name": "off", "value": "new-password"}


@pytest.mark.parametrize(
    ("name", "typed", "field"),
    [
        ("mail-key", "sh0rt-1", "value"),
        ("mail-key", "ein schlüssel, lang genug", "value"),
        ("mail-key", "", "value"),
        ("a b", VALUE, "name"),
    ],
)
def test_a_refused_value_is_not_sent_back(acme: Place, name: str, typed: str, field: str) -> None:
    before = head(acme)
    page = acme.browser("ada").post(ADD, {"name": name, "value": typed})
    assert field in page.context["adminform"].form.errors
    assert not typed or typed.encode() not in page.content
    assert head(acme) == before
    with tenant_scope(acme.id):
        assert Secret.objects.count() == 0


def test_another_tenants_secret_is_not_there(acme: Place, umbrella: Place) -> None:
    acme.browser("ada").post(ADD, {"name": "mail-key", "value": VALUE})
    browser = umbrella.browser("charlie")
    for act in ("change", "history", "remove"):
        url = f"/admin/tenants/secret/{row(acme).pk}/{act}/"
        assert browser.get(url).status_code == 404
        assert browser.post(url, {"value": OTHER}).status_code in {403, 404}
    assert browser.post(ADD, {"name": "mail-key", "value": OTHER}).status_code == 302
    assert (value(acme), value(umbrella)) == (VALUE, OTHER)


def test_a_tool_is_saved_once_what_it_names_is_there(acme: Place) -> None:
    browser = acme.browser("ada")
    tool = {**MAIL, "effect": "irreversible", "executor": DECLARED}
    before = head(acme)
    page = browser.post("/admin/interrupts/tool/add/", tool)
    (error,) = page.context["adminform"].form.errors["executor"]
    assert error == "/request/headers/Authorization: There is no secret 'mail-key'."
    assert head(acme) == before
    browser.post(ADD, {"name": "mail-key", "value": VALUE})
    assert browser.post("/admin/interrupts/tool/add/", tool).status_code == 302
    with tenant_scope(acme.id):
        version = Tool.objects.select_related("current").get().current
    assert version is not None
    assert version.executor["request"] == REQUEST
    shown = browser.get(f"/admin/interrupts/toolversion/{version.pk}/change/")
    assert (b"mail-key" in shown.content, VALUE.encode() in shown.content) == (True, False)


def test_a_fault_of_a_declared_request_is_shown_at_its_field(acme: Place) -> None:
    faulty = DECLARED.replace("Bearer ", "Bearer\\r\\n")
    page = acme.browser("ada").post("/admin/interrupts/tool/add/", {**MAIL, "executor": faulty})
    (error,) = page.context["adminform"].form.errors["executor"]
    assert error.startswith("/request/headers/Authorization: A prefix is")
