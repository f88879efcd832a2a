"""The hot approval takes the idempotency key's lock itself; few approvals are edited ones."""

from pathlib import Path

from django.db import migrations, models

HERE = Path(__file__).parent
BEFORE = "approvals_approve(uuid, uuid, uuid, text, boolean, text, uuid, text, bytea, bytea, text)"
AFTER = BEFORE.replace("text)", "text, text, text, bigint)")


class Migration(migrations.Migration):
    dependencies = [
        ("approvals", "0007_more_notices"),
        ("tenants", "0006_journal_in_one_insert"),
    ]
    operations = [
        migrations.RunSQL(f"DROP FUNCTION {BEFORE}", (HERE / "0003_hot_path.sql").read_text()),
        migrations.RunSQL(
            (HERE / "0008_approve_under_a_key.sql").read_text(), f"DROP FUNCTION {AFTER}"
        ),
        migrations.AddIndex(
            "decision",
            models.Index(
                fields=["gate"],
                condition=models.Q(counts=True, edits__isnull=False),
                name="decisions_that_edit",
            ),
        ),
    ]
