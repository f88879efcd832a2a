"""The list of runs, and a run: what is true of it, what it waits for, what happened in it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final
from urllib.parse import urlencode
from uuid import UUID

from django.http import HttpRequest, HttpResponse, QueryDict
from django.urls import reverse
from django.utils import timezone

from config import jsontext
from config.errors import InvalidBody, NotFound, Problem
from interrupts import watching
from interrupts.models import Interrupt, Reason, RunStatus, Suspension
from interrupts.services.acting import OPERATORS, may_stop
from interrupts.transitions.completion import may_not_agree, of_completion
from interrupts.views import answers, telling
from interrupts.views.answers import Answer, Rights
from interrupts.watching import Held, Wanted, Watched
from tenants.ids import uuid7
from tenants.models import Role
from tenants.views.page import PageView, Words
from tenants.views.visits import Visit

# The counters in the order of the pages' own table, the calmest state first.
_STATES: Final = tuple(reversed(Suspension.values))
_LONGEST: Final = 200
_ASKED_BY_AGENTS: Final = frozenset(
    {Reason.AGENT_REQUESTED, Reason.INPUT_REQUIRED, Reason.CONTEXT_MISSING}
)


class RunPages(PageView):
    """A page about runs; its refusals lead back to the run."""

    nav: ClassVar[str] = "runs"
    words: ClassVar[Mapping[str, Words]] = {
        "forbidden": Words(
            "This is not yours to do",
            "You can look at this run; this is for others. Their roles stand below.",
        ),
        "run-ended": Words(
            "This run takes no more answers",
            "It has ended or is being stopped, so nothing of it starts any more.",
        ),
        "run-not-ended": Words(
            "This run has not ended",
            "It goes on by itself; only an ended run goes on as a new one.",
        ),
        "already-resolved": Words(
            "Somebody answered before you", "The first answer counts and stands."
        ),
        "stale-checkpoint": Words(
            "This changed while you were reading", "Look at it as it is now, and answer again."
        ),
        "decide-the-gate": Words(
            "A decision is what lets this go on", "Open the decision, and decide it there."
        ),
        "not-compensable": Words(
            "This can\u2019t be undone", "Its tool has no way to undo it, or it did not happen."
        ),
        "damaged": Words(
            "What is stored is not what was saved",
            "The checkpoint fails its own check, so nothing goes on from it.",
        ),
        "checkpoint-version": Words(
            "Another release took this checkpoint",
            "This one can\u2019t read it, so nothing goes on from it here. The run can be cancelled.",
        ),
    }

    def refused(self, visit: Visit, problem: Problem, **kwargs: Any) -> HttpResponse:
        run_id = self.run_of(**kwargs)
        if isinstance(problem, NotFound) or run_id is None:
            return super().refused(visit, problem, **kwargs)
        words = self.words.get(problem.code)
        context = {
            "title": words.title if words else problem.title,
            "says": words.says if words else problem.detail,
            "problem": problem,
            "asked": visit.request.method == "POST",
            "run_id": run_id,
            "first": self.first_answer(problem, **kwargs),
        }
        return self.page(visit, "interrupts/refused.html", context, status=problem.status)

    def run_of(self, *, pk: UUID | None = None) -> UUID | None:
        """Return the run that the path names."""
        return pk

    def first_answer(self, problem: Problem, **kwargs: Any) -> Mapping[str, Any] | None:
        """Return who answered before, where that is why this was refused."""
        del problem, kwargs
        return None


class RunsView(RunPages):
    """The tenant's runs, the newest first."""

    def get(self, visit: Visit) -> HttpResponse:
        asked = visit.request.GET
        wanted = _wanted(visit.request)
        found = watching.listed(wanted, _id(asked.get("before", "")))
        counts = watching.suspended_counts()
        context = {
            "found": found,
            "wanted": wanted,
            "states": [(name, counts.get(name, 0)) for name in _STATES],
            "most": watching.MOST_COUNTED,
            "statuses": RunStatus.values,
            "agents": watching.agent_names(),
            "later": "before" in asked,
            "first": _query(visit.request, before=None),
            "onward": _query(visit.request, before=str(found.onward)) if found.onward else None,
        }
        return self.page(visit, "interrupts/runs.html", context)


class RunView(RunPages):
    """One run: its state, what holds it and how that is answered, and its journal."""

    def get(self, visit: Visit, pk: UUID) -> HttpResponse:
        return run_page(self, visit, pk)


@dataclass(frozen=True, slots=True)
class Refused:
    """An answer that could not be taken as it was typed."""

    interrupt: UUID
    answer: str
    typed: QueryDict
    why: InvalidBody


def run_page(
    view: PageView, visit: Visit, run_id: UUID, refused: Refused | None = None
) -> HttpResponse:
    """Show a run; with ``refused``, what was typed stands in its form again."""
    seen = watching.watched(run_id)
    rights = _rights(visit, seen)
    show, after = _place(visit.request)
    page = watching.journal(seen.run, show=show, after=after)
    ended = seen.run.ended
    stoppable = not ended and seen.run.status != RunStatus.CANCELLING
    context = {
        "seen": seen,
        "run": seen.run,
        "held": [_offered(held, seen, rights, refused) for held in seen.held],
        "told": telling.told(seen.run, page),
        "show": show,
        "after": after,
        "onward": _onward(show, page.onward) if page.onward else None,
        "latest": _latest(seen, show, page.onward),
        "rights": rights,
        "may_hold": stoppable and rights.stops,
        "may_cancel": stoppable and rights.operates,
        "may_undo": rights.operates and bool(seen.undoable),
        "may_fork": ended and rights.operates and bool(seen.checkpoints),
        "answer_key": uuid7(),
        "refused": refused,
        "withdrawn": refused.typed.getlist("withdraw") if refused else [],
    }
    return view.page(
        visit, "interrupts/run.html", context, status=refused.why.status if refused else 200
    )


@dataclass(frozen=True, slots=True)
class Offered:
    """An open interrupt with the answers that the person may give."""

    held: Held
    answers: list[Answer]

    @property
    def why(self) -> str:
        reason = self.held.interrupt.reason
        return telling.REASONS.get(reason, reason)

    @property
    def asks(self) -> bool:
        """Say whether the question is the agent's own words."""
        row = self.held.interrupt
        # What its proposal does not know is asked by the service: of that step, in words of ours.
        is_agents = row.reason in _ASKED_BY_AGENTS and row.step is None
        return is_agents and row.opened_by.get("kind") == "agent"

    @property
    def output(self) -> str:
        """What the run would be completed with, as JSON."""
        return json.dumps(self.held.interrupt.evidence["output"], indent=2, ensure_ascii=False)

    @property
    def arguments(self) -> list[tuple[str, str]]:
        """The call's arguments as text, what is sensitive masked."""
        given = self.held.arguments
        if not isinstance(given, dict):
            return []
        return [
            (name, value if isinstance(value, str) else jsontext.canonical(value).decode())
            for name, value in given.items()
        ]

    @property
    def result(self) -> str:
        """The result of the receipt that was judged, as text, what is sensitive masked."""
        value = self.held.result
        if value is None:
            return ""
        return value if isinstance(value, str) else jsontext.canonical(value).decode()

    @property
    def checks(self) -> list[tuple[Any, str, str]]:
        """What was asked, when, and what came of it."""
        known = self.held.recovery
        return [_check(one) for one in known.checks] if known else []


def _check(one: watching.Check) -> tuple[Any, str, str]:
    if one.kind == "reconciliation.requested":
        return one.at, "a person asked to check again", ""
    if one.kind == "reconciliation.exhausted":
        return one.at, "no more checks by itself", ""
    return one.at, telling.finding_words(one.data), str(one.data.get("error") or "")


def _offered(held: Held, seen: Watched, rights: Rights, refused: Refused | None) -> Offered:
    now = timezone.now()  # shown, not decided by
    offered = answers.answers_of(held, seen, rights, now)
    if refused is not None and refused.interrupt == held.interrupt.pk:
        offered = answers.typed_again(offered, refused.answer, refused.typed, refused.why)
    return Offered(held, offered)


def _rights(visit: Visit, seen: Watched) -> Rights:
    operates = visit.role in OPERATORS
    requester = seen.run.requested_by_id == visit.principal.id and visit.role != Role.VIEWER
    return Rights(
        operates=operates,
        stops=may_stop(visit.principal, seen.run),
        answers_inputs=operates or requester,
        agrees=not _holds_completion(seen) or not may_not_agree(visit.principal, seen.run),
    )


def _holds_completion(seen: Watched) -> bool:
    return any(of_completion(one.interrupt) for one in seen.held)


def _place(request: HttpRequest) -> tuple[str, int]:
    show, after = request.GET.get("show", ""), request.GET.get("after", "")
    number = int(after) if after.isascii() and after.isdigit() and len(after) < 19 else 0
    return (show if show in watching.FILTERS else ""), number


def _onward(show: str, after: int) -> str:
    asked: dict[str, str | int] = {"after": after}
    return urlencode({"show": show, **asked} if show else asked)


def _latest(seen: Watched, show: str, onward: int | None) -> str | None:
    """Return where the last page of the whole journal begins, where that is further on."""
    last = seen.run.journal_seq - watching.ENTRIES
    return _onward("", last) if not show and onward is not None and last > onward else None


def run_url(run_id: UUID, anchor: str = "") -> str:
    return reverse("run", args=[run_id]) + anchor


def run_of_interrupt(pk: UUID | None) -> UUID | None:
    if pk is None:
        return None
    return Interrupt.objects.filter(pk=pk).values_list("run_id", flat=True).first()


def _wanted(request: HttpRequest) -> Wanted:
    asked = request.GET
    status, suspension = asked.get("status", ""), asked.get("suspension", "")
    return Wanted(
        status=status if status in RunStatus.values else "",
        suspension=suspension if suspension in Suspension.values else "",
        workflow=_plain(asked.get("workflow", "")).strip(),
        agent=_plain(asked.get("agent", "")),
    )


def _plain(text: str) -> str:
    """Return a text that the database can be asked for: no NUL, and not long."""
    return text.replace("\0", "")[:_LONGEST]


def _query(request: HttpRequest, **more: str | None) -> str:
    asked: dict[str, Any] = {**request.GET.dict(), **more}
    return urlencode({name: value for name, value in asked.items() if value})


def _id(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
