"""What a verifier did not pass, on the run's page: what was done, its words, and the answers to it."""

import pytest

from interrupts.effects import Ruling, Says
from interrupts.services import compensating, judging
from tests.interrupts.house import authority, fresh, house, nothing_remembered, open_of, sent
from tests.interrupts.test_verdicts import DECLARED
from tests.pages.runs import Browser, form, offered, text_of

__all__ = ["authority", "house", "nothing_remembered", "sent"]
HOSTILE = "<b>twice</b> the \u202eamount"


@pytest.fixture
def says(monkeypatch):
    """Have the verifier say this from now on."""

    def says(ruling):
        verifier = {"checks.amount": lambda *_: ruling}.get
        monkeypatch.setattr("interrupts.effects.verifiers.verifier_named", verifier)

    return says


@pytest.fixture
def judged(house, monkeypatch, says):
    """A run whose first step was done, and whose verdict is what the test says."""
    monkeypatch.setattr("interrupts.queue.judge", lambda step: None)
    monkeypatch.setattr("interrupts.queue.compensate", lambda step: None)
    house.undoes["t"] = lambda *_: None
    house.tool(
        "t", effect="reversible", compensate={}, verifier={**DECLARED, "attempts": 1},
        sensitive=["/card"],
    )  # fmt: skip
    house.tool("plain")

    def make(ruling):
        says(ruling)
        house.behaviour["t"] = lambda *_: {"paid": 40, "card": "4242"}
        run = house.run()
        calls = [("t", {"amount": 20, "card": "4242"}), ("plain", {"n": 2})]
        step, _ = house.propose(run, *calls)
        house.work(run)
        judging.judge(step.pk, "w")
        return fresh(run), fresh(step)

    return make


def test_what_was_done_and_the_verifiers_words_are_shown_with_the_answers(house, judged):
    run, step = judged(Ruling(Says.REJECTED, HOSTILE))
    olga = Browser(house, "olga")
    page = olga.get(f"/runs/{run.pk}")
    said = text_of(page)
    assert "A check of what was done failed" in said
    assert "Its verifier rejected it and said no more" not in said
    for shown in ("amount 20", '"paid":40', "What was done", "nothing starts meanwhile"):
        assert shown in said, shown
    assert "4242" not in page
    assert offered(page) == ["resume", "undo", "revise", "cancel"]
    interrupt = open_of(step)
    action, hidden = form(page, resolution="compensate", answer="undo")
    olga.post(action, page, **hidden, note="no")
    assert fresh(interrupt).resolution == "compensate"
    assert fresh(interrupt).response["note"] == "no"
    assert (fresh(run).status, fresh(step).undo_wanted) == ("running", True)
    compensating.compensate(step.pk, "w")
    assert "rejected by its verifier" in text_of(olga.get(f"/runs/{run.pk}"))
    assert offered(Browser(house, "alice").get(f"/runs/{run.pk}")) == []


def test_words_are_shown_as_text_and_no_word_is_said_to_be_none(house, judged, says):
    house.tool("u", verifier={**DECLARED, "attempts": 1})
    run = house.run()
    (step,) = house.propose(run, ("u", {"n": 1}))
    house.work(run)
    olga = Browser(house, "olga")
    assert "Being judged 1" in text_of(olga.get(f"/runs/{run.pk}"))
    says(Ruling(Says.REJECTED, HOSTILE))
    judging.judge(step.pk, "w")
    page = olga.get(f"/runs/{run.pk}")
    assert "<b>twice" not in page
    assert "&lt;b&gt;twice&lt;/b&gt;" in page
    assert "\u202e" not in page
    assert offered(page) == ["resume", "revise", "cancel"]
    action, hidden = form(page, resolution="resume")
    olga.post(action, page, **hidden)
    assert fresh(run).status == "running"
    unknown, _ = judged(Ruling(None, error="It broke off."))
    said = text_of(olga.get(f"/runs/{unknown.pk}"))
    assert "could not be checked" in said
    assert "Its verifier was asked 1 time" in said
