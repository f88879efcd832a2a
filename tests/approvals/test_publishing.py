"""A policy is published once, stays what it was, and makes older authorizations stale."""

import pytest
from django.db import DatabaseError, connection, transaction

from approvals.models import PolicyVersion
from approvals.services.policies import publish_policy
from tenants.journal import SYSTEM
from tenants.models import JournalEntry, Tenant
from tenants.scope import tenant_scope
from tenants.services.organisations import make_tenant

pytestmark = pytest.mark.django_db

READS = {"rules": [{"name": "reads", "trigger": "action", "tools": ["*.get"], "then": "allow"}]}


def test_each_other_policy_is_the_next_version() -> None:
    tenant, _ = make_tenant(SYSTEM, slug="acme", name="Acme")

    def authority() -> int:
        return Tenant.objects.get(pk=tenant.pk).authority_version

    with tenant_scope(tenant.pk):
        before = authority()
        (change,) = publish_policy(SYSTEM, READS)
        assert (change.name, change.kind, authority()) == ("version 1", "added", before + 1)
        assert publish_policy(SYSTEM, {"rules": [dict(READS["rules"][0])]}) == []
        (change,) = publish_policy(SYSTEM, {"rules": []}, why="ask about everything")
        assert (change.kind, change.narrows, authority()) == ("changed", True, before + 2)
        assert change.fields["rules"] == (READS["rules"], [])
        publish_policy(SYSTEM, READS)
        found = PolicyVersion.objects.order_by("number")
        assert [(one.number, one.status, one.document["rules"]) for one in found] == [
            (1, "published", READS["rules"]),
            (2, "published", []),
            (3, "published", READS["rules"]),
        ]
        assert all(one.published_at for one in found)
        assert JournalEntry.objects.filter(kind="policy.changed").count() == 2


def test_a_published_policy_cannot_be_changed() -> None:
    tenant, _ = make_tenant(SYSTEM, slug="acme", name="Acme")
    with tenant_scope(tenant.pk):
        publish_policy(SYSTEM, READS)
        for change in (
            "UPDATE approvals_policyversion SET document = '{}'",
            "DELETE FROM approvals_policyversion",
        ):
            with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
                cursor.execute(change)
        assert PolicyVersion.objects.get().document == READS
