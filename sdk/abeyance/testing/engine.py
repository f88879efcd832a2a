"""The states of runs and steps as the real service moves them, and the script in a person's place.

What is scripted happens while the agent waits, not before: so an agent meets the same answers in the
same order as it would from the service.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from abeyance.errors import Refused
from abeyance.testing import documents
from abeyance.testing.documents import Shown, instant, new_id
from abeyance.testing.script import Made, Reply, ToolScript, Verdict
from abeyance.values import ENDED_RUN

QUESTIONS = {
    "approval_required": "May this call be made?",
    "outcome_unknown": "Nobody knows whether this call was performed. What happened?",
    "operator_stop": "The run was stopped. May it go on?",
}


class VirtualClock:
    """Passes at once the time that is waited."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds

    async def asleep(self, seconds: float) -> None:
        self.seconds += seconds
        await asyncio.sleep(0)


class Engine:
    """Everything that the service in memory holds."""

    def __init__(self, tools: Mapping[str, Any], agent_tools: Collection[str]) -> None:
        self.clock = VirtualClock()
        self.tools, self.agent_tools = tools, frozenset(agent_tools)
        self.scripts: dict[str, ToolScript] = defaultdict(ToolScript)
        self.replies: dict[str, Reply] = {}
        self.runs: dict[str, Shown] = {}
        self.steps: dict[str, Shown] = {}
        self.interrupts: dict[str, Shown] = {}
        self.checkpoints: dict[str, Shown] = {}
        self.attempts: dict[str, Shown] = {}
        self.questions: dict[str, Shown] = {}
        self.dry_runs: dict[str, Shown] = {}
        self.made: list[Made] = []
        self._pending: dict[str, Verdict] = {}
        self._stops: dict[str, tuple[str | None, bool]] = {}

    # What a test does

    def stop(self, *, guidance: str | None, cancel: bool) -> None:
        run = list(self.runs.values())[-1]
        interrupt = self.open(run, "operator_stop")
        self._stops[interrupt["id"]] = (guidance, cancel)

    # What happens while the agent waits

    def pass_by(self, run: Shown) -> None:
        """Let one thing happen to the run of all that is scripted, in the order people would act."""
        if run["status"] in ENDED_RUN:
            return
        for step in self._open_steps(run):
            verdict = self._pending.get(step["id"])
            if step["status"] == "waiting" and verdict and self._asks(run, step, verdict):
                return
            if step["status"] in {"waiting", "unknown"} and verdict and verdict.kind != "wait":
                self._decided(run, step, self._pending.pop(step["id"]))
                return
        for interrupt in self._open_interrupts(run):
            if self._answered(run, interrupt):
                return
        if run["status"] == "running":
            self._work(run)

    def _asks(self, run: Shown, step: Shown, verdict: Verdict) -> bool:
        """Say whether a person asks the agent first; decided is once there is an answer."""
        if not step["questions"] and verdict.questions:
            asked = documents.question(step, verdict.questions[0], self.clock.now())
            self.questions[asked["id"]] = asked
            self._pending[step["id"]] = replace(verdict, questions=verdict.questions[1:])
            self._show_questions(run)
            self.touch(run)
            return True
        return bool(step["questions"])

    def answer(self, run: Shown, question: Shown, text: str) -> None:
        question.update(answer=text, answered_at=self._at)
        self._show_questions(run)
        self.touch(run)

    def _show_questions(self, run: Shown) -> None:
        """Show on the run and its steps what waits for an answer."""
        run["questions"] = []
        for step in self._of(run, self.steps.values(), lambda _: True):
            step["questions"] = [
                documents.open_question(one)
                for one in self.questions.values()
                if one["step"] == step["id"]
                and one["answer"] is None
                and step["status"] == "waiting"
            ]
            run["questions"] = [*run["questions"], *step["questions"]]

    def _decided(self, run: Shown, step: Shown, verdict: Verdict) -> None:
        """What a person says, of a gate or of an outcome that nobody knew."""
        if step["status"] == "unknown":
            self._found_out(run, step, verdict)
            return
        if verdict.kind == "approve":
            self._approved(step, verdict)
        elif verdict.kind == "respond":
            self.settle(step, "succeeded", source="person", result=verdict.value)
        else:
            status = "rejected" if verdict.kind == "reject" else "revised"
            said = {"reason": verdict.reason, "reason_code": verdict.code}
            step.update(status=status, **said, settled_at=self._at)
        self.resolve(run, step["interrupt"], "revise" if step["status"] == "revised" else "resume")

    def _approved(self, step: Shown, verdict: Verdict) -> None:
        if verdict.arguments is not None:
            step["arguments"] = dict(verdict.arguments)
            step["digest"] = documents.step_digest(step["tool"], step["arguments"])
        step.update(status="ready", authorization=documents.authorization(step, "decision"))

    def _found_out(self, run: Shown, step: Shown, verdict: Verdict) -> None:
        if verdict.found == "never":
            self.end(run, "failed", error="an outcome could not be found out")
            return
        outcome = "succeeded" if verdict.found == "performed" else "failed"
        result = self._result(step) if outcome == "succeeded" else None
        self.settle(step, outcome, source="person", result=result)
        self.resolve(run, step["interrupt"], "resume")

    def _answered(self, run: Shown, interrupt: Shown) -> bool:
        """Answer a question, or let a stopped run go on, where the script says how."""
        question = interrupt["required_response"]["question"]
        if interrupt["id"] in self._stops:
            guidance, cancel = self._stops.pop(interrupt["id"])
            if cancel:
                self.end(run, "cancelled")
                return True
            self._guide(run, interrupt, guidance)
            return True
        if interrupt["reason"] != "input_required" or question not in self.replies:
            return False
        reply = self.replies[question]
        if reply.guidance is None:
            self.resolve(run, interrupt["id"], "resume", reply.value)
        else:
            self._guide(run, interrupt, reply.guidance)
        return True

    def _guide(self, run: Shown, interrupt: Shown, text: str | None) -> None:
        if text is None:
            self.resolve(run, interrupt["id"], "resume")
            return
        told = {"id": new_id(), "text": text, "by": "olga", "at": self._at, "acknowledged": False}
        run["guidance"] = [*run["guidance"], told]
        self.resolve(run, interrupt["id"], "revise", {"guidance": text})

    def _work(self, run: Shown) -> None:
        """Run the next step that the service runs, once nothing of its group is undecided."""
        for step in self._open_steps(run):
            undecided = [
                one
                for one in self._open_steps(run)
                if one["group"] == step["group"] and one["status"] == "waiting"
            ]
            if step["status"] == "ready" and not undecided and step["tool"] not in self.agent_tools:
                self._run(run, step, self._pending.pop(step["id"], Verdict()))
                return

    def _run(self, run: Shown, step: Shown, verdict: Verdict) -> None:
        step["attempts"] += 1
        if verdict.kind == "fail":
            self.settle(step, "failed", source="executor", error=verdict.reason)
        elif verdict.kind == "lose":
            self.become_unknown(run, step, verdict)
        else:
            try:
                self.settle(step, "succeeded", source="executor", result=self._result(step))
            except Refused as refused:
                self.settle(step, "failed", source="executor", error=str(refused))
        self.touch(run)

    def _result(self, step: Shown) -> Any:
        """Make the call, as the far end would."""
        self.note_made(step)
        scripted = self.tools[step["tool"]]
        return scripted(step["arguments"]) if callable(scripted) else scripted

    # Moves

    @property
    def _at(self) -> str:
        return instant(self.clock.now())

    def touch(self, run: Shown) -> None:
        run["state_version"] += 1
        run["updated_at"] = self._at

    def note_made(self, step: Shown) -> None:
        self.made.append(Made(step["run"], step["key"], step["tool"], step["arguments"]))

    def judge(self, run: Shown, step: Shown, verdict: Verdict) -> None:
        """Say of a new step what policy says, and keep what is to become of it."""
        if verdict.kind == "deny":
            step.update(status="denied", reason=verdict.reason, settled_at=self._at)
            return
        self._pending[step["id"]] = verdict
        if verdict.asks:
            step.update(status="waiting", gate=new_id())
            interrupt = self.open(run, "approval_required", step=step["id"], gate=step["gate"])
            step["interrupt"] = interrupt["id"]
        else:
            step["authorization"] = documents.authorization(step, "policy")
            run["usage"]["steps"] += 1

    def become_unknown(self, run: Shown, step: Shown, verdict: Verdict | None) -> None:
        step.update(status="unknown", outcome="unknown", error="the answer was lost")
        step["interrupt"] = self.open(run, "outcome_unknown", step=step["id"])["id"]
        if verdict is not None:
            self._pending[step["id"]] = verdict

    def settle(self, step: Shown, outcome: str, *, source: str, **seen: Any) -> None:
        """Write the receipt and the step's outcome."""
        written = documents.receipt(step, outcome, source, self.clock.now(), **seen)
        step["receipts"] = [*step["receipts"], written]
        known = {"result": None, "error": None, "external_id": None} | seen
        step.update(
            {name: known[name] for name in ("result", "error", "external_id")},
            status=outcome,
            outcome=outcome,
            settled_at=self._at,
        )

    def open(self, run: Shown, reason: str, question: str = "", **more: Any) -> Shown:
        """Open an interrupt: the run starts nothing until it is resolved."""
        asked = question or QUESTIONS[reason]
        made = documents.interrupt(run, reason, asked, self.clock.now(), **more)
        made.update({name: more[name] for name in ("step", "gate") if name in more})
        self.interrupts[made["id"]] = made
        run["open_interrupts"] = [*run["open_interrupts"], made["id"]]
        if run["status"] == "running":
            run.update(status="suspended", suspension="safely_suspended", epoch=run["epoch"] + 1)
        self.touch(run)
        return made

    def resolve(self, run: Shown, interrupt_id: str, resolution: str, value: Any = None) -> None:
        interrupt = self.interrupts[interrupt_id]
        interrupt.update(
            status="resolved",
            resolution=resolution,
            response={
                "checkpoint": interrupt["checkpoint"],
                "resolution": resolution,
                "value": value,
                "note": None,
            },
            resolved_by={"kind": "user", "id": None, "name": None},
            resolved_at=self._at,
        )
        run["open_interrupts"] = [one for one in run["open_interrupts"] if one != interrupt_id]
        if not run["open_interrupts"] and run["status"] == "suspended":
            run.update(status="running", suspension=None)
        self.touch(run)

    def end(self, run: Shown, status: str, **more: Any) -> None:
        for step in self._open_steps(run):
            if step["status"] != "unknown":
                step.update(status="cancelled", outcome="not_performed", settled_at=self._at)
        resolution = "cancel" if status == "cancelled" else "resume"
        for interrupt in self._open_interrupts(run):
            self.resolve(run, interrupt["id"], resolution)
        self._show_questions(run)
        run.update(status=status, suspension=None, ended_at=self._at, **more)
        self.touch(run)

    def _open_steps(self, run: Shown) -> list[Shown]:
        return self._of(run, self.steps.values(), lambda one: one["settled_at"] is None)

    def _open_interrupts(self, run: Shown) -> list[Shown]:
        return self._of(run, self.interrupts.values(), lambda one: one["status"] == "open")

    def outstanding(self, run: Shown) -> bool:
        return bool(self._open_steps(run))

    def _of(self, run: Shown, rows: Iterable[Shown], holds: Callable[[Shown], bool]) -> list[Shown]:
        return [one for one in rows if one["run"] == run["id"] and holds(one)]
