"""The service in memory: the paths of the API that agents use, answered as the real one answers."""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final

import httpx

from abeyance.testing import documents
from abeyance.testing.documents import Shown, new_id
from abeyance.testing.engine import Engine
from abeyance.testing.refusal import Refusal
from abeyance.testing.script import Unscripted
from abeyance.values import ENDED_RUN

FOREVER: Final = 24 * 3600.0  # of waiting for what nothing brings about
LEASE: Final = 60
OK, CREATED = 200, 201


class FakeService(Engine):
    """Answers requests; every rule of the API that an agent can meet is kept, and no other."""

    def __init__(self, tools: Mapping[str, Any], agent_tools: Any = ()) -> None:
        super().__init__(tools, agent_tools)
        self._proposed: dict[str, tuple[str, Any]] = {}
        self._replays: dict[str, httpx.Response] = {}
        self._lock = threading.RLock()
        self._idle = 0.0

    def handle(self, request: httpx.Request) -> httpx.Response:
        path = request.url.path.removeprefix("/api/v1/")
        with self._lock:
            key = request.headers.get("idempotency-key")
            if key in self._replays:
                return self._replays[key]
            try:
                status, document = self._route(request, path)
            except Refusal as refusal:
                return httpx.Response(refusal.status, json=refusal.document)
            answer = httpx.Response(status, json=document)
            if key is not None:
                self._replays[key] = answer
            return answer

    def _route(self, request: httpx.Request, path: str) -> tuple[int, Shown]:
        for method, pattern, answer in ROUTES:
            found = pattern.fullmatch(path)
            if found and method == request.method:
                if method == "GET":
                    return OK, answer(self, dict(request.url.params), *found.groups())
                made: tuple[int, Shown] = answer(self, json.loads(request.content), *found.groups())
                return made
        raise Refusal(404, "not-found", f"{request.method} {path} is nothing that agents call.")

    # Looking

    def get_run(self, query: Shown, run_id: str) -> Shown:
        run = self._named(self.runs, run_id)
        self._wait(run, query, f"run {run_id}")
        return run

    def get_step(self, query: Shown, step_id: str) -> Shown:
        step = self._named(self.steps, step_id)
        run = self.runs[step["run"]]
        self._wait(run, query, f"step {step['key']} ({step['tool']}), which is {step['status']}")
        return step | {"state_version": run["state_version"]}

    def get_interrupt(self, query: Shown, interrupt_id: str) -> Shown:
        interrupt = self._named(self.interrupts, interrupt_id)
        run = self.runs[interrupt["run"]]
        self._wait(run, query, f"an answer to {interrupt['required_response']['question']!r}")
        return self._interrupt(interrupt)

    def get_interrupts(self, query: Shown) -> Shown:
        rows = [
            self._interrupt(one)
            for one in self.interrupts.values()
            if one["run"] == query.get("run") and one["reason"] == query.get("reason")
        ]
        return {"results": rows, "next": None, "previous": None}

    def get_checkpoint(self, _query: Shown, checkpoint_id: str) -> Shown:
        return self._named(self.checkpoints, checkpoint_id)

    def get_tool(self, _query: Shown, name: str) -> Shown:
        if name in self.agent_tools:
            return documents.tool(name, {"kind": "agent", "lease": LEASE})
        if name in self.tools:
            return documents.tool(name, {"kind": "http", "timeout": 10})
        raise Refusal(404, "not-found")

    def _interrupt(self, row: Shown) -> Shown:
        run = self.runs[row["run"]]
        return row | {"state_version": run["state_version"], "suspension": run["suspension"]}

    def _wait(self, run: Shown, query: Shown, for_what: str) -> None:
        """Let scripted things happen until the run has changed, or the time is over."""
        seconds, after = float(query.get("wait", 0)), int(query.get("after_version", 0))
        if not seconds or run["state_version"] > after:
            return
        self.pass_by(run)
        if run["state_version"] > after:
            self._idle = 0.0
            return
        self.clock.sleep(seconds)
        self._idle += seconds
        if self._idle > FOREVER:
            raise Unscripted(f"the agent waits for {for_what}, and nothing will bring it about")

    def _named(self, rows: Mapping[str, Shown], row_id: str) -> Shown:
        if row_id not in rows:
            raise Refusal(404, "not-found")
        return rows[row_id]

    # Runs

    def post_run(self, body: Shown) -> tuple[int, Shown]:
        run = documents.run(body, self.clock.now())
        self.runs[run["id"]] = run
        if "agent_state" in body:
            self._put_state(run, body["agent_state"])
        return CREATED, run

    def post_claim_run(self, _body: Shown, run_id: str) -> tuple[int, Shown]:
        run = self._open_run(run_id)
        run["session"] += 1
        self.touch(run)
        return OK, {
            "session": run["session"],
            "lease_expires_at": None,
            "state_version": run["state_version"],
        }

    def post_usage(self, body: Shown, run_id: str) -> tuple[int, Shown]:
        run = self._driven(body, run_id)
        usage = run["usage"]
        for name in ("tokens", "seconds"):
            usage[name] += body.get(name, 0)
        usage["cost"] = str(Decimal(usage["cost"]) + Decimal(body.get("cost", "0")))
        return OK, {
            "stop_requested": run["status"] != "running",
            "guidance": [one for one in run["guidance"] if not one["acknowledged"]],
            "usage": usage,
            "state_version": run["state_version"],
        }

    def post_acknowledge(self, body: Shown, run_id: str) -> tuple[int, Shown]:
        run = self._driven(body, run_id)
        read = set(body["guidance"])
        run["guidance"] = [
            one | {"acknowledged": one["acknowledged"] or one["id"] in read}
            for one in run["guidance"]
        ]
        self.touch(run)
        return OK, run

    def post_checkpoint(self, body: Shown, run_id: str) -> tuple[int, Shown]:
        return CREATED, self._put_state(self._driven(body, run_id), body["agent_state"])

    def post_interrupt(self, body: Shown, run_id: str) -> tuple[int, Shown]:
        run = self._driven(body, run_id)
        for one in run["open_interrupts"]:
            opened = self.interrupts[one]
            same = opened["required_response"]["question"] == body.get("question")
            if same and opened["reason"] == body["reason"]:
                return OK, self._interrupt(opened)
        more = {name: body[name] for name in ("schema", "evidence", "note") if name in body}
        return CREATED, self._interrupt(
            self.open(run, body["reason"], body.get("question", ""), **more)
        )

    def post_end(self, body: Shown, run_id: str, verb: str) -> tuple[int, Shown]:
        run = self._driven(body, run_id)
        if run["status"] == "suspended":
            raise Refusal(409, "run-suspended")
        if self.outstanding(run):
            raise Refusal(409, "steps-outstanding")
        if verb == "complete":
            self.end(run, "completed", output=body["output"])
        else:
            self.end(run, "failed", error=body["error"])
        return OK, run

    def _open_run(self, run_id: str) -> Shown:
        run = self._named(self.runs, run_id)
        if run["status"] in ENDED_RUN:
            raise Refusal(409, "run-ended")
        return run

    def _driven(self, body: Shown, run_id: str) -> Shown:
        """The run that the caller drives."""
        self._check_session(self._named(self.runs, run_id), body)
        return self._open_run(run_id)

    def _check_session(self, run: Shown, body: Shown) -> None:
        session = body.get("session", run["session"])
        if session < run["session"]:
            raise Refusal(409, "stale-session", "A newer session drives this run.")

    def _put_state(self, run: Shown, given: Shown) -> Shown:
        state = {name: given[name] for name in ("format", "version")}
        if "data" in given:
            state["data"] = given["data"]
        else:
            base = self.checkpoints.get(given["base"], {}).get("agent_state", {})
            if {name: base.get(name) for name in state} != state:
                raise Refusal(422, "invalid-body", "The base is of another format or version.")
            state["data"] = documents.grown(base["data"], given["append"])
        sequence = sum(one["run"] == run["id"] for one in self.checkpoints.values()) + 1
        made = documents.checkpoint(run, state, sequence, self.clock.now())
        self.checkpoints[made["id"]] = made
        run["checkpoint"] = made["id"]
        return made

    # Steps

    def post_steps(self, body: Shown, run_id: str) -> tuple[int, Shown]:
        run = self._named(self.runs, run_id)
        self._check_session(run, body)
        single = "steps" not in body
        proposals = [body] if single else body["steps"]
        known = [self._known(run, one) for one in proposals]
        new = [one for one, step in zip(proposals, known, strict=True) if step is None]
        made = iter(self._record(run, new, single=single) if new else ())
        rows = [step or next(made) for step in known]
        shown = [one | {"state_version": run["state_version"]} for one in rows]
        told = shown[0] if single else {"steps": shown, "state_version": run["state_version"]}
        return (CREATED if new else OK), told

    def _known(self, run: Shown, proposal: Shown) -> Shown | None:
        """The step that the proposal's key names already."""
        key = proposal.get("key")
        for step in self.steps.values():
            if key is not None and step["run"] == run["id"] and step["key"] == key:
                if self._proposed[step["id"]] != (proposal["tool"], proposal["arguments"]):
                    raise Refusal(409, "step-key-reused", f"{key!r} names another call.")
                return step
        return None

    def _record(self, run: Shown, proposals: list[Shown], *, single: bool) -> list[Shown]:
        self._open_run(run["id"])
        if run["status"] == "suspended":
            raise Refusal(409, "run-suspended")
        asked: Counter[str] = Counter()
        for index, proposal in enumerate(proposals):
            at = "" if single else f"/steps/{index}"
            self._check(proposal, at, asked[proposal["tool"]])
            asked[proposal["tool"]] += 1
        position, group = len(self.steps), new_id()
        made = []
        for number, proposal in enumerate(proposals, position + 1):
            step = documents.step(run, proposal, number, group, self.clock.now())
            self.steps[step["id"]] = step
            self._proposed[step["id"]] = (proposal["tool"], proposal["arguments"])
            if "dry_run" in proposal:
                self.dry_runs[step["id"]] = proposal["dry_run"]
            made.append(step)
        for step in made:
            self.judge(run, step, self.scripts[step["tool"]].next())
        for state in [one["agent_state"] for one in proposals if "agent_state" in one][-1:]:
            self._put_state(run, state)
        self.touch(run)
        return made

    def post_answer(self, body: Shown, gate_id: str, question_id: str) -> tuple[int, Shown]:
        question = self._named(self.questions, question_id)
        if question["gate"] != gate_id:
            raise Refusal(404, "not-found")
        run = self._driven(body, self.steps[question["step"]]["run"])
        if question["answer"] not in {None, body["text"]}:
            raise Refusal(409, "already-answered")
        if question["answer"] is None:
            if self.steps[question["step"]]["status"] != "waiting":
                raise Refusal(409, "already-decided")
            self.answer(run, question, body["text"])
        return OK, documents.asked(question, run)

    def _check(self, proposal: Shown, at: str, number: int) -> None:
        """Refuse an unknown tool, and arguments of which the script says that they do not fit."""
        tool = proposal["tool"]
        if tool not in self.tools and tool not in self.agent_tools:
            raise Refusal(422, "unknown-tool", f"There is no tool {tool!r}.")
        verdicts = self.scripts[tool].verdicts
        if number < len(verdicts) and verdicts[number].kind == "misfit":
            verdict = verdicts[number]
            del verdicts[number]
            fault = {"pointer": f"{at}/arguments{verdict.pointer}", "detail": verdict.reason}
            raise Refusal(
                422, "invalid-arguments", "The arguments break the schema.", errors=[fault]
            )

    def post_claim_step(self, body: Shown, step_id: str) -> tuple[int, Shown]:
        step = self._named(self.steps, step_id)
        run = self._driven(body, step["run"])
        if step["tool"] not in self.agent_tools:
            raise Refusal(409, "not-authorized", "The service runs this step itself.")
        if step["status"] in {"executing", "unknown"} or step["settled_at"]:
            raise Refusal(409, "already-claimed")
        if run["status"] == "suspended":
            raise Refusal(409, "run-suspended")
        step["attempts"] += 1
        step["status"] = "executing"
        attempt = {"id": new_id(), "step": step_id, "fence": step["attempts"], "outcome": None}
        self.attempts[attempt["id"]] = attempt
        self.touch(run)
        return OK, {
            "attempt": attempt["id"],
            "fence": attempt["fence"],
            "epoch": run["epoch"],
            "idempotency_key": step_id,
            "arguments": step["arguments"],
            "digest": step["digest"],
            "lease_expires_at": documents.instant(self.clock.now() + LEASE),
            "state_version": run["state_version"],
        }

    def post_heartbeat(self, body: Shown, attempt_id: str) -> tuple[int, Shown]:
        attempt = self._named(self.attempts, attempt_id)
        if attempt["outcome"] is not None or attempt["fence"] != body["fence"]:
            raise Refusal(409, "stale-claim")
        expires = documents.instant(self.clock.now() + LEASE)
        return OK, {"lease_expires_at": expires, "cancel_requested": False}

    def post_receipt(self, body: Shown, attempt_id: str) -> tuple[int, Shown]:
        attempt = self._named(self.attempts, attempt_id)
        step = self.steps[attempt["step"]]
        run = self.runs[step["run"]]
        if attempt["outcome"] not in {None, "unknown", body["outcome"]}:
            raise Refusal(409, "receipt-conflict")
        attempt["outcome"] = body["outcome"]
        seen = {
            name: body[name] for name in ("result", "external_id", "cost", "error") if name in body
        }
        if body["outcome"] in {"succeeded", "failed"}:
            self.settle(step, body["outcome"], source="agent", **seen)
        elif body["outcome"] == "not_performed":
            step.update(status="ready", outcome="not_performed", error=body.get("error"))
        else:
            self.become_unknown(run, step, None)
        if body["outcome"] == "succeeded":
            self.note_made(step)
        self.touch(run)
        return CREATED, step | {"state_version": run["state_version"]}

    def post_reconciliation(self, body: Shown, step_id: str) -> tuple[int, Shown]:
        step = self._named(self.steps, step_id)
        run = self.runs[step["run"]]
        if step["status"] != "unknown":
            raise Refusal(409, "not-unknown")
        if body["outcome"] == "performed":
            seen = {
                name: body[name] for name in ("result", "external_id", "evidence") if name in body
            }
            self.settle(step, "succeeded", source="agent", **seen)
            self.note_made(step)
        else:
            step.update(status="ready", outcome="not_performed", error=None)
        self.resolve(run, step["interrupt"], "resume")
        return OK, step | {"state_version": run["state_version"]}


Answering = Callable[..., Any]
_ID = "([0-9a-f-]{36})"
ROUTES: Final[tuple[tuple[str, re.Pattern[str], Answering], ...]] = tuple(
    (method, re.compile(pattern), answer)
    for method, pattern, answer in (
        ("POST", "runs", FakeService.post_run),
        ("GET", f"runs/{_ID}", FakeService.get_run),
        ("POST", f"runs/{_ID}/claim", FakeService.post_claim_run),
        ("POST", f"runs/{_ID}/usage", FakeService.post_usage),
        ("POST", f"runs/{_ID}/acknowledge", FakeService.post_acknowledge),
        ("POST", f"runs/{_ID}/checkpoints", FakeService.post_checkpoint),
        ("POST", f"runs/{_ID}/interrupts", FakeService.post_interrupt),
        ("POST", f"runs/{_ID}/steps", FakeService.post_steps),
        ("POST", f"runs/{_ID}/(complete|fail)", FakeService.post_end),
        ("GET", f"steps/{_ID}", FakeService.get_step),
        ("POST", f"steps/{_ID}/claim", FakeService.post_claim_step),
        ("POST", f"steps/{_ID}/reconciliation", FakeService.post_reconciliation),
        ("POST", f"attempts/{_ID}/heartbeat", FakeService.post_heartbeat),
        ("POST", f"attempts/{_ID}/receipt", FakeService.post_receipt),
        ("POST", f"gates/{_ID}/questions/{_ID}/answer", FakeService.post_answer),
        ("GET", "interrupts", FakeService.get_interrupts),
        ("GET", f"interrupts/{_ID}", FakeService.get_interrupt),
        ("GET", f"checkpoints/{_ID}", FakeService.get_checkpoint),
        ("GET", "tools/(.+)", FakeService.get_tool),
    )
)
