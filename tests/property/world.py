"""A tenant with people, an agent, tools of every kind and a policy, and the far end of its tools."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol
from unittest.mock import patch
from uuid import UUID

from django.db import transaction

from approvals.services.grants import set_grants
from approvals.services.policies import publish_policy
from interrupts.effects import python as effects
from interrupts.models import Tool, ToolVersion
from tenants.authority import raise_authority
from tenants.journal import SYSTEM
from tenants.models import Agent, Membership, Role, Tenant, User
from tenants.principal import Principal
from tenants.scope import current_tenant_id

PEOPLE = {
    "ada": Role.ADMIN,  # answers for the agent
    "olga": Role.OPERATOR,
    "alice": Role.APPROVER,
    "carol": Role.APPROVER,
    "rosa": Role.APPROVER,  # runs are made for her
    "bob": Role.APPROVER,
    "vera": Role.VIEWER,
}
GRANTS = {name: ["*"] for name in ("ada", "alice", "carol", "rosa", "vera")}
ARGUMENTS = {
    "type": "object",
    "required": ["n"],
    "properties": {"n": {"type": "integer"}, "amount": {"type": "integer", "minimum": 0}},
    "additionalProperties": False,
}
PYTHON, OF_THE_AGENT = {"kind": "python"}, {"kind": "agent"}
TOOLS: dict[str, dict[str, Any]] = {
    "pay": {"effect": "irreversible", "reconcile": {}, "key_lifetime": 86400},
    "book": {  # asked about
        "effect": "reversible",
        "reconcile": {},
        "compensate": {},
        "roles": {"n": "number"},
    },
    "post": {"effect": "reversible", "risk": "medium", "compensate": {}},  # asked of two
    "send": {"effect": "irreversible", "preview": {}, "reconcile": {}},  # asked about, previewed
    "look": {"effect": "read"},
    "put": {"effect": "idempotent"},  # sent again under its key where its outcome is unknown
    "mine": {"effect": "irreversible", "executor": OF_THE_AGENT, "key_lifetime": 86400},
    "drop": {"effect": "irreversible"},  # denied
}


def _rule(name: str, tools: list[str], then: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "trigger": "action", "tools": tools, "then": then, **more}


OPEN = _rule("open", ["pay", "look", "put", "mine"], "allow")
ASK = _rule(
    "ask", ["book", "send"], "approve", expires_in=60, on_expiry="reject", extendable_to=120
)
BOTH = _rule("both", ["post"], "approve", quorum=2, expires_in=600, on_expiry="cancel")
NEVER = _rule("never", ["drop"], "deny", reason="not an agent's job")
POLICIES: dict[str, list[dict[str, Any]]] = {
    "usual": [OPEN, ASK, BOTH, NEVER],
    "strict": [
        _rule("open", ["look", "put"], "allow"),
        _rule("ask", ["book", "send", "pay", "mine"], "approve"),
        BOTH,
        NEVER,
    ],
    "two": [OPEN, _rule("ask", ["book", "send", "post"], "approve", quorum=2), NEVER],
    "closed": [_rule("open", ["look", "put"], "allow"), _rule("no", ["pay", "book"], "deny"), BOTH],
}


def verdict(policy: str, tool: str) -> tuple[str, int]:
    """What this policy says of a tool, and of how many people it is asked."""
    for one in POLICIES[policy]:
        if tool in one["tools"]:
            return one["then"], one.get("quorum", 1)
    return ("allow", 1) if TOOLS[tool]["effect"] == "read" else ("approve", 1)


class FarEnd(Protocol):
    """What the tools of a tenant call."""

    def execute(self, arguments: dict[str, Any], call: effects.Call) -> Any: ...

    def reconcile(self, arguments: dict[str, Any], call: effects.Call) -> effects.Reconciled: ...

    def preview(self, arguments: dict[str, Any], call: effects.Call) -> Any: ...

    def undo(
        self, arguments: dict[str, Any], call: effects.Call, result: Any, external_id: str | None
    ) -> Any: ...


def tools_of(far_end: FarEnd) -> Callable[[str], effects.PythonTool]:
    """Return what finds a tool by its name, in the place of installed packages."""

    def tool_named(name: str) -> effects.PythonTool:
        offers = TOOLS[name]
        return effects.PythonTool(
            far_end.execute,
            preview=far_end.preview if "preview" in offers else None,
            reconcile=far_end.reconcile if "reconcile" in offers else None,
            compensate=far_end.undo if "compensate" in offers else None,
        )

    return tool_named


@contextmanager
def calling(far_end: FarEnd) -> Iterator[None]:
    """Let every python tool be the far end's, for the block."""
    with ExitStack() as stack:
        for module in ("interrupts.effects.python", "interrupts.effects"):
            stack.enter_context(patch(f"{module}.tool_named", tools_of(far_end)))
        yield


@dataclass(frozen=True)
class World:
    """Who acts in the tenant, and its agent."""

    tenant: UUID
    agent: Principal
    other: Principal
    people: dict[str, Principal]

    @classmethod
    def made(cls) -> World:
        """Make everything there is, in the current tenant."""
        pk = current_tenant_id()
        Tenant.objects.create(id=pk, slug=f"acme-{pk.hex[-12:]}", name="Acme")
        users = [User(username=f"{name}-{pk.hex[-12:]}") for name in PEOPLE]
        User.objects.bulk_create(users)
        Membership.objects.bulk_create(
            Membership(user=user, role=role)
            for user, role in zip(users, PEOPLE.values(), strict=True)
        )
        ada = users[0]
        Agent.objects.bulk_create([Agent(name="bot", owner=ada), Agent(name="other")])
        _declare(TOOLS)
        world = cls.of_current()
        with transaction.atomic():
            world.publish("usual")
            world.grant(GRANTS)
        return world

    @classmethod
    def of_current(cls) -> World:
        """Find what was made."""
        pk = current_tenant_id()
        members = {
            member.user.username.partition("-")[0]: Principal(
                "user", member.user_id, pk, member.user.username, None, member.role
            )
            for member in Membership.objects.select_related("user")
        }
        agents = {one.name: one for one in Agent.objects.all()}
        bot, other = (
            Principal("agent", agents[name].pk, pk, name, None, None, agents[name].owner_id)
            for name in ("bot", "other")
        )
        return cls(pk, bot, other, members)

    def publish(self, policy: str) -> None:
        publish_policy(SYSTEM, {"rules": POLICIES[policy]})

    def grant(self, grants: dict[str, list[str]]) -> None:
        wanted = {self.people[name].name: globs for name, globs in grants.items()}
        set_grants(SYSTEM, wanted, others_end=True)


def _version(tool: Tool, number: int, *, executor: Any = PYTHON, **declared: Any) -> ToolVersion:
    return ToolVersion(
        tool=tool,
        number=number,
        arguments=ARGUMENTS,
        executor=executor,
        executor_kind=executor["kind"],
        timeout_seconds=10,
        digest=f"sha256:{number}",
        **{"risk": "low", **declared},
    )


def _declare(tools: dict[str, dict[str, Any]]) -> None:
    made = [Tool(name=name) for name in tools]
    Tool.objects.bulk_create(made)
    versions = [_version(tool, 1, **tools[tool.name]) for tool in made]
    ToolVersion.objects.bulk_create(versions)
    for tool, version in zip(made, versions, strict=True):
        tool.current = version
    Tool.objects.bulk_update(made, ["current"])


def new_version(name: str, **more: Any) -> None:
    """Declare the tool anew; what was authorised of an older version is asked again."""
    tool = Tool.objects.get(name=name)
    tool.current = _version(tool, tool.versions.count() + 1, **TOOLS[name], **more)
    tool.current.save(force_insert=True)
    tool.save()
    raise_authority()
