"""What one method of one path takes and who may call it: enforced by the view, published as is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from config.errors import AgentsOnly, Forbidden, PeopleOnly
from tenants.api.body import NO_BODY, Shape
from tenants.api.checks import Schema
from tenants.api.parsing import MIB
from tenants.models import Role
from tenants.principal import Principal

Handler = TypeVar("Handler", bound=Callable[..., Any])
Who = Literal["agents", "people", "both"]


@dataclass(frozen=True, slots=True)
class Operation:
    """The declaration of one method.

    ``roles`` narrows the people who may; a viewer may only look, so what ``changes`` something is
    refused to viewers whatever else it says.
    """

    summary: str
    description: str = ""
    who: Who = "both"
    roles: frozenset[str] = frozenset()
    changes: bool = True
    body: Shape = NO_BODY
    limit: int = MIB
    query: Mapping[str, Schema] = field(default_factory=dict)
    answers: Mapping[int, Schema | None] = field(default_factory=dict)
    refusals: Mapping[str, int] = field(default_factory=dict)
    versioned: bool = False
    waits: bool = False
    own_transaction: bool = False

    def admit(self, principal: Principal) -> None:
        """Raise PeopleOnly, AgentsOnly or Forbidden where this caller may not call it at all."""
        if principal.is_agent:
            if self.who == "people":
                raise PeopleOnly
            return
        if self.who == "agents":
            raise AgentsOnly
        if self.roles and principal.role not in self.roles:
            raise Forbidden(f"Only {_listed(self.roles)} may do this.")
        if self.changes and principal.role == Role.VIEWER:
            raise Forbidden("A viewer only looks.")


def _listed(roles: frozenset[str]) -> str:
    return " and ".join(f"{role}s" for role in sorted(roles))


def operation(summary: str, **declared: Any) -> Callable[[Handler], Handler]:
    """Declare a view's method; see `Operation` for the members.

    ``body`` and ``answers`` may be given as plain schemas; ``roles`` as any collection. A GET
    changes nothing.
    """

    def declare(handler: Handler) -> Handler:
        handler.operation = _operation(handler.__name__, summary, declared)  # type: ignore[attr-defined]
        return handler

    return declare


def _operation(method: str, summary: str, declared: dict[str, Any]) -> Operation:
    body = declared.pop("body", NO_BODY)
    return Operation(
        summary=summary,
        body=body if isinstance(body, Shape) else Shape(body),
        roles=frozenset(declared.pop("roles", ())),
        changes=declared.pop("changes", method != "get"),
        **declared,
    )
