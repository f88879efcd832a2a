"""Two indexes found nothing that a unique one did not: each was written with every run and stop."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("interrupts", "0009_found_by_the_rest")]
    operations = [
        migrations.RemoveIndex(model_name="run", name="run_list"),
        migrations.AlterField(
            model_name="checkpoint",
            name="run",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="checkpoints",
                to="interrupts.run",
            ),
        ),
    ]
