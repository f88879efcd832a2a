"""What the database keeps of runs and their steps by itself, and the hot writes (docs/adr/0001).

A hot write is one round trip and one commit. Always in this order: the tenant's variable and the
drain lock, shared; the run's lock; look and write. Each statement of a function sees what was
committed before it began, so what is looked at after the lock was waited for is what stands now.
"""

from pathlib import Path

from django.db import migrations

from tenants import guards, rls

# As interrupts/models/states.py had them.
RUN_MOVES = {
    "running": ["cancelled", "cancelling", "completed", "failed", "suspended"],
    "suspended": ["cancelled", "cancelling", "failed", "running"],
    "cancelling": ["cancelled"],
}
STEP_MOVES = {
    "proposed": ["cancelled", "denied", "ready", "rejected", "revised", "waiting"],
    "waiting": ["cancelled", "denied", "ready", "rejected", "revised", "succeeded"],
    "ready": ["cancelled", "denied", "executing", "failed", "revised", "succeeded", "waiting"],
    "executing": ["cancelled", "failed", "ready", "succeeded", "unknown"],
    "unknown": ["cancelled", "executing", "failed", "ready", "succeeded"],
    "succeeded": ["compensating"],
    "compensating": ["compensated", "succeeded"],
    "failed": ["succeeded"],
    "cancelled": ["succeeded"],
    "denied": ["succeeded"],
    "rejected": ["succeeded"],
    "revised": ["succeeded"],
}
VERDICT_MOVES = {"awaited": ["passed", "rejected", "unknown"]}
SWEPT = f"""
GRANT SELECT (journal_hash, updated_at, status, suspension, ended_at, reading, reading_until,
    damaged_at) ON interrupts_run TO {rls.SWEEP};
GRANT SELECT ON interrupts_drain, interrupts_sweepround, interrupts_tally TO {rls.SWEEP};
"""


class Migration(migrations.Migration):
    dependencies = [("interrupts", "0001_tables"), ("tenants", "0002_promises")]
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
        rls.tenant_table("interrupts_question", key=None),
        rls.tenant_table("interrupts_verdict", key=None),
        rls.tenant_table("interrupts_agentday", key=None),
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
        rls.tenant_reference("interrupts_question", "run_id", "interrupts_run"),
        rls.tenant_reference("interrupts_question", "step_id", "interrupts_step"),
        rls.tenant_reference("interrupts_verdict", "run_id", "interrupts_run"),
        rls.tenant_reference("interrupts_verdict", "step_id", "interrupts_step"),
        rls.tenant_reference("interrupts_agentday", "agent_id", "tenants_agent"),
        # What refers to a run, a step or an agent of its tenant needs no reference to the tenant.
        rls.tenant_implied(
            "interrupts_run",
            "interrupts_checkpoint",
            "interrupts_step",
            "interrupts_attempt",
            "interrupts_receipt",
            "interrupts_interrupt",
        ),
        # A young tenant's rows are found by their ids, never by its own.
        rls.found_by_the_rest(
            "interrupts_run",
            "interrupts_step",
            "interrupts_attempt",
            "interrupts_receipt",
            "interrupts_interrupt",
            "interrupts_checkpoint",
            "interrupts_content",
            "interrupts_question",
            "interrupts_verdict",
            "interrupts_agentday",
        ),
        rls.append_only("interrupts_toolversion"),
        rls.append_only("interrupts_checkpoint"),
        rls.append_only("interrupts_receipt"),
        migrations.RunSQL("REVOKE UPDATE ON interrupts_content FROM abeyance_app"),
        guards.only_these_change("interrupts_question", "answer, answered_at"),
        guards.frozen_when("interrupts_question", "OLD.answer IS NOT NULL"),
        guards.only_these_change(
            "interrupts_verdict",
            "status, holds, tries, ask_at, asking_until, words, error, recorded_at",
        ),
        guards.only_these_change(
            "interrupts_agentday", "steps, cost, reserved_cost, seconds, tokens, extended"
        ),
        guards.legal_moves("interrupts_run", "status", RUN_MOVES),
        guards.legal_moves("interrupts_step", "status", STEP_MOVES),
        guards.legal_moves("interrupts_interrupt", "status", {"open": ["resolved"]}),
        guards.legal_moves("interrupts_verdict", "status", VERDICT_MOVES),
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
        guards.promise(
            "interrupts_interrupt",
            "interrupt_resolution_is_all_or_nothing",
            {"status": "varchar", "resolution": "varchar", "resolved_at": "timestamptz"},
            "pg_catalog.num_nulls(resolution, resolved_at) = CASE status"
            " WHEN 'open' THEN 2 WHEN 'resolved' THEN 0 ELSE -1 END",
        ),
        # Due runs, and the versions that waiting requests look at.
        rls.swept("interrupts_run", "id, tenant_id, due_at, state_version, journal_seq", "true"),
        rls.swept(
            "interrupts_interrupt",
            "tenant_id, kind, reason, status, opened_at, expires_at, set_aside",
            "status = 'open'",
        ),
        rls.swept(
            "interrupts_attempt",
            "tenant_id, run_id, step_id, worker, started_at, lease_expires_at, lapsed_at,"
            " settled_at",
            "settled_at IS NULL AND lapsed_at IS NULL",
        ),
        migrations.RunSQL(SWEPT),
        rls.storage("interrupts_run", fillfactor=40),
        rls.storage("interrupts_step", fillfactor=60),
        rls.storage("interrupts_attempt", fillfactor=60),
        migrations.RunSQL((Path(__file__).parent / "0002_hot_path.sql").read_text()),
    ]
