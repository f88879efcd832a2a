"""Asking the agent about a gate, without rejecting it: the gate waits, and nothing of it changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from approvals import cases, deciders, owed
from approvals.calls import call_of
from approvals.errors import (
    AlreadyAnswered,
    GatePreparing,
    TooManyQuestions,
)
from approvals.models import Gate, GateState
from config.errors import AgentsOnly, InvalidBody, PeopleOnly
from interrupts import imprints
from interrupts.models import Question
from interrupts.services.acting import as_agent
from interrupts.work import Work, working
from tenants.conditions import ANY_VERSION, IfMatch
from tenants.principal import Principal

MAX_QUESTION: Final = 2_000
MAX_ANSWER: Final = 10_000
MOST_QUESTIONS: Final = 20  # about one gate


@dataclass(frozen=True, slots=True)
class Asked:
    """A question as it is now, and whether exactly this had been said before."""

    question: Question
    replayed: bool


def ask_agent(
    principal: Principal, gate_id: UUID, *, text: str, if_match: IfMatch = ANY_VERSION
) -> Asked:
    """Ask the agent about a pending gate, as somebody who may decide it; it wakes a waiting agent.

    The same person's same question, while it has no answer, is the first one. Raises PeopleOnly,
    NotAnApprover, OwnRequest, BeyondAuthority, NotYourStage, GateExpired, AlreadyDecided,
    GatePreparing,
    TooManyQuestions.
    """
    if not principal.is_person:
        raise PeopleOnly
    _check_text(text, MAX_QUESTION)
    with working(_run_of(gate_id), principal.actor) as work:
        gate = Gate.objects.get(pk=gate_id)
        deciders.check_gate(principal.id, gate, work.run, call_of(gate, work.run))
        cases.check_is_open(gate, work.now)
        asked = list(Question.objects.filter(gate=gate_id).select_related("by"))
        for one in asked:
            if (one.by_id, one.text, one.answer) == (principal.id, text, None):
                one.run = work.run
                return Asked(one, replayed=True)
        if gate.state == GateState.PREPARING:
            raise GatePreparing
        if_match.check(work.run.state_version)
        if len(asked) >= MOST_QUESTIONS:
            raise TooManyQuestions(f"{MOST_QUESTIONS} questions are the most.")
        return Asked(_ask(work, gate, principal, text), replayed=False)


def _ask(work: Work, gate: Gate, principal: Principal, text: str) -> Question:
    question = Question.objects.create(
        run=work.run,
        step_id=gate.step_id,
        gate=gate.pk,
        text=text,
        by_id=principal.id,
        at=work.now,
    )
    work.note(
        "gate.question_asked",
        gate=gate.pk,
        step=gate.step_id,
        question=question.pk,
        imprint=work.imprint(question, imprints.QUESTION),
    )
    return question


def answer_question(
    principal: Principal,
    gate_id: UUID,
    question_id: UUID,
    *,
    text: str,
    session: int | None = None,
    if_match: IfMatch = ANY_VERSION,
) -> Asked:
    """Answer, as the run's agent, what was asked about an open gate; again is the first answer.

    Whoever asked is told. Raises AgentsOnly, NotYourRun, StaleSession, AlreadyAnswered,
    GateExpired, AlreadyDecided.
    """
    if not principal.is_agent:
        raise AgentsOnly
    _check_text(text, MAX_ANSWER)
    with as_agent(principal, _run_of(gate_id), session=session) as work:
        question = Question.objects.select_related("by").get(pk=question_id, gate=gate_id)
        question.run = work.run
        if question.answer is not None:
            if question.answer != text:
                raise AlreadyAnswered
            return Asked(question, replayed=True)
        gate = Gate.objects.get(pk=gate_id)
        cases.check_is_open(gate, work.now)
        if_match.check(work.run.state_version)
        question.answer, question.answered_at = text, work.now
        question.save(update_fields=["answer", "answered_at"])
        work.note(
            "gate.question_answered",
            gate=gate.pk,
            step=gate.step_id,
            question=question.pk,
            answer=work.imprint_of(text),
        )
        owed.tell_of_answer(question, work.now)
    return Asked(question, replayed=False)


def _run_of(gate_id: UUID) -> UUID:
    run: UUID = Gate.objects.values_list("run_id", flat=True).get(pk=gate_id)
    return run


def _check_text(text: str, most: int) -> None:
    if not text.strip():
        raise InvalidBody.at("/text", "Say something.")
    if len(text) > most:
        raise InvalidBody.at("/text", f"Must have {most} characters at most.")
