"""The runner itself: what it refuses to read, what it sends, and what it says of what is otherwise."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.cases.far_end import Outside
from tests.journeys.far_end import far_end
from tests.journeys.form import HERE, Malformed, ensure_of_form, scenarios
from tests.journeys.mails import Mail, in_folder
from tests.journeys.matching import OPERATORS, Failed, dig, expect, holds
from tests.journeys.runner import Answer, Journey, tenant_of

LOOK: dict[str, Any] = {"as": "alice", "path": "/gates/1", "expect": {"state": "pending"}}


@dataclass
class Canned:
    """Answers in turn with what it was given, the last one ever after; keeps what was sent."""

    answers: list[Answer]
    sent: list[dict[str, Any]] = field(default_factory=list)
    applied: list[Any] = field(default_factory=list)
    mailed: list[Mail] = field(default_factory=list)

    def send(self, request: Any, key: str | None) -> Answer:
        self.sent.append({**request, "key": key})
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def mails(self) -> list[Mail]:
        return self.mailed

    def apply(self, *tenants: Any) -> dict[str, Any]:
        self.applied += deepcopy(tenants)
        return {}


@pytest.fixture
def outside() -> Iterator[Outside]:
    made = far_end()
    yield made
    made.close()


def journey(outside: Outside, *bodies: Any, status: int = 200) -> tuple[Journey, Canned]:
    service = Canned([Answer(status, body, {"etag": '"3"'}) for body in bodies or [None]])
    members = [{"username": "alice-t1", "email": "alice@x.test", "may_decide": ["*"]}]
    tenant = {"tenant": "t1", "policy": {"rules": []}, "members": members}
    return Journey(service, tenant, {"alice": "key of alice", "agent": "key"}, outside), service


def refused(outside: Outside, *steps: dict[str, Any], bodies: tuple[Any, ...] = ()) -> str:
    played, _ = journey(outside, *bodies)
    with pytest.raises(Failed) as told:
        played.play(list(steps))
    return str(told.value)


# What is otherwise


def test_a_wrong_expectation_tells_the_step_the_path_what_was_wanted_and_what_was_got(outside):
    body = {"results": [{"state": "approved"}, {"state": "expired"}]}
    step = {"as": "alice", "path": "/gates", "expect": {"results.0.state": "pending"}}
    assert refused(outside, {"sleep": 0}, step, bodies=(body,)) == (
        'step 2: alice GET /gates: results.0.state: wanted "pending", got "approved"'
    )
    any_of = {**step, "expect": {"results.*.state": "pending"}}
    assert refused(outside, any_of, bodies=(body,)) == (
        'step 1: alice GET /gates: results.*.state: wanted "pending", got ["approved", "expired"]'
    )


def test_what_is_missing_is_told_as_nothing(outside):
    assert refused(outside, LOOK, bodies=({},)).endswith('state: wanted "pending", got nothing')


def test_another_status_is_told_with_what_came(outside):
    told = refused(outside, {"path": "/x", "body": {}, "status": 201}, bodies=({"code": "no"},))
    assert told == 'step 1: agent POST /x: status: wanted 201, got 200 {"code": "no"}'


def test_a_header_and_a_ledger_are_held_to_what_was_expected_too(outside):
    headers = {"path": "/x", "expect_headers": {"etag": '"4"'}}
    assert "headers: etag: wanted" in refused(outside, headers)
    assert 'ledger: effects: wanted {"$len": 1}, got 0 items' in refused(
        outside, {"ledger": {"effects": {"$len": 1}}}
    )


def test_what_should_come_about_is_asked_for_until_it_does(outside):
    played, service = journey(outside, {"state": "preparing"}, {}, {"state": "pending"})
    played.play([{"until": LOOK}])
    assert len(service.sent) == 3


def test_what_does_not_come_about_in_time_fails_with_what_it_was_last(outside):
    told = refused(outside, {"until": LOOK, "timeout": 0}, bodies=({"state": "expired"},))
    assert told.startswith("step 1: after 0 s still: ")
    assert told.endswith('got "expired"')


def test_answers_at_once_are_counted_by_status(outside):
    played, _ = journey(outside)
    played.play([{"parallel": LOOK | {"expect": {}}, "count": 3, "statuses": {"200": 3}}])
    for statuses in ({"200": 2}, {"201": 3}, {"200": {"$gte": 1}, "409": 1}):
        with pytest.raises(Failed, match=r"got \{'200': 3\}"):
            played.play([{"parallel": LOOK, "count": 3, "statuses": statuses}])


def test_of_several_ways_one_has_to_hold(outside):
    ways = [[LOOK], [{"path": "/x", "expect": {"state": "expired"}}]]
    played, _ = journey(outside, {"state": "expired"})
    played.play([{"either": ways}])
    told = refused(outside, {"either": ways}, bodies=({"state": "x"},))
    assert told.count('got "x"') == 2


# What is not of the form


@pytest.mark.parametrize(
    "step",
    [
        {"wait": LOOK},
        {"path": "/x", "sleep": 1},
        {"path": "/x", "expects": {}},
        {"until": {"sleep": 1}},
        {"until": LOOK, "seconds": 3},
        {"path": "/x", "expect": {"n": {"$gt": 1}}},
        {"path": "/x", "expect": {"n": {"$subset": {"m": {"$near": 1}}}}},
        {"until": {"path": "/x", "expect": {"n": {"$lt": 1}}}},
        {"path": "/x", "expect_headers": {"n": {"$is": 1}}},
        {"parallel": LOOK, "count": 2, "statuses": {"200": {"$about": 2}}},
        {"parallel": LOOK, "count": 2},
        {"parallel": LOOK, "statuses": {}},
        {"parallel": [LOOK], "count": 2, "statuses": {}},
        {"ledger": {"hooks": {"$len": 1}}},
        {"ledger": {"effects": {"$size": 1}}},
        {"until_ledger": {"kills.0": 1}},
        {"control": {"name": "pay", "mode": "melt"}},
        {"control": {"name": "pay", "times": 1}},
        {"apply": {"tools": []}},
        {"mails": {"alice.#": {"$size": 1}}},
        {"until_mails": {"alice.#": 1}, "save": {}},
        {"either": [[LOOK], [{"wait": 1}]]},
    ],
    ids=json.dumps,
)
def test_a_step_that_is_not_of_the_form_is_refused_with_its_place(step):
    with pytest.raises(Malformed, match=r"^s: step 2"):
        ensure_of_form({"id": "s", "title": "t", "steps": [LOOK, step]})


@pytest.mark.parametrize(
    "scenario",
    [
        {"id": "s", "title": "t"},
        {"id": "s", "steps": []},
        {"title": "t", "steps": []},
        {"id": "s", "title": "t", "steps": [], "note": ""},
    ],
    ids=json.dumps,
)
def test_a_scenario_has_an_id_a_title_and_steps_and_no_strange_member(scenario):
    with pytest.raises(Malformed):
        ensure_of_form(scenario)


def test_two_of_one_id_are_refused(tmp_path: Path):
    one = {"id": "s", "title": "t", "steps": []}
    (tmp_path / "a.json").write_text(json.dumps([one]))
    assert scenarios(tmp_path) == [one]
    (tmp_path / "b.json").write_text(json.dumps([one]))
    with pytest.raises(Malformed, match="there are two"):
        scenarios(tmp_path)


def test_a_name_under_which_nothing_was_saved_is_no_failure_to_wait_for(outside):
    played, service = journey(outside, {})
    for path in ("/runs/${run.id}", "/runs/${T.id}"):
        with pytest.raises(Malformed, match="nothing was saved"):
            played.play([{"until": {"path": path}}])
    with pytest.raises(Malformed, match="there is no eve"):
        played.play([{"until": {"path": "/x", "as": "eve"}}])
    assert service.sent == []


# What is sent


def test_what_was_saved_is_put_in_the_place_of_its_name_with_its_type(outside):
    played, service = journey(outside, {"id": 7, "inner": {"list": [1, 2]}})
    played.play(
        [
            {"path": "/runs", "save": {"run": "", "second": "inner.list.-1"}},
            {
                "path": "/runs/${run.id}",
                "body": {"${T}": ["${run.inner}", "n-${second}", {"$repeat": ["a${second}", 2]}]},
                "expect": {"id": "${run.id}", "inner.list.#": 2},
            },
        ]
    )
    assert service.sent[1]["path"] == "/runs/7"
    assert service.sent[1]["body"] == {"t1": [{"list": [1, 2]}, "n-2", "a2a2"]}


def test_a_step_is_sent_by_whom_it_names_and_by_the_agent_where_it_names_nobody(outside):
    played, service = journey(outside, {"state": "pending"})
    played.play([LOOK, {"path": "/x"}, {"path": "/x", "as": "nobody"}])
    assert [one["key"] for one in service.sent] == ["key of alice", "key", None]


def test_a_changed_tenant_is_applied_whole(outside):
    played, service = journey(outside)
    played.play([{"apply": {"members": {"alice": {"may_decide": ["mail.*"]}}}}])
    played.play([{"apply": {"policy": {"rules": ["of ${T}"]}}}])
    first, second = service.applied
    alice = {"username": "alice-t1", "email": "alice@x.test"}
    assert first["members"] == [{**alice, "may_decide": ["mail.*"]}]
    assert (first["policy"], second["policy"]) == ({"rules": []}, {"rules": ["of t1"]})
    assert second["members"] == first["members"]
    played.play([{"apply": {"groups": {"leads": {"members": ["alice-${T}"]}}}}])
    assert service.applied[2]["groups"] == {"leads": {"members": ["alice-t1"]}}


def test_what_people_were_mailed_is_held_to_what_was_expected(outside, tmp_path):
    """As the service's folder has it; what is still being written is not there yet."""
    written = b"To: %b\nSubject: %b\n\nWhat: a refund\n"
    ended = b"\n" + b"-" * 79 + b"\n"
    both = written % (b"alice@x.test", b"Low risk") + ended + written % (b"bob@x.test", b"Other")
    (tmp_path / "1.log").write_bytes(both + ended + b"To: alice@x.test\nSubj")
    played, service = journey(outside)
    service.mailed = in_folder(tmp_path)
    assert [one["to"] for one in service.mailed] == ["alice@x.test", "bob@x.test"]
    wanted = {"alice.#": 1, "alice.0.subject": "Low risk", "alice.0.body": {"$match": "a refund"}}
    played.play([{"mails": wanted}, {"until_mails": wanted}])
    with pytest.raises(Failed, match=r"mails: alice\.#: wanted 2"):
        played.play([{"mails": {"alice.#": 2}}])


def test_a_scenario_lays_its_policy_and_tools_over_the_tenant():
    default = {"policy": {"rules": [], "budgets": {}}, "tools": [{"name": "a", "risk": "low"}]}
    laid = {"policy": {"rules": ["${T}"]}, "tools": [{"name": "a", "url": "${W}"}, {"name": "b"}]}
    assert tenant_of(laid, default, "t1", "host:1") == {
        "policy": {"rules": ["t1"], "budgets": {}},
        "tools": [{"name": "a", "risk": "low", "url": "host:1"}, {"name": "b"}],
    }
    assert default["tools"] == [{"name": "a", "risk": "low"}]


# What holds


@pytest.mark.parametrize(
    ("wanted", "good", "bad"),
    [
        (1, 1.0, True),
        (None, None, 0),
        ([1], [1], [1, 2]),
        ({"$in": [1, "a"]}, "a", True),
        ({"$ne": 1}, 2, 1),
        ({"$gte": 2}, "2.5", 1),
        ({"$lte": 2}, 2, None),
        ({"$len": 0}, [], {"a": 1}),
        ({"$match": "^a+$"}, "aa", "b"),
        ({"$contains": "a"}, ["a"], None),
        ({"$subset": {"a": {"$gte": 1}}}, {"a": 1, "b": 2}, {"b": 2}),
        ({"$exists": True}, None, ...),
        ({"$exists": False}, ..., None),
        ({"$gte": 1, "$lte": 2}, 2, 3),
    ],
)
def test_an_operator_holds_of_this_and_not_of_that(wanted, good, bad):
    def found(value: Any) -> dict[str, Any]:
        return {} if value is ... else {"x": value}

    expect(found(good), {"x": wanted}, "")
    with pytest.raises(Failed):
        expect(found(bad), {"x": wanted}, "")


@pytest.mark.parametrize("operator", OPERATORS)
def test_no_operator_holds_of_what_is_missing(operator):
    with pytest.raises(Failed, match="got nothing"):
        expect({}, {"x": {operator: 0}}, "")


def test_paths_lead_into_lists_objects_and_lengths():
    body = {"a": [{"b": 1}, {"b": [2, 3]}], "text": "four"}
    assert dig(body, "") == [body]
    assert dig(body, "a.*.b") == [1, [2, 3]]
    assert dig(body, "a.-1.b.#") == [2]
    assert dig(body, "text.#") == [4]
    for nowhere in ("a.2", "a.b", "text.0", "c", "a.0.b.#"):
        assert dig(body, nowhere) == []


def test_no_value_is_one_of_another_kind():
    assert not holds(1, "1")
    assert not holds(0, False)  # noqa: FBT003
    assert not holds(None, {})


# The scenarios that are there


def test_every_scenario_shows_that_something_was_or_was_not_done():
    """By the far end's ledger, or by answers alone where nothing is ever proposed."""
    for one in scenarios(HERE):
        text = json.dumps(one["steps"])
        assert '"ledger"' in text or "/steps" not in text, one["id"]
