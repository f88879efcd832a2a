"""Asking the agent about a gate: it wakes and answers, and the gate goes on waiting as it is."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.core import mail
from django.db import DatabaseError, IntegrityError, connection, transaction

from approvals.models import Decision, Gate
from approvals.services import decisions, notices, questions
from approvals.services.notices import Wishes
from approvals.services.questions import MOST_QUESTIONS
from interrupts import verification
from interrupts.models import Question, Run, Step
from tenants import outbox
from tenants.ids import uuid7
from tenants.models import Agent, JournalEntry, OutboxMessage, User
from tests.approvals.house import fresh

ASKED = "Which order is this for?"
ANSWERED = "Order o-1017, from March."


def ask(house, gate, who="alice", text=ASKED, **headers):
    return house.request(who, "POST", f"/gates/{gate.pk}/questions", {"text": text}, **headers)


def answer(house, gate, question, who="bot", text=ANSWERED, **more):
    path = f"/gates/{gate.pk}/questions/{question}/answer"
    return house.request(who, "POST", path, {"text": text, **more})


def trace(house, gate):
    return {
        **house.trace(gate),
        "questions": list(Question.objects.order_by("id").values()),
        "journal": JournalEntry.objects.count(),
        "owed": OutboxMessage.objects.count(),
        "runs": list(Run.objects.order_by("id").values()),
    }


def refused(house, gate, told, status, code, before):
    assert (told[0], told[1]["code"]) == (status, code)
    assert trace(house, gate) == before


def test_a_question_is_asked_and_the_gate_waits_as_it_was(house):
    gate = house.ask()
    version = Run.objects.get(pk=gate.run_id).state_version

    status, body, headers = ask(house, gate)

    assert status == 201
    assert body["text"] == ASKED
    assert body["asked_by"] == "alice"
    assert body["asked_at"]
    assert (body["answer"], body["answered_at"], body["gate"]) == (None, None, str(gate.pk))
    assert body["state_version"] == version + 1
    assert headers["ETag"] == f'"{version + 1}"'
    assert Gate.objects.values().get(pk=gate.pk) == {
        name: getattr(gate, name) for name in Gate.objects.values().get(pk=gate.pk)
    }
    run = Run.objects.get(pk=gate.run_id)
    assert (run.status, run.open_interrupts) == ("suspended", 1)
    assert house.calls == []


def test_the_agent_sees_what_is_asked_wherever_it_looks_and_not_by_whom(house):
    gate = house.ask()
    asked = ask(house, gate)[1]

    of_gate = house.request("bot", "GET", f"/gates/{gate.pk}")[1]["questions"]
    of_step = house.request("bot", "GET", f"/steps/{gate.step_id}")[1]["questions"]
    of_run = house.request("bot", "GET", f"/runs/{gate.run_id}")[1]["questions"]
    listed = house.request("bot", "GET", f"/runs/{gate.run_id}/steps")[1]["results"][0]

    at = asked["asked_at"]
    assert of_gate == [
        {"id": asked["id"], "text": ASKED, "at": at, "answer": None, "answered_at": None}
    ]
    assert of_step == of_run == listed["questions"]
    assert of_step == [
        {
            "id": asked["id"],
            "gate": str(gate.pk),
            "step": str(gate.step_id),
            "text": ASKED,
            "at": at,
        }
    ]
    people = house.request("carol", "GET", f"/gates/{gate.pk}")[1]["questions"]
    assert people == [{**of_gate[0], "by": "alice"}]


def test_who_waits_for_the_run_is_woken_by_a_question_and_by_its_answer(house):
    gate = house.ask()
    for act in (lambda: ask(house, gate), lambda: answer(house, gate, Question.objects.get().pk)):
        version = house.request("bot", "GET", f"/runs/{gate.run_id}")[1]["state_version"]
        act()
        for path in (f"/runs/{gate.run_id}", f"/steps/{gate.step_id}", f"/gates/{gate.pk}"):
            seen = house.request("bot", "GET", f"{path}?wait=30&after_version={version}")[1]
            assert seen["state_version"] == version + 1


def test_the_agents_answer_is_there_and_asks_nothing_any_more(house):
    gate = house.ask()
    question = ask(house, gate)[1]["id"]

    status, body, headers = answer(house, gate, question)

    assert (status, body["answer"], body["id"]) == (200, ANSWERED, question)
    assert body["answered_at"]
    assert "asked_by" not in body
    assert headers["ETag"] == f'"{body["state_version"]}"'
    (seen,) = house.request("alice", "GET", f"/gates/{gate.pk}")[1]["questions"]
    assert (seen["answer"], seen["by"]) == (ANSWERED, "alice")
    for path in (f"/steps/{gate.step_id}", f"/runs/{gate.run_id}"):
        assert house.request("bot", "GET", path)[1]["questions"] == []
    assert fresh(gate).digest == gate.digest
    assert house.decide("alice", gate).state == "approved"
    assert list(verification.of_run(Run.objects.get(pk=gate.run_id))) == []


def test_the_journal_says_who_asked_and_that_it_was_answered_in_no_words(house):
    gate = house.ask()
    question = ask(house, gate)[1]["id"]
    answer(house, gate, question)

    kinds = ("gate.question_asked", "gate.question_answered")
    entries = list(JournalEntry.objects.filter(kind__in=kinds).order_by("seq"))

    assert [one.kind for one in entries] == list(kinds)
    asked, answered = (json.loads(one.text) for one in entries)
    assert asked["actor"] == {"kind": "user", "id": str(house.people["alice"].id)}
    assert answered["actor"] == {"kind": "agent", "id": str(house.agent.id)}
    assert asked["data"]["question"] == answered["data"]["question"] == question
    assert all(words not in one.text for one in entries for words in (ASKED, ANSWERED))


def test_the_same_question_again_is_the_first_one_until_it_is_answered(house):
    gate = house.ask()
    first = ask(house, gate)[1]
    before = trace(house, gate)

    status, again, headers = ask(house, gate)

    assert (status, again, headers["Idempotent-Replayed"]) == (200, first, "true")
    after = trace(house, gate)
    assert (after["questions"], after["journal"]) == (before["questions"], before["journal"])
    assert ask(house, gate, "carol")[0] == 201
    answer(house, gate, first["id"])
    assert ask(house, gate)[0] == 201
    assert Question.objects.count() == 3


def test_the_same_answer_again_is_the_same_and_another_is_refused(house):
    gate = house.ask()
    question = ask(house, gate)[1]["id"]
    first = answer(house, gate, question)[1]

    status, again, headers = answer(house, gate, question)

    assert (status, again, headers["Idempotent-Replayed"]) == (200, first, "true")
    before = trace(house, gate)
    refused(house, gate, answer(house, gate, question, text="no"), 409, "already-answered", before)
    house.decide("alice", gate, "reject", reason="no")
    assert answer(house, gate, question)[1]["answer"] == ANSWERED


@pytest.mark.parametrize(
    ("who", "status", "code"),
    [
        ("bot", 403, "people-only"),
        ("other", 403, "people-only"),
        ("bob", 403, "not-an-approver"),
        ("olga", 403, "not-an-approver"),
        ("ada", 403, "not-an-approver"),
        ("vera", 403, "forbidden"),
    ],
)
def test_who_may_not_decide_asks_nothing(house, who, status, code):
    gate = house.ask()
    before = trace(house, gate)
    refused(house, gate, ask(house, gate, who), status, code, before)


def test_for_whom_it_runs_asks_nothing(house):
    gate = house.ask(run=house.run(requested_by="alice"))
    before = trace(house, gate)
    refused(house, gate, ask(house, gate), 403, "own-request", before)


@pytest.mark.parametrize(
    ("who", "code"),
    [("alice", "agents-only"), ("olga", "agents-only"), ("other", "not-your-run")],
)
def test_nobody_but_the_runs_agent_answers(house, who, code):
    gate = house.ask()
    question = ask(house, gate)[1]["id"]
    before = trace(house, gate)
    refused(house, gate, answer(house, gate, question, who), 403, code, before)


def test_a_process_that_was_taken_over_answers_nothing(house):
    gate = house.ask()
    question = ask(house, gate)[1]["id"]
    for _ in range(2):
        house.request("bot", "POST", f"/runs/{gate.run_id}/claim", {})
    before = trace(house, gate)
    told = answer(house, gate, question, session=1)
    refused(house, gate, told, 409, "stale-session", before)
    assert answer(house, gate, question, session=2)[0] == 200


@pytest.mark.parametrize("text", ["", " \n", None, 7, "x" * 2001])
def test_a_question_of_another_form_is_refused(house, text):
    gate = house.ask()
    before = trace(house, gate)
    told = ask(house, gate, text=text)
    refused(house, gate, told, 422, "invalid-body", before)
    assert [one["pointer"] for one in told[1]["errors"]] == ["/text"]
    assert ask(house, gate, text="x" * 2000)[0] == 201


@pytest.mark.parametrize("text", ["", "\t", None, "x" * 10_001])
def test_an_answer_of_another_form_is_refused(house, text):
    gate = house.ask()
    question = ask(house, gate)[1]["id"]
    before = trace(house, gate)
    told = answer(house, gate, question, text=text)
    refused(house, gate, told, 422, "invalid-body", before)
    assert [one["pointer"] for one in told[1]["errors"]] == ["/text"]
    assert answer(house, gate, question, text="x" * 10_000)[0] == 200


def test_more_than_twenty_are_refused_answered_ones_counted(house):
    gate = house.ask()
    for number in range(MOST_QUESTIONS):
        ask(house, gate, text=f"{number}?")
    answer(house, gate, Question.objects.earliest("id").pk)
    before = trace(house, gate)
    refused(house, gate, ask(house, gate, "carol"), 409, "too-many-questions", before)
    assert ask(house, house.ask(arguments={"payment": "q", "amount": "1"}))[0] == 201


@pytest.mark.parametrize("verdict", ["approve", "reject", "request_changes", "respond"])
def test_a_gate_that_is_decided_takes_neither_question_nor_answer(house, verdict):
    gate = house.ask()
    question = ask(house, gate)[1]["id"]
    more = {"respond": {"value": 1}, "approve": {}}.get(verdict, {"reason": "no"})
    house.decide("alice", gate, verdict, **more)
    before = trace(house, gate)
    refused(house, gate, ask(house, gate, text="Why?"), 409, "already-decided", before)
    refused(house, gate, answer(house, gate, question), 409, "already-decided", before)
    for path in (f"/steps/{gate.step_id}", f"/runs/{gate.run_id}"):
        assert house.request("bot", "GET", path)[1]["questions"] == []


def test_a_gate_that_has_expired_takes_neither_found_or_not(house):
    gate = house.ask()
    question = ask(house, gate)[1]["id"]
    Gate.objects.filter(pk=gate.pk).update(expires_at=gate.opened_at - timedelta(seconds=1))
    before = trace(house, gate)
    refused(house, gate, ask(house, gate, text="Why?"), 410, "gate-expired", before)
    refused(house, gate, answer(house, gate, question), 410, "gate-expired", before)
    Gate.objects.filter(pk=gate.pk).update(state="expired", settled_at=gate.opened_at)
    before = trace(house, gate)
    refused(house, gate, ask(house, gate, text="Why?"), 410, "gate-expired", before)
    refused(house, gate, answer(house, gate, question), 410, "gate-expired", before)


def test_while_a_preview_is_being_taken_nothing_is_asked(house):
    house.tool(previewed=True)
    gate = Gate.objects.get(pk=house.propose().gate)
    assert gate.state == "preparing"
    before = trace(house, gate)
    refused(house, gate, ask(house, gate), 409, "gate-preparing", before)


def test_a_version_that_is_not_the_runs_refuses_a_question(house):
    gate = house.ask()
    before = trace(house, gate)
    told = ask(house, gate, **{"If-Match": '"1"'})
    refused(house, gate, told, 412, "version-mismatch", before)


def test_what_is_not_there_is_not_found(house):
    gate, other = house.ask(), house.ask(arguments={"payment": "q", "amount": "1"})
    question = ask(house, gate)[1]["id"]
    before = trace(house, gate)
    for told in (
        house.request("alice", "POST", f"/gates/{uuid7()}/questions", {"text": "x"}),
        answer(house, gate, uuid7()),
        answer(house, other, question),
    ):
        refused(house, gate, told, 404, "not-found", before)


def test_a_gate_that_asks_anew_begins_with_no_questions(house):
    gate = house.ask()
    ask(house, gate)
    house.tool(risk="high")
    house.request("alice", "POST", f"/gates/{gate.pk}/decisions",
                  {"verdict": "approve", "digest": gate.digest})  # fmt: skip
    anew = Gate.objects.get(step=gate.step_id, state="pending")
    assert house.request("bot", "GET", f"/steps/{gate.step_id}")[1]["questions"] == []
    assert house.request("bot", "GET", f"/gates/{anew.pk}")[1]["questions"] == []
    assert len(house.request("bot", "GET", f"/gates/{gate.pk}")[1]["questions"]) == 1


def test_a_question_stands_while_an_approval_is_taken_back(house):
    gate = house.ask()
    question = ask(house, gate)[1]["id"]
    decided = house.decided("alice", gate, "approve", hold_seconds=60)
    assert house.request("bot", "GET", f"/steps/{gate.step_id}")[1]["questions"] == []
    decisions.withdraw_decision(house.people["alice"], gate.pk, decided.decision.pk)
    assert [
        one["id"] for one in house.request("bot", "GET", f"/steps/{gate.step_id}")[1]["questions"]
    ] == [question]
    assert answer(house, gate, question)[0] == 200


def test_an_approval_at_once_shows_the_questions_too(house):
    gate = house.ask()
    answer(house, gate, ask(house, gate)[1]["id"])
    ask(house, gate, "carol", "And why?")
    seen = house.request("alice", "GET", f"/gates/{gate.pk}")[1]["questions"]
    body = {"verdict": "approve", "digest": gate.digest}
    path = f"/gates/{gate.pk}/decisions"

    made = house.request("alice", "POST", path, body, **{"Idempotency-Key": "k1"})[1]

    assert made["questions"] == seen
    assert [one["by"] for one in seen] == ["alice", "carol"]
    assert Decision.objects.count() == 1


def test_an_answer_stands_for_good_whoever_writes_to_the_database(house):
    gate = house.ask()
    question = ask(house, gate)[1]["id"]
    answer(house, gate, question)
    for column, value in (("answer", "'other'"), ("text", "'other'")):
        with (
            pytest.raises(DatabaseError),
            transaction.atomic(),
            connection.cursor() as cursor,
        ):
            cursor.execute(
                f"UPDATE interrupts_question SET {column} = {value} WHERE id = %s", [question]
            )
    assert Question.objects.get().answer == ANSWERED


def test_a_question_names_a_gate_of_its_tenant(house):
    gate = house.ask()
    step = Step.objects.get(pk=gate.step_id)
    with pytest.raises(IntegrityError), transaction.atomic():
        Question.objects.create(
            run_id=gate.run_id,
            step=step,
            gate=uuid7(),
            text="x",
            by_id=house.people["alice"].id,
            at=gate.opened_at,
        )
    assert not Question.objects.exists()


# Who is told


@pytest.fixture
def alice(house, settings, monkeypatch):
    settings.ABEYANCE_BASE_URL = "https://gates.example.test"
    monkeypatch.setattr("tenants.queue.send", lambda _: None)
    User.objects.filter(username="alice").update(email="alice@acme.test")
    return house.people["alice"]


def told_of_answers():
    outbox.send_due()
    return [one for one in mail.outbox if one.subject.startswith("Answered")]


def test_whoever_asked_is_told_once_in_no_words_of_the_agents(house, alice):
    gate = house.ask()
    question = ask(house, gate)[1]["id"]
    assert told_of_answers() == []
    answer(house, gate, question, text="CLICK HERE https://evil.test")
    answer(house, gate, question, text="CLICK HERE https://evil.test")

    (one,) = told_of_answers()

    assert one.to == ["alice@acme.test"]
    assert f"https://gates.example.test/decisions/{gate.pk}" in one.body
    assert "CLICK" not in one.subject + one.body
    assert told_of_answers() == [one]


def test_who_does_not_want_to_be_told_of_answers_is_not(house, alice):
    notices.set_wishes(alice, Wishes(answers=False))
    gate = house.ask()
    answer(house, gate, ask(house, gate)[1]["id"])
    assert told_of_answers() == []


def test_an_answer_to_what_is_decided_by_then_is_no_news(house, alice):
    gate = house.ask()
    answer(house, gate, ask(house, gate)[1]["id"])
    house.decide("carol", gate, "reject", reason="no")
    assert told_of_answers() == []


# Services without the API around them


def test_the_services_ask_again_who_calls(house):
    gate = house.ask()
    before = trace(house, gate)
    with pytest.raises(questions.PeopleOnly):
        questions.ask_agent(house.agent, gate.pk, text="x")
    with pytest.raises(questions.AgentsOnly):
        questions.answer_question(house.people["alice"], gate.pk, uuid7(), text="x")
    assert Agent.objects.count() == 2
    assert trace(house, gate) == before
