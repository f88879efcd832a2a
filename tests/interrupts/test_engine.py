import pytest

from interrupts import worker
from interrupts.models import Attempt, Interrupt, Receipt, Run, Step
from interrupts.services import looking, responses
from tenants.models import JournalEntry
from tests.interrupts.house import fresh, kinds


def test_an_allowed_read_runs_once_and_leaves_its_receipt(house):
    house.tool("crm.get", effect="read")
    run = house.run()
    (step,) = house.propose(run, ("crm.get", {"customer": "c"}))

    assert worker.work_run(run.pk, run.epoch) == 1

    step = fresh(step)
    assert (step.status, step.attempts, step.outcome) == ("succeeded", 1, "succeeded")
    assert Receipt.objects.filter(step=step).count() == 1
    assert Attempt.objects.get(step=step).lease_expires_at is None
    assert house.calls == [("crm.get", {"customer": "c"}, str(step.pk))]
    assert worker.work_run(run.pk, run.epoch) == 0


def test_an_effect_is_intended_before_it_is_called(house):
    house.tool("note.write")
    run = house.run()
    seen = []
    house.behaviour["note.write"] = lambda a, c: seen.append(Step.objects.get(pk=c.step).status)
    (step,) = house.propose(run, ("note.write", {"text": "x"}))

    worker.work_run(run.pk, run.epoch)

    assert seen == ["executing"]
    assert fresh(step).status == "succeeded"
    assert kinds(run) == [
        "run.started",
        "step.proposed",
        "step.authorized",
        "attempt.started",
        "receipt.recorded",
        "step.settled",
    ]


def test_what_is_not_proved_is_unknown_and_suspends_the_run(house):
    house.tool("note.write")
    run = house.run()

    def break_off(arguments, call):
        raise RuntimeError("connection lost")

    house.behaviour["note.write"] = break_off
    first, second = (house.propose(run, ("note.write", {"text": t}))[0] for t in "ab")

    worker.work_run(run.pk, run.epoch)

    run = fresh(run)
    assert (fresh(first).status, fresh(second).status) == ("unknown", "ready")
    assert (run.status, run.suspension, run.epoch) == ("suspended", "unknown_outcome", 2)
    assert Interrupt.objects.get(run=run).reason == "outcome_unknown"
    assert len(house.calls) == 1


def test_a_person_settles_an_unknown_outcome_and_the_run_goes_on(house):
    house.tool("note.write")
    run = house.run()

    def break_off(arguments, call):
        raise RuntimeError("connection lost")

    house.behaviour["note.write"] = break_off
    (step,) = house.propose(run, ("note.write", {"text": "a"}))
    worker.work_run(run.pk, run.epoch)
    interrupt = Interrupt.objects.get(run=run)

    responses.respond(
        house.people["olga"],
        interrupt.pk,
        checkpoint=interrupt.checkpoint,
        resolution="resume",
        value={"outcome": "performed", "evidence": "seen in the log"},
    )

    assert fresh(step).status == "succeeded"
    assert fresh(run).status == "running"
    assert Receipt.objects.filter(step=step, source="person").count() == 1
    assert Run.objects.get(pk=run.pk).open_interrupts == 0


@pytest.mark.parametrize("effect", ["read", "idempotent"])
def test_steps_run_in_order_of_position_in_one_turn(house, effect):
    house.tool("t", effect=effect)
    run = house.run()
    house.propose(run, *[("t", {"n": n}) for n in range(10)])

    assert worker.work_run(run.pk, run.epoch) == 10

    assert [arguments["n"] for _, arguments, _ in house.calls] == list(range(10))
    run = fresh(run)
    assert (run.next_step, run.last_position) == (11, 10)
    sequence = JournalEntry.objects.filter(stream=run.pk).values_list("seq", flat=True)
    assert list(sequence) == list(range(1, len(sequence) + 1))


def test_a_slow_read_is_made_once_whatever_is_woken_beside_it(house):
    house.tool("crm.get", effect="read")
    run = house.run()
    beside = []

    def slow(arguments, call):
        beside.append(worker.work_run(run.pk, run.epoch))
        looking.look(run.pk)
        beside.append(worker.work_run(run.pk, run.epoch))
        return 1

    house.behaviour["crm.get"] = slow
    first, second = (house.propose(run, ("crm.get", {"n": n}))[0] for n in "ab")

    assert worker.work_run(run.pk, run.epoch) == 2

    assert beside == [0, 0, 0, 0]
    assert [fresh(step).attempts for step in (first, second)] == [1, 1]
    assert fresh(run).reading is None


def test_a_read_whose_worker_died_is_one_of_its_tries(house):
    house.tool("crm.get", effect="read")
    run = house.run()
    (step,) = house.propose(run, ("crm.get", {}))

    def die(arguments, call):
        raise KeyboardInterrupt

    house.behaviour["crm.get"] = die
    with pytest.raises(KeyboardInterrupt):
        worker.work_run(run.pk, run.epoch)
    assert (fresh(run).reading, fresh(step).attempts) == (step.pk, 0)
    Run.objects.filter(pk=run.pk).update(reading_until="2020-01-01T00:00:00Z")

    looking.look(run.pk)

    step = fresh(step)
    assert (step.status, step.attempts, step.due_at is not None) == ("ready", 1, True)
    assert fresh(run).reading is None
