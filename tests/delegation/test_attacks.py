"""What is tried to have a call run that nobody approved: none of it runs, and nothing is learned."""

from dataclasses import replace

import pytest

from delegation.canonical import read
from delegation.learner import Event
from delegation.presets import CAUTIOUS, EAGER
from delegation.records import DAY, Answer, Tool
from delegation.state import digest
from tests.delegation.histories import (
    FILE,
    GOOD,
    KEY,
    MAIL,
    NO,
    PLAIN,
    REFUND,
    again,
    call,
    practised,
    taught,
)

SHELL = Tool("shell", 1, "low", {"command": "text"})
NOTE = Tool("note", 1, "low", {"body": "text", "queue": "enum"})
LATER = 1_440 * 12  # a day after the last approval, in minutes


def assert_asked_for_good(learner, request, times=30):
    """It is asked, and however often it is approved it stays so and changes no rule."""
    assert not learner.decide(request).would
    before = [rule.sha256 for rule in learner.rules(request.at)]
    for _ in range(times):
        learner.observe(request, GOOD)
    assert not learner.decide(request).would
    assert [rule.sha256 for rule in learner.rules(request.at)] == before


def test_what_was_approved_often_runs():
    assert practised().decide(call(LATER)).automatic
    assert (
        practised(MAIL, to="partner.example", template="receipt")
        .decide(call(LATER, MAIL, to="ann@partner.example", template="receipt"))
        .automatic
    )


@pytest.mark.parametrize(
    "given",
    [
        {"tier": "b\u0430sic"},
        {"tier": "basic\u200b"},
        {"tier": "\u202ebasic"},
        {"tier": "\uff42asic"},
        {"tier": "basic "},
        {"tier": "bas\u0131c"},
        {"amount": "1e400"},
        {"amount": 1e400},
        {"amount": float("nan")},
        {"amount": -0.0},
        {"amount": -20},
        {"amount": True},
        {"amount": 2**60},
        {"bcc": "drop@evil.example"},
        {"order": "o1\u2028"},
        {"order": {"$ne": ""}},
        {"tier": ["basic"]},
    ],
    ids=ascii,
)
def test_a_call_without_one_form_is_asked_however_often_it_was_approved(given):
    if given == {"tier": "bas\u0131c"}:
        learner = practised()
        assert learner.decide(call(LATER, **given)).reason.kind == "unfamiliar_value"
        return
    assert_asked_for_good(practised(), call(LATER, **given))


@pytest.mark.parametrize(
    "to",
    [
        "partner.example.evil",
        "evil-partner.example",
        "mail.partner.example",
        "PARTNER.example",
        "xn--prtner-5fa.example",
        "p\u0430rtner.example",
        "partner.example.",
        "partner.example@evil.example",
        "ann@partner.example,drop@evil.example",
    ],
    ids=ascii,
)
def test_a_domain_that_only_resembles_an_approved_one_is_asked(to):
    learner = practised(MAIL, to="partner.example", template="receipt")
    assert not learner.decide(call(LATER, MAIL, to=to, template="receipt")).would


@pytest.mark.parametrize(
    "path",
    [
        "/data/reports/../../etc/app/key.txt",
        "/data/reports-secret/a.txt",
        "/data/reports/deeper/a.txt",
        "/data/reports\\..\\..\\etc\\key",
        "/data/reports/%2e%2e/key",
        "/data//reports/a.txt",
        "/data/reports/a\x00.txt",
        "data/reports/a.txt",
        "/data/Reports/a.txt",
    ],
    ids=ascii,
)
def test_a_path_outside_the_approved_folder_is_asked(path):
    learner = practised(FILE, path="/data/reports/a.txt")
    assert learner.decide(call(LATER, FILE, path="/data/reports/b.txt")).automatic
    assert not learner.decide(call(LATER, FILE, path=path)).would


@pytest.mark.parametrize(
    "command", ["git status", "git status && rm -rf /", "SELECT 1", "echo $(id)", "Dear Ann"]
)
def test_commands_queries_and_free_text_are_never_learned(command):
    learner = taught([call(number, SHELL, command=command) for number in range(60)], EAGER)
    assert_asked_for_good(learner, call(LATER, SHELL, command=command))
    assert_asked_for_good(learner, call(LATER, NOTE, body=command, queue="sales"))
    assert learner.units == {}


def test_a_member_given_twice_never_reaches_a_rule():
    with pytest.raises(ValueError, match="twice"):
        read(b'{"amount": 20, "tier": "basic", "reason": "late", "order": "o", "amount": 9000}')


def test_two_approved_values_that_never_came_together_are_asked():
    learner = taught(
        [call(number, tier="gold", reason="late") for number in range(12)]
        + [call(number, tier="basic", reason="damaged") for number in range(12, 24)]
    )
    ruling = learner.decide(call(LATER, tier="gold", reason="damaged"))
    assert not ruling.would
    assert ruling.reason.kind == "unfamiliar_pair"


def test_an_amount_above_everything_approved_is_asked():
    learner = practised(amount="75.49")
    assert learner.decide(call(LATER, amount="75.490")).automatic
    ruling = learner.decide(call(LATER, amount="75.5"))
    assert not ruling.would
    assert ruling.reason.text == "above what you approved for this tool (75.49)"


def test_another_version_of_a_tool_starts_anew():
    assert practised().decide(call(LATER)).automatic
    assert not practised().decide(call(LATER, replace(REFUND, version=2))).would


def test_another_agent_and_another_context_are_new():
    learner = practised()
    assert learner.decide(call(LATER, agent="agent-a2")).reason.text == "`agent-a2` is new"
    assert learner.decide(call(LATER, context={"env": "prod"})).reason.text == "`prod` is new"
    assert not learner.decide(call(LATER, context={})).would
    assert not learner.decide(call(LATER, context={"env": "staging", "band": "day"})).would


@pytest.mark.parametrize(
    "answer",
    [
        replace(GOOD, bulk=True),
        replace(GOOD, seconds=1.9),
        replace(GOOD, opened=False),
        replace(GOOD, opened=False, seconds=600),
    ],
    ids=repr,
)
def test_approvals_in_bulk_in_a_hurry_or_unread_prove_nothing(answer):
    learner = taught((call(number) for number in range(200)), answer=answer)
    assert not learner.decide(call(201)).would
    assert all(rule.is_empty and rule.evidence.answers == 0 for rule in learner.rules())


def test_what_ran_by_itself_is_no_evidence():
    learner = practised(amount=20)
    before = learner.rules()[0]
    for number in range(LATER, LATER + 500):
        learner.ran(call(number, amount=20, tier="gold"))
    after = learner.rules()[0]
    assert (after.sha256, after.answers) == (before.sha256, before.answers)
    assert not learner.decide(call(2_000, tier="gold")).would


def test_a_burst_of_calls_that_all_look_usual_is_asked_beyond_the_days_level():
    learner = practised()
    ran = 0
    for number in range(30):
        request = call(LATER + number)
        if learner.decide(request).automatic:
            ran += 1
            learner.ran(request)
    assert ran == PLAIN.familiar["medium"].free


def test_a_flood_counts_also_where_it_is_refused():
    learner = practised()
    for number in range(5):
        learner.observe(call(LATER + number, tier="gold"), NO)
    assert learner.decide(call(LATER + 9)).reason.kind == "day_calls"


@pytest.mark.parametrize("settings", [CAUTIOUS, EAGER], ids=lambda one: one.name)
def test_a_patient_agent_gains_nothing_beyond_what_it_was_approved_for(settings):
    settings = replace(
        settings,
        stages={
            risk: tuple(replace(one, check=0.0) for one in stages)
            for risk, stages in settings.stages.items()
        },
    )
    learner = taught((call(1_440 * number / 3) for number in range(50)), settings)
    assert learner.decide(call(1_440 * 17)).automatic
    for given in (
        {"amount": 2_000},
        {"tier": "gold_all"},
        {"agent": "agent-z"},
        {"bcc": "x"},
        {"context": {"env": "prod"}},
    ):
        assert not learner.decide(call(1_440 * 17, **given)).would


def test_an_older_answer_neither_widens_a_rule_nor_ends_a_quarantine():
    learner = practised()
    learner.incident(call(LATER))
    held = learner.rules()[0]
    assert held.state == "quarantined"
    for _ in range(100):
        learner.observe(call(5), GOOD)
    assert learner.rules()[0].sha256 == held.sha256
    assert learner.rules()[0].state == "quarantined"
    assert not learner.decide(call(5)).would


def test_a_call_dated_back_has_neither_another_day_nor_fresher_values():
    learner = practised()
    for number in range(3):
        learner.ran(call(LATER + number))
    assert learner.decide(call(0)).reason.kind == "day_calls"
    learner.ask_no_more(call(0).at + (PLAIN.fade_days + 20) * DAY)
    assert learner.decide(call(LATER)).reason.kind == "faded"


def test_an_older_refusal_counts_all_the_same():
    learner = practised()
    learner.observe(call(3), NO)
    assert not learner.decide(call(LATER)).would
    assert learner.rules()[0].is_empty


def test_one_incident_holds_the_tool_and_each_further_one_twice_as_long():
    learner = practised()
    learner.incident(call(LATER))
    (unit,) = learner.units.values()
    assert unit.left == PLAIN.quarantine
    learner.incident(call(LATER + 1))
    assert unit.left == 2 * PLAIN.quarantine


def test_an_edit_refuses_what_was_proposed_and_approves_what_was_sent():
    learner = practised(amount=20)
    final = {"amount": 10, "tier": "basic", "reason": "late", "order": "o1"}
    learner.observe(call(LATER, amount=20), Answer("edit", 9.0, opened=True, final=final))
    top = next(one for one in learner.rules()[0].predicate["all"] if one["f"] == "amount")
    assert top["le"] == "10"


def test_what_a_person_stops_stays_stopped_in_every_version_until_they_start_it():
    learner = practised()
    learner.stop(REFUND.id, call(LATER).at)
    for number in range(LATER, LATER + 40):
        learner.observe(call(number), GOOD)
        learner.observe(call(number, replace(REFUND, version=2)), GOOD)
    assert learner.decide(call(LATER + 50)).reason.kind == "stopped"
    assert learner.decide(call(LATER + 50, replace(REFUND, version=2))).reason.kind == "stopped"
    learner.start(REFUND.id, call(LATER + 60).at)
    assert learner.decide(call(LATER + 1_440)).automatic


def test_asking_about_everything_holds_every_tool():
    learner = practised()
    learner.ask_everything(call(LATER).at)
    assert learner.decide(call(LATER)).reason.kind == "asks_everything"
    assert learner.rules()[0].state == "stopped"
    learner.ask_no_more(call(LATER).at)
    assert learner.decide(call(LATER)).automatic


def test_an_event_that_lacks_what_it_is_about_changes_nothing():
    learner = practised()
    before = digest(learner)
    with pytest.raises(ValueError, match="lacks"):
        learner.take(Event(call(LATER).at, "e", "answer", call(LATER)))
    assert digest(learner) == before


def test_a_refusal_of_something_familiar_asks_again_about_what_it_touched():
    events = [
        Event(call(1_440 * day).at, f"e{day:02}", "answer", call(1_440 * day), GOOD)
        for day in range(12)
    ]
    refused = Event(call(LATER).at, "f", "answer", call(LATER), NO)
    learner = again([refused, *events])
    assert learner.decide(call(1_440 * 13)).reason.kind == "quarantine"
    assert learner.rules()[0].is_empty
    assert learner.key == KEY
