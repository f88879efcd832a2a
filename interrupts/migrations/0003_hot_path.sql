-- Locks a run with its descendants, parents before children, and reads the clock under the lock.
CREATE FUNCTION interrupts_lock_family(
    p_tenant uuid, p_run uuid, OUT now_at timestamptz, OUT authority_version bigint
) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(7341, hashtext(p_tenant::text));
    PERFORM 1 FROM interrupts_run r
        WHERE r.root = (SELECT f.root FROM interrupts_run f WHERE f.id = p_run)
            AND (r.id = p_run OR p_run = ANY (r.path))
        ORDER BY r.id FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    now_at := clock_timestamp();
    SELECT t.authority_version INTO STRICT authority_version FROM tenants_tenant t
        WHERE t.id = p_tenant;
END $$;

-- Records what was seen of a worker's attempt and intends the run's next step, in one commit.
--
-- `recorded`: 'nothing' (no attempt was given), 'recorded', or 'long' where the state is not the
-- plain one and nothing was written: the long way (services/attempts.py) has to be taken.
-- `verdict`, of the next step: 'intended' (an attempt was made), 'read' (to be called without
-- one), 'renew' (its authorization is stale), 'handover' (it would not fit into what is left of
-- the worker's time), 'busy' (another attempt is in flight), 'later' (not before a time), or
-- 'none'. `more`: another step of a parallel group may start beside it.
CREATE FUNCTION interrupts_advance(
    p_tenant uuid, p_run uuid, p_key_id text, p_inner bytea, p_outer bytea, p_worker text,
    p_step uuid, p_attempt uuid, p_fence integer, p_receipt uuid, p_outcome text,
    p_result bytea, p_body bytea, p_cipher text, p_external_id text, p_cost numeric, p_error text,
    p_next uuid, p_epoch integer, p_seconds_left double precision,
    OUT recorded text, OUT verdict text, OUT more boolean, OUT step uuid, OUT fence integer,
    OUT tool_version uuid, OUT arguments bytea, OUT cipher text, OUT digest text,
    OUT authority bigint
) LANGUAGE plpgsql AS $$
DECLARE
    r interrupts_run%ROWTYPE;
    s interrupts_step%ROWTYPE;
    c interrupts_step%ROWTYPE;
    v_now timestamptz;
    v_frozen boolean := false;
    v_kinds text[] := '{}';
    v_data text[] := '{}';
    v_status text;
    v_blocked uuid[] := '{}';
    v_flying uuid;
    v_seq bigint;
    v_head bytea;
    v_next integer;
    v_cost numeric := coalesce(p_cost, 0);
    v_plain boolean;
BEGIN
    PERFORM set_config('abeyance.tenant_id', p_tenant::text, true);
    PERFORM pg_advisory_xact_lock_shared(7341, hashtext(p_tenant::text));
    SELECT * INTO STRICT r FROM interrupts_run WHERE id = p_run FOR NO KEY UPDATE;
    v_now := clock_timestamp();
    recorded := 'nothing';
    verdict := 'none';
    more := false;
    v_next := r.next_step;

    IF p_step IS NOT NULL THEN
        SELECT * INTO STRICT s FROM interrupts_step WHERE id = p_step;
        -- The long way has everything that is not plain: a stop, a cancel, a late receipt, a
        -- step withdrawn meanwhile, a budget that this cost would exceed.
        IF r.status <> 'running'
            OR (p_fence IS NULL AND s.status <> 'ready')
            OR (p_fence IS NOT NULL AND (s.status <> 'executing' OR s.fence <> p_fence))
            OR (v_cost > 0 AND r.budget ? 'cost'
                AND r.usage_cost + v_cost > (r.budget ->> 'cost')::numeric)
        THEN
            recorded := 'long';
            RETURN;
        END IF;
        recorded := 'recorded';
        IF p_result IS NOT NULL THEN
            INSERT INTO interrupts_content (tenant_id, digest, body, cipher)
                VALUES (p_tenant, p_result, p_body, p_cipher) ON CONFLICT DO NOTHING;
        END IF;
        IF p_fence IS NULL THEN
            INSERT INTO interrupts_attempt (id, tenant_id, step_id, run_id, fence, epoch, worker,
                    compensation, started_at, cancel_requested, settled_at, outcome)
                VALUES (p_attempt, p_tenant, p_step, p_run, s.fence + 1, r.epoch, p_worker,
                    false, v_now, false, v_now, p_outcome);
        ELSE
            UPDATE interrupts_attempt SET settled_at = v_now, outcome = p_outcome
                WHERE id = p_attempt;
        END IF;
        INSERT INTO interrupts_receipt (id, tenant_id, run_id, step_id, attempt, compensation,
                source, outcome, result, external_id, cost, error, by, observed_at)
            VALUES (p_receipt, p_tenant, p_run, p_step, p_attempt, false, 'executor', p_outcome,
                p_result, p_external_id, p_cost, p_error, 'worker:' || p_worker, v_now);
        UPDATE interrupts_step SET status = p_outcome, outcome = p_outcome, result = p_result,
                external_id = p_external_id, error = p_error, settled_at = v_now,
                fence = s.fence + (p_fence IS NULL)::int,
                attempts = s.attempts + (p_fence IS NULL)::int
            WHERE id = p_step;
        v_kinds := ARRAY['receipt.recorded', 'step.settled'];
        v_data := ARRAY[
            '{"attempt":"' || p_attempt || '","external_id":'
                || coalesce(to_json(p_external_id)::text, 'null')
                || ',"outcome":"' || p_outcome || '","receipt":"' || p_receipt || '","result":'
                || coalesce('"' || encode(p_result, 'hex') || '"', 'null')
                || ',"source":"executor","step":"' || p_step || '"}',
            '{"outcome":"' || p_outcome || '","position":' || s.position
                || ',"reason":null,"status":"' || p_outcome || '","step":"' || p_step || '"}'];
        IF s.position = v_next THEN
            v_next := v_next + 1;
        END IF;
    END IF;

    IF p_next IS NOT NULL AND r.status = 'running' AND r.epoch = p_epoch THEN
        SELECT t.authority_version, t.freezes > 0 INTO STRICT authority, v_frozen
            FROM tenants_tenant t WHERE t.id = p_tenant;
        -- Usually it is the very next one; only where it cannot start are the others looked at.
        SELECT * INTO c FROM interrupts_step WHERE run_id = p_run AND position = v_next;
        v_plain := FOUND AND c.status = 'ready' AND c.executor <> 'agent' AND NOT c.parallel
            AND c.due_at IS NULL AND NOT v_frozen;
        FOR c IN
            SELECT * FROM interrupts_step WHERE v_plain AND run_id = p_run AND position = v_next
            UNION ALL
            SELECT * FROM (SELECT * FROM interrupts_step
                WHERE NOT v_plain AND run_id = p_run AND position >= v_next ORDER BY position) o
        LOOP
            v_status := c.status;
            IF v_status NOT IN ('proposed', 'waiting', 'ready', 'executing', 'unknown') THEN
                IF c.position = v_next THEN
                    v_next := v_next + 1;
                END IF;
                CONTINUE;
            END IF;
            IF v_status = 'executing' AND c.executor <> 'agent' THEN
                -- One at a time, or at once in a parallel group.
                IF NOT c.parallel THEN
                    verdict := 'busy';
                    EXIT;
                END IF;
                v_flying := c."group";
                verdict := 'busy';
                CONTINUE;
            END IF;
            IF v_status <> 'ready' OR c.executor = 'agent' OR c.due_at > v_now
                OR (v_frozen AND EXISTS (
                    SELECT 1 FROM interrupts_freeze f WHERE f.lifted_at IS NULL AND (
                        f.scope = 'tenant' OR (f.scope = 'tool' AND f.name = c.tool_name)
                        OR (f.scope = 'agent' AND f.name = (
                            SELECT a.name FROM tenants_agent a WHERE a.id = r.agent_id)))))
            THEN
                -- It holds back the later ones of its own group, and nothing else.
                IF NOT c.parallel THEN
                    v_blocked := v_blocked || c."group";
                END IF;
                IF v_status = 'ready' AND c.executor <> 'agent' AND verdict = 'none' THEN
                    verdict := 'later';
                END IF;
                CONTINUE;
            END IF;
            IF c."group" = ANY (v_blocked) THEN
                CONTINUE;
            END IF;
            IF v_flying IS NOT NULL AND c."group" <> v_flying THEN
                CONTINUE;
            END IF;
            IF step IS NOT NULL THEN
                more := c.parallel AND c."group" = s."group";
                EXIT;
            END IF;
            step := c.id;
            IF c.authorized_under IS DISTINCT FROM authority
                OR c.authorized_until <= v_now
                OR c.authorized_digest IS DISTINCT FROM c.digest
                OR c.authorized_tool_version IS DISTINCT FROM c.tool_version_id
            THEN
                verdict := 'renew';
                EXIT;
            END IF;
            IF c.timeout_seconds > p_seconds_left THEN
                verdict := 'handover';
                EXIT;
            END IF;
            s := c;
            fence := c.fence + 1;
            tool_version := c.tool_version_id;
            digest := c.authorized_digest;
            verdict := CASE c.effect WHEN 'read' THEN 'read' ELSE 'intended' END;
            IF NOT c.parallel OR verdict = 'read' THEN
                EXIT;
            END IF;
        END LOOP;
        IF verdict IN ('read', 'intended') THEN
            SELECT b.body, b.cipher INTO STRICT arguments, cipher FROM interrupts_content b
                WHERE b.tenant_id = p_tenant AND b.digest = s.arguments;
        END IF;
        IF verdict = 'intended' THEN
            INSERT INTO interrupts_attempt (id, tenant_id, step_id, run_id, fence, epoch, worker,
                    compensation, started_at, lease_seconds, lease_expires_at, cancel_requested)
                VALUES (p_next, p_tenant, s.id, p_run, fence, r.epoch, p_worker, false, v_now,
                    s.timeout_seconds + 2, v_now + make_interval(secs => s.timeout_seconds + 2),
                    false);
            UPDATE interrupts_step SET status = 'executing', fence = interrupts_advance.fence,
                    attempts = s.attempts + 1, due_at = NULL
                WHERE id = s.id;
            v_kinds := v_kinds || 'attempt.started'::text;
            v_data := v_data || ('{"attempt":"' || p_next || '","fence":' || fence || ',"step":"'
                || s.id || '","worker":' || to_json(p_worker)::text || '}');
        END IF;
    END IF;

    IF cardinality(v_kinds) > 0 THEN
        SELECT e.seq, e.head INTO v_seq, v_head FROM tenants_journal_extend(
            p_tenant, p_run, r.journal_seq, r.journal_hash, v_now, p_key_id, p_inner, p_outer,
            '{"id":"abeyance","kind":"system"}', v_kinds, v_data) e;
        UPDATE interrupts_run SET state_version = r.state_version + 1, journal_seq = v_seq,
                journal_hash = v_head, next_step = v_next, usage_cost = r.usage_cost + v_cost,
                updated_at = v_now, due_at = coalesce(r.due_at, v_now + interval '2 seconds')
            WHERE id = p_run;
    END IF;
END $$;
