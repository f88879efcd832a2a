"""Authority within limits: who may decide a call by what it is, on every way to a decision."""

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from approvals import hot
from approvals.errors import BeyondAuthority, NotAnApprover
from approvals.models import Assignment, Decision, Gate, ToolPermission
from approvals.policy.judging import Subject, facts_of
from approvals.policy.limits import exceeded, limit_faults
from approvals.services import questions
from approvals.services.grants import held_by, set_grants
from approvals.services.inboxes import refresh_inboxes
from interrupts.models import Step
from tenants.errors import OwnAuthority
from tenants.journal import SYSTEM, Actor
from tenants.models import JournalEntry, Tenant
from tests.approvals.house import CALL, fresh

UP_TO_500 = "decimal(arguments.amount) <= decimal('500')"
ASKS = {"name": "asks", "trigger": "action", "tools": ["payments.*"], "then": "approve"}
TWO = {**ASKS, "quorum": 2}


def within(limit, *tools):
    return {"tools": list(tools) or ["payments.refund"], "condition": limit}


def costing(amount):
    return {**CALL, "amount": amount}


def inboxes(gate):
    waits = Assignment.objects.filter(gate=gate).values_list("user__username", flat=True)
    return set(waits)


def grant(**entries):
    with transaction.atomic():
        changes = set_grants(SYSTEM, entries)
        refresh_inboxes()
    return changes


@pytest.fixture
def limited(house):
    """Bob decides refunds up to 500, alice whatever there is, carol nothing."""
    house.policy(ASKS)
    grant(alice=["*"], bob=[within(UP_TO_500)], carol=[], vera=[])
    return house


# The condition


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (UP_TO_500, None),
        ("agent.name == 'bot' && tool.risk != 'high'", None),
        ("", "A limit is a text in CEL."),
        (7, "A limit is a text in CEL."),
        ("arguments.amount <= ", "(column "),
        ("amount < 5", "There is no amount here"),
        ("run.workflow == 'refunds'", "A limit asks about agent, arguments, tool only (column 1)."),
        ("tool.name == 'a' && run.workflow == 'b'", "(column 21)"),
    ],
)
def test_a_limit_is_checked_before_it_is_saved_and_its_fault_has_a_place(source, said):
    found = limit_faults(source)
    assert not found if said is None else said in found[0]


def test_a_limit_without_an_answer_is_exceeded_and_each_must_hold():
    call = facts_of(Subject("t", "read", "low", {"amount": "20.00"}, "bot", "w"))
    assert exceeded([UP_TO_500], call) == ()
    small = "decimal(arguments.amount) <= decimal('5')"
    assert exceeded([UP_TO_500, small], call) == (small,)
    for erring in ("arguments.missing == 1", "arguments.amount < 5", "arguments.amount", "1 +"):
        assert exceeded([erring], call) == (erring,)
    assert exceeded([UP_TO_500], None) == (UP_TO_500,)


# Who is asked, and who is told what


@pytest.mark.parametrize(
    ("amount", "who"),
    [("500.00", {"alice", "bob"}), ("500.01", {"alice"}), ("7", {"alice", "bob"})],
)
def test_a_gate_goes_to_those_whose_limit_allows_these_very_arguments(limited, amount, who):
    gate = limited.ask(arguments=costing(amount))
    assert inboxes(gate) == who
    for person in ("alice", "bob"):
        status, shown, _ = limited.request(person, "GET", f"/gates/{gate.pk}")
        assert (status, shown["may_decide"]) == (200, person in who)


def test_whoever_is_beyond_their_limit_is_told_the_limit_and_nothing_changes(limited):
    gate = limited.ask(arguments=costing("500.01"))
    limited.look(gate, "bob")
    before = limited.trace(gate)

    for verdict in ("approve", "reject"):
        body = {"verdict": verdict, "digest": gate.digest, "reason": "no"}
        status, told, _ = limited.request("bob", "POST", f"/gates/{gate.pk}/decisions", body)
        found = (status, told.get("code"), told.get("limits"))
        assert found == (403, "beyond-authority", [UP_TO_500])
        assert UP_TO_500 in told["detail"]
    with pytest.raises(BeyondAuthority):
        questions.ask_agent(limited.people["bob"], gate.pk, text="why?")
    smaller = costing("1.00")
    with pytest.raises(BeyondAuthority):
        limited.decide("bob", gate, arguments=smaller)

    assert limited.trace(gate) == before


def test_a_person_with_a_limit_goes_the_long_way_and_is_let_through_within_it(limited, monkeypatch):
    taken = []
    hot_way = hot.approve
    monkeypatch.setattr(hot, "approve", lambda *given: taken.append(hot_way(*given)) or taken[-1])
    assert limited.decide("bob", limited.ask()).state == "approved"
    assert limited.decide("alice", limited.ask(arguments=costing("900"))).state == "approved"
    assert [one is not None for one in taken] == [False, True]


def test_an_edit_is_held_to_the_limit_of_its_editor(limited):
    gate = limited.ask()
    before = limited.trace(gate)
    with pytest.raises(BeyondAuthority) as told:
        limited.decide("bob", gate, arguments=costing("501.00"))
    assert told.value.limits == (UP_TO_500,)
    assert limited.trace(gate) == before
    assert limited.decide("bob", gate, arguments=costing("499.00")).state == "approved"


def test_an_edit_that_lacks_votes_goes_to_those_who_may_decide_it_as_it_is_now(limited):
    limited.policy(TWO)
    grant(carol=["*"])
    gate = limited.ask()
    assert inboxes(gate) == {"alice", "bob", "carol"}
    limited.decide("bob", gate)

    gate = limited.decide("alice", gate, arguments=costing("600.00"))

    assert inboxes(gate) == {"alice", "carol"}
    with pytest.raises(BeyondAuthority):
        limited.decide("bob", fresh(gate))
    assert limited.decide("alice", fresh(gate), arguments=costing("5.00")).state == "pending"
    assert inboxes(gate) == {"alice", "bob", "carol"}


def test_where_no_limit_allows_a_call_its_gate_is_one_that_nobody_may_decide(limited):
    grant(alice=[within(UP_TO_500)])
    gate = limited.ask(arguments=costing("900.00"))
    assert inboxes(gate) == set()
    assert gate.undecidable_at is not None

    grant(alice=["*"])
    assert inboxes(gate) == {"alice"}
    assert fresh(gate).undecidable_at is None


def test_a_vote_whose_limit_no_longer_holds_counts_no_more(limited):
    limited.policy(TWO)
    grant(carol=["*"])
    gate = limited.ask()
    limited.decide("bob", gate)
    grant(bob=[within("decimal(arguments.amount) <= decimal('10')")])
    assert inboxes(gate) == {"alice", "carol"}

    assert limited.decide("alice", gate).state == "pending"
    assert limited.decide("carol", gate).state == "approved"
    counting = Decision.objects.filter(gate=gate, counts=True).values_list("user__username")
    assert {who for (who,) in counting} == {"alice", "carol"}


def test_an_approval_beyond_a_limit_set_since_is_asked_about_anew_before_its_effect(limited):
    gate = limited.ask()
    limited.decide("bob", gate)
    grant(bob=[within("decimal(arguments.amount) <= decimal('10')")])

    assert limited.work(gate.run_id) == 0

    step = Step.objects.get(pk=gate.step_id)
    assert (step.status, limited.calls) == ("waiting", [])
    assert str(step.gate) != str(gate.pk)
    assert inboxes(Gate.objects.get(pk=step.gate)) == {"alice"}


# Giving it


def test_limits_of_several_entries_all_hold_whatever_stands_by(limited):
    high = "tool.risk != 'high'"
    grant(bob=["*", "payments.*", within(UP_TO_500), within(high, "*")])
    assert held_by(limited.people["bob"].id) == [within(high, "*"), within(UP_TO_500)]
    assert inboxes(limited.ask(arguments=costing("500.01"))) == {"alice"}
    limited.tool("payments.payout", risk="high")
    gate = limited.ask("payments.payout")
    with pytest.raises(BeyondAuthority):
        limited.decide("bob", gate)


def test_a_limit_is_journaled_before_and_after_and_narrowing_makes_stale(limited):
    def version():
        return Tenant.objects.get(pk=limited.tenant.pk).authority_version

    before = version()
    assert grant(bob=[within(UP_TO_500)]) == []
    (change,) = grant(bob=["payments.refund"])
    assert (version(), change.narrows) == (before, False)
    (change,) = grant(bob=[within("tool.risk == 'low'")])
    assert (version(), change.narrows) == (before + 1, True)
    assert change.fields["may_decide"] == (["payments.refund"], [within("tool.risk == 'low'")])
    last = JournalEntry.objects.filter(kind="authority.changed").order_by("-seq")[0]
    assert '"condition":"tool.risk == \'low\'"' in last.text


def test_nobody_takes_a_limit_off_themselves(limited):
    bob = limited.people["bob"]
    grant(bob=["*", within(UP_TO_500)])
    before = list(ToolPermission.objects.values())
    for wanted in (["*"], ["*", "payments.refund"], ["*", within("true")]):
        with pytest.raises(OwnAuthority), transaction.atomic():
            set_grants(Actor("user", str(bob.id)), {"bob": wanted})
    assert list(ToolPermission.objects.values()) == before
    narrower = ["*", within(UP_TO_500), within("tool.risk == 'low'")]
    with transaction.atomic():
        assert set_grants(Actor("user", str(bob.id)), {"bob": narrower})


def test_nobody_takes_off_themselves_the_limit_beside_what_is_left(limited):
    bob = limited.people["bob"]
    held = ["payments.refund", within(UP_TO_500, "*")]
    grant(bob=held)
    before = held_by(bob.id)
    for wanted in (["payments.refund"], ["payments.refund", within("true", "*")]):
        with pytest.raises(OwnAuthority), transaction.atomic():
            set_grants(Actor("user", str(bob.id)), {"bob": wanted})
    assert held_by(bob.id) == before
    with pytest.raises(BeyondAuthority):
        limited.decide("bob", limited.ask(arguments=costing("501.00")))
    # What takes away all that it limits is no more than that.
    with transaction.atomic():
        assert set_grants(Actor("user", str(bob.id)), {"bob": []})


def test_who_has_no_limit_costs_no_statement_more(limited):
    def statements(gate):
        with CaptureQueriesContext(connection) as seen, pytest.raises(NotAnApprover):
            limited.decide("carol", gate, "reject", reason="no")
        return len(seen)

    with_limits = statements(limited.ask())
    grant(bob=[])
    assert statements(limited.ask()) == with_limits
