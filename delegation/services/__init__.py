"""Use cases of delegation: one transaction each."""
