"""A plain approval is written as it was shown, and its answer is kept, in one statement."""

from pathlib import Path

from django.db import migrations

HERE = Path(__file__).parent
BEFORE = (
    "approvals_approve(uuid, uuid, uuid, text, boolean, text, uuid, text, bytea, bytea, text,"
    " text, text, bigint)"
)
AFTER = (
    "approvals_approve(uuid, uuid, uuid, bigint, bigint, xid, timestamptz, uuid, text, boolean,"
    " text, uuid, text, bytea, bytea, text, bigint, text, text, bytea, smallint, jsonb, bytea,"
    " boolean)"
)


class Migration(migrations.Migration):
    dependencies = [
        ("approvals", "0021_context_goes_the_long_way"),
        ("interrupts", "0016_steps_keep_what_policy_saw"),
        ("tenants", "0008_daily_budgets"),
    ]
    operations = [
        migrations.RunSQL(
            f"DROP FUNCTION {BEFORE}",
            (HERE / "0015_approvals_that_cool_down.sql")
            .read_text()
            .replace(
                "SELECT o.status, o.gate, o.digest, o.tool_version_id INTO STRICT s",
                "SELECT o.status, o.gate, o.digest, o.tool_version_id, o.context INTO STRICT s",
            )
            .replace(
                "OR s.tool_version_id <> g.tool_version_id",
                "OR s.tool_version_id <> g.tool_version_id OR s.context IS NOT NULL",
            ),
        ),
        migrations.RunSQL(
            (HERE / "0022_approve_what_was_seen.sql").read_text(), f"DROP FUNCTION {AFTER}"
        ),
    ]
