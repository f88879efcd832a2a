import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import tenants.ids
import tenants.scope
from tenants import rls


class Migration(migrations.Migration):
    dependencies = [
        ("approvals", "0005_decisions_of_a_person"),
        ("tenants", "0005_messages_to_people"),
    ]
    operations = [
        migrations.AddField("gate", "undecidable_at", models.DateTimeField(null=True)),
        migrations.CreateModel(
            "NoticePreference",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=tenants.ids.uuid7,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("asked", models.BooleanField(default=True)),
                ("reminders", models.BooleanField(default=True)),
                (
                    "tenant",
                    models.ForeignKey(
                        db_index=False,
                        default=tenants.scope.current_tenant_id,
                        editable=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="tenants.tenant",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=["user", "tenant"], name="notices_preferred_once"
                    )
                ],
            },
        ),
        rls.tenant_table("approvals_noticepreference", key=None),
    ]
