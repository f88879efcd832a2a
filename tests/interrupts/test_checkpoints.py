"""Checkpoints: taken at boundaries, never changed; the agent's state whole, or base and append."""

import pytest
from django.db import DatabaseError, transaction

from config import jsontext
from config.errors import BodyTooLarge, InvalidBody
from interrupts.errors import NotYourRun, RunEnded
from interrupts.models import Checkpoint
from interrupts.services import agentstate, checkpoints, steps
from interrupts.transitions.checkpoints import digest_of
from tests.interrupts.house import fresh, open_of, refused

WHOLE = {"messages": [{"role": "user"}], "deep": {"list": [1]}, "a/b": [], "none": None}


def put(house, run, data=None, **state):
    if data is not None or not state:
        state["data"] = data
    return checkpoints.put_state(
        house.agent, run.pk, agent_state={"format": "f", "version": "1", **state}
    )


def grow(house, run, base, **append):
    return put(house, run, base=str(base.pk), append={f"/{k}": v for k, v in append.items()})


def test_a_run_starts_with_the_state_it_was_given_at_its_first_version(house):
    run = house.run(agent_state={"format": "f", "version": "1", "data": WHOLE})
    checkpoint = Checkpoint.objects.get(run=run)
    assert (run.checkpoint_id, checkpoint.sequence) == (checkpoint.pk, 1)
    assert checkpoint.state_version == fresh(run).state_version == 1
    assert agentstate.state_of(checkpoint) == WHOLE


def test_a_checkpoint_says_the_version_it_left_the_run_at(house):
    house.tool("t")
    run = house.run()
    taken = [put(house, run, 1)]
    stop = house.stop(run)
    taken.append(Checkpoint.objects.get(pk=stop.checkpoint))
    assert [one.state_version for one in taken] == [2, 3]
    assert fresh(run).state_version == 3
    assert [one.sequence for one in taken] == [1, 2]


def test_it_says_what_is_pending_and_what_was_received(house):
    house.tool("t")
    house.tool("asked")
    house.policy.verdicts["asked"] = "approve"
    run = house.run()
    house.propose(run, ("t", {"n": 1}))
    house.work(run)
    (step,) = house.propose(run, ("asked", {}))
    checkpoint = Checkpoint.objects.get(pk=open_of(step).checkpoint)
    assert (checkpoint.next_step, checkpoint.pending_gates) == (2, [str(step.gate)])
    assert checkpoint.status == "suspended"
    assert checkpoint.permissions["epoch"] == fresh(run).epoch
    assert checkpoint.receipts_through <= fresh(run).journal_seq
    assert checkpoint.digest == digest_of(checkpoint)


def test_one_is_never_changed(house):
    checkpoint = put(house, house.run(), 1)
    for act in (
        lambda: Checkpoint.objects.filter(pk=checkpoint.pk).update(next_step=9),
        lambda: Checkpoint.objects.filter(pk=checkpoint.pk).delete(),
    ):
        with refused(DatabaseError), transaction.atomic():
            act()


def test_putting_a_state_moves_the_runs_checkpoint_and_no_interrupts(house):
    run = house.run()
    stop = house.stop(run)
    checkpoint = put(house, run, 1)
    assert fresh(run).checkpoint_id == checkpoint.pk
    assert fresh(stop).checkpoint == stop.checkpoint != checkpoint.pk


def test_the_state_is_carried_on_to_the_next_checkpoint(house):
    run = house.run()
    put(house, run, WHOLE)
    stop = house.stop(run)
    assert agentstate.state_of(Checkpoint.objects.get(pk=stop.checkpoint)) == WHOLE


def test_what_only_grows_is_kept_as_what_was_added(house):
    run = house.run()
    base = put(house, run, WHOLE)
    second = grow(house, run, base, messages=[{"role": "tool"}], **{"deep/list": [2, 3]})
    third = grow(house, run, second, messages=[{"role": "agent"}], **{"a~1b": ["x"]})
    whole = agentstate.state_of(third)
    assert [one["role"] for one in whole["messages"]] == ["user", "tool", "agent"]
    assert (whole["deep"]["list"], whole["a/b"]) == ([1, 2, 3], ["x"])
    assert third.agent_digest == jsontext.digest(whole)
    assert third.agent_size == len(jsontext.canonical(whole))


def test_a_base_may_grow_in_two_ways(house):
    run = house.run()
    base = put(house, run, WHOLE)
    left = grow(house, run, base, messages=[1])
    right = grow(house, run, base, messages=[2])
    assert [agentstate.state_of(one)["messages"][-1] for one in (left, right)] == [1, 2]
    assert agentstate.state_of(base) == WHOLE


def test_what_is_added_may_be_added_to(house):
    run = house.run()
    base = put(house, run, {"list": []})
    grown = put(
        house,
        run,
        base=str(base.pk),
        append={"/list": [{"inner": []}], "/list/0/inner": [1]},
    )
    assert agentstate.state_of(grown) == {"list": [{"inner": [1]}]}
    assert grown.agent_digest == jsontext.digest({"list": [{"inner": [1]}]})


def test_a_state_that_is_a_list_grows_at_its_root(house):
    run = house.run()
    base = put(house, run, [1])
    grown = put(house, run, base=str(base.pk), append={"": [2]})
    assert agentstate.state_of(grown) == [1, 2]


@pytest.mark.parametrize(
    "place",
    [
        "/messages/0",
        "/deep",
        "/nothing",
        "messages",
        "/messages/9",
        "/messages/-",
        "/messages/01",
        "/messages/²",
        "/messages/0/role",
        "/none",
        "/deep/list/0/x",
    ],
)
def test_a_pointer_that_names_no_list_is_refused_with_its_place(house, place):
    run = house.run()
    base = put(house, run, WHOLE)
    with refused(InvalidBody) as raised:
        put(house, run, base=str(base.pk), append={place: [1]})
    assert raised.value.errors[0]["pointer"].startswith("/agent_state/append")


@pytest.mark.parametrize(
    ("state", "at"),
    [
        ({"format": ""}, "/agent_state/format"),
        ({"version": 1}, "/agent_state/version"),
        ({"format": "g", "base": "BASE", "append": {}}, "/agent_state/base"),
        ({"version": "2", "base": "BASE", "append": {}}, "/agent_state/base"),
        ({"base": "no-id", "append": {}}, "/agent_state/base"),
        ({"base": "BASE"}, "/agent_state/append"),
        ({"base": "BASE", "append": {"/messages": 1}}, "/agent_state/append"),
        ({"base": "BASE", "append": {}, "data": 1}, "/agent_state/data"),
        ({"data": 1, "more": 1}, "/agent_state/more"),
        ({}, "/agent_state/data"),
    ],
)
def test_a_state_that_is_none_is_refused_with_its_place(house, state, at):
    run = house.run()
    base = put(house, run, WHOLE)
    state = {name: str(base.pk) if v == "BASE" else v for name, v in state.items()}
    with refused(InvalidBody) as raised:
        checkpoints.put_state(
            house.agent, run.pk, agent_state={"format": "f", "version": "1", **state}
        )
    assert raised.value.errors[0]["pointer"] == at


def test_a_base_of_another_run_or_without_a_state_is_refused(house):
    run = house.run()
    foreign = put(house, house.run(), WHOLE)
    stop = house.stop(run)
    for base in (foreign.pk, stop.checkpoint):
        with refused(InvalidBody):
            put(house, run, base=str(base), append={"/messages": []})


def test_a_state_beyond_the_limit_is_refused(house, monkeypatch):
    monkeypatch.setattr(agentstate, "LIMIT", 20)
    run = house.run()
    base = put(house, run, {"a": ["x" * 7]})
    for state in ({"data": "x" * 30}, {"base": str(base.pk), "append": {"/a": ["y"]}}):
        with refused(BodyTooLarge):
            put(house, run, **state)


def test_only_its_agent_puts_a_state_and_not_into_what_ends(house):
    run = house.run()
    with refused(NotYourRun):
        checkpoints.put_state(
            house.other, run.pk, agent_state={"format": "f", "version": "1", "data": 1}
        )
    house.cancel(run)
    with refused(RunEnded):
        put(house, run, 1)


def test_a_state_comes_with_proposals_too(house):
    house.tool("t")
    run = house.run()
    document = {
        "tool": "t",
        "arguments": {},
        "agent_state": {"format": "f", "version": "1", "data": {"n": 1}},
    }
    steps.propose(house.agent, run.pk, proposals=[document])
    assert agentstate.state_of(fresh(run).checkpoint) == {"n": 1}
    with refused(InvalidBody):
        steps.propose(house.agent, run.pk, proposals=[{**document, "agent_state": {"format": "f"}}])
