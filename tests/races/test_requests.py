"""The same request twice at once, over HTTP: the second is told so, and does not wait."""

import json
import time

import pytest
from django.test import Client

from config.keys import secret_hash
from interrupts.models import Interrupt, Run
from tenants.models import Agent, AgentKey, IdempotentAnswer, Membership, UserToken
from tests.interrupts.house import fresh
from tests.races.conftest import run_locked, waiting

SECRETS = {"agent": "aby_agent_race", "olga": "aby_user_race"}


@pytest.fixture
def post(house, crew):
    """Send a POST as a thread of its own would: outside the tenant's scope."""
    key = Agent.objects.get(pk=house.agent.id)
    AgentKey.objects.create(agent=key, hash=secret_hash(SECRETS["agent"]), hint="h")
    member = Membership.objects.get(user=house.people["olga"].id)
    UserToken.objects.create(membership=member, hash=secret_hash(SECRETS["olga"]), hint="h")

    def send(who, path, body, key):
        answer = Client().post(
            f"/api/v1{path}",
            json.dumps(body),
            content_type="application/json",
            headers={"Authorization": f"Bearer {SECRETS[who]}", "Idempotency-Key": key},
        )
        return answer.status_code, answer.json(), answer.headers.get("Idempotent-Replayed")

    return send


STOP = {"reason": "operator_stop"}


def test_the_second_is_refused_at_once_while_the_first_is_in_progress(house, crew, post):
    run = house.run()
    path = f"/runs/{run.pk}/interrupts"
    with run_locked(crew, run):
        first = waiting(crew, lambda: post("olga", path, STOP, "k"))
        began = time.monotonic()
        status, body, _ = crew.start(lambda: post("olga", path, STOP, "k")).result()
        assert (status, body["code"]) == (409, "request-in-progress")
        assert time.monotonic() - began < 2  # it waits for nothing that the first waits for
        assert not first.over
    status, answer, replayed = first.result()
    assert (status, replayed) == (201, None)
    again = crew.start(lambda: post("olga", path, STOP, "k")).result()
    assert again == (201, answer, "true")
    assert (Interrupt.objects.count(), IdempotentAnswer.objects.count()) == (1, 1)


def test_another_callers_same_key_is_its_own(house, crew, post):
    run = house.run()
    body = {"reason": "input_required", "question": "Which?"}
    path = f"/runs/{run.pk}/interrupts"
    with run_locked(crew, run):
        first = waiting(crew, lambda: post("olga", path, body, "k"))
        second = waiting(crew, lambda: post("agent", path, body, "k"))
    assert sorted([first.result()[0], second.result()[0]]) == [200, 201]
    assert Interrupt.objects.count() == 1


def test_many_at_once_make_one_run(house, at_once, post):
    body = {"workflow": "w", "goal": "g"}
    answers = at_once(*[lambda: post("agent", "/runs", body, "k")] * 8)
    made = [answer for answer in answers if answer[0] == 201]
    assert {status for status, _, _ in answers} <= {201, 409}
    assert len({answer[1]["id"] for answer in made}) == 1
    assert [replayed for _, _, replayed in made].count(None) == 1
    assert Run.objects.count() == 1


def test_a_freeze_under_a_key_answers_after_its_drain_all_the_same(house, crew, post):
    house.tool("t")
    run = house.run()
    house.propose(run, ("t", {"n": 1}))
    with run_locked(crew, run):
        intent = waiting(crew, lambda: house.work(run))
        freeze = waiting(
            crew, lambda: post("olga", "/freezes", {"scope": "tenant", "note": ""}, "k")
        )
        status, body, _ = crew.start(
            lambda: post("olga", "/freezes", {"scope": "tenant", "note": ""}, "k")
        ).result()
        assert (status, body["code"]) == (409, "request-in-progress")
    assert (freeze.result()[0], freeze.result()[1]["in_flight"]) == (201, [])
    assert intent.result() == 0
    assert fresh(run).status == "running"
