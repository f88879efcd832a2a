"""A drained host begins nothing; what it is at is finished, and everything else goes on."""

import io

import pytest
from django.core.management import CommandError, call_command

from interrupts import sweep
from interrupts.effects import NotPerformed
from interrupts.management.commands import drain as command
from interrupts.models import EVERY_HOST, Attempt, Drain, Run, Step, SweepRound, Tally
from interrupts.services import compensating, draining, finding
from interrupts.worker import worker_name
from tenants.clock import database_now
from tests.interrupts.house import earlier, fresh, nothing_changes

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "sweep"])
HERE = draining.this_host()


def ready(house, *, effect="idempotent", calls=1):
    house.tool("t", effect=effect)
    run = house.run()
    return run, house.propose(run, *[("t", {"n": n}) for n in range(calls)])


def drain(*arguments, **options):
    out, err = io.StringIO(), io.StringIO()
    call_command("drain", *arguments, stdout=out, stderr=err, **options)
    return out.getvalue()


@pytest.mark.parametrize("effect", ["idempotent", "read"])
@pytest.mark.parametrize("host", [HERE, EVERY_HOST])
def test_a_drained_worker_begins_nothing_until_the_drain_ends(house, host, effect):
    run, _ = ready(house, effect=effect)
    draining.begin_drain(host)
    with nothing_changes():
        assert house.work(run) == 0
    assert (house.ran, fresh(run).due_at is None) == ([], False)
    draining.end_drain(host)
    assert house.work(run) == 1
    assert house.ran == [0]


def test_the_drain_of_another_host_holds_nobody_here(house):
    run, _ = ready(house)
    draining.begin_drain("elsewhere")
    assert house.work(run) == 1


def test_what_is_in_flight_is_recorded_and_the_next_is_not_begun(house):
    run, (first, second) = ready(house, calls=2)
    house.behaviour["t"] = lambda arguments, call: draining.begin_drain(HERE) and "done"
    house.sent.clear()
    assert house.work(run) == 1
    assert (fresh(first).status, fresh(second).status) == ("succeeded", "ready")
    assert Attempt.objects.count() == 1
    assert fresh(run).due_at is not None  # no hint says so, where nobody would take it
    assert house.sent == []


def test_proposals_decisions_and_agents_claims_go_on(house):
    house.tool("asked")
    house.tool("own", kind="agent")
    house.policy.verdicts["asked"] = "approve"
    draining.begin_drain(EVERY_HOST)
    run = house.run()
    (own,) = house.propose(run, ("own", {}))
    house.report(house.claim(own))
    (asked,) = house.propose(run, ("asked", {}))
    house.decide(asked)
    assert (fresh(own).status, fresh(asked).status) == ("succeeded", "ready")


def test_a_call_is_not_sent_again_on_a_drained_host(house, monkeypatch):
    monkeypatch.setattr("interrupts.queue.find_out", lambda _: None)
    house.tool("t")
    _run, step = house.lost()
    calls = len(house.calls)
    Step.objects.filter(pk=step.pk).update(ask_at=step.unknown_at)
    draining.begin_drain(HERE)
    finding.find_out(step.pk, worker_name())
    assert (fresh(step).status, len(house.calls)) == ("unknown", calls)
    assert fresh(step).ask_at > step.unknown_at  # and is looked at again
    draining.end_drain(HERE)
    finding.find_out(step.pk, worker_name())
    assert (fresh(step).status, len(house.calls)) == ("succeeded", calls + 1)


def test_nothing_is_undone_on_a_drained_host(house, monkeypatch):
    monkeypatch.setattr("interrupts.queue.compensate", lambda _: None)
    undone = []
    house.undoes["t"] = lambda arguments, call, result, external_id: undone.append(arguments["n"])
    house.tool("t", effect="reversible", compensate={})
    run = house.run()
    (step,) = house.propose(run, ("t", {"n": 7}))
    house.work(run)
    compensating.compensate_step(house.people["olga"], step.pk)
    draining.begin_drain(HERE)
    compensating.compensate(step.pk, worker_name())
    assert (fresh(step).status, undone) == ("succeeded", [])
    draining.end_drain(HERE)
    compensating.compensate(step.pk, worker_name())
    assert (fresh(step).status, undone) == ("compensated", [7])


def test_the_sweep_of_a_drained_host_looks_and_wakes_nobody(house):
    run, _ = ready(house)
    earlier(run, "due_at", 60)
    draining.begin_drain(HERE)
    house.sent.clear()
    house.look(run)
    due = fresh(run).due_at
    assert (house.sent, due > fresh(run).updated_at) == ([], True)
    draining.end_drain(HERE)
    earlier(run, "due_at", 60)
    house.look(run)
    assert len(house.sent) == 1


def test_the_sweeper_sees_a_drain_once_and_leaves_the_sweep_to_others_that_sweep(monkeypatch):
    told, rounds = [], []
    monkeypatch.setattr(sweep, "sweep_once", lambda: rounds.append(1) or 0)
    sweeper = sweep.Sweeper()
    sweeper.on_drain = told.append
    sweeper._round()
    assert (told, len(rounds)) == ([], 1)
    draining.begin_drain(HERE)
    sweeper._round()
    sweeper._round()
    assert (told, len(rounds)) == ([True], 3)  # there is nobody else
    SweepRound.objects.create(ended_at=database_now(), seconds=0, rounds=1, unworkable=0)
    sweeper._round()
    assert len(rounds) == 3
    earlier(SweepRound.objects.get(), "ended_at", 60)
    sweeper._round()
    assert len(rounds) == 4
    draining.end_drain(HERE)
    sweeper._round()
    assert (told, len(rounds)) == ([True, False], 5)


# The command


def test_it_says_that_nothing_is_in_flight_and_the_drain_stands(house):
    said = drain().splitlines()
    assert said[0].startswith(f"drained: every worker of {HERE} begins nothing since ")
    assert said[1:] == ["nothing is in flight"]
    assert [row.host for row in Drain.objects.all()] == [HERE]
    since = Drain.objects.get().since
    drain()
    assert Drain.objects.get().since == since
    assert drain("--undo").splitlines() == [f"the drain of every worker of {HERE} has ended"]
    assert not Drain.objects.exists()
    assert drain("--undo") == ""


def test_it_lists_what_is_still_in_flight_when_the_time_is_up(house):
    run, (step,) = ready(house)
    told = []

    def execute(arguments, call):
        out, err = io.StringIO(), io.StringIO()
        with pytest.raises(CommandError, match="1 still in flight; the drain stands"):
            call_command("drain", timeout=0.0, stdout=out, stderr=err)
        told.append(err.getvalue())
        call_command("drain", host="elsewhere", timeout=0.0, stdout=out, stderr=err)
        return "done"

    house.behaviour["t"] = execute
    assert house.work(run) == 1
    (line,) = told
    assert f"{house.tenant.slug}: run {run.pk} step {step.pk} by {worker_name()} till" in line
    assert {row.host for row in Drain.objects.all()} == {HERE, "elsewhere"}
    assert "nothing is in flight" in drain()


def test_an_agents_call_and_one_whose_lease_is_over_are_nothing_to_wait_for(house):
    house.tool("own", kind="agent")
    house.tool("t")
    run = house.run()
    (own,) = house.propose(run, ("own", {}))
    house.claim(own)
    other = house.run()
    (dead,) = house.propose(other, ("t", {}))
    Attempt.objects.create(
        step=dead,
        run=other,
        fence=1,
        epoch=1,
        worker=worker_name(),
        started_at=dead.created_at,
        lease_expires_at=dead.created_at,
    )
    assert "nothing is in flight" in drain("--all", timeout=0.0)


def test_a_read_that_had_begun_is_waited_for_and_one_of_later_is_not(house, monkeypatch):
    run, _ = ready(house, effect="read")
    seen = []

    def execute(arguments, call):
        seen.append({one.step for one in draining.reads_in_flight()})
        with pytest.raises(CommandError, match="1 still in flight"):
            call_command("drain", timeout=0.0, stdout=io.StringIO(), stderr=io.StringIO())
        assert draining.reads_in_flight(known=[]) == []
        return "done"

    house.behaviour["t"] = execute
    house.work(run)
    assert seen == [{Step.objects.get().pk}]


def test_it_tells_while_it_waits_and_answers_once_nothing_is_left(house, monkeypatch):
    run, _ = ready(house)
    attempt = None

    def execute(arguments, call):
        nonlocal attempt
        attempt = Attempt.objects.get()

        def settled(_seconds):
            Attempt.objects.filter(pk=attempt.pk).update(lapsed_at=attempt.started_at)

        monkeypatch.setattr(command.time, "sleep", settled)
        said.extend(drain(timeout=60.0).splitlines())
        monkeypatch.undo()
        return "done"

    said = []
    house.behaviour["t"] = execute
    house.work(run)
    assert [line.split(",")[0] for line in said[1:]] == ["1 in flight", "nothing is in flight"]


@pytest.mark.parametrize("timeout", ["-1", "soon", "nan", "inf"])
def test_a_time_that_is_none_is_refused_and_drains_nothing(house, timeout):
    with nothing_changes(), pytest.raises(CommandError, match="a number of seconds"):
        call_command("drain", f"--timeout={timeout}")


# What is counted


def tally(name):
    return Tally.objects.filter(name=name).values_list("value", flat=True).first() or 0


def test_a_call_that_is_taken_over_is_counted_by_whose_it_was(house):
    house.tool("t")
    house.tool("own", kind="agent")
    run = house.run()
    (step,) = house.propose(run, ("own", {}))
    house.lapse(house.claim(step))
    assert (tally("takeovers_agent"), tally("takeovers_service")) == (1, 0)
    other = house.run()
    (dead,) = house.propose(other, ("t", {}))
    Attempt.objects.create(
        step=dead,
        run=other,
        fence=1,
        epoch=1,
        worker=worker_name(),
        started_at=dead.created_at,
        lease_expires_at=dead.created_at,
    )
    house.look(other)
    house.look(other)
    assert (tally("takeovers_agent"), tally("takeovers_service")) == (1, 1)


def test_a_read_that_is_lost_is_counted_as_taken_over(house):
    run, (step,) = ready(house, effect="read")
    Run.objects.filter(pk=run.pk).update(reading=step.pk, reading_until=step.created_at)
    house.look(run)
    assert tally("takeovers_service") == 1


def unanswered(run):
    """Shift the clock for a run that was just woken: its grace is over."""
    for column in ("due_at", "updated_at"):
        earlier(run, column, 60)


def test_a_wake_that_nobody_came_for_is_counted_each_time(house):
    run, _ = ready(house)
    for count in (1, 2):
        unanswered(run)
        house.look(run)
        assert tally("wakes_lost") == count


def test_a_wake_that_time_or_a_person_makes_is_not_counted(house):
    run, (step,) = ready(house)
    house.look(run)  # before its grace is over
    earlier(run, "due_at", 60)  # somebody wanted it looked at
    house.look(run)
    retried = house.run()
    house.behaviour["t"] = not_begun
    house.propose(retried, ("t", {}))
    house.work(retried)
    assert fresh(Step.objects.get(run=retried)).due_at is not None
    Step.objects.filter(run=retried).update(due_at=step.created_at)
    earlier(retried, "due_at", 60)
    house.look(retried)
    assert tally("wakes_lost") == 0


def not_begun(arguments, call):
    raise NotPerformed("it is busy")


def test_a_step_that_became_due_later_was_not_what_the_wake_was_for(house):
    """A retry after exactly a wake's grace looks like an unanswered wake, but for its own time."""
    run, (step,) = ready(house)
    unanswered(run)
    due = fresh(run).due_at
    Step.objects.filter(pk=step.pk).update(due_at=due)
    house.look(run)
    assert (tally("wakes_lost"), len(house.sent) > 1) == (0, True)


def test_what_cannot_start_or_is_being_made_was_not_woken_in_vain(house):
    house.tool("t")
    house.tool("own", kind="agent")
    run = house.run()
    house.propose(run, ("own", {}), ("t", {}))  # the agent's own comes first
    unanswered(run)
    house.look(run)
    assert tally("wakes_lost") == 0


def test_each_round_of_the_sweep_leaves_a_note(house, monkeypatch):
    monkeypatch.setattr(sweep, "_rounds", sweep._Rounds())
    monkeypatch.setattr(sweep, "NOTE_SECONDS", 0.0)
    for rounds in (1, 2):
        sweep.sweep_once()
        assert (SweepRound.objects.get().rounds, SweepRound.objects.get().unworkable) == (rounds, 0)
    monkeypatch.setattr(sweep, "NOTE_SECONDS", 3600.0)
    sweep.sweep_once()
    monkeypatch.setattr(sweep, "NOTE_SECONDS", 0.0)
    sweep.sweep_once()
    assert SweepRound.objects.get().rounds == 4
