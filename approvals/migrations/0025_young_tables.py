"""What deciding reads is found by its ids, whatever is known of the tables: also of young ones."""

from pathlib import Path

from django.db import migrations

HERE = Path(__file__).parent

# How the latest gates of a tool ended, but for those that rules decided; p_approved counts as
# approved, whatever it is yet. Its plan walks an index back from its end: of a young table one that
# sorts all gates of the tool looks cheaper, and is kept while the table grows.
ENDS = """
CREATE FUNCTION approvals_ends(p_tool uuid, p_approved uuid, p_most integer) RETURNS bigint[]
LANGUAGE plpgsql STABLE
SET enable_sort = off SET enable_bitmapscan = off SET enable_seqscan = off AS $$
DECLARE
    v_first CONSTANT uuid := '00000000-0000-0000-0000-000000000000';
    v_last CONSTANT uuid := 'ffffffff-ffff-ffff-ffff-ffffffffffff';
BEGIN
    RETURN (SELECT array[
            count(*) FILTER (WHERE p.state = 'approved' AND p.pattern <> 'allowlist'
                OR p.id = p_approved),
            count(*) FILTER (WHERE p.state = 'rejected'),
            count(*) FILTER (WHERE p.state = 'approved' AND EXISTS (
                SELECT FROM approvals_decision d
                WHERE d.gate_id = p.id AND d.counts AND d.edits IS NOT NULL))]
        FROM (SELECT o.id, o.state, o.pattern FROM approvals_gate o
            WHERE (o.tool_id, o.id) >= (p_tool, v_first) AND (o.tool_id, o.id) <= (p_tool, v_last)
            ORDER BY o.tool_id DESC, o.id DESC LIMIT p_most) p);
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("approvals", "0024_decisions_in_bulk")]
    operations = [
        migrations.RunSQL(ENDS, "DROP FUNCTION approvals_ends"),
        migrations.RunSQL(
            (HERE / "0025_young_tables.sql").read_text(),
            (HERE / "0022_approve_what_was_seen.sql")
            .read_text()
            .replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION"),
        ),
    ]
