"""Families: what stops a parent stops every run below it, in the same transaction."""

import pytest

from config.errors import InvalidBody
from interrupts.errors import MayNot, NotYourRun, RunEnded, RunSuspended, StepsOutstanding
from interrupts.models import Attempt, Interrupt, Run
from interrupts.services import runs
from tests.interrupts.house import fresh, open_of, refused


@pytest.fixture
def family(house):
    """A run, its child and its grandchild."""
    parent = house.run()
    child = house.run(parent=parent.pk)
    return parent, child, house.run(parent=child.pk)


def statuses(*rows):
    return [fresh(row).status for row in rows]


def versions(*rows):
    return [fresh(row).state_version for row in rows]


def test_an_interrupt_suspends_every_descendant(house, family):
    before = versions(*family)
    house.stop(family[0])
    assert statuses(*family) == ["suspended"] * 3
    assert [open_of(run).reason for run in family] == [
        "operator_stop",
        "parent_interrupted",
        "parent_interrupted",
    ]
    assert [fresh(run).epoch for run in family] == [2, 2, 2]
    assert versions(*family) == [version + 1 for version in before]


def test_descendants_go_on_with_their_parent(house, family):
    house.respond(house.stop(family[0]))
    assert statuses(*family) == ["running"] * 3
    assert not Interrupt.objects.filter(status="open").exists()


def test_a_child_that_is_held_by_something_of_its_own_stays_so_and_holds_its_own(house, family):
    parent, child, _grandchild = family
    own = house.stop(child)
    house.respond(house.stop(parent))
    assert statuses(*family) == ["running", "suspended", "suspended"]
    house.respond(own)
    assert statuses(*family) == ["running"] * 3


def test_a_childs_own_interrupt_holds_it_back_only(house, family):
    _parent, child, _grandchild = family
    house.stop(child)
    assert statuses(*family) == ["running", "suspended", "suspended"]


def test_a_child_that_is_suspended_already_keeps_its_epoch(house, family):
    parent, child, _ = family
    house.stop(child)
    house.stop(parent)
    assert (fresh(child).epoch, fresh(child).open_interrupts) == (2, 2)


def test_an_unknown_outcome_of_a_parent_stops_its_children_too(house):
    house.tool("t")
    parent = house.run()
    child = house.run(parent=parent.pk)
    house.lost(run=parent)
    assert statuses(child) == ["suspended"]


def test_what_holds_a_child_is_answered_by_cancel_only(house, family):
    parent, child, _grandchild = family
    house.stop(parent)
    held = open_of(child)
    assert [one["resolution"] for one in held.allowed] == ["cancel"]
    with refused(InvalidBody):
        house.respond(held, "resume")
    house.respond(held, "cancel")
    assert statuses(*family) == ["suspended", "cancelled", "cancelled"]


def test_a_second_stop_that_cancels_what_is_in_flight_reaches_the_children(house):
    house.tool("mine", kind="agent")
    parent = house.run()
    child = house.run(parent=parent.pk)
    (step,) = house.propose(child, ("mine", {}))
    house.claim(step)
    house.stop(parent)
    assert not Attempt.objects.get(step=step).cancel_requested
    house.stop(parent, question="Now?", in_flight="cancel")
    assert Attempt.objects.get(step=step).cancel_requested


@pytest.mark.parametrize(
    ("act", "error"), [("stop", RunSuspended), ("cancel", RunEnded), ("complete", RunEnded)]
)
def test_a_parent_that_is_not_running_starts_no_child(house, act, error):
    house.tool("mine", kind="agent")
    parent = house.run()
    if act == "complete":
        runs.complete_run(house.agent, parent.pk, output=None)
    else:
        getattr(house, act)(parent)
    with refused(error):
        house.run(parent=parent.pk)


def test_a_child_of_another_agents_run_is_refused(house, family):
    with refused(NotYourRun):
        runs.start_run(house.other, workflow="w", goal="g", parent=family[0].pk)


def test_a_run_whose_children_have_not_ended_cannot_complete(house, family):
    parent, child, grandchild = family
    with refused(StepsOutstanding):
        runs.complete_run(house.agent, parent.pk, output=1)
    for run in (grandchild, child, parent):
        runs.complete_run(house.agent, run.pk, output=1)
    assert statuses(*family) == ["completed"] * 3


def test_one_that_fails_cancels_them(house, family):
    runs.fail_run(house.agent, family[0].pk, error={"detail": "gave up"})
    assert statuses(*family) == ["failed", "cancelled", "cancelled"]


def test_a_cancel_reaches_every_descendant_and_waits_for_what_is_in_flight(house, family):
    house.tool("mine", kind="agent")
    parent, child, grandchild = family
    (step,) = house.propose(grandchild, ("mine", {}))
    attempt = house.claim(step)
    house.cancel(parent)
    assert statuses(*family) == ["cancelling"] * 3
    house.report(attempt)
    for run in (grandchild, child, parent):
        house.look(run)
    assert statuses(*family) == ["cancelled"] * 3


def test_a_child_takes_over_its_parents_requester(house):
    parent = house.run(requested_by=house.people["alice"].name)
    child = house.run(parent=parent.pk)
    named = house.run(parent=parent.pk, requested_by=house.people["bob"].name)
    assert child.requested_by_id == house.people["alice"].id
    assert named.requested_by_id == house.people["bob"].id


def test_who_has_left_requests_nothing(house):
    with refused(InvalidBody):
        house.run(requested_by="nobody")


def test_an_unknown_parent_is_refused(house, family):
    from uuid import uuid4

    with refused(InvalidBody):
        house.run(parent=uuid4())


def test_a_familys_path_leads_from_the_root(house, family):
    parent, child, _grandchild = family
    assert [run.root for run in family] == [parent.pk] * 3
    assert [run.path for run in family] == [[], [parent.pk], [parent.pk, child.pk]]


def test_siblings_do_not_stop_each_other(house):
    parent = house.run()
    children = [house.run(parent=parent.pk) for _ in range(2)]
    house.stop(children[0])
    assert statuses(parent, *children) == ["running", "suspended", "running"]


def test_only_operators_and_admins_cancel(house, family):
    for who in ("alice", "vera"):
        with refused(MayNot):
            house.cancel(family[0], by=who)
    assert house.cancel(family[0], by="ada").status == "cancelled"
    assert Run.objects.filter(status="cancelled").count() == 3
