"""A stop that cancels what is in flight reaches the call that a worker is in the middle of."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import OperationalError, connection

from interrupts import selectors
from interrupts.effects import NotPerformed, NotSent
from interrupts.models import Attempt, Receipt, Run, Step
from interrupts.services import cancelling, compensating
from tests.interrupts.effects.far_end import Asked
from tests.interrupts.history import assert_history_holds
from tests.interrupts.house import House, everything, fresh, open_of
from tests.interrupts.provider import Provider, declaration, install
from tests.interrupts.test_declared_far_end import find_out, hints
from tests.threads import PATIENCE, Crew, crew

__all__ = ["crew", "hints"]

LONG = 100  # seconds: nothing in these tests ends by its timeout
REFUND = ("charges.refund", {"charge": "ch_1", "amount": 1250})
OTHER = ("charges.refund", {"charge": "ch_2", "amount": 1250})


class Held:
    """A connection's place: what is sent on it is kept."""

    def __init__(self) -> None:
        self.data = b""

    def sendall(self, data: bytes) -> None:
        self.data += data


class Hanging(Provider):
    """Does what it is told, and while it hangs keeps its answer until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.hangs = True
        self.reached, self.answers = threading.Event(), threading.Event()

    def serve(self, connection: socket.socket, asked: Asked) -> None:
        if not self.hangs or asked.method == "GET":
            super().serve(connection, asked)
            return
        self.hangs, held = False, Held()
        super().serve(held, asked)  # type: ignore[arg-type]
        self.reached.set()
        self.answers.wait(PATIENCE)
        connection.sendall(held.data)


@pytest.fixture
def provider(settings: Any) -> Iterator[Hanging]:
    provider = Hanging()
    settings.ABEYANCE_ALLOWED_HOSTS = [provider.authority]
    yield provider
    provider.answers.set()
    provider.close()


@pytest.fixture
def tool(house: House, provider: Hanging) -> None:
    install(provider, executor={**declaration(provider)["executor"], "timeout": LONG})


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Look often; what is returned waits until two more looks are over."""
    monkeypatch.setattr(cancelling, "LOOK_SECONDS", 0.05)
    seen = [0]

    def counting(look: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def counted(what: Any) -> Any:
            found = look(what)
            seen[0] += 1
            return found

        return counted

    for name in ("asked_to_cancel", "is_stopped_at_once"):
        monkeypatch.setattr(selectors, name, counting(getattr(selectors, name)))

    def wait() -> None:
        wanted, until = seen[0] + 2, time.monotonic() + PATIENCE
        while seen[0] < wanted:
            assert time.monotonic() < until, "nobody looks"
            time.sleep(0.01)

    return wait


def waiting_for(reached: threading.Event) -> None:
    assert reached.wait(PATIENCE)


def test_a_stop_cuts_the_call_whose_outcome_is_unknown_until_the_far_end_is_asked(
    house: House, provider: Hanging, tool: None, looks: Any, hints: Any, crew: Crew
) -> None:
    run = house.run()
    step, later = house.propose(run, REFUND, OTHER)
    work = crew.start(lambda: house.work(run))
    waiting_for(provider.reached)
    stop = house.stop(run, in_flight="cancel")
    work.result()  # although the far end never answered

    run = fresh(run)
    assert (fresh(step).status, fresh(later).status) == ("unknown", "ready")
    assert (run.suspension, run.count_unknown, run.count_in_flight) == ("unknown_outcome", 1, 0)
    assert open_of(step).reason == "outcome_unknown"
    assert open_of(step).evidence["seen"].startswith("The call was cancelled before the far end")
    assert (house.work(run), provider.keys) == (0, [str(step.pk)])

    find_out(step)
    run = fresh(run)
    assert (fresh(step).status, fresh(step).external_id) == ("succeeded", "re_1")
    assert (run.status, run.suspension) == ("suspended", "partially_complete")
    assert not Receipt.objects.filter(run=run, outcome="failed").exists()
    assert len(provider.keys) == 1
    house.respond(stop)
    house.work(run)
    assert (fresh(later).status, len(provider.ledger)) == ("succeeded", 2)
    assert_history_holds(run)


def test_a_stop_that_finishes_lets_the_call_go_on(
    house: House, provider: Hanging, tool: None, looks: Any, crew: Crew
) -> None:
    run = house.run()
    step, later = house.propose(run, REFUND, OTHER)
    work = crew.start(lambda: house.work(run))
    waiting_for(provider.reached)
    house.stop(run, in_flight="finish")
    looks()
    assert not work.over
    provider.answers.set()
    work.result()
    assert (fresh(step).status, fresh(later).status) == ("succeeded", "ready")
    assert len(provider.ledger) == 1


def test_a_cancel_that_comes_after_the_answer_changes_nothing(
    house: House, provider: Hanging, tool: None, looks: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider.hangs = False
    record = cancelling.execute
    run = house.run()
    (step,) = house.propose(run, REFUND)

    def answered(*given: Any, **more: Any) -> Any:
        observed = record(*given, **more)
        house.stop(run, in_flight="cancel")
        return observed

    monkeypatch.setattr(cancelling, "execute", answered)
    house.work(run)
    assert Attempt.objects.get(step=step).cancel_requested
    assert (fresh(step).status, fresh(run).suspension) == ("succeeded", "safely_suspended")


def test_what_was_not_sent_yet_is_ready_again_and_sent_once_the_run_goes_on(
    house: House,
    provider: Hanging,
    tool: None,
    looks: Any,
    crew: Crew,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    resolving = threading.Event()

    def resolve(*_: Any, cancellation: Any, **__: Any) -> Any:
        cut = threading.Event()
        with cancellation.ending(cut.set):
            resolving.set()
            waiting_for(cut)
        raise NotSent("The call was cut.")

    run = house.run()
    (step,) = house.propose(run, REFUND)
    with monkeypatch.context() as patch:
        patch.setattr("interrupts.effects.exchange.addresses_of", resolve)
        work = crew.start(lambda: house.work(run))
        waiting_for(resolving)
        stop = house.stop(run, in_flight="cancel")
        work.result()
    assert (fresh(step).status, fresh(step).outcome) == ("ready", "not_performed")
    assert (fresh(run).suspension, provider.connections) == ("safely_suspended", 0)
    provider.hangs = False
    house.respond(stop)
    Step.objects.filter(pk=step.pk).update(due_at=None)
    house.work(run)
    assert (fresh(step).status, provider.keys) == ("succeeded", [str(step.pk)])


def test_a_stop_of_a_parent_cuts_the_calls_below_it(
    house: House, provider: Hanging, tool: None, looks: Any, crew: Crew
) -> None:
    parent = house.run()
    child = house.run(parent=parent.pk)
    (step,) = house.propose(child, REFUND)
    work = crew.start(lambda: house.work(child))
    waiting_for(provider.reached)
    house.stop(parent, in_flight="cancel")
    work.result()
    assert (fresh(step).status, fresh(child).suspension) == ("unknown", "unknown_outcome")


def until_cancelled(reached: threading.Event, fault: Exception) -> Callable[..., Any]:
    """A tool that looks whether it is to give up, and then does."""

    def behave(_arguments: Any, call: Any) -> Any:
        reached.set()
        until = time.monotonic() + PATIENCE
        while not call.cancel_requested:
            assert time.monotonic() < until, "it is not cancelled"
            time.sleep(0.01)
        raise fault

    return behave


@pytest.mark.parametrize("of_parent", [False, True])
def test_a_read_is_dropped_and_never_fails_by_it(
    house: House, looks: Any, crew: Crew, of_parent: bool
) -> None:
    house.tool("r", effect="read")
    reached = threading.Event()
    house.break_off("r")
    parent = house.run()
    run = house.run(parent=parent.pk) if of_parent else parent
    (step,) = house.propose(run, ("r", {}))
    for _ in range(4):
        house.work(run)
        Step.objects.filter(pk=step.pk).update(due_at=None)
    assert fresh(step).attempts == 4  # another unknown would be the last
    house.behaviour["r"] = until_cancelled(reached, RuntimeError("given up"))
    work = crew.start(lambda: house.work(run))
    waiting_for(reached)
    stop = house.stop(parent, in_flight="cancel")
    work.result()
    assert (fresh(step).status, fresh(step).outcome) == ("ready", "not_performed")
    assert (fresh(run).suspension, fresh(run).open_interrupts) == ("safely_suspended", 1)
    del house.behaviour["r"]
    house.respond(stop)
    Step.objects.filter(pk=step.pk).update(due_at=None)
    house.work(run)
    assert fresh(step).status == "succeeded"


def test_a_read_of_a_run_that_is_stopped_to_finish_is_finished(
    house: House, looks: Any, crew: Crew
) -> None:
    house.tool("r", effect="read")
    reached, answer = threading.Event(), threading.Event()
    house.behaviour["r"] = lambda *_: (reached.set(), answer.wait(PATIENCE))[1]
    run = house.run()
    (step,) = house.propose(run, ("r", {}))
    work = crew.start(lambda: house.work(run))
    waiting_for(reached)
    house.stop(run)
    looks()
    answer.set()
    work.result()
    assert fresh(step).status == "succeeded"


@pytest.mark.parametrize(
    ("fault", "status"),
    [(NotPerformed("not begun"), "ready"), (RuntimeError("half done"), "unknown")],
)
def test_a_python_tool_that_looks_gives_up_and_says_what_it_left(
    house: House, looks: Any, crew: Crew, fault: Exception, status: str
) -> None:
    house.tool("t")
    reached = threading.Event()
    house.behaviour["t"] = until_cancelled(reached, fault)
    run = house.run()
    (step,) = house.propose(run, ("t", {}))
    work = crew.start(lambda: house.work(run))
    waiting_for(reached)
    house.stop(run, in_flight="cancel")
    work.result()
    assert fresh(step).status == status


def test_a_call_sent_again_to_find_out_is_cut_and_proves_nothing(
    house: House, looks: Any, hints: Any, crew: Crew
) -> None:
    house.tool("t")
    run, step = house.lost()
    reached = threading.Event()
    house.behaviour["t"] = until_cancelled(reached, NotPerformed("not begun"))
    work = crew.start(lambda: find_out(step))
    waiting_for(reached)
    house.stop(run, in_flight="cancel")
    work.result()
    assert (fresh(step).status, fresh(run).suspension) == ("unknown", "unknown_outcome")


def test_a_compensation_is_finished_whatever_is_cancelled(
    house: House, provider: Hanging, tool: None, looks: Any, hints: Any, crew: Crew
) -> None:
    provider.hangs = False
    run = house.run()
    (step,) = house.propose(run, REFUND)
    house.work(run)
    provider.hangs = True
    compensating.compensate_step(house.people["olga"], step.pk)
    work = crew.start(lambda: compensating.compensate(step.pk, "w"))
    waiting_for(provider.reached)
    house.stop(run, in_flight="cancel")
    assert Attempt.objects.get(step=step, compensation=True).cancel_requested
    provider.answers.set()
    work.result()
    assert fresh(step).status == "compensated"


def test_a_look_that_fails_is_made_again(
    house: House,
    provider: Hanging,
    tool: None,
    looks: Any,
    crew: Crew,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    failures = [OperationalError("the server went away")] * 2
    look = selectors.asked_to_cancel

    def failing(what: Any) -> Any:
        if failures:
            connection.close()
            raise failures.pop()
        return look(what)

    monkeypatch.setattr(selectors, "asked_to_cancel", failing)
    run = house.run()
    (step,) = house.propose(run, REFUND)
    work = crew.start(lambda: house.work(run))
    waiting_for(provider.reached)
    house.stop(run, in_flight="cancel")
    work.result()
    assert (fresh(step).status, failures) == ("unknown", [])


def test_the_watch_writes_nothing_and_ends_with_what_it_watches(
    house: House, provider: Hanging, tool: None, looks: Any, crew: Crew
) -> None:
    run = house.run()
    house.propose(run, REFUND)
    work = crew.start(lambda: house.work(run))
    waiting_for(provider.reached)
    (thread,) = (one for one in threading.enumerate() if one.name == "cancelling")
    before = everything()
    looks()
    assert everything() == before
    provider.answers.set()
    work.result()
    thread.join(PATIENCE)
    assert not thread.is_alive()


def test_a_call_that_is_soon_over_is_not_looked_at(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[Any] = []
    monkeypatch.setattr(cancelling, "_look_after", looked.append)
    monkeypatch.setattr(cancelling, "LOOK_SECONDS", PATIENCE)
    house.tool("t")
    run: Run = house.run()
    house.propose(run, *(("t", {"n": n}) for n in range(3)))
    assert (house.work(run), looked) == (3, [])
