"""The broker or the database goes away in the middle of a service: all of it, or none."""

from decimal import Decimal
from uuid import uuid4

import pytest
from django.db import DatabaseError, InterfaceError, OperationalError, connection
from kombu.exceptions import OperationalError as NoBroker

from interrupts import hot, queue, sweep, tasks, work, worker
from interrupts.errors import Damaged
from interrupts.models import Attempt, Receipt
from interrupts.services import checkpoints, looking, runs
from tenants.ids import uuid7
from tenants.scope import tenant_scope
from tests.database import as_owner, end_backend
from tests.interrupts.house import earlier, everything, fresh, make_house, open_of
from tests.races.conftest import attempt_pending
from tests.threads import Pause, backend

LOST = (DatabaseError, InterfaceError)


def break_connection():
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")


@pytest.fixture
def breaks(monkeypatch, house):
    """Break the connection where a service has written everything and not yet committed."""
    finish = work.Work.finish
    broken = []

    def finish_and_break(self):
        finish(self)
        if not broken:
            broken.append(True)
            break_connection()

    monkeypatch.setattr(work.Work, "finish", finish_and_break)
    return lambda: reconnect(house)


def reconnect(house):
    connection.close()
    with tenant_scope(house.tenant.pk):
        pass  # the session's tenant is set anew


STATE = {"format": "f", "version": "1", "data": [1]}
SERVICES = {
    "start": lambda house, run, mine: house.run(),
    "start a child": lambda house, run, mine: house.run(parent=run.pk),
    "propose": lambda house, run, mine: house.propose(run, ("t", {"n": 1}), ("asked", {})),
    "claim": lambda house, run, mine: house.claim(mine[0]),
    "report": lambda house, run, mine: house.report(mine[1], cost=Decimal("0.1"), result=[1]),
    "lose": lambda house, run, mine: house.report(mine[1], "unknown"),
    "stop": lambda house, run, mine: house.stop(run, in_flight="cancel"),
    "cancel": lambda house, run, mine: house.cancel(run),
    "take a run": lambda house, run, mine: runs.claim_run(house.agent, run.pk),
    "use": lambda house, run, mine: runs.report_usage(house.agent, run.pk, tokens=99),
    "put a state": lambda house, run, mine: checkpoints.put_state(
        house.agent, run.pk, agent_state=STATE
    ),
    "lapse": lambda house, run, mine: house.look(run),
}


@pytest.mark.parametrize("service", SERVICES.values(), ids=SERVICES)
def test_what_was_not_committed_is_not_there_and_may_be_done_again(house, request, service):
    house.tool("t")
    house.tool("asked")
    house.tool("mine", kind="agent")
    house.policy.verdicts["asked"] = "approve"
    run = house.run(budget={"tokens": 10})
    child = house.run(parent=run.pk)
    ready, claimed = house.propose(run, ("mine", {}), ("mine", {}), parallel=True)
    mine = (ready, house.claim(claimed))
    if service is SERVICES["lapse"]:
        earlier(mine[1], "lease_expires_at", 3600)
    before = everything()
    again = request.getfixturevalue("breaks")
    with pytest.raises(LOST):
        service(house, run, mine)
    again()
    assert everything() == before
    service(house, run, mine)
    assert everything() != before
    assert fresh(child).journal_seq >= 1


def test_an_answer_that_was_not_committed_is_not_there(house, request):
    run = house.run()
    stop = house.stop(run)
    again = request.getfixturevalue("breaks")
    with pytest.raises(LOST):
        house.respond(stop)
    again()
    assert (fresh(stop).status, fresh(run).status) == ("open", "suspended")
    house.respond(stop)
    assert fresh(run).status == "running"


def test_a_chained_commit_that_broke_off_is_neither_receipt_nor_intent(house, crew, monkeypatch):
    """The worker's one statement waits in the middle, and its connection is ended there."""
    monkeypatch.setattr(worker, "RECORD_SECONDS", -1.0)  # it does not try again
    house.tool("t")
    run = house.run()
    first, second = (house.propose(run, ("t", {"n": n}))[0] for n in (1, 2))
    during = Pause()
    house.behaviour["t"] = lambda *_: during.here()
    work = crew.start(lambda: worker.work_run(run.pk, 1))
    during.reached()
    with attempt_pending(crew, second):
        during.go_on()
        work.waits()
        end_backend(work.backend)
        with pytest.raises(LOST):
            work.result()
    assert (fresh(first).status, fresh(second).status) == ("executing", "ready")
    assert (Receipt.objects.count(), Attempt.objects.count()) == (0, 1)
    house.lapse(Attempt.objects.get())
    assert (fresh(first).status, house.ran) == ("unknown", [1])


# The broker


@pytest.mark.django_db(transaction=True, databases=["default", "sweep"])
def test_without_a_broker_proposals_succeed_and_run_once_it_is_back(
    transactional_db, authority, nothing_remembered, monkeypatch
):
    messages, away = [], [True]

    class Broker:
        def send_task(self, name, kwargs):
            if away:
                raise NoBroker("nobody listens")
            messages.append((name, kwargs))

    monkeypatch.setattr(queue, "current_app", Broker())
    tenant = uuid7()
    with tenant_scope(tenant):
        house = make_house(authority, [], monkeypatch)
        house.tool("t")
        house.tool("asked")
        house.policy.verdicts["asked"] = "approve"
        run = house.run()
        house.propose(run, ("t", {"n": 1}))
        (asked,) = house.propose(run, ("asked", {"n": 2}))
        house.decide(asked)
        assert (fresh(asked).status, house.ran) == ("ready", [])
        assert fresh(run).due_at is not None
        earlier(run, "due_at", 60)
    sweep.sweep_once()
    assert messages == []
    away.clear()
    with tenant_scope(tenant):
        earlier(run, "due_at", 60)
    sweep.sweep_once()
    ((name, kwargs),) = messages
    assert name == queue.WORK_RUN
    tasks.work_run(**kwargs)
    tasks.work_run(**kwargs)
    assert house.ran == [1, 2]


def test_a_hint_about_a_run_that_is_not_there_is_no_work(house):
    run = house.run()
    tenant = str(house.tenant.pk)
    tasks.work_run(tenant_id=tenant, run_id=str(uuid4()), epoch=1)
    tasks.work_run(tenant_id=tenant, run_id=str(run.pk), epoch=99, something="newer")
    assert house.ran == []


@pytest.mark.django_db(transaction=True, databases=["default", "sweep"])
def test_a_run_that_cannot_be_looked_at_keeps_no_other_from_the_sweep(house, monkeypatch):
    house.tool("t", kind="agent")
    broken, sound = house.run(), house.run()
    attempts = [house.claim(house.propose(run, ("t", {}))[0]) for run in (broken, sound)]
    for attempt, seconds in zip(attempts, (7200, 3600), strict=True):
        earlier(attempt, "lease_expires_at", seconds)
        earlier(attempt.run, "due_at", seconds)
    look = looking.look

    def looked_at(run_id):
        if run_id == broken.pk:
            raise Damaged("its rows are not what was written")
        look(run_id)

    monkeypatch.setattr(looking, "look", looked_at)
    assert sweep.sweep_once() >= 2
    assert open_of(sound).reason == "outcome_unknown"
    assert fresh(broken).due_at is not None


def test_what_was_erased_is_not_sent(house):
    house.tool("t")
    run = house.run()
    (step,) = house.propose(run, ("t", {"n": 1}))
    with as_owner() as owner:
        owner.execute("DELETE FROM interrupts_content")
    house.work(run)
    assert (fresh(step).status, fresh(step).error, house.ran) == ("failed", worker.DAMAGED, [])


def test_what_does_not_open_is_not_sent(house):
    house.tool("t", sensitive=["/n"])
    run = house.run()
    (step,) = house.propose(run, ("t", {"n": 1}))
    with as_owner() as owner:
        owner.execute("UPDATE interrupts_content SET body = body || '\\x00'")
    house.work(run)
    assert (fresh(step).status, fresh(step).error, house.ran) == ("failed", worker.DAMAGED, [])


# The database, while a worker has something to record


@pytest.mark.parametrize("effect", ["idempotent", "read"])
@pytest.mark.parametrize("outcome", ["succeeded", "unknown"])
def test_what_came_back_is_recorded_though_the_connection_was_lost_meanwhile(
    house, monkeypatch, effect, outcome
):
    monkeypatch.setattr(worker, "RECORD_PAUSE_SECONDS", 0.0)
    house.tool("t", effect=effect)
    run = house.run()
    (step,) = house.propose(run, ("t", {"n": 1}))

    def restart(arguments, call):
        end_backend(backend())
        if outcome == "unknown":
            raise RuntimeError("lost")

    house.behaviour["t"] = restart
    house.work(run)
    receipt = Receipt.objects.get(step=step)
    assert (receipt.outcome, house.ran) == (outcome, [1])
    expected = {"succeeded": "succeeded", "unknown": "ready" if effect == "read" else "unknown"}
    assert fresh(step).status == expected[outcome]


def test_a_commit_whose_answer_was_lost_records_and_calls_nothing_twice(house, monkeypatch):
    monkeypatch.setattr(worker, "RECORD_PAUSE_SECONDS", 0.0)
    house.tool("t")
    run = house.run()
    first, second = (house.propose(run, ("t", {"n": n}))[0] for n in (1, 2))
    advance, lost = hot.advance, []

    def answer_lost(*args, **more):
        made = advance(*args, **more)
        if more["done"] and not lost:
            lost.append(True)
            raise OperationalError("the connection broke off")
        return made

    monkeypatch.setattr(hot, "advance", answer_lost)
    house.work(run)
    assert (fresh(first).status, Receipt.objects.count(), house.ran) == ("succeeded", 1, [1])
    house.lapse(Attempt.objects.get(step=second))
    assert fresh(second).status == "unknown"


def test_a_database_that_stays_away_leaves_it_to_the_lease(house, monkeypatch):
    monkeypatch.setattr(worker, "RECORD_PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(worker, "RECORD_SECONDS", 0.05)
    house.tool("t")
    run = house.run()
    (step,) = house.propose(run, ("t", {"n": 1}))
    advance = hot.advance

    def away(*args, **more):
        if more["done"]:
            raise OperationalError("nobody answers")
        return advance(*args, **more)

    monkeypatch.setattr(hot, "advance", away)
    with pytest.raises(OperationalError):
        house.work(run)
    house.lapse(Attempt.objects.get(step=step))
    assert (fresh(step).status, house.ran) == ("unknown", [1])
