"""Budgets of an agent's day, costs that are reserved, and what a call needs to know."""

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import Q

import tenants.ids
import tenants.scope
from tenants import guards, rls


class Migration(migrations.Migration):
    dependencies = [
        ("interrupts", "0014_choices"),
        ("tenants", "0008_daily_budgets"),
    ]

    operations = [
        migrations.AddField(
            model_name="run",
            name="reserved_cost",
            field=models.DecimalField(decimal_places=10, db_default=0, default=0, max_digits=30),
        ),
        migrations.AddField(
            model_name="step",
            name="context",
            field=models.JSONField(null=True),
        ),
        migrations.AddField(
            model_name="step",
            name="context_until",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="step",
            name="counted_on",
            field=models.DateField(null=True),
        ),
        migrations.AddField(
            model_name="step",
            name="reserved_cost",
            field=models.DecimalField(decimal_places=10, max_digits=30, null=True),
        ),
        migrations.AddField(
            model_name="toolversion",
            name="context",
            field=models.JSONField(db_default=[], default=list),
        ),
        migrations.AddField(
            model_name="toolversion",
            name="cost",
            field=models.CharField(blank=True, db_default="", default="", max_length=26),
        ),
        migrations.CreateModel(
            name="AgentDay",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=tenants.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("day", models.DateField()),
                ("steps", models.BigIntegerField(default=0)),
                ("cost", models.DecimalField(decimal_places=10, default=0, max_digits=30)),
                ("reserved_cost", models.DecimalField(decimal_places=10, default=0, max_digits=30)),
                ("seconds", models.DecimalField(decimal_places=3, default=0, max_digits=20)),
                ("tokens", models.BigIntegerField(default=0)),
                ("extended", models.JSONField(default=dict)),
                (
                    "agent",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="tenants.agent",
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
                "constraints": [
                    models.UniqueConstraint(fields=("agent", "day"), name="agent_day_once"),
                    models.CheckConstraint(
                        condition=Q(reserved_cost__gte=0), name="no_less_than_nothing_is_reserved"
                    ),
                ],
            },
        ),
        rls.tenant_table("interrupts_agentday", key=None),
        rls.tenant_reference("interrupts_agentday", "agent_id", "tenants_agent"),
        rls.found_by_the_rest("interrupts_agentday"),
        guards.only_these_change(
            "interrupts_agentday", "steps, cost, reserved_cost, seconds, tokens, extended"
        ),
    ]
