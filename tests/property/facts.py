"""What stands in the database, read past the service: as its owner, in one statement."""

from __future__ import annotations

import hmac
import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import psycopg

from config.keys import derive

Row = dict[str, Any]
TABLES = {
    "tenant": "SELECT id, authority_version, freezes, journal_seq, encode(journal_hash, 'hex')"
    " AS journal_hash FROM tenants_tenant WHERE id = %(tenant)s",
    "runs": "SELECT id, parent_id, path, status, suspension, count_unknown, count_in_flight,"
    " count_partial, epoch, state_version, journal_seq, encode(journal_hash, 'hex') AS journal_hash,"
    " last_position, next_step, open_interrupts, session, compensating, agent_id, requested_by_id,"
    " forked_from_id, usage_steps, ended_at, budget, checkpoint_id, key_scope"
    " FROM interrupts_run WHERE tenant_id = %(tenant)s",
    "steps": 'SELECT id, run_id, position, "group", parallel, key, tool_name, tool_number, executor,'
    " effect, digest, proposed_digest, status, held_by, gate, interrupt, twin, authorized_by,"
    " authorized_gate, authorized_digest, authorized_under, authorized_until, attempts, fence,"
    " outcome, due_at IS NOT NULL AS later, undo_wanted, settled_at, ask_first, tool_version_id,"
    " authorized_tool_version FROM interrupts_step WHERE tenant_id = %(tenant)s",
    "attempts": "SELECT id, step_id, run_id, fence, epoch, worker, compensation, lapsed_at,"
    " settled_at, outcome, lease_expires_at FROM interrupts_attempt WHERE tenant_id = %(tenant)s",
    "receipts": "SELECT id, step_id, attempt, compensation, source, outcome, by"
    " FROM interrupts_receipt WHERE tenant_id = %(tenant)s",
    "interrupts": "SELECT id, run_id, reason, kind, status, step, gate, checkpoint, allowed,"
    " resolution, resolved_by, expires_at FROM interrupts_interrupt WHERE tenant_id = %(tenant)s",
    "gates": "SELECT id, run_id, step_id, interrupt_id, state, quorum, digest, arguments_digest,"
    " ceremony, required_confirmation, settled_at FROM approvals_gate WHERE tenant_id = %(tenant)s",
    "decisions": "SELECT id, gate_id, user_id, verdict, digest, approves, edits IS NOT NULL AS edits,"
    " counts FROM approvals_decision WHERE tenant_id = %(tenant)s",
    "assignments": "SELECT id, gate_id, user_id FROM approvals_assignment"
    " WHERE tenant_id = %(tenant)s",
    "freezes": "SELECT id, scope, name FROM interrupts_freeze"
    " WHERE tenant_id = %(tenant)s AND lifted_at IS NULL",
}
ENTRIES = (
    "SELECT e.stream, e.seq, e.kind, e.text, e.key_id, encode(e.hash, 'hex') AS hash"
    " FROM tenants_journalentry e LEFT JOIN unnest(%(streams)s::uuid[], %(seqs)s::bigint[])"
    " AS known(stream, seq) ON known.stream = e.stream"
    " WHERE e.tenant_id = %(tenant)s AND e.seq > coalesce(known.seq, 0)"
)
ALL = (
    "SELECT json_build_object("
    + ", ".join(
        f"'{name}', (SELECT coalesce(json_agg(r ORDER BY {order}), '[]') FROM ({rows}) r)"
        for name, rows, order in (
            *((name, rows, "id") for name, rows in TABLES.items()),
            ("entries", ENTRIES, "stream, seq"),
        )
    )
    + ")"
)
OPEN_STEPS = {"proposed", "waiting", "ready", "executing", "unknown"}
OPEN_GATES = {"preparing", "pending"}
ENDED = {"completed", "failed", "cancelled"}
NEVER_RAN = {"denied", "rejected", "revised"}


@dataclass
class Told:
    """What a run's journal alone says of it, entry by entry."""

    seq: int = 0
    head: bytes = b""
    status: str = ""
    epoch: int = 1
    session: int = 0
    steps: dict[str, str] = field(default_factory=dict)
    open: set[str] = field(default_factory=set)
    gates: set[str] = field(default_factory=set)
    receipts: set[str] = field(default_factory=set)
    live: set[str] = field(default_factory=set)

    def take(self, stream: str, entry: Row) -> None:
        """Hold the entry to the chain, and take up what it says."""
        key = derive("journal", UUID(stream), key_id=entry["key_id"])
        self.head = hmac.digest(key, self.head + entry["text"].encode(), "sha256")
        assert entry["hash"] == self.head.hex(), f"the chain breaks at {entry['seq']}"
        said = json.loads(entry["text"])
        self.seq += 1
        assert (entry["seq"], said["seq"]) == (self.seq, self.seq), "the journal has a gap"
        assert said["kind"] == entry["kind"]
        self._take(said["kind"], said["data"])

    def _take(self, kind: str, data: Row) -> None:
        self.status = RUN.get(kind, self.status)
        self.epoch = data.get("epoch", self.epoch)
        self.session = data.get("session", self.session)
        if kind in STEP:
            self.steps[data["step"]] = STEP[kind]
        elif kind in ("step.settled", "step.denied"):
            self.steps[data["step"]] = data["status"]
        self._take_gate(kind, data)
        if kind == "interrupt.opened":
            self.open.add(data["interrupt"])
        elif kind in ("interrupt.resolved", "interrupt.expired"):
            self.open.remove(data["interrupt"])
        elif kind == "receipt.recorded":
            self.receipts.add(data["receipt"])

    def _take_gate(self, kind: str, data: Row) -> None:
        if kind in ("gate.opened", "gate.reopened"):
            self.gates.add(data["gate"])
        elif kind in ("gate.expired", "gate.withdrawn", "gate.superseded"):
            self.gates.discard(data["gate"])
        elif kind == "gate.decided" and data["verdict"] != "approve":
            self.gates.remove(data["gate"])
        elif kind == "step.authorized" and data["by"] == "decision":
            self.gates.discard(data["gate"])


RUN = {
    "run.started": "running",
    "run.resumed": "running",
    "run.suspended": "suspended",
    "run.cancelling": "cancelling",
    "run.completed": "completed",
    "run.failed": "failed",
    "run.cancelled": "cancelled",
}
STEP = {
    "step.proposed": "waiting",
    "step.authorized": "ready",
    "gate.opened": "waiting",
    "gate.reopened": "waiting",
    "attempt.started": "executing",
    "step.unknown": "unknown",
    "step.retried": "ready",
    "compensation.started": "compensating",
    "compensation.left": "succeeded",
}


@dataclass
class Facts:
    """Every row of the tenant as it is now."""

    tenant: Row
    runs: dict[str, Row]
    steps: dict[str, Row]
    attempts: dict[str, Row]
    receipts: dict[str, Row]
    interrupts: dict[str, Row]
    gates: dict[str, Row]
    decisions: dict[str, Row]
    assignments: dict[str, Row]
    freezes: dict[str, Row]

    @property
    def everything(self) -> tuple[Any, ...]:
        """All of it, to be compared with all of it at another moment."""
        return tuple(vars(self).values())

    def of(self, table: str, **columns: Any) -> list[Row]:
        rows: Iterable[Row] = getattr(self, table).values()
        return [row for row in rows if all(row[name] == v for name, v in columns.items())]

    @property
    def live_runs(self) -> list[Row]:
        return [run for run in self.runs.values() if run["status"] not in ENDED]

    @property
    def live_attempts(self) -> list[Row]:
        return self.of("attempts", settled_at=None, lapsed_at=None)


@dataclass
class Outside:
    """Looks at one tenant from outside, and remembers what its journals have said so far."""

    connection: psycopg.Connection[Any]
    tenant: str
    told: dict[str, Told] = field(default_factory=lambda: defaultdict(Told))
    kinds: Counter[str] = field(default_factory=Counter)  # of the entries that were read

    def look(self) -> Facts:
        known = {stream: told.seq for stream, told in self.told.items()}
        row = self.connection.execute(
            ALL,
            {"tenant": self.tenant, "streams": list(known), "seqs": list(known.values())},
            prepare=True,
        ).fetchone()
        assert row is not None
        found: dict[str, list[Row]] = row[0]
        for entry in found.pop("entries"):
            self.told[entry["stream"]].take(entry["stream"], entry)
            self.kinds[entry["kind"]] += 1
        (tenant,) = found.pop("tenant")
        tables = {name: {one["id"]: one for one in rows} for name, rows in found.items()}
        return Facts(tenant=tenant, **tables)

    def execute(self, statement: str, **parameters: Any) -> list[Any]:
        cursor = self.connection.execute(statement, {"tenant": self.tenant, **parameters})
        return cursor.fetchall() if cursor.description else []


# What must hold of them


def hold(now: Facts, before: Facts | None, told: dict[str, Told]) -> None:
    """Hold everything to what must always hold, whatever happened."""
    steps, live = defaultdict(list), defaultdict(list)
    for step in now.steps.values():
        steps[step["run_id"]].append(step)
    for attempt in now.live_attempts:
        live[attempt["step_id"]].append(attempt)
    _head_holds(now.tenant, told)
    for run in now.runs.values():
        _head_holds(run, told)
        _journal_holds(now, run, told[run["id"]], steps[run["id"]])
        _run_holds(now, run, steps[run["id"]])
    for step in now.steps.values():
        _step_holds(now, step, live[step["id"]])
    for gate in now.gates.values():
        _gate_holds(now, gate)
    if before is not None:
        _goes_forward(before, now)


def _head_holds(row: Row, told: dict[str, Told]) -> None:
    said = told[row["id"]]
    assert (row["journal_seq"], row["journal_hash"]) == (said.seq, said.head.hex())


def _journal_holds(now: Facts, run: Row, told: Told, steps: list[Row]) -> None:
    assert (run["status"], run["epoch"], run["session"]) == (told.status, told.epoch, told.session)
    assert {step["id"]: step["status"] for step in steps} == told.steps
    held = {one["id"] for one in now.of("interrupts", run_id=run["id"], status="open")}
    assert held == told.open
    gates = {one["id"] for one in now.of("gates", run_id=run["id"]) if one["state"] in OPEN_GATES}
    assert gates == told.gates
    mine = {step["id"] for step in steps}
    receipts = {one["id"] for one in now.receipts.values() if one["step_id"] in mine}
    assert receipts == told.receipts


def _run_holds(now: Facts, run: Row, steps: list[Row]) -> None:
    status, held = run["status"], now.of("interrupts", run_id=run["id"], status="open")
    assert run["open_interrupts"] == len(held)
    assert status != "suspended" or held
    assert not held or status in ("suspended", "cancelling")
    assert (status in ENDED) == (run["ended_at"] is not None)
    opened = [step["position"] for step in steps if step["status"] in OPEN_STEPS]
    assert run["next_step"] <= min(opened, default=run["last_position"] + 1)
    assert sorted(step["position"] for step in steps) == list(range(1, run["last_position"] + 1))
    _suspension_holds(run, steps)
    above = [now.runs[pk] for pk in run["path"]]
    if any(one["status"] != "running" for one in above):
        assert status != "running", "a run goes on below one that does not"
    if any(one["status"] in ("cancelling", *ENDED) for one in above):
        assert status in ("cancelling", *ENDED)


def _suspension_holds(run: Row, steps: list[Row]) -> None:
    unknown = sum(step["status"] == "unknown" for step in steps)
    in_flight = sum(step["status"] == "executing" for step in steps)
    groups = defaultdict(list)
    for step in steps:
        groups[step["group"]].append(step)
    partial = sum(map(_is_partly_done, groups.values()))
    shown = (run["count_unknown"], run["count_in_flight"], run["count_partial"])
    if run["status"] not in ("suspended", "cancelling"):
        assert (run["suspension"], *shown) == (None, 0, 0, 0) or run["status"] in ENDED
        return
    assert shown == (unknown, in_flight, partial)
    said = (
        "unknown_outcome"
        if unknown
        else "still_cancelling"
        if in_flight
        else "partially_complete"
        if partial
        else "safely_suspended"
    )
    assert run["suspension"] == said


def _is_partly_done(group: list[Row]) -> bool:
    """An effect of the group is done and another step of it open, or an undoing is not done."""
    done = [s for s in group if s["status"] == "succeeded" and s["effect"] != "read"]
    if any(s["status"] == "compensating" for s in group) or any(s["undo_wanted"] for s in done):
        return True
    performed = any(step["attempts"] for step in done)
    return performed and any(step["status"] in OPEN_STEPS for step in group)


def _step_holds(now: Facts, step: Row, live: list[Row]) -> None:
    status = step["status"]
    assert len(live) <= 1
    assert (status == "executing") == any(not one["compensation"] for one in live)
    assert status == "compensating" or not any(one["compensation"] for one in live)
    tries = sorted(now.of("attempts", step_id=step["id"]), key=lambda one: one["fence"])
    assert [one["fence"] for one in tries] == list(range(1, step["fence"] + 1))
    assert (status in OPEN_STEPS) == (step["settled_at"] is None)
    run = now.runs[step["run_id"]]
    pending = [g for g in now.of("gates", step_id=step["id"]) if g["state"] in OPEN_GATES]
    assert len(pending) <= 1
    assert (status == "waiting" and step["held_by"] == "gate") == bool(pending)
    if pending:
        assert pending[0]["id"] == step["gate"]
        held = now.interrupts[pending[0]["interrupt_id"]]
        assert (held["status"], held["gate"], held["step"]) == ("open", step["gate"], step["id"])
    receipts = now.of("receipts", step_id=step["id"])
    if status in ("succeeded", "compensating", "compensated"):
        assert any(one["outcome"] == "succeeded" for one in receipts)
    if status in NEVER_RAN:
        assert not any(one["outcome"] == "succeeded" for one in receipts)
    if run["status"] in ENDED:
        assert status not in ("proposed", "waiting", "ready")
    elif status == "unknown":
        assert now.of("interrupts", step=step["id"], status="open", reason="outcome_unknown")
    if status in ("executing", "unknown") and not step["ask_first"]:
        assert step["authorized_by"] is not None
    if status == "executing":
        assert step["digest"] == step["authorized_digest"]
        assert step["tool_version_id"] == step["authorized_tool_version"]


def _gate_holds(now: Facts, gate: Row) -> None:
    is_open = gate["state"] in OPEN_GATES
    assert is_open == (gate["settled_at"] is None)
    assert is_open or not now.of("assignments", gate_id=gate["id"]), "asked of what is decided"
    votes = now.of("decisions", gate_id=gate["id"], counts=True)
    assert len({one["user_id"] for one in votes}) == len(votes)
    approvals = [one for one in votes if one["verdict"] == "approve"]
    if gate["state"] == "approved":
        assert len(approvals) >= gate["quorum"]
    if gate["state"] in OPEN_GATES | {"approved"}:
        for one in approvals:
            assert one["approves"] == gate["arguments_digest"]
            assert one["edits"] or one["digest"] == gate["digest"]
    if gate["state"] == "expired":  # nothing expires into approval
        step = now.steps[gate["step_id"]]
        again = now.of("gates", step_id=step["id"])[-1]["id"] != gate["id"]
        assert step["status"] in ("rejected", "cancelled") or again


def _goes_forward(before: Facts, now: Facts) -> None:
    assert now.tenant["authority_version"] >= before.tenant["authority_version"]
    for pk, old in before.runs.items():
        new = now.runs[pk]
        assert new["epoch"] >= old["epoch"]
        assert new["state_version"] >= old["state_version"]
        assert old["status"] not in ENDED or new["status"] == old["status"]
    for pk, old in before.steps.items():
        assert now.steps[pk]["fence"] >= old["fence"]
        assert now.steps[pk]["proposed_digest"] == old["proposed_digest"]
    for table in ("attempts", "receipts", "interrupts", "gates", "decisions"):
        assert getattr(before, table).keys() <= getattr(now, table).keys()
    for pk, old in before.receipts.items():
        assert now.receipts[pk] == old, "a receipt was rewritten"
    for pk, old in before.interrupts.items():
        assert old["status"] == "open" or now.interrupts[pk]["status"] == "resolved"
    for pk, old in before.attempts.items():
        settled = old["settled_at"] is not None
        assert not settled or now.attempts[pk]["outcome"] == old["outcome"]
