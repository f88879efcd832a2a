"""Use cases of approvals: lock, transition, return; one transaction each."""
