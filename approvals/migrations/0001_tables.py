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
    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        ("interrupts", "0001_tables"),
        ("tenants", "0001_tables"),
    ]
    operations = [
        Tables(
            [
                migrations.CreateModel(
                    name="Gate",
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
                            "pattern",
                            models.CharField(
                                choices=[
                                    ("propose_confirm", "Propose Confirm"),
                                    ("preview", "Preview"),
                                    ("allowlist", "Allowlist"),
                                ],
                                max_length=15,
                            ),
                        ),
                        (
                            "state",
                            models.CharField(
                                choices=[
                                    ("preparing", "Preparing"),
                                    ("pending", "Pending"),
                                    ("approved", "Approved"),
                                    ("rejected", "Rejected"),
                                    ("changes_requested", "Changes Requested"),
                                    ("responded", "Responded"),
                                    ("expired", "Expired"),
                                    ("withdrawn", "Withdrawn"),
                                    ("superseded", "Superseded"),
                                ],
                                max_length=17,
                            ),
                        ),
                        (
                            "risk",
                            models.CharField(
                                choices=[("low", "Low"), ("medium", "Medium"), ("high", "High")],
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
                            "ceremony",
                            models.CharField(
                                choices=[
                                    ("single", "Single"),
                                    ("review", "Review"),
                                    ("explicit", "Explicit"),
                                    ("typed", "Typed"),
                                ],
                                max_length=8,
                            ),
                        ),
                        ("required_confirmation", models.TextField(null=True)),
                        ("headline", models.TextField()),
                        ("consequence", models.TextField(blank=True)),
                        ("arguments", models.BinaryField(max_length=32)),
                        ("arguments_digest", models.CharField(max_length=71)),
                        ("digest", models.CharField(max_length=71)),
                        ("why", models.JSONField()),
                        ("what_could_go_wrong", models.JSONField()),
                        ("preview", models.JSONField(null=True)),
                        ("preview_error", models.TextField(null=True)),
                        ("fresh_until", models.DateTimeField(null=True)),
                        ("rule", models.CharField(max_length=200)),
                        ("triggers", models.JSONField()),
                        ("policy_version", models.PositiveIntegerField()),
                        ("quorum", models.PositiveSmallIntegerField(default=1)),
                        ("stages", models.JSONField(default=list)),
                        (
                            "approvers",
                            django.contrib.postgres.fields.ArrayField(
                                base_field=models.CharField(max_length=100), default=list, size=None
                            ),
                        ),
                        ("routing", models.JSONField(default=dict)),
                        ("twin", models.UUIDField(null=True)),
                        ("expires_at", models.DateTimeField(null=True)),
                        ("on_expiry", models.CharField(max_length=8, null=True)),
                        ("due_at", models.DateTimeField(null=True)),
                        ("preview_tries", models.PositiveSmallIntegerField(default=0)),
                        ("opened_at", models.DateTimeField()),
                        ("settled_at", models.DateTimeField(null=True)),
                        (
                            "interrupt",
                            models.ForeignKey(
                                db_constraint=False,
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="interrupts.interrupt",
                            ),
                        ),
                        (
                            "run",
                            models.ForeignKey(
                                db_constraint=False,
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
                                related_name="gates",
                                to="interrupts.step",
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
                        ("preview_until", models.DateTimeField(null=True)),
                        ("undecidable_at", models.DateTimeField(null=True)),
                        ("stage", models.PositiveSmallIntegerField(null=True)),
                    ],
                    options={
                        "indexes": [
                            models.Index(
                                condition=models.Q(("due_at__isnull", False)),
                                fields=["due_at"],
                                name="gate_due",
                            ),
                            models.Index(
                                condition=models.Q(("state__in", ["preparing", "pending"])),
                                fields=["tenant", "id"],
                                name="gate_open",
                            ),
                            models.Index(fields=["tool", "id"], name="gate_of_tool"),
                        ],
                        "constraints": [
                            models.UniqueConstraint(
                                condition=models.Q(("state__in", ["preparing", "pending"])),
                                fields=("step",),
                                name="one_pending_gate_per_step",
                            ),
                            models.CheckConstraint(
                                condition=models.Q(("quorum__gte", 1)), name="a_gate_needs_somebody"
                            ),
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="Decision",
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
                        ("delegation", models.UUIDField(null=True)),
                        (
                            "verdict",
                            models.CharField(
                                choices=[
                                    ("approve", "Approve"),
                                    ("reject", "Reject"),
                                    ("request_changes", "Request Changes"),
                                    ("respond", "Respond"),
                                ],
                                max_length=15,
                            ),
                        ),
                        ("digest", models.CharField(max_length=71)),
                        ("approves", models.CharField(max_length=71)),
                        ("edits", models.BinaryField(max_length=32, null=True)),
                        ("value", models.BinaryField(max_length=32, null=True)),
                        ("reason", models.TextField(null=True)),
                        ("policy_version", models.PositiveIntegerField()),
                        ("counts", models.BooleanField(default=True)),
                        ("at", models.DateTimeField()),
                        ("withdrawn_at", models.DateTimeField(null=True)),
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
                        (
                            "gate",
                            models.ForeignKey(
                                db_constraint=False,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="decisions",
                                to="approvals.gate",
                            ),
                        ),
                        ("stage", models.PositiveSmallIntegerField(null=True)),
                        (
                            "acting_for",
                            models.ForeignKey(
                                db_index=False,
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                        ("reason_code", models.CharField(max_length=50, null=True)),
                        ("reason_text", models.TextField(null=True)),
                        ("bulk", models.BooleanField(db_default=False, default=False)),
                    ],
                    options={
                        "ordering": ["id"],
                        "indexes": [
                            models.Index(fields=["user", "id"], name="decisions_of_a_person"),
                            models.Index(
                                condition=models.Q(("counts", True), ("edits__isnull", False)),
                                fields=["gate"],
                                name="decisions_that_edit",
                            ),
                            models.Index(
                                condition=models.Q(("withdrawn_at__isnull", False)),
                                fields=["id"],
                                name="decisions_taken_back",
                            ),
                        ],
                        "constraints": [
                            models.UniqueConstraint(
                                condition=models.Q(("counts", True)),
                                fields=("gate", "user"),
                                name="one_counting_vote_a_person",
                            ),
                            models.UniqueConstraint(
                                condition=models.Q(("acting_for__isnull", False), ("counts", True)),
                                fields=("gate", "acting_for"),
                                name="one_counting_vote_for_a_person",
                            ),
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="Assignment",
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
                        ("assigned_at", models.DateTimeField()),
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
                        (
                            "gate",
                            models.ForeignKey(
                                db_constraint=False,
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="assignments",
                                to="approvals.gate",
                            ),
                        ),
                        ("handed_at", models.DateTimeField(null=True)),
                        ("passed_at", models.DateTimeField(null=True)),
                    ],
                    options={
                        "constraints": [
                            models.UniqueConstraint(fields=("user", "gate"), name="assigned_once")
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="PolicyVersion",
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
                            "status",
                            models.CharField(
                                choices=[("draft", "Draft"), ("published", "Published")],
                                default="draft",
                                max_length=9,
                            ),
                        ),
                        ("document", models.JSONField()),
                        ("digest", models.CharField(max_length=71)),
                        ("why", models.TextField(blank=True)),
                        (
                            "created_at",
                            models.DateTimeField(
                                db_default=django.db.models.functions.datetime.Now(), editable=False
                            ),
                        ),
                        ("published_at", models.DateTimeField(null=True)),
                        (
                            "published_by",
                            models.ForeignKey(
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
                    ],
                    options={
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("tenant", "number"), name="policy_number_once"
                            ),
                            models.CheckConstraint(
                                condition=models.Q(
                                    models.Q(("published_at", None), ("status", "draft")),
                                    models.Q(
                                        ("published_at__isnull", False), ("status", "published")
                                    ),
                                    _connector="OR",
                                ),
                                name="a_published_policy_says_when",
                            ),
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="TenantPermission",
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
                            "content_object",
                            models.ForeignKey(
                                db_column="tenant_id",
                                on_delete=django.db.models.deletion.CASCADE,
                                to="tenants.tenant",
                            ),
                        ),
                        (
                            "permission",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE, to="auth.permission"
                            ),
                        ),
                        (
                            "user",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                        (
                            "limits",
                            django.contrib.postgres.fields.ArrayField(
                                base_field=models.TextField(),
                                db_default=[],
                                default=list,
                                size=None,
                            ),
                        ),
                    ],
                    options={
                        "abstract": False,
                        "unique_together": {("user", "permission", "content_object")},
                    },
                ),
                migrations.CreateModel(
                    name="ToolPermission",
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
                            "content_object",
                            models.ForeignKey(
                                db_constraint=False,
                                on_delete=django.db.models.deletion.CASCADE,
                                to="interrupts.tool",
                            ),
                        ),
                        (
                            "permission",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE, to="auth.permission"
                            ),
                        ),
                        (
                            "tenant",
                            models.ForeignKey(
                                db_index=False,
                                default=tenants.scope.current_tenant_id,
                                editable=False,
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="+",
                                to="tenants.tenant",
                            ),
                        ),
                        (
                            "user",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                        (
                            "limits",
                            django.contrib.postgres.fields.ArrayField(
                                base_field=models.TextField(),
                                db_default=[],
                                default=list,
                                size=None,
                            ),
                        ),
                    ],
                    options={
                        "abstract": False,
                        "unique_together": {("user", "permission", "content_object")},
                    },
                ),
                migrations.CreateModel(
                    name="View",
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
                        ("digest", models.CharField(max_length=71)),
                        ("snapshot", models.JSONField()),
                        ("at", models.DateTimeField()),
                        (
                            "gate",
                            models.ForeignKey(
                                db_constraint=False,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="views",
                                to="approvals.gate",
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
                            "user",
                            models.ForeignKey(
                                db_index=False,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                        ("imprint", models.CharField(default="", max_length=110)),
                    ],
                    options={
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("gate", "user", "digest"), name="view_once_per_digest"
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="NoticePreference",
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
                        ("asked", models.BooleanField(default=True)),
                        ("reminders", models.BooleanField(default=True)),
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
                        ("votes", models.BooleanField(default=True)),
                        ("expiries", models.BooleanField(default=True)),
                        ("outcomes", models.BooleanField(default=True)),
                        ("recoveries", models.BooleanField(default=True)),
                        ("answers", models.BooleanField(default=True)),
                        ("interrupts", models.BooleanField(db_default=True, default=True)),
                        ("rules", models.BooleanField(db_default=True, default=True)),
                    ],
                    options={
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("user", "tenant"), name="notices_preferred_once"
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="Substitution",
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
                        ("starts_at", models.DateTimeField()),
                        ("ends_at", models.DateTimeField()),
                        ("ended_at", models.DateTimeField(null=True)),
                        ("created_at", models.DateTimeField()),
                        ("created_by", models.UUIDField(null=True)),
                        (
                            "person",
                            models.ForeignKey(
                                db_index=False,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                        (
                            "substitute",
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
                        "ordering": ["id"],
                        "indexes": [
                            models.Index(
                                condition=models.Q(("ended_at", None)),
                                fields=["substitute"],
                                name="substitutions_by_substitute",
                            ),
                            models.Index(
                                condition=models.Q(("ended_at", None)),
                                fields=["person"],
                                name="substitutions_by_person",
                            ),
                        ],
                        "constraints": [
                            models.CheckConstraint(
                                condition=models.Q(("ends_at__gt", models.F("starts_at"))),
                                name="a_substitution_begins_before_it_ends",
                            ),
                            models.CheckConstraint(
                                condition=models.Q(
                                    ("person", models.F("substitute")), _negated=True
                                ),
                                name="a_substitute_is_somebody_else",
                            ),
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="GroupPermission",
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
                            "limits",
                            django.contrib.postgres.fields.ArrayField(
                                base_field=models.TextField(), default=list, size=None
                            ),
                        ),
                        (
                            "group",
                            models.ForeignKey(
                                db_constraint=False,
                                db_index=False,
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="+",
                                to="tenants.group",
                            ),
                        ),
                        (
                            "tool",
                            models.ForeignKey(
                                db_constraint=False,
                                db_index=False,
                                null=True,
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="+",
                                to="interrupts.tool",
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
                                fields=("group", "tool"),
                                name="a_group_is_given_a_tool_once",
                                nulls_distinct=False,
                            )
                        ],
                    },
                ),
            ]
        )
    ]
