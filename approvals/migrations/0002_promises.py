"""What the database keeps of gates and decisions by itself, and the third hot write."""

from pathlib import Path

from django.db import migrations

from tenants import guards, rls

HERE = Path(__file__).parent
FUNCTIONS = ("0002_authority.sql", "0002_latest.sql", "0002_hot_path.sql")
# As approvals/models/gates.py had them.
GATE_MOVES = {
    "preparing": ["expired", "pending", "superseded", "withdrawn"],
    "pending": [
        "approved",
        "changes_requested",
        "expired",
        "preparing",
        "rejected",
        "responded",
        "superseded",
        "withdrawn",
    ],
    "approved": ["pending", "superseded"],
}


class Migration(migrations.Migration):
    dependencies = [("approvals", "0001_tables"), ("interrupts", "0002_promises")]
    operations = [
        rls.tenant_table("approvals_policyversion"),
        rls.tenant_table("approvals_gate"),
        rls.tenant_table("approvals_decision"),
        rls.tenant_table("approvals_view", key=None),
        rls.tenant_table("approvals_assignment", key=None),
        rls.tenant_table("approvals_toolpermission", key=None),
        rls.tenant_table("approvals_tenantpermission", key=None),
        rls.tenant_table("approvals_grouppermission", key=None),
        rls.tenant_table("approvals_noticepreference", key=None),
        rls.tenant_table("approvals_substitution", key=None),
        rls.tenant_reference("approvals_gate", "run_id", "interrupts_run"),
        rls.tenant_reference("approvals_gate", "step_id", "interrupts_step"),
        rls.tenant_reference("approvals_gate", "interrupt_id", "interrupts_interrupt"),
        rls.tenant_reference("approvals_gate", "tool_id", "interrupts_tool"),
        rls.tenant_reference("approvals_gate", "tool_version_id", "interrupts_toolversion"),
        rls.tenant_reference("approvals_decision", "gate_id", "approvals_gate"),
        rls.tenant_reference("approvals_view", "gate_id", "approvals_gate"),
        rls.tenant_reference("approvals_assignment", "gate_id", "approvals_gate"),
        rls.tenant_reference("approvals_toolpermission", "content_object_id", "interrupts_tool"),
        # A group is removed with what it was given, whoever removes it.
        rls.tenant_reference(
            "approvals_grouppermission", "group_id", "tenants_group", on_delete="CASCADE"
        ),
        rls.tenant_reference("approvals_grouppermission", "tool_id", "interrupts_tool"),
        # Questions are of the app below, and name a gate of their tenant.
        rls.tenant_reference("interrupts_question", "gate", "approvals_gate"),
        # What refers to a gate or a run of its tenant needs no reference to the tenant.
        rls.tenant_implied(
            "approvals_gate", "approvals_decision", "approvals_view", "approvals_assignment"
        ),
        # A young tenant's rows are found by their ids, never by its own.
        rls.found_by_the_rest(
            "approvals_gate",
            "approvals_decision",
            "approvals_view",
            "approvals_assignment",
            "approvals_grouppermission",
        ),
        guards.frozen_when("approvals_policyversion", "OLD.status = 'published'"),
        guards.only_these_change("approvals_decision", "counts, withdrawn_at"),
        guards.only_these_change("approvals_substitution", "ended_at"),
        guards.legal_moves("approvals_gate", "state", GATE_MOVES),
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
        guards.promise(
            "approvals_gate",
            "a_gate_with_stages_has_an_open_one",
            {"stages": "jsonb", "stage": "smallint"},
            "CASE WHEN stages = '[]' THEN stage IS NULL ELSE coalesce(stage, 0) >= 1 END",
        ),
        rls.swept("approvals_gate", "id, tenant_id, due_at", "due_at IS NOT NULL"),
        *(migrations.RunSQL((HERE / name).read_text()) for name in FUNCTIONS),
    ]
