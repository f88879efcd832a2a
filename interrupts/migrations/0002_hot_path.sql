-- Locks a run with its descendants, parents before children, and reads the clock under the lock.
--
-- A child that its parent started while this waited for the parent's lock is not among the rows
-- that the first look found, so the family is locked again until it is no larger than what is held:
-- whoever has a parent's lock keeps it from starting another.
CREATE FUNCTION interrupts_lock_family(
    p_tenant uuid, p_run uuid, OUT now_at timestamptz, OUT authority_version bigint
) LANGUAGE plpgsql AS $$
DECLARE
    v_root uuid;
    v_locked bigint;
    v_family bigint;
BEGIN
    PERFORM pg_advisory_xact_lock_shared(7341, hashtext(p_tenant::text));
    SELECT f.root INTO v_root FROM interrupts_run f WHERE f.id = p_run;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    LOOP
        PERFORM 1 FROM interrupts_run r
            WHERE r.root = v_root AND (r.id = p_run OR p_run = ANY (r.path))
            ORDER BY r.id FOR NO KEY UPDATE;
        GET DIAGNOSTICS v_locked = ROW_COUNT;
        SELECT count(*) INTO v_family FROM interrupts_run r
            WHERE r.root = v_root AND (r.id = p_run OR p_run = ANY (r.path));
        EXIT WHEN v_family = v_locked;
    END LOOP;
    now_at := clock_timestamp();
    SELECT t.authority_version INTO STRICT authority_version FROM tenants_tenant t
        WHERE t.id = p_tenant;
END $$;

-- Finds the step of a run that may start now, looking from the first position that is not settled.
--
-- Steps start in order of position, one at a time, or at once in a parallel group. What can't start
-- yet (waiting, frozen, not due, for its agent to claim) holds back the later ones of its own
-- group only; what is settled holds back nothing. `verdict`: 'found', 'busy', 'later' or 'none'.
CREATE FUNCTION interrupts_find_startable(
    p_run uuid, p_agent uuid, p_from integer, p_now timestamptz, p_frozen boolean,
    OUT verdict text, OUT step uuid, OUT more boolean, OUT first_open integer
) LANGUAGE plpgsql AS $$
DECLARE
    c record;
    v_blocked uuid[] := '{}';
    v_group uuid;
BEGIN
    verdict := 'none';
    more := false;
    first_open := p_from;
    SELECT s.parallel, s."group" INTO c FROM interrupts_step s
        WHERE s.run_id = p_run AND s.position >= p_from
            AND s.status = 'executing' AND s.executor <> 'agent'
        ORDER BY s.parallel LIMIT 1;
    IF FOUND THEN
        verdict := 'busy';
        IF NOT c.parallel THEN
            RETURN;
        END IF;
        v_group := c."group";  -- only its own group may start beside it
    END IF;
    FOR c IN
        SELECT s.id, s.position, s.status, s.executor, s."group", s.parallel, s.due_at, s.tool_name
            FROM interrupts_step s WHERE s.run_id = p_run AND s.position >= p_from
            ORDER BY s.position
    LOOP
        IF c.status NOT IN ('proposed', 'waiting', 'ready', 'executing', 'unknown') THEN
            IF c.position = first_open THEN
                first_open := first_open + 1;
            END IF;
            CONTINUE;
        END IF;
        IF c.status = 'executing' AND c.executor <> 'agent' THEN
            CONTINUE;
        END IF;
        IF c.status <> 'ready' OR c.executor = 'agent' OR c.due_at > p_now
            OR (p_frozen AND EXISTS (
                SELECT 1 FROM interrupts_freeze f WHERE f.lifted_at IS NULL AND (
                    f.scope = 'tenant' OR (f.scope = 'tool' AND f.name = c.tool_name)
                    OR (f.scope = 'agent' AND f.name = (
                        SELECT a.name FROM tenants_agent a WHERE a.id = p_agent)))))
        THEN
            IF NOT c.parallel THEN
                v_blocked := v_blocked || c."group";
            END IF;
            IF c.status = 'ready' AND c.executor <> 'agent' AND verdict = 'none' THEN
                verdict := 'later';
            END IF;
            CONTINUE;
        END IF;
        IF c."group" = ANY (v_blocked) OR c."group" <> v_group THEN
            CONTINUE;
        END IF;
        IF step IS NOT NULL THEN
            more := true;
            RETURN;
        END IF;
        verdict := 'found';
        step := c.id;
        IF NOT c.parallel THEN
            RETURN;
        END IF;
        v_group := c."group";
    END LOOP;
END $$;

-- What the journal says of a worker's receipt and of the step that it settles.
CREATE FUNCTION interrupts_receipt_told(
    p_attempt uuid, p_worker text, p_cost numeric, p_error text, p_external_id text,
    p_outcome text, p_receipt uuid, p_result bytea, p_step uuid
) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT '{"attempt":"' || p_attempt || '","by":' || to_json('worker:' || p_worker)::text
        || ',"compensation":false,"cost":' || coalesce('"' || p_cost || '"', 'null')
        || ',"error":' || coalesce('"' || p_error || '"', 'null')
        || ',"evidence":null,"external_id":' || coalesce(to_json(p_external_id)::text, 'null')
        || ',"outcome":"' || p_outcome || '","receipt":"' || p_receipt || '","result":'
        || coalesce('"' || encode(p_result, 'hex') || '"', 'null')
        || ',"source":"executor","step":"' || p_step || '"}'
$$;

CREATE FUNCTION interrupts_settled_told(p_outcome text, p_position integer, p_step uuid)
RETURNS text LANGUAGE sql STABLE AS $$
    SELECT '{"outcome":"' || p_outcome || '","position":' || p_position
        || ',"reason":null,"status":"' || p_outcome || '","step":"' || p_step || '"}'
$$;

-- Records what was seen of a worker's attempt and intends the run's next step, in one commit.
--
-- Reads that came back at once, right before the attempt (`p_reads` and the arrays beside it, in
-- the order of their positions: first tries, each a success that cost nothing), are recorded with
-- it: whoever crashes before that reads once more, which harms nobody. In turn, where `p_ahead` is
-- not 0 and the next step is a read, up to so many plain reads that follow it are returned with it
-- (`reads` and the arrays beside it). Each is as current as the next step itself; none is marked.
--
-- `recorded`: 'nothing' (no attempt was given), 'recorded', or 'long' where the state is not the
-- plain one and nothing was written: the long way (services/attempts.py) has to be taken.
-- `verdict`, of the next step: 'intended' (an attempt was made), 'read' (to be called without
-- one), 'renew' (its authorization is stale), 'handover' (it would not fit into what is left of
-- the worker's time), 'ask' (its tool is to be asked once more what became of an earlier try),
-- 'busy' (another attempt is in flight), 'later' (not before a time, or frozen), 'drained' (the
-- worker's host is to begin nothing), or 'none'. `more`: another step of its parallel group may
-- start beside it.
CREATE FUNCTION interrupts_advance(
    p_tenant uuid, p_run uuid, p_key_id text, p_inner bytea, p_outer bytea, p_worker text,
    p_step uuid, p_attempt uuid, p_fence integer, p_receipt uuid, p_outcome text,
    p_result bytea, p_body bytea, p_cipher text, p_external_id text, p_cost numeric, p_error text,
    p_next uuid, p_epoch integer, p_seconds_left double precision,
    p_reads uuid[], p_attempts uuid[], p_receipts uuid[], p_results bytea[], p_bodies bytea[],
    p_ciphers text[], p_external_ids text[], p_ahead integer,
    OUT recorded text, OUT verdict text, OUT more boolean, OUT step uuid, OUT fence integer,
    OUT tool_version uuid, OUT arguments bytea, OUT cipher text, OUT digest text,
    OUT authority bigint, OUT reads uuid[], OUT tool_versions uuid[], OUT bodies bytea[],
    OUT ciphers text[], OUT digests text[]
) LANGUAGE plpgsql AS $$
DECLARE
    r record;
    s record;
    f record;
    v_now timestamptz;
    v_frozen boolean;
    v_drained boolean;
    v_kinds text[] := '{}';
    v_data text[] := '{}';
    v_seq bigint;
    v_head bytea;
    v_next integer;
    v_cost numeric := coalesce(p_cost, 0);
    v_reading uuid;
    v_until timestamptz;
    v_alone boolean := false;  -- nothing else of the run was in flight beside what is recorded
    v_ready integer;
    v_first integer;
BEGIN
    PERFORM set_config('abeyance.tenant_id', p_tenant::text, true);
    PERFORM pg_advisory_xact_lock_shared(7341, hashtext(p_tenant::text));
    SELECT o.status, o.epoch, o.agent_id, o.budget ->> 'cost' AS cost_limit, o.usage_cost,
            o.next_step, o.state_version, o.journal_seq, o.journal_hash, o.due_at, o.reading,
            o.reading_until, o.damage, o.verdicts_holding
        INTO r FROM interrupts_run o WHERE o.id = p_run FOR NO KEY UPDATE;
    v_now := clock_timestamp();
    recorded := 'nothing';
    verdict := 'none';
    more := false;
    IF r.status IS NULL THEN
        RETURN;  -- a hint about a run that is not there (a restored database) is no work
    END IF;
    v_next := r.next_step;

    IF p_step IS NOT NULL THEN
        SELECT o.status, o.fence, o.position, o.parallel INTO STRICT s
            FROM interrupts_step o WHERE o.id = p_step;
        v_alone := NOT s.parallel;
        -- The long way has everything that is not plain: a stop, a cancel, a late receipt, a
        -- step withdrawn meanwhile, a budget that this cost would exceed.
        IF r.status <> 'running'
            OR (p_fence IS NULL AND s.status <> 'ready')
            OR (p_fence IS NOT NULL AND (s.status <> 'executing' OR s.fence <> p_fence))
            OR (v_cost > 0 AND r.usage_cost + v_cost > r.cost_limit::numeric)
        THEN
            recorded := 'long';
            RETURN;
        END IF;
        IF p_reads IS NOT NULL THEN
            SELECT count(*), min(o.position) INTO v_ready, v_first FROM interrupts_step o
                WHERE o.id = ANY (p_reads) AND o.status = 'ready' AND o.fence = 0;
            IF v_ready <> cardinality(p_reads) OR v_first + v_ready <> s.position THEN
                recorded := 'long';
                RETURN;
            END IF;
            INSERT INTO interrupts_content (tenant_id, digest, body, cipher)
                SELECT p_tenant, u.digest, u.body, u.cipher
                FROM unnest(p_results, p_bodies, p_ciphers) u(digest, body, cipher)
                WHERE u.digest IS NOT NULL ON CONFLICT DO NOTHING;
            INSERT INTO interrupts_attempt (id, tenant_id, step_id, run_id, fence, epoch, worker,
                    compensation, started_at, cancel_requested, settled_at, outcome)
                SELECT u.attempt, p_tenant, u.step, p_run, 1, r.epoch, p_worker, false, v_now,
                    false, v_now, 'succeeded'
                FROM unnest(p_attempts, p_reads) u(attempt, step);
            UPDATE interrupts_step o SET status = 'succeeded', outcome = 'succeeded',
                    result = u.result, external_id = u.external_id, error = NULL,
                    settled_at = v_now, fence = 1, attempts = o.attempts + 1
                FROM unnest(p_reads, p_results, p_external_ids) u(step, result, external_id)
                WHERE o.id = u.step;
            INSERT INTO interrupts_receipt (id, tenant_id, run_id, step_id, attempt, compensation,
                    source, outcome, result, external_id, cost, error, by, observed_at)
                SELECT u.receipt, p_tenant, p_run, u.step, u.attempt, false, 'executor',
                    'succeeded', u.result, u.external_id, NULL, NULL, 'worker:' || p_worker, v_now
                FROM unnest(p_receipts, p_reads, p_attempts, p_results, p_external_ids)
                    u(receipt, step, attempt, result, external_id);
            FOR i IN 1 .. v_ready LOOP
                v_kinds := v_kinds || ARRAY['receipt.recorded', 'step.settled'];
                v_data := v_data || ARRAY[
                    interrupts_receipt_told(p_attempts[i], p_worker, NULL, NULL, p_external_ids[i],
                        'succeeded', p_receipts[i], p_results[i], p_reads[i]),
                    interrupts_settled_told('succeeded', v_first + i - 1, p_reads[i])];
            END LOOP;
            IF v_first = v_next THEN
                v_next := v_next + v_ready;
            END IF;
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
            UPDATE interrupts_step SET status = p_outcome, outcome = p_outcome, result = p_result,
                    external_id = p_external_id, error = p_error, settled_at = v_now,
                    fence = s.fence + 1, attempts = attempts + 1
                WHERE id = p_step;
        ELSE
            UPDATE interrupts_attempt SET settled_at = v_now, outcome = p_outcome
                WHERE id = p_attempt;
            UPDATE interrupts_step SET status = p_outcome, outcome = p_outcome, result = p_result,
                    external_id = p_external_id, error = p_error, settled_at = v_now
                WHERE id = p_step;
        END IF;
        INSERT INTO interrupts_receipt (id, tenant_id, run_id, step_id, attempt, compensation,
                source, outcome, result, external_id, cost, error, by, observed_at)
            VALUES (p_receipt, p_tenant, p_run, p_step, p_attempt, false, 'executor', p_outcome,
                p_result, p_external_id, p_cost, p_error, 'worker:' || p_worker, v_now);
        v_kinds := v_kinds || ARRAY['receipt.recorded', 'step.settled'];
        v_data := v_data || ARRAY[
            interrupts_receipt_told(p_attempt, p_worker, p_cost,
                tenants_imprint(p_inner, p_outer, p_error), p_external_id, p_outcome, p_receipt,
                p_result, p_step),
            interrupts_settled_told(p_outcome, s.position, p_step)];
        IF s.position = v_next THEN
            v_next := v_next + 1;
        END IF;
    END IF;

    -- What was found damaged meanwhile starts nothing more, nor does anything while a verdict on what
    -- was done holds the run.
    IF p_next IS NOT NULL AND r.status = 'running' AND r.epoch = p_epoch AND r.damage IS NULL
        AND r.verdicts_holding = 0
    THEN
        SELECT t.authority_version, t.freezes > 0, EXISTS (
                    SELECT FROM interrupts_drain d WHERE d.host IN ('*', split_part(p_worker, ':', 1)))
            INTO STRICT authority, v_frozen, v_drained
            FROM tenants_tenant t WHERE t.id = p_tenant;
        -- After a step usually comes the very next one: what was in flight was the one recorded.
        -- Only at the beginning, after one of a parallel group, and where that one can't start,
        -- are the others looked at.
        SELECT o.id, o.position, o.effect, o.fence, o.attempts, o.timeout_seconds, o.arguments,
                o.digest, o.tool_version_id, o.authorized_under, o.authorized_until, o.authorized_digest,
                o.authorized_tool_version, o.parallel, o.ask_first, o.status = 'ready'
                    AND o.executor <> 'agent' AND NOT o.parallel AND o.due_at IS NULL
                    AND NOT o.ask_first AND NOT v_frozen
                    AND v_alone AS plain
            INTO s FROM interrupts_step o WHERE o.run_id = p_run AND o.position = v_next;
        IF v_drained THEN
            verdict := 'drained';
            s.plain := false;
        ELSIF r.reading <> coalesce(p_reads[1], p_step, p_next) AND r.reading_until > v_now THEN
            verdict := 'busy';  -- another worker is at a read: one at a time
            s.plain := false;
        ELSIF FOUND AND NOT s.plain THEN
            SELECT * INTO f FROM interrupts_find_startable(
                p_run, r.agent_id, v_next, v_now, v_frozen);
            verdict := f.verdict;
            v_next := f.first_open;
            IF f.verdict = 'found' THEN
                more := f.more;
                SELECT o.id, o.position, o.effect, o.fence, o.attempts, o.timeout_seconds,
                        o.arguments, o.digest, o.tool_version_id, o.authorized_under, o.authorized_until,
                        o.authorized_digest, o.authorized_tool_version, o.parallel,
                        o.ask_first, true AS plain
                    INTO STRICT s FROM interrupts_step o WHERE o.id = f.step;
            END IF;
        END IF;
        IF s.plain THEN
            step := s.id;
            IF s.authorized_under IS DISTINCT FROM authority
                OR s.authorized_until <= v_now
                OR s.authorized_digest IS DISTINCT FROM s.digest
                OR s.authorized_tool_version IS DISTINCT FROM s.tool_version_id
            THEN
                verdict := 'renew';
            ELSIF s.timeout_seconds > p_seconds_left THEN
                verdict := 'handover';
            ELSIF s.ask_first THEN
                verdict := 'ask';
            ELSE
                -- A read of a parallel group is intended too: others start beside it, not it again.
                verdict := CASE WHEN s.effect = 'read' AND NOT s.parallel
                    THEN 'read' ELSE 'intended' END;
                fence := s.fence + 1;
                tool_version := s.tool_version_id;
                digest := s.authorized_digest;
                -- Null where the body was erased: then nothing is sent.
                SELECT b.body, b.cipher INTO arguments, cipher FROM interrupts_content b
                    WHERE b.tenant_id = p_tenant AND b.digest = s.arguments;
            END IF;
        END IF;
        IF verdict = 'intended' THEN
            INSERT INTO interrupts_attempt (id, tenant_id, step_id, run_id, fence, epoch, worker,
                    compensation, started_at, lease_seconds, lease_expires_at, cancel_requested)
                VALUES (p_next, p_tenant, s.id, p_run, s.fence + 1, r.epoch, p_worker, false,
                    v_now, s.timeout_seconds + 2,
                    v_now + make_interval(secs => s.timeout_seconds + 2), false);
            UPDATE interrupts_step o SET status = 'executing', fence = s.fence + 1,
                    attempts = s.attempts + 1, due_at = NULL
                WHERE o.id = s.id;
            v_kinds := v_kinds || 'attempt.started'::text;
            v_data := v_data || ('{"attempt":"' || p_next || '","fence":' || fence || ',"step":"'
                || s.id || '","worker":' || to_json(p_worker)::text || '}');
        END IF;
    END IF;

    -- Of a read there is no attempt to look at: while one is being made the sweep wakes nobody.
    IF verdict = 'read' THEN
        v_reading := s.id;
        v_until := v_now + make_interval(secs => s.timeout_seconds + 2);
        IF p_ahead > 0 THEN
            FOR f IN SELECT o.id, o.position, o.tool_version_id, o.authorized_digest, b.body,
                        b.cipher, o.status = 'ready' AND o.effect = 'read' AND o.fence = 0
                        AND o.executor <> 'agent' AND NOT o.parallel AND o.due_at IS NULL
                        AND NOT o.ask_first AND o.authorized_under = authority
                        AND (o.authorized_until > v_now) IS NOT FALSE
                        AND o.authorized_digest = o.digest
                        AND o.authorized_tool_version = o.tool_version_id
                        AND o.timeout_seconds <= s.timeout_seconds AS plain
                    FROM interrupts_step o LEFT JOIN interrupts_content b
                        ON b.tenant_id = p_tenant AND b.digest = o.arguments
                    WHERE o.run_id = p_run AND o.position > s.position
                        AND o.position <= s.position + p_ahead
                    ORDER BY o.position
            LOOP
                EXIT WHEN f.plain IS NOT TRUE;
                reads := reads || f.id;
                tool_versions := tool_versions || f.tool_version_id;
                bodies := array_append(bodies, f.body);
                ciphers := array_append(ciphers, f.cipher);
                digests := array_append(digests, f.authorized_digest);
            END LOOP;
        END IF;
    END IF;
    IF verdict <> 'read' AND r.reading IS DISTINCT FROM coalesce(p_reads[1], p_step) THEN
        v_reading := r.reading;
        v_until := r.reading_until;
    END IF;
    IF cardinality(v_kinds) = 0 AND verdict = 'read' THEN
        UPDATE interrupts_run SET reading = v_reading, reading_until = v_until WHERE id = p_run;
    ELSIF cardinality(v_kinds) > 0 THEN
        SELECT e.seq, e.head INTO v_seq, v_head FROM tenants_journal_extend(
            p_tenant, p_run, r.journal_seq, r.journal_hash, v_now, p_key_id, p_inner, p_outer,
            '{"id":"abeyance","kind":"system"}', v_kinds, v_data) e;
        UPDATE interrupts_run SET state_version = r.state_version + 1, journal_seq = v_seq,
                journal_hash = v_head, next_step = v_next, usage_cost = r.usage_cost + v_cost,
                updated_at = v_now, due_at = coalesce(r.due_at, v_now + interval '2 seconds'),
                reading = v_reading, reading_until = v_until
            WHERE id = p_run;
    END IF;
END $$;
