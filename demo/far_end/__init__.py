"""The demo's outside world: a shop's systems, with a ledger of what really happened.

It does nothing twice under one Idempotency-Key, can be asked what became of a key, and can be told
to fail. It knows the service only as one of its callers.
"""
