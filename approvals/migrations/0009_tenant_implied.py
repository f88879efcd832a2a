"""What refers to a gate or a run of its tenant needs no reference to the tenant."""

from django.db import migrations

from tenants import rls


class Migration(migrations.Migration):
    dependencies = [
        ("approvals", "0008_approve_under_a_key"),
        ("interrupts", "0005_tenant_implied"),
    ]
    operations = [
        rls.tenant_implied(
            "approvals_gate", "approvals_decision", "approvals_view", "approvals_assignment"
        )
    ]
