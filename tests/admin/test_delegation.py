"""Rules in the admin: read there, with the figures of the tenant; acted on by their own page."""

from __future__ import annotations

import re

from django.test import Client

from delegation.models import Delegation
from tenants.models import User
from tenants.scope import tenant_scope
from tests.admin.conftest import signed_in
from tests.approvals.house import House

RULES = "/admin/delegation/delegation/"


def browser_of(house: House, who: str = "ada") -> Client:
    return signed_in(User.objects.get(username=who), house.tenant.pk)


def test_the_list_of_rules_leads_to_the_figures_and_each_rule_to_its_page(lived: House) -> None:
    browser = browser_of(lived)
    listed = browser.get(RULES).content.decode()
    assert re.search(rf'href="{RULES}figures/?"', listed)
    with tenant_scope(lived.tenant.pk):
        made = Delegation.objects.get()
    shown = browser.get(f"{RULES}{made.pk}/change/").content.decode()
    assert f'href="/delegation/{made.pk}"' in shown
    assert "_save" not in shown


def test_the_figures_say_what_policy_lets_be_delegated(lived: House) -> None:
    with tenant_scope(lived.tenant.pk):
        above = "decimal(arguments.amount) > decimal('20')"
        lived.policy(
            delegation={
                "low": "automatic",
                "medium": "off",
                "preset": "eager",
                "never": [{"tools": ["payments.*"], "condition": above}],
            }
        )
    page = browser_of(lived).get(f"{RULES}figures/").content.decode()
    for title, said in (
        ("Low risk", "automatic"),
        ("Medium risk", "off"),
        ("Preset", "eager"),
        ("High risk, or irreversible", "never"),
    ):
        assert f"<dt>{title}</dt><dd>{said}</dd>" in page
    assert "payments.* where <code>decimal(arguments.amount) &gt; decimal(&#x27;20&#x27;)" in page


def test_nobody_but_admins_sees_them(lived: House) -> None:
    for who in ("alice", "olga", "vera"):
        assert browser_of(lived, who).get(f"{RULES}figures/").status_code in {302, 303, 403}, who
