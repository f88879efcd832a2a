"""A tenant with people who may decide, an agent, tools that do what a test wants, and a policy."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.db import transaction
from django.test import Client

from approvals.models import Assignment, Decision, Gate, View
from approvals.services import decisions, gates, preview
from approvals.services.grants import set_grants
from approvals.services.policies import publish_policy
from config.keys import secret_hash
from interrupts import worker
from interrupts.effects import Call, Preview, PreviewFailed
from interrupts.effects import python as python_effects
from interrupts.models import Interrupt, Run, Step, Tool, ToolVersion
from interrupts.services import runs, steps
from tenants.authority import raise_authority
from tenants.ids import uuid7
from tenants.journal import SYSTEM
from tenants.models import (
    Agent,
    AgentKey,
    Group,
    GroupMember,
    JournalEntry,
    Membership,
    Role,
    Tenant,
    User,
    UserToken,
)
from tenants.principal import Principal
from tenants.scope import tenant_scope

PEOPLE = {
    "ada": Role.ADMIN,
    "olga": Role.OPERATOR,
    "alice": Role.APPROVER,
    "bob": Role.APPROVER,
    "carol": Role.APPROVER,
    "vera": Role.VIEWER,
}
MAY_DECIDE = {"alice": ["*"], "carol": ["*"], "bob": ["mail.*"], "vera": ["*"]}
REFUND = {
    "type": "object",
    "required": ["payment", "amount"],
    "properties": {
        "payment": {"type": "string"},
        "amount": {"type": "string", "pattern": r"^[0-9]+(\.[0-9]{2})?$"},
        "card": {"type": "string"},
    },
    "additionalProperties": False,
}
CALL = {"payment": "p-1", "amount": "20.00"}


@dataclass
class House:
    tenant: Tenant
    agent: Principal
    people: dict[str, Principal]
    secrets: dict[str, str]
    calls: list[tuple[str, Any]] = field(default_factory=list)
    previews: dict[str, Callable[[Any, Call], Any]] = field(default_factory=dict)
    sent: list[Any] = field(default_factory=list)
    wakes: list[Any] = field(default_factory=list)

    # Making things

    def tool(self, name: str = "payments.refund", *, previewed: bool = False, **more: Any) -> Tool:
        tool, _ = Tool.objects.get_or_create(name=name)
        if previewed:
            self.previews.setdefault(name, lambda *_: shown_preview())
        declared = {
            "effect": "reversible",
            "risk": "low",
            "arguments": REFUND,
            "executor": {"kind": "python"},
            "executor_kind": "python",
            "timeout_seconds": 10,
            "digest": "sha256:0",
            **more,
        }
        number = tool.versions.count() + 1
        tool.current = ToolVersion.objects.create(tool=tool, number=number, **declared)
        tool.save()
        if number > 1:
            with transaction.atomic():
                raise_authority()
        return tool

    def policy(self, *rules: Mapping[str, Any], **more: Any) -> None:
        with transaction.atomic():
            publish_policy(SYSTEM, {"rules": list(rules), **more})

    def grant(self, who: str, *globs: str) -> None:
        with transaction.atomic():
            set_grants(SYSTEM, {who: list(globs)})

    def group(self, name: str, *members: str) -> None:
        group = Group.objects.create(name=name)
        for member in members:
            membership = Membership.objects.get(user=self.people[member].id)
            GroupMember.objects.create(group=group, membership=membership)

    def run(self, **more: Any) -> Run:
        given = {"workflow": "refunds", "goal": "make Bob happy", **more}
        return runs.start_run(self.agent, **given)

    def propose(
        self,
        tool: str = "payments.refund",
        arguments: Mapping[str, Any] = CALL,
        *,
        run: Run | None = None,
        **more: Any,
    ) -> Step:
        proposal = {"tool": tool, "arguments": dict(arguments), **more}
        (step,), _ = steps.propose(self.agent, (run or self.run()).pk, proposals=[proposal])
        return fresh(step)

    def ask(self, *args: Any, **more: Any) -> Gate:
        """Propose a call that is asked about, take its preview, and return its gate."""
        gate = Gate.objects.get(pk=self.propose(*args, **more).gate)
        if gate.state == "preparing":
            preview.take_preview(gate.pk)
        return fresh(gate)

    # Doing things

    def look(self, gate: Gate, *who: str) -> None:
        for name in who:
            gates.look_at_gate(self.people[name], gate.pk)

    def decide(self, who: str, gate: Gate, verdict: str = "approve", **more: Any) -> Gate:
        return self.decided(who, gate, verdict, **more).gate

    def decided(self, who: str, gate: Gate, verdict: str, **more: Any) -> decisions.Decided:
        more = {"digest": gate.digest, **more}
        return decisions.decide_gate(self.people[who], gate.pk, verdict=verdict, **more)

    def work(self, run: Run | Any) -> int:
        found = Run.objects.get(pk=getattr(run, "pk", run))
        return worker.work_run(found.pk, found.epoch)

    # Seeing things

    def trace(self, gate: Gate) -> dict[str, Any]:
        """What a refusal must leave as it was."""
        step = Step.objects.get(pk=gate.step_id)
        run = Run.objects.get(pk=gate.run_id)
        interrupt = Interrupt.objects.get(pk=gate.interrupt_id)
        return {
            "decisions": list(Decision.objects.order_by("id").values()),
            "gates": Gate.objects.count(),
            "views": View.objects.count(),
            "assignments": Assignment.objects.count(),
            "gate": Gate.objects.values().get(pk=gate.pk),
            "step": (step.status, step.digest, step.gate, step.authorized_by, step.reason),
            "interrupt": (interrupt.status, interrupt.resolution, interrupt.gate),
            "run": (run.status, run.state_version, run.epoch, run.journal_seq),
        }

    def kinds(self, run_id: Any) -> list[str]:
        entries = JournalEntry.objects.filter(stream=run_id).order_by("seq")
        return list(entries.values_list("kind", flat=True))

    # Over HTTP

    def request(
        self, who: str, method: str, path: str, body: Any = None, **headers: str
    ) -> tuple[int, Any, Mapping[str, str]]:
        """One request outside the tenant's scope, as the server gets it."""
        made = Client().generic(
            method,
            f"/api/v1{path}",
            data=b"" if body is None else json.dumps(body).encode(),
            content_type="application/json",
            headers={"Authorization": f"Bearer {self.secrets[who]}", **headers},
        )
        return made.status_code, json.loads(made.content or b"null"), made.headers


def shown_preview(summary: str = "20.00 goes back", **more: Any) -> Preview:
    return Preview(
        summary,
        more.get("changes", [{"object": "amount", "before": None, "after": "20.00"}]),
        more.get("warnings", []),
        more.get("fresh_for"),
    )


def no_preview(*_: Any) -> Preview:
    raise PreviewFailed("The far end is down.")


def fresh(row: Any) -> Any:
    return type(row).objects.get(pk=row.pk)


@pytest.fixture
def empty_house(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    pk = uuid7()
    with tenant_scope(pk):
        tenant = Tenant.objects.create(id=pk, slug="acme", name="Acme")
        people, tokens = {}, {}
        for name, role in PEOPLE.items():
            user = User.objects.create(username=name)
            membership = Membership.objects.create(user=user, role=role)
            tokens[name] = f"aby_user_{secrets.token_urlsafe(32)}"
            UserToken.objects.create(
                membership=membership, hash=secret_hash(tokens[name]), hint=tokens[name][:16]
            )
            people[name] = Principal("user", user.pk, pk, name, None, role.value)
        agents = {}
        for name in ("bot", "other"):
            agent = agents[name] = Agent.objects.create(name=name)
            tokens[name] = f"aby_agent_{secrets.token_urlsafe(32)}"
            AgentKey.objects.create(
                agent=agent, hash=secret_hash(tokens[name]), hint=tokens[name][:16]
            )
        bot = Principal("agent", agents["bot"].pk, pk, "bot", None)
        house = House(tenant, bot, people, tokens)

        def execute(arguments: Any, call: Call) -> Any:
            house.calls.append((call.tool, arguments))
            return {"done": True}

        def tool_named(name: str) -> python_effects.PythonTool:
            return python_effects.PythonTool(execute, preview=house.previews.get(name))

        for module in ("interrupts.effects", "interrupts.effects.python"):
            monkeypatch.setattr(f"{module}.tool_named", tool_named)
        # A test's preview may look at the test's own rows, and so runs in the thread that asks.
        monkeypatch.setattr("interrupts.effects.python.within", lambda _seconds, _name, act: act())
        monkeypatch.setattr("interrupts.queue.send", lambda *ids: house.wakes.append(ids))
        monkeypatch.setattr("approvals.queue.send", lambda *ids: house.sent.append(ids))
        yield house


@pytest.fixture
def house(empty_house: House) -> House:
    """The house with one tool that is asked about, and people who may decide."""
    empty_house.tool()
    with transaction.atomic():
        set_grants(SYSTEM, MAY_DECIDE)
    return empty_house
