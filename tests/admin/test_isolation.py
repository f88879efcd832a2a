"""Of every table in the admin: another tenant's rows are not there, and looking changes nothing."""

from __future__ import annotations

import re
from typing import Any
from uuid import UUID

import pytest
from django.contrib.admin import ModelAdmin
from django.db import Error, connection, models
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils.module_loading import autodiscover_modules

from approvals.models import Gate
from interrupts.models import Freeze, Run
from tenants.admin.base import ConfigAdmin, ReadAdmin
from tenants.admin.site import CONTENT_SECURITY_POLICY, site
from tenants.models import Agent, AgentKey, GroupMember, JournalEntry, Membership, Tenant, User
from tenants.scope import NoTenant, current_tenant_id, tenant_scope
from tests.admin.conftest import Place, signed_in
from tests.approvals.house import House
from tests.database import as_owner

autodiscover_modules("admin", register_to=site)  # as config/urls.py does
REGISTERED = sorted(site._registry.items(), key=lambda one: one[0]._meta.label)
AUTOCOMPLETED = [
    (GroupMember, "membership", "bob"),
    (AgentKey, "agent", "bot"),
]


def urls(admin: ModelAdmin[Any], pk: Any) -> list[str]:
    """Every URL that an admin has for one row."""
    names = [pattern.name for pattern in admin.get_urls() if "object_id" in str(pattern.pattern)]
    return [reverse(f"admin:{name}", args=(pk,)) for name in names if name]


def everything() -> dict[str, list[Any]]:
    """Every row of every table, but what people's sessions leave behind."""
    skipped = {"django_session"}
    with as_owner() as owner:
        tables = owner.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1"
        ).fetchall()
        return {
            table: owner.execute(f"SELECT t::text FROM {table} t ORDER BY 1").fetchall()
            for (table,) in tables
            if table not in skipped
        }


def row_of(model: type[models.Model], tenant: UUID) -> Any:
    if model is Tenant:
        return tenant
    with tenant_scope(tenant):
        row = model._default_manager.order_by("-pk").first()
    assert row is not None, f"nothing in {model._meta.label}: the sweep would prove nothing"
    return row.pk


def found_name(admin: ModelAdmin[Any]) -> str:
    return f"{admin.opts.app_label}_{admin.opts.model_name}"


def test_another_tenants_rows_are_not_there(lived: House, umbrella: Place) -> None:
    rows = {admin: row_of(model, lived.tenant.pk) for model, admin in REGISTERED}
    browser, before = umbrella.browser("charlie"), everything()
    for admin, pk in rows.items():
        found = urls(admin, pk)
        assert len(found) >= 3
        for url in found:
            for answer in (browser.get(url), browser.post(url, {"name": "x", "role": "admin"})):
                assert answer.status_code in {403, 404}, (url, answer.status_code)
                assert str(pk) not in answer.content.decode()
        listed = browser.get(reverse(f"admin:{found_name(admin)}_changelist"))
        assert (listed.status_code, str(pk) in listed.content.decode()) == (200, False)
        if admin.get_search_fields(answer.wsgi_request):
            searched = browser.get(listed.request["PATH_INFO"], {"q": str(pk)})
            assert searched.context["cl"].result_count == 0
    assert everything() == before


def test_looking_changes_nothing_and_shows_what_is_there(lived: House) -> None:
    rows = {admin: row_of(model, lived.tenant.pk) for model, admin in REGISTERED}
    browser = signed_in(User.objects.get(username="ada"), lived.tenant.pk)
    before = everything()
    for admin, pk in rows.items():
        name = f"admin:{found_name(admin)}"
        lists, change = reverse(f"{name}_changelist"), reverse(f"{name}_change", args=(pk,))
        for url in (lists, change, reverse(f"{name}_history", args=(pk,))):
            answer = browser.get(url)
            assert answer.status_code == 200, url
            assert answer.headers["Content-Security-Policy"] == CONTENT_SECURITY_POLICY
        for url in urls(admin, pk):
            assert browser.get(url).status_code in {200, 403}, url
        adds = admin.has_add_permission(answer.wsgi_request)
        assert browser.get(reverse(f"{name}_add")).status_code == (200 if adds else 403)
        for asked in ("a", str(pk), "%00", "'"):  # words, an id, and nonsense
            assert browser.get(lists, {"q": asked}).status_code == 200, (lists, asked)
    assert everything() == before


def test_what_is_only_read_refuses_every_post(lived: House) -> None:
    browser = signed_in(User.objects.get(username="ada"), lived.tenant.pk)
    read = [(model, admin) for model, admin in REGISTERED if isinstance(admin, ReadAdmin)]
    rows = {admin: row_of(model, lived.tenant.pk) for model, admin in read}
    assert len(rows) >= 14
    before = everything()
    for admin, pk in rows.items():
        name = f"admin:{found_name(admin)}"
        for act in ("change", "delete"):
            answer = browser.post(reverse(f"{name}_{act}", args=(pk,)), {"post": "yes"})
            assert answer.status_code == 403, (name, act)
        if found_name(admin) != "interrupts_freeze":
            assert browser.post(reverse(f"{name}_add"), {}).status_code == 403, name
        acted = {"action": "delete_selected", "_selected_action": [str(pk)], "post": "yes"}
        browser.post(reverse(f"{name}_changelist"), acted)
    assert everything() == before


def test_a_row_that_is_read_leads_to_where_people_look_at_it(lived: House) -> None:
    browser = signed_in(User.objects.get(username="ada"), lived.tenant.pk)
    for label, named in (
        ("interrupts_step", "/runs/"),
        ("interrupts_receipt", "/runs/"),
        ("approvals_gate", "/decisions/"),
        ("approvals_decision", "/decisions/"),
    ):
        admin = next(one for _, one in REGISTERED if found_name(one) == label)
        pk = row_of(admin.model, lived.tenant.pk)
        page = browser.get(reverse(f"admin:{label}_change", args=(pk,))).content.decode()
        (link,) = set(re.findall(rf'href="({named}[0-9a-f-]+)"', page))
        assert browser.get(link).status_code == 200


def test_every_table_is_of_one_kind_and_every_list_is_bounded() -> None:
    for _, admin in REGISTERED:
        assert isinstance(admin, ReadAdmin | ConfigAdmin)
        assert not admin.show_full_result_count
        assert not admin.get_urls()[0].name.endswith("view_on_site")


def test_a_list_counts_no_table_to_its_end(lived: House) -> None:
    browser = signed_in(User.objects.get(username="ada"), lived.tenant.pk)
    for _, admin in REGISTERED:
        with CaptureQueriesContext(connection) as captured:
            browser.get(reverse(f"admin:{found_name(admin)}_changelist"))
        counts = [one["sql"] for one in captured if "COUNT(" in one["sql"].upper()]
        assert all("LIMIT" in sql for sql in counts), (admin, counts)


@pytest.mark.parametrize(("model", "column", "named"), AUTOCOMPLETED)
def test_names_are_completed_within_the_tenant(
    model: type[models.Model], column: str, named: str, lived: House, umbrella: Place
) -> None:
    asked = {
        "app_label": model._meta.app_label,
        "model_name": model._meta.model_name,
        "field_name": column,
        "term": named,
    }
    ours = signed_in(User.objects.get(username="ada"), lived.tenant.pk)
    assert len(ours.get("/admin/autocomplete/", asked).json()["results"]) == 1
    theirs = umbrella.browser("charlie")
    assert theirs.get("/admin/autocomplete/", asked).json()["results"] == []
    assert theirs.get("/admin/autocomplete/", {**asked, "term": ""}).json()["results"] != [] or (
        model is AgentKey
    )


def test_a_form_takes_no_choice_of_another_tenant(lived: House, umbrella: Place) -> None:
    with tenant_scope(lived.tenant.pk):
        bob, bot = Membership.objects.get(user__username="bob"), Agent.objects.get(name="bot")
    browser, before = umbrella.browser("charlie"), everything()
    for path, said in (
        ("tenants/group", {"name": "g", "members": [str(bob.pk)]}),
        ("tenants/agent", {"name": "a", "owner": str(bob.pk)}),
        ("tenants/agentkey", {"agent": str(bot.pk)}),
    ):
        answer = browser.post(f"/admin/{path}/add/", said)
        assert answer.status_code == 200
        assert answer.context["adminform"].form.errors, path
    assert everything() == before


def test_a_name_of_another_tenant_is_free_here(lived: House, umbrella: Place) -> None:
    browser = umbrella.browser("charlie")
    made = browser.post("/admin/tenants/group/add/", {"name": "finance", "members": []})
    assert made.status_code == 302
    made = browser.post("/admin/tenants/agent/add/", {"name": "bot", "owner": ""})
    assert (made.status_code, "aby_agent_" in made.content.decode()) == (200, True)


def test_filters_offer_and_match_only_the_tenants_rows(lived: House, umbrella: Place) -> None:
    with tenant_scope(lived.tenant.pk):
        bot = Agent.objects.get(name="bot")
    page = umbrella.browser("charlie").get(
        "/admin/interrupts/run/", {"agent__id__exact": str(bot.pk)}
    )
    assert page.status_code == 200
    assert page.context["cl"].result_count == 0
    ours = signed_in(User.objects.get(username="ada"), lived.tenant.pk)
    page = ours.get("/admin/interrupts/run/", {"agent__id__exact": str(bot.pk)})
    assert page.context["cl"].result_count >= 1


def test_the_journal_is_the_tenants_own(lived: House, umbrella: Place) -> None:
    ours = signed_in(User.objects.get(username="ada"), lived.tenant.pk)
    assert "finance" in ours.get("/admin/journal/").content.decode()
    theirs = umbrella.browser("charlie").get("/admin/journal/").content.decode()
    assert "finance" not in theirs
    assert "charlie" in theirs


def test_no_secret_and_no_hash_is_on_any_page(lived: House) -> None:
    browser = signed_in(User.objects.get(username="ada"), lived.tenant.pk)
    with as_owner() as owner:
        hashes = owner.execute(
            "SELECT encode(hash, 'hex') FROM tenants_agentkey"
            " UNION SELECT encode(hash, 'hex') FROM tenants_usertoken"
            " UNION SELECT password FROM tenants_user WHERE password <> ''"
        ).fetchall()
    secrets = [*lived.secrets.values(), *(one for (one,) in hashes)]
    for model, admin in REGISTERED:
        pk = row_of(model, lived.tenant.pk)
        name = f"admin:{found_name(admin)}"
        for url in (reverse(f"{name}_changelist"), reverse(f"{name}_change", args=(pk,))):
            page = browser.get(url).content.decode()
            assert not [one for one in secrets if one in page], url


HIDDEN = re.compile("[\u202e\u200b]")
HIDING = "Pay \u202eeb\u202c\u200bme<script>alert(1)</script>" + "x" * 400


def test_what_texts_hide_is_shown_and_nothing_of_them_is_shortened(lived: House) -> None:
    with as_owner() as owner:
        owner.execute("UPDATE approvals_gate SET headline = %s, rule = %s", [HIDING, HIDING[:20]])
        owner.execute("UPDATE interrupts_run SET goal = %s", [HIDING])
        owner.execute("UPDATE interrupts_freeze SET note = %s", [HIDING])
    browser = signed_in(User.objects.get(username="ada"), lived.tenant.pk)
    browser.post(f"/admin/tenants/tenant/{lived.tenant.pk}/change/", {"name": HIDING[:60]})
    said = browser.get("/admin/").content.decode()
    assert "[U+202E RLO]" in said.partition("<main")[2]
    found = {admin.model: found_name(admin) for _, admin in REGISTERED}
    for model in (Gate, Run, Freeze):
        name, pk = found[model], row_of(model, lived.tenant.pk)
        change = reverse(f"admin:{name}_change", args=(pk,))
        pages = [change] if model is Run else [change, reverse(f"admin:{name}_changelist")]
        for url in pages:
            page = browser.get(url).content.decode()
            assert "U+202E RLO" in page, url
            assert "U+200B ZWSP" in page, url
            assert "x" * 400 in page, url
            assert [page[one.start() - 90 : one.end()] for one in HIDDEN.finditer(page)] == [], url
            assert "<script>alert" not in page, url
    for url in ("/admin/journal/", f"/admin/tenants/tenant/{lived.tenant.pk}/history/"):
        page = browser.get(url).content.decode()
        assert "U+202E RLO" in page, url
        assert [page[one.start() - 90 : one.end()] for one in HIDDEN.finditer(page)] == [], url


# Who comes in


@pytest.mark.parametrize("who", ["olga", "bob", "vera"])
def test_only_admins_come_in(acme: Place, who: str) -> None:
    browser = acme.browser(who)
    for path in ("", "tenants/membership/", "journal/", "autocomplete/", "jsi18n/"):
        answer = browser.get(f"/admin/{path}")
        assert (answer.status_code, "not_yours" in str(answer.templates[0].name)) == (403, True)
    assert acme.browser("ada").get("/admin/").status_code == 200


def test_being_staff_lets_nobody_in(acme: Place) -> None:
    User.objects.filter(username="bob").update(is_staff=True)
    assert acme.browser("bob").get("/admin/").status_code == 403
    assert not User.objects.get(username="ada").is_staff


def test_who_is_not_signed_in_is_sent_to_sign_in(acme: Place) -> None:
    answer = Client().get("/admin/tenants/group/")
    assert (answer.status_code, answer.headers["Location"]) == (
        303,
        "/sign-in?next=%2Fadmin%2Ftenants%2Fgroup%2F",
    )


def test_an_admin_elsewhere_does_not_choose_this_tenant(acme: Place, umbrella: Place) -> None:
    charlie = umbrella.people["charlie"]
    forged = signed_in(charlie, acme.id)  # as if the session had said so
    answer = forged.get("/admin/tenants/membership/")
    assert answer.status_code == 303
    assert answer.headers["Location"].startswith("/admin/tenant/")
    chosen = forged.post("/admin/tenant/", {"tenant": "acme"})
    assert chosen.headers["Location"].startswith("/admin/tenant/")
    assert forged.session["tenant"] == str(acme.id)
    assert forged.get("/admin/tenants/membership/").status_code == 303
    assert "acme" not in forged.get("/admin/tenant/").content.decode()


def test_an_admin_who_lost_the_role_is_out_at_once(acme: Place) -> None:
    browser = acme.browser("ada")
    assert browser.get("/admin/").status_code == 200
    with tenant_scope(acme.id):
        Membership.objects.filter(user__username="ada").update(role="viewer")
    assert browser.get("/admin/").status_code == 403


def test_a_superuser_picks_one_tenant_at_a_time(acme: Place, umbrella: Place, root: User) -> None:
    browser = signed_in(root, None)
    answer = browser.get("/admin/tenants/membership/")
    assert answer.headers["Location"].startswith("/admin/tenant/")
    browser.post("/admin/tenant/", {"tenant": "umbrella"})
    page = browser.get("/admin/tenants/membership/").content.decode()
    assert "charlie" in page
    assert "alan" not in page
    browser.post("/admin/tenant/", {"tenant": "acme"})
    page = browser.get("/admin/tenants/membership/").content.decode()
    assert "alan" in page
    assert "charlie" not in page
    made = browser.post("/admin/tenants/group/add/", {"name": "made-by-root", "members": []})
    assert made.status_code == 302
    with tenant_scope(acme.id):
        entry = JournalEntry.objects.filter(kind="group.added").order_by("-seq")[0]
    assert str(root.pk) in entry.text


def test_a_superuser_without_a_tenant_signs_in_to_the_admin(root: User) -> None:
    root.set_password("long enough for a test")
    root.save()
    browser = Client()
    said = {"name": "root", "password": "long enough for a test", "next": "/admin/"}
    assert browser.post("/sign-in", said).headers["Location"] == "/admin/"
    onward = browser.get("/admin/").headers["Location"]
    assert onward.startswith("/admin/tenant/")
    assert browser.get(onward).status_code == 200


def test_being_superuser_gives_no_authority(lived: House) -> None:
    root = User.objects.create(username="root", is_superuser=True)
    browser = signed_in(root, lived.tenant.pk)
    before = everything()
    add = {"username": "root", "email": "root@s.test", "role": "approver", "may_decide": "*"}
    User.objects.filter(pk=root.pk).update(email="root@s.test")
    before = everything()
    answer = browser.post("/admin/tenants/membership/add/", add)
    assert "Nobody gives themselves" in answer.content.decode()
    frozen = browser.post("/admin/interrupts/freeze/add/", {"scope": "tenant", "note": ""})
    assert frozen.status_code == 200
    assert frozen.context["form"].errors
    assert everything() == before
    assert browser.get("/inbox").status_code == 303  # to the choice of a tenant: they have none


def test_a_superuser_makes_a_tenant_and_nobody_else_does(acme: Place, root: User) -> None:
    said = {"make": "1", "slug": "initech", "name": "Initech"}
    acme.browser("ada").post("/admin/tenant/", said)
    assert not Tenant.objects.filter(slug="initech").exists()
    browser = signed_in(root, None)
    wrong = browser.post("/admin/tenant/", {**said, "slug": "acme"})
    assert (wrong.status_code, Tenant.objects.count()) == (422, 1)
    assert browser.post("/admin/tenant/", said).status_code == 303
    made = Tenant.objects.get(slug="initech")
    assert (made.journal_seq, browser.session["tenant"]) == (1, str(made.pk))


def test_the_tenant_is_left_after_every_request(acme: Place) -> None:
    browser = acme.browser("ada")
    for path in ("", "jsi18n/", "tenants/group/", "nothing/", "tenants/group/x/change/"):
        browser.get(f"/admin/{path}")
        with connection.cursor() as cursor:
            cursor.execute("SELECT coalesce(current_setting('abeyance.tenant_id', true), '')")
            assert cursor.fetchone() == ("",), path
        with pytest.raises(NoTenant):
            current_tenant_id()


def test_the_database_refuses_a_write_while_looking(
    acme: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(*_: Any) -> Any:
        Tenant.objects.filter(pk=acme.id).update(name="changed by a GET")

    monkeypatch.setattr("tenants.admin.site.journal_view", write)
    with pytest.raises(Error, match="read-only"):
        acme.browser("ada").get("/admin/journal/")
    assert Tenant.objects.get(pk=acme.id).name == "Acme"


def test_no_page_of_djangos_own_is_left(acme: Place) -> None:
    browser = acme.browser("ada")
    for path in ("password_change/", "search/", "r/1/1/", "auth/group/", "tenants/user/"):
        assert browser.get(f"/admin/{path}").status_code == 404, path
    assert browser.get("/admin/login/").status_code == 303
    assert re.match("/admin/$", browser.get("/admin").headers["Location"])
