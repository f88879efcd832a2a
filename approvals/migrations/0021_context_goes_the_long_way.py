"""An approval of a step that needs to know something is not plain: what it knows may be stale."""

from django.db import migrations

_READ = "SELECT o.status, o.gate, o.digest, o.tool_version_id INTO STRICT s"
_READ_TOO = "SELECT o.status, o.gate, o.digest, o.tool_version_id, o.context INTO STRICT s"
_ASKED = "OR s.tool_version_id <> g.tool_version_id"
_ASKED_TOO = f"{_ASKED} OR s.context IS NOT NULL"


def _changed(*changes: tuple[str, str]) -> str:
    """Put the one in the place of the other, in whatever the function says by now."""
    each = "".join(
        f"""
        IF strpos(said, $a${old}$a$) = 0 THEN
            RAISE EXCEPTION 'approvals_approve does not say: %', $a${old}$a$;
        END IF;
        said := replace(said, $a${old}$a$, $a${new}$a$);
        """
        for old, new in changes
    )
    return f"""
    DO $d$ DECLARE said text;
    BEGIN
        SELECT pg_get_functiondef(oid) INTO STRICT said FROM pg_proc
            WHERE proname = 'approvals_approve'
                AND pronamespace = current_schema()::regnamespace;
        {each}
        EXECUTE said;
    END $d$;
    """


class Migration(migrations.Migration):
    dependencies = [
        ("approvals", "0020_reasons"),
        ("interrupts", "0015_budgets_and_context"),
    ]
    operations = [
        migrations.RunSQL(
            _changed((_READ, _READ_TOO), (_ASKED, _ASKED_TOO)),
            _changed((_READ_TOO, _READ), (_ASKED_TOO, _ASKED)),
        )
    ]
