"""The chain of migrations whose place each app's `0001_tables` and `0002_promises` take (docs/adr/0023).

Django's own `replaces` is of no use here. It takes a migration as applied whose replaced ones are, so
that the tables of a first start that is broken off would pass for tables with their promises.
"""

APPLIED_BY_NOW = ("0001_tables", "0002_promises")
"""What a database that has all of an app's chain has in this version's words."""

CHAIN = {
    "tenants": (
        "0001_initial",
        "0002_journal_and_security",
        "0003_idempotency",
        "0004_people_sign_in",
        "0005_messages_to_people",
        "0006_journal_in_one_insert",
        "0007_secrets",
        "0008_daily_budgets",
        "0009_answers_stay_in_their_rows",
        "0010_group_members_found_by_the_rest",
        "0011_agents_that_begin_again",
        "0012_journal_of_several_speakers",
    ),
    "interrupts": (
        "0001_initial",
        "0002_security_and_guards",
        "0003_hot_path",
        "0004_anchor",
        "0005_tenant_implied",
        "0006_upkeep",
        "0007_receipts_tell_more",
        "0008_damage",
        "0009_found_by_the_rest",
        "0010_indexes_that_repeat_others",
        "0011_reads_together",
        "0012_questions",
        "0013_verdicts",
        "0014_choices",
        "0015_budgets_and_context",
        "0016_steps_keep_what_policy_saw",
        "0017_quicker_promises",
    ),
    "approvals": (
        "0001_initial",
        "0002_security_and_guards",
        "0003_hot_path",
        "0004_gate_preview_until",
        "0005_decisions_of_a_person",
        "0006_notices",
        "0007_more_notices",
        "0008_approve_under_a_key",
        "0009_tenant_implied",
        "0010_agents_that_act",
        "0011_approvals_say_under_what",
        "0012_views_are_vouched_for",
        "0013_found_by_the_rest",
        "0014_latest_gates",
        "0015_approvals_that_cool_down",
        "0016_questions",
        "0017_assignments_handed_over",
        "0018_stages",
        "0019_limits_and_substitutes",
        "0020_reasons",
        "0021_context_goes_the_long_way",
        "0022_approve_what_was_seen",
        "0023_told_of_interrupts",
        "0024_decisions_in_bulk",
        "0025_young_tables",
        "0026_groups_hold_authority",
        "0027_told_of_rules",
        "0028_quicker_promises",
    ),
    "delegation": (
        "0001_initial",
        "0002_security",
        "0003_rules_and_learning",
        "0004_tenant_implied",
        "0005_each_tenant_apart",
        "0006_answers_that_are_owed",
        "0007_rules_of_a_tool_by_person",
        "0008_rules_that_policy_denied",
    ),
}


def missing(applied: set[tuple[str, str]]) -> tuple[str, str] | None:
    """Return the first migration of an app's chain that is not among ``applied``, where some are.

    Of an app that has its tables in this version's words nothing is missing.
    """
    for app, names in CHAIN.items():
        lacking = [name for name in names if (app, name) not in applied]
        if (app, APPLIED_BY_NOW[0]) not in applied and 0 < len(lacking) < len(names):
            return app, lacking[0]
    return None


def taken_over(applied: set[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return what is applied in this version's words, of the apps that have all of their chain."""
    return [
        (app, name)
        for app, names in CHAIN.items()
        if (app, APPLIED_BY_NOW[0]) not in applied and applied >= {(app, each) for each in names}
        for name in APPLIED_BY_NOW
    ]
