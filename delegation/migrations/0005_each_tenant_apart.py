"""What is learned of a person in one tenant, and what they wish there, is apart from every
other; and by which preset everybody's rules follow is kept, so that another one is taken up.
"""

from django.db import migrations, models

OF_A_PERSON = (
    ("learnerstate", "one_learner_a_person"),
    ("delegationpreference", "one_preference_a_person"),
)


def unique(model: str, name: str) -> list[migrations.operations.base.Operation]:
    constraint = models.UniqueConstraint(fields=("tenant", "user"), name=name)
    return [
        migrations.RemoveConstraint(model_name=model, name=name),
        migrations.AddConstraint(model_name=model, constraint=constraint),
    ]


class Migration(migrations.Migration):
    dependencies = [("delegation", "0004_tenant_implied")]
    operations = [
        *(one for each in OF_A_PERSON for one in unique(*each)),
        migrations.AddField("eventstream", "preset", models.CharField(default="", max_length=20)),
    ]
