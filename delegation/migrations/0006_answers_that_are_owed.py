"""Spot checks are asked again until somebody answers; a rule's pause is told once."""

from django.db import migrations, models
from django.db.models import Q

REASONS = [
    ("person", "Person"),
    ("admin", "Admin"),
    ("refused", "Refused"),
    ("incident", "Incident"),
    ("unproven", "Unproven"),
    ("unreadable", "Unreadable"),
]


class Migration(migrations.Migration):
    dependencies = [("delegation", "0005_each_tenant_apart")]
    operations = [
        migrations.AddField("delegation", "pause", models.UUIDField(null=True)),
        migrations.AlterField(
            "delegation",
            "pause_reason",
            models.CharField(choices=REASONS, max_length=10, null=True),
        ),
        migrations.AddField("spotcheck", "shape", models.CharField(max_length=71, null=True)),
        migrations.AddField("spotcheck", "call", models.CharField(max_length=71, null=True)),
        migrations.AddField(
            "spotcheck", "awaits", models.BooleanField(db_default=True, default=True)
        ),
        migrations.AddField("spotcheck", "after", models.UUIDField(null=True)),
        migrations.AddIndex(
            "spotcheck",
            models.Index(fields=["shape"], condition=Q(awaits=True), name="checks_that_await"),
        ),
    ]
