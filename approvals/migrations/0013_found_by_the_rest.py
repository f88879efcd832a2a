"""A young tenant's gates and what belongs to them are found by their ids, never by its own."""

from django.db import migrations

from tenants import rls

# How the latest gates of a tool ended. Its plans walk an index back from its end, whatever is known
# of the table: one that sorts all gates of the tool is chosen too easily while they are few.
SIMILAR = """
CREATE FUNCTION approvals_similar(
    p_tool uuid, p_most integer, OUT approved bigint, OUT rejected bigint, OUT edited bigint
) LANGUAGE plpgsql STABLE
SET enable_sort = off SET enable_bitmapscan = off SET enable_seqscan = off AS $$
DECLARE
    v_since uuid;
    v_edited uuid[];
BEGIN
    SELECT count(*) FILTER (WHERE p.state = 'approved'),
            count(*) FILTER (WHERE p.state = 'rejected'), (array_agg(p.id))[count(*)]
        INTO approved, rejected, v_since
        FROM (SELECT o.id, o.state FROM approvals_gate o WHERE o.tool_id = p_tool
            ORDER BY o.id DESC LIMIT p_most) p;
    v_edited := ARRAY(SELECT DISTINCT d.gate_id FROM approvals_decision d
        WHERE d.counts AND d.edits IS NOT NULL AND d.gate_id >= v_since);
    edited := 0;
    IF cardinality(v_edited) > 0 THEN
        SELECT count(*) INTO edited FROM approvals_gate o
            WHERE o.id = ANY (v_edited) AND o.tool_id = p_tool AND o.state = 'approved';
    END IF;
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
