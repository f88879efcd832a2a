"""What the database keeps of tenants by itself, and the functions that everybody calls."""

from pathlib import Path

from django.db import migrations

from tenants import rls

HERE = Path(__file__).parent
CHAIN = """
ALTER TABLE tenants_journalentry
    ADD COLUMN xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
    ADD COLUMN previous bigint GENERATED ALWAYS AS (nullif(seq - 1, 0)) STORED,
    -- No gaps: each entry but a stream's first refers to the one before it.
    ADD CONSTRAINT journal_follows_its_predecessor FOREIGN KEY (stream, previous)
        REFERENCES tenants_journalentry (stream, seq),
    ADD CONSTRAINT journal_starts_at_one CHECK (seq >= 1);
"""
REFUSE_REWRITE = """
CREATE FUNCTION tenants_refuse_rewrite() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
END $$;
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
"""
# Whoever follows a tenant's journal is woken by its head, and the sweep anchors that.
SWEPT = f"""
GRANT SELECT (id, slug, journal_seq, journal_hash) ON tenants_tenant TO {rls.SWEEP};
GRANT SELECT (created_at) ON tenants_outboxmessage TO {rls.SWEEP};
"""
# What is kept of an answer is sealed: it does not shrink, and most fit beside their row's rest.
ANSWERS_IN_THEIR_ROWS = """
ALTER TABLE tenants_idempotentanswer ALTER body SET STORAGE EXTERNAL;
ALTER TABLE tenants_idempotentanswer SET (toast_tuple_target = 8160);
"""


class Migration(migrations.Migration):
    dependencies = [("tenants", "0001_tables")]
    operations = [
        migrations.RunSQL([CHAIN, REFUSE_REWRITE, (HERE / "0002_journal.sql").read_text()]),
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
        rls.tenant_table("tenants_secret"),
        rls.tenant_reference("tenants_groupmember", "group_id", "tenants_group"),
        rls.tenant_reference("tenants_groupmember", "membership_id", "tenants_membership"),
        rls.tenant_reference("tenants_agentkey", "agent_id", "tenants_agent"),
        rls.tenant_reference("tenants_usertoken", "membership_id", "tenants_membership"),
        # Who is in a group is asked for in the hot path.
        rls.found_by_the_rest("tenants_groupmember"),
        rls.swept("tenants_outboxmessage", "id, tenant_id, due_at", "due_at IS NOT NULL"),
        rls.swept(
            "tenants_idempotentanswer",
            "id, tenant_id, created_at",
            "created_at < now() - interval '24 hours'",
        ),
        migrations.RunSQL([TENANT_ROW, SWEPT, ANSWERS_IN_THEIR_ROWS]),
        migrations.RunSQL((HERE / "0002_doors.sql").read_text()),
    ]
