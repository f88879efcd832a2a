"""The third hot write: a plain approval in one round trip (docs/adr/0001)."""

from pathlib import Path

from django.db import migrations

from approvals.authority import refusal_sql

FUNCTION = (Path(__file__).parent / "0003_hot_path.sql").read_text()
# The one authority function (approvals/authority.py), where the hot write can call it.
REFUSAL = f"""
CREATE FUNCTION approvals_refusal(p_user uuid, p_tool uuid, p_agent uuid, p_requester uuid)
    RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN {refusal_sql(user="p_user", tool="p_tool", agent="p_agent", requester="p_requester")};
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("approvals", "0002_security_and_guards"),
        ("interrupts", "0003_hot_path"),
    ]
    operations = [
        migrations.RunSQL(REFUSAL, "DROP FUNCTION approvals_refusal"),
        migrations.RunSQL(FUNCTION, "DROP FUNCTION approvals_approve"),
    ]
