"""Gates and decisions, held against what their run's journal tells of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from django.conf import settings

from approvals import snapshots
from approvals.models import OPEN_GATES, Decision, Gate, GateState, Verdict, View
from approvals.transitions import IMPRINT
from interrupts import imprints
from interrupts.models import Interrupt, Question
from interrupts.verification import Fault, Said, Told
from interrupts.verification.faults import compare, unmatched
from tenants.scope import current_tenant_id


@dataclass(slots=True)
class GateTold:
    """One gate, as told."""

    vouched: Said  # the newest entry that has its imprint
    interrupt: str | None
    stage: int | None
    state: str = "open"  # preparing or pending
    settled: Said | None = None
    undecidable: Said | None = None
    approvals: list[Said] = field(default_factory=list)  # that count


@dataclass(slots=True)
class VotesTold:
    """The gates of a run and what was decided of them, as told."""

    gates: dict[str, GateTold] = field(default_factory=dict)
    decisions: dict[str, Said] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)  # that count no more
    withdrawn: dict[str, Said] = field(default_factory=dict)
    authorized: set[str] = field(default_factory=set)  # gates that a step was authorised by
    questions: dict[str, Said] = field(default_factory=dict)
    answers: dict[str, Said] = field(default_factory=dict)

    @classmethod
    def of(cls, told: Told, only: Collection[str] | None) -> VotesTold:
        made = cls()
        for said in told.gates:
            if only is not None and said.data["gate"] not in only:
                continue
            takes = _TAKES.get(said.kind)
            if takes is not None and (said.kind == "gate.opened" or _gate(made, said)):
                takes(made, said)
        return made


def _gate(told: VotesTold, said: Said) -> GateTold | None:
    return told.gates.get(said.data["gate"])


def _opened(told: VotesTold, said: Said) -> None:
    data = said.data
    told.gates[data["gate"]] = GateTold(said, data.get("interrupt"), data.get("stage"))


def _vouched(told: VotesTold, said: Said) -> None:
    gate = told.gates[said.data["gate"]]
    if "imprint" in said.data:
        gate.vouched = said
    gate.stage = said.data.get("stage", gate.stage)


def _decided(told: VotesTold, said: Said) -> None:
    gate, decision = told.gates[said.data["gate"]], said.data["decision"]
    told.decisions[decision] = said
    _vouched(told, said)
    state = _ENDS.get(said.data["verdict"])
    if state is not None:
        gate.state, gate.settled = state, said


def _approved(told: VotesTold, said: Said) -> None:
    gate = told.gates[said.data["gate"]]
    if gate.state == "open" and said.data["by"] != "policy":
        gate.state, gate.settled = GateState.APPROVED.value, said


def _votes_ended(told: VotesTold, said: Said) -> None:
    told.ended.update(said.data["decisions"])


def _taken_back(told: VotesTold, said: Said) -> None:
    told.withdrawn[said.data["decision"]] = said


def _closed(told: VotesTold, said: Said) -> None:
    gate = told.gates[said.data["gate"]]
    gate.state, gate.settled = said.kind.removeprefix("gate."), said


def _reopened(told: VotesTold, said: Said) -> None:
    gate = told.gates[said.data["gate"]]
    gate.state, gate.settled, gate.interrupt = "open", None, said.data["interrupt"]
    _vouched(told, said)


def _undecidable(told: VotesTold, said: Said) -> None:
    is_so = said.kind == "gate.undecidable"
    told.gates[said.data["gate"]].undecidable = said if is_so else None


def _asked(told: VotesTold, said: Said) -> None:
    told.questions[said.data["question"]] = said


def _answered(told: VotesTold, said: Said) -> None:
    told.answers[said.data["question"]] = said


_ENDS: Final[dict[str, str]] = {
    Verdict.REJECT: GateState.REJECTED.value,
    Verdict.REQUEST_CHANGES: GateState.CHANGES_REQUESTED.value,
    Verdict.RESPOND: GateState.RESPONDED.value,
}
_TAKES: Final[dict[str, Callable[[VotesTold, Said], None]]] = {
    "gate.opened": _opened,
    "gate.previewed": _vouched,
    "gate.updated": _vouched,
    "gate.escalated": _vouched,
    "gate.stage_opened": _vouched,
    "gate.extended": _vouched,
    "gate.decided": _decided,
    "gate.question_asked": _asked,
    "gate.question_answered": _answered,
    "gate.votes_ended": _votes_ended,
    "gate.decision_withdrawn": _taken_back,
    "gate.expired": _closed,
    "gate.withdrawn": _closed,
    "gate.superseded": _closed,
    "gate.reopened": _reopened,
    "gate.undecidable": _undecidable,
    "gate.decidable": _undecidable,
    "step.authorized": _approved,
}


def of_run(run: UUID, told: Told, only: Collection[str] | None = None) -> Iterator[Fault]:
    """Yield each gate and decision of the run that is not what its journal says.

    ``only``: these gates, by which something is authorised, and what people were asked there; who
    decided is told by the journal itself.
    """
    votes = VotesTold.of(told, only)
    rows = Gate.objects.filter(run=run)
    gates = {str(gate.pk): gate for gate in (rows if only is None else rows.filter(pk__in=only))}
    yield from unmatched(run, "gate", set(gates), set(votes.gates))
    for pk in gates.keys() & votes.gates.keys():
        yield from _gate_faults(run, gates[pk], votes.gates[pk])
    if only is not None:
        return
    decisions = {str(one.pk): one for one in Decision.objects.filter(gate__run=run)}
    yield from unmatched(run, "decision", set(decisions), set(votes.decisions))
    for pk in decisions.keys() & votes.decisions.keys():
        yield from _decision_faults(run, decisions[pk], votes)
    yield from _answer_faults(run, decisions)
    yield from _question_faults(run, votes)
    yield from _view_faults(run)


def _gate_faults(run: UUID, gate: Gate, told: GateTold) -> Iterator[Fault]:
    at = f"gate {gate.pk}"
    if not told.vouched.vouches_for(gate, IMPRINT):
        yield Fault(run, at, "is not the one that people were asked by")
    stored = {
        "state": "open" if gate.state in OPEN_GATES else gate.state,
        "interrupt": str(gate.interrupt_id) if gate.interrupt_id else None,
        "stage": gate.stage,
        "settled_at": gate.settled_at,
        "undecidable_at": gate.undecidable_at,
    }
    expected = {
        "state": told.state,
        "interrupt": told.interrupt,
        "stage": told.stage,
        "settled_at": told.settled.at if told.settled else None,
        "undecidable_at": told.undecidable.at if told.undecidable else None,
    }
    yield from compare(run, at, stored, expected)


def _decision_faults(run: UUID, row: Decision, votes: VotesTold) -> Iterator[Fault]:
    pk = str(row.pk)
    said, withdrawn = votes.decisions[pk], votes.withdrawn.get(pk)
    stored = {
        "tenant": row.tenant_id,
        "gate": str(row.gate_id),
        "by": f"user:{row.user_id}" if row.delegation is None else f"delegation:{row.delegation}",
        "acting_for": str(row.acting_for_id) if row.acting_for_id else None,
        "verdict": row.verdict,
        "digest": row.digest,
        "approves": row.approves,
        "edits": bytes(row.edits).hex() if row.edits is not None else None,
        "value": bytes(row.value).hex() if row.value is not None else None,
        "reason": said.imprint_of(row.reason),
        "reason_code": row.reason_code,
        "reason_text": said.imprint_of(row.reason_text),
        "policy_version": row.policy_version,
        "stage": row.stage,
        "counts": row.counts,
        "bulk": row.bulk,
        "at": row.at,
        "withdrawn_at": row.withdrawn_at,
    }
    expected: dict[str, Any] = {
        "value": None,
        "reason": None,
        "stage": None,
        "acting_for": None,
        "reason_code": None,
        "reason_text": None,
        "bulk": False,
        **said.data,
        "tenant": current_tenant_id(),
        "by": said.by,
        "counts": withdrawn is None and pk not in votes.ended,
        "at": said.at,
        "withdrawn_at": withdrawn.at if withdrawn else None,
    }
    yield from compare(run, f"decision {pk}", stored, expected)


def _answer_faults(run: UUID, decisions: Mapping[str, Decision]) -> Iterator[Fault]:
    """An interrupt that a decision answered says what that decision says."""
    for row in Interrupt.objects.filter(run=run, gate__isnull=False, response__has_key="decision"):
        decision = decisions.get(str((row.response or {})["decision"]))
        expected = decision and {
            "gate": str(decision.gate_id),
            "decision": str(decision.pk),
            "verdict": decision.verdict,
            "resolution": row.resolution,
            "note": decision.reason,
            **({} if decision.reason_code is None else {"reason_code": decision.reason_code}),
        }
        if row.response != expected or (decision and decision.gate_id != row.gate):
            yield Fault(run, f"interrupt {row.pk}", "was not answered like this")


def _question_faults(run: UUID, told: VotesTold) -> Iterator[Fault]:
    """A question is what was asked, and its answer what the agent gave."""
    rows = {str(one.pk): one for one in Question.objects.filter(run=run)}
    yield from unmatched(run, "question", set(rows), set(told.questions))
    for pk in rows.keys() & told.questions.keys():
        row, answered = rows[pk], told.answers.get(pk)
        if not told.questions[pk].vouches_for(row, imprints.QUESTION):
            yield Fault(run, f"question {pk}", "is not what was asked")
        by = answered or told.questions[pk]
        stored = {"answer": by.imprint_of(row.answer), "answered_at": row.answered_at}
        expected = {
            "answer": answered.data["answer"] if answered else None,
            "answered_at": answered.at if answered else None,
        }
        yield from compare(run, f"question {pk}", stored, expected)


def _view_faults(run: UUID) -> Iterator[Fault]:
    """What somebody was shown of a gate, and when, is vouched for by its own imprint."""
    for row in View.objects.filter(gate__run=run):
        key_id = row.imprint.rpartition(":")[0]
        known = key_id in settings.ABEYANCE_MASTER_KEYS
        if not known or snapshots.vouched(run, row, key_id) != row.imprint:
            yield Fault(run, f"view {row.pk}", "is not what was shown")
