"""What people do on a run's page: each form does what it says, and a refusal leaves all as it was."""

import pytest

from interrupts.authorizer import Judgement
from interrupts.effects import Refused
from interrupts.models import Attempt, Guidance, Interrupt, Receipt, Run
from interrupts.services import compensating, runs
from tenants.models import Agent
from tests.interrupts.house import (
    authority,
    earlier,
    fresh,
    house,
    nothing_changes,
    nothing_remembered,
    open_of,
    sent,
)
from tests.pages.runs import Browser, form, offered, text_of

__all__ = ["authority", "house", "nothing_remembered", "sent"]
SCHEMA = {
    "type": "object",
    "required": ["amount", "kind"],
    "additionalProperties": False,
    "properties": {
        "amount": {"type": "integer", "minimum": 1, "title": "How many"},
        "kind": {"enum": ["big", "small"]},
        "note": {"type": "string"},
        "sure": {"type": "boolean"},
        "more": {"type": "array"},
    },
}


def url(run):
    return f"/runs/{run.pk}"


@pytest.fixture
def olga(house):
    return Browser(house, "olga")


# Completing


def test_the_result_is_shown_to_who_agrees_and_completes_the_run(house, olga, authority):
    trigger = {"rule": "results", "trigger": "milestone", "explanation": "It reaches the end."}
    detail = {"points": [["end", "before completion"]], "triggers": [trigger]}
    authority.completion = Judgement("approve", "results", 1, detail=detail)
    run = house.run()
    runs.complete_run(house.agent, run.pk, output={"paid": "<b>20.00</b>"})
    interrupt = open_of(run)
    page = text_of(olga.get(url(run)))
    assert "It reaches the end. (rule “results”)" in page
    assert '"paid": "<b>20.00</b>"' in page
    assert offered(olga.get(url(run))) == ["resume", "revise", "cancel"]
    Agent.objects.filter(pk=run.agent_id).update(owner=house.people["olga"].id)
    assert offered(olga.get(url(run))) == ["revise", "cancel"]
    Agent.objects.filter(pk=run.agent_id).update(owner=None)

    olga.post(f"/interrupts/{interrupt.pk}/answer", olga.get(url(run)),
              checkpoint=interrupt.checkpoint, resolution="resume", answer="resume", note="ok")  # fmt: skip
    assert (fresh(run).status, fresh(run).output) == ("completed", {"paid": "<b>20.00</b>"})


# Stopping


@pytest.mark.parametrize("way", ["finish", "cancel"])
def test_a_stop_holds_the_run_and_its_children(house, olga, way):
    run = house.run()
    child = house.run(parent=run.pk)
    page = olga.get(url(run))
    assert "Hold this run and 1 child" in page
    where = olga.post(f"{url(run)}/stop", page, in_flight=way, note="wait a moment")
    stop = open_of(run)
    assert where == f"{url(run)}#i-{stop.pk}"
    assert (stop.reason, stop.in_flight, stop.note) == ("operator_stop", way, "wait a moment")
    assert [fresh(one).status for one in (run, child)] == ["suspended", "suspended"]
    assert "wait a moment" in text_of(olga.get(url(run)))


def test_a_stop_pressed_twice_is_one(house, olga):
    run = house.run()
    page = olga.get(url(run))
    for _ in range(2):
        olga.post(f"{url(run)}/stop", page, in_flight="finish")
    assert Interrupt.objects.filter(run=run).count() == 1


@pytest.mark.parametrize("who", ["alice", "vera"])
@pytest.mark.parametrize("act", ["stop", "cancel"])
def test_who_may_not_stop_is_told_and_nothing_changes(house, who, act):
    run = house.run()
    other = Browser(house, who)
    with nothing_changes():
        answer = other.post(f"{url(run)}/{act}", other.get("/profile"), status=403)
    assert "What you sent was not recorded" in text_of(answer)
    assert "This is not yours to do" in answer


def test_a_stop_of_an_ended_run_is_refused(house, olga):
    run = house.run()
    page = olga.get(url(run))
    house.cancel(run)
    with nothing_changes():
        answer = olga.post(f"{url(run)}/stop", page, status=409, in_flight="finish")
    assert "This run takes no more answers" in answer


def test_without_the_forms_token_nothing_is_done(house, olga):
    run = house.run()
    with nothing_changes():
        assert olga.client.post(f"{url(run)}/stop").status_code == 403


@pytest.mark.parametrize(("done", "compensating"), [("leave", False), ("undo", True)])
def test_a_run_is_stopped_for_good(house, olga, done, compensating):
    house.tool("mine", kind="agent")
    run = house.run()
    (step,) = house.propose(run, ("mine", {}))
    house.claim(step)
    olga.post(f"{url(run)}/cancel", olga.get(url(run)), done=done, note="enough")
    run = fresh(run)
    assert (run.status, run.compensating) == ("cancelling", compensating)
    says = text_of(olga.get(url(run)))
    assert "It is being stopped for good" in says
    assert "enough" in says


# Releasing and revising


def test_a_stopped_run_is_let_go_on(house, olga):
    run = house.run()
    house.stop(run)
    where, hidden = form(page := olga.get(url(run)), answer="resume")
    olga.post(where, page, **hidden, note="all is well")
    assert fresh(run).status == "running"
    assert Interrupt.objects.get(run=run).response["note"] == "all is well"


def test_the_same_answer_sent_twice_is_one(house, olga):
    run = house.run()
    house.stop(run)
    where, hidden = form(page := olga.get(url(run)), answer="resume")
    for _ in range(2):
        assert olga.post(where, page, **hidden) == url(run)
    assert fresh(run).status == "running"


def test_another_answer_is_refused_with_who_was_first(house, olga):
    run = house.run()
    stop = house.stop(run)
    where, hidden = form(page := olga.get(url(run)), answer="cancel")
    house.respond(stop, by="ada", note="go")
    with nothing_changes():
        answer = olga.post(where, page, status=409, **hidden)
    says = text_of(answer)
    assert "Somebody answered before you" in says
    assert house.people["ada"].name in says
    assert "go" in says


def test_an_answer_to_another_checkpoint_is_refused(house, olga):
    run = house.run()
    house.stop(run)
    other = house.stop(house.run())
    where, hidden = form(page := olga.get(url(run)), answer="resume")
    with nothing_changes():
        answer = olga.post(where, page, status=409, **{**hidden, "checkpoint": other.checkpoint})
    assert "This changed while you were reading" in answer


def test_a_run_is_revised_with_what_is_withdrawn(house, olga):
    house.tool("t")
    house.policy.verdicts["t"] = "approve"
    run = house.run()
    first, second = house.propose(run, ("t", {"n": 1}), ("t", {"n": 2}))
    stop = house.stop(run)
    page = olga.get(url(run))
    assert page.count('name="withdraw"') == 2
    where, hidden = form(page, answer="revise")
    assert where.endswith(f"/interrupts/{stop.pk}/answer")
    olga.post(where, page, **hidden, guidance="ask first", withdraw=[str(first.pk)])
    assert [fresh(one).status for one in (first, second)] == ["revised", "waiting"]
    assert Guidance.objects.get(run=run).text == "ask first"
    says = text_of(olga.get(url(run)))
    assert "ask first" in says
    assert "not read by the agent yet" in says


def test_a_revision_without_words_is_shown_again_with_what_was_picked(house, olga):
    house.tool("t")
    house.policy.verdicts["t"] = "approve"
    run = house.run()
    (step,) = house.propose(run, ("t", {"n": 1}))
    house.stop(run)
    where, hidden = form(page := olga.get(url(run)), answer="revise")
    with nothing_changes():
        again = olga.post(where, page, status=422, **hidden, guidance="  ", withdraw=[str(step.pk)])
    assert "Your answer was not recorded" in again
    assert f'value="{step.pk}" checked' in again
    assert 'class="wrong"' in again


def test_a_silent_owner_is_not_waited_for(house, olga):
    run = house.run(idle_after=1)
    earlier(run, "last_seen_at", 60)
    house.look(run)
    page = olga.get(url(run))
    assert "Let the run go on without waiting for the agent" in page
    where, hidden = form(page, answer="resume")
    olga.post(where, page, **hidden)
    assert fresh(run).status == "running"


# Inputs


def ask(house, run, schema=None):
    return house.interrupt(
        house.agent, run, "input_required", question="How <b>many</b>?", schema=schema
    )


def test_a_question_is_the_agents_own_words(house, olga):
    run = house.run()
    ask(house, run, SCHEMA)
    page = olga.get(url(run))
    assert "How &lt;b&gt;many&lt;/b&gt;?" in page
    assert "Written by the agent. Not checked." in text_of(page)
    assert "names and hints of these fields were written by the agent" in text_of(page)


def test_a_value_is_typed_field_by_field_and_keeps_its_types(house, olga):
    run = house.run()
    asked = ask(house, run, SCHEMA)
    where, hidden = form(page := olga.get(url(run)), answer="resume")
    typed = {"v.amount": "7", "v.kind": '"big"', "v.sure": "false", "v.more": '[1, "a"]'}
    olga.post(where, page, **hidden, **typed)
    value = fresh(asked).response["value"]
    assert value == {"amount": 7, "kind": "big", "sure": False, "more": [1, "a"]}
    assert fresh(run).status == "running"


@pytest.mark.parametrize(
    "typed",
    [
        {"v.amount": "many", "v.kind": '"big"'},
        {"v.amount": "0", "v.kind": '"big"'},
        {"v.amount": "", "v.kind": '"big"'},
        {"v.amount": "7", "v.kind": '"huge"'},
        {"v.amount": "7", "v.kind": '"big"', "v.more": "[1,"},
        {"v.amount": "7", "v.kind": '"big"', "v.note": "a\0b"},
    ],
)
def test_a_value_that_breaks_the_schema_is_shown_again_as_it_was_typed(house, olga, typed):
    run = house.run()
    ask(house, run, SCHEMA)
    where, hidden = form(page := olga.get(url(run)), answer="resume")
    with nothing_changes():
        again = olga.post(where, page, status=422, **hidden, **typed)
    assert "Your answer was not recorded" in again
    assert 'aria-invalid="true"' in again or 'role="alert"' in again
    assert f'value="{typed["v.amount"]}"' in again


def test_a_value_of_one_of_several_types_is_typed_as_json(house, olga):
    several = {"type": ["integer", "null"]}
    for schema in (several, {"type": "object", "properties": {"amount": several}}):
        run = house.run()
        ask(house, run, schema)
        page = olga.get(url(run))
        where, hidden = form(page, answer="resume")
        olga.post(where, page, **hidden, **{"v.amount": "3", "value": "3"})
        assert fresh(run).status == "running"


def test_an_answer_without_a_schema_is_a_text(house, olga):
    run = house.run()
    asked = ask(house, run)
    where, hidden = form(page := olga.get(url(run)), answer="resume")
    olga.post(where, page, **hidden, value="take\r\nthe second")
    assert fresh(asked).response["value"] == "take\nthe second"


def test_the_requester_answers_and_cancels_nothing(house):
    run = house.run(requested_by=house.people["alice"].name)
    asked = ask(house, run)
    alice = Browser(house, "alice")
    page = alice.get(url(run))
    assert offered(page) == ["resume", "revise"]
    where, hidden = form(page, answer="resume")
    with nothing_changes():
        alice.post(where, page, status=403, **{**hidden, "resolution": "cancel"})
    alice.post(where, page, **hidden, value="yes")
    assert fresh(asked).resolution == "resume"


# Budgets


def test_a_budget_is_raised(house, olga):
    run = house.run(budget={"tokens": 10, "cost": "1.50"})
    runs.report_usage(house.agent, run.pk, tokens=11)
    page = olga.get(url(run))
    assert "11 used of 10, used up" in text_of(page)
    where, hidden = form(page, answer="resume")
    with nothing_changes():
        again = olga.post(where, page, status=422, **hidden, **{"v.tokens": "10"})
    assert "is used already" in again
    olga.post(where, page, **hidden, **{"v.tokens": "100", "v.cost": "2.75"})
    run = fresh(run)
    assert (run.status, run.budget) == ("running", {"tokens": 100, "cost": "2.75"})


# Unknown outcomes


@pytest.fixture
def lost(house):
    house.tool("t", reconcile={"settle_after": 30})
    return house.lost(n="<b>1</b>")


def test_only_what_the_schema_offers_is_offered(house, olga, lost):
    run, step = lost
    page = olga.get(url(run))
    inside = open_of(step).schema["properties"]["outcome"]["enum"]
    assert set(offered(page)) - {"cancel"} == set(inside)
    assert "&lt;b&gt;1&lt;/b&gt;" in page


def test_sending_again_is_not_offered_once_the_key_has_lapsed(house, olga):
    house.tool("t", effect="irreversible", key_lifetime=60)
    run, step = house.lost()
    assert "not_performed" in offered(olga.get(url(run)))
    earlier(Attempt.objects.get(step=step), "started_at", 61)
    assert "not_performed" not in offered(olga.get(url(run)))


def test_it_happened_is_recorded_with_its_evidence(house, olga, lost):
    run, step = lost
    where, hidden = form(page := olga.get(url(run)), answer="performed")
    typed = {"evidence": "in the log", "external_id": "tx-9", "result": '{"paid": true}'}
    olga.post(where, page, **hidden, **typed)
    step = fresh(step)
    assert (step.status, step.external_id) == ("succeeded", "tx-9")
    assert Receipt.objects.get(step=step, source="person").evidence == "in the log"
    assert fresh(run).status == "running"


@pytest.mark.parametrize(
    ("answer", "typed", "why"),
    [
        ("performed", {}, "required"),
        ("performed", {"evidence": "x", "result": "{"}, "This is no JSON"),
        ("not_performed", {"evidence": "x"}, "Say that you looked"),
        ("skip", {}, "required"),
        ("unresolvable", {"evidence": " "}, "required"),
    ],
)
def test_a_finding_without_what_it_needs_is_shown_again(house, olga, lost, answer, typed, why):
    run, _ = lost
    where, hidden = form(page := olga.get(url(run)), answer=answer)
    with nothing_changes():
        again = olga.post(where, page, status=422, **hidden, **typed)
    assert why in again
    assert "Your answer was not recorded" in again


@pytest.mark.parametrize(
    ("answer", "step_is", "run_is"),
    [
        ("not_performed", "ready", "running"),
        ("skip", "failed", "running"),
        ("unresolvable", "unknown", "failed"),
    ],
)
def test_each_finding_does_what_it_says(house, olga, lost, answer, step_is, run_is):
    run, step = lost
    where, hidden = form(page := olga.get(url(run)), answer=answer)
    olga.post(where, page, **hidden, evidence="looked", looked="yes")
    assert (fresh(step).status, fresh(run).status) == (step_is, run_is)


def test_checking_again_settles_nothing_and_stands_among_the_checks(house, olga, lost):
    run, step = lost
    where, hidden = form(page := olga.get(url(run)), answer="check_again")
    olga.post(where, page, **hidden)
    assert (fresh(step).status, open_of(step).status) == ("unknown", "open")
    assert "a person asked to check again" in text_of(olga.get(url(run)))


@pytest.mark.parametrize("who", ["alice", "vera"])
def test_only_operators_settle_an_unknown_outcome(house, olga, lost, who):
    run, _ = lost
    where, hidden = form(olga.get(url(run)), answer="skip")
    other = Browser(house, who)
    assert offered(other.get(url(run))) == []
    with nothing_changes():
        other.post(where, other.get("/profile"), status=403, **hidden, evidence="x")


# Undoing, and going on as a new run


@pytest.fixture
def done(house):
    house.tool("t", effect="reversible")
    house.undoes["t"] = lambda *_: {"undone": True}
    run = house.run()
    (step,) = house.propose(run, ("t", {"n": 1}))
    house.work(run)
    return run, fresh(step)


def test_an_effect_is_asked_to_be_undone(house, olga, done):
    run, step = done
    page = olga.get(url(run))
    assert f"Undo step {step.position}" in page
    olga.post(f"/steps/{step.pk}/undo", page)
    assert fresh(step).undo_wanted
    assert f"Undo step {step.position}" not in olga.get(url(run))


@pytest.fixture
def stuck(house, done, monkeypatch):
    """A run that is cancelled, and whose effect the far end refuses to undo."""
    run, step = done

    def refuse(*_):
        raise Refused("<i>too late</i> to undo")

    house.undoes["t"] = refuse
    monkeypatch.setattr("interrupts.queue.compensate", lambda _: None)
    house.cancel(run, compensate=True)
    house.look(run)
    compensating.compensate(step.pk, "w")
    return fresh(run), fresh(step)


def test_a_refused_undoing_is_tried_again_or_left(house, olga, stuck):
    run, step = stuck
    page = olga.get(url(run))
    assert offered(page) == ["try_again", "leave"]
    assert "&lt;i&gt;too late&lt;/i&gt; to undo" in page
    where, hidden = form(page, answer="try_again")
    olga.post(where, page, **hidden)
    assert fresh(step).status == "compensating"
    compensating.compensate(step.pk, "w")
    page = olga.get(url(run))
    where, hidden = form(page, answer="leave")
    olga.post(where, page, **hidden)
    assert (fresh(step).status, fresh(run).status) == ("succeeded", "cancelled")
    assert "1 effect happened and stands" in text_of(olga.get(url(run)))


@pytest.mark.parametrize("who", ["alice", "vera"])
def test_only_operators_say_what_becomes_of_a_refused_undoing(house, olga, stuck, who):
    run, _ = stuck
    where, hidden = form(olga.get(url(run)), answer="leave")
    other = Browser(house, who)
    assert offered(other.get(url(run))) == []
    with nothing_changes():
        other.post(where, other.get("/profile"), status=403, **hidden)


def test_who_may_not_undo_is_told_and_nothing_changes(house, done):
    _, step = done
    alice = Browser(house, "alice")
    with nothing_changes():
        alice.post(f"/steps/{step.pk}/undo", alice.get("/profile"), status=403)


def test_an_ended_run_goes_on_as_one_new_run(house, olga):
    run = house.run()
    house.cancel(run)
    page = olga.get(url(run))
    where, hidden = form(page, answer_key=_key(page))
    checkpoint = str(fresh(run).checkpoint_id)
    first = olga.post(where, page, **hidden, checkpoint=checkpoint)
    again = olga.post(where, page, **hidden, checkpoint=checkpoint)
    assert first == again
    fork = Run.objects.get(forked_from=run)
    assert first == url(fork)
    assert "Goes on from" in text_of(olga.get(url(fork)))


def _key(page):
    return page.split('name="answer_key" value="')[1].split('"')[0]


def test_a_run_that_has_not_ended_is_not_forked(house, olga):
    run = house.run()
    house.stop(run)
    page = olga.get(url(run))
    assert "Go on as a new run" not in page
    with nothing_changes():
        checkpoint = fresh(run).checkpoint_id
        answer = olga.post(f"{url(run)}/fork", page, status=409, checkpoint=checkpoint)
    assert "This run has not ended" in answer


def test_only_operators_fork(house, olga):
    run = house.run()
    house.cancel(run)
    alice = Browser(house, "alice")
    assert "Go on as a new run" not in alice.get(url(run))
    with nothing_changes():
        checkpoint = fresh(run).checkpoint_id
        alice.post(f"{url(run)}/fork", alice.get("/profile"), status=403, checkpoint=checkpoint)
