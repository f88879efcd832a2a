"""Who may look at what: members at all of the tenant, an agent at its own runs."""

from __future__ import annotations

from uuid import UUID

from interrupts import selectors
from interrupts.errors import NotYourRun
from interrupts.models import Checkpoint, Run
from tenants.models import Role
from tenants.principal import Principal

READS_STATES = frozenset({Role.OPERATOR, Role.ADMIN})


def agent_of(principal: Principal) -> UUID | None:
    """Return whose runs alone the caller sees, None for a person, who sees all."""
    return principal.id if principal.is_agent else None


def may_see(principal: Principal, run: Run) -> Run:
    """Return the run; NotYourRun where it is another agent's."""
    if principal.is_agent and run.agent_id != principal.id:
        raise NotYourRun
    return run


def seen_run(principal: Principal, run_id: UUID) -> Run:
    """Return the run that a list is asked of; Run.DoesNotExist, NotYourRun."""
    return may_see(principal, selectors.run_seen(run_id))


def may_read_state(principal: Principal, row: Checkpoint) -> bool:
    """Say whether the caller may read the agent's own state, and not only of what size it is."""
    if principal.is_agent:
        return row.run.agent_id == principal.id
    return principal.role in READS_STATES
