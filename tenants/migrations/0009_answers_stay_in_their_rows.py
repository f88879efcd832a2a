"""What is kept of an answer is sealed: it does not shrink, and most fit beside their row's rest."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("tenants", "0008_daily_budgets")]
    operations = [
        migrations.RunSQL(
            """
            ALTER TABLE tenants_idempotentanswer ALTER body SET STORAGE EXTERNAL;
            ALTER TABLE tenants_idempotentanswer SET (toast_tuple_target = 8160);
            """,
            """
            ALTER TABLE tenants_idempotentanswer RESET (toast_tuple_target);
            ALTER TABLE tenants_idempotentanswer ALTER body SET STORAGE EXTENDED;
            """,
        )
    ]
