"""What a configuration change did: told to whoever made it, and written to the tenant's journal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from tenants import authority, journal
from tenants.errors import OwnAuthority
from tenants.journal import Actor, Entry

State = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that was made, changed or ended: its state before and after, None for nothing.

    ``narrows``: something that was authorised before may not be any more.
    """

    noun: str
    name: str
    before: State | None
    after: State | None
    narrows: bool = False

    @property
    def kind(self) -> str:
        if self.before is None:
            return "added"
        return "removed" if self.after is None else "changed"

    @property
    def fields(self) -> dict[str, tuple[Any, Any]]:
        """The members that differ, each with its value before and after."""
        before, after = self.before or {}, self.after or {}
        return {
            name: (before.get(name), after.get(name))
            for name in {**before, **after}
            if before.get(name) != after.get(name)
        }

    @property
    def entry(self) -> Entry:
        data = {"name": self.name, "before": self.before, "after": self.after}
        return Entry(f"{self.noun}.{self.kind}", data)


@dataclass(slots=True)
class Issued:
    """Credentials made in one go; they are shown once and kept as hashes."""

    agents: dict[str, str] = field(default_factory=dict)
    users: dict[str, dict[str, str]] = field(default_factory=dict)
    tools: dict[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.agents or self.users or self.tools)


def record(actor: Actor, changes: Sequence[Change]) -> None:
    """Journal the changes, and make older authorizations stale where one of them narrows.

    In the transaction of the changes; the drain comes with its commit.
    """
    if not changes:
        return
    if any(change.narrows for change in changes):
        authority.raise_authority()
    journal.append_to_tenant(actor, *(change.entry for change in changes))


def refuse_own(actor: Actor, person: UUID | None, detail: str) -> None:
    """Raise OwnAuthority where ``person``, who is about to be given authority, is who gives it.

    A person acts as one with all their tokens; the system (`apply`) is nobody's self.
    """
    if person is not None and actor.kind == "user" and actor.id == str(person):
        raise OwnAuthority(detail)
