"""What several say in one transition is written together: each speaker had a statement of its own."""

from django.db import migrations

# As tenants_journal_extend, which what has one speaker in the database goes on to call, with a
# speaker for each entry: a call of the one by the other would be paid at each step.
EXTEND_BY = """
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
"""


class Migration(migrations.Migration):
    dependencies = [("tenants", "0011_agents_that_begin_again")]
    operations = [migrations.RunSQL(EXTEND_BY, "DROP FUNCTION tenants_journal_extend_by")]
