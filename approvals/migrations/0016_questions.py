"""Questions name a gate of their tenant; whoever asked one is told of its answer."""

from django.db import migrations, models

from tenants import rls


class Migration(migrations.Migration):
    dependencies = [
        ("approvals", "0015_approvals_that_cool_down"),
        ("interrupts", "0012_questions"),
    ]
    operations = [
        rls.tenant_reference("interrupts_question", "gate", "approvals_gate"),
        migrations.AddField("noticepreference", "answers", models.BooleanField(default=True)),
    ]
