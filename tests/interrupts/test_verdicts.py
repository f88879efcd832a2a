"""Verdicts: a tool's verifier judges its receipts, and what is not passed is for people to answer."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction
from django.test.utils import CaptureQueriesContext

from config.errors import InvalidBody
from interrupts import selectors, verification
from interrupts.authorizer import Judgement
from interrupts.effects import Outcome, Refused, Ruling, Says
from interrupts.effects.base import Observed
from interrupts.errors import MayNot, NotAuthorized, StepsOutstanding
from interrupts.models import Guidance, Interrupt, Receipt, Verdict
from interrupts.services import compensating, draining, judging, runs
from tests.database import as_owner
from tests.interrupts.history import assert_history_holds
from tests.interrupts.house import earlier, fresh, kinds, open_of, refused

PASSED, REJECTED = Ruling(Says.PASSED), Ruling(Says.REJECTED, "twice the\namount")
NOTHING = Ruling(None, error="The far end did not answer.")
DECLARED = {
    "kind": "python",
    "function": "checks.amount",
    "timeout": 5,
    "attempts": 3,
    "backoff": 4,
    "before_next": True,
}


@dataclass
class Judge:
    """A verifier that says these one after the other, and the last for good."""

    says: list[Any] = field(default_factory=lambda: [PASSED])
    saw: list[Any] = field(default_factory=list)

    def __call__(self, arguments: dict[str, Any], receipt: dict[str, Any], call: Any) -> Any:
        self.saw.append((arguments, receipt, call))
        said = self.says.pop(0) if len(self.says) > 1 else self.says[0]
        if isinstance(said, Exception):
            raise said
        return said() if callable(said) else said


@pytest.fixture
def judge(monkeypatch):
    made = Judge()
    monkeypatch.setattr("interrupts.effects.verifiers.verifier_named", {"checks.amount": made}.get)
    return made


@pytest.fixture
def hints(monkeypatch):
    """The steps that a worker was told to have judged, or undone; the test does it itself."""
    told = []
    monkeypatch.setattr("interrupts.queue.judge", lambda step: told.append(("judge", step)))
    monkeypatch.setattr("interrupts.queue.compensate", lambda step: told.append(("undo", step)))
    return told


@pytest.fixture
def tool(house, judge, hints):
    house.undoes["t"] = lambda arguments, call, result, external_id: None
    house.tool("t", effect="reversible", compensate={}, verifier=DECLARED)
    house.tool("plain")


def done(house, *calls, **more):
    """A run whose first step was done; the others are ready."""
    run = house.run(**more)
    steps = house.propose(run, *(calls or [("t", {"n": 1}), ("plain", {"n": 2})]))
    house.work(run)
    assert fresh(steps[0]).status == "succeeded"
    return fresh(run), [fresh(step) for step in steps]


def verdict_of(step):
    return Verdict.objects.get(step=step)


def holds(run):
    """The run is what its journal says, and so are its verdicts."""
    assert list(verification.of_run(fresh(run))) == []
    assert_history_holds(run)


def rejected(house, judge, *calls, says=REJECTED):
    judge.says = [says]
    run, steps = done(house, *calls)
    judging.judge(steps[0].pk, "w")
    return fresh(run), [fresh(step) for step in steps]


def test_nothing_starts_until_the_receipt_is_judged_and_passed(house, tool, judge, hints):
    run, (step, following) = done(house)
    assert hints == [("judge", step.pk)]
    assert (run.status, run.verdicts_awaited, run.verdicts_holding) == ("running", 1, 1)
    house.work(run)
    house.look(run)
    house.work(run)
    assert fresh(following).status == "ready"
    assert house.ran == [1]
    with refused(StepsOutstanding):
        runs.complete_run(house.agent, run.pk, output=1)
    holds(run)
    judging.judge(step.pk, "w")
    (arguments, receipt, call) = judge.saw[0]
    made = Receipt.objects.get(step=step)
    assert arguments == {"n": 1}
    assert receipt == {
        "id": str(made.pk),
        "source": "executor",
        "result": {"done": {"n": 1}},
        "external_id": None,
        "observed_at": made.observed_at.isoformat(),
    }
    assert (call.tool, call.step, call.timeout) == ("t", str(step.pk), 5)
    verdict, run = verdict_of(step), fresh(run)
    assert (verdict.status, verdict.receipt, verdict.holds) == ("passed", made.pk, False)
    assert (run.status, run.verdicts_awaited, run.verdicts_holding) == ("running", 0, 0)
    house.work(run)
    assert house.ran == [1, 2]
    holds(run)
    runs.complete_run(house.agent, run.pk, output=1)


def test_what_is_rejected_interrupts_with_what_was_done_and_the_verifiers_words(house, tool, judge):
    run, (step, following) = rejected(house, judge)
    assert (run.status, run.suspension) == ("suspended", "partially_complete")
    interrupt = open_of(step)
    assert (interrupt.reason, interrupt.kind) == ("verifier_rejected", "release")
    assert [one["resolution"] for one in interrupt.allowed] == [
        "resume",
        "compensate",
        "revise",
        "cancel",
    ]
    assert interrupt.evidence == {
        "verdict": "rejected",
        "words": "twice the amount",
        "error": None,
        "tries": 1,
        "tool": "t",
        "receipt": str(verdict_of(step).receipt),
        "external_id": None,
    }
    assert (step.status, following.status, house.ran) == ("succeeded", "ready", [1])
    assert verdict_of(step).words == "twice the amount"
    holds(run)


def test_accepted_as_it_is_the_run_goes_on(house, tool, judge):
    run, (step, _) = rejected(house, judge)
    interrupt = open_of(step)
    with refused(MayNot):
        house.respond(interrupt, by="alice")
    with refused(InvalidBody):
        house.respond(interrupt, "compensate", value={"action": "leave"})
    house.respond(interrupt, "resume")
    assert house.respond(interrupt, "resume").resolution == "resume"
    run = fresh(run)
    assert (run.status, run.verdicts_holding, verdict_of(step).status) == ("running", 0, "rejected")
    house.work(run)
    assert house.ran == [1, 2]
    holds(run)


def test_what_is_to_be_undone_is_undone_before_anything_starts(house, tool, judge, hints):
    run, (step, _) = rejected(house, judge)
    house.respond(open_of(step), "compensate")
    house.work(run)
    run = fresh(run)
    assert (run.status, run.verdicts_holding, house.ran) == ("running", 1, [1])
    holds(run)
    house.look(run)
    assert ("undo", step.pk) in hints
    house.undoes["t"] = lambda *_: (_ for _ in ()).throw(Refused("too late"))
    compensating.compensate(step.pk, "w")
    house.respond(open_of(step, "effect_failed"), "compensate", value={"action": "try_again"})
    house.work(run)
    assert house.ran == [1]
    house.undoes["t"] = lambda *_: None
    compensating.compensate(step.pk, "w")
    assert (fresh(step).status, verdict_of(step).holds) == ("compensated", False)
    house.work(fresh(run))
    assert house.ran == [1, 2]
    holds(run)


def test_an_undoing_that_is_left_lets_the_run_go_on(house, tool, judge):
    run, (step, _) = rejected(house, judge)
    house.undoes["t"] = lambda *_: (_ for _ in ()).throw(Refused("too late"))
    house.respond(open_of(step), "compensate")
    compensating.compensate(step.pk, "w")
    house.respond(open_of(step, "effect_failed"), "compensate", value={"action": "leave"})
    house.work(fresh(run))
    assert (fresh(step).status, house.ran) == ("succeeded", [1, 2])
    holds(run)


def test_revised_the_agent_is_told_and_what_was_to_follow_is_withdrawn(house, tool, judge):
    run, (step, following) = rejected(house, judge)
    value = {"guidance": "pay half", "withdraw": [str(following.pk)]}
    house.respond(open_of(step), "revise", value=value)
    run = fresh(run)
    assert (run.status, run.verdicts_holding) == ("running", 0)
    assert (fresh(following).status, Guidance.objects.get(run=run).text) == ("revised", "pay half")
    holds(run)


def test_cancelled_it_holds_nothing_more(house, tool, judge):
    run, (step, following) = rejected(house, judge)
    house.respond(open_of(step), "cancel")
    run = fresh(run)
    assert (run.status, run.verdicts_holding) == ("cancelled", 0)
    assert fresh(following).status == "cancelled"
    holds(run)


def test_undone_meanwhile_it_is_still_for_a_person_to_let_the_run_go_on(house, tool, judge):
    run, (step, _) = rejected(house, judge)
    compensating.compensate_step(house.people["olga"], step.pk)
    compensating.compensate(step.pk, "w")
    assert fresh(step).status == "compensated"
    house.work(fresh(run))
    assert (fresh(run).status, house.ran) == ("suspended", [1])
    house.respond(open_of(step), "compensate")
    house.work(fresh(run))
    assert house.ran == [1, 2]
    holds(run)


def test_no_word_is_asked_for_again_and_never_taken_for_passed(house, tool, judge, hints):
    judge.says = [NOTHING, RuntimeError("secret"), lambda: None]
    run, (step, following) = done(house)
    for tries, error in [
        (1, "The verifier said neither passed nor rejected."),
        (2, "The verifier broke off."),
    ]:
        judging.judge(step.pk, "w")
        verdict = verdict_of(step)
        assert (verdict.status, verdict.tries, verdict.error) == ("awaited", tries, error)
        backoff = (verdict.ask_at - fresh(run).updated_at).total_seconds()
        assert backoff == 4 * tries
        judging.judge(step.pk, "w")  # too soon: nobody is asked
        assert len(judge.saw) == tries
        house.work(fresh(run))
        holds(run)
        Verdict.objects.filter(pk=verdict.pk).update(ask_at="2020-01-01T00:00:00Z")
    judging.judge(step.pk, "w")
    verdict = verdict_of(step)
    assert (verdict.status, verdict.tries, verdict.words) == ("unknown", 3, None)
    assert (fresh(run).status, fresh(following).status, house.ran) == ("suspended", "ready", [1])
    interrupt = open_of(step)
    assert (interrupt.reason, interrupt.evidence["verdict"]) == ("verifier_rejected", "unknown")
    holds(run)


def test_whoever_dies_while_asking_is_found_and_counts_as_a_try(house, tool, judge, hints):
    class Died(BaseException):
        pass

    def dies():
        raise Died

    judge.says = [dies]
    run, (step, _) = done(house)
    hints.clear()
    for tries in (1, 2, 3):
        with pytest.raises(Died):
            judging.judge(step.pk, "w")
        judging.judge(step.pk, "w")  # a second hint: somebody may still be at it
        house.look(run)
        assert (verdict_of(step).tries, len(judge.saw), hints) == (tries, tries, [])
        earlier(verdict_of(step), "asking_until", 3600)
        house.look(run)
        assert hints.pop() == ("judge", step.pk)
        holds(run)
    judging.judge(step.pk, "w")
    assert (verdict_of(step).status, len(judge.saw)) == ("unknown", 3)
    assert open_of(step).evidence["error"] == "Whoever asked the verifier did not come back."
    holds(run)


def test_a_late_or_second_verdict_changes_nothing(house, tool, judge):
    run, (step, _) = done(house)

    def overtaken():
        earlier(verdict_of(step), "asking_until", 3600)
        judge.says = [PASSED]
        judging.judge(step.pk, "other")
        return REJECTED

    judge.says = [overtaken]
    judging.judge(step.pk, "w")
    judging.judge(step.pk, "w")
    assert (verdict_of(step).status, verdict_of(step).words) == ("passed", None)
    assert fresh(run).status == "running"
    assert not Interrupt.objects.filter(run=run).exists()
    assert kinds(run).count("verdict.recorded") == 1
    holds(run)


def test_what_goes_on_meanwhile_is_interrupted_by_a_late_rejection(house, judge, hints):
    house.tool("t", verifier={**DECLARED, "before_next": False})
    house.tool("plain")
    run, (step, following) = done(house)
    assert (fresh(following).status, house.ran) == ("succeeded", [1, 2])
    judge.says = [REJECTED]
    judging.judge(step.pk, "w")
    run = fresh(run)
    assert (run.status, run.verdicts_awaited, run.verdicts_holding) == ("suspended", 0, 1)
    assert [one["resolution"] for one in open_of(step).allowed] == ["resume", "revise", "cancel"]
    holds(run)
    house.respond(open_of(step), "resume")
    assert fresh(run).status == "running"
    holds(run)


def test_a_verdict_of_an_ended_run_is_taken_and_interrupts_nothing(house, judge, hints):
    house.tool("t", verifier={**DECLARED, "before_next": False})
    run, (step,) = done(house, ("t", {"n": 1}))
    runs.complete_run(house.agent, run.pk, output=1)
    hints.clear()
    assert fresh(run).due_at is not None
    house.look(run)
    assert hints == [("judge", step.pk)]
    judge.says = [REJECTED]
    judging.judge(step.pk, "w")
    run = fresh(run)
    assert (run.status, run.verdicts_awaited, run.verdicts_holding) == ("completed", 0, 0)
    assert (verdict_of(step).status, verdict_of(step).words) == ("rejected", "twice the amount")
    assert not Interrupt.objects.filter(run=run).exists()
    holds(run)
    house.look(run)
    assert fresh(run).due_at is None


def test_what_an_agent_runs_itself_is_judged_and_held_too(house, judge, hints):
    house.tool("mine", kind="agent", verifier=DECLARED)
    run = house.run()
    first, second = house.propose(run, ("mine", {"n": 1}), ("mine", {"n": 2}))
    house.report(house.claim(first))
    with refused(NotAuthorized):
        house.claim(second)
    judging.judge(first.pk, "w")
    assert judge.saw[0][1]["source"] == "agent"
    house.claim(second)
    holds(run)


def test_a_completion_that_is_agreed_to_waits_for_what_is_judged_and_undone(
    house, judge, hints, authority
):
    trigger = {"rule": "results", "trigger": "milestone", "explanation": "It reaches the end."}
    detail = {"points": [["end", "before completion"]], "triggers": [trigger]}
    authority.completion = Judgement("approve", "results", 1, detail=detail)
    house.undoes["t"] = lambda *_: None
    house.tool("t", effect="reversible", compensate={}, verifier={**DECLARED, "before_next": False})
    run, (step,) = done(house, ("t", {"n": 1}))
    runs.complete_run(house.agent, run.pk, output=1)
    judge.says = [REJECTED]
    judging.judge(step.pk, "w")
    house.respond(open_of(step), "compensate")
    house.respond(open_of(run, "milestone"), "resume")
    run = fresh(run)
    assert (run.status, run.verdicts_holding, run.output) == ("running", 1, None)
    with refused(StepsOutstanding) as raised:
        runs.complete_run(house.agent, run.pk, output=1)
    assert raised.value.detail == "What was done is being judged."
    house.look(run)
    assert ("undo", step.pk) in hints
    compensating.compensate(step.pk, "w")
    assert fresh(step).status == "compensated"
    assert runs.complete_run(house.agent, run.pk, output=1).status == "completed"
    holds(run)


def test_a_read_is_judged_and_what_failed_or_a_person_answered_is_not(house, judge, hints):
    house.tool("look", effect="read", verifier=DECLARED)
    house.tool("t", verifier=DECLARED)
    house.behaviour["t"] = lambda *_: Observed(Outcome.FAILED, error="no")
    run, (look, failed, following) = done(house, ("look", {}), ("t", {}), ("look", {}))
    assert (fresh(failed).status, hints) == ("ready", [("judge", look.pk)])
    judging.judge(look.pk, "w")
    house.work(fresh(run))
    assert (fresh(failed).status, fresh(following).status) == ("failed", "succeeded")
    assert {one.step_id for one in Verdict.objects.all()} == {look.pk, following.pk}
    holds(run)


def test_the_verifier_is_the_versions_own(house, tool, judge, hints):
    _, (step, _) = done(house)
    house.new_version(step.tool, verifier=None)
    house.withdraw_authority()
    judging.judge(step.pk, "w")
    assert verdict_of(step).status == "passed"
    _, (later, _) = done(house)
    assert not Verdict.objects.filter(step=later).exists()


def test_a_drained_host_asks_nobody(house, tool, judge):
    _, (step, _) = done(house)
    draining.begin_drain("w")
    judging.judge(step.pk, "w:1")
    assert (verdict_of(step).tries, judge.saw) == (0, [])
    draining.end_drain("w")
    judging.judge(step.pk, "w:1")
    assert verdict_of(step).status == "passed"


def test_the_words_on_what_is_sensitive_are_not_kept(house, judge, hints):
    house.tool("t", verifier=DECLARED, sensitive=["/card"])
    run, (step,) = rejected(house, judge, ("t", {"card": "4242"}))
    assert verdict_of(step).words == judging.NOT_KEPT
    holds(run)


def test_the_database_lets_no_verdict_be_taken_back(house, tool, judge):
    _, (step, _) = rejected(house, judge)
    recorded = Verdict.objects.filter(step=step)
    for change in ({"status": "passed"}, {"receipt": step.pk}):
        with pytest.raises(DatabaseError), transaction.atomic():
            recorded.update(**change)
    with pytest.raises(DatabaseError), transaction.atomic():
        recorded.delete()
    assert recorded.get().status == "rejected"


def test_a_hold_taken_off_the_runs_row_is_told_and_starts_nothing(house, tool, judge):
    run, _ = done(house)
    with as_owner() as owner:
        owner.execute("UPDATE interrupts_run SET verdicts_holding = 0 WHERE id = %s", [run.pk])
    assert any("verdicts" in fault.what for fault in verification.of_run(fresh(run)))
    house.work(run)
    assert (house.ran, fresh(run).damage is not None) == ([1], True)


def test_of_steps_without_a_verifier_no_statement_asks_for_verdicts(house, judge, hints):
    house.tool("plain")
    house.tool("look", effect="read")
    house.tool("mine", kind="agent")
    with CaptureQueriesContext(connection) as made:
        run, steps = done(house, ("plain", {"n": 1}), ("look", {}), ("mine", {}))
        house.report(house.claim(steps[2]))
        house.look(run)
        selectors.shown_steps([fresh(step) for step in steps])
        house.respond(house.stop(run))
        runs.complete_run(house.agent, run.pk, output=1)
    asked = [one["sql"] for one in made if '"interrupts_verdict"' in one["sql"]]
    assert (asked, judge.saw, hints) == ([], [], [])
