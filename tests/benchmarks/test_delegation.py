"""The learner in its made-up world: what it must hold, and that the world is what it says."""

from collections import Counter

import pytest

from benchmarks.delegation.baselines import BASELINES, Ask
from benchmarks.delegation.playing import TeamGame, make_teams, play_people
from benchmarks.delegation.table import HEAD, summary, table
from benchmarks.delegation.world import MIX, TOOLS, make_world
from delegation.benchmark import ROLES, cautious, eager

SHORT = 6.0  # days


@pytest.fixture(scope="module")
def held():
    return {make().name: summary(play_people(make, range(2))) for make in (cautious, eager)}


@pytest.mark.slow
def test_the_cautious_learner_holds_its_gate(held):
    found = held["cautious"]
    assert found.removed >= 0.30
    assert found.wrong <= 15
    assert found.avoidable <= 7
    assert found.structural == 0
    assert found.bursts <= 0.03
    assert found.largest_incident <= 1_000
    assert found.leaked <= 0.08
    assert found.first <= 250
    assert found.p10 >= 0.15


@pytest.mark.slow
def test_the_eager_learner_holds_its_gate(held):
    found = held["eager"]
    assert found.removed >= 0.41
    assert found.wrong <= 20.5
    assert found.structural == 0
    assert found.bursts <= 0.03


@pytest.mark.slow
def test_no_common_rule_removes_more_prompts_with_fewer_wrong_calls(held):
    for make in BASELINES[3:]:
        found = summary(play_people(make, range(1)))
        for own in held.values():
            assert found.removed < own.removed or found.wrong > own.wrong, make().name


def test_a_world_is_the_same_for_the_same_seed():
    assert make_world(3, SHORT)[1] == make_world(3, SHORT)[1]
    assert make_world(3, SHORT)[1] != make_world(4, SHORT)[1]


def test_a_world_has_every_kind_of_person_and_of_smuggling():
    people, stream = make_world(1)
    assert Counter(one.kind for one in people.values()) == Counter(MIX)
    bad = Counter(truth.attack for _, truth in stream if not truth.ok)
    assert {"value", "extra", "splice", "burst", "inside"} <= set(bad)
    assert 0.05 < sum(not truth.ok for _, truth in stream) / len(stream) < 0.2
    assert [asked.t for asked, _ in stream] == sorted(asked.t for asked, _ in stream)


def test_the_learners_tools_are_those_of_the_world():
    worlds = {name: dict(tool.fields) for name, tool in TOOLS.items() if tool.risk != "high"}
    assert {name: dict(roles) for name, roles in ROLES.items()} == worlds


class Everything(Ask):
    """Lets everything run."""

    name = "everything"

    def __init__(self):
        self.asked = []

    def decide(self, request):
        self.asked.append(request)
        return True, "yes"


@pytest.mark.parametrize(("speaker", "asked_of"), [("addressee", 1), ("anyone", 3)])
def test_of_a_gate_that_goes_to_three_one_speaks_or_whoever_would(speaker, asked_of):
    people, teams, stream = make_teams(1, SHORT)
    nothing = Everything()
    nothing.decide = lambda request: (nothing.asked.append(request), (False, ""))[1]
    TeamGame(nothing, people, teams, speaker).play(stream)
    delegable = [asked for asked, _ in stream if TOOLS[asked.tool].risk != "high"]
    assert len(nothing.asked) == asked_of * len(delegable)
    assert {one.approver for one in nothing.asked} == {
        name for team in teams.values() for name in team
    }


def test_what_is_irreversible_is_put_to_no_learner():
    people, teams, stream = make_teams(1, SHORT)
    everything = Everything()
    found = summary([TeamGame(everything, people, teams, "addressee").play(stream)])
    assert {TOOLS[one.tool].risk for one in everything.asked} == {"low", "medium"}
    assert found.removed == 1
    assert found.structural > 0
    assert found.wrong > 100


def test_a_row_has_a_cell_for_each_column():
    people, teams, stream = make_teams(1, SHORT)
    found = summary([TeamGame(Ask(), people, teams, "addressee").play(stream)])
    assert (found.removed, found.wrong, found.largest_incident) == (0, 0, 0)
    lines = table([("ask always", found)]).splitlines()
    assert {line.count("|") for line in lines} == {len(HEAD) + 1}
