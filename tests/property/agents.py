"""What an agent does, right and wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any
from uuid import UUID

from approvals.services import decisions
from config.errors import Problem
from interrupts.effects import Call
from interrupts.services import (
    attempts,
    checkpoints,
    freezes,
    holds,
    responses,
    runs,
    starting,
    steps,
)
from interrupts.services.holds import Asked
from tests.property.actions import (
    MOST_RUNS,
    MOST_STEPS,
    action,
    has_live_run,
    indexes,
    number,
    one_of,
    tools,
    when,
    yes_or_no,
)
from tests.property.facts import OPEN_STEPS, Row
from tests.property.stage import Stage


class Agents(Stage):
    """Proposes, claims, reports, asks, ends, and oversteps."""

    def begin(self, limited: bool, below: bool, groups: list[list[str]]) -> None:
        """There is something to do from the first step on."""
        self.start(0, below=False, for_rosa=limited, limited=limited)
        self.now = self.outside.look()
        if below:
            self.start(0, below=True, for_rosa=False, limited=False)
            self.now = self.outside.look()
        for index, names in enumerate(groups):
            self.propose(index, names, parallel=index == 1, alike=False, key=None)

    @when(lambda self: len(self.now.runs) < MOST_RUNS)
    @action(weight=2, index=indexes, below=yes_or_no, for_rosa=yes_or_no, limited=yes_or_no)
    def start(self, index: int, below: bool, for_rosa: bool, limited: bool) -> None:
        more: dict[str, Any] = (
            {"budget": {"steps": 6, "tokens": 100}, "idle_after": 50} if limited else {}
        )
        if for_rosa:
            more["requested_by"] = self.principal("rosa").name
        if below and self.now.live_runs:
            more["parent"] = UUID(self.pick(self.now.live_runs, index)["id"])
        self.do(lambda: runs.start_run(self.world.agent, workflow="w", goal="g", **more))

    @has_live_run
    @when(lambda self: len(self.now.steps) < MOST_STEPS)
    @action(
        weight=10,
        index=indexes,
        names=tools,
        parallel=yes_or_no,
        alike=yes_or_no,
        key=one_of(None, None, "a", "b"),
    )
    def propose(
        self, index: int, names: list[str], parallel: bool, alike: bool, key: str | None
    ) -> None:
        proposals = []
        for name in names:
            self.n += not alike
            self.amounts.setdefault(self.n, {None})
            proposals.append({"tool": name, "arguments": {"n": self.n}})
        if key is not None:
            proposals[0]["key"] = key
        run = self.going_at(index)
        self.do(lambda: self.proposed(run, proposals, parallel))

    def proposed(self, run: UUID, proposals: list[dict[str, Any]], parallel: bool) -> None:
        """One key is one step: whoever proposes it again gets that step, or is told of it."""
        made, _ = steps.propose(self.world.agent, run, proposals=proposals, parallel=parallel)
        for step, proposal in zip(made, proposals, strict=True):
            said = json.dumps([proposal["tool"], proposal["arguments"]])
            assert self.proposals.setdefault(str(step.pk), said) == said, "a key names two calls"

    def claimable(self) -> list[Row]:
        return [
            one for one in self.now.of("steps", executor="agent") if one["status"] in OPEN_STEPS
        ]

    @when(lambda self: self.claimable())
    @action(weight=6, index=indexes)
    def claim(self, index: int) -> None:
        step = self.pick(self.claimable(), index)
        self.do(lambda: self.claimed(UUID(step["id"])))

    def claimed(self, step: UUID) -> None:
        attempt, row, arguments = starting.claim_step(self.world.agent, step)
        self.claims.append((attempt.pk, attempt.fence, str(step)))
        self.begins(
            Call(
                tool=row.tool_name,
                tool_version=row.tool_number,
                arguments=arguments,
                run=str(row.run_id),
                step=str(step),
                attempt=str(attempt.pk),
                idempotency_key=str(step),
                timeout=1,
            )
        )

    @when(lambda self: self.claims)
    @action(
        weight=6,
        index=indexes,
        outcome=one_of("succeeded", "failed", "not_performed", "unknown"),
    )
    def report(self, index: int, outcome: str) -> None:
        """A receipt of any claim, the newest or one long superseded, once or again: the truth."""
        attempt, fence, step = self.pick(self.claims, index)
        if outcome == "succeeded":
            self.far.performed[step] = 1  # an agent knows what it did under the step's key
        elif self.far.performed[step]:
            outcome = "unknown"
        self.do(lambda: attempts.report(self.world.agent, attempt, fence=fence, outcome=outcome))

    @when(lambda self: self.claims)
    @action(index=indexes, performs=yes_or_no)
    def act_and_say_nothing(self, index: int, performs: bool) -> None:
        """The agent acts and is gone before its receipt; or it only says that it is alive."""
        attempt, fence, step = self.pick(self.claims, index)
        live = any(one["id"] == str(attempt) for one in self.now.live_attempts)
        if performs and live:
            self.far.performed[step] = 1
        self.do(lambda: attempts.heartbeat(self.world.agent, attempt, fence=fence))

    @when(lambda self: self.now.of("steps", executor="agent", status="unknown"))
    @action(weight=4, index=indexes)
    def agent_finds_out(self, index: int) -> None:
        step = self.pick(self.now.of("steps", executor="agent", status="unknown"), index)["id"]
        outcome = "performed" if self.far.performed[step] else "not_performed"
        self.do(
            lambda: attempts.reconcile(
                self.world.agent, UUID(step), outcome=outcome, evidence="its log"
            )
        )

    @has_live_run
    @action(
        weight=2,
        index=indexes,
        tokens=number(0, 70),
        claims=yes_or_no,
        keeps=yes_or_no,
    )
    def lives_on(self, index: int, tokens: int, claims: bool, keeps: bool) -> None:
        run = self.run_at(index)
        if claims:
            self.do(lambda: runs.claim_run(self.world.agent, run))
        elif keeps:
            state = {"format": "f", "version": "1", "data": [tokens]}
            self.do(lambda: checkpoints.put_state(self.world.agent, run, agent_state=state))
        else:
            used = Decimal(tokens) / 10
            self.do(lambda: runs.report_usage(self.world.agent, run, tokens=tokens, seconds=used))

    @has_live_run
    @action(
        index=indexes,
        reason=one_of("agent_requested", "input_required"),
        expires=one_of(None, "cancel", "escalate"),
    )
    def asks(self, index: int, reason: str, expires: str | None) -> None:
        more = {"expires_in": 40, "on_expiry": expires} if expires else {}
        asked = Asked(reason=reason, **more)
        run = self.run_at(index)
        self.do(lambda: holds.open_interrupt(self.world.agent, run, asked=asked))

    @when(lambda self: len(self.now.live_runs) > 1)
    @action(weight=2, index=indexes, fails=yes_or_no)
    def ends(self, index: int, fails: bool) -> None:
        run = self.run_at(index)
        if fails:
            self.do(lambda: runs.fail_run(self.world.agent, run, error="no"))
        else:
            self.do(lambda: runs.complete_run(self.world.agent, run, output=None))

    @when(lambda self: self.now.steps)
    @action(weight=1, index=indexes)
    def oversteps(self, index: int) -> None:
        """An agent does what is for people, and another agent what is for this one: refused."""
        agent, other = self.world.agent, self.world.other
        acts: list[Callable[[], Any]] = [partial(freezes.freeze, agent, scope="tenant")]
        for gate in self.now.gates.values():
            shown = {"verdict": "approve", "digest": gate["digest"]}
            acts.append(partial(decisions.decide_gate, agent, UUID(gate["id"]), **shown))
        for one in self.now.of("interrupts", status="open"):
            said = {"checkpoint": UUID(one["checkpoint"]), "resolution": "cancel"}
            acts.append(partial(responses.respond, agent, UUID(one["id"]), **said))
        for run in self.now.live_runs:
            acts.append(partial(runs.cancel_run, agent, UUID(run["id"])))
            acts.append(partial(runs.fail_run, other, UUID(run["id"]), error="mine now"))
        try:
            self.pick(acts, index)()
        except Problem:
            assert self.outside.look().everything == self.now.everything
        else:
            raise AssertionError("nobody kept the agent from it")
