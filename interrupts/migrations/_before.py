"""The migrations whose place `0001_tables` and `0002_promises` take: all of them, or none."""

BEFORE = [
    ("interrupts", "0001_initial"),
    ("interrupts", "0002_security_and_guards"),
    ("interrupts", "0003_hot_path"),
    ("interrupts", "0004_anchor"),
    ("interrupts", "0005_tenant_implied"),
    ("interrupts", "0006_upkeep"),
    ("interrupts", "0007_receipts_tell_more"),
    ("interrupts", "0008_damage"),
    ("interrupts", "0009_found_by_the_rest"),
    ("interrupts", "0010_indexes_that_repeat_others"),
    ("interrupts", "0011_reads_together"),
    ("interrupts", "0012_questions"),
    ("interrupts", "0013_verdicts"),
    ("interrupts", "0014_choices"),
    ("interrupts", "0015_budgets_and_context"),
    ("interrupts", "0016_steps_keep_what_policy_saw"),
    ("interrupts", "0017_quicker_promises"),
]
