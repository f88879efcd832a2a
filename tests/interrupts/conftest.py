"""An engine with an authorizer that says what a test wants, and a tool that does what it wants."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from interrupts import authorizer as asking
from interrupts import catalogue
from interrupts.authorizer import Judgement
from interrupts.effects import python as python_effects
from interrupts.models import Tool, ToolVersion
from interrupts.services import runs, steps
from tenants.models import Agent, Membership, Role, Tenant, User
from tenants.principal import Principal
from tenants.scope import tenant_scope
from tenants.ids import uuid7

ANYTHING = {"type": "object"}


@dataclass
class FakeAuthorizer:
    verdicts: dict[str, str] = field(default_factory=dict)
    renewals: dict[str, Judgement | None] = field(default_factory=dict)
    deciders: set[Any] = field(default_factory=set)
    budget: dict[str, Any] = field(default_factory=dict)
    opened: list[Any] = field(default_factory=list)
    closed: list[tuple[Any, str]] = field(default_factory=list)
    asked: int = 0
    version: int = 1

    def judge(self, work, step, arguments):
        self.asked += 1
        verdict = self.verdicts.get(step.tool_name, "allow")
        return Judgement(verdict, f"rule-{verdict}", self.version, reason="because")

    def reauthorize(self, work, step, arguments):
        self.asked += 1
        return self.renewals.get(step.tool_name)

    def open_gate(self, work, step, judgement, gate_id, interrupt):
        self.opened.append(gate_id)
        work.note("gate.opened", gate=gate_id, step=step.pk)

    def close_gate(self, work, gate_id, state, why):
        self.closed.append((gate_id, state))

    def expire_gate(self, work, gate_id):
        return True, "reject"

    def may_decide_any(self, user_id, run):
        return user_id in self.deciders

    def limits(self, run):
        return self.budget

    def policy_version(self):
        return self.version

    def allowed_hosts(self):
        return []


@pytest.fixture
def authority(monkeypatch) -> FakeAuthorizer:
    fake = FakeAuthorizer()
    asking.authorizer.cache_clear()
    for module in ("interrupts.authorizer", "interrupts.transitions.steps",
                   "interrupts.transitions.attempts", "interrupts.services.steps",
                   "interrupts.services.runs", "interrupts.services.looking",
                   "interrupts.services.acting", "interrupts.catalogue"):
        monkeypatch.setattr(f"{module}.authorizer", lambda: fake)
    return fake


@pytest.fixture(autouse=True)
def nothing_remembered() -> Iterator[None]:
    """Each test's tools are new: what a process remembers of versions is forgotten."""
    caches = (catalogue._current, catalogue.version, catalogue.validator, catalogue.effect,
              catalogue.tool_name)
    for cache in caches:
        cache.cache_clear()
    yield
    for cache in caches:
        cache.cache_clear()


@pytest.fixture
def sent(monkeypatch) -> list[tuple[str, str, int]]:
    messages: list[tuple[str, str, int]] = []
    monkeypatch.setattr("interrupts.queue.send", lambda *args: messages.append(args))
    return messages


@dataclass
class House:
    """A tenant with an agent and people, and tools made as a test needs them."""

    tenant: Tenant
    agent: Principal
    people: dict[str, Principal]
    calls: list[Any]
    behaviour: dict[str, Callable[..., Any]]

    def tool(self, name: str, *, effect: str = "idempotent", kind: str = "python",
             timeout: float = 10, **more: Any) -> ToolVersion:
        tool = Tool.objects.create(name=name)
        version = ToolVersion.objects.create(
            tool=tool, number=1, effect=effect, risk="low", arguments=ANYTHING,
            executor={"kind": kind}, executor_kind=kind, timeout_seconds=timeout,
            digest="sha256:0", **more,
        )
        tool.current = version
        tool.save()
        return version

    def run(self, **more: Any):
        return runs.start_run(self.agent, workflow="w", goal="g", **more)

    def propose(self, run, *calls: tuple[str, dict[str, Any]], **more: Any):
        proposals = [{"tool": tool, "arguments": arguments} for tool, arguments in calls]
        return steps.propose(self.agent, run.pk, proposals=proposals, **more)[0]


@pytest.fixture
def house(transactional_db, authority, sent, monkeypatch) -> Iterator[House]:
    pk = uuid7()
    with tenant_scope(pk):
        tenant = Tenant.objects.create(id=pk, slug="acme", name="Acme")
        agent = Agent.objects.create(name="bot")
        people = {}
        for name, role in (("ada", Role.ADMIN), ("olga", Role.OPERATOR),
                           ("alice", Role.APPROVER), ("vera", Role.VIEWER)):
            user = User.objects.create(username=name)
            Membership.objects.create(user=user, role=role)
            people[name] = Principal("user", user.pk, pk, name, None, role.value)
        calls: list[Any] = []
        behaviour: dict[str, Callable[..., Any]] = {}

        def execute(arguments, call):
            calls.append((call.tool, arguments, call.idempotency_key))
            return behaviour.get(call.tool, lambda a, c: {"done": a})(arguments, call)

        monkeypatch.setattr(
            python_effects, "tool_named", lambda name: python_effects.PythonTool(execute)
        )
        yield House(
            tenant, Principal("agent", agent.pk, pk, "bot", None), people, calls, behaviour
        )
