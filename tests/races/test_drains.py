"""Once a drain has answered no worker begins anything: it waits for those that had not seen it."""

import time

import pytest

from interrupts.models import Attempt
from interrupts.services import draining
from tests.interrupts.house import fresh
from tests.races.conftest import attempt_pending, run_locked, waiting


def drained():
    draining.begin_drain(draining.this_host())
    until = time.monotonic() + 20
    draining.wait_for_intents(lambda: until - time.monotonic())
    return Attempt.objects.count()


def make(house):
    house.tool("t")
    run = house.run()
    (step,) = house.propose(run, ("t", {"n": 1}))
    return run, step


def test_an_intent_that_waited_for_the_run_sees_the_drain_and_begins_nothing(house, crew):
    run, step = make(house)
    with run_locked(crew, run):
        intent = waiting(crew, lambda: house.work(run))
        drain = waiting(crew, drained)
    assert (intent.result(), drain.result()) == (0, 0)
    assert (fresh(step).status, house.ran) == ("ready", [])


def test_a_drain_answers_only_after_the_intents_that_had_not_seen_it(house, crew):
    run, step = make(house)
    with attempt_pending(crew, step):
        intent = waiting(crew, lambda: house.work(run))
        drain = waiting(crew, drained)
        assert not drain.over
    assert drain.result() == 1  # what had begun by then is there to be listed
    assert intent.result() == 1


def test_a_drain_that_cannot_be_sure_in_time_says_so_and_stands(house, crew):
    run, _step = make(house)
    with run_locked(crew, run):
        intent = waiting(crew, lambda: house.work(run))
        draining.begin_drain(draining.this_host())
        with pytest.raises(draining.IntentsOutstanding):
            draining.wait_for_intents(lambda: 0.05)
    assert intent.result() == 0
    assert draining.is_drained(draining.this_host())
