"""The step commit as one data-modifying statement: the same reads and writes as the function's.

It takes the locks in the right order (each part needs the one before it) and is still wrong: all
its parts see one snapshot, taken before it waited for anything.
"""

from typing import Literal

Order = Literal["drain lock first", "run lock first"]

_DRAIN = """
    SELECT set_config('abeyance.tenant_id', %(tenant)s::uuid::text, true) AS variable,
           pg_advisory_xact_lock_shared(7341, hashtext(%(tenant)s::uuid::text))::text AS held"""
_RUN = """
    SELECT r.* FROM interrupts_run r WHERE r.id = %(run)s::uuid FOR NO KEY UPDATE OF r"""

_LOCKS: dict[Order, str] = {
    "drain lock first": f"""
entered AS MATERIALIZED ({_DRAIN}),
run AS MATERIALIZED (
    SELECT r.* FROM interrupts_run r, entered
     WHERE r.id = %(run)s::uuid AND entered.held IS NOT NULL FOR NO KEY UPDATE OF r),
locked AS MATERIALIZED (SELECT clock_timestamp() AS now FROM run),""",
    "run lock first": f"""
run AS MATERIALIZED ({_RUN}),
entered AS MATERIALIZED (SELECT d.* FROM run CROSS JOIN LATERAL ({_DRAIN}, run.id) d),
locked AS MATERIALIZED (SELECT clock_timestamp() AS now FROM entered),""",
}

_REST = """
done AS MATERIALIZED (
    SELECT s.id, s.position FROM interrupts_step s, run, locked
     WHERE s.id = %(step)s::uuid AND s.status = 'executing' AND s.fence = %(fence)s::integer
       AND run.status = 'running'),
body AS (
    INSERT INTO interrupts_content (tenant_id, digest, body, cipher)
    SELECT %(tenant)s::uuid, %(result)s::bytea, %(body)s::bytea, %(cipher)s::text FROM done
    ON CONFLICT DO NOTHING),
tried AS (
    UPDATE interrupts_attempt a SET settled_at = locked.now, outcome = %(outcome)s::text
      FROM done, locked WHERE a.id = %(attempt)s::uuid),
settled AS (
    UPDATE interrupts_step s SET status = %(outcome)s::text, outcome = %(outcome)s::text,
           result = %(result)s::bytea, external_id = %(external_id)s::text,
           error = %(error)s::text, settled_at = locked.now
      FROM done, locked WHERE s.id = done.id),
receipt AS (
    INSERT INTO interrupts_receipt (id, tenant_id, run_id, step_id, attempt, compensation, source,
           outcome, result, external_id, cost, error, by, observed_at)
    SELECT %(receipt)s::uuid, %(tenant)s::uuid, %(run)s::uuid, done.id, %(attempt)s::uuid, false,
           'executor', %(outcome)s::text, %(result)s::bytea, %(external_id)s::text,
           %(cost)s::numeric, %(error)s::text, 'worker:' || %(worker)s::text, locked.now
      FROM done, locked),
authority AS MATERIALIZED (
    SELECT t.authority_version FROM tenants_tenant t, locked
     WHERE t.id = %(tenant)s::uuid AND t.freezes = 0),
next AS MATERIALIZED (
    SELECT s.id, s.fence, s.attempts, s.timeout_seconds, s.arguments, s.tool_version_id,
           s.authorized_digest, authority.authority_version
      FROM interrupts_step s, run, done, authority, locked
     WHERE s.run_id = %(run)s::uuid AND s.position = run.next_step + 1 AND s.status = 'ready'
       AND s.executor <> 'agent' AND NOT s.parallel AND s.due_at IS NULL
       AND run.epoch = %(epoch)s::integer AND s.timeout_seconds <= %(seconds_left)s::float8
       AND s.authorized_under = authority.authority_version
       AND (s.authorized_until IS NULL OR s.authorized_until > locked.now)
       AND s.authorized_digest = s.digest AND s.authorized_tool_version = s.tool_version_id),
intended AS (
    INSERT INTO interrupts_attempt (id, tenant_id, step_id, run_id, fence, epoch, worker,
           compensation, started_at, lease_seconds, lease_expires_at, cancel_requested)
    SELECT %(next)s::uuid, %(tenant)s::uuid, next.id, %(run)s::uuid, next.fence + 1, run.epoch,
           %(worker)s::text, false, locked.now, next.timeout_seconds + 2,
           locked.now + make_interval(secs => next.timeout_seconds + 2), false
      FROM next, run, locked),
started AS (
    UPDATE interrupts_step s SET status = 'executing', fence = next.fence + 1,
           attempts = next.attempts + 1, due_at = NULL
      FROM next WHERE s.id = next.id),
told (n, kind, data) AS (
    SELECT 1, 'receipt.recorded', '{"attempt":"' || %(attempt)s::uuid || '","external_id":'
           || coalesce(to_json(%(external_id)s::text)::text, 'null')
           || ',"outcome":"' || %(outcome)s::text || '","receipt":"' || %(receipt)s::uuid
           || '","result":' || coalesce('"' || encode(%(result)s::bytea, 'hex') || '"', 'null')
           || ',"source":"executor","step":"' || done.id || '"}' FROM done
    UNION ALL
    SELECT 2, 'step.settled', '{"outcome":"' || %(outcome)s::text || '","position":'
           || done.position || ',"reason":null,"status":"' || %(outcome)s::text || '","step":"'
           || done.id || '"}' FROM done
    UNION ALL
    SELECT 3, 'attempt.started', '{"attempt":"' || %(next)s::uuid || '","fence":'
           || next.fence + 1 || ',"step":"' || next.id || '","worker":'
           || to_json(%(worker)s::text)::text || '}' FROM next),
said AS MATERIALIZED (
    SELECT told.n, told.kind, '{"actor":{"id":"abeyance","kind":"system"},"at":"'
           || to_char(locked.now AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
           || '","data":' || told.data || ',"kind":"' || told.kind || '","seq":'
           || run.journal_seq + told.n || '}' AS text
      FROM told, run, locked),
first AS MATERIALIZED (
    SELECT sha256(%(outer)s::bytea || sha256(%(inner)s::bytea || run.journal_hash
           || convert_to(said.text, 'UTF8'))) AS hash FROM said, run WHERE said.n = 1),
second AS MATERIALIZED (
    SELECT sha256(%(outer)s::bytea || sha256(%(inner)s::bytea || first.hash
           || convert_to(said.text, 'UTF8'))) AS hash FROM said, first WHERE said.n = 2),
third AS MATERIALIZED (
    SELECT sha256(%(outer)s::bytea || sha256(%(inner)s::bytea || second.hash
           || convert_to(said.text, 'UTF8'))) AS hash FROM said, second WHERE said.n = 3),
chained (n, hash) AS (
    SELECT 1, hash FROM first UNION ALL SELECT 2, hash FROM second
    UNION ALL SELECT 3, hash FROM third),
journal AS (
    INSERT INTO tenants_journalentry (stream, seq, tenant_id, kind, at, text, key_id, hash)
    SELECT %(run)s::uuid, run.journal_seq + said.n, %(tenant)s::uuid, said.kind, locked.now,
           said.text, %(key_id)s::text, chained.hash
      FROM said JOIN chained ON chained.n = said.n, run, locked),
head AS MATERIALIZED (SELECT n, hash FROM chained ORDER BY n DESC LIMIT 1),
moved AS (
    UPDATE interrupts_run r SET state_version = run.state_version + 1,
           journal_seq = run.journal_seq + head.n, journal_hash = head.hash,
           next_step = run.next_step + 1,
           usage_cost = run.usage_cost + coalesce(%(cost)s::numeric, 0), updated_at = locked.now,
           due_at = coalesce(run.due_at, locked.now + interval '2 seconds')
      FROM run, head, locked WHERE r.id = run.id)
SELECT done.id, next.id, next.fence + 1, next.tool_version_id, next.authorized_digest,
       next.authority_version, b.body, b.cipher
  FROM done LEFT JOIN next ON true LEFT JOIN interrupts_content b
    ON b.tenant_id = %(tenant)s::uuid AND b.digest = next.arguments
"""


def statement(order: Order = "drain lock first", *, binary: bool = False) -> str:
    """Return the statement, for psycopg's named parameters; ``binary``: sent in binary form."""
    text = f"WITH {_LOCKS[order]}{_REST}"
    return text.replace(")s::", ")b::") if binary else text
