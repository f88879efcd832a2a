-- Approves a gate where nothing stands in the way: the third hot write, in one round trip.
--
-- `verdict` is 'approved', or 'long' where anything is not plain (a refusal, an earlier vote, an
-- edit of the rules since, a quorum, a child run, …) and nothing was written: the long way
-- (services/decisions.py) says what is to be said. Order: the idempotency key's lock where there
-- is one, without waiting for it; the drain lock, shared; the run's lock; look and write.
CREATE OR REPLACE FUNCTION approvals_approve(
    p_tenant uuid, p_gate uuid, p_user uuid, p_digest text, p_confirmed boolean, p_typed text,
    p_decision uuid, p_key_id text, p_inner bytea, p_outer bytea, p_actor text,
    p_caller text, p_key text, p_lock bigint,
    OUT verdict text, OUT run uuid, OUT epoch integer, OUT resumed boolean
) LANGUAGE plpgsql AS $$
DECLARE
    g record;
    r record;
    s record;
    i record;
    v_now timestamptz;
    v_authority bigint;
    v_kinds text[];
    v_data text[];
    v_seq bigint;
    v_head bytea;
BEGIN
    verdict := 'long';
    PERFORM set_config('abeyance.tenant_id', p_tenant::text, true);
    -- A key that is held, or was answered, is for the long way to tell.
    IF p_key IS NOT NULL AND (NOT pg_try_advisory_xact_lock(p_lock) OR EXISTS (
        SELECT FROM tenants_idempotentanswer a
        WHERE a.tenant_id = p_tenant AND a.caller = p_caller AND a.key = p_key))
    THEN
        RETURN;
    END IF;
    PERFORM pg_advisory_xact_lock_shared(7341, hashtext(p_tenant::text));
    SELECT o.run_id INTO run FROM approvals_gate o WHERE o.id = p_gate;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    SELECT o.status, o.epoch, o.agent_id, o.requested_by_id, o.open_interrupts, o.state_version,
            o.journal_seq, o.journal_hash, o.due_at, o.damage
        INTO STRICT r FROM interrupts_run o WHERE o.id = run FOR NO KEY UPDATE;
    v_now := clock_timestamp();
    SELECT o.authority_version INTO STRICT v_authority FROM tenants_tenant o WHERE o.id = p_tenant;
    SELECT o.state, o.digest, o.arguments_digest, o.quorum, o.stages, o.approvers, o.expires_at,
            o.fresh_until, o.policy_version, o.rule, o.ceremony, o.required_confirmation,
            o.step_id, o.interrupt_id, o.tool_id, o.tool_version_id, o.routing
        INTO STRICT g FROM approvals_gate o WHERE o.id = p_gate;
    SELECT o.status, o.gate, o.digest, o.tool_version_id INTO STRICT s
        FROM interrupts_step o WHERE o.id = g.step_id;
    SELECT o.status, o.checkpoint INTO i
        FROM interrupts_interrupt o WHERE o.id = g.interrupt_id;
    IF NOT FOUND
        OR g.state <> 'pending' OR g.digest <> p_digest OR r.status <> 'suspended'
        OR s.status <> 'waiting' OR s.gate IS DISTINCT FROM p_gate OR i.status <> 'open'
        OR g.quorum <> 1 OR g.stages <> '[]'::jsonb OR cardinality(g.approvers) > 0
        OR g.routing ? 'cool_down'
        OR g.expires_at <= v_now OR g.fresh_until <= v_now
        OR s.tool_version_id <> g.tool_version_id
        OR EXISTS (SELECT FROM approvals_decision d WHERE d.gate_id = p_gate)
        OR EXISTS (SELECT FROM interrupts_run c WHERE c.parent_id = run)
        OR NOT EXISTS (SELECT FROM tenants_agent a WHERE a.id = r.agent_id AND a.active)
        OR NOT EXISTS (
            SELECT FROM interrupts_tool t WHERE t.id = g.tool_id AND t.retired_at IS NULL
                AND t.current_id = g.tool_version_id)
        OR g.policy_version <> coalesce((
            SELECT max(p.number) FROM approvals_policyversion p WHERE p.status = 'published'), 0)
        OR (g.ceremony <> 'single' AND NOT EXISTS (
            SELECT FROM approvals_view w
            WHERE w.gate_id = p_gate AND w.user_id = p_user AND w.digest = p_digest))
        OR (g.ceremony = 'explicit' AND p_confirmed IS NOT TRUE)
        OR (g.ceremony = 'typed' AND p_typed IS DISTINCT FROM g.required_confirmation)
        -- A run goes on only from a history that verifies; a long one is left to the long way.
        OR r.damage IS NOT NULL OR r.journal_seq > 64
        OR NOT tenants_journal_holds(
            run, r.journal_seq, r.journal_hash, p_key_id, p_inner, p_outer)
        OR approvals_refusal(p_user, g.tool_id, r.agent_id, r.requested_by_id) IS NOT NULL
    THEN
        RETURN;
    END IF;

    verdict := 'approved';
    INSERT INTO approvals_decision (id, tenant_id, gate_id, user_id, verdict, digest, approves,
            policy_version, counts, at)
        VALUES (p_decision, p_tenant, p_gate, p_user, 'approve', p_digest, g.arguments_digest,
            g.policy_version, true, v_now);
    UPDATE approvals_gate SET state = 'approved', settled_at = v_now, due_at = NULL
        WHERE id = p_gate;
    DELETE FROM approvals_assignment WHERE gate_id = p_gate;
    UPDATE interrupts_step SET status = 'ready', held_by = NULL, authorized_by = 'decision',
            authorized_rule = g.rule, authorized_gate = p_gate, authorized_digest = s.digest,
            authorized_under = v_authority, authorized_tool_version = s.tool_version_id,
            authorized_policy_version = g.policy_version, authorized_until = NULL
        WHERE id = g.step_id;
    UPDATE interrupts_interrupt SET status = 'resolved', resolution = 'resume',
            response = jsonb_build_object('gate', p_gate, 'decision', p_decision,
                'verdict', 'approve', 'resolution', 'resume', 'note', NULL),
            resolved_by = p_actor::jsonb, resolved_at = v_now
        WHERE id = g.interrupt_id;
    v_kinds := ARRAY['gate.decided', 'step.authorized', 'interrupt.resolved'];
    v_data := ARRAY[
        '{"approves":"' || g.arguments_digest || '","decision":"' || p_decision
            || '","digest":"' || p_digest || '","edits":null,"gate":"' || p_gate
            || '","policy_version":' || g.policy_version || ',"step":"' || g.step_id
            || '","verdict":"approve"}',
        '{"by":"decision","digest":"' || s.digest || '","gate":"' || p_gate
            || '","policy_version":' || g.policy_version || ',"rule":'
            || to_json(g.rule::text)::text || ',"step":"' || g.step_id || '","under":' || v_authority
            || ',"until":null,"version":"' || s.tool_version_id || '"}',
        '{"by":' || p_actor || ',"interrupt":"' || g.interrupt_id || '","resolution":"resume"}'];
    epoch := r.epoch;
    resumed := r.open_interrupts = 1;
    IF resumed THEN
        v_kinds := v_kinds || 'run.resumed'::text;
        v_data := v_data || ('{"epoch":' || r.epoch || '}');
    END IF;
    SELECT e.seq, e.head INTO v_seq, v_head FROM tenants_journal_extend(
        p_tenant, run, r.journal_seq, r.journal_hash, v_now, p_key_id, p_inner, p_outer,
        p_actor, v_kinds, v_data) e;
    UPDATE interrupts_run SET state_version = r.state_version + 1, journal_seq = v_seq,
            journal_hash = v_head, open_interrupts = r.open_interrupts - 1,
            status = CASE WHEN resumed THEN 'running' ELSE status END,
            suspension = CASE WHEN resumed THEN NULL ELSE suspension END,
            count_unknown = CASE WHEN resumed THEN 0 ELSE count_unknown END,
            count_in_flight = CASE WHEN resumed THEN 0 ELSE count_in_flight END,
            count_partial = CASE WHEN resumed THEN 0 ELSE count_partial END,
            last_seen_at = CASE WHEN resumed THEN v_now ELSE last_seen_at END,
            updated_at = v_now, due_at = least(r.due_at, v_now + interval '2 seconds')
        WHERE id = run;
END $$;
