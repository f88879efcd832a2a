"""The hot writes: one round trip and one commit each (docs/adr/0001).

Always in this order: the tenant's variable and the drain lock, shared; the run's lock; look and
write. Each statement of a function sees what was committed before it began, so what is looked at
after the lock was waited for is what stands now.
"""

from pathlib import Path

from django.db import migrations

FUNCTIONS = (Path(__file__).parent / "0003_hot_path.sql").read_text()


class Migration(migrations.Migration):
    dependencies = [("interrupts", "0002_security_and_guards")]
    operations = [
        migrations.RunSQL(
            FUNCTIONS,
            "DROP FUNCTION interrupts_advance; DROP FUNCTION interrupts_find_startable; DROP FUNCTION interrupts_lock_family;",
        ),
    ]
