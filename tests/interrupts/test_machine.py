"""Whatever is done in whatever order, what must always hold holds after each of it."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from config.errors import Problem
from interrupts.authorizer import Judgement
from interrupts.effects import NotPerformed, Refused
from interrupts.models import OPEN_STEPS, Attempt, Freeze, Interrupt, Run, Step
from interrupts.services import runs
from interrupts.suspension import counts_of
from tests.interrupts.history import assert_history_holds, assert_states_are_rebuilt
from tests.interrupts.house import House, earlier, fresh

TOOLS = ["t", "asked", "mine", "look"]
ENDS = ["done", "lost after", "lost before", "busy", "refused"]
tools = st.lists(st.sampled_from(TOOLS), min_size=1, max_size=3)


class Engine(RuleBasedStateMachine):
    """One family of runs, and a far end that keeps a ledger of what it performed."""

    def __init__(self, house: House) -> None:
        super().__init__()
        self.house = house
        self.ledger: dict[str, int] = {}
        self.truth: dict[str, bool] = {}  # of an attempt whose outcome was lost: was it performed?
        self.claims: list[Attempt] = []
        self.ends: list[str] = []
        self.n = 0
        self.epochs: dict[Any, int] = {}

    @initialize()
    def begin(self) -> None:
        house = self.house
        house.policy.verdicts = {"asked": "approve"}
        house.policy.renewals = {}
        for name in ("t", "asked", "look"):
            house.behaviour[name] = self.far_end
        self.run = house.run()
        self.child = house.run(parent=self.run.pk)

    def teardown(self) -> None:
        if hasattr(self, "run"):
            self.goes_on_to_its_end()

    # The far end

    def far_end(self, arguments: Any, call: Any) -> Any:
        step = Step.objects.get(pk=call.step)
        if step.effect != "read":
            assert step.status == "executing"
            assert step.authorized_by is not None
        end = self.ends.pop() if self.ends else "done"
        if end == "busy":
            raise NotPerformed("busy")
        if end == "refused":
            raise Refused("no")
        performed = end != "lost before"
        if performed and step.effect != "read":
            self.ledger[call.idempotency_key] = self.ledger.get(call.idempotency_key, 0) + 1
        self.truth[call.idempotency_key] = performed
        if end.startswith("lost"):
            raise RuntimeError("lost")
        return "done"

    def runs(self) -> list[Run]:
        return [fresh(self.run), fresh(self.child)]

    def attempted(self, act: Any) -> Any:
        """Do it, or be refused: a refusal is an answer too."""
        try:
            return act()
        except Problem as refusal:
            return refusal

    def pick(self, rows: Any, index: int) -> Any:
        found = list(rows)
        return found[index % len(found)] if found else None

    # What the agent does

    @rule(below=st.booleans(), names=tools, parallel=st.booleans())
    def propose(self, below: bool, names: list[str], parallel: bool) -> None:
        self.n += 1
        calls = [(name, {"n": f"{self.n}-{i}"}) for i, name in enumerate(names)]
        run = self.child if below else self.run
        self.attempted(lambda: self.house.propose(run, *calls, parallel=parallel))

    @rule(index=st.integers(0, 9))
    def claim(self, index: int) -> None:
        step = self.pick(self.open_steps().filter(tool_name="mine"), index)
        if step is not None:
            made = self.attempted(lambda: self.house.claim(step))
            if isinstance(made, Attempt):
                self.claims.append(made)

    @precondition(lambda self: self.claims)
    @rule(
        index=st.integers(0, 9),
        outcome=st.sampled_from(["succeeded", "failed", "not_performed", "unknown"]),
    )
    def report(self, index: int, outcome: str) -> None:
        """A receipt of any claim, of the newest or of one long superseded; it is the truth."""
        claim = self.claims[index % len(self.claims)]
        key, step = str(claim.pk), str(claim.step_id)
        if outcome == "succeeded" and key not in self.ledger:
            if any(str(one.pk) in self.ledger for one in self.claims if str(one.step_id) == step):
                return  # an agent that claimed twice performs once: it knows its own key
            self.ledger[key] = 1
        elif outcome != "succeeded" and key in self.ledger:
            return
        self.truth[step] = self.truth.get(step, False) or outcome == "succeeded"
        self.attempted(lambda: self.house.report(claim, outcome))

    def open_steps(self) -> Any:
        return Step.objects.filter(run__in=[self.run, self.child], status__in=sorted(OPEN_STEPS))

    # What the service does

    @rule(below=st.booleans(), ends=st.lists(st.sampled_from(ENDS), max_size=3))
    def work(self, below: bool, ends: list[str]) -> None:
        self.ends = list(ends)
        self.house.work(self.child if below else self.run)
        self.ends = []

    @rule()
    def time_passes(self) -> None:
        for step in self.open_steps().filter(due_at__isnull=False):
            earlier(step, "due_at", 7200)
        for run in self.runs():
            self.house.look(run)

    @rule(index=st.integers(0, 9))
    def lapse(self, index: int) -> None:
        live = Attempt.objects.filter(
            run__in=[self.run, self.child], settled_at=None, lapsed_at=None
        )
        attempt = self.pick(live.order_by("id"), index)
        if attempt is not None:
            self.house.lapse(attempt)

    # What people do

    @rule(below=st.booleans(), cancel=st.booleans())
    def stop(self, below: bool, cancel: bool) -> None:
        how = {"in_flight": "cancel"} if cancel else {}
        self.attempted(lambda: self.house.stop(self.child if below else self.run, **how))

    @rule(index=st.integers(0, 9), resolution=st.sampled_from(["resume", "revise", "cancel"]))
    def respond(self, index: int, resolution: str) -> None:
        interrupt = self.pick(
            Interrupt.objects.filter(run__in=[self.run, self.child], status="open"), index
        )
        if interrupt is None:
            return
        more: dict[str, Any] = {}
        if interrupt.reason == "outcome_unknown" and resolution == "resume":
            more["value"] = {"outcome": self.what_happened(interrupt), "evidence": "looked"}
        if resolution == "revise":
            more["value"] = {"guidance": "not so"}
        self.attempted(lambda: self.house.respond(interrupt, resolution, **more))

    def what_happened(self, interrupt: Interrupt) -> str:
        """People say what is true; of an agent's claim that, if it says nothing, nothing was done."""
        return "performed" if self.truth.get(str(interrupt.step)) else "not_performed"

    @rule(index=st.integers(0, 9), verdict=st.sampled_from(["approve", "no"]))
    def decide(self, index: int, verdict: str) -> None:
        step = self.pick(self.open_steps().filter(status="waiting", held_by="gate"), index)
        if step is not None:
            self.house.decide(step, verdict)

    @rule(verdict=st.sampled_from([None, "deny", "approve"]))
    def withdraw(self, verdict: str | None) -> None:
        renewal = Judgement(verdict, "withdrawn", 2) if verdict else None
        self.house.policy.renewals = {"t": renewal, "mine": renewal} if renewal else {}
        self.house.withdraw_authority()

    @rule()
    def freeze(self) -> None:
        self.house.freeze()

    @rule()
    def thaw(self) -> None:
        for one in Freeze.objects.filter(lifted_at=None):
            self.house.thaw(one)

    @precondition(lambda self: self.n > 4)
    @rule(below=st.booleans())
    def cancel(self, below: bool) -> None:
        self.attempted(lambda: self.house.cancel(self.child if below else self.run))

    # What must always hold

    @invariant()
    def everything_holds(self) -> None:
        if not hasattr(self, "run"):
            return
        assert all(count == 1 for count in self.ledger.values())
        for run in self.runs():
            self.run_holds(run)
            assert_history_holds(run)
            assert_states_are_rebuilt(run)
        parent, child = self.runs()
        if parent.status in ("suspended", "cancelling") or parent.ended:
            assert child.status != "running"

    def run_holds(self, run: Run) -> None:
        steps = list(Step.objects.filter(run=run).order_by("position"))
        held = Interrupt.objects.filter(run=run, status="open").count()
        assert run.open_interrupts == held
        assert (run.status == "suspended") <= (held > 0)
        assert (held > 0) <= (run.status in ("suspended", "cancelling"))
        opened = [step.position for step in steps if step.status in OPEN_STEPS]
        assert run.next_step <= min(opened, default=run.last_position + 1)
        if run.status in ("suspended", "cancelling"):
            counts = counts_of(run.pk, 1)
            shown = (run.count_unknown, run.count_in_flight, run.count_partial)
            assert (shown, run.suspension) == (tuple(counts), counts.suspension)
        assert run.epoch >= self.epochs.get(run.pk, 1)
        self.epochs[run.pk] = run.epoch
        tries: dict[Any, list[Attempt]] = defaultdict(list)
        for attempt in Attempt.objects.filter(run=run).order_by("fence"):
            tries[attempt.step_id].append(attempt)
        for step in steps:
            self.step_holds(run, step, tries[step.pk])

    def step_holds(self, run: Run, step: Step, tries: list[Attempt]) -> None:
        live = [one for one in tries if one.settled_at is None and one.lapsed_at is None]
        assert len(live) <= 1
        assert (step.status == "executing") == bool(live)
        assert [one.fence for one in tries] == list(range(1, step.fence + 1))
        if step.status in ("denied", "rejected", "revised"):
            assert not any(one.outcome == "succeeded" for one in tries)
        if step.status == "unknown" and not run.ended:
            assert Interrupt.objects.filter(
                step=step.pk, status="open", reason="outcome_unknown"
            ).exists()
        if run.ended:
            assert step.status not in ("proposed", "waiting", "ready")

    # And that it is never stuck

    def goes_on_to_its_end(self) -> None:
        """Every question answered and time enough given, both runs can be ended by their agent."""
        self.thaw()
        self.house.policy.renewals = {}
        for _ in range(30):
            if self.is_quiet():
                break
            self.answer_all()
            self.lapse_all()
            self.time_passes()
            for run in self.runs():
                self.house.work(run)
        self.everything_holds()
        for run in (self.child, self.run):
            if not fresh(run).ended:
                runs.complete_run(self.house.agent, run.pk, output=None)

    def is_quiet(self) -> bool:
        held = Interrupt.objects.filter(run__in=[self.run, self.child], status="open")
        return not self.open_steps().exists() and not held.exists()

    def answer_all(self) -> None:
        for step in self.open_steps().filter(tool_name="mine", status="ready"):
            made = self.attempted(lambda step=step: self.house.claim(step))
            if isinstance(made, Attempt):
                self.claims.append(made)
                self.house.report(made, "failed")
        for step in self.open_steps().filter(status="waiting", held_by="gate"):
            self.house.decide(step)
        for interrupt in Interrupt.objects.filter(
            run__in=[self.run, self.child], status="open"
        ).exclude(reason="parent_interrupted"):
            more: dict[str, Any] = {}
            if interrupt.reason == "outcome_unknown":
                more["value"] = {"outcome": self.what_happened(interrupt), "evidence": "looked"}
            self.attempted(lambda i=interrupt, m=more: self.house.respond(i, **m))

    def lapse_all(self) -> None:
        for attempt in Attempt.objects.filter(
            run__in=[self.run, self.child], settled_at=None, lapsed_at=None
        ):
            self.house.lapse(attempt)


@pytest.mark.slow
def test_what_must_always_hold_holds_after_every_step_of_any_history(house):
    for name, kind, effect in (
        ("t", "python", "irreversible"),
        ("asked", "python", "irreversible"),
        ("mine", "agent", "irreversible"),
        ("look", "python", "read"),
    ):
        house.tool(name, kind=kind, effect=effect, key_lifetime=86400)
    run_state_machine_as_test(
        lambda: Engine(house),
        settings=settings(
            max_examples=50,
            stateful_step_count=14,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            print_blob=True,
            phases=[Phase.generate],
        ),
    )
