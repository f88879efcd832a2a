"""What the service does by itself: workers, messages, the sweep, and time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import UUID

from approvals.tasks import take_preview
from delegation.tasks import collect
from interrupts import sweep, tasks, worker
from interrupts.services import (
    freezes,
    looking,
    runs,
)
from tests.property.actions import (
    action,
    both,
    has_live_run,
    indexes,
    number,
    one_of,
    some,
    when,
    yes_or_no,
)
from tests.property.commits import Crashing
from tests.property.farend import ANSWERS, ENDS
from tests.property.stage import Stage

MEANWHILE = (
    *[None] * 10,
    *("stop", "cancel", "undo", "lapse", "lapse", "freeze", "withdraw", "work", "late"),
)
far_ends = some(both(one_of(*ENDS), one_of(*MEANWHILE)), 2, 4)


class Service(Stage):
    """Works, hears of it late or twice, sweeps, and dies."""

    @when(lambda self: self.messages)
    @action(
        weight=10,
        index=indexes,
        keep=yes_or_no,
        ends=far_ends,
        answers=some(one_of(*ANSWERS), 0, 2),
    )
    def deliver(self, index: int, keep: bool, ends: list[Any], answers: list[str]) -> None:
        """A message comes, now or long after, once or again."""
        at = index % len(self.messages)
        message = self.messages[at] if keep else self.messages.pop(at)
        self.with_far_end(ends, answers, lambda: self.received(*message))

    def received(self, task: str, names: dict[str, Any]) -> None:
        handlers = {
            "interrupts.work_run": tasks.work_run,
            "interrupts.find_out": tasks.find_out,
            "interrupts.compensate": tasks.compensate,
            "preview": take_preview,
            "delegation.collect": collect,
        }
        handlers[task](**names)

    @has_live_run
    @action(weight=12, index=indexes, ends=far_ends)
    def work(self, index: int, ends: list[Any]) -> None:
        run = self.now.runs[str(self.going_at(index))]
        self.with_far_end(ends, [], lambda: worker.work_run(UUID(run["id"]), run["epoch"]))

    def with_far_end(self, ends: list[Any], answers: list[str], act: Callable[[], Any]) -> None:
        self.far.ends = [(end, self.meanwhile(name)) for end, name in ends]
        self.far.answers = list(answers)
        self.serve(act)
        self.far.ends, self.far.answers = [], []

    def meanwhile(self, name: str | None) -> Callable[[], None] | None:
        """What others do while a call is under way."""
        if name is None:
            return None

        def during() -> None:
            self.depth += 1
            try:
                getattr(self, f"_{name}_meanwhile")()
            finally:
                self.depth -= 1

        return during

    def _of_live(self) -> list[UUID]:
        return [UUID(one["id"]) for one in self.outside.look().live_runs]

    def _stop_meanwhile(self) -> None:
        for run in self._of_live():
            self.do(lambda run=run: self.stop_run(run, "olga", "cancel"))

    def _cancel_meanwhile(self) -> None:
        for run in self._of_live()[:1]:
            self.do(lambda run=run: runs.cancel_run(self.principal("olga"), run))

    def _undo_meanwhile(self) -> None:
        for run in self._of_live()[:1]:
            self.do(lambda run=run: runs.cancel_run(self.principal("olga"), run, compensate=True))

    def _lapse_meanwhile(self) -> None:
        """The call takes longer than its lease: it is looked at, and its receipt comes late."""
        self.move(13.0)
        for run in self._of_live():
            self.serve(lambda run=run: looking.look(run))

    def _freeze_meanwhile(self) -> None:
        self.do(lambda: freezes.freeze(self.principal("olga"), scope="tenant"))

    def _withdraw_meanwhile(self) -> None:
        self.publish("closed")

    def _work_meanwhile(self) -> None:
        """Another worker, a message that came twice."""
        for run in self.outside.look().live_runs:
            at = UUID(run["id"]), run["epoch"]
            self.serve(lambda at=at: worker.work_run(*at))

    def _late_meanwhile(self) -> None:
        self.move(3.0)

    @action(
        weight=20,
        seconds=one_of(0.0, 2.0, 3.0, 12.0, 40.0),
        rounds=number(1, 3),
        answers=some(one_of(*ANSWERS), 0, 2),
        ends=far_ends,
    )
    def catches_up(self, seconds: float, rounds: int, answers: list[str], ends: list[Any]) -> None:
        """Time passes, the sweep looks, and whatever it and others sent is worked off."""
        for _ in range(rounds):
            self.move(seconds)
            self.serve(sweep.sweep_once)
            for message in self.messages[:]:
                self.messages.remove(message)
                self.with_far_end(ends, answers, partial(self.received, *message))

    @action(weight=3, seconds=one_of(2.0, 6.0, 13.0, 45.0, 70.0), sweeps=yes_or_no)
    def time_passes(self, seconds: float, sweeps: bool) -> None:
        self.move(seconds)
        if sweeps:
            self.serve(sweep.sweep_once)

    @action(weight=2)
    def sweep(self) -> None:
        self.serve(sweep.sweep_once)

    @action(weight=4, when=one_of("before", "after"), at=number(1, 3))
    def dies_next(self, when: str, at: int) -> None:
        """Whatever is done next dies at a commit."""
        self.armed = Crashing(when, at)

    @when(lambda self: self.lost)
    @action(weight=4, index=indexes)
    def ask_again(self, index: int) -> None:
        """Whoever had no answer sends the same again."""
        self.do(self.lost.pop(index % len(self.lost)))
