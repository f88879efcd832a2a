"""Interrupts and their answers: what is asked, who may answer, and that an answer counts once."""

from uuid import uuid4

import pytest

from config.errors import InvalidBody, PeopleOnly, VersionMismatch
from interrupts.errors import (
    AlreadyResolved,
    Damaged,
    DecideTheGate,
    MayNot,
    RunEnded,
    StaleCheckpoint,
)
from interrupts.models import Checkpoint, Interrupt
from interrupts.services import checkpoints, responses
from tenants.conditions import IfMatch
from tenants.models import Membership
from tests.database import rewrite
from tests.interrupts.house import earlier, fresh, kinds, open_of, refused

CHOICE = {"type": "object", "required": ["pick"], "properties": {"pick": {"enum": ["a", "b"]}}}


def ask(house, run, **more):
    return house.interrupt(
        house.agent, run, "input_required", **{"question": "Which?", "schema": CHOICE, **more}
    )


def test_the_same_interrupt_is_opened_once_while_it_is_open(house):
    run = house.run()
    first = house.stop(run)
    version = fresh(run).state_version
    assert house.stop(run).pk == first.pk
    assert fresh(run).state_version == version
    assert house.stop(run, question="And this?").pk != first.pk
    house.respond(first)
    assert house.stop(run).pk != first.pk


def test_a_run_goes_on_when_the_last_is_answered(house):
    run = house.run()
    stop, asked = house.stop(run), ask(house, run)
    assert (fresh(run).open_interrupts, fresh(run).epoch) == (2, 2)
    house.respond(asked, value={"pick": "a"})
    assert fresh(run).status == "suspended"
    house.respond(stop)
    assert (fresh(run).status, fresh(run).epoch) == ("running", 2)
    assert kinds(run).count("run.suspended") == kinds(run).count("run.resumed") == 1


def test_the_same_response_is_the_first_one_again_whoever_repeats_it(house):
    run = house.run()
    asked = ask(house, run)
    given = {"checkpoint": asked.checkpoint, "resolution": "resume", "value": {"pick": "a"}}
    first, replayed = responses.respond(house.people["olga"], asked.pk, **given, note="n")
    again, was_replayed = responses.respond(house.people["ada"], asked.pk, **given, note="n")
    assert (replayed, was_replayed) == (False, True)
    assert again.resolved_by == first.resolved_by == house.people["olga"].actor.as_json
    assert kinds(run).count("interrupt.resolved") == 1


@pytest.mark.parametrize(
    "other",
    [
        {"value": {"pick": "b"}},
        {"note": "another"},
        {"resolution": "cancel"},
        {"checkpoint": uuid4()},
    ],
    ids=["value", "note", "resolution", "checkpoint"],
)
def test_a_different_response_afterwards_is_a_conflict(house, other):
    asked = ask(house, house.run())
    given = {"checkpoint": asked.checkpoint, "resolution": "resume", "value": {"pick": "a"}}
    responses.respond(house.people["olga"], asked.pk, **given)
    with refused(AlreadyResolved):
        responses.respond(house.people["olga"], asked.pk, **{**given, **other})


def test_an_answer_to_what_the_service_resolved_is_a_conflict(house):
    run = house.run()
    asked = ask(house, run, expires_in=5)
    earlier(asked, "expires_at", 6)
    house.look(run)
    with refused(AlreadyResolved):
        house.respond(asked, value={"pick": "a"})


def test_an_answer_to_another_checkpoint_is_refused(house):
    run = house.run()
    stop = house.stop(run)
    newer = checkpoints.put_state(
        house.agent, run.pk, agent_state={"format": "f", "version": "1", "data": 1}
    )
    for checkpoint in (newer.pk, uuid4()):
        with refused(StaleCheckpoint):
            house.respond(stop, checkpoint=checkpoint)
    assert fresh(stop).checkpoint == stop.checkpoint
    assert fresh(run).checkpoint_id == newer.pk
    house.respond(stop)


def test_what_settles_later_makes_no_answer_stale(house):
    house.tool("mine", kind="agent")
    run = house.run()
    (step,) = house.propose(run, ("mine", {}))
    attempt = house.claim(step)
    stop = house.stop(run)
    house.report(attempt)
    house.respond(stop)
    assert fresh(run).status == "running"


@pytest.mark.parametrize("value", [None, {"pick": "c"}, "a", {}])
def test_a_value_that_breaks_the_schema_is_refused(house, value):
    asked = ask(house, house.run())
    with refused(InvalidBody) as raised:
        house.respond(asked, value=value)
    assert raised.value.errors[0]["pointer"].startswith("/value")


def test_an_input_without_a_value_is_refused_and_a_release_with_one_too(house):
    run = house.run()
    asked, stop = ask(house, run), house.stop(run)
    with refused(InvalidBody):
        house.respond(asked)
    with refused(InvalidBody):
        house.respond(stop, value="x")


@pytest.mark.parametrize("resolution", ["revise", "compensate", "time_out"])
def test_a_resolution_that_is_not_offered_is_refused(house, resolution):
    request = house.interrupt(house.agent, house.run(), "agent_requested")
    with refused(InvalidBody):
        house.respond(request, resolution)


def test_a_schema_that_no_value_can_be_checked_by_is_refused(house):
    run = house.run()
    with refused(InvalidBody):
        ask(house, run, schema={"type": "nothing"})


@pytest.mark.parametrize(
    ("reason", "may", "may_not"),
    [
        ("operator_stop", ["olga", "ada"], ["alice", "bob", "vera"]),
        ("agent_requested", ["olga", "ada"], ["alice", "bob", "vera"]),
        ("input_required", ["olga", "ada", "bob"], ["alice", "vera"]),
    ],
)
def test_who_may_go_on_with_it(house, reason, may, may_not):
    """Bob is the requester: an input is his to give, a stop is not his to release."""
    given = {"value": 1} if reason == "input_required" else {}
    for who in may:
        run = house.run(requested_by=house.people["bob"].name)
        by = house.people["olga"] if reason == "operator_stop" else house.agent
        interrupt = house.interrupt(by, run, reason)
        for stranger in may_not:
            with refused(MayNot):
                house.respond(interrupt, by=stranger, **given)
        house.respond(interrupt, by=who, **given)
        assert fresh(run).status == "running"


def test_a_requester_who_only_looks_answers_nothing(house):
    run = house.run(requested_by=house.people["vera"].name)
    asked = ask(house, run)
    with refused(MayNot):
        house.respond(asked, by="vera", value={"pick": "a"})


def test_only_operators_and_admins_end_a_run_by_an_answer(house):
    run = house.run(requested_by=house.people["bob"].name)
    asked = ask(house, run)
    with refused(MayNot):
        house.respond(asked, "cancel", by="bob")
    house.respond(asked, "cancel")
    assert fresh(run).status == "cancelled"


def test_who_has_left_answers_nothing(house):
    stop = house.stop(house.run())
    Membership.objects.filter(user=house.people["olga"].id).update(active=False)
    with refused(MayNot):
        house.respond(stop)


def test_what_a_gate_holds_is_released_by_its_decision_only(house):
    house.tool("asked")
    house.policy.verdicts["asked"] = "approve"
    run = house.run()
    (step,) = house.propose(run, ("asked", {}))
    held = open_of(step)
    with refused(DecideTheGate):
        house.respond(held)
    house.respond(held, "cancel")
    assert (fresh(run).status, fresh(step).status) == ("cancelled", "cancelled")
    assert house.policy.closed == [(step.gate, "withdrawn")]


def test_a_damaged_checkpoint_resumes_nothing(house):
    run = house.run()
    stop = house.stop(run)
    rewrite(Checkpoint.objects.get(pk=stop.checkpoint), next_step=9)
    # That it is damaged is shown of the run from then on.
    with refused(Damaged, but=frozenset({"damage", "damaged_at", "state_version", "due_at"})):
        house.respond(stop)
    assert fresh(run).damage is not None


def test_an_answer_to_a_version_that_moved_on_is_refused(house):
    run = house.run()
    stop = house.stop(run)
    with refused(VersionMismatch):
        house.respond(stop, if_match=IfMatch(frozenset({"1"})))
    house.respond(stop, if_match=IfMatch(frozenset({str(fresh(run).state_version)})))


def test_only_people_stop_and_only_the_stoppers_of_a_run(house):
    run = house.run()
    with refused(PeopleOnly):
        house.interrupt(house.agent, run, "operator_stop")
    for who in ("alice", "vera"):
        with refused(MayNot):
            house.stop(run, by=who)
    house.policy.deciders.add(house.people["alice"].id)
    assert house.stop(run, by="alice").opened_by["id"] == str(house.people["alice"].id)


def test_nothing_interrupts_a_run_that_has_ended(house):
    run = house.run()
    house.cancel(run)
    with refused(RunEnded):
        house.stop(run)
    assert not Interrupt.objects.exists()
