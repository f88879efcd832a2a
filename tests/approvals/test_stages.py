"""Stages: decided one after the other, each by its own people, a person in one of them only."""

from datetime import timedelta

import pytest
from django.db import transaction

from approvals import hot, stages
from approvals.errors import AlreadyDecided, NotAnApprover, NotYourStage
from approvals.models import Assignment, Decision, Gate
from approvals.services import assignments, questions
from approvals.services.decisions import withdraw_decision
from approvals.services.edits import look_at_edit
from approvals.services.inboxes import refresh_inboxes
from approvals.services.notices import gates as mails
from config.errors import InvalidBody
from interrupts.models import Interrupt, Run, Step
from interrupts.services import looking
from tenants.models import GroupMember, JournalEntry, Membership, OutboxMessage, User
from tests import clock
from tests.approvals.house import fresh
from tests.approvals.test_tampering import told
from tests.clock import moving_clock
from tests.database import superuser

__all__ = ["moving_clock"]

FINANCE, LEADS = {"approvers": ["finance"]}, {"approvers": ["leads"]}
ASKS = {"name": "asks", "trigger": "action", "tools": ["payments.*"], "then": "approve"}
RULE = {**ASKS, "stages": [FINANCE, {**LEADS, "quorum": 2}]}
LESS = {"payment": "p-1", "amount": "7.00"}


@pytest.fixture
def staged(house):
    """Alice and bob are of finance, carol and olga lead; bob leads too, and ada may decide alone."""
    for who in ("bob", "olga", "ada"):
        house.grant(who, "*")
    house.group("finance", "alice", "bob")
    house.group("leads", "carol", "olga", "bob")
    house.policy(RULE)
    return house


def inbox(gate):
    return set(Assignment.objects.filter(gate=gate).values_list("user__username", flat=True))


def counting(gate):
    votes = Decision.objects.filter(gate=gate, counts=True, verdict="approve")
    return sorted(votes.values_list("user__username", "stage"))


def leaves(group, who):
    """The person is not of the group any more, and whoever changes that has the inboxes follow."""
    with transaction.atomic():
        GroupMember.objects.filter(group__name=group, membership__user__username=who).delete()
        refresh_inboxes()


def vote_of(house, who, gate):
    return Decision.objects.get(gate=gate, user=house.people[who].id, counts=True)


def is_sound(gate):
    row = Run.objects.get(pk=gate.run_id)
    return row.damage is None and told(row) == []


def test_stages_are_decided_one_after_the_other_by_their_own_people(staged):
    gate = staged.ask()
    assert (gate.stage, gate.quorum, gate.approvers) == (1, 3, ["finance"])
    assert inbox(gate) == {"alice", "bob"}

    assert staged.decide("alice", gate).state == "pending"
    gate = fresh(gate)
    assert (gate.stage, gate.approvers) == (2, ["leads"])
    assert inbox(gate) == {"carol", "olga", "bob"}
    assert staged.decide("carol", gate).state == "pending"
    assert staged.work(gate.run_id) == 0
    assert staged.decide("olga", gate).state == "approved"

    assert counting(gate) == [("alice", 1), ("carol", 2), ("olga", 2)]
    assert staged.kinds(gate.run_id).count("gate.stage_opened") == 1
    assert staged.work(gate.run_id) == 1
    assert is_sound(gate)


@pytest.mark.parametrize("way", ["hot", "long"])
def test_only_the_people_of_the_open_stage_may_say_anything(staged, way, monkeypatch):
    if way == "long":
        monkeypatch.setattr(hot, "approve", lambda *_: None)
    gate = staged.ask()
    before = staged.trace(gate)
    for verdict, more in (("approve", {}), ("reject", {"reason": "no"}), ("respond", {"value": 1})):
        with pytest.raises(NotYourStage, match="Stage 1 of 2 is open: finance"):
            staged.decide("carol", gate, verdict, **more)
        with pytest.raises(NotAnApprover):
            staged.decide("ada", gate, verdict, **more)
    with pytest.raises(NotYourStage):
        questions.ask_agent(staged.people["carol"], gate.pk, text="Why?")
    with pytest.raises(InvalidBody):
        assignments.reassign_gate(staged.people["alice"], gate.pk, to="carol")
    with pytest.raises(NotYourStage):
        look_at_edit(staged.people["carol"], gate.pk, digest=gate.digest, arguments=LESS)
    assert staged.trace(gate) == before


def test_a_person_approves_in_one_stage_only_with_all_their_tokens(staged):
    gate = staged.ask()
    staged.decide("bob", gate)
    assert inbox(gate) == {"carol", "olga"}
    before = staged.trace(gate)

    body = {"verdict": "approve", "digest": gate.digest}
    path = f"/gates/{gate.pk}/decisions"
    assert staged.request("bob", "POST", path, body)[0] == 200  # the same again
    for other in ({**body, "verdict": "reject", "reason": "no"}, {**body, "arguments": LESS}):
        status, said, _ = staged.request("bob", "POST", path, other)
        assert (status, said["code"]) == (403, "not-your-stage")
        assert (said["gate"]["stage"], said["gate"]["stages"][1]["state"]) == (2, "open")
    assert staged.trace(gate) == before


@pytest.mark.parametrize("stage", [1, 2])
def test_one_refusal_in_whatever_stage_ends_the_gate(staged, stage):
    gate = staged.ask()
    if stage == 2:
        staged.decide("alice", gate)
    who = "alice" if stage == 1 else "carol"
    assert staged.decide(who, gate, "reject", reason="not this one").state == "rejected"
    assert Decision.objects.get(verdict="reject").stage == stage
    assert Step.objects.get(pk=gate.step_id).status == "rejected"
    for late in ("bob", "olga"):
        with pytest.raises(AlreadyDecided):
            staged.decide(late, gate)
    assert staged.work(gate.run_id) == 0
    assert is_sound(gate)


def test_an_edit_begins_with_the_first_stage_again(staged):
    gate = staged.ask()
    staged.decide("alice", gate)
    staged.decide("carol", gate)

    edited = staged.decide("olga", gate, arguments=LESS)
    assert (edited.state, edited.stage, edited.approvers) == ("pending", 1, ["finance"])
    assert counting(gate) == []  # olga is not of the first
    assert inbox(gate) == {"alice", "bob"}
    assert is_sound(gate)

    again = staged.decide("bob", edited, arguments={**LESS, "amount": "8.00"})
    assert (again.stage, counting(gate)) == (2, [("bob", 1)])
    staged.decide("carol", again)
    assert staged.decide("olga", again).state == "approved"
    staged.work(gate.run_id)
    assert staged.calls == [("payments.refund", {**LESS, "amount": "8.00"})]
    assert is_sound(gate)


def test_an_edit_in_a_later_stage_counts_for_an_editor_who_is_of_the_first_too(staged):
    gate = staged.ask()
    staged.decide("alice", gate)
    edited = staged.decide("bob", gate, arguments=LESS)
    assert (edited.stage, counting(gate)) == (2, [("bob", 1)])
    assert inbox(gate) == {"carol", "olga"}
    assert is_sound(gate)


def test_what_is_taken_back_opens_its_stage_again_and_those_after_it_begin_anew(staged):
    gate = staged.ask()
    for who in ("alice", "carol", "olga"):
        staged.decide(who, gate)
    assert fresh(gate).state == "approved"

    withdraw_decision(staged.people["alice"], gate.pk, vote_of(staged, "alice", gate).pk)
    gate = fresh(gate)
    assert (gate.state, gate.stage, counting(gate)) == ("pending", 1, [])
    assert inbox(gate) == {"alice", "bob"}
    assert staged.work(gate.run_id) == 0
    assert is_sound(gate)

    for who in ("bob", "carol", "olga"):
        staged.decide(who, gate)
    withdraw_decision(staged.people["olga"], gate.pk, vote_of(staged, "olga", gate).pk)
    assert (fresh(gate).stage, counting(gate)) == (2, [("bob", 1), ("carol", 2)])
    assert inbox(gate) == {"carol", "olga"}
    assert staged.decide("olga", gate).state == "approved"
    assert staged.work(gate.run_id) == 1
    assert is_sound(gate)


def test_who_leaves_an_earlier_stage_opens_it_again_at_once_in_the_inboxes(staged):
    gate = staged.ask()
    staged.decide("alice", gate)
    staged.decide("carol", gate)
    leaves("finance", "alice")
    assert (fresh(gate).stage, counting(gate)) == (1, [])
    assert inbox(gate) == {"bob"}
    assert is_sound(gate)


def test_who_lost_the_right_in_an_earlier_stage_is_found_at_the_next_decision(staged):
    gate = staged.ask()
    staged.decide("alice", gate)
    staged.decide("carol", gate)
    staged.grant("alice", "mail.*")

    with pytest.raises(NotYourStage):
        staged.decide("olga", gate)
    assert (fresh(gate).stage, counting(gate)) == (1, [])
    for who in ("bob", "carol"):
        staged.decide(who, gate)
    assert staged.decide("olga", gate).state == "approved"
    assert staged.work(gate.run_id) == 1


@pytest.mark.parametrize("lost", ["permission", "group", "membership"])
@pytest.mark.parametrize("who", ["alice", "carol"])
def test_what_was_approved_by_who_lost_the_right_does_not_run(staged, lost, who):
    gate = staged.ask()
    for one in ("alice", "carol", "olga"):
        staged.decide(one, gate)
    if lost == "permission":
        staged.grant(who, "mail.*")
    else:
        with transaction.atomic():
            if lost == "group":
                GroupMember.objects.filter(membership__user__username=who).delete()
            else:
                Membership.objects.filter(user__username=who).update(active=False)
            staged.grant("vera", "mail.*")  # whatever narrows raises the authority version
    assert staged.work(gate.run_id) == 0
    assert staged.calls == []
    assert fresh(gate).state == "superseded"
    asked = Gate.objects.get(pk=Step.objects.get(pk=gate.step_id).gate)
    assert (asked.state, asked.stage) == ("pending", 1)
    assert is_sound(gate)


# Policy


@pytest.mark.parametrize("state", ["waiting", "authorized"])
def test_a_stage_that_a_newer_policy_adds_is_asked_before_anything_runs(staged, state):
    staged.policy({**ASKS, "approvers": ["finance"], "quorum": 1 if state == "authorized" else 2})
    gate = staged.ask()
    assert staged.decide("alice", gate).stage is None
    staged.policy({**ASKS, "stages": [FINANCE, LEADS]})
    if state == "authorized":
        assert staged.work(gate.run_id) == 0
        gate = Gate.objects.get(pk=Step.objects.get(pk=gate.step_id).gate)
        staged.decide("bob", gate)
    else:
        with pytest.raises(NotYourStage):
            staged.decide("carol", gate)
        staged.decide("bob", gate)
        assert counting(gate) == [("alice", None), ("bob", 1)]
    assert fresh(gate).stage == 2
    assert staged.decide("carol", gate).state == "approved"
    assert staged.work(gate.run_id) == 1
    assert is_sound(gate)


def test_a_policy_with_fewer_stages_takes_none_from_what_waits(staged):
    gate = staged.ask()
    staged.policy({**ASKS, "approvers": ["finance"]})
    assert staged.decide("alice", gate).stage == 2
    assert [one["quorum"] for one in fresh(gate).stages] == [1, 2]
    assert staged.decide("carol", gate).state == "pending"
    assert staged.decide("olga", gate).state == "approved"
    assert staged.work(gate.run_id) == 1


def test_the_stages_of_every_rule_that_asks_are_met(staged):
    more = {**ASKS, "name": "two", "quorum": 2, "approvers": ["finance", "leads"]}
    staged.policy(RULE, more, {**ASKS, "name": "third", "stages": [{}, {}, {}]})
    gate = staged.ask()
    assert gate.stages == [
        {"approvers": ["finance"], "quorum": 2},
        {"approvers": ["leads"], "quorum": 2},
        {"approvers": [], "quorum": 1},
    ]
    for who in ("alice", "bob", "carol", "olga"):
        assert staged.decide(who, gate).state == "pending"
    assert inbox(gate) == {"ada"}
    assert staged.decide("ada", gate).state == "approved"


def test_where_a_later_stage_has_too_few_people_its_admins_are_told_at_once(staged):
    staged.policy({**ASKS, "stages": [FINANCE, {**LEADS, "quorum": 3}]})
    gate = staged.ask()
    assert gate.undecidable_at is None
    # Bob is needed as a lead: once he approves for finance, two are left.
    staged.decide("bob", gate)
    assert fresh(gate).undecidable_at is not None
    withdraw_decision(staged.people["bob"], gate.pk, vote_of(staged, "bob", gate).pk)
    assert fresh(gate).undecidable_at is None

    leaves("leads", "olga")
    assert fresh(gate).undecidable_at is not None
    later = staged.ask(run=staged.run())
    assert later.undecidable_at is not None
    (mail,) = mails.undecidable(staged.people["ada"].id, [later.pk])
    assert "Too few people" in mail.said
    assert "Stage: 1 of 2" in mail.facts
    assert is_sound(gate)


# Time


def test_who_is_asked_next_takes_the_place_of_the_open_stage_and_the_others_stay(staged):
    staged.group("board", "ada")
    staged.policy({**RULE, "expires_in": 600, "on_expiry": "escalate", "escalate_to": "board"})
    gate = staged.ask()
    due = gate.expires_at
    clock.move(601)
    looking.look(gate.run_id)
    gate = fresh(gate)
    assert [one["approvers"] for one in gate.stages] == [["board"], ["leads"]]
    assert (gate.stage, gate.on_expiry, inbox(gate)) == (1, "reject", {"ada"})
    assert gate.expires_at - due > timedelta(seconds=599)
    assert Interrupt.objects.get(pk=gate.interrupt_id).expires_at == gate.expires_at
    with pytest.raises(NotAnApprover):
        staged.decide("alice", gate)
    assert staged.decide("ada", gate).stage == 2
    staged.policy({**RULE, "expires_in": 600, "on_expiry": "escalate", "escalate_to": "board",
                   "reason": "Money"})  # fmt: skip
    staged.decide("carol", gate)
    assert counting(gate) == [("ada", 1), ("carol", 2)]
    assert is_sound(gate)
    clock.move(601)
    looking.look(gate.run_id)
    assert fresh(gate).state == "expired"
    assert staged.work(gate.run_id) == 0


def test_in_a_later_stage_the_votes_before_it_stand_and_those_of_it_do_not(staged):
    staged.group("board", "ada", "vera")
    rule = {**ASKS, "stages": [FINANCE, {**LEADS, "quorum": 2}], "cool_down": 300,
            "expires_in": 600, "on_expiry": "escalate", "escalate_to": "board"}  # fmt: skip
    staged.policy(rule)
    gate = staged.ask()
    staged.decide("alice", gate)
    staged.decide("carol", gate)
    clock.move(601)
    looking.look(gate.run_id)
    gate = fresh(gate)
    assert (gate.stage, gate.approvers, counting(gate)) == (2, ["board"], [("alice", 1)])
    assert gate.undecidable_at is not None  # vera only looks
    GroupMember.objects.filter(membership__user__username="vera").update(
        membership=Membership.objects.get(user__username="olga")
    )
    assert staged.decide("ada", gate).state == "pending"
    assert staged.decide("olga", gate).state == "approved"
    assert staged.work(gate.run_id) == 0  # it cools down
    clock.move(301)
    looking.look(gate.run_id)
    assert staged.work(gate.run_id) == 1


# What is shown and told


def test_the_people_of_the_next_stage_are_told_once_it_is_theirs(staged):
    with transaction.atomic():
        User.objects.filter(username__in=["alice", "carol"]).update(email="x@acme.test")
    gate = staged.ask()

    def asked():
        rows = OutboxMessage.objects.filter(kind="notice.asked", about=gate.pk)
        return [User.objects.get(pk=one.recipient).username for one in rows.order_by("due_at")]

    assert asked() == ["alice"]
    staged.decide("bob", gate)
    assert asked() == ["alice", "carol"]
    assert mails.asked(staged.people["alice"].id, [gate.pk]) == []
    (mail,) = mails.asked(staged.people["carol"].id, [gate.pk])
    assert "Stage: 2 of 2" in mail.facts


def test_the_api_tells_who_decides_each_stage_who_has_and_what_comes_next(staged):
    gate = staged.ask()
    staged.decide("alice", gate)
    path = f"/gates/{gate.pk}"
    shown = staged.request("carol", "GET", path)[1]
    assert (shown["stage"], shown["quorum"]) == (2, {"needed": 3, "given": 1})
    assert shown["may_decide"] is True
    assert "one of 2 approvals" in shown["allowed"][0]["consequence"]
    assert "in stage 2 of 2" in shown["allowed"][0]["consequence"]
    vote = str(vote_of(staged, "alice", gate).pk)
    no_end = {"expires_in": None, "on_expiry": None, "escalate_to": None}
    assert shown["stages"] == [
        {"number": 1, "state": "approved", "approvers": ["finance"],
         "quorum": {"needed": 1, "given": 1}, "decisions": [vote], "expires_at": None, **no_end},
        {"number": 2, "state": "open", "approvers": ["leads"],
         "quorum": {"needed": 2, "given": 0}, "decisions": [], "expires_at": None, **no_end},
    ]  # fmt: skip
    assert [(one["by"], one["stage"]) for one in shown["decisions"]] == [("alice", 1)]
    assert staged.request("alice", "GET", path)[1]["may_decide"] is False
    mine = staged.request("olga", "GET", "/gates?mine=true")[1]["results"]
    assert [one["id"] for one in mine] == [str(gate.pk)]
    assert "by" not in staged.request("bot", "GET", path)[1]["decisions"][0]

    stages = [{**FINANCE, "quorum": 1, **no_end}, {**LEADS, "quorum": 2, **no_end}]
    checked = {"tool": "payments.refund", "arguments": {"payment": "p", "amount": "1"}}
    assert staged.request("bot", "POST", "/policies/check", checked)[1]["stages"] == stages
    why = staged.request("olga", "GET", f"/policies/why?step={gate.step_id}")[1]
    assert (why["stages"], why["now"]["stages"]) == (stages, stages)
    draft = {"policy": {"rules": [{**ASKS, "stages": [LEADS, FINANCE]}]}}
    tried = staged.request("olga", "POST", "/policies/simulate", draft)[1]
    assert [one["approvers"] for one in tried["results"][0]["stages"]] == [["leads"], ["finance"]]


def test_an_approval_given_while_the_gate_is_read_is_no_fault(staged, monkeypatch):
    gate = staged.ask()
    real = stages.standing

    def late(rows):
        monkeypatch.setattr(stages, "standing", real)
        staged.decide("alice", gate)
        return real(rows)

    monkeypatch.setattr(stages, "standing", late)
    status, shown, _ = staged.request("olga", "GET", f"/gates/{gate.pk}")
    assert (status, shown["stages"][0]["decisions"]) == (200, [])
    again = staged.request("olga", "GET", f"/gates/{gate.pk}")[1]
    assert again["stages"][0]["decisions"] == [str(vote_of(staged, "alice", gate).pk)]


def test_a_stage_or_a_vote_that_was_forged_is_told(staged):
    gate = staged.ask()
    staged.decide("alice", gate)
    run = Run.objects.get(pk=gate.run_id)
    assert told(run) == []
    (entry,) = JournalEntry.objects.filter(stream=run.pk, kind="gate.stage_opened")
    assert '"stage":2' in entry.text
    with superuser() as sql:
        for table, column, forged in (
            ("approvals_gate", "stage", "1"),
            ("approvals_decision", "stage", "2"),
            ("approvals_gate", "stages", """'[{"approvers": ["leads"], "quorum": 1}]'"""),
        ):
            (before,) = sql.execute(f"SELECT {column}::text FROM {table}").fetchone()
            sql.execute(f"UPDATE {table} SET {column} = {forged}")
            assert told(run) != []
            sql.execute(f"UPDATE {table} SET {column} = '{before}'")
            assert told(run) == []
