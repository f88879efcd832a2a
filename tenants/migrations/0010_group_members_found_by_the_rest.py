"""Who is in a group is asked for in the hot path: no plan of it walks all that the tenant has."""

from django.db import migrations

from tenants import rls


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0009_answers_stay_in_their_rows"),
    ]
    operations = [
        rls.found_by_the_rest("tenants_groupmember"),
    ]
