"""Cases of the kind idempotency-keys: what a repeated request is answered with."""

from __future__ import annotations

import time
from functools import partial

import pytest

from tests.cases.world import World, as_superuser, auto, in_background

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "sweep"])
STRICT = {"type": "object", "properties": {"to": {"type": "string", "minLength": 3}}}


def mail(to: str) -> dict[str, object]:
    return {"tool": "mail.send", "arguments": {"to": to}}


def test_one_key_is_not_two_requests(world: World) -> None:
    """rf-idem-01 (nensii21/devlink#1200; josipmusa/idempotency4j#12)."""
    world.given(world.tool("mail.send"), rules=[auto("mail.*")])
    run = world.run()
    path = f"/runs/{run['id']}/steps"
    first = world.send("ops", "POST", path, mail("a@example.org"), key="k-1")
    assert first.status == 201
    reply = world.refused("ops", "POST", path, mail("b@example.org"), key="k-1", status=422)
    assert reply.code == "idempotency-key-reused"
    again = world.send("ops", "POST", path, mail("a@example.org"), key="k-1")
    assert (again.status, again.body) == (201, first.body)
    assert again.headers["Idempotent-Replayed"] == "true"
    world.catch_up()
    assert [arguments for _, arguments in world.outside.calls("mail.send")] == [
        {"to": "a@example.org"}
    ]
    # Nothing is silently dropped: under a key of its own it is done.
    world.post("ops", path, mail("b@example.org"), key="k-2")
    world.work()
    assert world.outside.times == {"mail.send": 2}


def test_a_refusal_is_not_remembered_under_the_key(world: World) -> None:
    """rf-idem-03 (KanishJebaMathewM/Truxify#2869)."""
    world.given(world.tool("mail.send", arguments=STRICT), rules=[auto("mail.*")])
    run = world.run()
    path = f"/runs/{run['id']}/steps"
    reply = world.send("ops", "POST", path, mail(""), key="k-1")
    assert (reply.status, reply.pointers) == (422, ["/arguments/to"])
    step = world.post("ops", path, mail("a@example.org"), key="k-1")
    assert step["status"] == "ready"


def test_a_request_in_progress_is_no_second_one(world: World) -> None:
    """rf-idem-03, its second expectation: it is told to try again, and is not worked twice."""
    world.given(world.tool("mail.send"), rules=[auto("mail.*")])
    run = world.run()
    path = f"/runs/{run['id']}/steps"
    ask = partial(world.send, "ops", "POST", path, mail("a@example.org"), key="k-1")
    with as_superuser() as holder:
        holder.execute("BEGIN")
        holder.execute("SELECT 1 FROM interrupts_run WHERE id = %s FOR UPDATE", [run["id"]])
        with in_background(ask) as first:
            try:
                waits_for_a_lock()
                second = ask()
            finally:
                holder.execute("ROLLBACK")
            assert (second.status, second.code) == (409, "request-in-progress")
            assert int(second.headers["Retry-After"]) >= 1
            assert first.result(20).status == 201
    assert ask().body == first.result().body
    world.catch_up()
    assert world.outside.times == {"mail.send": 1}


def waits_for_a_lock() -> None:
    """Return once some connection waits for another's lock."""
    until = time.monotonic() + 20
    with as_superuser() as looking:
        while True:
            (waiting,) = looking.execute(
                "SELECT count(*) FROM pg_stat_activity"
                " WHERE datname = current_database() AND cardinality(pg_blocking_pids(pid)) > 0"
            ).fetchone() or (0,)
            if waiting:
                return
            assert time.monotonic() < until, "nothing waits"
            time.sleep(0.01)


def test_one_key_on_two_paths_is_not_one_request(world: World) -> None:
    """rf-idem-04 (KanishJebaMathewM/Truxify#3539)."""
    world.given(world.tool("mail.send"))
    run = world.run()
    step = world.post("ops", f"/runs/{run['id']}/steps", mail("a@example.org"), key="k-1")
    done = {"output": None}
    path = f"/runs/{run['id']}/complete"
    reply = world.refused("ops", "POST", path, done, key="k-1", status=422)
    assert reply.code == "idempotency-key-reused"
    # Keys are their caller's own: the person's cancel is done under the same one.
    cancelled = world.post("opr", f"/runs/{run['id']}/cancel", {}, key="k-1")
    assert (cancelled["id"], cancelled["status"]) == (run["id"], "cancelled")
    assert world.fresh(step)["status"] == "cancelled"
    reply = world.refused(
        "opr", "POST", f"/runs/{run['id']}/cancel", {"note": "x"}, key="k-1", status=422
    )
    assert reply.code == "idempotency-key-reused"
