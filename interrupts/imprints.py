"""What of each row a journal vouches for by an imprint, when the row is made.

Whatever else of a row may change says so in the journal itself, or is named in
tests/interrupts/tampering.py with the reason why nothing follows from it.
"""

from __future__ import annotations

from typing import Final

RUN: Final = (
    "tenant_id",
    "agent_id",
    "workflow",
    "goal",
    "inputs",
    "labels",
    "requested_by_id",
    "parent_id",
    "root",
    "path",
    "forked_from_id",
    "key_scope",
    "idle_after_seconds",
    "created_at",
)
ENDING: Final = ("output", "error", "compensating", "ended_at")
STEP: Final = (
    "tenant_id",
    "group",
    "parallel",
    "key",
    "key_scope",
    "session",
    "tool_id",
    "tool_name",
    "proposed_digest",
    "proposal",
    "created_at",
)
INTERRUPT: Final = (
    "tenant_id",
    "reason",
    "step",
    "checkpoint",
    "in_flight",
    "note",
    "kind",
    "question",
    "schema",
    "allowed",
    "opened_by",
    "opened_at",
)
# Of an interrupt, what is changed while it is open: to whom it is escalated, what was found out.
ASKED: Final = ("who", "gate", "expires_at", "on_expiry", "evidence")
GUIDANCE: Final = ("tenant_id", "run_id", "text", "by_id", "at")
QUESTION: Final = ("tenant_id", "run_id", "step_id", "gate", "text", "by_id", "at")
STATE: Final = ("agent_body", "agent_size")
