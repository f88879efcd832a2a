"""The migrations whose place `0001_tables` and `0002_promises` take: all of them, or none."""

BEFORE = [
    ("tenants", "0001_initial"),
    ("tenants", "0002_journal_and_security"),
    ("tenants", "0003_idempotency"),
    ("tenants", "0004_people_sign_in"),
    ("tenants", "0005_messages_to_people"),
    ("tenants", "0006_journal_in_one_insert"),
    ("tenants", "0007_secrets"),
    ("tenants", "0008_daily_budgets"),
    ("tenants", "0009_answers_stay_in_their_rows"),
    ("tenants", "0010_group_members_found_by_the_rest"),
    ("tenants", "0011_agents_that_begin_again"),
    ("tenants", "0012_journal_of_several_speakers"),
]
