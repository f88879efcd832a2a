"""What the sweep reads of heads, and whether a short journal holds, for the hot write."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("interrupts", "0003_hot_path")]
    operations = [
        migrations.RunSQL(
            """
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
            """,
            "DROP FUNCTION tenants_journal_holds",
        ),
        migrations.RunSQL(
            """
            GRANT SELECT (journal_hash, updated_at) ON interrupts_run TO abeyance_sweep;
            GRANT SELECT (id, journal_seq, journal_hash) ON tenants_tenant TO abeyance_sweep;
            """,
            """
            REVOKE SELECT (journal_hash, updated_at) ON interrupts_run FROM abeyance_sweep;
            REVOKE SELECT (id, journal_seq, journal_hash) ON tenants_tenant FROM abeyance_sweep;
            """,
        ),
    ]
