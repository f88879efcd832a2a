-- Approves a gate where nothing stands in the way: the third hot write, a transaction by itself.
--
-- Its caller has seen the gate, and says so: the run's version, the tenant's authority version, who
-- wrote the gate's row, and the database's time then, which is the time of the approval. By that
-- time all was there that the approval rests on, and nothing was written to the run since. What it
-- was told to write is what stands in the answer that it keeps under the request's idempotency key,
-- where there is one.
--
-- Returns the epoch of the run that is to be woken. NULL where anything is not plain (a refusal, an
-- earlier vote, a change since it was seen, an edit of the rules since, a quorum, a child run, …)
-- and nothing was written: the long way (services/decisions.py) says what is to be said. Order: the
-- key's lock, without waiting for it; the drain lock, shared; the run's lock; look and write. With
-- p_leave the session's tenant is taken off it, where something was written.
CREATE FUNCTION approvals_approve(
    p_tenant uuid, p_gate uuid, p_run uuid, p_version bigint, p_under bigint, p_written xid,
    p_at timestamptz, p_user uuid, p_digest text, p_confirmed boolean, p_typed text,
    p_decision uuid, p_key_id text, p_inner bytea, p_outer bytea, p_actor text,
    p_lock bigint, p_caller text, p_key text, p_fingerprint bytea,
    p_status smallint, p_headers jsonb, p_body bytea, p_leave boolean
) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    r record;
    g record;
    j record;
    v_now timestamptz;
    v_resumed boolean;
    v_kinds text[];
    v_data text[];
BEGIN
    -- A key that is held is for the long way to tell.
    IF NOT coalesce(pg_try_advisory_xact_lock(p_lock), true) THEN
        RETURN NULL;
    END IF;
    PERFORM set_config('abeyance.tenant_id', p_tenant::text, true),
        pg_advisory_xact_lock_shared(7341, hashtext(p_tenant::text));
    SELECT o.status, o.epoch, o.agent_id, o.requested_by_id, o.open_interrupts, o.state_version,
            o.journal_seq, o.journal_hash, o.due_at, o.updated_at, o.damage
        INTO r FROM interrupts_run o WHERE o.id = p_run FOR NO KEY UPDATE;
    v_now := clock_timestamp();
    -- What was seen, and not long ago; a run goes on only from a history that verifies, and a long
    -- one is left to the long way.
    IF r.state_version IS DISTINCT FROM p_version OR r.status <> 'suspended'
        OR p_at > v_now OR p_at < v_now - interval '2 seconds' OR p_at < r.updated_at
        OR r.damage IS NOT NULL OR r.journal_seq > 64
    THEN
        RETURN NULL;
    END IF;
    SELECT o.arguments_digest, o.policy_version, o.rule, o.ceremony, o.required_confirmation,
            o.step_id, o.interrupt_id, o.tool_id, o.tool_version_id, s.digest, t.authority_version,
            i.status AS interrupt_status
        INTO g
        FROM approvals_gate o
        JOIN interrupts_step s ON s.id = o.step_id
        JOIN interrupts_interrupt i ON i.id = o.interrupt_id
        JOIN tenants_tenant t ON t.id = p_tenant AND t.authority_version = p_under
        WHERE o.id = p_gate AND o.run_id = p_run AND o.xmin = p_written
            AND o.state = 'pending' AND o.digest = p_digest
            AND s.status = 'waiting' AND s.gate = p_gate
            AND o.quorum = 1 AND o.stages = '[]'::jsonb AND cardinality(o.approvers) = 0
            AND NOT o.routing ? 'cool_down'
            AND (o.expires_at > v_now) IS NOT FALSE AND (o.fresh_until > v_now) IS NOT FALSE
            AND s.tool_version_id = o.tool_version_id AND s.context IS NULL;
    -- Asked after it was read: the index of what is open would be gone through to find one of them.
    IF NOT FOUND OR g.interrupt_status <> 'open'
        OR EXISTS (SELECT FROM approvals_decision d WHERE d.gate_id = p_gate)
        OR EXISTS (SELECT FROM interrupts_run c WHERE c.parent_id = p_run)
        OR NOT EXISTS (SELECT FROM tenants_agent a WHERE a.id = r.agent_id AND a.active)
        OR NOT EXISTS (
            SELECT FROM interrupts_tool t WHERE t.id = g.tool_id AND t.retired_at IS NULL
                AND t.current_id = g.tool_version_id)
        OR g.policy_version <> coalesce((
            SELECT max(p.number) FROM approvals_policyversion p WHERE p.status = 'published'), 0)
    THEN
        RETURN NULL;
    END IF;
    IF g.ceremony <> 'single' THEN
        IF NOT EXISTS (
                SELECT FROM approvals_view w
                WHERE w.gate_id = p_gate AND w.user_id = p_user AND w.digest = p_digest
                    AND w.at <= p_at)
            OR (g.ceremony = 'explicit' AND p_confirmed IS NOT TRUE)
            OR (g.ceremony = 'typed' AND p_typed IS DISTINCT FROM g.required_confirmation)
        THEN
            RETURN NULL;
        END IF;
    END IF;
    IF NOT tenants_journal_holds(
            p_run, r.journal_seq, r.journal_hash, p_key_id, p_inner, p_outer)
        OR approvals_refusal(p_user, g.tool_id, r.agent_id, r.requested_by_id) IS NOT NULL
    THEN
        RETURN NULL;
    END IF;

    INSERT INTO approvals_decision (id, tenant_id, gate_id, user_id, verdict, digest, approves,
            policy_version, counts, at)
        VALUES (p_decision, p_tenant, p_gate, p_user, 'approve', p_digest, g.arguments_digest,
            g.policy_version, true, p_at);
    UPDATE approvals_gate SET state = 'approved', settled_at = p_at, due_at = NULL
        WHERE id = p_gate;
    DELETE FROM approvals_assignment WHERE gate_id = p_gate;
    UPDATE interrupts_step SET status = 'ready', held_by = NULL, authorized_by = 'decision',
            authorized_rule = g.rule, authorized_gate = p_gate, authorized_digest = g.digest,
            authorized_under = g.authority_version, authorized_tool_version = g.tool_version_id,
            authorized_policy_version = g.policy_version, authorized_until = NULL
        WHERE id = g.step_id;
    UPDATE interrupts_interrupt SET status = 'resolved', resolution = 'resume',
            response = jsonb_build_object('gate', p_gate, 'decision', p_decision,
                'verdict', 'approve', 'resolution', 'resume', 'note', NULL),
            resolved_by = p_actor::jsonb, resolved_at = p_at
        WHERE id = g.interrupt_id;
    v_kinds := ARRAY['gate.decided', 'step.authorized', 'interrupt.resolved'];
    v_data := ARRAY[
        '{"approves":"' || g.arguments_digest || '","decision":"' || p_decision
            || '","digest":"' || p_digest || '","edits":null,"gate":"' || p_gate
            || '","policy_version":' || g.policy_version || ',"step":"' || g.step_id
            || '","verdict":"approve"}',
        '{"by":"decision","digest":"' || g.digest || '","gate":"' || p_gate
            || '","policy_version":' || g.policy_version || ',"rule":'
            || to_json(g.rule::text)::text || ',"step":"' || g.step_id
            || '","under":' || g.authority_version
            || ',"until":null,"version":"' || g.tool_version_id || '"}',
        '{"by":' || p_actor || ',"interrupt":"' || g.interrupt_id || '","resolution":"resume"}'];
    v_resumed := r.open_interrupts = 1;
    IF v_resumed THEN
        v_kinds := v_kinds || 'run.resumed'::text;
        v_data := v_data || ('{"epoch":' || r.epoch || '}');
    END IF;
    j := tenants_journal_extend(
        p_tenant, p_run, r.journal_seq, r.journal_hash, p_at, p_key_id, p_inner, p_outer,
        p_actor, v_kinds, v_data);
    UPDATE interrupts_run SET state_version = r.state_version + 1, journal_seq = j.seq,
            journal_hash = j.head, open_interrupts = r.open_interrupts - 1,
            status = CASE WHEN v_resumed THEN 'running' ELSE status END,
            suspension = CASE WHEN v_resumed THEN NULL ELSE suspension END,
            count_unknown = CASE WHEN v_resumed THEN 0 ELSE count_unknown END,
            count_in_flight = CASE WHEN v_resumed THEN 0 ELSE count_in_flight END,
            count_partial = CASE WHEN v_resumed THEN 0 ELSE count_partial END,
            last_seen_at = CASE WHEN v_resumed THEN p_at ELSE last_seen_at END,
            updated_at = p_at, due_at = least(r.due_at, v_now + interval '2 seconds')
        WHERE id = p_run;
    -- A key that was answered meanwhile is refused by its constraint, and all of this with it.
    IF p_key IS NOT NULL THEN
        INSERT INTO tenants_idempotentanswer
                (id, tenant_id, caller, key, fingerprint, status, headers, body)
            VALUES (gen_random_uuid(), p_tenant, p_caller, p_key, p_fingerprint, p_status,
                p_headers, p_body);
    END IF;
    IF p_leave THEN
        PERFORM set_config('abeyance.tenant_id', '', false);
    END IF;
    RETURN r.epoch;
END $$;
