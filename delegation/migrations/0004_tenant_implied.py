"""What refers to a rule of its tenant needs no reference to the tenant."""

from django.db import migrations

from tenants import rls


class Migration(migrations.Migration):
    dependencies = [("delegation", "0003_rules_and_learning")]
    operations = [
        rls.tenant_implied(
            "delegation_delegationuse",
            "delegation_spotcheck",
            "delegation_delegationday",
            "delegation_delegationversion",
        )
    ]
