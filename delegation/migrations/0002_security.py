from django.db import migrations

from tenants import rls


class Migration(migrations.Migration):
    dependencies = [
        ("delegation", "0001_initial"),
        ("approvals", "0002_security_and_guards"),
    ]
    operations = [
        rls.tenant_table("delegation_delegation"),
        rls.tenant_table("delegation_delegationuse", key=None),
        rls.tenant_table("delegation_spotcheck", key=None),
        rls.tenant_table("delegation_decisionevent", key=None),
        rls.tenant_reference("delegation_delegationuse", "delegation_id", "delegation_delegation"),
        rls.tenant_reference("delegation_spotcheck", "delegation_id", "delegation_delegation"),
        rls.append_only("delegation_decisionevent"),
        rls.append_only("delegation_delegationuse"),
    ]
