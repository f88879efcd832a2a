"""The mid-task correction: steps withdrawn, guidance given, the run goes on."""

from uuid import uuid4

import pytest

from config.errors import InvalidBody
from interrupts.errors import MayNot
from interrupts.models import Guidance
from interrupts.services import runs
from tests.interrupts.house import fresh, kinds, open_of, refused


def revision(*withdraw, guidance="use the other account"):
    return {"guidance": guidance, "withdraw": [str(step.pk) for step in withdraw]}


def test_withdrawn_steps_are_revised_with_their_gates_and_the_run_goes_on(house):
    house.tool("t")
    house.tool("asked")
    house.policy.verdicts["asked"] = "approve"
    run = house.run()
    ready, waiting, kept = house.propose(run, ("t", {}), ("asked", {}), ("t", {"n": 3}))
    gate, asked = waiting.gate, open_of(waiting)
    stop = house.stop(run)

    house.respond(stop, "revise", value=revision(ready, waiting))

    assert [fresh(step).status for step in (ready, waiting, kept)] == [
        "revised",
        "revised",
        "ready",
    ]
    assert fresh(waiting).reason == "use the other account"
    assert house.policy.closed == [(gate, "withdrawn")]
    assert (fresh(asked).resolution, fresh(stop).resolution) == ("revise", "revise")
    assert fresh(run).status == "running"
    house.work(run)
    assert house.ran == [3]


def test_guidance_stands_until_the_agent_has_acknowledged_it(house):
    run = house.run()
    house.respond(house.stop(run), "revise", value=revision())
    told = Guidance.objects.get(run=run)
    assert (told.text, told.acknowledged_at) == ("use the other account", None)

    runs.acknowledge(house.agent, run.pk, guidance=[told.pk])
    acknowledged = fresh(told).acknowledged_at
    version = fresh(run).state_version
    runs.acknowledge(house.agent, run.pk, guidance=[told.pk, told.pk])

    assert acknowledged is not None
    assert (fresh(told).acknowledged_at, fresh(run).state_version) == (acknowledged, version)
    assert kinds(run).count("guidance.acknowledged") == 1


def test_an_unknown_guidance_is_refused(house):
    run = house.run()
    house.respond(house.stop(run), "revise", value=revision())
    told = Guidance.objects.get(run=run)
    with refused(InvalidBody):
        runs.acknowledge(house.agent, run.pk, guidance=[told.pk, uuid4()])
    stranger = house.run()
    with refused(InvalidBody):
        runs.acknowledge(house.agent, stranger.pk, guidance=[told.pk])


@pytest.mark.parametrize("status", ["succeeded", "executing", "denied"])
def test_a_step_that_has_begun_or_ended_is_not_withdrawn_and_nothing_is(house, status):
    house.tool("t")
    house.tool("mine", kind="agent")
    house.tool("never")
    house.policy.verdicts["never"] = "deny"
    run = house.run()
    (ready,) = house.propose(run, ("mine", {"n": 1}))
    other = {"succeeded": "t", "executing": "mine", "denied": "never"}[status]
    (step,) = house.propose(run, (other, {"n": 2}))
    if status == "executing":
        house.claim(step)
    elif status == "succeeded":
        house.work(run)
    assert fresh(step).status == status
    stop = house.stop(run)
    with refused(InvalidBody) as raised:
        house.respond(stop, "revise", value=revision(ready, step))
    assert raised.value.errors[0]["pointer"] == "/value/withdraw/1"


def test_a_step_of_another_run_is_not_withdrawn(house):
    house.tool("t")
    run, stranger = house.run(), house.run()
    (step,) = house.propose(stranger, ("t", {}))
    stop = house.stop(run)
    with refused(InvalidBody):
        house.respond(stop, "revise", value=revision(step))


@pytest.mark.parametrize(
    "value",
    [
        None,
        {},
        {"guidance": ""},
        {"guidance": "x", "more": 1},
        {"guidance": "x", "withdraw": ["no"]},
    ],
)
def test_a_revision_that_is_none_is_refused(house, value):
    stop = house.stop(house.run())
    with refused(InvalidBody):
        house.respond(stop, "revise", value=value)


def test_an_input_may_be_answered_so_and_a_request_may_not(house):
    run = house.run()
    asked = house.interrupt(house.agent, run, "input_required", question="Which?")
    house.respond(asked, "revise", value=revision())
    assert fresh(run).status == "running"
    request = house.interrupt(house.agent, run, "agent_requested")
    with refused(InvalidBody):
        house.respond(request, "revise", value=revision())


def test_who_may_decide_a_tool_of_the_run_may_revise_it_and_not_release_it(house):
    run = house.run()
    stop = house.stop(run)
    with refused(MayNot):
        house.respond(stop, "revise", by="alice", value=revision())
    house.policy.deciders.add(house.people["alice"].id)
    with refused(MayNot):
        house.respond(stop, "resume", by="alice")
    house.respond(stop, "revise", by="alice", value=revision())
    assert fresh(run).status == "running"


def test_the_requester_may_stop_and_revise_and_not_release(house):
    run = house.run(requested_by=house.people["alice"].name)
    stop = house.stop(run, by="alice")
    with refused(MayNot):
        house.respond(stop, "resume", by="alice")
    house.respond(stop, "revise", by="alice", value=revision())
    assert fresh(run).status == "running"


def test_beside_a_recovery_it_takes_a_stop_and_the_recovery_goes_on_holding(house):
    house.tool("t")
    run, step = house.lost()
    with refused(InvalidBody):
        house.respond(open_of(step), "revise", value=revision())
    house.respond(house.stop(run), "revise", value=revision())
    assert (fresh(run).status, open_of(run).reason) == ("suspended", "outcome_unknown")
