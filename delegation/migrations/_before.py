"""The migrations whose place `0001_tables` and `0002_promises` take: all of them, or none."""

BEFORE = [
    ("delegation", "0001_initial"),
    ("delegation", "0002_security"),
    ("delegation", "0003_rules_and_learning"),
    ("delegation", "0004_tenant_implied"),
    ("delegation", "0005_each_tenant_apart"),
    ("delegation", "0006_answers_that_are_owed"),
    ("delegation", "0007_rules_of_a_tool_by_person"),
    ("delegation", "0008_rules_that_policy_denied"),
]
