-- Appends entries to a stream whose head the caller has locked, and returns the new head.
-- HMAC-SHA256 (RFC 2104) from its two padded key blocks: the key itself is never in the database.
CREATE FUNCTION tenants_journal_extend(
    p_tenant uuid, p_stream uuid, p_seq bigint, p_head bytea, p_at timestamptz,
    p_key_id text, p_inner bytea, p_outer bytea, p_actor text, p_kinds text[], p_data text[],
    OUT seq bigint, OUT head bytea
) LANGUAGE plpgsql AS $$
DECLARE
    v_at text := to_char(p_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"');
    v_texts text[];
    v_hashes bytea[];
BEGIN
    seq := p_seq;
    head := p_head;
    FOR i IN 1 .. cardinality(p_kinds) LOOP
        seq := seq + 1;
        v_texts[i] := '{"actor":' || p_actor || ',"at":"' || v_at || '","data":' || p_data[i]
            || ',"kind":"' || p_kinds[i] || '","seq":' || seq || '}';
        head := sha256(p_outer || sha256(p_inner || head || convert_to(v_texts[i], 'UTF8')));
        v_hashes[i] := head;
    END LOOP;
    INSERT INTO tenants_journalentry (stream, seq, tenant_id, kind, at, text, key_id, hash)
        SELECT p_stream, p_seq + e.number, p_tenant, e.kind, p_at, e.text, p_key_id, e.hash
        FROM unnest(p_kinds, v_texts, v_hashes) WITH ORDINALITY e(kind, text, hash, number);
END $$;

-- As tenants_journal_extend, with a speaker for each entry. What has one speaker in the database
-- calls the other one: a call of the one by the other would be paid at each step.
CREATE FUNCTION tenants_journal_extend_by(
    p_tenant uuid, p_stream uuid, p_seq bigint, p_head bytea, p_at timestamptz,
    p_key_id text, p_inner bytea, p_outer bytea, p_actors text[], p_kinds text[], p_data text[],
    OUT seq bigint, OUT head bytea
) LANGUAGE plpgsql AS $$
DECLARE
    v_at text := to_char(p_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"');
    v_texts text[];
    v_hashes bytea[];
BEGIN
    seq := p_seq;
    head := p_head;
    FOR i IN 1 .. cardinality(p_kinds) LOOP
        seq := seq + 1;
        v_texts[i] := '{"actor":' || p_actors[i] || ',"at":"' || v_at || '","data":' || p_data[i]
            || ',"kind":"' || p_kinds[i] || '","seq":' || seq || '}';
        head := sha256(p_outer || sha256(p_inner || head || convert_to(v_texts[i], 'UTF8')));
        v_hashes[i] := head;
    END LOOP;
    INSERT INTO tenants_journalentry (stream, seq, tenant_id, kind, at, text, key_id, hash)
        SELECT p_stream, p_seq + e.number, p_tenant, e.kind, p_at, e.text, p_key_id, e.hash
        FROM unnest(p_kinds, v_texts, v_hashes) WITH ORDINALITY e(kind, text, hash, number);
END $$;

-- Appends entries to the tenant's own stream, whose head it locks; returns the new number.
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

-- Says whether a stream's chain holds up to its head, each link computed anew. Entries
-- under another key than the one given count as not held: the long way knows all keys.
CREATE FUNCTION tenants_journal_holds(
    p_stream uuid, p_seq bigint, p_head bytea,
    p_key_id text, p_inner bytea, p_outer bytea
) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
DECLARE
    e record;
    v_seq bigint := 0;
    v_link bytea := '';
BEGIN
    FOR e IN SELECT j.seq, j.text, j.key_id, j.hash FROM tenants_journalentry j
        WHERE j.stream = p_stream ORDER BY j.seq
    LOOP
        v_seq := v_seq + 1;
        v_link := sha256(p_outer || sha256(
            p_inner || v_link || convert_to(e.text, 'UTF8')));
        IF e.seq <> v_seq OR e.key_id <> p_key_id OR e.hash <> v_link THEN
            RETURN false;
        END IF;
    END LOOP;
    RETURN v_seq = p_seq AND v_link = p_head;
END $$;

-- The keyed digest of a text that a journal tells of without saying it (tenants/imprints.py).
CREATE FUNCTION tenants_imprint(p_inner bytea, p_outer bytea, p_text text)
RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT encode(
        sha256(p_outer || sha256(p_inner || '\x00'::bytea || convert_to(p_text, 'UTF8'))), 'hex')
$$;
