"""What people do: they stop, answer, decide, take back, cancel and undo."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

from approvals.services import decisions, gates
from interrupts.services import (
    compensating,
    forks,
    holds,
    responses,
    runs,
)
from interrupts.services.holds import Asked
from tests.property.actions import (
    MOST_RUNS,
    action,
    has_live_run,
    indexes,
    one_of,
    when,
    yes_or_no,
)
from tests.property.facts import ENDED, OPEN_GATES, Row
from tests.property.stage import Stage
from tests.property.world import TOOLS

RESUMED = {
    "extension": {"value": {"steps": 999, "tokens": 99999}},
    "input": {"value": "so"},
}


class People(Stage):
    """Some of them may, some may not."""

    def stop_run(self, run: UUID, by: str, in_flight: str) -> None:
        asked = Asked(reason="operator_stop", in_flight=in_flight)
        holds.open_interrupt(self.principal(by), run, asked=asked)

    @has_live_run
    @action(
        weight=2,
        index=indexes,
        by=one_of("olga", "alice", "rosa", "vera", "bob"),
        in_flight=one_of("finish", "cancel"),
    )
    def stop(self, index: int, by: str, in_flight: str) -> None:
        run = self.run_at(index)
        self.do(lambda: self.stop_run(run, by, in_flight))

    @when(lambda self: self.now.of("interrupts", status="open"))
    @action(
        weight=8,
        index=indexes,
        resolution=one_of("resume", "resume", "resume", "revise", "cancel"),
        by=one_of("olga", "olga", "ada", "rosa", "vera"),
        way=one_of("truth", "truth", "skip", "check_again", "unresolvable"),
    )
    def respond(self, index: int, resolution: str, by: str, way: str) -> None:
        one = self.pick(self.now.of("interrupts", status="open"), index)
        allowed = [each["resolution"] for each in one["allowed"]]
        if resolution not in allowed:
            resolution = allowed[0]
        more = self.answer(one, resolution, way)
        pk, at = UUID(one["id"]), UUID(one["checkpoint"])

        def act(by: str = by, **other: Any) -> Any:
            said = {"checkpoint": at, "resolution": resolution, **more, **other}
            return responses.respond(self.principal(by), pk, **said)

        self.answered.append(act)
        self.do(act)

    def answer(self, one: Row, resolution: str, way: str) -> dict[str, Any]:
        """What a person says: of an unknown outcome the truth, as they can see it now."""
        if resolution == "revise":
            waiting = [
                step["id"]
                for step in self.now.of("steps", run_id=one["run_id"])
                if step["status"] in ("waiting", "ready")
            ]
            return {"value": {"guidance": "not so", "withdraw": waiting[:1]}}
        if resolution == "compensate":
            return {"value": {"action": "leave" if way == "skip" else "try_again"}}
        if resolution == "resume" and one["reason"] == "outcome_unknown":
            return {"value": {"outcome": self.truth(one, way), "evidence": "looked"}}
        return RESUMED.get(one["kind"], {}) if resolution == "resume" else {}

    def truth(self, one: Row, way: str) -> str:
        key = one["step"]
        if way in ("check_again", "unresolvable"):
            return way
        still_under_way = self.far.lands(key)
        if self.far.performed[key]:
            return "performed"
        if still_under_way:
            # Somebody who looks too soon; what may be asked once more is, before it is sent.
            askable = "reconcile" in TOOLS[self.now.steps[key]["tool_name"]]
            return "not_performed" if askable else "check_again"
        return "skip" if way == "skip" else "not_performed"

    @when(lambda self: self.answered)
    @action(index=indexes, contrary=yes_or_no, by=one_of("olga", "ada"))
    def respond_again(self, index: int, contrary: bool, by: str) -> None:
        """Of an answer that was given, the same again changes nothing, and another is refused."""
        other = {"note": "another"} if contrary else {}
        act = self.pick(self.answered, index)
        self.do(lambda: act(by, **other))

    def open_gates(self) -> list[Row]:
        return [one for one in self.now.gates.values() if one["state"] in OPEN_GATES]

    @when(lambda self: self.now.gates)
    @action(
        weight=14,
        index=indexes,
        by=one_of("alice", "alice", "carol", "carol", "rosa", "ada", "bob", "vera"),
        verdict=one_of(*["approve"] * 5, "reject", "request_changes", "respond"),
        how=one_of(*["plain"] * 4, "edit", "hold", "stale", "unseen", "final"),
    )
    def decide(self, index: int, by: str, verdict: str, how: str) -> None:
        rows = list(self.now.gates.values()) if how == "final" else self.open_gates()
        if rows:
            gate = self.pick(rows, index)
            self.do(lambda: self.decided(gate, by, verdict, how))
            self.was_entitled(gate, by)

    def decided(self, gate: Row, by: str, verdict: str, how: str) -> None:
        pk, digest = UUID(gate["id"]), gate["digest"]
        if how == "unseen":
            typed = gate["required_confirmation"]
        else:
            shown = gates.look_at_gate(self.principal(by), pk).gate
            typed, digest = shown.required_confirmation, shown.digest
        more: dict[str, Any] = {"reason": None if verdict == "approve" else "because"}
        if how == "stale":
            digest = f"sha256:{'0' * 64}"
        if verdict == "respond":
            more["value"] = {"said": by}
        if verdict == "approve":
            more["confirmation"] = typed or True
        if verdict == "approve" and how == "edit":
            said = self.proposals.get(gate["step_id"])
            if said is not None:
                _, arguments = json.loads(said)
                amount = len(self.amounts[arguments["n"]])
                self.amounts[arguments["n"]].add(amount)
                more["arguments"] = {**arguments, "amount": amount}
        if verdict == "approve" and how == "hold":
            more["hold_seconds"] = 5
        made = decisions.decide_gate(self.principal(by), pk, verdict=verdict, digest=digest, **more)
        assert how != "stale" or made.replayed, "what was not shown was approved"
        assert (
            how != "final"
            or made.replayed
            or made.gate.state != gate["state"]
            or (gate["state"] in OPEN_GATES)
        )

    def was_entitled(self, gate: Row, by: str) -> None:
        """No decision is of somebody who may not."""
        now = self.outside.look()
        run = now.runs[gate["run_id"]]
        mine = str(self.principal(by).id)
        new = now.of("decisions", user_id=mine)
        if len(new) > len(self.now.of("decisions", user_id=mine)):
            assert mine in self.deciders(run), f"{by} may not decide this"

    @when(lambda self: self.now.of("decisions", counts=True))
    @action(weight=2, index=indexes)
    def take_back(self, index: int) -> None:
        one = self.pick(self.now.of("decisions", counts=True), index)
        by = next(p for p in self.world.people.values() if str(p.id) == one["user_id"])
        pks = UUID(one["gate_id"]), UUID(one["id"])
        self.do(lambda: decisions.withdraw_decision(by, *pks))

    @when(lambda self: self.now.gates)
    @action(weight=1, index=indexes)
    def look(self, index: int) -> None:
        """A look changes nothing but that somebody looked."""
        gate = UUID(self.pick(list(self.now.gates.values()), index)["id"])
        for who in (self.principal("vera"), self.world.agent):
            gates.look_at_gate(who, gate)
        assert self.outside.look().everything == self.now.everything

    @has_live_run
    @when(lambda self: self.n > 3)
    @action(weight=1, index=indexes, compensate=yes_or_no, by=one_of("olga", "alice"))
    def cancel(self, index: int, compensate: bool, by: str) -> None:
        run = self.run_at(index)
        self.do(lambda: runs.cancel_run(self.principal(by), run, compensate=compensate))

    @when(lambda self: self.now.of("steps", status="succeeded"))
    @action(weight=2, index=indexes, by=one_of("olga", "carol"))
    def undo(self, index: int, by: str) -> None:
        step = UUID(self.pick(self.now.of("steps", status="succeeded"), index)["id"])
        self.do(lambda: compensating.compensate_step(self.principal(by), step))

    def ended_runs(self) -> list[Row]:
        return [r for r in self.now.runs.values() if r["status"] in ENDED and r["checkpoint_id"]]

    @when(lambda self: self.ended_runs() and len(self.now.runs) < MOST_RUNS)
    @action(index=indexes)
    def fork(self, index: int) -> None:
        run = self.pick(self.ended_runs(), index)
        ids = UUID(run["id"]), UUID(run["checkpoint_id"])
        self.do(lambda: forks.fork_run(self.principal("olga"), ids[0], checkpoint=ids[1]))
