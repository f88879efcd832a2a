"""Cases of the kind duplicate-execution: what is delivered, replayed or resumed twice."""

from __future__ import annotations

from functools import partial

import pytest

from tests.cases.world import Pair, World, auto, deliver, in_background

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "sweep"])
SWEEP = ("interrupts.sweep", {})
EXPIRES = {
    "name": "asks",
    "trigger": "action",
    "tools": ["*"],
    "then": "approve",
    "expires_in": 300,
    "on_expiry": "reject",
}


def test_a_wait_is_a_row_whose_end_comes_once_however_often_it_is_looked_for(
    world: World, pair: Pair
) -> None:
    """rf-dup-01 (celery/celery#4766; celery/kombu#337; celery/celery#7009).

    A delayed task outlives the broker's visibility window and is delivered again and again.
    """
    world.given(world.tool("a.do"), rules=[EXPIRES])
    runs = [world.run() for _ in range(10)]
    steps = [world.propose(run, "a.do", {"n": n}) for run in runs for n in (1,)]
    assert [task for task, _ in world.messages if task != "tenants.send_outbox"] == []
    for _ in range(5):
        deliver(SWEEP)
    assert {world.gate(step)["state"] for step in steps} == {"pending"}

    world.advance(301)
    for _ in range(25):
        pair.at_once(partial(deliver, SWEEP), partial(deliver, SWEEP))
    for run, step in zip(runs, steps, strict=True):
        assert world.gate(step)["state"] == "expired"
        assert world.kinds(run).count("gate.expired") == 1
        assert world.kinds(run).count("interrupt.expired") == 1
        assert (world.fresh(step)["status"], world.fresh(step)["attempts"]) == ("rejected", 0)
    assert world.outside.server.asked == []


def test_a_slow_call_whose_message_comes_again_is_not_begun_again(world: World) -> None:
    """rf-dup-02 (dimagi/open-chat-studio#4084).

    The step takes longer than the broker waits, and the message goes to a second worker.
    """
    world.given(world.tool("report.build"))
    run = world.run()
    step = world.propose(run, "report.build", {"id": 1})
    world.decide(step)
    world.outside.takes_its_time("report.build")
    (message,) = [one for one in world.messages if one[0] == "interrupts.work_run"]
    with in_background(partial(deliver, message)) as first:
        assert world.outside.arrived.wait(20)
        for _ in range(5):
            deliver(message)
        assert world.fresh(step)["status"] == "executing"
        world.advance(200)  # its lease is over, and it goes on all the same
        world.sweep()
        assert world.fresh(step)["status"] == "unknown"
        for _ in range(5):
            deliver(message)
        world.outside.let_go.set()
        first.result(20)
    assert (world.fresh(step)["status"], world.fresh(step)["attempts"]) == ("succeeded", 1)
    assert world.outside.keys_sent("report.build") == [step["id"]]


def test_an_agent_that_resumes_from_the_top_does_nothing_again(world: World) -> None:
    """rf-dup-04 (langchain-ai/langgraph#6208; langchain-ai/langgraph#6603)."""
    world.given(
        world.tool("mail.send"),
        world.tool("db.drop", effect="irreversible"),
        rules=[auto("mail.*")],
    )
    run = world.run()
    mail = world.propose(run, "mail.send", {"to": "x@example.org"}, key="s1")
    world.work()
    drop = world.propose(run, "db.drop", {"table": "t"}, key="s2")
    body = {"tool": "mail.send", "arguments": {"to": "x@example.org"}, "key": "s1"}
    for settled in ("suspended", "running", "completed"):
        if settled == "running":
            world.decide(drop)
            world.work()
        elif settled == "completed":
            world.post("ops", f"/runs/{run['id']}/complete", {"output": None})
        reply = world.send("ops", "POST", f"/runs/{run['id']}/steps", body)
        assert (reply.status, reply.body["id"]) == (200, mail["id"]), settled
        assert [one["external_id"] for one in reply.body["receipts"]] == ["X-1"]
        assert world.fresh(run)["status"] == settled
        other = {**body, "arguments": {"to": "y@example.org"}}
        path = f"/runs/{run['id']}/steps"
        assert world.refused("ops", "POST", path, other, status=409).code == "step-key-reused"
        world.catch_up()
    assert world.outside.times == {"mail.send": 1, "db.drop": 1}
    assert len(world.get("ops", f"/runs/{run['id']}/steps")["results"]) == 2


@pytest.mark.parametrize("key", [None, "k"])
def test_a_message_is_sent_after_the_commit_of_what_it_speaks_of(
    world: World, key: str | None
) -> None:
    """rf-dup-06 (letsrevel/revel-backend#442; netbox-community/netbox#18899).

    Each message is worked the moment it is sent, by a worker with another connection.
    """
    world.given(world.tool("a.do"), rules=[auto("a.do")])
    world.deliver_at_once = True
    run = world.run()
    body = {"tool": "a.do", "arguments": {"x": 1}}
    step = world.post("ops", f"/runs/{run['id']}/steps", body, key=key)
    assert world.outside.keys_sent("a.do") == [step["id"]]
    assert world.fresh(step)["status"] == "succeeded"


def test_what_no_message_was_sent_of_is_found(world: World) -> None:
    """rf-dup-06, its second expectation: the dispatch itself fails after the commit."""
    world.given(world.tool("a.do"), rules=[auto("a.do")])
    world.broker_is_gone = True
    step = world.propose(world.run(), "a.do")
    world.sweep()
    world.broker_is_gone = False
    assert world.outside.server.asked == []
    world.advance(5)
    world.catch_up()
    assert world.fresh(step)["status"] == "succeeded"
    assert world.outside.times["a.do"] == 1


@pytest.mark.parametrize("how", ["revise", "cancel", "freeze", "supersede"])
def test_work_that_was_called_off_is_not_done_by_whoever_gets_its_message(
    world: World, how: str
) -> None:
    """rf-dup-08 (celery/celery#4300; celery/django-celery-results#423; celery/celery#1007).

    The message is held, the step withdrawn, the worker restarted, and the message delivered.
    """
    world.given(world.tool("payments.transfer"))
    run = world.run()
    step = world.propose(run, "payments.transfer", {"amount": "10.00", "to": "V-1"})
    world.decide(step)
    (held,) = [one for one in world.messages if one[0] == "interrupts.work_run"]
    world.messages.clear()
    if how == "revise":
        value = {"guidance": "not this one", "withdraw": [step["id"]]}
        world.answer(world.stop(run, "appr1"), "revise", "appr1", value=value)
    elif how == "cancel":
        world.post("opr", f"/runs/{run['id']}/cancel", {})
    elif how == "freeze":
        world.post("opr", "/freezes", {"scope": "tenant", "note": "stop"})
    else:  # its tool is another one now
        world.given(world.tool("payments.transfer", risk="medium"))
    for _ in range(5):
        deliver(held)
    world.catch_up()
    status = {"revise": "revised", "cancel": "cancelled", "freeze": "ready", "supersede": "waiting"}
    assert world.fresh(step)["status"] == status[how]
    assert world.outside.server.asked == []
