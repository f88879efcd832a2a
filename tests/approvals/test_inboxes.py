"""An inbox holds what its person may decide now, also after a change of who may."""

from django.db import transaction

from approvals.models import Assignment, Gate
from approvals.services.grants import set_grants
from approvals.services.inboxes import refresh_inboxes
from tenants.journal import SYSTEM
from tenants.services.people import MemberWanted, set_members
from tests.approvals.house import House


def inbox(house: House, gate: Gate) -> set[str]:
    by_id = {person.id: name for name, person in house.people.items()}
    rows = Assignment.objects.filter(gate=gate)
    return {by_id[user] for user in rows.values_list("user_id", flat=True)}


def change(**globs: list[str]) -> None:
    with transaction.atomic():
        set_grants(SYSTEM, globs, others_end=True)
        refresh_inboxes()


def test_a_gate_comes_to_whoever_may_decide_it_now_and_leaves_the_others(house: House) -> None:
    gate = house.ask()
    assert inbox(house, gate) == {"alice", "carol"}
    change(bob=["payments.*"], carol=["*"])
    assert inbox(house, gate) == {"bob", "carol"}
    change(vera=["*"], bob=["mail.*"])
    assert inbox(house, gate) == set()


def test_who_becomes_a_viewer_has_nothing_to_decide(house: House) -> None:
    gate = house.ask()
    with transaction.atomic():
        set_members(SYSTEM, [MemberWanted("alice", "", "viewer")])
        refresh_inboxes()
    assert inbox(house, gate) == {"carol"}


def test_a_gate_that_is_final_stays_where_it_was(house: House) -> None:
    gate = house.ask()
    house.decide("alice", gate, "reject", reason="no")
    before = inbox(house, gate)
    change(bob=["*"])
    assert inbox(house, gate) == before


def test_what_was_not_committed_changes_no_inbox(house: House) -> None:
    gate = house.ask()
    with transaction.atomic():
        set_grants(SYSTEM, {}, others_end=True)
        refresh_inboxes()
        transaction.set_rollback(True)
    assert inbox(house, gate) == {"alice", "carol"}
