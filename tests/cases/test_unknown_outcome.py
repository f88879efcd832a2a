"""Cases of the kind unknown-outcome: nobody knows whether it was performed."""

from __future__ import annotations

from functools import partial

import pytest

from tests.cases.world import BY_AGENT, Pair, World, auto, deliver

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "sweep"])
CHARGE = {"amount": "79.98", "card": "c1"}


def test_a_planned_again_call_of_unknown_outcome_is_not_made_again(world: World) -> None:
    """rf-unk-01 (square/square-mcp-server#31; stripe/ai#402; crewAIInc/crewAI#5802).

    After a time-out the agent plans the same charge as a new step, under a key of its own.
    """
    world.given(world.tool("payments.charge", effect="irreversible"))
    run = world.run()
    step = world.propose(run, "payments.charge", CHARGE, key="k-1")
    world.outside.loses_the_answer("payments.charge")
    world.decide(step)
    world.work()
    world.outside.behaves("payments.charge")

    assert world.fresh(step)["status"] == "unknown"
    assert world.fresh(run)["suspension"] == "unknown_outcome"
    again = {"tool": "payments.charge", "arguments": CHARGE, "key": "k-2"}
    reply = world.refused("ops", "POST", f"/runs/{run['id']}/steps", again, status=409)
    assert reply.code == "run-suspended"
    # Planned again in a new run, it waits for the outcome of the first.
    other = world.run()
    twin = world.propose(other, "payments.charge", CHARGE, key="k-2")
    assert (twin["status"], twin["gate"], world.inbox("appr1")) == ("waiting", None, [])
    world.catch_up()
    assert world.outside.times["payments.charge"] == 1

    world.advance(11)
    world.catch_up()
    assert world.fresh(step)["status"] == "succeeded"
    assert world.outside.keys_sent("payments.charge") == [step["id"]]


def test_a_look_alike_is_shown_with_its_twin_whatever_policy_allows(world: World) -> None:
    """rf-unk-01, its second expectation: no automatic rule passes a probable duplicate."""
    world.given(
        world.tool("payments.charge", effect="irreversible", reconcile=None),
        rules=[auto("payments.charge")],
    )
    run, other = world.run(), world.run()
    world.outside.loses_the_answer("payments.charge")
    step = world.propose(run, "payments.charge", CHARGE)
    world.work()
    world.outside.behaves("payments.charge")
    world.recover(step, "unresolvable")
    twin = world.propose(other, "payments.charge", CHARGE)
    world.catch_up()
    twin = world.fresh(twin)
    assert twin["status"] == "waiting"
    assert world.gate(twin)["twin"] == step["id"]
    assert world.outside.times["payments.charge"] == 1


def test_the_key_is_the_steps_own_on_every_attempt(world: World) -> None:
    """rf-unk-02 (Adyen/adyen-commercetools#1305).

    The client's time stamp and nonce differ at each retry, and a key hashed from them would too.
    """
    world.given(world.tool("payments.charge", key_lifetime=86400), rules=[auto("payments.charge")])
    world.outside.loses_the_request("payments.charge")
    run = world.run()
    first = {"amount": "5.00", "client_meta": {"createdAt": "10:00", "nonce": "a"}}
    step = world.propose(run, "payments.charge", first, key="s1")
    world.work()
    second = {**first, "client_meta": {"createdAt": "10:01", "nonce": "b"}}
    body = {"tool": "payments.charge", "arguments": second, "key": "s1"}
    reply = world.refused("ops", "POST", f"/runs/{run['id']}/steps", body, status=409)
    assert reply.code == "step-key-reused"

    for _ in range(2):  # asked, not performed, sent again: three unknown ones set it aside
        world.advance(40)
        world.catch_up()
    world.outside.behaves("payments.charge")
    world.advance(40)
    world.catch_up()
    world.advance(40)
    world.catch_up()
    assert world.fresh(step)["status"] == "succeeded"
    sent = world.outside.keys_sent("payments.charge")
    assert len(sent) == world.fresh(step)["attempts"] > 2
    assert set(sent) == {step["id"]}
    assert world.outside.calls("payments.charge") == [(step["id"], first)]


def test_what_was_called_lost_may_still_say_that_it_succeeded(world: World) -> None:
    """rf-unk-03 (dust-tt/dust#4272).

    The engine gives the first attempt up while its process goes on and succeeds.
    """
    world.given(world.tool("t", executor=BY_AGENT), rules=[auto("t")])
    run = world.run()
    step = world.propose(run, "t")
    first = world.claim(step)
    world.advance(61)
    world.catch_up()
    assert world.fresh(step)["status"] == "unknown"
    assert world.fresh(run)["suspension"] == "unknown_outcome"
    assert world.refused("ops", "POST", f"/steps/{step['id']}/claim", {}, status=409).code == (
        "already-claimed"
    )
    world.receipt(first, external_id="P-1")
    assert (world.fresh(step)["status"], world.fresh(step)["external_id"]) == ("succeeded", "P-1")
    assert (world.fresh(run)["status"], world.fresh(step)["attempts"]) == ("running", 1)


def test_two_attempts_that_both_succeeded_are_told_as_two_effects(world: World) -> None:
    """rf-unk-03, its last expectation: both external ids are kept and flagged."""
    world.given(world.tool("t", executor=BY_AGENT), rules=[auto("t")])
    run = world.run()
    step = world.propose(run, "t")
    first = world.claim(step)
    world.advance(61)
    world.catch_up()
    world.recover(step, "not_performed")
    world.receipt(world.claim(step), external_id="P-2")
    world.receipt(first, external_id="P-1")

    step = world.fresh(step)
    assert (step["status"], step["external_id"]) == ("succeeded", "P-2")
    assert {one["external_id"] for one in step["receipts"] if one["external_id"]} == {"P-1", "P-2"}
    (told,) = [one for one in world.journal(run) if one["kind"] == "effect.doubled"]
    assert told["data"]["step"] == step["id"]
    assert told["data"]["external_ids"] == ["P-2", "P-1"]


def test_an_effect_is_undone_once_whoever_asks_and_however_often(world: World, pair: Pair) -> None:
    """rf-unk-05 (pocketpaw/pocketpaw#1323; vercel/workflow#41), fifty times over.

    A compensation runs twice, or by somebody who may not have it run.
    """
    world.given(world.tool("charge", effect="reversible"), rules=[auto("charge")])
    run = world.run()
    group = [{"tool": "charge", "arguments": {"n": n}} for n in range(50)]
    charges = world.post("ops", f"/runs/{run['id']}/steps", {"steps": group})["steps"]
    world.work()
    path = f"/steps/{charges[0]['id']}/compensation"
    for who in ("ops", "appr1", "viewer"):
        world.refused(who, "POST", path, {}, status=403)

    for charge in charges:
        ask = partial(world.send, "opr", "POST", f"/steps/{charge['id']}/compensation", {})
        assert [reply.status for reply in pair.at_once(ask, ask)] == [202, 202]
        world.sweep()
        (hint,) = [one for one in world.messages if one[0] == "interrupts.compensate"]
        world.messages.clear()
        pair.at_once(partial(deliver, hint), partial(deliver, hint))
        deliver(hint)
    assert {world.fresh(charge)["status"] for charge in charges} == {"compensated"}
    keys = [f"{charge['id']}:compensate" for charge in charges]
    assert [key for _, key in world.outside.undone] == keys
    assert world.outside.undo_calls == 50
    (receipt,) = [one for one in world.fresh(charges[0])["receipts"] if one["compensation"]]
    assert receipt["outcome"] == "succeeded"


def test_effects_are_undone_in_the_reverse_of_the_order_in_which_they_were_done(
    world: World,
) -> None:
    """rf-unk-05, its second expectation: the order is the reverse of completion."""
    world.given(
        world.tool("charge", effect="reversible", executor=BY_AGENT), rules=[auto("charge")]
    )
    run = world.run()
    one, two = (world.propose(run, "charge", {"n": n}) for n in (1, 2))
    claims = [world.claim(one), world.claim(two)]
    world.receipt(claims[1])
    world.receipt(claims[0])
    world.post("opr", f"/runs/{run['id']}/cancel", {"compensate": True})
    for _ in range(3):
        world.catch_up()
    assert [key for _, key in world.outside.undone] == [
        f"{step['id']}:compensate" for step in (one, two)
    ]


def test_a_compensation_that_is_refused_is_shown_and_waits_for_a_person(world: World) -> None:
    """rf-unk-05, its last expectation: a failed compensation is never swallowed."""
    world.given(world.tool("charge", effect="reversible"), rules=[auto("charge")])
    run = world.run()
    charge = world.propose(run, "charge")
    world.work()
    world.outside.refuses("undo charge")
    world.post("opr", f"/steps/{charge['id']}/compensation", {})
    world.catch_up()
    asked = world.open_of(charge)
    assert (asked["reason"], world.fresh(run)["suspension"]) == (
        "effect_failed",
        "partially_complete",
    )
    world.outside.behaves("undo charge")
    world.answer(asked, "compensate", value={"action": "try_again"})
    world.catch_up()
    assert world.fresh(charge)["status"] == "compensated"
    assert len(world.outside.undone) == 1
