"""Asking the agent from the decision page, and where its answer stands."""

from __future__ import annotations

from typing import Any

import pytest

from approvals.services import questions
from interrupts.models import Question
from tests.approvals.house import House, fresh
from tests.pages.conftest import Open, nothing_changes
from tests.pages.test_hostile_text import EVIL, check

pytestmark = pytest.mark.django_db(transaction=True)
BOX = "Answered by the agent. Not checked, may be wrong or steered by what it read."


def path(gate: Any, more: str = "") -> str:
    return f"/decisions/{gate.pk}{more}"


def answer(house: House, gate: Any, text: str) -> Question:
    asked = Question.objects.latest("id")
    return questions.answer_question(house.agent, gate.pk, asked.pk, text=text).question


def test_a_question_is_asked_from_the_page_and_its_answer_appears_there(
    house: House, browser_of: Open
) -> None:
    gate = house.ask()
    browser = browser_of("alice")

    asked = browser.send(browser.get(path(gate)), "/questions", text=" Which order?\r\nWhen? ")

    question = Question.objects.get()
    assert asked.location == path(gate, f"#q-{question.pk}")
    assert question.text == "Which order?\nWhen?"
    page = browser.get(path(gate))
    assert "You asked: Which order? When?" in page.text
    assert "No answer yet" in page.text
    assert page.has_form("/approve")
    assert "alice asked: Which order?" in browser_of("carol").get(path(gate)).text
    answer(house, gate, "o-1017")
    assert f"{BOX} o-1017" in browser.get(path(gate)).text
    browser.send(browser.get(path(gate)), "/approve")
    record = browser.get(path(gate, "/record"))
    assert "You asked: Which order? When?" in record.text
    assert f"{BOX} o-1017" in record.text
    assert fresh(gate).state == "approved"


def test_the_runs_journal_says_it_in_words(house: House, browser_of: Open) -> None:
    gate = house.ask()
    browser = browser_of("alice")
    browser.send(browser.get(path(gate)), "/questions", text="Which order?")
    answer(house, gate, "o-1017")
    for show in ("", "&show=decisions"):
        run = browser.get(f"/runs/{gate.run_id}?{show}")
        assert "alice asked the agent" in run.text
        assert "Which order?" in run.text
        assert "the agent answered a question" in run.text
        assert '<div class="untrusted"><p class="tag">' in run.html
        assert "Written by the agent. Not checked. o-1017" in run.text


def test_an_agents_answer_is_text_wherever_it_stands(house: House, browser_of: Open) -> None:
    gate = house.ask()
    browser = browser_of("alice")
    browser.send(browser.get(path(gate)), "/questions", text=EVIL.replace("\u202e", ""))
    answer(house, gate, EVIL)
    check(browser.get(path(gate)))
    check(browser.get(f"/runs/{gate.run_id}"))
    browser.send(browser.get(path(gate)), "/reject", reason="no")
    check(browser.get(path(gate, "/record")))


@pytest.mark.parametrize("text", ["", " \n ", "x" * 2001, "a\0b"])
def test_a_question_of_another_form_is_not_asked_and_what_was_typed_stays(
    house: House, browser_of: Open, text: str
) -> None:
    gate = house.ask()
    browser = browser_of("alice")
    page = browser.get(path(gate))
    with nothing_changes():
        refused = browser.send(page, "/questions", text=text)
    assert refused.status == 422
    assert "Nothing was asked." in refused.text
    assert refused.has_form("/approve")


def test_who_may_not_decide_is_offered_no_question_and_asks_none(
    house: House, browser_of: Open
) -> None:
    gate = house.ask()
    browser = browser_of("bob")
    page = browser.get(path(gate))
    assert not page.has_form("/questions")
    fields = {**page.forms[0].fields, "text": "Which order?"}
    with nothing_changes():
        refused = browser.post(path(gate, "/questions"), fields)
    assert refused.status == 403
    assert "You can read this, not decide it" in refused.text


def test_what_is_decided_is_asked_nothing_more(house: House, browser_of: Open) -> None:
    gate = house.ask()
    browser = browser_of("alice")
    page = browser.get(path(gate))
    browser.send(page, "/questions", text="Which order?")
    house.decide("carol", gate, "reject", reason="no")
    with nothing_changes():
        refused = browser.send(page, "/questions", text="And when?")
    assert refused.status == 409
    assert "It was not answered." in refused.text
    assert not browser.get(path(gate)).has_form("/questions")


def test_as_much_as_may_be_was_asked(
    house: House, browser_of: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(questions, "MOST_QUESTIONS", 1)
    gate = house.ask()
    browser = browser_of("alice")
    browser.send(browser.get(path(gate)), "/questions", text="Which order?")
    page = browser.get(path(gate))
    with nothing_changes():
        refused = browser.send(page, "/questions", text="And when?")
    assert refused.status == 409
    assert "Your question was not asked." in refused.text
    assert refused.form("/questions").fields["text"] == "And when?"


def test_of_another_tenants_gate_nothing_is_asked(
    house: House, browser_of: Open, nothing_of_another: Any
) -> None:
    gate = house.ask()
    browser = browser_of("alice")
    page = browser.get(path(gate))
    form = page.form("/questions")
    with nothing_changes():
        other = form.action.replace(str(gate.pk), str(nothing_of_another.pk))
        assert browser.post(other, {**form.fields, "text": "x"}).status == 404
