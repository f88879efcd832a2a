"""An engine with an authorizer that says what a test wants, and tools that do what it wants."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import connection, transaction

from interrupts import authorizer as asking
from interrupts import catalogue, worker
from interrupts.authorizer import Judgement
from interrupts.effects import python as python_effects
from interrupts.models import (
    Attempt,
    Freeze,
    Interrupt,
    Resolution,
    Run,
    Step,
    StepStatus,
    Tool,
    ToolVersion,
)
from interrupts.services import attempts, freezes, holds, looking, responses, runs, starting, steps
from interrupts.services.holds import Asked
from interrupts.transitions import holds as holding
from interrupts.transitions import steps as moving
from interrupts.verification import Fault, rows
from interrupts.work import working
from tenants.authority import raise_authority
from tenants.ids import uuid7
from tenants.models import Agent, JournalEntry, Membership, Role, Tenant, User
from tenants.principal import Principal
from tenants.scope import current_tenant_id, tenant_scope

ANYTHING = {"type": "object"}
# What a call of the agent leaves behind although it was refused: that it called.
HEARTBEAT = frozenset({"last_seen_at", "updated_at", "due_at"})


@dataclass
class FakeAuthorizer:
    verdicts: dict[str, str] = field(default_factory=dict)
    renewals: dict[str, Judgement | None] = field(default_factory=dict)
    expiries: dict[Any, tuple[bool, str]] = field(default_factory=dict)
    deciders: set[Any] = field(default_factory=set)
    budget: dict[str, Any] = field(default_factory=dict)
    daily: dict[str, Any] = field(default_factory=dict)
    opened: list[Any] = field(default_factory=list)
    closed: list[tuple[Any, str]] = field(default_factory=list)
    reasons: list[str | None] = field(default_factory=list)
    told: list[tuple[Any, str]] = field(default_factory=list)
    expires_in: float | None = None
    completion: Judgement | None = None
    asked: int = 0
    version: int = 1

    def judge(self, work, step, arguments):
        self.asked += 1
        verdict = self.verdicts.get(step.tool_name, "allow")
        expires_at = None
        if verdict == "approve" and self.expires_in is not None:
            expires_at = work.now + timedelta(seconds=self.expires_in)
        return Judgement(
            verdict, f"rule-{verdict}", self.version, reason="because", expires_at=expires_at
        )

    def judge_completion(self, work):
        return self.completion or Judgement("allow", "rule-allow", self.version)

    def reauthorize(self, work, step, arguments):
        self.asked += 1
        return self.renewals.get(step.tool_name)

    def open_gate(self, work, step, judgement, gate_id, interrupt):
        self.opened.append(gate_id)
        self.reasons.append(judgement.reason)
        work.note("gate.opened", gate=gate_id, step=step.pk)

    def close_gate(self, work, gate_id, state, why):
        self.closed.append((gate_id, state))

    def expire_gate(self, work, gate_id):
        return self.expiries.get(gate_id, (True, "reject"))

    def tell_of_outcome(self, work, step):
        self.told.append((step.pk, step.status))

    def tell_of_interrupt(self, work, interrupt):
        pass

    def may_decide_any(self, user_id, run):
        return user_id in self.deciders

    def limits(self, run):
        return self.budget

    def daily_limits(self, work):
        return self.daily

    def policy_version(self):
        return self.version

    def allowed_hosts(self):
        return []


@pytest.fixture
def authority(settings: Any) -> Iterator[FakeAuthorizer]:
    settings.AUTHORIZER = f"{__name__}.FakeAuthorizer"
    settings.RUN_VERIFIERS = []  # its gates have no rows
    asking.authorizer.cache_clear()
    yield asking.authorizer()
    asking.authorizer.cache_clear()


@pytest.fixture
def nothing_remembered() -> Iterator[None]:
    """Each test's tools are new: what a process remembers of versions is forgotten."""
    caches = [
        catalogue._current,
        catalogue.version,
        catalogue.validator,
        catalogue.effect,
        catalogue.verifier,
        catalogue.tool_name,
    ]
    for cache in caches:
        cache.cache_clear()
    yield
    for cache in caches:
        cache.cache_clear()


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, int]]:
    messages: list[tuple[str, str, int]] = []
    monkeypatch.setattr("interrupts.queue.send", lambda *args: messages.append(args))
    return messages


@dataclass
class House:
    """A tenant with two agents and people, and tools made as a test needs them."""

    tenant: Tenant
    agent: Principal
    other: Principal
    people: dict[str, Principal]
    policy: FakeAuthorizer
    sent: list[tuple[str, str, int]]
    calls: list[Any] = field(default_factory=list)
    behaviour: dict[str, Callable[..., Any]] = field(default_factory=dict)
    finds: dict[str, Callable[..., Any]] = field(default_factory=dict)  # what a tool says, asked
    undoes: dict[str, Callable[..., Any]] = field(default_factory=dict)

    @property
    def ran(self) -> list[Any]:
        """What was called, in order: the argument ``n`` of each call."""
        return [arguments.get("n") for _, arguments, _ in self.calls]

    # What there is

    def tool(
        self,
        name: str,
        *,
        effect: str = "idempotent",
        kind: str = "python",
        timeout: float = 10,
        **more: Any,
    ) -> ToolVersion:
        tool = Tool.objects.create(name=name)
        return self.new_version(tool, effect=effect, kind=kind, timeout=timeout, **more)

    def new_version(
        self,
        tool: Tool,
        *,
        effect: str = "idempotent",
        kind: str = "python",
        timeout: float = 10,
        **more: Any,
    ) -> ToolVersion:
        declared = {"arguments": ANYTHING, "risk": "low", "digest": "sha256:0", **more}
        tool.current = ToolVersion.objects.create(
            tool=tool,
            number=tool.versions.count() + 1,
            effect=effect,
            executor={"kind": kind},
            executor_kind=kind,
            timeout_seconds=timeout,
            **declared,
        )
        tool.save()
        return tool.current

    def break_off(self, *tools: str) -> None:
        """Have these tools say nothing of what they did."""
        for tool in tools:
            self.behaviour[tool] = _break_off

    # What the agent does

    def run(self, **more: Any) -> Run:
        return runs.start_run(self.agent, **{"workflow": "w", "goal": "g", **more})

    def propose(self, run: Run, *calls: tuple[str, dict[str, Any]], **more: Any) -> list[Step]:
        proposals = [{"tool": tool, "arguments": arguments} for tool, arguments in calls]
        return steps.propose(self.agent, run.pk, proposals=proposals, **more)[0]

    def keyed(
        self, run: Run, key: str, tool: str, arguments: Any, **more: Any
    ) -> tuple[Step, bool]:
        document = {"tool": tool, "arguments": arguments, "key": key}
        (step,), is_new = steps.propose(self.agent, run.pk, proposals=[document], **more)
        return step, is_new

    def claim(self, step: Step, **more: Any) -> Attempt:
        return starting.claim_step(self.agent, step.pk, **more)[0]

    def report(self, attempt: Attempt, outcome: str = "succeeded", **more: Any) -> bool:
        return attempts.report(
            self.agent, attempt.pk, outcome=outcome, **{"fence": attempt.fence, **more}
        )[1]

    # What the service does

    def work(self, run: Run) -> int:
        """A worker's turn under the epoch that is the run's now."""
        return worker.work_run(run.pk, fresh(run).epoch)

    def look(self, run: Run) -> None:
        looking.look(run.pk)

    def lost(self, tool: str = "t", *, run: Run | None = None, n: Any = 0) -> tuple[Run, Step]:
        """A run with a step whose outcome is unknown: its tool broke off."""
        run = run or self.run()
        self.break_off(tool)
        (step,) = self.propose(run, (tool, {"n": n}))
        self.work(run)
        del self.behaviour[tool]
        assert fresh(step).status == "unknown"
        return fresh(run), fresh(step)

    def lapse(self, attempt: Attempt) -> None:
        """Let the attempt's lease be over, and the run be looked at."""
        earlier(attempt, "lease_expires_at", 3600)
        self.look(attempt.run)

    # What people do

    def stop(self, run: Run, by: str = "olga", **more: Any) -> Interrupt:
        return self.interrupt(self.people[by], run, "operator_stop", **more)

    def interrupt(self, by: Principal, run: Run, reason: str, **more: Any) -> Interrupt:
        beside = {name: more.pop(name) for name in ("session", "if_match") if name in more}
        asked = Asked(reason=reason, **more)
        return holds.open_interrupt(by, run.pk, asked=asked, **beside)[0]

    def respond(
        self, interrupt: Interrupt, resolution: str = "resume", by: str = "olga", **more: Any
    ) -> Interrupt:
        given = {"checkpoint": interrupt.checkpoint, **more}
        return responses.respond(self.people[by], interrupt.pk, resolution=resolution, **given)[0]

    def recover(self, step: Step, outcome: str, by: str = "olga", **more: Any) -> Interrupt:
        value = {"outcome": outcome, "evidence": "seen in the log", **more}
        return self.respond(open_of(step), by=by, value=value)

    def cancel(self, run: Run, by: str = "olga", **more: Any) -> Run:
        return runs.cancel_run(self.people[by], run.pk, **more)

    def freeze(self, scope: str = "tenant", name: str = "") -> tuple[Freeze, list[UUID]]:
        return freezes.freeze(self.people["olga"], scope=scope, name=name)

    def thaw(self, freeze: Freeze) -> None:
        freezes.thaw(self.people["olga"], freeze.pk)

    def withdraw_authority(self) -> None:
        with transaction.atomic():
            raise_authority()

    def decide(self, step: Step, verdict: str = "approve") -> None:
        """Decide the step's gate as approvals would: under the run's lock, the interrupt last."""
        with working(step.run_id, self.people["alice"].actor) as work:
            step = fresh(step)
            if verdict == "approve":
                moving.authorize(
                    work, step, by="decision", rule="r", policy_version=1, gate=step.gate
                )
            else:
                moving.settle_without_running(work, step, StepStatus.REJECTED, verdict)
            interrupt = Interrupt.objects.get(pk=step.interrupt)
            holding.resolve(work, interrupt, Resolution.RESUME, by=work.actor)


def _break_off(arguments: Any, call: Any) -> Any:
    raise RuntimeError("the connection broke off")


def fresh(row: Any) -> Any:
    return type(row).objects.get(pk=row.pk)


def open_of(row: Run | Step, reason: str | None = None) -> Interrupt:
    """The one open interrupt of the run, or of the step."""
    rows = Interrupt.objects.filter(status="open")
    rows = rows.filter(step=row.pk) if isinstance(row, Step) else rows.filter(run=row)
    return rows.get(reason=reason) if reason else rows.get()


def kinds(run: Run) -> list[str]:
    entries = JournalEntry.objects.filter(stream=run.pk).order_by("seq")
    return list(entries.values_list("kind", flat=True))


def earlier(row: Any, column: str, seconds: float) -> None:
    """Shift the clock for one row: the moment it holds is this much earlier."""
    moment = getattr(fresh(row), column) - timedelta(seconds=seconds)
    type(row).objects.filter(pk=row.pk).update(**{column: moment})


def _tables() -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = 'public'"
            " AND tablename !~ '^(django|auth)_' ORDER BY 1"
        )
        return [name for (name,) in cursor.fetchall()]


def everything(*, but: frozenset[str] = frozenset()) -> dict[str, list[str]]:
    """Every row that the tenant can see, of every table, without the columns ``but``."""
    rows: dict[str, list[str]] = {}
    with connection.cursor() as cursor:
        for table in _tables():
            cursor.execute(
                f"SELECT (to_jsonb(t) - %s::text[])::text FROM {table} t ORDER BY 1", [sorted(but)]
            )
            rows[table] = [text for (text,) in cursor.fetchall()]
    return rows


@contextmanager
def nothing_changes(*, but: frozenset[str] = frozenset()) -> Iterator[None]:
    """Hold the block to leaving every row of every table as it was."""
    before = everything(but=but)
    yield
    after = everything(but=but)
    assert {k: v for k, v in after.items() if v != before[k]} == {}


@contextmanager
def refused(error: type[Exception], *, but: frozenset[str] = frozenset()) -> Iterator[Any]:
    """Hold the block to being refused with ``error``, and to changing nothing."""
    with nothing_changes(but=but), pytest.raises(error) as raised:
        yield raised


def make_house(
    authority: FakeAuthorizer, sent: list[Any], monkeypatch: pytest.MonkeyPatch
) -> House:
    """Make the tenant; to be called in its scope."""
    pk = current_tenant_id()
    tenant = Tenant.objects.create(id=pk, slug=f"acme-{pk.hex[-8:]}", name="Acme")
    agents = [Agent.objects.create(name=name) for name in ("bot", "other")]
    roles = {
        "ada": Role.ADMIN,
        "olga": Role.OPERATOR,
        "alice": Role.APPROVER,
        "bob": Role.APPROVER,
        "vera": Role.VIEWER,
    }
    people = {}
    for name, role in roles.items():
        user = User.objects.create(username=f"{name}-{pk.hex[-8:]}")
        Membership.objects.create(user=user, role=role)
        people[name] = Principal("user", user.pk, pk, user.username, None, role.value)
    bot, other = (Principal("agent", agent.pk, pk, agent.name, None) for agent in agents)
    house = House(tenant, bot, other, people, authority, sent)
    for module in ("interrupts.effects.python", "interrupts.effects"):
        monkeypatch.setattr(f"{module}.tool_named", lambda name: tool_of(house, name))
    return house


def tool_of(house: House, name: str) -> python_effects.PythonTool:
    def execute(arguments: Mapping[str, Any], call: Any) -> Any:
        house.calls.append((call.tool, arguments, call.idempotency_key))
        return house.behaviour.get(call.tool, lambda given, _: {"done": given})(arguments, call)

    return python_effects.PythonTool(
        execute, reconcile=house.finds.get(name), compensate=house.undoes.get(name)
    )


@pytest.fixture
def house(
    transactional_db: None,
    authority: FakeAuthorizer,
    sent: list[Any],
    nothing_remembered: None,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[House]:
    monkeypatch.setattr(rows, "faults", but_the_clock(rows.faults))
    with tenant_scope(uuid7()):
        yield make_house(authority, sent, monkeypatch)


def but_the_clock(compare: Callable[..., Iterator[Fault]]) -> Callable[..., Iterator[Fault]]:
    """Hold rows against their journal, but for the times that these tests set back as their clock.

    tests/approvals/test_tampering.py changes each of them.
    """
    clocks = tuple(f"its {name} is" for name in ("unknown_at", "started_at"))

    def faults(run: Run, told: Any) -> Iterator[Fault]:
        return (one for one in compare(run, told) if not one.what.startswith(clocks))

    return faults
