"""Entries that are written together are one statement: each had its own, and cost as much again."""

from django.db import migrations

EXTEND = """
CREATE OR REPLACE FUNCTION tenants_journal_extend(
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
"""


class Migration(migrations.Migration):
    dependencies = [("tenants", "0005_messages_to_people")]
    # What it writes is the same, so there is nothing to take back.
    operations = [migrations.RunSQL(EXTEND, migrations.RunSQL.noop)]
