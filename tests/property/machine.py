"""Whatever agents, workers, people, time and crashes may do, in any order, over the real services.

Nothing is taken on trust: what must hold is looked at from outside after each step (facts.py), the
far end counts what it performed (farend.py), and each call is held, while it is being made, to an
authorization that is worked out anew (calls.py).
"""

from __future__ import annotations

import inspect
import sys
from functools import partial
from random import Random
from uuid import UUID

from django.db import connections
from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from interrupts import sweep, verification
from interrupts.models import Interrupt, Run, Step
from interrupts.services import (
    attempts,
    freezes,
    responses,
    runs,
)
from tenants.ids import uuid7
from tests.property.actions import Action, some, tools, yes_or_no
from tests.property.agents import Agents
from tests.property.facts import hold
from tests.property.people import People
from tests.property.rules import Rules
from tests.property.service import Service

numbers = st.integers(0, 2**62)


class AnyHistory(Agents, Service, People, Rules):
    """All of it, in any order."""

    def teardown(self) -> None:
        try:
            if sys.exc_info()[0] is None:
                self.totals.steps.append(self.taken)
                self.goes_on_to_its_end()
                self.verifies()
                self.totals.counted.update(self.outside.kinds)
        finally:
            for table in ("interrupts_run", "approvals_gate"):
                self.outside.execute(
                    f"UPDATE {table} SET due_at = NULL WHERE tenant_id = %(tenant)s"
                )
            self.stack.close()

    @initialize(number=numbers)
    def begins_somehow(self, number: int) -> None:
        """There is something to do from the first step on."""
        random = Random(number)  # noqa: S311 - no secret
        groups = some(tools, 2, 3)(random)
        self.begin(yes_or_no(random), yes_or_no(random), groups)

    @rule(number=numbers)
    def something_happens(self, number: int) -> None:
        """One of all that may happen now, the more frequent more often."""
        # What is drawn twice does not happen twice.
        random = Random(number * 1000 + self.taken)  # noqa: S311 - no secret
        possible = [one for one in ACTIONS if all(holds(self) for holds in one.conditions)]
        (chosen,) = random.choices(possible, [one.weight for one in possible])
        given = {name: draw(random) for name, draw in chosen.draws.items()}
        self.totals.counted[f"did {chosen.name}"] += 1
        note(f"{chosen.name}: {given}")
        getattr(self, chosen.name)(**given)

    # What must always hold

    @invariant()
    def everything_holds(self) -> None:
        self.taken += 1
        assert not self.faults, self.faults
        now = self.outside.look()
        hold(now, self.before, self.outside.told)
        for key, times in self.far.performed.items():
            assert times <= 1, f"step {key} was performed {times} times"
        for key in self.far.undone:
            assert self.far.performed[key], f"step {key} was undone and never done"
        for step in now.steps.values():
            undone = step["id"] in self.far.undone
            assert step["status"] != "compensated" or undone, "taken for undone"
            performed = self.far.performed[step["id"]]
            receipts = now.of("receipts", step_id=step["id"], outcome="succeeded")
            ran = [one for one in receipts if one["source"] != "person" or one["attempt"]]
            assert not ran or performed or step["effect"] == "read", "a success that never was"
        self.before = self.now = now

    # And that it is never stuck, and verifies

    def goes_on_to_its_end(self) -> None:
        """Every question answered and time enough given, each run comes to its end."""
        self.armed = None
        self.everything_can_go_on()
        for _ in range(40):
            self.everything_holds()
            self.answer_all()
            self.serve(sweep.sweep_once)
            for message in self.messages[:]:
                self.messages.remove(message)
                self.serve(lambda message=message: self.received(*message))
            for run in reversed(self.outside.look().live_runs):
                self.do(partial(runs.complete_run, self.world.agent, UUID(run["id"]), output=None))
            if not self.outside.look().live_runs:
                break
            self.move(40.0)  # an owner may be silent for 50
        self.everything_holds()
        assert not self.now.live_runs, [
            (run["status"], run["suspension"]) for run in self.now.live_runs
        ]

    def everything_can_go_on(self) -> None:
        self.thaw_all()
        if not self.agent_acts:
            self.agent_comes_and_goes()
        self.publish("usual")
        self.grant({"alice", "carol"})
        self.now = self.outside.look()

    def thaw_all(self) -> None:
        for pk in self.outside.look().freezes:
            freezes.thaw(self.principal("olga"), UUID(pk))

    def answer_all(self) -> None:
        for step in self.claimable():
            self.do(partial(self.claimed, UUID(step["id"])))
        live = {one["id"] for one in self.outside.look().live_attempts}
        for attempt, fence, step in self.claims:
            if str(attempt) in live:
                outcome = "succeeded" if self.far.performed[step] else "failed"
                self.do(
                    lambda pk=attempt, fence=fence, outcome=outcome: attempts.report(
                        self.world.agent, pk, fence=fence, outcome=outcome
                    )
                )
        for gate in self.open_gates():
            for by in ("alice", "carol"):
                self.do(lambda gate=gate, by=by: self.decided(gate, by, "approve", "plain"))
        self.now = self.outside.look()
        for one in self.now.of("interrupts", status="open"):
            if one["reason"] == "parent_interrupted" or one["kind"] == "decision":
                continue
            resolution = one["allowed"][0]["resolution"]
            said = {"resolution": resolution, **self.answer(one, resolution, "truth")}
            self.do(
                lambda one=one, said=said: responses.respond(
                    self.principal("olga"),
                    UUID(one["id"]),
                    checkpoint=UUID(one["checkpoint"]),
                    **said,
                )
            )

    def verifies(self) -> None:
        """An oracle of its own finds nothing wrong, and another tenant sees nothing at all."""
        faults = list(verification.of_tenant())
        for run in Run.objects.all():
            faults += verification.of_run(run)
        assert not faults, faults
        with connections["default"].cursor() as cursor:
            cursor.execute(f"SET abeyance.tenant_id = '{uuid7()}'")
            assert not any(model.objects.exists() for model in (Run, Step, Interrupt))
            cursor.execute(f"SET abeyance.tenant_id = '{self.outside.tenant}'")


ACTIONS: list[Action] = [
    member.action for _, member in inspect.getmembers(AnyHistory) if hasattr(member, "action")
]
