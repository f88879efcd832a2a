"""Use cases of the engine: lock, transition, return; one transaction each."""
