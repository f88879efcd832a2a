import django.db.models.deletion
import django.db.models.functions.datetime
import uuid
from django.conf import settings
from django.db import migrations, models

import tenants.ids
import tenants.scope
from tenants.tables import Tables


class Migration(migrations.Migration):
    initial = True
    dependencies = [
        ("interrupts", "0001_tables"),
        ("tenants", "0001_tables"),
        ("approvals", "0001_tables"),
    ]
    operations = [
        Tables(
            [
                migrations.CreateModel(
                    name="Delegation",
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
                        ("tool", models.UUIDField()),
                        ("version", models.PositiveIntegerField(default=1)),
                        (
                            "status",
                            models.CharField(
                                choices=[
                                    ("suggested", "Suggested"),
                                    ("active", "Active"),
                                    ("paused", "Paused"),
                                    ("revoked", "Revoked"),
                                    ("expired", "Expired"),
                                ],
                                max_length=9,
                            ),
                        ),
                        (
                            "origin",
                            models.CharField(
                                choices=[
                                    ("learned", "Learned"),
                                    ("person", "Person"),
                                    ("template", "Template"),
                                ],
                                max_length=8,
                            ),
                        ),
                        (
                            "risk",
                            models.CharField(
                                choices=[("low", "Low"), ("medium", "Medium"), ("high", "High")],
                                max_length=6,
                            ),
                        ),
                        ("predicate", models.JSONField()),
                        ("evidence", models.JSONField(default=dict)),
                        ("limits", models.JSONField(default=dict)),
                        ("sha256", models.CharField(max_length=71)),
                        (
                            "created_at",
                            models.DateTimeField(
                                db_default=django.db.models.functions.datetime.Now(), editable=False
                            ),
                        ),
                        ("expires_at", models.DateTimeField(null=True)),
                        ("revoked_at", models.DateTimeField(null=True)),
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
                            "user",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="delegations",
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                        ("accepted_at", models.DateTimeField(null=True)),
                        ("backtest", models.JSONField(null=True)),
                        ("changed_at", models.DateTimeField(null=True)),
                        ("check_share", models.FloatField(default=0.25)),
                        ("dismissed_at", models.DateTimeField(null=True)),
                        ("narrowed_from", models.JSONField(null=True)),
                        ("note", models.TextField(blank=True)),
                        (
                            "pause_reason",
                            models.CharField(
                                choices=[
                                    ("person", "Person"),
                                    ("admin", "Admin"),
                                    ("refused", "Refused"),
                                    ("incident", "Incident"),
                                    ("unproven", "Unproven"),
                                    ("unreadable", "Unreadable"),
                                    ("denied", "Denied"),
                                ],
                                max_length=10,
                                null=True,
                            ),
                        ),
                        ("template", models.UUIDField(null=True)),
                        ("tool_number", models.PositiveIntegerField(default=1)),
                        ("pause", models.UUIDField(null=True)),
                        ("confirmed_under", models.PositiveIntegerField(db_default=0, default=0)),
                    ],
                    options={
                        "indexes": [
                            models.Index(
                                condition=models.Q(
                                    ("status__in", ["suggested", "active", "paused"])
                                ),
                                fields=["expires_at"],
                                name="rules_that_expire",
                            ),
                            models.Index(
                                condition=models.Q(("status", "active")),
                                fields=["tool", "user"],
                                name="rules_that_allow",
                            ),
                        ],
                        "constraints": [
                            models.CheckConstraint(
                                condition=models.Q(("risk__in", ["low", "medium"])),
                                name="no_delegation_for_high_risk",
                            ),
                            models.UniqueConstraint(
                                condition=models.Q(
                                    ("origin", "learned"),
                                    ("status__in", ["suggested", "active", "paused"]),
                                ),
                                fields=("user", "tool", "tool_number"),
                                name="one_learned_rule_of_a_tool",
                            ),
                            models.CheckConstraint(
                                condition=models.Q(
                                    ("status", "paused"), ("pause_reason", None), _connector="OR"
                                ),
                                name="only_what_is_paused_has_a_reason",
                            ),
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="DelegationUse",
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
                        ("version", models.PositiveIntegerField()),
                        ("decision", models.UUIDField(null=True)),
                        ("step", models.UUIDField()),
                        ("at", models.DateTimeField()),
                        (
                            "delegation",
                            models.ForeignKey(
                                db_constraint=False,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="uses",
                                to="delegation.delegation",
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
                        "abstract": False,
                        "indexes": [models.Index(fields=["step"], name="uses_for_a_step")],
                    },
                ),
                migrations.CreateModel(
                    name="SpotCheck",
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
                        ("version", models.PositiveIntegerField()),
                        ("gate", models.UUIDField()),
                        ("verdict", models.CharField(max_length=15, null=True)),
                        ("at", models.DateTimeField()),
                        (
                            "delegation",
                            models.ForeignKey(
                                db_constraint=False,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="spot_checks",
                                to="delegation.delegation",
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
                        ("share", models.FloatField(default=1)),
                        ("shape", models.CharField(max_length=71, null=True)),
                        ("call", models.CharField(max_length=71, null=True)),
                        ("awaits", models.BooleanField(db_default=True, default=True)),
                        ("after", models.UUIDField(null=True)),
                    ],
                    options={
                        "abstract": False,
                        "indexes": [
                            models.Index(
                                condition=models.Q(("awaits", True)),
                                fields=["shape"],
                                name="checks_that_await",
                            )
                        ],
                        "constraints": [
                            models.UniqueConstraint(fields=("gate",), name="a_gate_checks_one_rule")
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="DecisionEvent",
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
                        ("sequence", models.BigIntegerField()),
                        (
                            "kind",
                            models.CharField(
                                choices=[
                                    ("approve", "Approve"),
                                    ("reject", "Reject"),
                                    ("edit", "Edit"),
                                    ("withdraw", "Withdraw"),
                                    ("incident", "Incident"),
                                    ("ran", "Ran"),
                                ],
                                max_length=20,
                            ),
                        ),
                        ("tool", models.UUIDField()),
                        ("gate", models.UUIDField(null=True)),
                        ("data", models.JSONField()),
                        ("at", models.DateTimeField()),
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
                            "user",
                            models.ForeignKey(
                                db_index=False,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                        ("source", models.UUIDField(default=tenants.ids.uuid7)),
                    ],
                    options={
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("tenant", "sequence"), name="decision_event_sequence_once"
                            ),
                            models.UniqueConstraint(
                                fields=("source", "kind", "user"), name="decision_event_source_once"
                            ),
                        ],
                        "indexes": [
                            models.Index(fields=["user", "at", "source"], name="events_of_a_person")
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="DelegationDay",
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
                        ("calls", models.PositiveIntegerField(default=0)),
                        ("sums", models.JSONField(default=dict)),
                        (
                            "delegation",
                            models.ForeignKey(
                                db_constraint=False,
                                db_index=False,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="days",
                                to="delegation.delegation",
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
                            models.UniqueConstraint(
                                fields=("delegation", "day"), name="rule_day_once"
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="DelegationPreference",
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
                        ("asks_everything_since", models.DateTimeField(null=True)),
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
                            "user",
                            models.ForeignKey(
                                db_index=False,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                    ],
                    options={
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("tenant", "user"), name="one_preference_a_person"
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="DelegationTemplate",
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
                        ("tool", models.UUIDField()),
                        ("tool_number", models.PositiveIntegerField()),
                        (
                            "risk",
                            models.CharField(
                                choices=[("low", "Low"), ("medium", "Medium"), ("high", "High")],
                                max_length=6,
                            ),
                        ),
                        ("predicate", models.JSONField()),
                        ("limits", models.JSONField(default=dict)),
                        ("sha256", models.CharField(max_length=71)),
                        (
                            "created_at",
                            models.DateTimeField(
                                db_default=django.db.models.functions.datetime.Now(), editable=False
                            ),
                        ),
                        ("withdrawn_at", models.DateTimeField(null=True)),
                        (
                            "published_by",
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
                    ],
                    options={
                        "constraints": [
                            models.CheckConstraint(
                                condition=models.Q(("risk__in", ["low", "medium"])),
                                name="no_template_for_high_risk",
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="DelegationVersion",
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
                        ("version", models.PositiveIntegerField()),
                        ("predicate", models.JSONField()),
                        ("limits", models.JSONField(default=dict)),
                        ("evidence", models.JSONField(default=dict)),
                        ("sha256", models.CharField(max_length=71)),
                        ("by", models.CharField(max_length=60)),
                        ("at", models.DateTimeField()),
                        (
                            "delegation",
                            models.ForeignKey(
                                db_constraint=False,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="versions",
                                to="delegation.delegation",
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
                            models.UniqueConstraint(
                                fields=("delegation", "version"), name="rule_version_once"
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="EventStream",
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
                        ("sequence", models.BigIntegerField(default=0)),
                        (
                            "decisions_through",
                            models.UUIDField(
                                default=uuid.UUID("00000000-0000-0000-0000-000000000000")
                            ),
                        ),
                        (
                            "receipts_through",
                            models.UUIDField(
                                default=uuid.UUID("00000000-0000-0000-0000-000000000000")
                            ),
                        ),
                        ("learned", models.BigIntegerField(default=0)),
                        ("complete_at", models.DateTimeField(null=True)),
                        ("due_at", models.DateTimeField(null=True)),
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
                        ("preset", models.CharField(default="", max_length=20)),
                        ("denials_through", models.PositiveIntegerField(db_default=0, default=0)),
                    ],
                    options={
                        "constraints": [
                            models.UniqueConstraint(fields=("tenant",), name="one_stream_of_events")
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="LearnerState",
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
                        ("state", models.JSONField(null=True)),
                        ("shadow", models.JSONField(default=dict)),
                        ("sequence", models.BigIntegerField(default=0)),
                        ("through_at", models.DateTimeField(null=True)),
                        ("through", models.UUIDField(null=True)),
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
                            "user",
                            models.ForeignKey(
                                db_index=False,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                    ],
                    options={
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("tenant", "user"), name="one_learner_a_person"
                            )
                        ],
                    },
                ),
            ]
        )
    ]
