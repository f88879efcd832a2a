import django.contrib.auth.models
import django.contrib.auth.validators
import django.db.models.deletion
import django.db.models.functions.datetime
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

import tenants.ids
import tenants.scope
from tenants.tables import Tables


class Migration(migrations.Migration):
    initial = True
    dependencies = [("auth", "0012_alter_user_first_name_max_length")]
    operations = [
        Tables(
            [
                migrations.CreateModel(
                    name="Tenant",
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
                        ("slug", models.SlugField(max_length=63, unique=True)),
                        ("name", models.CharField(max_length=200)),
                        ("authority_version", models.BigIntegerField(default=1, editable=False)),
                        ("freezes", models.PositiveIntegerField(default=0, editable=False)),
                        ("journal_seq", models.BigIntegerField(default=0, editable=False)),
                        ("journal_hash", models.BinaryField(default=bytes)),
                        (
                            "created_at",
                            models.DateTimeField(
                                db_default=django.db.models.functions.datetime.Now(), editable=False
                            ),
                        ),
                    ],
                    options={
                        "permissions": [
                            ("decide_tool", "Can decide gates of every tool of this tenant")
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="Group",
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
                                fields=("tenant", "name"), name="group_name_once_per_tenant"
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="User",
                    fields=[
                        ("password", models.CharField(max_length=128, verbose_name="password")),
                        (
                            "last_login",
                            models.DateTimeField(blank=True, null=True, verbose_name="last login"),
                        ),
                        (
                            "is_superuser",
                            models.BooleanField(
                                default=False,
                                help_text="Designates that this user has all permissions without explicitly assigning them.",
                                verbose_name="superuser status",
                            ),
                        ),
                        (
                            "username",
                            models.CharField(
                                error_messages={
                                    "unique": "A user with that username already exists."
                                },
                                help_text="Required. 150 characters or fewer. Letters, digits and @/./+/-/_ only.",
                                max_length=150,
                                unique=True,
                                validators=[
                                    django.contrib.auth.validators.UnicodeUsernameValidator()
                                ],
                                verbose_name="username",
                            ),
                        ),
                        (
                            "first_name",
                            models.CharField(blank=True, max_length=150, verbose_name="first name"),
                        ),
                        (
                            "last_name",
                            models.CharField(blank=True, max_length=150, verbose_name="last name"),
                        ),
                        (
                            "is_staff",
                            models.BooleanField(
                                default=False,
                                help_text="Designates whether the user can log into this admin site.",
                                verbose_name="staff status",
                            ),
                        ),
                        (
                            "is_active",
                            models.BooleanField(
                                default=True,
                                help_text="Designates whether this user should be treated as active. Unselect this instead of deleting accounts.",
                                verbose_name="active",
                            ),
                        ),
                        (
                            "date_joined",
                            models.DateTimeField(
                                default=django.utils.timezone.now, verbose_name="date joined"
                            ),
                        ),
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
                            "email",
                            models.EmailField(blank=True, max_length=254, verbose_name="e-mail"),
                        ),
                        (
                            "groups",
                            models.ManyToManyField(
                                blank=True,
                                help_text="The groups this user belongs to. A user will get all permissions granted to each of their groups.",
                                related_name="user_set",
                                related_query_name="user",
                                to="auth.group",
                                verbose_name="groups",
                            ),
                        ),
                        (
                            "user_permissions",
                            models.ManyToManyField(
                                blank=True,
                                help_text="Specific permissions for this user.",
                                related_name="user_set",
                                related_query_name="user",
                                to="auth.permission",
                                verbose_name="user permissions",
                            ),
                        ),
                        ("shortcuts", models.BooleanField(default=True)),
                        (
                            "theme",
                            models.CharField(
                                blank=True,
                                choices=[
                                    ("", "as the system"),
                                    ("light", "Light"),
                                    ("dark", "Dark"),
                                ],
                                default="",
                                max_length=5,
                            ),
                        ),
                        ("time_zone", models.CharField(default="UTC", max_length=64)),
                    ],
                    options={
                        "verbose_name": "user",
                        "verbose_name_plural": "users",
                        "abstract": False,
                    },
                    managers=[
                        ("objects", django.contrib.auth.models.UserManager()),
                    ],
                ),
                migrations.CreateModel(
                    name="Agent",
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
                        ("active", models.BooleanField(default=True)),
                        (
                            "created_at",
                            models.DateTimeField(
                                db_default=django.db.models.functions.datetime.Now(), editable=False
                            ),
                        ),
                        (
                            "owner",
                            models.ForeignKey(
                                blank=True,
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="agents",
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
                        ("daily_budget", models.JSONField(blank=True, db_default={}, default=dict)),
                        ("begun_again_at", models.DateTimeField(editable=False, null=True)),
                    ],
                    options={
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("tenant", "name"), name="agent_name_once_per_tenant"
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="Membership",
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
                            "role",
                            models.CharField(
                                choices=[
                                    ("admin", "Admin"),
                                    ("operator", "Operator"),
                                    ("approver", "Approver"),
                                    ("viewer", "Viewer"),
                                ],
                                max_length=10,
                            ),
                        ),
                        ("active", models.BooleanField(default=True)),
                        (
                            "created_at",
                            models.DateTimeField(
                                db_default=django.db.models.functions.datetime.Now(), editable=False
                            ),
                        ),
                        (
                            "user",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="memberships",
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
                                fields=("tenant", "user"), name="membership_one_per_person"
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="JournalEntry",
                    fields=[
                        (
                            "pk",
                            models.CompositePrimaryKey(
                                "stream",
                                "seq",
                                blank=True,
                                editable=False,
                                primary_key=True,
                                serialize=False,
                            ),
                        ),
                        ("stream", models.UUIDField()),
                        ("seq", models.BigIntegerField()),
                        ("kind", models.CharField(max_length=40)),
                        ("at", models.DateTimeField()),
                        ("text", models.TextField()),
                        ("key_id", models.CharField(max_length=40)),
                        ("hash", models.BinaryField(max_length=32)),
                        (
                            "tenant",
                            models.ForeignKey(
                                db_constraint=False,
                                db_index=False,
                                default=tenants.scope.current_tenant_id,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="tenants.tenant",
                            ),
                        ),
                    ],
                    options={
                        "ordering": ["stream", "seq"],
                    },
                ),
                migrations.CreateModel(
                    name="IdempotentAnswer",
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
                        ("caller", models.CharField(max_length=60)),
                        ("key", models.CharField(max_length=255)),
                        ("fingerprint", models.BinaryField(max_length=32)),
                        ("status", models.PositiveSmallIntegerField()),
                        ("headers", models.JSONField(default=dict)),
                        ("body", models.BinaryField()),
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
                    ],
                    options={
                        "indexes": [
                            models.Index(fields=["created_at"], name="idempotent_answer_age")
                        ],
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("tenant", "caller", "key"),
                                name="idempotency_key_names_one_answer",
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="GroupMember",
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
                            "group",
                            models.ForeignKey(
                                db_constraint=False,
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="members",
                                to="tenants.group",
                            ),
                        ),
                        (
                            "membership",
                            models.ForeignKey(
                                db_constraint=False,
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="groups",
                                to="tenants.membership",
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
                                fields=("group", "membership"), name="group_member_once"
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="AgentKey",
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
                        ("hash", models.BinaryField(max_length=32, unique=True)),
                        ("hint", models.CharField(editable=False, max_length=16)),
                        (
                            "created_at",
                            models.DateTimeField(
                                db_default=django.db.models.functions.datetime.Now(), editable=False
                            ),
                        ),
                        ("revoked_at", models.DateTimeField(blank=True, null=True)),
                        (
                            "agent",
                            models.ForeignKey(
                                db_constraint=False,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="keys",
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
                        "abstract": False,
                    },
                ),
                migrations.CreateModel(
                    name="UserToken",
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
                        ("hash", models.BinaryField(max_length=32, unique=True)),
                        ("hint", models.CharField(editable=False, max_length=16)),
                        (
                            "created_at",
                            models.DateTimeField(
                                db_default=django.db.models.functions.datetime.Now(), editable=False
                            ),
                        ),
                        ("revoked_at", models.DateTimeField(blank=True, null=True)),
                        (
                            "membership",
                            models.ForeignKey(
                                db_constraint=False,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="tokens",
                                to="tenants.membership",
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
                    },
                ),
                migrations.CreateModel(
                    name="OutboxMessage",
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
                        ("kind", models.CharField(max_length=40)),
                        ("payload", models.JSONField()),
                        (
                            "created_at",
                            models.DateTimeField(
                                db_default=django.db.models.functions.datetime.Now(), editable=False
                            ),
                        ),
                        (
                            "due_at",
                            models.DateTimeField(
                                db_default=django.db.models.functions.datetime.Now(), null=True
                            ),
                        ),
                        ("attempts", models.PositiveIntegerField(default=0)),
                        ("sent_at", models.DateTimeField(null=True)),
                        ("error", models.TextField(blank=True)),
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
                        ("about", models.UUIDField(null=True)),
                        ("recipient", models.UUIDField(null=True)),
                        ("batch", models.UUIDField(null=True)),
                    ],
                    options={
                        "indexes": [
                            models.Index(
                                condition=models.Q(("due_at__isnull", False)),
                                fields=["due_at"],
                                name="outbox_due",
                            ),
                            models.Index(
                                condition=models.Q(("recipient__isnull", False)),
                                fields=["recipient", "sent_at"],
                                name="outbox_of_a_person",
                            ),
                        ],
                        "constraints": [
                            models.UniqueConstraint(
                                condition=models.Q(("recipient__isnull", False)),
                                fields=("recipient", "about", "kind"),
                                name="a_person_is_told_once",
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="SignInCount",
                    fields=[
                        (
                            "subject",
                            models.CharField(max_length=64, primary_key=True, serialize=False),
                        ),
                        ("tries", models.PositiveIntegerField()),
                        ("until", models.DateTimeField()),
                    ],
                    options={
                        "indexes": [models.Index(fields=["until"], name="sign_in_count_until")],
                    },
                ),
                migrations.CreateModel(
                    name="Secret",
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
                        ("version", models.PositiveIntegerField()),
                        ("sealed", models.BinaryField(null=True)),
                        (
                            "set_at",
                            models.DateTimeField(
                                db_default=django.db.models.functions.datetime.Now(), editable=False
                            ),
                        ),
                        ("removed_at", models.DateTimeField(blank=True, editable=False, null=True)),
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
                                fields=("tenant", "name"), name="secret_name_once_per_tenant"
                            ),
                            models.CheckConstraint(
                                condition=models.Q(
                                    models.Q(("removed_at__isnull", False), ("sealed", None)),
                                    models.Q(("removed_at", None), ("sealed__isnull", False)),
                                    _connector="OR",
                                ),
                                name="a_removed_secret_holds_nothing",
                            ),
                        ],
                    },
                ),
            ]
        )
    ]
