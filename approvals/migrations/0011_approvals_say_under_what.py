"""What a plain approval authorises says in the journal under which authority it does so."""

from pathlib import Path

from django.db import migrations

FUNCTION = (Path(__file__).parent / "0011_approvals_say_under_what.sql").read_text()


class Migration(migrations.Migration):
    dependencies = [
        ("approvals", "0010_agents_that_act"),
        ("interrupts", "0008_damage"),
    ]
    operations = [migrations.RunSQL(FUNCTION, migrations.RunSQL.noop)]
