"""An approval that is to cool down is not plain: it goes the long way, which holds its step."""

from pathlib import Path

from django.db import migrations

HERE = Path(__file__).parent
FUNCTION = (HERE / "0015_approvals_that_cool_down.sql").read_text()
BEFORE = (HERE / "0011_approvals_say_under_what.sql").read_text()


class Migration(migrations.Migration):
    dependencies = [("approvals", "0014_latest_gates")]
    operations = [migrations.RunSQL(FUNCTION, BEFORE)]
