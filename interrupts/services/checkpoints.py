"""The agent's own state, put at a boundary that the agent chooses."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from interrupts.models import Checkpoint
from interrupts.services import agentstate
from interrupts.services.acting import as_agent, not_ended
from interrupts.transitions import checkpoints
from tenants.conditions import ANY_VERSION, IfMatch
from tenants.principal import Principal

agent_state_of = agentstate.state_of


def put_state(
    principal: Principal,
    run_id: UUID,
    *,
    agent_state: dict[str, Any],
    session: int | None = None,
    if_match: IfMatch = ANY_VERSION,
) -> Checkpoint:
    """Take a checkpoint with the agent's state, running or suspended; no interrupt's moves.

    Raises InvalidBody with the place of the fault, RunEnded.
    """
    with as_agent(principal, run_id, session=session, if_match=if_match) as work:
        not_ended(work.run)
        return checkpoints.take(work, agent_state=agentstate.read(agent_state, work.run))
