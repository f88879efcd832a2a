"""A stage may have an end of its own: its clock starts when it is opened, and never ends in approval."""

from datetime import datetime, timedelta

import pytest
from django.db import transaction

from approvals.errors import GateExpired, NotAnApprover, NotExtendable, NotYourStage
from approvals.models import Gate
from approvals.policy import compile_policy, validate_policy
from approvals.policy.ends import End
from approvals.services.decisions import withdraw_decision
from approvals.services.extensions import extend_gate
from approvals.services.gates import bring_up_to_date
from approvals.services.simulation import simulate
from config.errors import InvalidBody
from interrupts.models import Interrupt, Run, Step
from interrupts.services import looking
from tenants.models import JournalEntry, OutboxMessage, User
from tests import clock
from tests.approvals.house import fresh
from tests.approvals.test_policy_judging import call
from tests.approvals.test_stages import (
    ASKS,
    FINANCE,
    LEADS,
    counting,
    inbox,
    is_sound,
    leaves,
    staged,
    vote_of,
)
from tests.clock import moving_clock

__all__ = ["moving_clock", "staged"]

HEADS = {"expires_in": 600, "on_expiry": "escalate", "escalate_to": "heads"}
SOON = {**FINANCE, "expires_in": 300, "on_expiry": "cancel"}
LATER = {**LEADS, **HEADS}
WHOLE = {"expires_in": 3600}


@pytest.fixture
def timed(staged):
    """Finance has five minutes, leads then ten, whom the heads (ada) follow; an hour for all."""
    staged.group("heads", "ada")
    staged.policy({**ASKS, **WHOLE, "stages": [SOON, LATER]})
    return staged


def ends_in(gate):
    """Return in how many seconds from when it was asked the gate ends, to fifty, and how."""
    gate = fresh(gate)
    asked = Interrupt.objects.get(pk=gate.interrupt_id)
    assert (asked.expires_at, asked.on_expiry) == (gate.expires_at, gate.on_expiry)
    return since_asked(gate, gate.expires_at), gate.on_expiry


def since_asked(gate, at):
    return 50 * round((at - gate.opened_at).total_seconds() / 50)  # a test takes its time


def look(gate):
    looking.look(gate.run_id)
    return fresh(gate)


# By stage


def test_a_stages_clock_starts_when_it_is_opened_and_not_before(timed):
    gate = timed.ask()
    assert ends_in(gate) == (300, "cancel")
    shown = timed.request("vera", "GET", f"/gates/{gate.pk}")[1]
    assert [one["expires_in"] for one in shown["stages"]] == [300, 600]
    assert [one["on_expiry"] for one in shown["stages"]] == ["cancel", "escalate"]
    assert shown["stages"][0]["expires_at"] == shown["expires_at"]
    assert (shown["stages"][1]["expires_at"], shown["stages"][1]["escalate_to"]) == (None, "heads")

    clock.move(200)
    timed.decide("alice", gate)

    assert ends_in(gate) == (800, "escalate")
    entry = JournalEntry.objects.get(stream=gate.run_id, kind="gate.stage_opened")
    assert '"expires_at"' in entry.text
    clock.move(200)
    assert look(gate).state == "pending"  # the end of the first stage has passed, and is none
    assert is_sound(gate)


def test_nobody_in_a_stage_in_time_does_what_the_stage_says(timed):
    gate = timed.ask()
    clock.move(301)
    with pytest.raises(GateExpired):
        timed.decide("alice", gate)
    assert fresh(gate).state == "expired"
    assert Run.objects.get(pk=gate.run_id).status == "cancelled"
    assert Step.objects.get(pk=gate.step_id).authorized_by is None
    assert is_sound(gate)


def test_a_stage_that_is_not_answered_asks_its_next_group_with_its_own_time_and_then_rejects(timed):
    gate = timed.ask()
    clock.move(100)
    timed.decide("alice", gate)
    clock.move(601)
    gate = look(gate)
    assert (gate.state, gate.stage, gate.approvers) == ("pending", 2, ["heads"])
    assert inbox(gate) == {"ada"}
    assert ends_in(gate)[1] == "reject"
    with pytest.raises(NotAnApprover):
        timed.decide("carol", gate)
    assert counting(gate) == [("alice", 1)]
    shown = timed.request("vera", "GET", f"/gates/{gate.pk}")[1]
    assert (shown["escalated"], shown["escalate_to"]) == (True, "heads")
    assert is_sound(gate)
    clock.move(601)
    assert look(gate).state == "expired"
    assert Step.objects.get(pk=gate.step_id).status == "rejected"
    assert is_sound(gate)


def test_the_whole_decision_ends_whatever_its_stages_have_left(timed):
    timed.policy({**ASKS, "expires_in": 700, "on_expiry": "cancel", "stages": [SOON, LATER]})
    gate = timed.ask()
    clock.move(250)
    timed.decide("alice", gate)
    assert ends_in(gate) == (700, "cancel")
    clock.move(451)
    assert look(gate).state == "expired"
    assert Run.objects.get(pk=gate.run_id).status == "cancelled"


def test_a_stage_without_an_end_of_its_own_ends_with_the_whole_or_never(timed):
    timed.policy({**ASKS, **WHOLE, "stages": [FINANCE, LATER]})
    assert ends_in(timed.ask()) == (3600, "reject")
    timed.policy({**ASKS, "stages": [SOON, LEADS]})
    gate = timed.ask()
    timed.decide("alice", gate)
    gate = fresh(gate)
    assert (gate.stage, gate.expires_at, gate.on_expiry) == (2, None, None)
    assert Interrupt.objects.get(pk=gate.interrupt_id).expires_at is None
    clock.move(4000)
    assert look(gate).state == "pending"
    assert is_sound(gate)


def test_each_stage_may_ask_its_next_group_and_what_they_approved_stands(timed):
    first = {**FINANCE, **HEADS, "escalate_to": "leads"}
    rule = {**ASKS, "stages": [first, LATER]}
    timed.policy(rule)
    gate = timed.ask()
    clock.move(601)
    assert look(gate).approvers == ["leads"]
    timed.decide("olga", gate)
    assert (fresh(gate).stage, fresh(gate).approvers) == (2, ["leads"])
    clock.move(601)
    assert look(gate).approvers == ["heads"]
    timed.policy({**rule, "reason": "the same, told otherwise"})
    bring_up_to_date(gate.pk)
    gate = fresh(gate)
    assert (gate.stage, gate.approvers, counting(gate)) == (2, ["heads"], [("olga", 1)])
    timed.decide("ada", gate)
    gate = fresh(gate)
    assert gate.state == "approved"
    timed.work(gate.run_id)
    assert Step.objects.get(pk=gate.step_id).status == "succeeded"
    assert is_sound(gate)


# Opened again


def test_a_stage_that_is_opened_again_has_its_time_again_within_the_whole(timed):
    gate = timed.ask()
    timed.decide("alice", gate)
    clock.move(400)
    withdraw_decision(timed.people["alice"], gate.pk, vote_of(timed, "alice", gate).pk)
    assert (fresh(gate).stage, *ends_in(gate)) == (1, 700, "cancel")
    timed.decide("bob", gate)
    clock.move(100)
    leaves("finance", "bob")
    assert (fresh(gate).stage, *ends_in(gate)) == (1, 800, "cancel")
    assert is_sound(gate)


@pytest.mark.parametrize("way", ["takes it back", "leaves"])
def test_a_stage_whose_time_is_up_gives_no_stage_before_it_time_again(timed, way):
    """Only the sweep has not come yet: what its end does is done, whoever loses an approval first."""
    timed.policy({**ASKS, **WHOLE, "stages": [SOON, {**LEADS, "expires_in": 600}]})
    gate = timed.ask()
    timed.decide("alice", gate)
    clock.move(601)
    ends = ends_in(gate)
    if way == "leaves":
        leaves("finance", "alice")
    else:
        withdraw_decision(timed.people["alice"], gate.pk, vote_of(timed, "alice", gate).pk)
    assert ends_in(gate) == ends
    with pytest.raises(GateExpired):
        timed.decide("bob", gate)
    assert fresh(gate).state == "expired"
    assert Step.objects.get(pk=gate.step_id).authorized_by is None
    assert is_sound(gate)


def test_a_stage_that_lost_an_approval_after_the_end_of_the_next_is_opened_as_that_escalates(timed):
    gate = timed.ask()
    timed.decide("alice", gate)
    clock.move(601)
    leaves("finance", "alice")
    assert fresh(gate).stage == 2
    gate = look(gate)
    assert (gate.stage, gate.approvers, *ends_in(gate)) == (1, ["finance"], 900, "cancel")
    timed.decide("bob", gate)
    gate = fresh(gate)
    assert (gate.stage, gate.approvers, *ends_in(gate)) == (2, ["heads"], 1200, "reject")
    assert is_sound(gate)


def test_what_is_taken_back_after_the_last_stage_waits_by_that_stages_clock(timed):
    timed.policy({**ASKS, **WHOLE, "cool_down": 900, "stages": [SOON, LATER]})
    gate = timed.ask()
    timed.decide("alice", gate)
    timed.decide("carol", gate)
    assert fresh(gate).state == "approved"
    clock.move(700)
    withdraw_decision(timed.people["carol"], gate.pk, vote_of(timed, "carol", gate).pk)
    assert (fresh(gate).state, fresh(gate).stage, *ends_in(gate)) == (
        "pending",
        2,
        1300,
        "escalate",
    )
    assert is_sound(gate)


def test_an_edit_begins_the_firsts_clock_from_a_later_stage_and_gains_none_in_the_first(timed):
    less, gate = {"payment": "p-1", "amount": "7.00"}, timed.ask()
    clock.move(100)
    timed.decide("alice", gate)
    clock.move(100)
    timed.decide("carol", fresh(gate), arguments=less)
    assert (fresh(gate).stage, *ends_in(gate)) == (1, 500, "cancel")
    timed.policy({**ASKS, **WHOLE, "stages": [{**SOON, "quorum": 2}, LATER]})
    clock.move(100)
    timed.decide("alice", fresh(gate), arguments={**less, "amount": "6.00"})
    assert (fresh(gate).stage, *ends_in(gate)) == (1, 500, "cancel")
    assert is_sound(gate)


# Told, extended, and changed by a newer policy


def test_people_of_a_stage_are_warned_before_its_own_end(timed):
    with transaction.atomic():
        for who in ("alice", "carol"):
            User.objects.filter(username=who).update(email=f"{who}@acme.test")
    timed.policy(
        {**ASKS, **WHOLE, "warn_before": 100, "stages": [SOON, {**LEADS, "expires_in": 100}]}
    )
    gate = timed.ask()

    def reminded(who):
        owed = OutboxMessage.objects.get(
            kind="notice.reminder", about=gate.pk, recipient=timed.people[who].id
        )
        return since_asked(gate, owed.due_at)

    assert reminded("alice") == 200
    clock.move(100)
    timed.decide("alice", gate)
    assert reminded("carol") == 150  # it is too short for the rule's warning: after half of it


def extended(house, who, gate, seconds):
    until = gate.opened_at + timedelta(seconds=seconds)
    return extend_gate(house.people[who], gate.pk, expires_at=until, note="more")


def test_whoever_decides_the_open_stage_extends_it_and_no_other_and_never_past_the_whole(timed):
    more = {**SOON, "extendable_to": 900}
    timed.policy({**ASKS, "expires_in": 1000, "stages": [more, LATER]})
    gate = timed.ask()
    with pytest.raises(NotYourStage):
        extended(timed, "carol", gate, 600)
    with pytest.raises(InvalidBody):
        extended(timed, "alice", gate, 901)
    assert ends_in(gate) == (300, "cancel")
    extended(timed, "alice", gate, 600)
    assert ends_in(gate) == (600, "cancel")
    shown = timed.request("vera", "GET", f"/gates/{gate.pk}")[1]
    latest = gate.opened_at + timedelta(seconds=900)
    assert datetime.fromisoformat(shown["extendable_until"]) == latest
    assert shown["stages"][0]["expires_at"] == shown["expires_at"]
    clock.move(500)
    timed.decide("alice", gate)
    assert ends_in(gate) == (1000, "reject")  # what is left of the whole is less than ten minutes
    with pytest.raises(NotExtendable):
        extended(timed, "carol", fresh(gate), 1001)
    assert is_sound(gate)


def test_the_whole_is_extended_with_the_stage_that_needs_more_than_it_has_left(timed):
    whole = {"expires_in": 1000, "extendable_to": 2000}
    timed.policy({**ASKS, **whole, "stages": [{**SOON, "extendable_to": 1500}, LATER]})
    gate = timed.ask()
    extended(timed, "alice", gate, 1400)
    clock.move(1200)
    timed.decide("alice", gate)
    assert ends_in(gate) == (1400, "reject")
    extended(timed, "carol", fresh(gate), 2000)
    assert ends_in(gate) == (2000, "reject")
    assert is_sound(gate)


def test_a_newer_policy_changes_no_time_that_runs_and_the_shorter_of_what_comes(timed):
    gate = timed.ask()
    soon = {**SOON, "expires_in": 100}
    timed.policy({**ASKS, "expires_in": 900, "stages": [soon, {**LEADS, "expires_in": 50}]})
    bring_up_to_date(gate.pk)
    assert ends_in(gate) == (300, "cancel")
    clock.move(200)
    timed.decide("alice", gate)
    assert ends_in(gate) == (250, "reject")
    assert is_sound(gate)


def test_a_gate_that_waits_gets_the_ends_of_stages_that_a_newer_policy_names(timed):
    timed.policy({**ASKS, **WHOLE, "stages": [FINANCE, LEADS]})
    gate = timed.ask()
    timed.policy({**ASKS, **WHOLE, "stages": [SOON, LATER]})
    bring_up_to_date(gate.pk)
    assert ends_in(gate) == (3600, "cancel")  # the stricter end, at the time that was told
    clock.move(1000)
    timed.decide("alice", gate)
    assert ends_in(gate) == (1600, "escalate")
    assert is_sound(gate)


# Policy


def judged(*rules):
    return compile_policy({"rules": list(rules)}).judge(call(tool="payments.refund"))


def test_several_rules_joined_take_the_shorter_end_in_each_place_in_any_order():
    one = {**ASKS, "stages": [{**SOON, "expires_in": 500}, LATER]}
    other = {**ASKS, "name": "other", "stages": [{"expires_in": 400}, {"expires_in": 900}]}
    alone = {**ASKS, "name": "alone", "expires_in": 450, "extendable_to": 460}
    for rules in ((one, other), (other, one)):
        found = [stage.end for stage in judged(*rules).stages]
        assert found == [End(400, "reject"), End(600, "escalate", "heads")]
    both = judged(alone, one)
    assert (both.end, both.stages[0].end.expires_in) == (End(450, "reject", extendable_to=460), 500)
    same = {**other, "stages": [{"expires_in": 500}, {"expires_in": 600}]}
    assert [stage.end.on_expiry for stage in judged(one, same).stages] == ["cancel", "reject"]


def test_the_end_of_the_only_stage_is_that_of_the_whole():
    only = judged({**ASKS, "expires_in": 900, "stages": [SOON]})
    assert (only.stages, only.end, only.approvers) == ((), End(300, "cancel"), ("finance",))


GROUPS = {"finance": ["a", "b"], "leads": ["c", "d"], "heads": ["e"]}


@pytest.mark.parametrize(
    ("stage", "place"),
    [
        ({"expires_in": 0}, "expires_in"),
        ({"expires_in": 3600}, "expires_in"),
        ({"expires_in": 60, "on_expiry": "approve"}, "on_expiry"),
        ({"on_expiry": "cancel"}, "on_expiry"),
        ({"expires_in": 60, "on_expiry": "escalate"}, "escalate_to"),
        ({"expires_in": 60, "escalate_to": "heads"}, "on_expiry"),
        ({"expires_in": 60, "on_expiry": "escalate", "escalate_to": "ghosts"}, "escalate_to"),
        ({"quorum": 2, **HEADS}, "escalate_to"),
        ({"expires_in": 60, "warn_before": 60}, "warn_before"),
        ({"expires_in": 60, "extendable_to": 60}, "extendable_to"),
        ({"cool_down": 60}, "cool_down"),
    ],
)
def test_an_end_of_a_stage_that_could_mean_something_else_is_refused_with_its_place(stage, place):
    rule = {**ASKS, **WHOLE, "stages": [FINANCE, {**LEADS, **stage}]}
    found = validate_policy({"rules": [rule]}, GROUPS)
    assert [at for at, _ in found] == [f"/rules/0/stages/1/{place}"]


def test_a_draft_that_leaves_a_stage_more_time_is_looser_and_told_so(timed):
    timed.ask()
    rule = {**ASKS, **WHOLE, "stages": [{**SOON, "expires_in": 900}, LATER]}
    (change,) = simulate({"rules": [rule]}).changes()
    (found,) = change.differences
    assert (found.what, found.looser, change.looser) == ("stages", True, True)
    assert "within 900 seconds, or the run is cancelled" in found.words


def test_checking_and_explaining_show_when_each_stage_ends(timed):
    body = {"tool": "payments.refund", "arguments": {"payment": "p", "amount": "1.00"}}
    checked = timed.request("bot", "POST", "/policies/check", body)[1]
    assert [one["expires_in"] for one in checked["stages"]] == [300, 600]
    gate = timed.ask()
    why = timed.request("vera", "GET", f"/policies/why?step={gate.step_id}")[1]
    assert why["stages"] == why["now"]["stages"] == checked["stages"]
    assert Gate.objects.filter(pk=gate.pk, routing__has_key="whole").exists()
