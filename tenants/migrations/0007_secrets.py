import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models
from django.db.models import Q

import tenants.ids
import tenants.scope
from tenants import rls


class Migration(migrations.Migration):
    dependencies = [("tenants", "0006_journal_in_one_insert")]
    operations = [
        migrations.CreateModel(
            "Secret",
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
                ("name", models.CharField(max_length=100)),
                ("version", models.PositiveIntegerField()),
                ("sealed", models.BinaryField(null=True)),
                (
                    "set_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                ("removed_at", models.DateTimeField(blank=True, editable=False, null=True)),
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
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=["tenant", "name"], name="secret_name_once_per_tenant"
                    ),
                    models.CheckConstraint(
                        condition=Q(sealed=None, removed_at__isnull=False)
                        | Q(sealed__isnull=False, removed_at=None),
                        name="a_removed_secret_holds_nothing",
                    ),
                ],
            },
        ),
        rls.tenant_table("tenants_secret"),
    ]
