from django.db import migrations

from tenants import rls

JOURNAL = """
ALTER TABLE tenants_journalentry
    ADD COLUMN xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
    ADD COLUMN previous bigint GENERATED ALWAYS AS (nullif(seq - 1, 0)) STORED,
    -- No gaps: each entry but a stream's first refers to the one before it.
    ADD CONSTRAINT journal_follows_its_predecessor FOREIGN KEY (stream, previous)
        REFERENCES tenants_journalentry (stream, seq),
    ADD CONSTRAINT journal_starts_at_one CHECK (seq >= 1);

CREATE FUNCTION tenants_refuse_rewrite() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
END $$;

-- Appends entries to a stream whose head the caller has locked, and returns the new head.
-- HMAC-SHA256 (RFC 2104) from its two padded key blocks: the key itself is never in the database.
CREATE FUNCTION tenants_journal_extend(
    p_tenant uuid, p_stream uuid, p_seq bigint, p_head bytea, p_at timestamptz,
    p_key_id text, p_inner bytea, p_outer bytea, p_actor text, p_kinds text[], p_data text[],
    OUT seq bigint, OUT head bytea
) LANGUAGE plpgsql AS $$
DECLARE
    v_at text := to_char(p_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"');
    v_text text;
BEGIN
    seq := p_seq;
    head := p_head;
    FOR i IN 1 .. cardinality(p_kinds) LOOP
        seq := seq + 1;
        v_text := '{"actor":' || p_actor || ',"at":"' || v_at || '","data":' || p_data[i]
            || ',"kind":"' || p_kinds[i] || '","seq":' || seq || '}';
        head := sha256(p_outer || sha256(p_inner || head || convert_to(v_text, 'UTF8')));
        INSERT INTO tenants_journalentry (stream, seq, tenant_id, kind, at, text, key_id, hash)
            VALUES (p_stream, seq, p_tenant, p_kinds[i], p_at, v_text, p_key_id, head);
    END LOOP;
END $$;

CREATE FUNCTION tenants_journal_append(
    p_tenant uuid, p_key_id text, p_inner bytea, p_outer bytea,
    p_actor text, p_kinds text[], p_data text[]
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    v_seq bigint;
    v_head bytea;
BEGIN
    SELECT journal_seq, journal_hash INTO STRICT v_seq, v_head
        FROM tenants_tenant WHERE id = p_tenant FOR UPDATE;
    SELECT e.seq, e.head INTO v_seq, v_head FROM tenants_journal_extend(
        p_tenant, p_tenant, v_seq, v_head, clock_timestamp(),
        p_key_id, p_inner, p_outer, p_actor, p_kinds, p_data) e;
    UPDATE tenants_tenant SET journal_seq = v_seq, journal_hash = v_head WHERE id = p_tenant;
    RETURN v_seq;
END $$;
"""

UNDO_JOURNAL = """
DROP FUNCTION tenants_journal_append;
DROP FUNCTION tenants_journal_extend;
ALTER TABLE tenants_journalentry DROP CONSTRAINT journal_follows_its_predecessor,
    DROP CONSTRAINT journal_starts_at_one, DROP COLUMN previous, DROP COLUMN xid;
"""

# The one way from a key's hash to its principal, across tenants: owned by a role that bypasses
# row-level security and cannot log in. It also sets the session's tenant, in the same round trip.
SIGN_IN = """
CREATE FUNCTION tenants_sign_in(
    p_hash bytea,
    OUT tenant_id uuid, OUT kind text, OUT credential_id uuid, OUT principal_id uuid,
    OUT name text, OUT role text, OUT owner_id uuid
) RETURNS SETOF record LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
BEGIN
    SELECT k.tenant_id, 'agent', k.id, a.id, a.name, NULL, a.owner_id
        INTO tenant_id, kind, credential_id, principal_id, name, role, owner_id
        FROM tenants_agentkey k JOIN tenants_agent a ON a.id = k.agent_id
        WHERE k.hash = p_hash AND k.revoked_at IS NULL AND a.active;
    IF NOT FOUND THEN
        SELECT t.tenant_id, 'user', t.id, u.id, u.username, m.role, NULL
            INTO tenant_id, kind, credential_id, principal_id, name, role, owner_id
            FROM tenants_usertoken t
            JOIN tenants_membership m ON m.id = t.membership_id
            JOIN tenants_user u ON u.id = m.user_id
            WHERE t.hash = p_hash AND t.revoked_at IS NULL AND m.active AND u.is_active;
    END IF;
    IF FOUND THEN
        PERFORM set_config('abeyance.tenant_id', tenant_id::text, false);
        RETURN NEXT;
    END IF;
END $$;
GRANT SELECT ON tenants_agentkey, tenants_agent, tenants_usertoken, tenants_membership, tenants_user
    TO abeyance_keys;
ALTER FUNCTION tenants_sign_in OWNER TO abeyance_keys;
REVOKE ALL ON FUNCTION tenants_sign_in FROM PUBLIC;
GRANT EXECUTE ON FUNCTION tenants_sign_in TO abeyance_app;
"""

# A tenant's row is not tenant-owned (sign-in and the choice of a tenant read it), but only the
# tenant's own scope may change it.
TENANT_ROW = f"""
ALTER TABLE tenants_tenant ENABLE ROW LEVEL SECURITY;
ALTER TABLE tenants_tenant FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_read ON tenants_tenant FOR SELECT USING (true);
CREATE POLICY tenant_write ON tenants_tenant FOR UPDATE
    USING (id = {rls.CURRENT_TENANT}) WITH CHECK (id = {rls.CURRENT_TENANT});
CREATE POLICY tenant_made ON tenants_tenant FOR INSERT WITH CHECK (id = {rls.CURRENT_TENANT});
-- Whoever follows the tenant's journal is woken by its head.
GRANT SELECT (id, journal_seq) ON tenants_tenant TO {rls.SWEEP};
"""
UNDO_TENANT_ROW = f"""
REVOKE SELECT (id, journal_seq) ON tenants_tenant FROM {rls.SWEEP};
DROP POLICY tenant_made ON tenants_tenant;
DROP POLICY tenant_write ON tenants_tenant;
DROP POLICY tenant_read ON tenants_tenant;
ALTER TABLE tenants_tenant NO FORCE ROW LEVEL SECURITY;
ALTER TABLE tenants_tenant DISABLE ROW LEVEL SECURITY;
"""


class Migration(migrations.Migration):
    dependencies = [("tenants", "0001_initial")]
    operations = [
        migrations.RunSQL(JOURNAL, UNDO_JOURNAL),
        rls.tenant_table("tenants_journalentry", key=None),
        rls.append_only("tenants_journalentry"),
        rls.tenant_table("tenants_membership"),
        rls.tenant_table("tenants_group"),
        rls.tenant_table("tenants_groupmember"),
        rls.tenant_table("tenants_agent"),
        rls.tenant_table("tenants_agentkey"),
        rls.tenant_table("tenants_usertoken"),
        rls.tenant_table("tenants_idempotentanswer", key=None),
        rls.tenant_table("tenants_outboxmessage", key=None),
        rls.tenant_reference("tenants_groupmember", "group_id", "tenants_group"),
        rls.tenant_reference("tenants_groupmember", "membership_id", "tenants_membership"),
        rls.tenant_reference("tenants_agentkey", "agent_id", "tenants_agent"),
        rls.tenant_reference("tenants_usertoken", "membership_id", "tenants_membership"),
        rls.swept("tenants_outboxmessage", "id, tenant_id, due_at", "due_at IS NOT NULL"),
        rls.swept(
            "tenants_idempotentanswer",
            "id, tenant_id, created_at",
            "created_at < now() - interval '24 hours'",
        ),
        migrations.RunSQL(TENANT_ROW, UNDO_TENANT_ROW),
        migrations.RunSQL(SIGN_IN, "DROP FUNCTION tenants_sign_in"),
    ]
