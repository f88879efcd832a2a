"""Groups hold authority: what is given to one, whoever is in it has."""

import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models

import tenants.ids
import tenants.scope
from approvals.authority import by_group_sql, limits_sql, refusal_sql, ways_sql
from tenants import rls


OF_GROUPS = f"""
CREATE FUNCTION approvals_by_group(p_user uuid, p_tool uuid) RETURNS boolean
    LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN {by_group_sql(holder="p_user", tool="p_tool")};
END $$;

CREATE FUNCTION approvals_ways(p_user uuid, p_tool uuid) RETURNS text[]
    LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN ({ways_sql(holder="p_user", tool="p_tool")});
END $$;
"""


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


# The hot write knows no limits: whoever has one, and no way without, goes the long way.
WITH_GROUPS = f"""coalesce({
    refusal_sql(
        user="p_user",
        tool="p_tool",
        agent="p_agent",
        requester="p_requester",
        by_group="approvals_by_group(p_user, p_tool)",
    )
}, CASE
    WHEN cardinality({limits_sql(holder="p_user", tool="p_tool")}) > 0 THEN 'beyond-authority'
END)"""
# As it was before: what is taken back knows no table of groups.
OF_PEOPLE = """coalesce(CASE
        WHEN  NOT (EXISTS (
        SELECT FROM tenants_membership member JOIN tenants_user person
            ON person.id = member.user_id AND person.is_active
        WHERE member.user_id = p_user AND member.active AND member.role <> 'viewer')) OR NOT (
            EXISTS (SELECT  FROM approvals_toolpermission given
        JOIN auth_permission permission ON permission.id = given.permission_id
        WHERE permission.codename = 'decide_tool' AND given.user_id = p_user AND given.content_object_id = p_tool)
            OR EXISTS (SELECT  FROM approvals_tenantpermission given
        JOIN auth_permission permission ON permission.id = given.permission_id
        WHERE permission.codename = 'decide_tool' AND given.user_id = p_user)
        ) THEN 'not-an-approver'
        WHEN p_user = p_requester OR EXISTS (
        SELECT FROM tenants_agent machine
        WHERE machine.id = p_agent AND machine.owner_id = p_user) THEN 'own-request'
    END, CASE
    WHEN cardinality(ARRAY(SELECT DISTINCT each.limit_text
        FROM (SELECT given.limits FROM approvals_toolpermission given
        JOIN auth_permission permission ON permission.id = given.permission_id
        WHERE permission.codename = 'decide_tool' AND given.user_id = p_user AND given.content_object_id = p_tool UNION ALL SELECT given.limits FROM approvals_tenantpermission given
        JOIN auth_permission permission ON permission.id = given.permission_id
        WHERE permission.codename = 'decide_tool' AND given.user_id = p_user) one, unnest(one.limits) each(limit_text)
        ORDER BY each.limit_text)) > 0 THEN 'beyond-authority'
END)"""


def given(name: str, to: str, **more: object) -> tuple[str, models.ForeignKey]:
    return name, models.ForeignKey(
        db_constraint=False,
        db_index=False,
        on_delete=django.db.models.deletion.CASCADE,
        related_name="+",
        to=to,
        **more,
    )


class Migration(migrations.Migration):
    dependencies = [
        ("approvals", "0025_young_tables"),
        ("interrupts", "0016_steps_keep_what_policy_saw"),
        ("tenants", "0010_group_members_found_by_the_rest"),
    ]
    operations = [
        migrations.CreateModel(
            "GroupPermission",
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
                given("group", "tenants.group"),
                given("tool", "interrupts.tool", null=True),
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
                    ),
                ],
            },
        ),
        rls.tenant_table("approvals_grouppermission", key=None),
        # Hosts of an older release remove groups too, and know nothing of what they were given.
        rls.tenant_reference(
            "approvals_grouppermission", "group_id", "tenants_group", on_delete="CASCADE"
        ),
        rls.tenant_reference("approvals_grouppermission", "tool_id", "interrupts_tool"),
        rls.found_by_the_rest("approvals_grouppermission"),
        migrations.RunSQL(
            OF_GROUPS, "DROP FUNCTION approvals_by_group; DROP FUNCTION approvals_ways"
        ),
        migrations.RunSQL(refusal(WITH_GROUPS), refusal(OF_PEOPLE)),
    ]
