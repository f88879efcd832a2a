"""What a gate shows, to whom, and what it keeps of that."""

import json

import pytest

from approvals import selectors
from approvals.models import Assignment, Gate, View
from approvals.services import gates
from config import jsontext
from interrupts.errors import NotYourRun
from interrupts.models import Interrupt, Step
from interrupts.services.steps import propose
from tenants.ids import uuid7
from tenants.principal import Principal
from tests.approvals.house import CALL, House, fresh

CARD = "4111111111111111"


def assigned(gate):
    return sorted(Assignment.objects.filter(gate=gate).values_list("user__username", flat=True))


def shown(house: House, gate, who="alice"):
    return house.request(who, "GET", f"/gates/{gate.pk}")[1]


def test_a_gate_asks_everybody_who_may_decide_it_now(house):
    gate = house.ask()

    assert assigned(gate) == ["alice", "carol"]
    house.decide("alice", gate)
    assert assigned(gate) == []


def test_the_requester_is_not_asked(house):
    assert assigned(house.ask(run=house.run(requested_by="carol"))) == ["alice"]


def test_a_gate_says_what_why_and_what_could_go_wrong(house):
    house.tool(
        headline="Refund {amount} of {payment}",
        consequence="{amount} leaves the account",
        failure_modes=["The customer is refunded twice"],
        blast_radius="one customer",
    )
    before = {"tool": "payments.refund", "arguments": {"payment": "p-0", "amount": "1.00"}}
    asked = {
        "tool": "payments.refund",
        "arguments": CALL,
        "reasoning": "<b>the customer is right</b>",
        "confidence": 0.9,
        "failure_modes": ["It may be the wrong one"],
    }
    (_, step), _ = propose(house.agent, house.run().pk, proposals=[before, asked])
    gate = Gate.objects.get(pk=step.gate)

    seen = shown(house, gate)

    what = seen["what"]
    assert (what["headline"], what["tool"], what["tool_version"]) == (
        "Refund 20.00 of p-1",
        "payments.refund",
        2,
    )
    assert (what["consequence"], what["arguments"]) == ("20.00 leaves the account", CALL)
    assert seen["why"]["reasoning"] == "<b>the customer is right</b>"
    assert (seen["why"]["goal"], seen["why"]["confidence"]) == ("make Bob happy", 0.9)
    assert [(one["tool"], one["status"]) for one in seen["why"]["previous_steps"]] == [
        ("payments.refund", "waiting")
    ]
    assert seen["what_could_go_wrong"] == {
        "failure_modes": ["The customer is refunded twice"],
        "named_by_agent": ["It may be the wrong one"],
        "reversible": True,
        "compensation": None,
        "blast_radius": "one customer",
    }
    assert seen["quorum"] == {"needed": 1, "given": 0}
    assert [one["verdict"] for one in seen["allowed"]] == [
        "approve",
        "reject",
        "request_changes",
        "respond",
    ]
    assert seen["triggers"][0]["trigger"] == "default"
    assert (seen["interrupt"], seen["step"]) == (str(gate.interrupt_id), str(gate.step_id))


def refunds(house, run, *payments):
    """Propose these refunds in one turn, each of which waits."""
    proposals = [
        {"tool": "payments.refund", "arguments": {"payment": one, "amount": "1.00"}}
        for one in payments
    ]
    return propose(house.agent, run.pk, proposals=proposals)[0]


def test_the_steps_before_a_gate_are_shown_as_they_were_when_it_opened(house):
    before, asked = refunds(house, house.run(), "p-1", "p-2")
    house.decide("alice", Gate.objects.get(pk=before.gate), "reject", reason="not this one")
    assert Step.objects.get(pk=before.pk).status == "rejected"
    seen = shown(house, Gate.objects.get(pk=asked.gate))
    assert [one["status"] for one in seen["why"]["previous_steps"]] == ["waiting"]


def test_the_latest_steps_before_each_of_several_are_told_oldest_first(house):
    one, other = (refunds(house, house.run(), *names) for names in ("abcd", "ef"))
    found = selectors.previous_steps([one[3], one[0], other[1]], 2)
    assert {step: [before.id for before in those] for step, those in found.items()} == {
        one[3].pk: [one[1].pk, one[2].pk],
        one[0].pk: [],
        other[1].pk: [other[0].pk],
    }


def test_the_strictest_trigger_is_the_interrupts_reason(house):
    house.policy(
        {"name": "unsure", "trigger": "confidence", "below": 0.5, "then": "approve", "quorum": 2},
        {"name": "all", "trigger": "action", "tools": ["*"], "then": "approve"},
    )
    gate = house.ask(confidence=0.2)

    assert Interrupt.objects.get(pk=gate.interrupt_id).reason == "confidence_threshold"
    assert (gate.rule, gate.quorum) == ("unsure", 2)
    assert sorted(one["rule"] for one in gate.triggers) == ["all", "unsure"]


def test_the_digest_names_all_that_is_shown_as_what(house):
    first, second = house.ask(), house.ask()
    other = house.ask(arguments={**CALL, "amount": "21.00"})

    assert first.digest == second.digest
    assert first.digest == jsontext.digest(
        {"tool": "payments.refund", "tool_version": 1, "arguments": CALL, "preview": None}
    )
    assert other.digest != first.digest


def test_the_journal_holds_no_argument(house):
    from tenants.models import JournalEntry

    gate = house.ask(arguments={"payment": "p-secret-1", "amount": "20.00"})
    house.decide("alice", gate, arguments={"payment": "p-secret-2", "amount": "20.00"})

    texts = " ".join(JournalEntry.objects.values_list("text", flat=True))
    assert "gate.opened" in texts
    assert "p-secret" not in texts


# Who was shown what


def test_looking_keeps_one_view_for_each_thing_shown(house):
    gate = house.ask()
    before = house.trace(gate)

    house.look(gate, "alice", "alice", "vera")

    after = house.trace(gate)
    assert after.pop("views") == 2
    before.pop("views")
    assert after == before
    view = View.objects.get(user=house.people["alice"].id)
    assert view.digest == gate.digest
    assert view.snapshot["what"]["arguments"] == CALL


def test_an_agent_looking_leaves_no_view(house):
    gate = house.ask()

    gates.look_at_gate(house.agent, gate.pk)

    assert not View.objects.exists()


def test_another_agent_sees_nothing_of_it(house):
    gate = house.ask()
    other = Principal("agent", uuid7(), house.tenant.pk, "other", None)

    with pytest.raises(NotYourRun):
        gates.look_at_gate(other, gate.pk)


# What is sensitive


@pytest.fixture
def sensitive(house):
    house.tool(
        sensitive=["/card"],
        headline="Refund {amount} to {card}",
        previewed=True,
    )
    return house


def test_sensitive_values_are_shown_nowhere(sensitive):
    from tests.approvals.house import shown_preview

    sensitive.previews["payments.refund"] = lambda *_: shown_preview(
        f"to card {CARD}",
        changes=[{"object": f"card {CARD}", "before": CARD, "after": int(CARD)}],
        warnings=[f"{CARD} is old"],
    )
    gate = sensitive.ask(arguments={**CALL, "card": CARD})
    sensitive.look(gate, "alice")

    seen = shown(sensitive, gate)
    listed = sensitive.request("bot", "GET", "/gates")[1]
    everything = json.dumps([seen, listed, list(View.objects.values("snapshot"))])
    assert CARD not in everything
    assert "1111" not in everything
    assert seen["what"]["arguments"]["card"] == "•••"
    assert seen["what"]["headline"] == "Refund 20.00 to •••"
    assert seen["what"]["preview"]["summary"] == "to card •••"
    assert CARD not in json.dumps(Gate.objects.values("preview", "headline", "why")[0])


def test_no_shown_digest_can_be_had_from_a_guessed_value(sensitive):
    gate = sensitive.ask(arguments={**CALL, "card": CARD})

    assert gate.arguments_digest != jsontext.digest({**CALL, "card": CARD})
    other = sensitive.ask(arguments={**CALL, "card": "4000000000000000"})
    assert gate.digest != other.digest


def test_a_masked_value_sent_back_stays_what_it_is(sensitive):
    gate = sensitive.ask(arguments={**CALL, "card": CARD})
    edited = {"payment": "p-1", "amount": "5.00", "card": "•••"}

    sensitive.decide("alice", gate, arguments=edited)
    sensitive.work(gate.run_id)

    assert sensitive.calls == [("payments.refund", {**edited, "card": CARD})]
    assert sensitive.decided("alice", gate, "approve", arguments=edited).replayed
    kept = shown(sensitive, gate)["decisions"][0]["edits"]
    assert kept == edited


def test_a_mask_with_nothing_behind_it_is_refused(sensitive):
    from interrupts.errors import InvalidArguments

    gate = sensitive.ask()
    before = sensitive.trace(gate)

    with pytest.raises(InvalidArguments) as told:
        sensitive.decide("alice", gate, arguments={**CALL, "card": "•••"})

    assert told.value.errors[0]["pointer"] == "/arguments/card"
    assert sensitive.trace(gate) == before


# Withdrawn by the engine


def test_a_cancelled_run_withdraws_its_gates(house):
    from interrupts.services.runs import cancel_run

    gate = house.ask()

    cancel_run(house.people["olga"], gate.run_id)

    assert fresh(gate).state == "withdrawn"
    assert assigned(gate) == []
    assert Step.objects.get(pk=gate.step_id).status == "cancelled"


def test_an_approved_gate_stays_approved_when_its_run_is_cancelled(house):
    from interrupts.services.runs import cancel_run

    gate = house.ask()
    house.decide("alice", gate)

    cancel_run(house.people["olga"], gate.run_id)

    assert fresh(gate).state == "approved"
    assert house.work(gate.run_id) == 0
    assert house.calls == []
