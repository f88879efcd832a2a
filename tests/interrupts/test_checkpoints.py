"""Checkpoints: taken at boundaries, never changed; the agent's state whole, or base and append."""

import json

import pytest
from django.db import DatabaseError, connection, transaction
from django.test.utils import CaptureQueriesContext

from config import jsontext
from config.errors import BodyTooLarge, InvalidBody
from interrupts import content
from interrupts.errors import Damaged, NotYourRun, RunEnded
from interrupts.models import Checkpoint
from interrupts.services import agentstate, checkpoints, steps
from interrupts.transitions.versions import digest_of
from tenants.ids import uuid7
from tests.database import as_owner, rewrite
from tests.interrupts.house import fresh, open_of, refused

WHOLE = {"messages": [{"role": "user"}], "deep": {"list": [1]}, "a/b": [], "none": None}


def put(house, run, data=None, **state):
    if data is not None or not state:
        state["data"] = data
    return checkpoints.put_state(
        house.agent, run.pk, agent_state={"format": "f", "version": "1", **state}
    )


def erase(digest):
    with as_owner() as owner:
        owner.execute("DELETE FROM interrupts_content WHERE digest = %s", [bytes(digest)])


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
    assert base.agent_digest == jsontext.digest(WHOLE)
    added = {"/messages": [{"role": "agent"}], "/a~1b": ["x"]}
    assert third.agent_digest == jsontext.digest({"base": second.agent_digest, "append": added})
    assert third.agent_size == len(jsontext.canonical(whole))


@pytest.mark.parametrize(
    "items",
    [[], [1.0, -0.0, 1e21], ["\U0001f600", "\ue000"], [{"\ue000": 1, "\U00010000": 2}], [[]]],
)
def test_its_size_is_the_wholes_however_it_grew(house, items):
    run = house.run()
    last = put(house, run, {"list": [], "other": []})
    for _ in range(3):
        for append in ({"list": items}, {"list": items, "other": [None]}):
            last = grow(house, run, last, **append)
            whole = agentstate.state_of(last)
            assert last.agent_size == len(jsontext.canonical(whole))
    assert len(whole["list"]) == 6 * len(items)


def test_an_append_reads_no_more_of_a_long_state_than_of_a_short_one(house):
    run = house.run()
    last = put(house, run, {"list": []})
    read = []
    for number in range(12):
        with CaptureQueriesContext(connection) as queries:
            last = grow(house, run, last, list=[number])
        texts = [one["sql"] for one in queries]
        read.append((len(texts), sum("RECURSIVE" in text for text in texts)))
    assert read[0][1] == 1  # where a list begins, the whole says whether it is one
    assert set(read[2:]) == {read[2]}
    assert read[2][1] == 0


def test_a_long_state_is_read_in_as_many_statements_as_a_short_one(house):
    run = house.run()
    last = put(house, run, {"list": []})
    counts = []
    for number in range(12):
        last = grow(house, run, last, list=[number])
        with CaptureQueriesContext(connection) as queries:
            assert agentstate.state_of(last)["list"] == [*range(number + 1)]
        counts.append(len(queries))
    assert set(counts) == {2}


@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_state_whose_body_was_changed_is_not_given_out(house, at):
    run = house.run()
    chain = [put(house, run, {"list": [0]})]
    for number in (1, 2):
        chain.append(grow(house, run, chain[-1], list=[number]))
    other = put(house, house.run(), {"list": [9]} if at == 0 else {"/list": [9]})
    rewrite(chain[at], agent_body=bytes(other.agent_body))
    for one in chain[at:]:
        with refused(Damaged):
            agentstate.state_of(Checkpoint.objects.get(pk=one.pk))
    for one in chain[:at]:
        assert agentstate.state_of(one)


def test_a_base_whose_body_was_changed_takes_no_more(house):
    run = house.run()
    base = put(house, run, {"list": [0]})
    rewrite(base, agent_body=bytes(put(house, run, {"list": [9]}).agent_body))
    with refused(InvalidBody) as raised:
        grow(house, run, base, list=[1])
    assert raised.value.errors[0]["pointer"] == "/agent_state/base"


def test_a_base_that_was_erased_takes_no_more(house):
    run = house.run()
    last = put(house, run, {"list": [0]})
    last = grow(house, run, last, list=[1])
    erase(last.agent_body)
    with refused(InvalidBody) as raised:
        grow(house, run, last, list=[2])
    assert raised.value.errors[0]["pointer"] == "/agent_state/base"


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
    assert grown.agent_size == len(jsontext.canonical({"list": [{"inner": [1]}]}))


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


def test_a_state_grows_with_proposals_too(house):
    house.tool("t")
    run = house.run(agent_state={"format": "f", "version": "1", "data": {"n": []}})
    for number in range(3):
        state = {"format": "f", "version": "1", "append": {"/n": [number]}}
        state["base"] = str(fresh(run).checkpoint_id)
        steps.propose(
            house.agent,
            run.pk,
            proposals=[{"tool": "t", "arguments": {"n": number}, "agent_state": state}],
        )
    checkpoint = fresh(run).checkpoint
    assert agentstate.state_of(checkpoint) == {"n": [0, 1, 2]}
    assert json.loads(content.get(checkpoint.agent_body)) == {"/n": [2]}


@pytest.mark.parametrize(("single", "at"), [(True, ""), (False, "/steps/1")])
def test_a_state_that_is_refused_is_refused_with_its_proposals(house, single, at):
    house.tool("t")
    run = house.run()
    bad = {"format": "f", "version": "1", "base": str(uuid7()), "append": {}}
    proposal = {"tool": "t", "arguments": {}}
    proposals = [{**proposal, "agent_state": bad}]
    with refused(InvalidBody) as raised:
        steps.propose(
            house.agent,
            run.pk,
            proposals=proposals if single else [proposal, *proposals],
            single=single,
        )
    assert raised.value.errors[0]["pointer"] == f"{at}/agent_state/base"


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
