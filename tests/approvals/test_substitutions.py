"""Who decides for whom: by that person's authority and no more, and as one with them."""

from datetime import timedelta
from uuid import UUID

import pytest
from django.db import IntegrityError, transaction

from approvals import waiting
from approvals.errors import BeyondAuthority, NotAnApprover, OwnRequest
from approvals.models import Decision, Gate, Substitution
from approvals.services import gates, questions, substitutions
from approvals.services.decisions import withdraw_decision
from config.errors import Forbidden
from interrupts.models import Run, Step
from interrupts.services import looking, starting
from tenants.clock import database_now
from tenants.errors import OwnAuthority
from tenants.journal import SYSTEM
from tenants.models import Agent, JournalEntry, Membership, User
from tests import clock
from tests.approvals.house import fresh
from tests.approvals.test_limits import UP_TO_500, costing, grant, inboxes, within
from tests.approvals.test_tampering import told
from tests.clock import moving_clock

__all__ = ["moving_clock"]

ASKS = {"name": "asks", "trigger": "action", "tools": ["payments.*"], "then": "approve"}
TWO = {**ASKS, "quorum": 2}
HOUR = 3600


@pytest.fixture
def away(house):
    """Alice and carol may decide refunds; bob and olga decide nothing by themselves."""
    house.policy(ASKS)
    grant(alice=["payments.*"], carol=["payments.*"], bob=[], vera=[])
    return house


def stand_in(house, substitute="bob", person="alice", *, by=None, starts_in=None, seconds=HOUR):
    now = database_now()
    return substitutions.set_as(
        house.people[by or person],
        person=person,
        substitute=substitute,
        starts_at=None if starts_in is None else now + timedelta(seconds=starts_in),
        ends_at=now + timedelta(seconds=seconds),
    ).row


def end(house, row, by="alice"):
    return substitutions.end_as(house.people[by], row.pk)


def votes(gate):
    found = Decision.objects.filter(gate=gate, counts=True).order_by("id")
    return list(found.values_list("user__username", "acting_for__username"))


def waits(house, who):
    found = waiting.waiting(house.people[who].id, waiting.Wanted())
    return [(row.gate.pk, row.acting_for and row.acting_for.username) for row in found.rows]


def test_a_substitute_decides_for_the_person_and_it_says_so_everywhere(away):
    gate = away.ask()
    with pytest.raises(NotAnApprover):
        away.decide("bob", gate)
    stand_in(away)
    assert waits(away, "bob") == [(gate.pk, "alice")]
    assert waiting.count(away.people["bob"].id) == "1"
    assert waiting.counts(away.people["bob"].id).decisions == 1
    _, listed, _ = away.request("bob", "GET", "/gates?mine=true")
    assert [(one["may_decide"], one["acting_for"]) for one in listed["results"]] == [
        (True, "alice")
    ]
    questions.ask_agent(away.people["bob"], gate.pk, text="why?")

    body = {"verdict": "approve", "digest": gate.digest}
    status, shown, _ = away.request("bob", "POST", f"/gates/{gate.pk}/decisions", body)

    assert (status, shown["state"]) == (201, "approved")
    assert [(one["by"], one["acting_for"]) for one in shown["decisions"]] == [("bob", "alice")]
    _, seen, _ = away.request("bot", "GET", f"/gates/{gate.pk}")
    assert "acting_for" not in {*seen, *seen["decisions"][0]}
    entry = JournalEntry.objects.get(stream=gate.run_id, kind="gate.decided")
    assert f'"acting_for":"{away.people["alice"].id}"' in entry.text
    assert told(Run.objects.get(pk=gate.run_id)) == []
    assert away.work(gate.run_id) == 1


def test_an_own_right_comes_first_and_nothing_is_said_of_another(away):
    stand_in(away, substitute="carol")
    gate = away.ask()
    assert waits(away, "carol") == [(gate.pk, None)]
    assert away.decide("carol", gate).state == "approved"
    assert votes(gate) == [("carol", None)]


def test_a_substitute_is_within_the_persons_limits(away):
    grant(alice=[within(UP_TO_500)])
    stand_in(away)
    small, large = away.ask(), away.ask(arguments=costing("501.00"))
    assert waits(away, "bob") == [(small.pk, "alice")]
    before = away.trace(large)
    with pytest.raises(BeyondAuthority):
        away.decide("bob", large)
    with pytest.raises(BeyondAuthority):
        away.decide("bob", small, arguments=costing("501.00"))
    assert away.trace(large) == before
    assert away.decide("bob", small).state == "approved"


def test_a_substitutes_substitute_gets_nothing(away):
    stand_in(away)
    stand_in(away, substitute="olga", person="bob")
    gate = away.ask()
    assert waits(away, "olga") == []
    with pytest.raises(NotAnApprover):
        away.decide("olga", gate)
    assert not Decision.objects.exists()


@pytest.mark.parametrize("requester", ["alice", "bob"])
def test_neither_of_the_two_decides_what_runs_for_one_of_them(away, requester):
    stand_in(away)
    mine = away.people[requester].id
    gate = away.ask(run=away.run(requested_by=requester))
    assert Run.objects.get(pk=gate.run_id).requested_by_id == mine
    with pytest.raises(OwnRequest):
        away.decide("bob", gate)
    assert waits(away, "bob") == []

    Agent.objects.update(owner_id=mine)
    owned = away.ask()
    with pytest.raises(OwnRequest):
        away.decide("bob", owned)
    assert not Decision.objects.exists()


def test_the_two_are_one_vote_whoever_comes_first(away):
    away.policy(TWO)
    stand_in(away)
    gate = away.ask()
    assert away.decide("alice", gate).state == "pending"
    assert away.decide("bob", gate).state == "pending"
    assert votes(gate) == [("bob", "alice")]
    assert away.decide("alice", fresh(gate)).state == "pending"
    assert votes(gate) == [("alice", None)]
    stand_in(away, substitute="olga")
    assert away.decide("olga", fresh(gate)).state == "pending"
    assert votes(gate) == [("olga", "alice")]
    assert away.decide("carol", fresh(gate)).state == "approved"
    assert votes(gate) == [("olga", "alice"), ("carol", None)]


def test_the_database_holds_one_vote_for_a_person(away):
    away.policy(TWO)
    stand_in(away)
    gate = away.ask()
    away.decide("bob", gate)
    row = Decision.objects.values().get()
    again = {**row, "id": gate.pk, "user_id": away.people["olga"].id}
    with pytest.raises(IntegrityError, match="one_counting_vote_for_a_person"):
        Decision.objects.create(**again)


def test_it_begins_and_ends_by_itself_at_its_time(away):
    stand_in(away, starts_in=HOUR, seconds=2 * HOUR)
    gate = away.ask()
    with pytest.raises(NotAnApprover):
        away.decide("bob", gate)
    assert waits(away, "bob") == []
    clock.move(HOUR + 1)
    assert waits(away, "bob") == [(gate.pk, "alice")]
    clock.move(HOUR)
    assert waits(away, "bob") == []
    with pytest.raises(NotAnApprover):
        away.decide("bob", gate)
    assert not Decision.objects.exists()


def test_what_a_substitute_approved_starts_no_more_once_it_has_ended_by_itself(away):
    away.policy({**ASKS, "cool_down": 2 * HOUR})
    stand_in(away)
    gate = away.ask()
    assert away.decide("bob", gate).state == "approved"
    assert Step.objects.get(pk=gate.step_id).authorized_until is not None

    clock.move(2 * HOUR + 1)
    looking.look(gate.run_id)
    away.work(gate.run_id)

    step = Step.objects.get(pk=gate.step_id)
    assert (step.status, away.calls) == ("waiting", [])
    assert Gate.objects.get(pk=step.gate).pk != gate.pk


@pytest.mark.parametrize("approved", ["by both", "before the other"])
def test_where_one_of_two_substitutions_was_ended_it_starts_no_later_than_the_other_ends(
    away, approved
):
    longer = stand_in(away, seconds=3 * HOUR)
    gate = away.ask()
    if approved == "before the other":
        away.decide("bob", gate)
    stand_in(away)
    if approved == "by both":
        away.decide("bob", gate)
    end(away, longer)
    assert starting.renew(gate.run_id, gate.step_id, SYSTEM)

    clock.move(2 * HOUR)
    away.work(gate.run_id)

    step = Step.objects.get(pk=gate.step_id)
    assert (step.status, away.calls) == ("waiting", [])
    assert Gate.objects.get(pk=step.gate).pk != gate.pk


@pytest.mark.parametrize("by", ["alice", "bob", "ada"])
def test_ended_at_once_its_votes_count_no_more(away, by):
    away.policy(TWO)
    row = stand_in(away)
    gate = away.ask()
    away.decide("bob", gate)
    assert end(away, row, by).ended_at is not None
    assert end(away, row, by).ended_at == Substitution.objects.get().ended_at
    assert gates.look_at_gate(away.people["carol"], gate.pk).given == 0
    assert away.decide("carol", gate).state == "pending"
    assert votes(gate) == [("carol", None)]
    kinds = JournalEntry.objects.filter(kind__startswith="substitution").order_by("seq")
    assert list(kinds.values_list("kind", flat=True)) == [
        "substitution.added",
        "substitution.removed",
    ]


def test_an_approval_by_a_substitute_is_asked_about_anew_once_it_was_ended(away):
    row = stand_in(away)
    gate = away.ask()
    away.decide("bob", gate)
    end(away, row)
    assert away.work(gate.run_id) == 0
    assert Step.objects.get(pk=gate.step_id).status == "waiting"
    assert away.calls == []


@pytest.mark.parametrize("lost", ["alice", "bob"])
def test_who_has_left_is_no_substitute_and_has_none(away, lost):
    stand_in(away)
    gate = away.ask()
    Membership.objects.filter(user=away.people[lost].id).update(active=False)
    with pytest.raises(NotAnApprover):
        away.decide("bob", gate)
    assert not Decision.objects.exists()


def test_a_rules_groups_are_the_persons(away):
    away.group("finance", "alice")
    away.group("others", "bob")
    stand_in(away)
    away.policy({**ASKS, "approvers": ["finance"]})
    assert away.decide("bob", away.ask()).state == "approved"
    away.policy({**ASKS, "approvers": ["others"]})
    with pytest.raises(NotAnApprover):
        away.decide("bob", away.ask())


def test_a_substitute_takes_back_what_they_approved(away):
    stand_in(away)
    gate = away.ask()
    decision = away.decided("bob", gate, "approve").decision
    assert withdraw_decision(away.people["bob"], gate.pk, decision.pk).state == "pending"
    assert votes(gate) == []
    assert inboxes(gate) == {"alice", "carol"}


# In stages


@pytest.fixture
def staged(away):
    """First alice's group and then carol's and olga's, who may decide as well."""
    grant(olga=["payments.*"])
    away.group("finance", "alice")
    away.group("leads", "carol", "olga")
    away.policy({**ASKS, "stages": [{"approvers": ["finance"]}, {"approvers": ["leads"]}]})
    return away


def test_an_edit_by_a_substitute_counts_in_the_persons_stage(staged):
    stand_in(staged, substitute="carol")
    gate = staged.ask()
    edited = staged.decide("carol", gate, arguments=costing("7.00"))
    assert votes(gate) == [("carol", "alice")]
    assert (edited.stage, inboxes(gate)) == (2, {"olga"})
    assert staged.decide("olga", edited).state == "approved"
    assert told(Run.objects.get(pk=gate.run_id)) == []


def test_an_edit_in_a_later_stage_is_by_the_authority_that_is_of_it(staged):
    grant(bob=["payments.*"])
    stand_in(staged, substitute="bob", person="carol")
    gate = staged.ask()
    staged.decide("alice", gate)
    edited = staged.decide("bob", fresh(gate), arguments=costing("7.00"))
    assert (edited.stage, votes(gate)) == (1, [])
    assert Decision.objects.get(user=staged.people["bob"].id).acting_for_id == (
        staged.people["carol"].id
    )


def test_a_substitution_that_is_ended_opens_its_stage_again_at_once(staged):
    row = stand_in(staged, substitute="carol")
    gate = staged.ask()
    staged.decide("carol", gate)
    assert (fresh(gate).stage, inboxes(gate)) == (2, {"olga"})
    assert staged.request("alice", "DELETE", f"/substitutions/{row.pk}")[0] == 200
    assert (fresh(gate).stage, inboxes(gate), votes(gate)) == (1, {"alice"}, [])
    assert fresh(gate).undecidable_at is None
    assert told(Run.objects.get(pk=gate.run_id)) == []


def test_one_that_is_set_finds_the_stages_of_those_that_ended_by_themselves(staged):
    stand_in(staged, substitute="carol")
    gate = staged.ask()
    staged.decide("carol", gate)
    clock.move(HOUR + 1)
    assert fresh(gate).stage == 2
    body = {"substitute": "bob", "ends_at": "2999-12-31T00:00:00Z"}
    assert staged.request("olga", "POST", "/substitutions", body)[0] == 201
    assert (fresh(gate).stage, inboxes(gate), votes(gate)) == (1, {"alice"}, [])


def test_what_a_substitute_approved_waits_for_them_in_no_later_stage(staged):
    stand_in(staged, substitute="bob")
    stand_in(staged, substitute="bob", person="carol")
    gate = staged.ask()
    assert listed(staged, "bob") == ([gate.pk], [gate.pk], "1", 1)
    staged.decide("bob", gate)
    assert (fresh(gate).stage, inboxes(gate)) == (2, {"carol", "olga"})
    assert listed(staged, "bob") == ([], [], "0", 0)
    assert listed(staged, "carol") == ([gate.pk], [gate.pk], "1", 1)


def test_what_a_substitute_asked_for_is_neither_listed_nor_counted(away):
    stand_in(away)
    away.ask(run=away.run(requested_by="bob"))
    assert listed(away, "bob") == ([], [], "0", 0)
    assert listed(away, "alice")[2:] == ("1", 1)


def listed(house, who):
    """What waits for a person: on the page, over the API, beside its name, and as it is summed up."""
    person = house.people[who].id
    _, shown, _ = house.request(who, "GET", "/gates?mine=true")
    return (
        [pk for pk, _ in waits(house, who)],
        [UUID(one["id"]) for one in shown["results"]],
        waiting.count(person),
        waiting.counts(person).decisions,
    )


# Setting it


def test_only_the_person_or_an_admin_sets_it_and_nobody_for_their_own_good(away):
    for by in ("bob", "olga", "carol"):
        with pytest.raises(Forbidden):
            stand_in(away, by=by)
    with pytest.raises(OwnAuthority):
        stand_in(away, substitute="ada", by="ada")
    assert not Substitution.objects.exists()
    assert stand_in(away, by="ada").created_by == away.people["ada"].id


def test_it_is_set_listed_and_ended_by_the_api(away):
    until = (database_now() + timedelta(days=3)).isoformat()
    body = {"substitute": "bob", "ends_at": until}
    status, made, _ = away.request("alice", "POST", "/substitutions", body)
    assert (status, made["person"], made["substitute"]) == (201, "alice", "bob")
    status, again, headers = away.request("alice", "POST", "/substitutions", body)
    assert (status, again, headers["Idempotent-Replayed"]) == (200, made, "true")
    for who, number in (("alice", 1), ("bob", 1), ("ada", 1), ("carol", 0)):
        _, listed, _ = away.request(who, "GET", "/substitutions")
        assert len(listed["results"]) == number
    path = f"/substitutions/{made['id']}"
    assert away.request("carol", "DELETE", path)[0] == 403
    assert away.request("bot", "DELETE", path)[1]["code"] == "people-only"
    status, ended, _ = away.request("bob", "DELETE", path)
    assert (status, ended["ended_at"] is not None) == (200, True)
    assert away.request("alice", "DELETE", path)[1] == ended
    assert away.request("alice", "GET", "/substitutions")[1]["results"] == []


@pytest.mark.parametrize(
    ("said", "at"),
    [
        ({"substitute": "nobody"}, "/substitute"),
        ({"substitute": "vera"}, "/substitute"),
        ({"substitute": "alice"}, "/substitute"),
        ({"ends_at": "2020-01-01T00:00:00Z"}, "/ends_at"),
        ({"ends_at": "9999-12-31T23:59:59-12:00"}, "/ends_at"),
        ({"starts_at": "2999-12-31T00:00:01Z"}, "/ends_at"),
        ({"ends_at": "tomorrow"}, "/ends_at"),
        ({"ends_at": None}, "/ends_at"),
    ],
)
def test_what_is_wrong_is_told_with_its_place_and_nothing_is_kept(away, said, at):
    body = {"substitute": "bob", "ends_at": "2999-12-31T00:00:00Z", **said}
    before = JournalEntry.objects.count()
    status, problem, _ = away.request("alice", "POST", "/substitutions", body)
    assert (status, [one["pointer"] for one in problem["errors"]]) == (422, [at])
    assert not Substitution.objects.exists()
    assert JournalEntry.objects.count() == before


def test_another_tenants_people_and_substitutions_are_none_here(away):
    User.objects.create(username="charlie")
    body = {"substitute": "charlie", "ends_at": "2999-12-31T00:00:00Z"}
    assert away.request("alice", "POST", "/substitutions", body)[0] == 422
    with transaction.atomic():
        assert not Substitution.objects.exists()
