"""What people ask an agent about a step that waits, and what it answers."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import tenants.ids
import tenants.scope
from tenants import guards, rls


class Migration(migrations.Migration):
    dependencies = [
        ("interrupts", "0011_reads_together"),
        ("tenants", "0007_secrets"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]
    operations = [
        migrations.CreateModel(
            "Question",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=tenants.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("gate", models.UUIDField()),
                ("text", models.TextField()),
                ("at", models.DateTimeField()),
                ("answer", models.TextField(null=True)),
                ("answered_at", models.DateTimeField(null=True)),
                (
                    "by",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="questions",
                        to="interrupts.run",
                    ),
                ),
                (
                    "step",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="interrupts.step",
                    ),
                ),
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
                "ordering": ["id"],
                "indexes": [models.Index(fields=["gate"], name="questions_of_a_gate")],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(answer=None, answered_at=None)
                        | models.Q(answer__isnull=False, answered_at__isnull=False),
                        name="an_answer_has_its_time",
                    )
                ],
            },
        ),
        rls.tenant_table("interrupts_question", key=None),
        rls.tenant_reference("interrupts_question", "run_id", "interrupts_run"),
        rls.tenant_reference("interrupts_question", "step_id", "interrupts_step"),
        rls.found_by_the_rest("interrupts_question"),
        guards.only_these_change("interrupts_question", "answer, answered_at"),
        guards.frozen_when("interrupts_question", "OLD.answer IS NOT NULL"),
    ]
