"""Steps that a rule approves beside steps that policy allows, in turns in this one process.

A step is proposed, worked and recorded; the two kinds have tools alike but for what policy says of
them. Prints for both, and for their proposals apart, ``{"database_ms", "server_cpu_ms", "ms",
"client_cpu_ms", "counters"}`` of one step. ``database_ms`` is the time that the server was busy with
this process's statements, commits and planning among it, ``server_cpu_ms`` the processor time of
its process; no other uses the database meanwhile.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from secrets import token_hex
from typing import Any

import psycopg
from django.db import connection

from benchmarks.counters import dsn
from benchmarks.figures import report
from benchmarks.ours.api import TEXT, step_body
from benchmarks.ours.inprocess import DATABASE, as_agent, counting, new_tenant
from benchmarks.ours.steps import STEPS, check, new_run, work
from delegation.models import Delegation, DelegationUse
from delegation.services import rules
from interrupts.models import Run
from interrupts.services.steps import propose
from tenants.principal import Principal

RUNS = 6  # of each kind that are timed: 600 steps a round
CHUNK = 25  # proposals of one kind before it is the other's turn
ALLOWED, RULED = "bench.allowed", "bench.ruled"
PERSON = "bench-paula"
# Nothing else of the server's counts meanwhile; the tables are small.
QUIET = ("ALTER SYSTEM SET autovacuum = off", "SELECT pg_reload_conf()")
LOUD = ("ALTER SYSTEM RESET autovacuum", "SELECT pg_reload_conf()")
ACTIVE_TIME = "SELECT active_time FROM pg_stat_database WHERE datname = %s"
# Every condition holds of each call: an amount, a value of a list, and the agent.
PREDICATE: dict[str, Any] = {
    "all": [
        {"f": "@agent", "in": ["agent"]},
        {"f": "number", "le": "1000000000"},
        {"f": "text", "in": [TEXT]},
    ]
}


class NotRuled(Exception):
    """A rule has not approved exactly what it was to approve."""


def tool(name: str) -> dict[str, Any]:
    """Return a tool of low risk whose calls a rule may decide."""
    return {
        "name": name,
        "description": "An effect step",
        "effect": "idempotent",
        "risk": "low",
        "arguments": {
            "type": "object",
            "required": ["number", "text"],
            "properties": {"number": {"type": "integer"}, "text": {"type": "string"}},
            "additionalProperties": False,
        },
        "roles": {"number": "number", "text": "enum"},
        "executor": {"kind": "python", "function": "bench.tick"},
    }


def tenant(*, tools: tuple[str, ...] = (ALLOWED, RULED)) -> dict[str, Any]:
    """Return a tenant with a person who decides what policy does not allow."""
    return {
        "tenant": f"bench-ruled-{token_hex(4)}",
        "agents": [{"name": "agent"}],
        "members": [
            {
                "username": PERSON,
                "email": f"{PERSON}@bench.test",
                "role": "approver",
                "may_decide": ["*"],
            }
        ],
        "tools": [tool(name) for name in tools],
        "policy": {
            "rules": [
                {"name": "allowed", "trigger": "action", "tools": [ALLOWED], "then": "allow"},
                {"name": "asked", "trigger": "action", "tools": [f"{RULED}*"], "then": "approve"},
            ]
        },
    }


class DatabaseTime:
    """How long the server was busy with the one connection of this process, to the last statement."""

    def __init__(self, admin: psycopg.Connection[tuple[Any, ...]]) -> None:
        self.admin = admin

    def read(self) -> float:
        """Return the milliseconds so far; what this read takes is told by the next one."""
        for _ in range(2):  # a backend tells what it did before the statement that makes it tell
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_stat_force_next_flush()")
        row = self.admin.execute(ACTIVE_TIME, [DATABASE]).fetchone()
        if row is None:
            raise RuntimeError("the server told no times")
        return float(row[0])


def server_time() -> float:
    """Return the seconds of a processor that the server's process for this connection has used."""
    stat = Path(f"/proc/{connection.connection.info.backend_pid}/schedstat").read_text()
    return int(stat.split()[0]) / 1e9


@dataclass(slots=True)
class Taken:
    """What something took of the server, of the clock and of this process."""

    database_ms: float = 0
    server_cpu_ms: float = 0
    ms: float = 0
    client_cpu_ms: float = 0

    def of(self, act: Callable[[], object], database: DatabaseTime) -> None:
        """Do it, and add what it took."""
        before, server = database.read(), server_time()
        started, cpu = time.perf_counter(), time.process_time()
        act()
        self.client_cpu_ms += (time.process_time() - cpu) * 1e3
        self.ms += (time.perf_counter() - started) * 1e3
        self.server_cpu_ms += (server_time() - server) * 1e3
        self.database_ms += database.read() - before

    def each(self, operations: int) -> dict[str, float]:
        """Return what one of so many took."""
        return {name: total / operations for name, total in asdict(self).items()}


@dataclass(slots=True)
class Side:
    """Steps of one kind, and what was taken by proposing and by working them."""

    key: str
    tool: str
    runs: list[Run] = field(default_factory=list)
    proposing: Taken = field(default_factory=Taken)
    working: Taken = field(default_factory=Taken)

    def begin(self) -> None:
        """Start a run for the steps that are proposed next."""
        self.runs.append(new_run(self.key))

    def propose(self, database: DatabaseTime) -> None:
        """Propose some steps of the newest run one by one, as an agent does."""
        with as_agent(self.key):
            self.proposing.of(lambda: self.propose_untimed(CHUNK), database)

    def propose_untimed(self, steps: int) -> None:
        """Propose so many steps of the newest run."""
        with as_agent(self.key) as agent:
            for _ in range(steps):
                propose(agent, self.runs[-1].pk, proposals=[step_body(self.tool)], single=True)

    def work(self, database: DatabaseTime) -> None:
        """Do what a worker does that takes the newest run's message."""
        self.working.of(lambda: work(self.runs[-1]), database)

    def forget(self) -> None:
        """Time from now on."""
        self.proposing, self.working = Taken(), Taken()

    def figures(self) -> tuple[dict[str, float], dict[str, float]]:
        """Return what a step took, and what its proposal did of that."""
        proposed, worked = self.proposing.each(STEPS * RUNS), self.working.each(STEPS * RUNS)
        return {name: took + worked[name] for name, took in proposed.items()}, proposed


def made_sides() -> dict[str, Side]:
    """Make the tenant and its rule; return what policy allows and what the rule approves."""
    issued = new_tenant(tenant())
    key = issued.agents["agent"]
    with as_agent(issued.users[PERSON]["token"]) as person:
        begin_rule(person, RULED)
    return {"ungated_step": Side(key, ALLOWED), "auto_approved_step": Side(key, RULED)}


def begin_rule(person: Principal, name: str) -> Delegation:
    """Let a rule of the person's begin that approves every call of the tool, and checks none."""
    rule = rules.propose_by_hand(person, name, PREDICATE)
    rules.accept(person, rule.pk)
    Delegation.objects.filter(pk=rule.pk).update(check_share=0)
    return Delegation.objects.get(pk=rule.pk)


def fill(sides: list[Side], database: DatabaseTime) -> None:
    """Have each side do a run in turns, so that what disturbs one disturbs the other."""
    for one in sides:
        one.begin()
    for number in range(STEPS // CHUNK):
        for one in sides if number % 2 else sides[::-1]:
            one.propose(database)
    for one in sides if len(sides[0].runs) % 2 else sides[::-1]:
        one.work(database)


def timed(sides: list[Side], *, runs: int = RUNS) -> None:
    """Time so many runs of each side, after one that is not."""
    with quiet() as admin:
        database = DatabaseTime(admin)
        fill(sides, database)
        for one in sides:
            one.forget()
        for _ in range(runs):
            fill(sides, database)


@contextmanager
def quiet() -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
    """Have the server vacuum nothing by itself for the length of the block: it would be counted."""
    with psycopg.connect(dsn("postgres"), autocommit=True) as admin:
        try:
            for command in QUIET:
                admin.execute(command)
            yield admin
        finally:
            for command in LOUD:
                admin.execute(command)


def cost(act: Callable[[], object]) -> dict[str, float]:
    """Return what each of a run's steps costs the server when this is done."""
    with counting() as count:
        act()
    return count.each(STEPS)


def costs(one: Side) -> tuple[dict[str, float], dict[str, float]]:
    """Return what a step costs the server, and what its proposal does of that."""
    one.begin()
    proposed = cost(lambda: one.propose_untimed(STEPS))
    worked = cost(lambda: work(one.runs[-1]))
    return {name: some + worked[name] for name, some in proposed.items()}, proposed


def check_ruled(sides: Mapping[str, Side]) -> None:
    """Raise NotRuled or NotDone unless every step succeeded, a rule having approved its own only."""
    for one in sides.values():
        for run in one.runs:
            check(run.pk, one.key)
    ruled = sides["auto_approved_step"]
    with as_agent(ruled.key):
        found = DelegationUse.objects.count()
    if found != STEPS * len(ruled.runs):
        raise NotRuled(f"{found} of {STEPS * len(ruled.runs)} steps were approved by the rule")


def main() -> None:
    """Measure both and print."""
    sides = made_sides()
    timed(list(sides.values()))
    figures: dict[str, dict[str, Any]] = {}
    for name, one in sides.items():
        for part, took, counters in zip(
            (name, f"{name}_proposal"), one.figures(), costs(one), strict=True
        ):
            figures[part] = {**took, "counters": counters}
    check_ruled(sides)
    report(figures)


if __name__ == "__main__":
    main()
