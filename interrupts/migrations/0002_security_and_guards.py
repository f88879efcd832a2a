from django.db import migrations

from interrupts.models.states import RUN_MOVES, STEP_MOVES
from tenants import guards, rls


class Migration(migrations.Migration):
    dependencies = [("interrupts", "0001_initial"), ("tenants", "0002_journal_and_security")]
    operations = [
        rls.tenant_table("interrupts_tool"),
        rls.tenant_table("interrupts_toolversion"),
        rls.tenant_table("interrupts_freeze", key=None),
        rls.tenant_table("interrupts_run"),
        rls.tenant_table("interrupts_guidance", key=None),
        rls.tenant_table("interrupts_checkpoint"),
        rls.tenant_table("interrupts_content", key=None),
        rls.tenant_table("interrupts_step"),
        rls.tenant_table("interrupts_attempt", key=None),
        rls.tenant_table("interrupts_receipt", key=None),
        rls.tenant_table("interrupts_interrupt"),
        rls.tenant_reference("interrupts_tool", "current_id", "interrupts_toolversion"),
        rls.tenant_reference("interrupts_toolversion", "tool_id", "interrupts_tool"),
        rls.tenant_reference("interrupts_run", "agent_id", "tenants_agent"),
        rls.tenant_reference("interrupts_run", "parent_id", "interrupts_run"),
        rls.tenant_reference("interrupts_run", "forked_from_id", "interrupts_run"),
        rls.tenant_reference("interrupts_run", "checkpoint_id", "interrupts_checkpoint"),
        rls.tenant_reference("interrupts_guidance", "run_id", "interrupts_run"),
        rls.tenant_reference("interrupts_checkpoint", "run_id", "interrupts_run"),
        rls.tenant_reference("interrupts_checkpoint", "agent_base_id", "interrupts_checkpoint"),
        rls.tenant_reference("interrupts_step", "run_id", "interrupts_run"),
        rls.tenant_reference("interrupts_step", "tool_id", "interrupts_tool"),
        rls.tenant_reference("interrupts_step", "tool_version_id", "interrupts_toolversion"),
        rls.tenant_reference("interrupts_attempt", "step_id", "interrupts_step"),
        rls.tenant_reference("interrupts_receipt", "step_id", "interrupts_step"),
        rls.tenant_reference("interrupts_interrupt", "run_id", "interrupts_run"),
        rls.tenant_reference("interrupts_interrupt", "step", "interrupts_step"),
        rls.tenant_reference("interrupts_interrupt", "checkpoint", "interrupts_checkpoint"),
        rls.append_only("interrupts_toolversion"),
        rls.append_only("interrupts_checkpoint"),
        rls.append_only("interrupts_receipt"),
        migrations.RunSQL(
            "REVOKE UPDATE ON interrupts_content FROM abeyance_app",
            "GRANT UPDATE ON interrupts_content TO abeyance_app",
        ),
        guards.legal_moves("interrupts_run", "status", RUN_MOVES),
        guards.legal_moves("interrupts_step", "status", STEP_MOVES),
        guards.legal_moves("interrupts_interrupt", "status", {"open": ["resolved"]}),
        # Nothing is suspended without an interrupt that says what is needed to go on.
        guards.promise(
            "interrupts_run",
            "a_suspended_run_has_an_open_interrupt",
            {"status": "text", "open_interrupts": "integer"},
            "status <> 'suspended' OR open_interrupts > 0",
        ),
        guards.promise(
            "interrupts_run",
            "an_open_interrupt_suspends_its_run",
            {"status": "text", "open_interrupts": "integer"},
            "open_interrupts = 0 OR open_interrupts > 0 AND status IN ('suspended', 'cancelling')",
        ),
        guards.promise(
            "interrupts_run",
            "suspension_says_how_a_run_is_suspended",
            {"status": "text", "suspension": "text"},
            "(suspension IS NOT NULL) = (status IN ('suspended', 'cancelling'))",
        ),
        guards.promise(
            "interrupts_run",
            "an_ended_run_says_when",
            {"status": "text", "ended_at": "timestamptz"},
            "(ended_at IS NOT NULL) = (status IN ('completed', 'failed', 'cancelled'))",
        ),
        guards.promise(
            "interrupts_run",
            "next_step_is_a_position",
            {"next_step": "integer", "last_position": "integer"},
            "next_step BETWEEN 1 AND last_position + 1",
        ),
        # Nothing is in flight, or may have been performed, that was not authorised; and what is in
        # flight is exactly the call, by exactly the version, that was.
        guards.promise(
            "interrupts_step",
            "nothing_executes_unauthorized",
            {"status": "text", "authorized_by": "text"},
            "status NOT IN ('executing', 'unknown') OR authorized_by IS NOT NULL",
        ),
        guards.promise(
            "interrupts_step",
            "what_runs_is_what_was_authorized",
            {
                "status": "text",
                "digest": "text",
                "authorized_digest": "text",
                "tool_version_id": "uuid",
                "authorized_tool_version": "uuid",
            },
            "status <> 'executing' OR digest IS NOT DISTINCT FROM authorized_digest"
            " AND tool_version_id IS NOT DISTINCT FROM authorized_tool_version",
        ),
        # Due runs, and the versions that waiting requests look at.
        rls.swept("interrupts_run", "id, tenant_id, due_at, state_version, journal_seq", "true"),
        rls.storage("interrupts_run", fillfactor=40),
        rls.storage("interrupts_step", fillfactor=60),
        rls.storage("interrupts_attempt", fillfactor=60),
    ]
