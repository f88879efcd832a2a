import pytest
from django.db import connection


@pytest.mark.django_db
def test_every_table_with_a_tenant_has_forced_row_level_security():
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid"
            " WHERE c.relkind = 'r' AND a.attname = 'tenant_id' AND NOT a.attisdropped"
            " AND NOT (c.relrowsecurity AND c.relforcerowsecurity)"
        )
        assert cursor.fetchall() == []
