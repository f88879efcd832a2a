import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

import tenants.ids
import tenants.scope
from tenants.tables import Tables


class Migration(migrations.Migration):
    initial = True
    dependencies = [("tenants", "0001_tables")]
    operations = [
        Tables(
            [
                migrations.CreateModel(
                    name="Checkpoint",
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
                        ("sequence", models.PositiveIntegerField()),
                        ("state_version", models.BigIntegerField()),
                        ("schema_version", models.PositiveSmallIntegerField(default=1)),
                        ("status", models.CharField(max_length=10)),
                        ("next_step", models.PositiveIntegerField()),
                        ("pending_gates", models.JSONField(default=list)),
                        ("receipts_through", models.BigIntegerField()),
                        ("permissions", models.JSONField()),
                        ("inputs", models.CharField(max_length=71)),
                        ("agent_format", models.CharField(max_length=100, null=True)),
                        ("agent_version", models.CharField(max_length=100, null=True)),
                        ("agent_size", models.PositiveIntegerField(null=True)),
                        ("agent_digest", models.CharField(max_length=71, null=True)),
                        ("agent_body", models.BinaryField(max_length=32, null=True)),
                        ("digest", models.CharField(max_length=71)),
                        ("created_at", models.DateTimeField()),
                        (
                            "agent_base",
                            models.ForeignKey(
                                db_constraint=False,
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="interrupts.checkpoint",
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
                        (
                            "run",
                            models.ForeignKey(
                                db_constraint=False,
                                db_index=False,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="checkpoints",
                                to="interrupts.run",
                            ),
                        ),
                    ],
                    options={
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("run", "sequence"), name="checkpoint_sequence_once"
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="Content",
                    fields=[
                        (
                            "pk",
                            models.CompositePrimaryKey(
                                "tenant_id",
                                "digest",
                                blank=True,
                                editable=False,
                                primary_key=True,
                                serialize=False,
                            ),
                        ),
                        ("digest", models.BinaryField(max_length=32)),
                        ("body", models.BinaryField()),
                        ("cipher", models.CharField(blank=True, max_length=40)),
                        (
                            "created_at",
                            models.DateTimeField(
                                db_default=django.db.models.functions.datetime.Now(), editable=False
                            ),
                        ),
                        (
                            "tenant",
                            models.ForeignKey(
                                db_index=False,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="tenants.tenant",
                            ),
                        ),
                    ],
                ),
                migrations.CreateModel(
                    name="Run",
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
                        ("workflow", models.CharField(max_length=200)),
                        ("goal", models.TextField()),
                        ("inputs", models.JSONField(default=dict)),
                        ("labels", models.JSONField(default=dict)),
                        ("root", models.UUIDField(default=tenants.ids.uuid7, editable=False)),
                        (
                            "path",
                            django.contrib.postgres.fields.ArrayField(
                                base_field=models.UUIDField(),
                                default=list,
                                editable=False,
                                size=None,
                            ),
                        ),
                        ("key_scope", models.UUIDField(default=tenants.ids.uuid7, editable=False)),
                        (
                            "status",
                            models.CharField(
                                choices=[
                                    ("running", "Running"),
                                    ("suspended", "Suspended"),
                                    ("cancelling", "Cancelling"),
                                    ("completed", "Completed"),
                                    ("failed", "Failed"),
                                    ("cancelled", "Cancelled"),
                                ],
                                default="running",
                                editable=False,
                                max_length=10,
                            ),
                        ),
                        (
                            "suspension",
                            models.CharField(
                                choices=[
                                    ("unknown_outcome", "Unknown Outcome"),
                                    ("still_cancelling", "Still Cancelling"),
                                    ("partially_complete", "Partially Complete"),
                                    ("safely_suspended", "Safely Suspended"),
                                ],
                                max_length=20,
                                null=True,
                            ),
                        ),
                        ("count_unknown", models.IntegerField(default=0)),
                        ("count_in_flight", models.IntegerField(default=0)),
                        ("count_partial", models.IntegerField(default=0)),
                        ("epoch", models.IntegerField(default=1)),
                        ("state_version", models.BigIntegerField(default=1)),
                        ("journal_seq", models.BigIntegerField(default=0)),
                        ("journal_hash", models.BinaryField(default=bytes)),
                        ("last_position", models.IntegerField(default=0)),
                        ("next_step", models.IntegerField(default=1)),
                        ("open_interrupts", models.IntegerField(default=0)),
                        ("session", models.IntegerField(default=0)),
                        ("idle_after_seconds", models.FloatField(null=True)),
                        (
                            "last_seen_at",
                            models.DateTimeField(
                                db_default=django.db.models.functions.datetime.Now()
                            ),
                        ),
                        ("budget", models.JSONField(default=dict)),
                        ("usage_steps", models.BigIntegerField(default=0)),
                        (
                            "usage_cost",
                            models.DecimalField(decimal_places=10, default=0, max_digits=30),
                        ),
                        (
                            "usage_seconds",
                            models.DecimalField(decimal_places=3, default=0, max_digits=20),
                        ),
                        ("usage_tokens", models.BigIntegerField(default=0)),
                        ("output", models.JSONField(null=True)),
                        ("error", models.JSONField(null=True)),
                        ("compensating", models.BooleanField(default=False)),
                        ("due_at", models.DateTimeField(null=True)),
                        ("reading", models.UUIDField(null=True)),
                        ("reading_until", models.DateTimeField(null=True)),
                        (
                            "created_at",
                            models.DateTimeField(
                                db_default=django.db.models.functions.datetime.Now(), editable=False
                            ),
                        ),
                        (
                            "updated_at",
                            models.DateTimeField(
                                db_default=django.db.models.functions.datetime.Now()
                            ),
                        ),
                        ("ended_at", models.DateTimeField(null=True)),
                        (
                            "agent",
                            models.ForeignKey(
                                db_constraint=False,
                                db_index=False,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="runs",
                                to="tenants.agent",
                            ),
                        ),
                        (
                            "checkpoint",
                            models.ForeignKey(
                                db_constraint=False,
                                db_index=False,
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="interrupts.checkpoint",
                            ),
                        ),
                        (
                            "forked_from",
                            models.ForeignKey(
                                db_constraint=False,
                                db_index=False,
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="forks",
                                to="interrupts.run",
                            ),
                        ),
                        (
                            "parent",
                            models.ForeignKey(
                                db_constraint=False,
                                db_index=False,
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="children",
                                to="interrupts.run",
                            ),
                        ),
                        (
                            "requested_by",
                            models.ForeignKey(
                                blank=True,
                                db_index=False,
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to=settings.AUTH_USER_MODEL,
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
                        ("damage", models.TextField(null=True)),
                        ("damaged_at", models.DateTimeField(null=True)),
                        ("verdicts_awaited", models.IntegerField(db_default=0, default=0)),
                        ("verdicts_holding", models.IntegerField(db_default=0, default=0)),
                        (
                            "reserved_cost",
                            models.DecimalField(
                                db_default=0, decimal_places=10, default=0, max_digits=30
                            ),
                        ),
                    ],
                    options={
                        "indexes": [
                            models.Index(fields=["agent", "id"], name="run_of_agent"),
                            models.Index(
                                condition=models.Q(("due_at__isnull", False)),
                                fields=["due_at"],
                                name="run_due",
                            ),
                            models.Index(fields=["root"], name="run_family"),
                            models.Index(
                                condition=models.Q(("ended_at", None)),
                                fields=["status", "suspension"],
                                name="run_live",
                            ),
                            models.Index(
                                condition=models.Q(("damaged_at__isnull", False)),
                                fields=["damaged_at"],
                                name="run_damaged",
                            ),
                            models.Index(
                                condition=models.Q(("parent__isnull", False)),
                                fields=["parent"],
                                name="run_of_parent",
                            ),
                            models.Index(
                                condition=models.Q(("forked_from__isnull", False)),
                                fields=["forked_from"],
                                name="run_of_origin",
                            ),
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="Interrupt",
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
                        (
                            "reason",
                            models.CharField(
                                choices=[
                                    ("approval_required", "Approval Required"),
                                    ("risk_threshold", "Risk Threshold"),
                                    ("confidence_threshold", "Confidence Threshold"),
                                    ("milestone", "Milestone"),
                                    ("input_required", "Input Required"),
                                    ("operator_stop", "Operator Stop"),
                                    ("budget_exhausted", "Budget Exhausted"),
                                    ("verifier_rejected", "Verifier Rejected"),
                                    ("context_missing", "Context Missing"),
                                    ("outcome_unknown", "Outcome Unknown"),
                                    ("effect_failed", "Effect Failed"),
                                    ("agent_requested", "Agent Requested"),
                                    ("parent_interrupted", "Parent Interrupted"),
                                    ("owner_lost", "Owner Lost"),
                                ],
                                max_length=20,
                            ),
                        ),
                        (
                            "status",
                            models.CharField(
                                choices=[("open", "Open"), ("resolved", "Resolved")],
                                default="open",
                                max_length=8,
                            ),
                        ),
                        ("step", models.UUIDField(null=True)),
                        ("gate", models.UUIDField(null=True)),
                        ("checkpoint", models.UUIDField()),
                        (
                            "in_flight",
                            models.CharField(
                                choices=[("finish", "Finish"), ("cancel", "Cancel")],
                                default="finish",
                                max_length=6,
                            ),
                        ),
                        ("evidence", models.JSONField(default=dict)),
                        ("note", models.TextField(null=True)),
                        (
                            "kind",
                            models.CharField(
                                choices=[
                                    ("release", "Release"),
                                    ("decision", "Decision"),
                                    ("input", "Input"),
                                    ("recovery", "Recovery"),
                                    ("extension", "Extension"),
                                ],
                                max_length=9,
                            ),
                        ),
                        ("question", models.TextField()),
                        ("schema", models.JSONField(null=True)),
                        (
                            "who",
                            django.contrib.postgres.fields.ArrayField(
                                base_field=models.CharField(max_length=10), size=None
                            ),
                        ),
                        ("allowed", models.JSONField()),
                        ("expires_at", models.DateTimeField(null=True)),
                        ("on_expiry", models.CharField(max_length=10, null=True)),
                        ("opened_by", models.JSONField()),
                        ("opened_at", models.DateTimeField()),
                        (
                            "resolution",
                            models.CharField(
                                choices=[
                                    ("resume", "Resume"),
                                    ("revise", "Revise"),
                                    ("cancel", "Cancel"),
                                    ("time_out", "Time Out"),
                                    ("compensate", "Compensate"),
                                ],
                                max_length=10,
                                null=True,
                            ),
                        ),
                        ("response", models.JSONField(null=True)),
                        ("resolved_by", models.JSONField(null=True)),
                        ("resolved_at", models.DateTimeField(null=True)),
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
                            "run",
                            models.ForeignKey(
                                db_constraint=False,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="interrupts",
                                to="interrupts.run",
                            ),
                        ),
                        (
                            "set_aside",
                            models.GeneratedField(
                                db_persist=True,
                                expression=models.ExpressionWrapper(
                                    models.Q(("evidence__set_aside", True)),
                                    output_field=models.BooleanField(),
                                ),
                                output_field=models.BooleanField(null=True),
                            ),
                        ),
                    ],
                    options={
                        "ordering": ["id"],
                        "indexes": [
                            models.Index(
                                condition=models.Q(("status", "open")),
                                fields=["tenant", "id"],
                                name="interrupt_open",
                            ),
                            models.Index(
                                condition=models.Q(("status", "open")),
                                fields=["opened_at"],
                                name="interrupt_open_since",
                            ),
                        ],
                        "constraints": [
                            models.UniqueConstraint(
                                condition=models.Q(("status", "open"), ("step__isnull", False)),
                                fields=("step", "reason"),
                                name="one_open_interrupt_per_step_and_reason",
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="Guidance",
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
                        ("text", models.TextField()),
                        ("at", models.DateTimeField()),
                        ("acknowledged_at", models.DateTimeField(null=True)),
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
                            "run",
                            models.ForeignKey(
                                db_constraint=False,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="guidance",
                                to="interrupts.run",
                            ),
                        ),
                    ],
                    options={
                        "ordering": ["id"],
                    },
                ),
                migrations.CreateModel(
                    name="Step",
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
                        ("position", models.IntegerField()),
                        ("group", models.UUIDField(default=tenants.ids.uuid7)),
                        ("parallel", models.BooleanField(default=False)),
                        ("key", models.CharField(max_length=255, null=True)),
                        ("key_scope", models.UUIDField()),
                        ("session", models.IntegerField(default=0)),
                        ("tool_name", models.CharField(max_length=100)),
                        ("tool_number", models.IntegerField()),
                        (
                            "executor",
                            models.CharField(
                                choices=[
                                    ("http", "Http"),
                                    ("python", "Python"),
                                    ("agent", "Agent"),
                                ],
                                max_length=6,
                            ),
                        ),
                        (
                            "effect",
                            models.CharField(
                                choices=[
                                    ("read", "Read"),
                                    ("idempotent", "Idempotent"),
                                    ("reversible", "Reversible"),
                                    ("irreversible", "Irreversible"),
                                ],
                                max_length=12,
                            ),
                        ),
                        (
                            "risk",
                            models.CharField(
                                choices=[("low", "Low"), ("medium", "Medium"), ("high", "High")],
                                max_length=6,
                            ),
                        ),
                        ("timeout_seconds", models.FloatField()),
                        ("arguments", models.BinaryField(max_length=32)),
                        ("digest", models.CharField(max_length=71)),
                        ("proposed_digest", models.CharField(max_length=71)),
                        ("proposal", models.JSONField(default=dict)),
                        (
                            "status",
                            models.CharField(
                                choices=[
                                    ("proposed", "Proposed"),
                                    ("waiting", "Waiting"),
                                    ("ready", "Ready"),
                                    ("executing", "Executing"),
                                    ("unknown", "Unknown"),
                                    ("succeeded", "Succeeded"),
                                    ("failed", "Failed"),
                                    ("compensating", "Compensating"),
                                    ("compensated", "Compensated"),
                                    ("denied", "Denied"),
                                    ("rejected", "Rejected"),
                                    ("revised", "Revised"),
                                    ("cancelled", "Cancelled"),
                                ],
                                default="proposed",
                                editable=False,
                                max_length=12,
                            ),
                        ),
                        ("reason", models.TextField(null=True)),
                        ("held_by", models.CharField(max_length=10, null=True)),
                        ("gate", models.UUIDField(null=True)),
                        ("interrupt", models.UUIDField(null=True)),
                        ("twin", models.UUIDField(null=True)),
                        ("authorized_by", models.CharField(max_length=10, null=True)),
                        ("authorized_rule", models.CharField(max_length=200, null=True)),
                        ("authorized_gate", models.UUIDField(null=True)),
                        ("authorized_digest", models.CharField(max_length=71, null=True)),
                        ("authorized_under", models.BigIntegerField(null=True)),
                        ("authorized_tool_version", models.UUIDField(null=True)),
                        ("authorized_policy_version", models.IntegerField(null=True)),
                        ("authorized_until", models.DateTimeField(null=True)),
                        ("attempts", models.IntegerField(default=0)),
                        ("fence", models.IntegerField(default=0)),
                        (
                            "outcome",
                            models.CharField(
                                choices=[
                                    ("succeeded", "Succeeded"),
                                    ("failed", "Failed"),
                                    ("not_performed", "Not Performed"),
                                    ("unknown", "Unknown"),
                                ],
                                max_length=13,
                                null=True,
                            ),
                        ),
                        ("result", models.BinaryField(max_length=32, null=True)),
                        ("error", models.TextField(null=True)),
                        ("external_id", models.TextField(null=True)),
                        ("due_at", models.DateTimeField(null=True)),
                        ("unknown_at", models.DateTimeField(null=True)),
                        ("asked", models.IntegerField(default=0)),
                        ("ask_at", models.DateTimeField(null=True)),
                        ("ask_first", models.BooleanField(default=False)),
                        ("undo_wanted", models.BooleanField(default=False)),
                        ("undo_tries", models.IntegerField(default=0)),
                        (
                            "created_at",
                            models.DateTimeField(
                                db_default=django.db.models.functions.datetime.Now(), editable=False
                            ),
                        ),
                        ("settled_at", models.DateTimeField(null=True)),
                        (
                            "run",
                            models.ForeignKey(
                                db_constraint=False,
                                db_index=False,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="steps",
                                to="interrupts.run",
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
                        (
                            "tool",
                            models.ForeignKey(
                                db_constraint=False,
                                db_index=False,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="interrupts.tool",
                            ),
                        ),
                        (
                            "tool_version",
                            models.ForeignKey(
                                db_constraint=False,
                                db_index=False,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="interrupts.toolversion",
                            ),
                        ),
                        ("reason_code", models.CharField(max_length=50, null=True)),
                        ("context", models.JSONField(null=True)),
                        ("context_until", models.DateTimeField(null=True)),
                        ("counted_on", models.DateField(null=True)),
                        (
                            "reserved_cost",
                            models.DecimalField(decimal_places=10, max_digits=30, null=True),
                        ),
                        ("judged", models.JSONField(null=True)),
                    ],
                    options={
                        "indexes": [
                            models.Index(
                                condition=models.Q(("key__isnull", False)),
                                fields=["key_scope", "key"],
                                name="step_key_in_forks",
                            ),
                            models.Index(fields=["proposed_digest"], name="step_twins"),
                        ],
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("run", "position"), name="step_position_once"
                            ),
                            models.UniqueConstraint(
                                condition=models.Q(("key__isnull", False)),
                                fields=("run", "key"),
                                name="step_key_once_in_run",
                            ),
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="Receipt",
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
                        ("attempt", models.UUIDField(null=True)),
                        ("compensation", models.BooleanField(default=False)),
                        (
                            "source",
                            models.CharField(
                                choices=[
                                    ("executor", "Executor"),
                                    ("agent", "Agent"),
                                    ("reconciliation", "Reconciliation"),
                                    ("person", "Person"),
                                ],
                                max_length=14,
                            ),
                        ),
                        (
                            "outcome",
                            models.CharField(
                                choices=[
                                    ("succeeded", "Succeeded"),
                                    ("failed", "Failed"),
                                    ("not_performed", "Not Performed"),
                                    ("unknown", "Unknown"),
                                ],
                                max_length=13,
                            ),
                        ),
                        ("result", models.BinaryField(max_length=32, null=True)),
                        ("external_id", models.TextField(null=True)),
                        ("cost", models.DecimalField(decimal_places=10, max_digits=30, null=True)),
                        ("error", models.TextField(null=True)),
                        ("evidence", models.TextField(null=True)),
                        ("by", models.CharField(max_length=60)),
                        ("observed_at", models.DateTimeField()),
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
                            "run",
                            models.ForeignKey(
                                db_constraint=False,
                                db_index=False,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="interrupts.run",
                            ),
                        ),
                        (
                            "step",
                            models.ForeignKey(
                                db_constraint=False,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="receipts",
                                to="interrupts.step",
                            ),
                        ),
                    ],
                    options={
                        "ordering": ["id"],
                    },
                ),
                migrations.CreateModel(
                    name="Attempt",
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
                        ("fence", models.IntegerField()),
                        ("epoch", models.IntegerField()),
                        ("worker", models.CharField(blank=True, max_length=100)),
                        ("compensation", models.BooleanField(default=False)),
                        ("started_at", models.DateTimeField()),
                        ("lease_expires_at", models.DateTimeField(null=True)),
                        ("lease_seconds", models.FloatField(null=True)),
                        ("cancel_requested", models.BooleanField(default=False)),
                        ("lapsed_at", models.DateTimeField(null=True)),
                        ("settled_at", models.DateTimeField(null=True)),
                        (
                            "outcome",
                            models.CharField(
                                choices=[
                                    ("succeeded", "Succeeded"),
                                    ("failed", "Failed"),
                                    ("not_performed", "Not Performed"),
                                    ("unknown", "Unknown"),
                                ],
                                max_length=13,
                                null=True,
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
                        (
                            "run",
                            models.ForeignKey(
                                db_constraint=False,
                                db_index=False,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="interrupts.run",
                            ),
                        ),
                        (
                            "step",
                            models.ForeignKey(
                                db_constraint=False,
                                db_index=False,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="tries",
                                to="interrupts.step",
                            ),
                        ),
                    ],
                    options={
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("step", "fence"), name="attempt_fence_once"
                            ),
                            models.UniqueConstraint(
                                condition=models.Q(("lapsed_at", None), ("settled_at", None)),
                                fields=("step",),
                                name="one_live_attempt_per_step",
                            ),
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="Tool",
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
                        ("description", models.TextField(blank=True)),
                        ("secret", models.BinaryField(null=True)),
                        ("retired_at", models.DateTimeField(blank=True, null=True)),
                        (
                            "created_at",
                            models.DateTimeField(
                                db_default=django.db.models.functions.datetime.Now(), editable=False
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
                        (
                            "current",
                            models.ForeignKey(
                                db_constraint=False,
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="interrupts.toolversion",
                            ),
                        ),
                    ],
                    options={
                        "permissions": [("decide_tool", "Can decide gates of this tool")],
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("tenant", "name"), name="tool_name_once_per_tenant"
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="ToolVersion",
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
                        ("number", models.PositiveIntegerField()),
                        (
                            "effect",
                            models.CharField(
                                choices=[
                                    ("read", "Read"),
                                    ("idempotent", "Idempotent"),
                                    ("reversible", "Reversible"),
                                    ("irreversible", "Irreversible"),
                                ],
                                max_length=12,
                            ),
                        ),
                        (
                            "risk",
                            models.CharField(
                                choices=[("low", "Low"), ("medium", "Medium"), ("high", "High")],
                                max_length=6,
                            ),
                        ),
                        ("arguments", models.JSONField()),
                        ("sensitive", models.JSONField(default=list)),
                        ("confirmation", models.TextField(blank=True)),
                        ("headline", models.TextField(blank=True)),
                        ("consequence", models.TextField(blank=True)),
                        ("blast_radius", models.TextField(blank=True)),
                        ("failure_modes", models.JSONField(default=list)),
                        ("roles", models.JSONField(default=dict)),
                        ("key_lifetime", models.PositiveIntegerField(null=True)),
                        ("on_failure", models.CharField(default="tell", max_length=10)),
                        ("executor", models.JSONField()),
                        (
                            "executor_kind",
                            models.CharField(
                                choices=[
                                    ("http", "Http"),
                                    ("python", "Python"),
                                    ("agent", "Agent"),
                                ],
                                max_length=6,
                            ),
                        ),
                        ("timeout_seconds", models.FloatField()),
                        ("preview", models.JSONField(null=True)),
                        ("reconcile", models.JSONField(null=True)),
                        ("compensate", models.JSONField(null=True)),
                        ("digest", models.CharField(max_length=71)),
                        (
                            "created_at",
                            models.DateTimeField(
                                db_default=django.db.models.functions.datetime.Now(), editable=False
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
                        (
                            "tool",
                            models.ForeignKey(
                                db_constraint=False,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="versions",
                                to="interrupts.tool",
                            ),
                        ),
                        ("verifier", models.JSONField(null=True)),
                        ("decisions", models.JSONField(db_default=[], default=list)),
                        ("context", models.JSONField(db_default=[], default=list)),
                        (
                            "cost",
                            models.CharField(blank=True, db_default="", default="", max_length=26),
                        ),
                    ],
                    options={
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("tool", "number"), name="tool_version_number_once"
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="Freeze",
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
                        (
                            "scope",
                            models.CharField(
                                choices=[
                                    ("tenant", "Tenant"),
                                    ("agent", "Agent"),
                                    ("tool", "Tool"),
                                ],
                                max_length=6,
                            ),
                        ),
                        ("name", models.CharField(blank=True, max_length=100)),
                        ("note", models.TextField(blank=True)),
                        ("created_by", models.UUIDField()),
                        (
                            "created_at",
                            models.DateTimeField(
                                db_default=django.db.models.functions.datetime.Now(), editable=False
                            ),
                        ),
                        ("lifted_by", models.UUIDField(null=True)),
                        ("lifted_at", models.DateTimeField(null=True)),
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
                            models.CheckConstraint(
                                condition=models.Q(
                                    models.Q(("name", ""), ("scope", "tenant")),
                                    models.Q(
                                        models.Q(("scope", "tenant"), _negated=True),
                                        models.Q(("name", ""), _negated=True),
                                    ),
                                    _connector="OR",
                                ),
                                name="freeze_names_what_it_freezes",
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="Drain",
                    fields=[
                        (
                            "host",
                            models.CharField(max_length=40, primary_key=True, serialize=False),
                        ),
                        ("since", models.DateTimeField()),
                    ],
                ),
                migrations.CreateModel(
                    name="SweepRound",
                    fields=[
                        (
                            "id",
                            models.PositiveSmallIntegerField(
                                default=1, primary_key=True, serialize=False
                            ),
                        ),
                        ("ended_at", models.DateTimeField()),
                        ("seconds", models.FloatField()),
                        ("rounds", models.BigIntegerField()),
                        ("unworkable", models.IntegerField()),
                    ],
                ),
                migrations.CreateModel(
                    name="Tally",
                    fields=[
                        (
                            "name",
                            models.CharField(max_length=40, primary_key=True, serialize=False),
                        ),
                        ("value", models.BigIntegerField()),
                    ],
                ),
                migrations.CreateModel(
                    name="Question",
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
                                condition=models.Q(
                                    models.Q(("answer", None), ("answered_at", None)),
                                    models.Q(
                                        ("answer__isnull", False), ("answered_at__isnull", False)
                                    ),
                                    _connector="OR",
                                ),
                                name="an_answer_has_its_time",
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="Verdict",
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
                        (
                            "status",
                            models.CharField(
                                choices=[
                                    ("awaited", "Awaited"),
                                    ("passed", "Passed"),
                                    ("rejected", "Rejected"),
                                    ("unknown", "Unknown"),
                                ],
                                default="awaited",
                                editable=False,
                                max_length=8,
                            ),
                        ),
                        ("receipt", models.UUIDField()),
                        ("holds", models.BooleanField()),
                        ("tries", models.IntegerField(default=0)),
                        ("ask_at", models.DateTimeField(null=True)),
                        ("asking_until", models.DateTimeField(null=True)),
                        ("words", models.TextField(null=True)),
                        ("error", models.TextField(null=True)),
                        ("awaited_since", models.DateTimeField()),
                        ("recorded_at", models.DateTimeField(null=True)),
                        (
                            "run",
                            models.ForeignKey(
                                db_constraint=False,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="verdicts",
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
                        "constraints": [
                            models.UniqueConstraint(fields=("step",), name="one_verdict_per_step"),
                            models.CheckConstraint(
                                condition=models.Q(
                                    models.Q(
                                        ("ask_at__isnull", False),
                                        ("recorded_at", None),
                                        ("status", "awaited"),
                                    ),
                                    models.Q(
                                        models.Q(("status", "awaited"), _negated=True),
                                        ("ask_at", None),
                                        ("recorded_at__isnull", False),
                                    ),
                                    _connector="OR",
                                ),
                                name="a_verdict_is_awaited_or_recorded",
                            ),
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="AgentDay",
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
                        ("day", models.DateField()),
                        ("steps", models.BigIntegerField(default=0)),
                        ("cost", models.DecimalField(decimal_places=10, default=0, max_digits=30)),
                        (
                            "reserved_cost",
                            models.DecimalField(decimal_places=10, default=0, max_digits=30),
                        ),
                        (
                            "seconds",
                            models.DecimalField(decimal_places=3, default=0, max_digits=20),
                        ),
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
                                condition=models.Q(("reserved_cost__gte", 0)),
                                name="no_less_than_nothing_is_reserved",
                            ),
                        ],
                    },
                ),
            ]
        )
    ]
