"""What people ask the agent about a step that waits, and its answers, for both kinds of client."""

from __future__ import annotations

from typing import Final

from abeyance.driving import Driven, changed
from abeyance.errors import ProblemError
from abeyance.protocol import Flow
from abeyance.values import Question, Step

# The question is of no interest any more: it was answered elsewhere, or the step is decided.
PASSED: Final = frozenset({"already-answered", "already-decided", "gate-expired"})


def answer(run: Driven, question: Question, text: str) -> Flow[None]:
    """Answer, once; the same answer again is no change."""
    path = f"gates/{question.gate}/questions/{question.id}/answer"
    yield from run.caller.post(path, {"text": text, **run.named()})
    rest = [one for one in run.document["questions"] if one["id"] != question.id]
    run.document["questions"] = rest


def until_asked(run: Driven, step: Step, until: float | None) -> Flow[Step]:
    """Wait until something is asked about the step, or it waits no more. Raises StillWaiting."""
    while step.status == "waiting" and not step.questions:
        step = yield from changed(run, step, until)
    return step


def answer_if_open(run: Driven, question: Question, text: str) -> Flow[None]:
    """Answer; where the question is of no interest by now, nothing is done."""
    try:
        yield from answer(run, question, text)
    except ProblemError as refusal:
        if refusal.code not in PASSED:
            raise
