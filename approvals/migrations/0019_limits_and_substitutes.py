"""Authority has limits, and a person may have another decide for them for a time."""

import django.contrib.postgres.fields
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import tenants.ids
import tenants.scope
from approvals.authority import limits_sql, refusal_sql
from tenants import guards, rls

ASKED = {"tool": "p_tool", "agent": "p_agent", "requester": "p_requester"}


def refusal(told: str) -> str:
    """Return the SQL of the authority function, where the hot write can call it."""
    return f"""
    CREATE OR REPLACE FUNCTION approvals_refusal(
        p_user uuid, p_tool uuid, p_agent uuid, p_requester uuid
    ) RETURNS text LANGUAGE plpgsql STABLE AS $$
    BEGIN
        RETURN {told};
    END $$;
    """


PLAIN = refusal_sql(user="p_user", **ASKED)
# The hot write knows no limits: whoever has one goes the long way.
WITH_LIMITS = f"""coalesce({PLAIN}, CASE
    WHEN cardinality({limits_sql(holder="p_user", tool="p_tool")}) > 0 THEN 'beyond-authority'
END)"""


def person(**more: object) -> models.ForeignKey:
    return models.ForeignKey(
        db_index=False,
        on_delete=django.db.models.deletion.PROTECT,
        related_name="+",
        to=settings.AUTH_USER_MODEL,
        **more,
    )


class Migration(migrations.Migration):
    dependencies = [
        ("approvals", "0018_stages"),
        ("tenants", "0007_secrets"),
    ]
    operations = [
        *(
            migrations.AddField(
                model,
                "limits",
                django.contrib.postgres.fields.ArrayField(
                    base_field=models.TextField(), db_default=[], default=list, size=None
                ),
            )
            for model in ("toolpermission", "tenantpermission")
        ),
        migrations.CreateModel(
            "Substitution",
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
                ("person", person()),
                ("substitute", person()),
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
                        condition=models.Q(("person", models.F("substitute")), _negated=True),
                        name="a_substitute_is_somebody_else",
                    ),
                ],
            },
        ),
        rls.tenant_table("approvals_substitution", key=None),
        guards.only_these_change("approvals_substitution", "ended_at"),
        migrations.AddField("decision", "acting_for", person(null=True)),
        migrations.AddConstraint(
            "decision",
            models.UniqueConstraint(
                condition=models.Q(("acting_for__isnull", False), ("counts", True)),
                fields=("gate", "acting_for"),
                name="one_counting_vote_for_a_person",
            ),
        ),
        migrations.RunSQL(refusal(WITH_LIMITS), refusal(PLAIN)),
    ]
