"""A tenant on which one service is tried, the same in the process that tries it and in the test."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch
from uuid import UUID

from django.db import transaction

from approvals.models import Gate
from approvals.services import decisions, gates
from approvals.tasks import take_preview
from delegation.tasks import collect
from interrupts import sweep, tasks, worker
from interrupts.effects import Ruling, Says
from interrupts.models import Interrupt, Run, Step
from interrupts.services import holds, responses, runs, starting, steps
from interrupts.services.holds import Asked
from tenants import idempotency
from tenants.idempotency import Answer
from tests import clock
from tests.property.farend import Ledger
from tests.property.world import TOOLS, World, calling

THE_KEY, THE_REQUEST, DONE = "the key", b"the request", Answer(201, {}, '"done"')
HANDLERS: dict[str, Callable[..., Any]] = {
    "interrupts.work_run": tasks.work_run,
    "interrupts.find_out": tasks.find_out,
    "interrupts.compensate": tasks.compensate,
    "interrupts.judge": tasks.judge,
    "preview": take_preview,
    "delegation.collect": collect,
}


VERIFIERS: dict[str, Any] = {
    "passes": lambda arguments, receipt, call: Ruling(Says.PASSED),
    "rejects": lambda arguments, receipt, call: Ruling(Says.REJECTED, "not so"),
}


class LedgerFile(Ledger):
    """A far end that several processes call: what it performed is a line of a file each."""

    def __init__(self, path: Path) -> None:
        super().__init__(begins=lambda _: None, undoes=lambda _: None)
        self.path = path

    def perform(self, tool: str, key: str) -> None:
        with self.path.open("a") as file:
            file.write(f"{tool} {key}\n")

    def execute(self, arguments: Any, call: Any) -> Any:
        self.performed = self.read()
        return super().execute(arguments, call)

    def reconcile(self, arguments: Any, call: Any) -> Any:
        self.performed = self.read()
        return super().reconcile(arguments, call)

    def read(self) -> Counter[str]:
        """How often each key was performed."""
        return Counter(key for _, key in self._lines())

    @property
    def tools(self) -> list[str]:
        """The tools that were performed, each as often as it was."""
        return sorted(tool for tool, _ in self._lines())

    def _lines(self) -> list[tuple[str, str]]:
        text = self.path.read_text() if self.path.exists() else ""
        lines = [
            (tool, key) for tool, _, key in (line.partition(" ") for line in text.splitlines())
        ]
        repeated = {one for one in lines if TOOLS[one[0]]["effect"] == "idempotent"}
        return [*repeated, *(one for one in lines if one not in repeated)]


class Scene:
    """The tenant, its people and tools, and short ways to bring it into a state."""

    def __init__(self, world: World, far: LedgerFile, messages: list[tuple[str, Any]]) -> None:
        self.world, self.far, self.messages = world, far, messages
        self.agent, self.people = world.agent, world.people

    @classmethod
    @contextmanager
    def entered(cls, ledger: Path, *, new: bool) -> Iterator[Scene]:
        """Stand in the current tenant, made here or by another process."""
        messages: list[tuple[str, Any]] = []
        far = LedgerFile(ledger)
        with ExitStack() as stack:
            stack.enter_context(calling(far))
            stack.enter_context(
                patch("interrupts.effects.verifiers.verifier_named", VERIFIERS.__getitem__)
            )
            stack.enter_context(
                patch(
                    "interrupts.queue._publish", lambda task, names: messages.append((task, names))
                )
            )
            stack.enter_context(
                patch(
                    "approvals.queue.send",
                    lambda tenant, gate: messages.append(
                        ("preview", {"tenant_id": tenant, "gate_id": gate})
                    ),
                )
            )
            stack.enter_context(
                patch(
                    "delegation.queue.send",
                    lambda tenant: messages.append(("delegation.collect", {"tenant_id": tenant})),
                )
            )
            yield cls(World.made() if new else World.of_current(), far, messages)

    # Into a state

    def run(self, **more: Any) -> UUID:
        return runs.start_run(self.agent, **{"workflow": "w", "goal": "g", **more}).pk

    def propose(self, run: UUID, *tools: str) -> list[UUID]:
        proposals = [{"tool": tool, "arguments": {"n": n}} for n, tool in enumerate(tools)]
        return [step.pk for step in steps.propose(self.agent, run, proposals=proposals)[0]]

    def step(self, tool: str, **more: Any) -> tuple[UUID, UUID]:
        run = self.run(**more)
        return run, self.propose(run, tool)[0]

    def work(self, run: UUID, *ends: str) -> None:
        self.far.ends = [(end, None) for end in ends]
        worker.work_run(run, Run.objects.get(pk=run).epoch)

    def done(self, tool: str) -> tuple[UUID, UUID]:
        run, step = self.step(tool)
        if Step.objects.get(pk=step).gate is not None:
            self.approve(step)
        self.work(run)
        assert Step.objects.get(pk=step).status == "succeeded"
        return run, step

    def lost(self, tool: str, end: str = "lost") -> tuple[UUID, UUID]:
        run, step = self.step(tool)
        self.work(run, end)
        assert Step.objects.get(pk=step).status == "unknown"
        return run, step

    def claimed(self) -> tuple[UUID, UUID, UUID]:
        run, step = self.step("mine")
        return run, step, starting.claim_step(self.agent, step)[0].pk

    def gate(self, tool: str, **more: Any) -> UUID:
        _, step = self.step(tool, **more)
        return self.gate_of(step)

    def gate_of(self, step: UUID) -> UUID:
        gate = Step.objects.get(pk=step).gate
        assert gate is not None
        if Gate.objects.get(pk=gate).state == "preparing":
            take_preview(tenant_id=str(self.world.tenant), gate_id=str(gate))
        return gate

    def approve(self, step: UUID) -> None:
        gate = self.gate_of(step)
        for who in ("alice", "carol"):
            if Gate.objects.get(pk=gate).state == "pending":
                self.decide(who, gate)

    def decide(self, who: str, gate: UUID, verdict: str = "approve", **more: Any) -> Any:
        shown = gates.look_at_gate(self.people[who], gate).gate
        given = {"digest": shown.digest, **more}
        if verdict == "approve":
            given["confirmation"] = shown.required_confirmation or True
        return decisions.decide_gate(self.people[who], gate, verdict=verdict, **given)

    def stop(self, run: UUID) -> UUID:
        asked = Asked(reason="operator_stop")
        return holds.open_interrupt(self.people["olga"], run, asked=asked)[0].pk

    def interrupt(self, run: UUID, reason: str) -> UUID:
        return Interrupt.objects.get(run=run, reason=reason, status="open").pk

    def respond(self, interrupt: UUID, resolution: str = "resume", **more: Any) -> None:
        checkpoint = Interrupt.objects.get(pk=interrupt).checkpoint
        responses.respond(
            self.people["olga"], interrupt, checkpoint=checkpoint, resolution=resolution, **more
        )

    def change(self, act: Callable[[], Any]) -> None:
        with transaction.atomic():
            act()

    # Time

    def move(self, seconds: float) -> None:
        """Let time pass."""
        clock.move(seconds)

    def settle(self) -> None:
        """Let time pass and workers work, until whatever was begun has come to its end."""
        self.far.ends = []
        for _ in range(6):
            self.move(8.0)
            sweep.sweep_once()
            while self.messages:
                task, names = self.messages.pop(0)
                HANDLERS[task](**names)

    # A request under a key

    def once(self, act: Callable[[], Any]) -> None:
        """Do what a request with an idempotency key does: once, however often it is sent."""
        with idempotency.once(str(self.agent.actor), THE_KEY, THE_REQUEST) as pending:
            if pending.first is None:
                act()
                idempotency.store_answer_within_transaction(*DONE)
