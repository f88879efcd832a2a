"""A worker that is told to stop finishes the call it is in and starts no other."""

import os
from collections.abc import Iterator

import pytest

from config import stopping
from interrupts.services import finding
from tests.interrupts.house import fresh


@pytest.fixture(autouse=True)
def goes_on_afterwards() -> Iterator[None]:
    yield
    stopping._told[0] = 0


def test_a_run_ends_its_turn_at_the_next_boundary_and_wakes_a_successor(house, sent):
    house.tool("t")
    house.tool("last")
    house.behaviour["last"] = lambda arguments, call: stopping.stop() or "done"
    run = house.run()
    first, second, third = house.propose(run, ("t", {"n": 1}), ("last", {"n": 2}), ("t", {"n": 3}))
    sent.clear()
    assert house.work(run) == 2
    assert [fresh(step).status for step in (first, second, third)] == [
        "succeeded",
        "succeeded",
        "ready",
    ]
    assert sent

    stopping._told[0] = 0
    assert house.work(run) == 1
    assert fresh(third).status == "succeeded"


def test_a_call_is_not_sent_again_by_a_worker_that_is_told_to_stop(house, monkeypatch):
    monkeypatch.setattr("interrupts.queue.find_out", lambda _: None)
    house.tool("t")
    _, step = house.lost()
    calls = len(house.calls)
    stopping.stop()
    finding.find_out(step.pk, "host:1")
    assert (fresh(step).status, len(house.calls)) == ("unknown", calls)
    stopping._told[0] = 0
    finding.find_out(step.pk, "host:1")
    assert (fresh(step).status, len(house.calls)) == ("succeeded", calls + 1)


def test_the_pool_sees_what_the_main_process_was_told():
    read, write = os.pipe()
    if (pid := os.fork()) == 0:
        os.read(read, 1)
        os._exit(int(stopping.is_stopping()))
    stopping.stop()
    os.write(write, b"x")
    os.close(read)
    os.close(write)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1
