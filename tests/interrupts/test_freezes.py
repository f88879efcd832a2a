"""The stop switch: no effect in its scope starts, while proposals and decisions are taken."""

import pytest

from config.errors import InvalidBody
from interrupts.errors import MayNot, NotAuthorized
from interrupts.selectors import freeze_reach
from interrupts.services import freezes
from tenants.models import JournalEntry, Tenant
from tests.interrupts.history import broken_link
from tests.interrupts.house import fresh, nothing_changes, refused

CALLED = frozenset({"last_seen_at", "updated_at"})


@pytest.mark.parametrize(
    ("scope", "name", "ran"),
    [("tenant", "", []), ("tool", "t", [2]), ("agent", "bot", []), ("agent", "other", [1, 2])],
)
def test_no_effect_in_scope_starts(house, scope, name, ran):
    house.tool("t")
    house.tool("u")
    run = house.run()
    house.propose(run, ("t", {"n": 1}))
    house.propose(run, ("u", {"n": 2}))
    house.freeze(scope, name)
    house.work(run)
    assert house.ran == ran


def test_a_freeze_of_reads_holds_them_too(house):
    house.tool("look", effect="read")
    run = house.run()
    house.propose(run, ("look", {"n": 1}))
    house.freeze()
    house.work(run)
    assert house.ran == []


def test_proposals_and_decisions_are_taken_meanwhile(house):
    house.tool("t")
    house.policy.verdicts["t"] = "approve"
    house.freeze()
    run = house.run()
    (step,) = house.propose(run, ("t", {"n": 1}))
    house.decide(step)
    assert (fresh(step).status, fresh(run).status) == ("ready", "running")
    house.work(run)
    assert house.ran == []


def test_a_claim_is_held_too(house):
    house.tool("mine", kind="agent")
    (step,) = house.propose(house.run(), ("mine", {}))
    frozen, _ = house.freeze("tool", "mine")
    with refused(NotAuthorized, but=CALLED):
        house.claim(step)
    house.thaw(frozen)
    house.claim(step)


def test_what_it_held_goes_on_when_it_is_lifted(house):
    house.tool("t")
    run = house.run()
    house.propose(run, ("t", {"n": 1}))
    frozen, _ = house.freeze()
    house.look(run)
    assert fresh(run).due_at is None  # nothing to look for before it is lifted
    house.thaw(frozen)
    assert fresh(run).due_at is not None
    sent = len(house.sent)
    house.look(run)
    assert len(house.sent) == sent + 1
    house.work(run)
    assert house.ran == [1]


def test_two_freezes_are_lifted_one_by_one(house):
    house.tool("t")
    run = house.run()
    house.propose(run, ("t", {"n": 1}))
    first, _ = house.freeze()
    second, _ = house.freeze("tool", "t")
    house.thaw(first)
    house.work(run)
    assert (house.ran, Tenant.objects.get(pk=house.tenant.pk).freezes) == ([], 1)
    house.thaw(second)
    house.work(run)
    assert house.ran == [1]


def test_lifting_it_again_changes_nothing(house):
    frozen, _ = house.freeze()
    house.thaw(frozen)
    with nothing_changes():
        house.thaw(frozen)


def test_its_answer_lists_what_is_in_flight_in_its_scope(house):
    house.tool("mine", kind="agent")
    house.tool("yours", kind="agent")
    mine, yours = (house.propose(house.run(), (tool, {}))[0] for tool in ("mine", "yours"))
    attempts = {tool: house.claim(step) for tool, step in (("mine", mine), ("yours", yours))}
    assert house.freeze("tool", "mine")[1] == [attempts["mine"].pk]
    assert house.freeze("agent", "other")[1] == []
    assert house.freeze()[1] == [attempts["mine"].pk, attempts["yours"].pk]
    house.report(attempts["mine"])
    assert fresh(mine).status == "succeeded"  # facts are taken
    assert house.freeze()[1] == [attempts["yours"].pk]


@pytest.mark.parametrize(("scope", "name"), [("tool", "none"), ("agent", "none"), ("tenant", "t")])
def test_a_freeze_that_names_nothing_is_refused(house, scope, name):
    with refused(InvalidBody):
        house.freeze(scope, name)


def test_only_operators_and_admins_freeze_and_lift(house):
    frozen, _ = house.freeze()
    for who in ("alice", "vera"):
        with refused(MayNot):
            freezes.freeze(house.people[who], scope="tenant")
        with refused(MayNot):
            freezes.thaw(house.people[who], frozen.pk)


def test_it_stands_in_the_tenants_journal_and_raises_the_authority(house):
    before = Tenant.objects.get(pk=house.tenant.pk).authority_version
    frozen, _ = house.freeze("tenant")
    house.thaw(frozen)
    kinds = JournalEntry.objects.filter(stream=house.tenant.pk).values_list("kind", flat=True)
    assert list(kinds) == ["freeze.set", "freeze.lifted"]
    assert broken_link(house.tenant.pk) is None
    assert Tenant.objects.get(pk=house.tenant.pk).authority_version == before + 1


@pytest.mark.parametrize(
    ("scope", "name", "counted", "runs"),
    [
        ("tenant", "", [("t", 0, 2, 0), ("asked", 0, 0, 1), ("mine", 1, 0, 0)], 2),
        ("tool", "t", [("t", 0, 2, 0)], 1),
        ("agent", "bot", [("t", 0, 2, 0), ("asked", 0, 0, 1), ("mine", 1, 0, 0)], 2),
        ("agent", "other", [], 0),
    ],
)
def test_what_a_freeze_would_stop_is_told_before_it_stops_it(house, scope, name, counted, runs):
    house.tool("t")
    house.tool("asked")
    house.tool("mine", kind="agent")
    house.policy.verdicts["asked"] = "approve"
    one, other, ended = house.run(), house.run(), house.run()
    house.propose(one, ("t", {"n": 1}), ("t", {"n": 2}))
    (step,) = house.propose(other, ("mine", {}))
    house.claim(step)
    house.propose(other, ("asked", {}))
    house.propose(ended, ("t", {"n": 3}))
    house.cancel(ended)
    with nothing_changes():
        found = freeze_reach(scope, name)
    assert (sorted(map(tuple, found.tools)), found.runs) == (sorted(counted), runs)
    assert found.held == sum(one.held for one in found.tools)
    house.freeze(scope, name)
    house.work(one)
    assert house.ran == ([1, 2] if name == "other" else [])
