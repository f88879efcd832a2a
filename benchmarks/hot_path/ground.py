"""A tenant with runs whose steps are authorised, on the measured cluster.

Importing it sets Django up, so it is imported before anything of the service that needs that.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import django

django.setup()

import psycopg  # noqa: E402 - Django must be set up first
from django.conf import settings  # noqa: E402
from django.db import connection  # noqa: E402

from config.database import NAME, connect_parameters  # noqa: E402
from interrupts import content, hot  # noqa: E402
from interrupts.hot import Done  # noqa: E402
from interrupts.models import Run, Step, StepStatus, Tool, ToolVersion  # noqa: E402
from tenants.ids import uuid7  # noqa: E402
from tenants.models import Agent, Tenant  # noqa: E402
from tenants.scope import VARIABLE, tenant_scope  # noqa: E402

WORKER = "bench:1"
ARGUMENTS = b'{"number":1,"text":"' + b"x" * 100 + b'"}'
DIGEST = "sha256:" + "0" * 64
SECONDS_LEFT = 200.0


@dataclass(frozen=True, slots=True)
class Ground:
    """Where everything happens: a tenant, its agent and a tool with one version."""

    tenant: UUID
    agent: UUID
    version: ToolVersion

    def run(self, steps: int) -> Run:
        """Start a run with so many steps, authorised and ready, the first of which is intended."""
        run = Run.objects.create(
            agent_id=self.agent,
            workflow="bench",
            goal="be measured",
            last_position=steps,
            budget={"steps": 1_000_000},
        )
        Step.objects.bulk_create(self._step(run, position) for position in range(1, steps + 1))
        return run

    def _step(self, run: Run, position: int) -> Step:
        return Step(
            run=run,
            position=position,
            key_scope=run.key_scope,
            tool_id=self.version.tool_id,
            tool_version=self.version,
            tool_name="bench",
            tool_number=1,
            executor="python",
            effect="idempotent",
            risk="low",
            timeout_seconds=10,
            arguments=content.put(ARGUMENTS),
            digest=DIGEST,
            proposed_digest=DIGEST,
            status=StepStatus.READY,
            authorized_by="policy",
            authorized_rule="bench",
            authorized_digest=DIGEST,
            authorized_under=1,
            authorized_tool_version=self.version.pk,
            authorized_policy_version=1,
        )


@contextmanager
def ground() -> Iterator[Ground]:
    """Make a tenant of its own, and work in its scope."""
    pk = uuid7()
    with tenant_scope(pk):
        Tenant.objects.create(pk=pk, slug=f"bench-{pk.hex}", name="Bench")
        tool = Tool.objects.create(name="bench")
        version = ToolVersion.objects.create(
            tool=tool,
            number=1,
            effect="idempotent",
            risk="low",
            arguments={"type": "object"},
            executor={"kind": "python", "function": "bench"},
            executor_kind="python",
            timeout_seconds=10,
            digest=DIGEST,
        )
        agent = Agent.objects.create(name="bench")
        yield Ground(pk, agent.pk, version)


@dataclass(slots=True)
class Course:
    """A run as its worker knows it: the step in flight, which is recorded next."""

    ground: Ground
    run: UUID
    steps: list[UUID]
    attempt: UUID
    at: int = 0

    def outcome(self) -> Done:
        """Return what was seen of the step in flight."""
        step = self.steps[self.at]
        return Done(
            step=step,
            attempt=self.attempt,
            fence=1,
            outcome="succeeded",
            result=b'{"of":"%s","text":"%s"}' % (str(step).encode(), b"x" * 80),
            external_id=None,
            cost=None,
            error=None,
            sensitive=False,
        )

    def goes_on(self, attempt: UUID) -> None:
        """Note that the next step is in flight now, as ``attempt``."""
        self.at, self.attempt = self.at + 1, attempt


def begin(place: Ground, steps: int) -> Course:
    """Start a run that can take ``steps`` commits, with its first step in flight."""
    run = place.run(steps + 1)
    attempt = uuid7()
    hot.advance(
        place.tenant,
        run.pk,
        worker=WORKER,
        done=(),
        attempt=attempt,
        epoch=1,
        seconds_left=SECONDS_LEFT,
    )
    ids = Step.objects.filter(run=run).order_by("position").values_list("pk", flat=True)
    return Course(place, run.pk, list(ids), attempt)


def app_connection(tenant: UUID, database: str = NAME) -> psycopg.Connection[tuple[object, ...]]:
    """Connect as the app role, in the tenant's scope, to one of the cluster's databases."""
    parameters = {**connect_parameters(settings.DATABASES["default"]), "dbname": database}
    made = psycopg.connect(**parameters, autocommit=True)
    made.execute(f"SELECT set_config('{VARIABLE}', %s, false)", [str(tenant)])
    return made


def backend_pid() -> int:
    """Return the server process that Django's connection is served by."""
    connection.ensure_connection()
    return int(connection.connection.info.backend_pid)


def processor_seconds(pid: int) -> float:
    """Return how long a process has run on a processor, as Linux's scheduler counted it."""
    nanoseconds, *_ = Path(f"/proc/{pid}/schedstat").read_text().split()
    return int(nanoseconds) / 1e9
