from django.db import migrations, models

# Where a person may go once they have signed in: the one other read across tenants. Whoever calls
# it knows the person, and is told no more than that person's own memberships.
MEMBERSHIPS = """
CREATE FUNCTION tenants_of_person(
    p_person uuid, OUT tenant_id uuid, OUT slug text, OUT name text, OUT role text
) RETURNS SETOF record LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public
AS $$
    SELECT t.id, t.slug, t.name, m.role
    FROM tenants_membership m
    JOIN tenants_tenant t ON t.id = m.tenant_id
    JOIN tenants_user u ON u.id = m.user_id
    WHERE m.user_id = p_person AND m.active AND u.is_active
    ORDER BY t.name, t.id
$$;
GRANT SELECT ON tenants_tenant TO abeyance_keys;
ALTER FUNCTION tenants_of_person OWNER TO abeyance_keys;
REVOKE ALL ON FUNCTION tenants_of_person FROM PUBLIC;
GRANT EXECUTE ON FUNCTION tenants_of_person TO abeyance_app;
"""
UNDO_MEMBERSHIPS = """
DROP FUNCTION tenants_of_person;
REVOKE SELECT ON tenants_tenant FROM abeyance_keys;
"""


class Migration(migrations.Migration):
    dependencies = [("tenants", "0003_idempotency")]
    operations = [
        migrations.AddField("user", "shortcuts", models.BooleanField(default=True)),
        migrations.AddField(
            "user",
            "theme",
            models.CharField(
                blank=True,
                choices=[("", "as the system"), ("light", "Light"), ("dark", "Dark")],
                default="",
                max_length=5,
            ),
        ),
        migrations.AddField("user", "time_zone", models.CharField(default="UTC", max_length=64)),
        migrations.CreateModel(
            "SignInCount",
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
        migrations.RunSQL(MEMBERSHIPS, UNDO_MEMBERSHIPS),
    ]
