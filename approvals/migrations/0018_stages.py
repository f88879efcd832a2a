"""A gate may be decided in stages, one after the other: which is open, and which a vote is of."""

from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("approvals", "0017_assignments_handed_over")]
    operations = [
        *(
            migrations.AddField(of, "stage", models.PositiveSmallIntegerField(null=True))
            for of in ("gate", "decision")
        ),
        migrations.AddConstraint(
            "gate",
            models.CheckConstraint(
                condition=Q(stages=[], stage=None) | (~Q(stages=[]) & Q(stage__gte=1)),
                name="a_gate_with_stages_has_an_open_one",
            ),
        ),
    ]
