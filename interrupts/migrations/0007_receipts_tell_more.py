"""The journal vouches for all of a receipt, also where the hot write records it."""

from pathlib import Path

from django.db import migrations

FUNCTIONS = (Path(__file__).parent / "0007_receipts_tell_more.sql").read_text()


class Migration(migrations.Migration):
    dependencies = [
        ("interrupts", "0006_upkeep"),
        ("tenants", "0002_journal_and_security"),
    ]
    operations = [migrations.RunSQL(FUNCTIONS, migrations.RunSQL.noop)]
