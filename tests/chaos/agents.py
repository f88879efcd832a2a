"""Agents: each drives one run after the other, may be restarted anywhere, and then begins anew."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.chaos.farend import Effect
from tests.chaos.state import Chaos
from tests.chaos.tenant import LEASE_SECONDS

PAUSE_SECONDS = 0.4
HELD_SECONDS = 4  # how long one request waits for a change
MOST_RESTARTS = 4
RESTARTS, CHILDREN, CANCELS, FAILS = 0.06, 0.3, 0.18, 0.05

Turn = Sequence[tuple[str, str]]  # (tool, the agent's own name for the step)


class Restarted(Exception):
    """The agent's process is gone, with all that it knew but its run and its task."""


class Ended(Exception):
    """The run is over."""


@dataclass
class Task:
    """What an agent is to do in a run; a fork's is its origin's, under the same names."""

    turns: Sequence[Turn]
    parallel: bool
    child: bool


TURNS: Sequence[Turn] = (
    [("note", "n")],
    [("pay", "p")],
    [("book", "b")],
    [("tell", "t")],
    [("wire", "w")],
    [("move", "m")],
    [("look", "l"), ("note", "g1"), ("note", "g2")],
    [("pay", "h1"), ("note", "h2")],
    [("note", "q1"), ("move", "q2"), ("tell", "q3")],
)


def task(dice: random.Random) -> Task:
    turns = dice.sample(TURNS, dice.choice((2, 3, 3, 4)))
    return Task(turns, parallel=dice.random() < 0.5, child=dice.random() < CHILDREN)


def work(chaos: Chaos, number: int) -> None:
    """One run from its start to its end, and at times its fork's."""
    dice = chaos.dice(f"run {number}")
    what = task(dice)
    run = Driver(chaos, dice, start(chaos, f"run {number}"), what)
    end = dice.random()
    if end < CANCELS:
        run.cancelled_after = dice.randint(1, len(what.turns))
    run.fails = CANCELS <= end < CANCELS + FAILS
    run.drive()
    if run.cancelled_after is not None and (forked := fork(chaos, run.run)):
        Driver(chaos, dice, forked, what, origin=run.run).drive()


def start(chaos: Chaos, name: str, parent: str | None = None) -> str:
    """Start a run under a key of its own: started again, it is the one that was started."""
    body = {"workflow": "chaos", "goal": name, **({"parent": parent} if parent else {})}
    while True:
        key = f"{chaos.seed} {name}"
        status, answer = chaos.call("POST", "/runs", body, token=chaos.agent, key=key)
        if status == 201:
            chaos.run_taken(answer["id"])
            return str(answer["id"])
        if answer["code"] == "run-ended":
            raise Ended
        if answer["code"] != "run-suspended":
            raise RuntimeError(f"start: {status} {answer}")
        time.sleep(PAUSE_SECONDS)


def fork(chaos: Chaos, run: str) -> str | None:
    seen = until_ended(chaos, run)
    if seen is None or seen["checkpoint"] is None:
        return None
    status, answer = chaos.call(
        "POST", f"/runs/{run}/fork", {"checkpoint": seen["checkpoint"]}, token=chaos.person("olga")
    )
    if status != 201:
        chaos.problem(f"fork of {run}: {status} {answer}")
        return None
    chaos.did["forks"] += 1
    chaos.run_taken(answer["id"])
    return str(answer["id"])


def until_ended(chaos: Chaos, run: str) -> dict[str, Any] | None:
    while not chaos.over.is_set():
        _, seen = chaos.call("GET", f"/runs/{run}", token=chaos.agent)
        if seen["ended_at"]:
            chaos.ended.add(run)
            return dict(seen)
        time.sleep(PAUSE_SECONDS)
    return None


@dataclass
class Driver:
    """The agent of one run. It keeps nothing that it could not find again after a restart."""

    chaos: Chaos
    dice: random.Random
    run: str
    task: Task
    origin: str = ""
    cancelled_after: int | None = None
    fails: bool = False
    session: int = 0
    version: int = 0
    restarts: int = 0
    states: int = 0  # how many turns the state that it sends tells of
    taken: int = 0  # and the one that the service has taken

    def drive(self) -> None:
        """Do the task, from its beginning each time that the agent is restarted."""
        while True:
            try:
                self._claim()
                for number, turn in enumerate(self.task.turns):
                    self._turn(turn, number)
                    if self.cancelled_after == number + 1:
                        self._cancel()
                        break
                self._finish()
            except Restarted:
                self.chaos.did["restarts"] += 1
                continue
            except Ended:
                pass
            until_ended(self.chaos, self.run)
            return

    def _post(self, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        if self.chaos.over.is_set():
            raise Ended
        return self.chaos.call("POST", path, body, token=self.chaos.agent)

    def _get(self, path: str) -> Any:
        if self.chaos.over.is_set():
            raise Ended
        status, answer = self.chaos.call("GET", path, token=self.chaos.agent)
        if status != 200:
            raise RuntimeError(f"{path}: {status} {answer}")
        return answer

    def _may_restart(self) -> None:
        if self.restarts < MOST_RESTARTS and self.dice.random() < RESTARTS:
            self.restarts += 1
            raise Restarted

    def _claim(self) -> None:
        """Take the run; whoever had it before is refused from now on."""
        before = self.session
        status, answer = self._post(f"/runs/{self.run}/claim", {})
        if status != 200:
            raise Ended
        self.session = answer["session"]
        if before:
            body = {"tokens": 1, "session": before}
            status, answer = self._post(f"/runs/{self.run}/usage", body)
            if status != 409 or answer["code"] not in ("stale-session", "run-ended"):
                self.chaos.problem(f"run {self.run}: an older session is answered {status}")
            self._look_at_state()

    def _look_at_state(self) -> None:
        """The state that was taken last is there: what a restarted agent goes on from."""
        checkpoint = self._get(f"/runs/{self.run}")["checkpoint"]
        state = checkpoint and self._get(f"/checkpoints/{checkpoint}")["agent_state"]
        turns = state["data"]["turns"] if state else 0
        if turns < self.taken:
            self.chaos.problem(f"run {self.run}: the state of turn {self.taken} was lost")

    def _turn(self, turn: Turn, number: int) -> None:
        if number == 1 and self.task.child:
            self._child()
        # One that does its task again puts no older state than the one that it goes on from.
        self.states = max(self.states, number + 1)
        state = {"format": "chaos", "version": "1", "data": {"turns": self.states}}
        steps = [self._step(tool, key) for tool, key in turn]
        steps[0]["agent_state"] = state
        parallel = {"parallel": True} if self.task.parallel and len(turn) > 1 else {}
        self._propose({"steps": steps, "session": self.session, **parallel})
        if not self.origin:  # of a call that its origin has made a fork's state is not taken
            self.taken = self.states
        self._may_restart()
        states = self._settled()
        for tool, key in turn:
            if states[key] == "revised":  # asked for changes, it proposes another call
                self._propose({"steps": [self._step(tool, f"{key}'")], "session": self.session})
                self._settled()
        self._may_restart()

    def _step(self, tool: str, key: str) -> dict[str, Any]:
        arguments = {"run": self.origin or self.run, "key": key}
        return {"tool": f"do.{tool}", "arguments": arguments, "key": key}

    def _propose(self, body: dict[str, Any]) -> None:
        while True:
            status, answer = self._post(f"/runs/{self.run}/steps", body)
            if status in (200, 201):
                self.chaos.taken.steps.update(step["id"] for step in answer["steps"])
                return
            self._wait_or_end(answer)

    def _wait_or_end(self, refusal: dict[str, Any]) -> None:
        if refusal["code"] == "run-ended":
            raise Ended
        if refusal["code"] not in ("run-suspended", "steps-outstanding"):
            raise RuntimeError(f"run {self.run}: {refusal}")
        self._changed()

    def _changed(self) -> dict[str, Any]:
        """The run once it has changed, or after a while."""
        query = f"?wait={HELD_SECONDS}&after_version={self.version}" if self.version else ""
        seen: dict[str, Any] = self._get(f"/runs/{self.run}{query}")
        if seen["state_version"] < self.version:
            self.chaos.problem(f"run {self.run}: an older version than was seen")
        self.version = seen["state_version"]
        return seen

    def _settled(self) -> dict[str, str]:
        """Wait until every step is settled and the run goes on; the steps' states by their keys.

        A fork's are those of its origin too, where they are the same step. Raises Ended.
        """
        while True:
            seen = self._changed()
            if seen["ended_at"]:
                raise Ended
            steps = self._get(f"/runs/{self.run}/steps")["results"]
            for step in steps:
                if step["tool"] == "do.move" and not step["settled_at"]:
                    self._move(step)
            if seen["status"] == "running" and all(step["settled_at"] for step in steps):
                return _Known({step["key"]: step["status"] for step in steps})

    # What the agent runs itself

    def _move(self, step: dict[str, Any]) -> None:
        effect = Effect("move", step["id"])
        if step["status"] == "unknown":
            self._say_what_became_of(effect)
        elif step["status"] == "ready":
            body = {"session": self.session}
            status, claimed = self._post(f"/steps/{step['id']}/claim", body)
            if status == 200:
                self._make(effect, claimed)

    def _make(self, effect: Effect, claimed: dict[str, Any]) -> None:
        way = self.dice.choice(("plain", "plain", "plain", "before", "after", "slow"))
        if way == "before" and not self.chaos.ledger.calm:
            raise Restarted
        arguments = claimed["arguments"]
        whose = (effect.name, arguments["run"], arguments["key"])
        # Where a person has had it ruled out meanwhile, nothing is done, and that is what is said.
        made = self.chaos.ledger.perform(effect, whose, time.time())
        if way == "after" and not self.chaos.ledger.calm:
            raise Restarted
        if way == "slow":  # its lease is over by then: a late receipt is a fact all the same
            time.sleep(LEASE_SECONDS + 1)
        said = (
            {"outcome": "succeeded", "result": {"done": "move"}} if made else {"outcome": "failed"}
        )
        body = {"fence": claimed["fence"], **said}
        status, answer = self._post(f"/attempts/{claimed['attempt']}/receipt", body)
        if status not in (200, 201):
            self.chaos.problem(f"run {self.run}: a receipt is answered {status} {answer}")

    def _say_what_became_of(self, effect: Effect) -> None:
        happened = self.chaos.ledger.happened(effect)
        outcome = "performed" if happened else "not_performed"
        body = {"outcome": outcome, "evidence": "the ledger"}
        status, answer = self._post(f"/steps/{effect.key}/reconciliation", body)
        if status != 200 and answer["code"] != "not-unknown":
            self.chaos.problem(f"run {self.run}: a finding is answered {status} {answer}")

    # Children, and the end

    def _child(self) -> None:
        child = start(self.chaos, f"child of {self.run}", self.run)
        self.chaos.did["children"] += 1
        turns: list[Turn] = [[("note", "c")], [("pay", "d")]]
        what = Task(turns[: self.dice.randint(1, 2)], parallel=False, child=False)
        Driver(self.chaos, self.dice, child, what).drive()

    def _cancel(self) -> None:
        body = {"compensate": True}
        path = f"/runs/{self.run}/cancel"
        self.chaos.call("POST", path, body, token=self.chaos.person("olga"))
        self.chaos.did["cancels"] += 1
        raise Ended

    def _finish(self) -> None:
        verb, body = ("fail", {"error": {}}) if self.fails else ("complete", {"output": {}})
        while True:
            status, answer = self._post(
                f"/runs/{self.run}/{verb}", {**body, "session": self.session}
            )
            if status == 200:
                return
            self._wait_or_end(answer)


class _Known(dict[str, str]):
    """States by key; one that is not the run's own was settled in the run it was forked from."""

    def __missing__(self, key: str) -> str:
        return "succeeded"
