"""Reads that come back at once are recorded together (docs/adr/0020)."""

from pathlib import Path

from django.db import migrations

HERE = Path(__file__).parent
# The function of before takes other parameters: the new one would stand beside it.
DROP = """
DO $$
BEGIN
    EXECUTE (SELECT 'DROP FUNCTION ' || oid::regprocedure FROM pg_proc
        WHERE proname = 'interrupts_advance' AND pronamespace = current_schema()::regnamespace);
END $$;
"""
TOLD = """
DROP FUNCTION interrupts_receipt_told;
DROP FUNCTION interrupts_settled_told;
"""
TOGETHER = (HERE / "0011_reads_together.sql").read_text()
ONE_BY_ONE = (HERE / "0007_receipts_tell_more.sql").read_text()


class Migration(migrations.Migration):
    dependencies = [
        ("interrupts", "0010_indexes_that_repeat_others"),
        ("tenants", "0006_journal_in_one_insert"),
    ]
    operations = [migrations.RunSQL(DROP + TOGETHER, DROP + TOLD + ONE_BY_ONE)]
