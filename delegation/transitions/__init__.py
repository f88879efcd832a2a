"""What changes a rule, and what a rule decides: on rows that are locked."""
