"""The rules of a tool are found by the person whose they are: of many, those who are drawn."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("delegation", "0006_answers_that_are_owed")]
    operations = [
        migrations.RemoveIndex("delegation", "rules_that_allow"),
        migrations.AddIndex(
            "delegation",
            models.Index(
                fields=["tool", "user"],
                condition=models.Q(status="active"),
                name="rules_that_allow",
            ),
        ),
    ]
