"""Signing in, choosing a tenant, signing out."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.hashers import make_password
from django.contrib.sessions.models import Session
from django.db import connection

from tenants.ids import uuid7
from tenants.models import Membership, Role, SignInCount, Tenant, User
from tenants.scope import tenant_scope
from tenants.services import signing_in
from tests.pages.browser import Browser, outside
from tests.pages.conftest import FAST, PASSWORD, nothing_changes

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _fast_passwords(settings: Any) -> None:
    settings.PASSWORD_HASHERS = FAST


def person(name: str, *tenants: Tenant, **more: Any) -> User:
    user = User.objects.create(username=name, password=make_password(PASSWORD), **more)
    for tenant in tenants:
        with tenant_scope(tenant.pk):
            Membership.objects.create(user=user, role=Role.APPROVER)
    return user


def tenant(slug: str) -> Tenant:
    made = Tenant(pk=uuid7(), slug=slug, name=slug.title())
    with tenant_scope(made.pk):
        made.save(force_insert=True)
    return made


def test_who_is_not_signed_in_is_led_to_sign_in_and_back() -> None:
    person("dora", tenant("acme"))
    browser = Browser()
    away = browser.get("/decided?before=x")
    assert (away.status, away.location) == (303, "/sign-in?next=%2Fdecided%3Fbefore%3Dx")
    back = browser.send(browser.follow(away), "/sign-in", name="dora", password=PASSWORD)
    assert back.location == "/decided?before=x"
    assert "Decided by you" in browser.follow(back).text


def test_a_person_of_one_tenant_enters_it_at_once() -> None:
    person("dora", tenant("acme"))
    browser = Browser()
    assert browser.sign_in("dora", PASSWORD).location == "/inbox"
    assert "Acme" in browser.get("/inbox").text


def test_a_person_signs_in_by_an_address_that_is_theirs_alone() -> None:
    acme = tenant("acme")
    person("dora", acme, email="Dora@Acme.test")
    person("emil", acme, email="shared@acme.test")
    person("fritz", acme, email="shared@acme.test")
    assert Browser().sign_in("dora@acme.TEST", PASSWORD).status == 303
    assert Browser().sign_in("shared@acme.test", PASSWORD).status == 422


def test_a_person_of_several_tenants_chooses_and_changes() -> None:
    acme, umbrella = tenant("acme"), tenant("umbrella")
    person("dora", acme, umbrella)
    browser = Browser()
    chosen = browser.sign_in("dora", PASSWORD)
    assert chosen.location == "/tenant?next=%2Finbox"
    choice = browser.follow(chosen)
    assert "Acme" in choice.text
    assert browser.send(choice, "/tenant", tenant="umbrella").location == "/inbox"
    assert "Umbrella" in browser.get("/inbox").text
    browser.send(browser.get("/tenant"), "/tenant", tenant="acme")
    assert "Acme" in browser.get("/inbox").text


def test_a_tenant_that_one_does_not_belong_to_cannot_be_chosen() -> None:
    person("dora", tenant("acme"), tenant("umbrella"))
    tenant("initech")
    browser = Browser()
    browser.sign_in("dora", PASSWORD)
    for slug in ("initech", "nowhere", ""):
        again = browser.send(browser.get("/tenant"), "/tenant", tenant=slug)
        assert again.location == "/tenant"
    assert browser.get("/inbox").location == "/tenant?next=%2Finbox"


def test_a_person_of_no_tenant_is_told_so() -> None:
    person("dora")
    browser = Browser()
    browser.sign_in("dora", PASSWORD)
    assert "You belong to no tenant" in browser.get("/tenant").text


def test_who_leaves_a_tenant_sees_nothing_of_it_any_more() -> None:
    acme = tenant("acme")
    user = person("dora", acme)
    browser = Browser()
    browser.sign_in("dora", PASSWORD)
    with tenant_scope(acme.pk):
        Membership.objects.filter(user=user).update(active=False)
    away = browser.get("/inbox")
    assert away.location == "/tenant?next=%2Finbox"
    assert "You no longer belong" in browser.follow(away).text


def test_a_deactivated_persons_session_is_over() -> None:
    user = person("dora", tenant("acme"))
    browser = Browser()
    browser.sign_in("dora", PASSWORD)
    User.objects.filter(pk=user.pk).update(is_active=False)
    assert browser.get("/inbox").location.startswith("/sign-in")


@pytest.mark.parametrize(
    ("name", "password"),
    [("dora", "wrong"), ("nobody", PASSWORD), ("gone", PASSWORD), ("dora", ""), ("", PASSWORD)],
)
def test_wrong_credentials_are_refused_alike(name: str, password: str) -> None:
    acme = tenant("acme")
    person("dora", acme)
    person("gone", acme, is_active=False)
    browser = Browser()
    refused = browser.sign_in(name, password)
    assert refused.status == 422
    assert "No person signs in with that name and password." in refused.text
    assert refused.form("/sign-in").fields["name"] == name
    assert refused.form("/sign-in").fields["password"] == ""
    assert browser.get("/inbox").location.startswith("/sign-in")


@pytest.mark.parametrize(
    "onward",
    [
        "https://evil.test/",
        "//evil.test/",
        "/\\evil.test/",
        "javascript:alert(1)",
        "\thttps://evil.test",
        "inbox",
        "/" + "x" * 600,
    ],
)
def test_sign_in_leads_to_no_other_place(onward: str) -> None:
    person("dora", tenant("acme"))
    browser = Browser()
    page = browser.get("/sign-in")
    entered = browser.send(page, "/sign-in", name="dora", password=PASSWORD, next=onward)
    assert (entered.status, entered.location) == (303, "/")
    chosen = browser.send(browser.get("/tenant"), "/tenant", tenant="acme", next=onward)
    assert chosen.location == "/"


def test_guessing_ends_for_a_while_and_the_right_password_with_it() -> None:
    person("dora", tenant("acme"))
    browser = Browser()
    for _ in range(signing_in.PER_NAME_AND_ADDRESS):
        assert browser.sign_in("Dora", "wrong").status == 422
    blocked = browser.sign_in("dora", PASSWORD)
    assert blocked.status == 429
    assert 0 < int(blocked.response.headers["Retry-After"]) <= signing_in.WINDOW_SECONDS
    assert "Too many tries" in blocked.text
    assert browser.get("/inbox").location.startswith("/sign-in")
    # From elsewhere, and under another name, it goes on.
    assert Browser(REMOTE_ADDR="192.0.2.7").sign_in("dora", PASSWORD).status == 303
    assert browser.sign_in("somebody", "wrong").status == 422


def test_the_block_ends_with_its_window() -> None:
    person("dora", tenant("acme"))
    browser = Browser()
    for _ in range(signing_in.PER_NAME_AND_ADDRESS + 1):
        browser.sign_in("dora", "wrong")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE tenants_signincount SET until = now() - interval '1 second'")
    assert browser.sign_in("dora", PASSWORD).status == 303


def test_signing_in_takes_its_try_back() -> None:
    person("dora", tenant("acme"))
    browser = Browser()
    for _ in range(3):
        browser.sign_in("dora", "wrong")
    browser.sign_in("dora", PASSWORD)
    assert sorted(SignInCount.objects.values_list("tries", flat=True)) == [3, 3]


def test_many_names_from_one_address_end_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signing_in, "PER_ADDRESS", 4)
    for number in range(4):
        assert Browser().sign_in(f"name{number}", "wrong").status == 422
    assert Browser().sign_in("name9", "wrong").status == 429
    assert Browser(REMOTE_ADDR="192.0.2.7").sign_in("name9", "wrong").status == 422


def test_one_name_from_many_addresses_ends_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signing_in, "PER_NAME", 4)
    for number in range(4):
        assert Browser(REMOTE_ADDR=f"192.0.2.{number}").sign_in("dora", "x").status == 422
    assert Browser(REMOTE_ADDR="192.0.2.9").sign_in("dora", "x").status == 429


def test_what_was_mistyped_is_not_kept() -> None:
    Browser().sign_in("hunter2-typed-as-the-name", "x")
    kept = SignInCount.objects.values_list("subject", flat=True)
    assert len(kept) == 3
    assert all(len(subject) == 64 and "hunter2" not in subject for subject in kept)


def test_a_forwarded_address_counts_only_behind_our_own_proxy(settings: Any) -> None:
    for number in range(signing_in.PER_NAME_AND_ADDRESS + 1):
        last = Browser(HTTP_X_FORWARDED_FOR=f"198.51.100.{number}").sign_in("dora", "x")
    assert last.status == 429
    settings.ABEYANCE_PROXIES = 1
    assert Browser(HTTP_X_FORWARDED_FOR="198.51.100.1").sign_in("dora", "x").status == 422
    for number in range(signing_in.PER_NAME_AND_ADDRESS):
        # What the client claims stands left of what the proxy saw.
        last = Browser(HTTP_X_FORWARDED_FOR=f"1.1.1.{number}, 198.51.100.1").sign_in("dora", "x")
    assert last.status == 429


def test_a_form_of_another_site_signs_nobody_in_or_out() -> None:
    person("dora", tenant("acme"))
    browser = Browser()
    forged = browser.post("/sign-in", {"name": "dora", "password": PASSWORD})
    assert forged.status == 403
    assert "Nothing was recorded." in forged.text
    browser.sign_in("dora", PASSWORD)
    assert browser.post("/sign-out", {}).status == 403
    assert browser.post("/tenant", {"tenant": "acme"}).status == 403
    assert browser.get("/inbox").status == 200


def test_a_form_sent_from_another_origin_is_refused_whatever_it_holds(settings: Any) -> None:
    settings.CSRF_TRUSTED_ORIGINS = ["https://abeyance.example"]
    person("dora", tenant("acme"))
    for origin, status in (("https://evil.test", 403), ("https://abeyance.example", 303)):
        browser = Browser()
        form = browser.get("/sign-in").form("/sign-in")
        fields = {**form.fields, "name": "dora", "password": PASSWORD}
        assert browser.post("/sign-in", fields, Origin=origin).status == status


def test_sessions_that_have_expired_are_dropped() -> None:
    person("dora", tenant("acme"))
    Browser().sign_in("dora", PASSWORD)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE django_session SET expire_date = now() - interval '1 second'")
    Browser().sign_in("dora", PASSWORD)
    assert Session.objects.count() == 1


def test_signing_in_gives_the_session_another_key() -> None:
    person("dora", tenant("acme"))
    browser = Browser()
    browser.client.cookies["sessionid"] = "chosenbyanattacker00000000000000"
    browser.sign_in("dora", PASSWORD)
    assert browser.client.cookies["sessionid"].value != "chosenbyanattacker00000000000000"


def test_sign_out_ends_the_session_and_a_get_does_not() -> None:
    person("dora", tenant("acme"))
    browser = Browser()
    browser.sign_in("dora", PASSWORD)
    assert browser.get("/sign-out").status == 405
    page = browser.get("/inbox")
    assert browser.send(page, "/sign-out").location == "/sign-in"
    assert browser.get("/inbox").location.startswith("/sign-in")


def test_a_post_without_a_session_says_that_it_was_not_recorded() -> None:
    person("dora", tenant("acme"))
    browser = Browser()
    browser.sign_in("dora", PASSWORD)
    page = browser.get("/profile")
    browser.send(browser.get("/inbox"), "/sign-out")
    with nothing_changes():
        away = browser.send(page, "/profile", theme="dark")
    assert away.location == "/sign-in?next=%2Fprofile&lost=1"
    assert "It was not recorded" in browser.follow(away).text


def test_the_places_of_a_person_are_read_without_a_tenant() -> None:
    acme, umbrella = tenant("acme"), tenant("umbrella")
    user = person("dora", acme, umbrella)
    with tenant_scope(umbrella.pk):
        Membership.objects.update(active=False)
    places = outside(lambda: signing_in.places_of(user.pk))
    assert [(one.slug, one.role) for one in places] == [("acme", "approver")]
