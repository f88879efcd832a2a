"""Of a tool's latest gates those that were edited are looked up by their ids, not in all since."""

from django.db import migrations

# What was edited since the oldest of them is everybody's: a tool that is seldom used, or new, would
# walk the edits of all tenants with each approval.
SIMILAR = """
CREATE OR REPLACE FUNCTION approvals_similar(
    p_tool uuid, p_most integer, OUT approved bigint, OUT rejected bigint, OUT edited bigint
) LANGUAGE plpgsql STABLE
SET enable_sort = off SET enable_bitmapscan = off SET enable_seqscan = off AS $$
DECLARE
    v_approved uuid[];
BEGIN
    SELECT count(*) FILTER (WHERE p.state = 'approved'),
            count(*) FILTER (WHERE p.state = 'rejected'),
            array_agg(p.id) FILTER (WHERE p.state = 'approved')
        INTO approved, rejected, v_approved
        FROM (SELECT o.id, o.state FROM approvals_gate o WHERE o.tool_id = p_tool
            ORDER BY o.id DESC LIMIT p_most) p;
    SELECT count(DISTINCT d.gate_id) INTO edited FROM approvals_decision d
        WHERE d.counts AND d.edits IS NOT NULL AND d.gate_id = ANY (v_approved);
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("approvals", "0013_found_by_the_rest")]
    operations = [migrations.RunSQL(SIMILAR, migrations.RunSQL.noop)]
