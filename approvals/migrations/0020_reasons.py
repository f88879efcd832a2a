"""A decision says which of the declared reasons its person chose."""

from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [
        ("approvals", "0019_limits_and_substitutes"),
        ("interrupts", "0014_choices"),
    ]
    operations = [
        migrations.AddField("decision", "reason_code", models.CharField(max_length=50, null=True)),
        migrations.AddField("decision", "reason_text", models.TextField(null=True)),
        migrations.AddConstraint(
            "decision",
            models.CheckConstraint(
                condition=Q(reason_code=None, reason_text=None)
                | Q(reason_code__isnull=False, reason_text__isnull=False),
                name="a_chosen_reason_has_its_text",
            ),
        ),
    ]
