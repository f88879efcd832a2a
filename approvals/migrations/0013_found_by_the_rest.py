"""A young tenant's gates and what belongs to them are found by their ids, never by its own."""

from django.db import migrations

from tenants import rls

# How the latest gates of a tool ended. Its plans walk an index back from its end, whatever is known
# of the table: one that sorts all gates of the tool is chosen too easily while they are few. Those
# that were edited are looked up by their ids: what was edited since the oldest of them is everybody's.
SIMILAR = """
CREATE FUNCTION approvals_similar(
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
    dependencies = [
        ("approvals", "0012_views_are_vouched_for"),
        ("interrupts", "0009_found_by_the_rest"),
    ]
    operations = [
        rls.found_by_the_rest(
            "approvals_gate", "approvals_decision", "approvals_view", "approvals_assignment"
        ),
        migrations.RunSQL(SIMILAR, "DROP FUNCTION approvals_similar"),
    ]
