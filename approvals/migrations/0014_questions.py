"""Questions name a gate of their tenant; whoever asked one is told of its answer."""

from django.db import migrations, models

from tenants import rls


class Migration(migrations.Migration):
    dependencies = [
        ("approvals", "0013_found_by_the_rest"),
        ("interrupts", "0012_questions"),
    ]
    operations = [
        rls.tenant_reference("interrupts_question", "gate", "approvals_gate"),
        migrations.AddField("noticepreference", "answers", models.BooleanField(default=True)),
    ]
