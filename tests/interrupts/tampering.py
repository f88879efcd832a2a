"""Which columns nobody vouches for, each with the reason why nothing follows from a change of it.

Every other column of the tables that hold a run's state is changed by tests/approvals/
test_tampering.py, as the role that owns the tables, and `verify` tells.
"""

from __future__ import annotations

LOOKED_AT = "when it is looked at: late or early, what may be done is decided by what is found then"
SHOWN = "shown, and nothing is decided by it"
GONE = "the view is gone then, as if nobody had looked, which lets nothing through"

UNVOUCHED: dict[str, dict[str, str]] = {
    "interrupts_run": {
        "due_at": LOOKED_AT,
        "last_seen_at": "a silent owner is noticed later or sooner; the agent's next call sets it",
        "updated_at": "which heads the anchor writes next; each head written stays",
        "state_version": "an ETag and what a wait ends at: a request is refused or asked again",
        "reading": "a read is made again, which has no effect",
        "reading_until": "a read is made again, which has no effect",
        "next_step": "a lower one is looked at from there, a higher one told where a step is open",
        "damage": "told by every check anew",
        "damaged_at": SHOWN,
    },
    "interrupts_step": {
        "due_at": LOOKED_AT,
        "ask_at": LOOKED_AT,
        "asked": "a tool is asked more or less often; asking has no effect",
        "ask_first": "a tool is asked once more or once less before the same key is sent again",
        "unknown_at": "held against the journal while the outcome is unknown",
        "held_by": "held against the journal while it waits",
        "twin": "held against the journal while it waits for it",
        "error": "held against the receipt that concluded it",
    },
    "interrupts_attempt": {
        "lease_expires_at": LOOKED_AT,
        "lease_seconds": "how far a heartbeat moves the lease",
        "cancel_requested": "asks the agent to stop; what it then says is a receipt",
    },
    "interrupts_receipt": {},
    "interrupts_interrupt": {},
    "interrupts_checkpoint": {},
    "interrupts_guidance": {},
    "interrupts_question": {},
    "interrupts_verdict": {
        "tries": "a verifier is asked more or less often; asking has no effect",
        "ask_at": LOOKED_AT,
        "asking_until": LOOKED_AT,
    },
    "approvals_gate": {
        "due_at": LOOKED_AT,
        "preview_tries": "a preview is taken more or less often; taking one has no effect",
        "preview_until": LOOKED_AT,
    },
    "approvals_decision": {},
    "approvals_view": {"tenant_id": GONE, "gate_id": GONE},
}
