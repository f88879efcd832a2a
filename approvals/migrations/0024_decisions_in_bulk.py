"""A decision says whether it was made with others; of what ran by a rule nobody decided the like."""

from django.db import migrations, models

# What rules decided is not among what people decided of the like, and is looked back over with it.
_BEFORE = "count(*) FILTER (WHERE p.state = 'approved'),"
_AFTER = "count(*) FILTER (WHERE p.state = 'approved' AND p.pattern <> 'allowlist'),"
_READ = "FROM (SELECT o.id, o.state FROM"
_READ_TOO = "FROM (SELECT o.id, o.state, o.pattern FROM"


def _changed(*changes: tuple[str, str]) -> str:
    each = "".join(
        f"""
        IF strpos(said, $a${old}$a$) = 0 THEN
            RAISE EXCEPTION 'approvals_similar does not say: %', $a${old}$a$;
        END IF;
        said := replace(said, $a${old}$a$, $a${new}$a$);
        """
        for old, new in changes
    )
    return f"""
    DO $d$ DECLARE said text;
    BEGIN
        SELECT pg_get_functiondef(oid) INTO STRICT said FROM pg_proc
            WHERE proname = 'approvals_similar'
                AND pronamespace = current_schema()::regnamespace;
        {each}
        EXECUTE said;
    END $d$;
    """


class Migration(migrations.Migration):
    dependencies = [
        ("approvals", "0023_told_of_interrupts"),
    ]

    operations = [
        migrations.AddField(
            model_name="decision",
            name="bulk",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddIndex(
            model_name="decision",
            index=models.Index(
                condition=models.Q(("withdrawn_at__isnull", False)),
                fields=["id"],
                name="decisions_taken_back",
            ),
        ),
        migrations.RunSQL(
            _changed((_BEFORE, _AFTER), (_READ, _READ_TOO)),
            _changed((_AFTER, _BEFORE), (_READ_TOO, _READ)),
        ),
    ]
