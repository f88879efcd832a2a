"""What the database keeps of rules, and of what they are learned from, by itself."""

from django.db import migrations

from tenants import rls


class Migration(migrations.Migration):
    dependencies = [("delegation", "0001_tables"), ("approvals", "0002_promises")]
    operations = [
        rls.tenant_table("delegation_delegation"),
        rls.tenant_table("delegation_delegationuse", key=None),
        rls.tenant_table("delegation_spotcheck", key=None),
        rls.tenant_table("delegation_decisionevent", key=None),
        rls.tenant_table("delegation_delegationversion", key=None),
        rls.tenant_table("delegation_delegationday", key=None),
        rls.tenant_table("delegation_eventstream", key=None),
        rls.tenant_table("delegation_learnerstate", key=None),
        rls.tenant_table("delegation_delegationtemplate", key=None),
        rls.tenant_table("delegation_delegationpreference", key=None),
        rls.tenant_reference("delegation_delegationuse", "delegation_id", "delegation_delegation"),
        rls.tenant_reference("delegation_spotcheck", "delegation_id", "delegation_delegation"),
        rls.tenant_reference("delegation_delegationday", "delegation_id", "delegation_delegation"),
        rls.tenant_reference(
            "delegation_delegationversion", "delegation_id", "delegation_delegation"
        ),
        # What refers to a rule of its tenant needs no reference to the tenant.
        rls.tenant_implied(
            "delegation_delegationuse",
            "delegation_spotcheck",
            "delegation_delegationday",
            "delegation_delegationversion",
        ),
        rls.append_only("delegation_decisionevent"),
        rls.append_only("delegation_delegationuse"),
        rls.append_only("delegation_delegationversion"),
        rls.swept(
            "delegation_eventstream",
            "id, tenant_id, due_at",
            "true",  # a tenant that has no row yet is told from one whose row is not due
        ),
    ]
