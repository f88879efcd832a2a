"""A rule is confirmed under a policy version: what a later one begins to deny, it does not speak of.

Of the rules that there are it is the version that was in force when they first began. Who let one go
on since then has it sleep again, where policy denied its tool meanwhile.
"""

from django.db import migrations, models

REASONS = [
    ("person", "Person"),
    ("admin", "Admin"),
    ("refused", "Refused"),
    ("incident", "Incident"),
    ("unproven", "Unproven"),
    ("unreadable", "Unreadable"),
    ("denied", "Denied"),
]
# Rows of every tenant are read and written, by who owns the tables.
CONFIRM = """
ALTER TABLE delegation_delegation NO FORCE ROW LEVEL SECURITY;
ALTER TABLE approvals_policyversion NO FORCE ROW LEVEL SECURITY;
UPDATE delegation_delegation rule SET confirmed_under = began.under
FROM (SELECT one.id, max(version.number) AS under FROM delegation_delegation one
    JOIN approvals_policyversion version ON version.tenant_id = one.tenant_id
        AND version.status = 'published' AND version.published_at <= one.accepted_at
    GROUP BY one.id) began
WHERE began.id = rule.id;
ALTER TABLE approvals_policyversion FORCE ROW LEVEL SECURITY;
ALTER TABLE delegation_delegation FORCE ROW LEVEL SECURITY;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("delegation", "0007_rules_of_a_tool_by_person"),
        ("approvals", "0028_quicker_promises"),
    ]
    operations = [
        migrations.AddField(
            "delegation",
            "confirmed_under",
            models.PositiveIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            "eventstream",
            "denials_through",
            models.PositiveIntegerField(db_default=0, default=0),
        ),
        migrations.AlterField(
            "delegation",
            "pause_reason",
            models.CharField(choices=REASONS, max_length=10, null=True),
        ),
        migrations.RunSQL(CONFIRM, migrations.RunSQL.noop),
    ]
