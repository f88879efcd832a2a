"""What the rows of a decision promise takes less to look at: a decision writes several of them."""

from django.db import migrations

from approvals.models import GATE_MOVES
from tenants import guards


class Migration(migrations.Migration):
    dependencies = [
        ("approvals", "0027_told_of_rules"),
        ("tenants", "0012_journal_of_several_speakers"),
    ]
    operations = [
        guards.moves_by_condition("approvals_gate", "state", GATE_MOVES),
        migrations.RemoveConstraint("decision", "a_chosen_reason_has_its_text"),
        migrations.RemoveConstraint("gate", "a_gate_expires_into_no_approval"),
        migrations.RemoveConstraint("gate", "a_gate_with_stages_has_an_open_one"),
        # A code alone would say nothing once its policy has gone.
        guards.promise(
            "approvals_decision",
            "a_chosen_reason_has_its_text",
            {"reason_code": "varchar", "reason_text": "text"},
            "(reason_code IS NULL) = (reason_text IS NULL)",
        ),
        # Nothing expires into approval.
        guards.promise(
            "approvals_gate",
            "a_gate_expires_into_no_approval",
            {"on_expiry": "varchar"},
            "on_expiry IS NULL OR on_expiry IN ('reject', 'cancel', 'escalate')",
        ),
        # Of several stages one is open. That none is was let through till now, and never written.
        guards.promise(
            "approvals_gate",
            "a_gate_with_stages_has_an_open_one",
            {"stages": "jsonb", "stage": "smallint"},
            "CASE WHEN stages = '[]' THEN stage IS NULL ELSE coalesce(stage, 0) >= 1 END",
        ),
    ]
