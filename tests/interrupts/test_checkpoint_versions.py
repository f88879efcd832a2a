"""Versions of checkpoints: old ones are brought up to date as they are read, others refused."""

import pytest

from config import jsontext
from config.errors import InvalidBody
from interrupts.errors import CheckpointVersion, Damaged
from interrupts.models import Checkpoint, Run
from interrupts.services import agentstate, forks
from interrupts.services import checkpoints as services
from interrupts.transitions import checkpoints, versions
from tests.database import rewrite
from tests.interrupts.house import everything, fresh, refused

STATE = {"format": "f", "version": "1"}


def put(house, run, data):
    return services.put_state(house.agent, run.pk, agent_state={**STATE, "data": data})


def grow(house, run, base, *items):
    grown = {**STATE, "base": str(base.pk), "append": {"/list": list(items)}}
    return services.put_state(house.agent, run.pk, agent_state=grown)


@pytest.fixture
def another_release(monkeypatch):
    """Do something as a release does that takes checkpoints of that version."""

    def act(version, what, *args, whole=None, **more):
        with monkeypatch.context() as other:
            other.setattr(checkpoints, "SCHEMA_VERSION", version)
            if whole is not None:  # version 1 digested the whole
                other.setattr(versions, "grown_digest", lambda *_: jsontext.digest(whole))
            return what(*args, **more)

    return act


@pytest.mark.parametrize("version", [0, 99])
def test_a_run_goes_on_from_no_checkpoint_of_an_unknown_version(house, another_release, version):
    run = house.run()
    stop = another_release(version, house.stop, run)
    for resolution in ("resume", "cancel"):
        with refused(CheckpointVersion) as raised:
            house.respond(stop, resolution)
        assert str(version) in raised.value.detail
    assert (fresh(run).status, fresh(stop).status) == ("suspended", "open")
    house.cancel(run)
    assert fresh(run).status == "cancelled"


@pytest.mark.parametrize("version", [0, 99])
def test_no_run_is_forked_from_a_checkpoint_of_an_unknown_version(house, another_release, version):
    run = house.run()
    another_release(version, house.cancel, run)
    with refused(CheckpointVersion):
        forks.fork_run(house.people["olga"], run.pk, checkpoint=fresh(run).checkpoint_id)
    assert Run.objects.filter(forked_from=run).count() == 0


def test_a_run_goes_on_from_an_old_checkpoint_which_stays_what_it_was(house, another_release):
    run = house.run()
    stop = another_release(1, house.stop, run)
    kept = everything()["interrupts_checkpoint"]
    assert Checkpoint.objects.get(pk=stop.checkpoint).schema_version == 1
    house.respond(stop)
    assert fresh(run).status == "running"
    assert everything()["interrupts_checkpoint"] == kept


def test_every_version_that_was_ever_taken_has_its_migration():
    assert set(versions._MIGRATIONS) == set(range(1, versions.CURRENT))


def test_a_migration_says_what_the_old_version_meant_and_changes_nothing_else(
    house, another_release
):
    run = house.run()
    base = another_release(1, put, house, run, {"list": [0]})
    old = another_release(1, grow, house, run, base, 1, whole={"list": [0, 1]})
    document, before = versions.document_of(old), versions.document_of(old)
    assert versions.current(old) == {**document, "schema_version": 2, "agent_digest_of": "whole"}
    assert versions.current(old) == versions.current(old)
    assert document == before
    assert "agent_digest_of" not in document
    new = grow(house, run, old, 2)
    assert versions.current(new) == versions.document_of(new)
    assert versions.current(new)["agent_digest_of"] == "grown"


def test_a_version_has_one_migration():
    with pytest.raises(ValueError, match="schema version 1"):
        versions.migrates(1)(dict)
    assert versions._MIGRATIONS[1] is not dict


def test_an_old_state_is_read_carried_on_and_grows(house, another_release):
    run = house.run()
    base = another_release(1, put, house, run, {"list": [0]})
    middle = another_release(1, grow, house, run, base, 1, whole={"list": [0, 1]})
    old = another_release(1, grow, house, run, middle, 2, whole={"list": [0, 1, 2]})
    assert agentstate.state_of(old) == {"list": [0, 1, 2]}
    carried = Checkpoint.objects.get(pk=house.stop(run).checkpoint)
    assert (carried.schema_version, carried.agent_base_id) == (versions.CURRENT, old.pk)
    assert agentstate.state_of(carried) == {"list": [0, 1, 2]}
    grown = grow(house, run, carried, 3)
    assert agentstate.state_of(grown) == {"list": [0, 1, 2, 3]}
    assert grown.agent_size == len(jsontext.canonical({"list": [0, 1, 2, 3]}))


def test_an_old_state_whose_body_was_changed_is_not_given_out(house, another_release):
    run = house.run()
    base = another_release(1, put, house, run, {"list": [0]})
    old = another_release(1, grow, house, run, base, 1, whole={"list": [0, 1]})
    new = grow(house, run, old, 2)
    rewrite(old, agent_body=bytes(put(house, run, {"/list": [7]}).agent_body))
    for one in (old, new):
        with refused(Damaged):
            agentstate.state_of(Checkpoint.objects.get(pk=one.pk))


def test_a_state_of_a_newer_version_is_neither_read_nor_grown_and_stays_of_that_version(
    house, another_release
):
    run = house.run()
    newer = another_release(99, put, house, run, {"list": []})
    with refused(CheckpointVersion):
        agentstate.state_of(newer)
    with refused(InvalidBody) as raised:
        grow(house, run, newer, 1)
    assert raised.value.errors[0]["pointer"] == "/agent_state/base"
    stop = house.stop(run)
    carried = Checkpoint.objects.get(pk=stop.checkpoint)
    assert (carried.schema_version, carried.agent_body) == (99, newer.agent_body)
    with refused(CheckpointVersion):
        house.respond(stop)
    assert put(house, run, {"list": []}).schema_version == versions.CURRENT


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("next_step", None),
        ("next_step", 0),
        ("sequence", True),
        ("status", "asleep"),
        ("pending_gates", None),
        ("pending_gates", [1]),
        ("permissions", []),
        ("permissions", {"authority_version": 1, "session": 0}),
        ("permissions", {"authority_version": 1, "session": 0, "epoch": None}),
        ("receipts_through", -1),
    ],
)
def test_nothing_is_made_up_for_a_checkpoint_that_does_not_say_it(house, member, value):
    checkpoint = put(house, house.run(), 1)
    setattr(checkpoint, member, value)
    checkpoint.digest = versions.digest_of(checkpoint)
    assert checkpoints.is_sound(checkpoint) is False
    with pytest.raises(Damaged, match=member):
        checkpoints.check(checkpoint)


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("state_version", 9),
        ("next_step", 2),
        ("receipts_through", 99),
        ("permissions", {"authority_version": 1, "policy_version": 1, "session": 0, "epoch": 9}),
    ],
)
def test_a_checkpoint_says_nothing_that_its_run_has_not_come_to(house, member, value):
    run = house.run()
    checkpoint = put(house, run, 1)
    checkpoints.check(checkpoint, fresh(run))
    setattr(checkpoint, member, value)
    checkpoint.digest = versions.digest_of(checkpoint)
    with pytest.raises(Damaged, match=member if member != "permissions" else "epoch"):
        checkpoints.check(checkpoint, fresh(run))
