"""`approvals_similar` goes: for long it has been called by no version that may run beside this one."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("approvals", "0002_promises")]
    # A database that began with these tables never had it.
    operations = [
        migrations.RunSQL(
            "DROP FUNCTION IF EXISTS approvals_similar(uuid, integer)", migrations.RunSQL.noop
        )
    ]
