"""The keys of agents and the tokens of people, one at a time."""

from __future__ import annotations

from uuid import UUID

from django.db.models.functions import Now

from tenants.changes import Change, State, record
from tenants.journal import Actor
from tenants.models import Agent, AgentKey, UserToken
from tenants.services import credentials


def issue_key(actor: Actor, agent_id: UUID) -> tuple[AgentKey, str]:
    """Make one more key for an active agent; return it with its secret, which is shown once.

    Raises Agent.DoesNotExist.
    """
    agent = Agent.objects.select_for_update().get(pk=agent_id, active=True)
    secret = credentials.issue_keys([agent])[agent.name]
    made: AgentKey = AgentKey.objects.filter(agent=agent).latest("id")
    record(actor, [Change("key", agent.name, None, _state(made))])
    return made, secret


def revoke_key(actor: Actor, key_id: UUID) -> list[Change]:
    """Revoke a key; what it authorised is asked anew. A repeat is no change.

    Raises AgentKey.DoesNotExist.
    """
    key = AgentKey.objects.select_for_update(of=("self",)).select_related("agent").get(pk=key_id)
    return _revoke(actor, "key", key.agent.name, key)


def revoke_token(actor: Actor, token_id: UUID) -> list[Change]:
    """Revoke a person's token; a repeat is no change. Raises UserToken.DoesNotExist."""
    found = UserToken.objects.select_for_update(of=("self",)).select_related("membership__user")
    token = found.get(pk=token_id)
    return _revoke(actor, "token", token.membership.user.username, token)


def _revoke(actor: Actor, noun: str, name: str, row: AgentKey | UserToken) -> list[Change]:
    if row.revoked_at is not None:
        return []
    type(row).objects.filter(pk=row.pk).update(revoked_at=Now())
    changes = [Change(noun, name, _state(row), None, narrows=True)]
    record(actor, changes)
    return changes


def _state(row: AgentKey | UserToken) -> State:
    return {"id": str(row.pk), "hint": row.hint}
