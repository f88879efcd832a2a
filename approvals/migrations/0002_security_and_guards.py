from django.db import migrations

from approvals.models.gates import GATE_MOVES
from tenants import guards, rls


class Migration(migrations.Migration):
    dependencies = [
        ("approvals", "0001_initial"),
        ("interrupts", "0002_security_and_guards"),
    ]
    operations = [
        rls.tenant_table("approvals_policyversion"),
        rls.tenant_table("approvals_gate"),
        rls.tenant_table("approvals_decision"),
        rls.tenant_table("approvals_view", key=None),
        rls.tenant_table("approvals_assignment", key=None),
        rls.tenant_table("approvals_toolpermission", key=None),
        rls.tenant_table("approvals_tenantpermission", key=None),
        rls.tenant_reference("approvals_gate", "run_id", "interrupts_run"),
        rls.tenant_reference("approvals_gate", "step_id", "interrupts_step"),
        rls.tenant_reference("approvals_gate", "interrupt_id", "interrupts_interrupt"),
        rls.tenant_reference("approvals_gate", "tool_id", "interrupts_tool"),
        rls.tenant_reference("approvals_gate", "tool_version_id", "interrupts_toolversion"),
        rls.tenant_reference("approvals_decision", "gate_id", "approvals_gate"),
        rls.tenant_reference("approvals_view", "gate_id", "approvals_gate"),
        rls.tenant_reference("approvals_assignment", "gate_id", "approvals_gate"),
        rls.tenant_reference("approvals_toolpermission", "content_object_id", "interrupts_tool"),
        guards.frozen_when("approvals_policyversion", "OLD.status = 'published'"),
        guards.only_these_change("approvals_decision", "counts, withdrawn_at"),
        guards.legal_moves("approvals_gate", "state", GATE_MOVES),
        rls.swept("approvals_gate", "id, tenant_id, due_at", "due_at IS NOT NULL"),
    ]
