-- The latest gates of a tenant, or of a tool, are found from the end of an index and no further.
--
-- The owner and the id are compared as a row, and ordered by: only an index that begins with the
-- owner gives them so. Else a plan that knows of few gates sorts all of them, and one that knows of
-- many walks back through everybody's by their ids.
CREATE FUNCTION approvals_latest(
    p_tenant uuid, p_tool text, p_first uuid, p_since timestamptz, p_most integer
) RETURNS SETOF uuid LANGUAGE plpgsql STABLE ROWS 10000
SET enable_sort = off SET enable_bitmapscan = off SET enable_seqscan = off AS $$
DECLARE
    v_last CONSTANT uuid := 'ffffffff-ffff-ffff-ffff-ffffffffffff';
    v_tool uuid;
BEGIN
    IF p_tool IS NULL THEN
        RETURN QUERY SELECT o.id FROM approvals_gate o
            WHERE (o.tenant_id, o.id) >= (p_tenant, p_first)
                AND (o.tenant_id, o.id) <= (p_tenant, v_last) AND o.opened_at >= p_since
            ORDER BY o.tenant_id DESC, o.id DESC LIMIT p_most;
        RETURN;
    END IF;
    SELECT t.id INTO v_tool FROM interrupts_tool t
        WHERE t.tenant_id = p_tenant AND t.name = p_tool;
    RETURN QUERY SELECT o.id FROM approvals_gate o
        WHERE (o.tool_id, o.id) >= (v_tool, p_first)
            AND (o.tool_id, o.id) <= (v_tool, v_last) AND o.opened_at >= p_since
        ORDER BY o.tool_id DESC, o.id DESC LIMIT p_most;
END $$;

-- How the latest gates of a tool ended, but for those that rules decided; p_approved counts as
-- approved, whatever it is yet. Its plan walks an index back from its end: of a young table one that
-- sorts all gates of the tool looks cheaper, and is kept while the table grows.
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
