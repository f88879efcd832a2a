"""The hot approval leaves a gate of an agent that acts no more to the long way, which denies it."""

from pathlib import Path

from django.db import migrations

BEFORE = (
    (Path(__file__).parent / "0008_approve_under_a_key.sql")
    .read_text()
    .replace("CREATE FUNCTION approvals_approve", "CREATE OR REPLACE FUNCTION approvals_approve")
)
CHILDREN = "        OR EXISTS (SELECT FROM interrupts_run c WHERE c.parent_id = run)\n"
ACTS = "        OR NOT EXISTS (SELECT FROM tenants_agent a WHERE a.id = r.agent_id AND a.active)\n"


class Migration(migrations.Migration):
    dependencies = [("approvals", "0009_tenant_implied")]
    operations = [migrations.RunSQL(BEFORE.replace(CHILDREN, CHILDREN + ACTS), BEFORE)]
