"""Journal entries in plain words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from interrupts.models import Interrupt, Question, Run, Step, Verdict
from interrupts.watching import Entry, Journal, who

REASONS: Final[Mapping[str, str]] = {
    "approval_required": "a decision is needed",
    "risk_threshold": "the risk is at or over a limit",
    "confidence_threshold": "the agent is not sure enough",
    "milestone": "a milestone is reached",
    "input_required": "the agent needs a value",
    "operator_stop": "a person stopped it",
    "budget_exhausted": "its budget is used up",
    "verifier_rejected": "a check failed",
    "context_missing": "something that is needed is not known",
    "outcome_unknown": "an outcome is unknown",
    "effect_failed": "something was refused",
    "agent_requested": "the agent asked for a person",
    "parent_interrupted": "the run that started it is interrupted",
    "owner_lost": "its agent has gone silent",
}
RESOLUTIONS: Final[Mapping[str, str]] = {
    "resume": "goes on",
    "revise": "goes on another way",
    "cancel": "cancelled",
    "time_out": "nobody answered in time",
    "compensate": "said what becomes of what was done",
}
FINDINGS: Final[Mapping[str, str]] = {
    "performed": "it was performed",
    "failed": "it failed there",
    "not_performed": "it was not performed",
    "pending": "not finished there yet",
    "unknown": "can\u2019t tell",
    "cannot_tell": "can\u2019t tell",
    "sent_again": "sent again under its key, to find out",
}
OUTCOMES: Final[Mapping[str, str]] = {
    "succeeded": "it was done",
    "failed": "it was refused",
    "not_performed": "it did not begin",
    "unknown": "no clear answer",
}
SOURCES: Final[Mapping[str, str]] = {
    "executor": "seen by the service",
    "agent": "reported by the agent",
    "reconciliation": "found out by asking",
    "person": "found out by a person",
}
VERDICTS: Final[Mapping[str, str]] = {
    "approve": "approved",
    "reject": "rejected",
    "request_changes": "asked for changes of",
    "respond": "answered in place of",
}
AUTHORITIES: Final[Mapping[str, str]] = {
    "policy": "allowed by the policy",
    "decision": "allowed by a decision",
    "delegation": "allowed by a rule that runs without asking",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """What an entry says: a sign, what happened, and what belongs to it."""

    icon: str
    what: str
    css: str = "ok"  # ok | safe | unknown | canc | bad | todo
    detail: str = ""
    quoted: str = ""  # words of others: an agent's, a person's, the far end's
    told: str = ""  # an agent's words that a person asked for: shown in a box of their own
    chip: tuple[str, str] | None = None
    gate: str = ""
    run: str = ""
    saw: str = ""  # the digest of what a decider saw
    decision: str = ""
    judged: bool = False  # policy spoke, and can say why


@dataclass(frozen=True, slots=True)
class Told:
    """A journal entry as it is shown."""

    seq: int
    at: datetime
    kind: str
    by: str
    step: Step | None
    words: Words


@dataclass(frozen=True, slots=True)
class Said:
    """An entry's data, with what it names."""

    kind: str
    data: Mapping[str, Any]
    step: Step | None
    interrupt: Interrupt | None
    guidance: str
    by: str
    question: Question | None = None
    verdict: Verdict | None = None

    def __getitem__(self, name: str) -> Any:
        return self.data.get(name)

    def text(self, name: str) -> str:
        value = self.data.get(name)
        return "" if value is None else str(value)


def told(run: Run, page: Journal) -> list[Told]:
    """Say each entry of a page of a run's journal."""
    return [_tell(run, page, entry) for entry in page.entries]


def _tell(run: Run, page: Journal, entry: Entry) -> Told:
    data = entry.data
    step = page.steps.get(str(data.get("step")))
    told_to = page.guidance.get(str(data.get("guidance")))
    by = who(entry.actor, page.names, run.agent.name)
    said = Said(
        entry.kind,
        data,
        step,
        page.interrupts.get(str(data.get("interrupt"))),
        told_to.text if told_to else "",
        by,
        page.questions.get(str(data.get("question"))),
        page.verdicts.get(str(data.get("verdict"))),
    )
    tell = _TELL.get(entry.kind, _anything)
    return Told(entry.seq, entry.at, entry.kind, by, step, tell(said))


def _chip(label: str, value: Any) -> tuple[str, str] | None:
    return None if value in (None, "") else (label, str(value))


# Runs


def _started(said: Said) -> Words:
    parent = said.text("parent")
    return Words(
        icon="play",
        what="Run started",
        detail="As a child of another run." if parent else "",
        run=parent or said.text("forked_from"),
    )


def _suspended(said: Said) -> Words:
    why = REASONS.get(said.text("reason"), said.text("reason"))
    return Words(icon="safe", css="safe", what=f"Run suspended: {why}")


def _revised(said: Said) -> Words:
    withdrawn = len(said["withdrawn"] or ())
    steps = f"{withdrawn} step{'' if withdrawn == 1 else 's'} withdrawn." if withdrawn else ""
    return Words(
        icon="pen",
        css="safe",
        what="The agent was told what to do differently",
        detail=steps,
        quoted=said.guidance,
    )


def _cancelling(said: Said) -> Words:
    return Words(
        icon="stop",
        css="canc",
        what="Stopping for good: nothing starts any more",
        quoted=said.text("note"),
    )


def _extended(said: Said) -> Words:
    limits = ", ".join(f"{name} {limit}" for name, limit in (said["limits"] or {}).items())
    return Words(icon="check", what="Budget raised", detail=f"New limits: {limits}.")


def _day_extended(said: Said) -> Words:
    told = _extended(said)
    return replace(told, what=f"The agent may use more on {said.text('day')}")


def _reserved(said: Said) -> Words:
    cost = f"Reserved till it is settled: {said.text('cost')}."
    day = f" Counted on {said.text('day')}." if said["day"] else ""
    return Words(icon="clock", css="todo", what="is counted against a budget", detail=cost + day)


def _context(said: Said) -> Words:
    known = said["context"] or {}
    missed = [name for name, until in known.items() if until is None]
    detail = f"Not said: {', '.join(missed)}." if missed else f"Fresh until {said.text('until')}."
    return Words(
        icon="eye",
        css="todo",
        what=f"needs to know {', '.join(known) or 'nothing'}",
        detail=detail if known else "",
    )


def _held(said: Said) -> Words:
    waits = _HELD_BY.get(said.text("by"), "something else first")
    return Words(icon="clock", css="safe", what=f"waits for {waits}")


_HELD_BY: Final[Mapping[str, str]] = {
    "budget": "a budget",
    "context": "what it needs to know",
    "twin": "an equal call to be found out",
}


def _usage(said: Said) -> Words:
    used = (
        f"{said.text('tokens')} tokens, cost {said.text('cost')}, {said.text('seconds')} seconds."
    )
    return Words(icon="chart", css="todo", what="The agent reported what it used", detail=used)


# Steps


def _proposed(said: Said) -> Words:
    return Words(icon="dash", css="todo", what="proposed", chip=_chip("key", said["key"]))


def _authorized(said: Said) -> Words:
    by = AUTHORITIES.get(said.text("by"), said.text("by"))
    version = said["policy_version"]
    under = f", policy version {version}" if version is not None else ""
    return Words(
        icon="key",
        what="may run",
        detail=f"{by[:1].upper()}{by[1:]}, rule \u201c{said.text('rule')}\u201d{under}.",
        gate=said.text("gate"),
        judged=said.text("by") == "policy",
    )


def _denied(said: Said) -> Words:
    return Words(
        icon="x",
        css="bad",
        what="denied by the policy",
        quoted=said.text("reason"),
        judged=True,
    )


_SETTLED: Final[Mapping[str, tuple[str, str, str]]] = {
    "succeeded": ("check", "ok", "done"),
    "failed": ("x", "bad", "not done"),
    "cancelled": ("stop", "bad", "cancelled, it did not run"),
    "rejected": ("x", "bad", "rejected, it did not run"),
    "revised": ("pen", "safe", "withdrawn, it did not run"),
    "compensated": ("undo", "ok", "undone"),
    "denied": ("x", "bad", "denied, it did not run"),
}


def _settled(said: Said) -> Words:
    icon, css, what = _SETTLED.get(said.text("status"), ("dash", "todo", said.text("status")))
    quoted = said.text("reason") or said.text("error")
    return Words(icon=icon, css=css, what=what, quoted=quoted)


def _unknown(said: Said) -> Words:
    return Words(
        icon="unknown",
        css="unknown",
        what="no answer: its outcome is unknown",
        detail="It is not sent again before this is found out.",
        quoted=said.text("error"),
    )


def _retried(said: Said) -> Words:
    return Words(
        icon="undo",
        css="safe",
        what="did not begin, and is tried again under the same key",
        chip=_chip("tries", said["attempts"]),
    )


# Gates


def _asked(said: Said) -> Words:
    quorum = int(said["quorum"] or 1)
    people = "one person" if quorum == 1 else f"{quorum} people"
    in_stages = f" in {said['of']} stages" if said["of"] else ""
    return Words(
        icon="gate",
        css="safe",
        what="waits for a decision",
        detail=f"By {people}{in_stages}, rule \u201c{said.text('rule')}\u201d.",
        gate=said.text("gate"),
    )


def _stage_opened(said: Said) -> Words:
    who = " or ".join(str(one) for one in said["approvers"] or ()) or "whoever may decide its tool"
    return Words(
        icon="gate",
        css="safe",
        what=f"stage {said['stage']} of {said['of']} is open",
        detail=f"It waits for {who}.",
        gate=said.text("gate"),
    )


def _decided(said: Said) -> Words:
    verdict = said.text("verdict")
    edited = " with edits" if said["edits"] else ""
    return Words(
        icon="user",
        css="ok" if verdict in {"approve", "respond"} else "bad",
        what=f"{said.by} {VERDICTS.get(verdict, verdict)} this{edited}",
        chip=_chip("reason", said.text("reason_code")),
        gate=said.text("gate"),
        saw=said.text("digest"),
        decision=said.text("decision"),
    )


def _previewed(said: Said) -> Words:
    if said["failed"]:
        what = "Dry run could not be taken: the decision asks for more care"
        return Words(icon="eye", css="bad", what=what, gate=said.text("gate"))
    changed = " It is another than before." if said["changed"] else ""
    return Words(icon="eye", what="Dry run taken", detail=changed.strip(), gate=said.text("gate"))


def _question(said: Said) -> Words:
    return Words(
        icon="user",
        css="safe",
        what=f"{said.by} asked the agent",
        quoted=said.question.text if said.question else "",
        gate=said.text("gate"),
    )


def _answer(said: Said) -> Words:
    return Words(
        icon="quote",
        css="safe",
        what="the agent answered a question",
        told=(said.question.answer or "") if said.question else "",
        gate=said.text("gate"),
    )


def _gate_handed(said: Said) -> Words:
    return Words(
        icon="user",
        css="safe",
        what="its decision was handed to somebody else",
        quoted=said.text("note"),
        gate=said.text("gate"),
    )


def _gate_extended(said: Said) -> Words:
    return Words(
        icon="clock",
        css="safe",
        what=f"{said.by} gave its decision more time",
        quoted=said.text("note"),
        gate=said.text("gate"),
    )


def _gate(what: str, icon: str = "gate", css: str = "safe") -> Callable[[Said], Words]:
    def tell(said: Said) -> Words:
        return Words(icon=icon, css=css, what=what, quoted=said.text("why"), gate=said.text("gate"))

    return tell


# Interrupts


def _opened(said: Said) -> Words:
    why = REASONS.get(said.text("reason"), said.text("reason"))
    note = said.interrupt.note if said.interrupt else None
    calls = said.text("in_flight") == "cancel"
    return Words(
        icon="safe",
        css="safe",
        what=f"interrupted: {why}" if said.step else f"Interrupted: {why}",
        detail="What is in flight is asked to stop." if calls else "",
        quoted=note or "",
        gate=said.text("gate"),
    )


def _resolved(said: Said) -> Words:
    row = said.interrupt
    why = f" ({REASONS.get(row.reason, row.reason)})" if row else ""
    resolution = said.text("resolution")
    note = (row.response or {}).get("note") if row else None
    return Words(
        icon="bolt" if resolution == "resume" else "pen" if resolution == "revise" else "stop",
        what=f"Interrupt answered: {RESOLUTIONS.get(resolution, resolution)}{why}",
        quoted=note or "",
    )


# Attempts, receipts, checks and undoing


def _attempt(said: Said) -> Words:
    worker = said.text("worker")
    return Words(
        icon="bolt",
        what="started",
        chip=_chip("try", said["fence"]),
        detail=f"Worker {worker}." if worker else "",
    )


def _receipt(said: Said) -> Words:
    outcome = said.text("outcome")
    css = {"succeeded": "ok", "unknown": "unknown"}.get(outcome, "bad")
    source = SOURCES.get(said.text("source"), said.text("source"))
    return Words(
        icon="unknown" if css == "unknown" else "check" if css == "ok" else "x",
        css=css,
        what=f"receipt: {OUTCOMES.get(outcome, outcome)}",
        detail=f"{source[:1].upper()}{source[1:]}." if source else "",
        chip=_chip("reference", said["external_id"]),
    )


def finding_words(data: Mapping[str, Any]) -> str:
    answer = str(data.get("answer", ""))
    return FINDINGS.get(answer, answer)


def _checked(said: Said) -> Words:
    return Words(
        icon="search",
        css="safe",
        what=f"the far end was asked: {finding_words(said.data)}",
        quoted=said.text("error"),
        chip=_chip("check", said["asked"]),
    )


def _doubled(said: Said) -> Words:
    names = " and ".join(name for name in said["external_ids"] or () if name)
    return Words(
        icon="tri",
        css="bad",
        what="two of its tries succeeded: it was done twice",
        detail="A person has to look at the far end, and undo one of the two there.",
        chip=_chip("references", names),
    )


def _undoing_recorded(said: Said) -> Words:
    outcome = said.text("outcome")
    done = outcome == "succeeded"
    words = (
        "undone"
        if done
        else "undoing was refused"
        if outcome == "failed"
        else ("undoing has no clear answer, and is sent again under its key")
    )
    return Words(icon="undo", css="ok" if done else "bad", what=words)


def _awaited(said: Said) -> Words:
    detail = "Nothing of the run starts before." if said["holds"] else "The run goes on meanwhile."
    return Words(icon="search", css="safe", what="its verifier is asked", detail=detail)


def _unanswered(said: Said) -> Words:
    return Words(
        icon="search",
        css="unknown",
        what="its verifier gave no answer, and is asked again",
        chip=_chip("tries", said["tries"]),
    )


_JUDGED: Final[Mapping[str, tuple[str, str, str]]] = {
    "passed": ("check", "ok", "passed by its verifier"),
    "rejected": ("x", "bad", "rejected by its verifier"),
    "unknown": ("unknown", "unknown", "not judged: its verifier gave no answer"),
}


def _judged(said: Said) -> Words:
    icon, css, what = _JUDGED[said.text("status")]
    words = (said.verdict.words or said.verdict.error or "") if said.verdict else ""
    return Words(icon=icon, css=css, what=what, quoted=words)


def _plain(icon: str, what: str, css: str = "ok", *quoted: str) -> Callable[[Said], Words]:
    """Return what says the same of each such entry, with what others wrote in it."""

    def tell(said: Said) -> Words:
        words = " ".join(text for name in quoted if (text := said.text(name)))
        return Words(icon=icon, css=css, what=what, quoted=words)

    return tell


def _anything(said: Said) -> Words:
    return Words(icon="dash", css="todo", what=said.kind.replace(".", ": ").replace("_", " "))


_TELL: Final[Mapping[str, Callable[[Said], Words]]] = {
    "run.started": _started,
    "run.claimed": _plain("bolt", "An agent process took the run"),
    "run.suspended": _suspended,
    "run.resumed": _plain("play", "The run goes on"),
    "run.revised": _revised,
    "run.cancelling": _cancelling,
    "run.cancelled": _plain("stop", "Run stopped for good", "bad"),
    "run.completed": _plain("check", "Run finished"),
    "run.failed": _plain("x", "Run failed", "bad"),
    "run.forked": lambda said: Words(
        icon="branch", what="Goes on from a run that ended", run=said.text("forked_from")
    ),
    "guidance.acknowledged": _plain("eye", "The agent has read what it was told"),
    "budget.extended": _extended,
    "usage.reported": _usage,
    "proposal.refused": _plain(
        "x", "A proposal was refused: its arguments break the tool\u2019s schema", "bad", "tool"
    ),
    "checkpoint.taken": lambda said: Words(
        icon="lock",
        css="todo",
        what="Checkpoint saved",
        chip=_chip("digest", said.text("digest").removeprefix("sha256:")[:8]),
    ),
    "step.proposed": _proposed,
    "step.authorized": _authorized,
    "step.denied": _denied,
    "step.settled": _settled,
    "step.unknown": _unknown,
    "step.retried": _retried,
    "step.held": _held,
    "step.context": _context,
    "step.judged": _plain("eye", "was judged by what was known then", "todo"),
    "budget.reserved": _reserved,
    "day.extended": _day_extended,
    "step.renewed": _plain("pen", "is a call of its tool\u2019s newer version now", "safe"),
    "step.unresolvable": _plain("unknown", "can\u2019t be found out, and stays unknown", "unknown"),
    "gate.opened": _asked,
    "gate.previewed": _previewed,
    "gate.escalated": _gate("was not answered in time: others are asked", "clock"),
    "gate.stage_opened": _stage_opened,
    "gate.updated": _gate("is judged anew by a newer policy"),
    "gate.decided": _decided,
    "gate.question_asked": _question,
    "gate.question_answered": _answer,
    "gate.reassigned": _gate_handed,
    "gate.extended": _gate_extended,
    "gate.votes_ended": _gate("earlier approvals count no more", "undo"),
    "gate.decision_withdrawn": _gate("a decision was taken back", "undo"),
    "gate.reopened": _gate("waits for a decision again"),
    "gate.approved": _gate("approved", "check", "ok"),
    "gate.rejected": _gate("rejected", "x", "bad"),
    "gate.changes_requested": _gate("sent back for changes", "pen"),
    "gate.responded": _gate("answered by a person in its place", "user", "ok"),
    "gate.expired": _gate("nobody decided in time", "clock", "bad"),
    "gate.withdrawn": _gate("no longer waits for a decision", "dash"),
    "gate.superseded": _gate("its decision no longer holds; it is asked anew", "gate"),
    "gate.undecidable": _gate("nobody may decide this: its admins are told", "lock", "bad"),
    "gate.decidable": _gate("somebody may decide this now", "key", "ok"),
    "interrupt.opened": _opened,
    "interrupt.resolved": _resolved,
    "interrupt.expired": _resolved,
    "interrupt.changed": _plain("search", "What is asked was brought up to date", "safe"),
    "interrupt.escalated": _plain("clock", "Nobody answered in time: others are asked", "safe"),
    "attempt.started": _attempt,
    "attempt.lapsed": _plain("clock", "no word came in time", "unknown"),
    "receipt.recorded": _receipt,
    "receipt.late": _plain("check", "a late receipt settles it"),
    "receipt.conflict": _plain(
        "x", "another receipt contradicts the first; the first stands", "bad"
    ),
    "effect.doubled": _doubled,
    "reconciliation.asked": _checked,
    "reconciliation.requested": _plain("search", "A person asked to check again", "safe"),
    "reconciliation.exhausted": _plain(
        "unknown", "is not asked about by itself any more: a person settles it", "unknown"
    ),
    "verdict.awaited": _awaited,
    "verdict.unanswered": _unanswered,
    "verdict.recorded": _judged,
    "compensation.requested": _plain("undo", "a person asked to undo this", "safe", "note"),
    "compensation.wanted": _plain("undo", "is to be undone", "safe"),
    "compensation.started": _plain("undo", "undoing was sent", "safe"),
    "compensation.recorded": _undoing_recorded,
    "compensation.left": _plain("x", "was not undone, and stays as it is", "bad", "error"),
}


def known_kinds() -> Sequence[str]:
    """Return the kinds of entries that have words of their own."""
    return list(_TELL)
