from django.db import migrations

# Takes the key's lock without waiting, and only then looks: what was committed before the lock
# was had is seen. The lock is the transaction's, or the session's where that is asked for.
BEGIN = """
CREATE FUNCTION tenants_idempotency_begin(
    p_tenant uuid, p_caller text, p_key text, p_lock bigint, p_session boolean,
    OUT held boolean, OUT fingerprint bytea, OUT status smallint, OUT headers text, OUT body bytea
) LANGUAGE plpgsql AS $$
BEGIN
    IF p_session THEN
        held := pg_try_advisory_lock(p_lock);
    ELSE
        held := pg_try_advisory_xact_lock(p_lock);
    END IF;
    IF held THEN
        SELECT a.fingerprint, a.status, a.headers::text, a.body
            INTO fingerprint, status, headers, body
            FROM tenants_idempotentanswer a
            WHERE a.tenant_id = p_tenant AND a.caller = p_caller AND a.key = p_key;
    END IF;
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("tenants", "0002_journal_and_security")]
    operations = [
        migrations.RunSQL(BEGIN, "DROP FUNCTION tenants_idempotency_begin"),
    ]
