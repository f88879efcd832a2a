"""The machines of a tenant, and who answers for them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from tenants.changes import Change, Issued, State, record, refuse_own
from tenants.clock import database_now
from tenants.journal import Actor
from tenants.models import Agent, AgentKey, Membership
from tenants.services import credentials


@dataclass(frozen=True, slots=True)
class AgentWanted:
    """An agent, the username of the member who answers for it, if anybody does, and what it may use.

    ``daily_budget``: limits of a day, all its runs together; those it names take the place of the
    policy's.
    """

    name: str
    owner: str | None = None
    daily_budget: Mapping[str, Any] = field(default_factory=dict)


def set_agents(
    actor: Actor,
    wanted: Sequence[AgentWanted],
    *,
    others_end: bool = False,
    issued: Issued | None = None,
) -> list[Change]:
    """Make these agents active under these owners; with ``others_end`` the others are not.

    An agent that ends loses its keys; one that begins again is another one under its name: nothing
    that was learned of the former is of it. Another owner narrows: the new one may decide its gates no
    more, and the old one may: an owner who hands it over themselves would give themselves
    authority (OwnAuthority). With ``issued`` an agent that begins, or never had one, gets a key.
    Raises Membership.DoesNotExist where an owner is no live member.
    """
    owners = _owners(wanted)
    agents = {agent.name: agent for agent in Agent.objects.select_related("owner")}
    ended = [
        agent
        for name, agent in agents.items()
        if agent.active and others_end and name not in {one.name for one in wanted}
    ]
    changes: list[Change] = []
    new: list[Agent] = []
    for one in wanted:
        owner = owners.get(one.owner) if one.owner else None
        if (agent := agents.get(one.name)) is None:
            agent = Agent(name=one.name, owner_id=owner, daily_budget=dict(one.daily_budget))
            new.append(agent)
            changes.append(Change("agent", one.name, None, _state(one.owner, agent)))
            continue
        if agent.owner_id != owner:
            refuse_own(actor, agent.owner_id, "Another admin takes an agent from its owner.")
        if change := _adjust(agent, owner, one):
            changes.append(change)
    Agent.objects.bulk_create(new)
    agents.update({agent.name: agent for agent in new})
    changes += _end(ended)
    if issued is not None:
        begun = {change.name for change in changes if change.kind == "added"}
        _issue_keys([agents[one.name] for one in wanted], begun, issued)
    record(actor, changes)
    return changes


def end_agents(actor: Actor, names: Collection[str]) -> list[Change]:
    """Make these agents end, with their keys; one that ended already is no change."""
    active = Agent.objects.select_related("owner").filter(active=True, name__in=names)
    changes = _end(list(active))
    record(actor, changes)
    return changes


def _owners(wanted: Sequence[AgentWanted]) -> Mapping[str, UUID]:
    names = {one.owner for one in wanted if one.owner}
    rows = Membership.objects.filter(user__username__in=names, active=True)
    found = dict(rows.values_list("user__username", "user_id"))
    if unknown := names - found.keys():
        raise Membership.DoesNotExist(", ".join(sorted(unknown)))
    return found


def _adjust(agent: Agent, owner: UUID | None, wanted: AgentWanted) -> Change | None:
    budget = dict(wanted.daily_budget)
    if agent.active and agent.owner_id == owner and agent.daily_budget == budget:
        return None
    before = _state(agent.owner.username if agent.owner else None, agent) if agent.active else None
    if before is None:
        credentials.revoke_keys([agent])
        agent.begun_again_at = database_now()
    agent.active, agent.owner_id, agent.daily_budget = True, owner, budget
    agent.save(update_fields=["active", "owner", "daily_budget", "begun_again_at"])
    return Change("agent", agent.name, before, _state(wanted.owner, agent), narrows=True)


def _end(ending: Sequence[Agent]) -> list[Change]:
    Agent.objects.filter(pk__in=[agent.pk for agent in ending]).update(active=False)
    credentials.revoke_keys(ending)
    return [
        Change(
            "agent",
            agent.name,
            _state(agent.owner.username if agent.owner else None, agent),
            None,
            narrows=True,
        )
        for agent in ending
    ]


def _issue_keys(agents: Sequence[Agent], begun: set[str], issued: Issued) -> None:
    having = set(AgentKey.objects.filter(agent__in=agents).values_list("agent_id", flat=True))
    without = [agent for agent in agents if agent.name in begun or agent.pk not in having]
    issued.agents.update(credentials.issue_keys(without))


def _state(owner: str | None, agent: Agent) -> State:
    """What the journal tells of an agent; of one without a budget of its own nothing is said."""
    return {"owner": owner, **({"daily_budget": agent.daily_budget} if agent.daily_budget else {})}
