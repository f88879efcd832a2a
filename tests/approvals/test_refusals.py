"""Every refusal of a decision: its code, and that it changed nothing."""

from datetime import timedelta

import pytest
from django.db import transaction

from approvals import errors
from approvals.models import Decision, Gate
from approvals.services.decisions import decide_gate
from config.errors import InvalidBody, PeopleOnly, VersionMismatch
from interrupts.errors import InvalidArguments
from interrupts.models import Interrupt, Step
from tenants.conditions import IfMatch
from tests.approvals.house import MAY_DECIDE, fresh, no_preview

OTHER = "sha256:" + "0" * 64


def refused(house, gate, problem, who="alice", verdict="approve", **more):
    before = house.trace(gate)
    with pytest.raises(problem) as told:
        house.decide(who, gate, verdict, **more)
    assert house.trace(gate) == before
    return told.value


def test_an_agent_never_decides(house):
    gate = house.ask()
    before = house.trace(gate)

    with pytest.raises(PeopleOnly):
        decide_gate(house.agent, gate.pk, verdict="approve", digest=gate.digest)

    assert house.trace(gate) == before


@pytest.mark.parametrize("who", ["bob", "olga", "ada", "vera"])
def test_who_has_no_authority_over_the_tool_is_refused(house, who):
    refused(house, house.ask(), errors.NotAnApprover, who)


def test_a_member_who_has_left_is_refused(house):
    from tenants.models import Membership

    gate = house.ask()
    Membership.objects.filter(user=house.people["alice"].id).update(active=False)

    refused(house, gate, errors.NotAnApprover)


def test_the_requester_of_the_run_does_not_decide_it(house):
    gate = house.ask(run=house.run(requested_by="alice"))

    refused(house, gate, errors.OwnRequest)
    assert house.decide("carol", gate).state == "approved"


def test_the_owner_of_the_agent_does_not_decide_what_it_does(house):
    from tenants.models import Agent

    Agent.objects.filter(pk=house.agent.id).update(owner=house.people["alice"].id)
    gate = house.ask()

    refused(house, gate, errors.OwnRequest)


def test_authority_is_refused_before_the_state_is_told(house):
    gate = house.ask()
    house.decide("carol", gate, "reject", reason="no")

    refused(house, gate, errors.NotAnApprover, "bob")


def test_approvers_of_a_rule_narrow_who_may(house):
    house.group("finance", "carol")
    house.policy(
        {
            "name": "money",
            "trigger": "action",
            "tools": ["payments.*"],
            "then": "approve",
            "approvers": ["finance"],
        }
    )
    gate = house.ask()

    refused(house, gate, errors.NotAnApprover)
    assert house.decide("carol", gate).state == "approved"


def test_a_final_gate_is_decided(house):
    gate = house.ask()
    house.decide("alice", gate)

    refused(house, gate, errors.AlreadyDecided, "carol")
    refused(house, gate, errors.AlreadyDecided, "alice", "reject", reason="changed my mind")


def test_a_decision_names_what_was_shown(house):
    refused(house, house.ask(), errors.DigestMismatch, digest=OTHER)


def test_nothing_is_decided_while_the_preview_is_taken(house):
    house.tool(previewed=True)
    gate = Gate.objects.get(pk=house.propose().gate)
    assert gate.state == "preparing"

    refused(house, gate, errors.GatePreparing)
    refused(house, gate, errors.GatePreparing, verdict="reject", reason="no")


def test_another_version_of_the_run_is_refused(house):
    gate = house.ask()

    refused(house, gate, VersionMismatch, if_match=IfMatch(frozenset({"1"})))


@pytest.mark.parametrize("reason", [None, "", "  \n"])
@pytest.mark.parametrize("verdict", ["reject", "request_changes"])
def test_a_refusal_needs_a_reason(house, verdict, reason):
    told = refused(house, house.ask(), InvalidBody, verdict=verdict, reason=reason)

    assert told.errors[0]["pointer"] == "/reason"


@pytest.mark.parametrize(
    ("verdict", "more", "pointer"),
    [
        ("respond", {}, "/value"),
        ("approve", {"value": 1}, "/value"),
        ("reject", {"reason": "no", "value": 1}, "/value"),
        ("reject", {"reason": "no", "arguments": {}}, "/arguments"),
        ("respond", {"value": 1, "arguments": {}}, "/arguments"),
        ("reject", {"reason": "no", "hold_seconds": 1}, "/hold_seconds"),
        ("approve", {"hold_seconds": 61}, "/hold_seconds"),
    ],
)
def test_members_belong_to_their_verdict(house, verdict, more, pointer):
    told = refused(house, house.ask(), InvalidBody, verdict=verdict, **more)

    assert told.errors[0]["pointer"] == pointer


def test_only_what_is_of_low_risk_is_held(house):
    house.tool(risk="medium")
    gate = house.ask()
    house.look(gate, "alice")

    refused(house, gate, InvalidBody, hold_seconds=5)


@pytest.mark.parametrize(
    "arguments", [{"payment": "p-1", "amount": "lots"}, {"payment": "p-1"}, {"amount": 1}]
)
def test_a_broken_edit_is_refused_with_its_place(house, arguments):
    told = refused(house, house.ask(), InvalidArguments, arguments=arguments)

    assert told.errors[0]["pointer"].startswith("/arguments")


def test_an_edit_is_judged_by_policy_too(house):
    house.policy(
        {
            "name": "cap",
            "trigger": "action",
            "tools": ["payments.*"],
            "condition": "decimal(arguments.amount) > decimal('1000')",
            "then": "deny",
            "reason": "over the cap",
        }
    )
    gate = house.ask()

    told = refused(
        house, gate, errors.DeniedByPolicy, arguments={"payment": "p-1", "amount": "5000.00"}
    )

    assert told.detail == "over the cap"
    assert house.decide("alice", gate).state == "approved"


def test_an_edit_is_made_only_by_who_may_decide_the_edited_call(house):
    house.group("finance", "carol")
    house.policy(
        {
            "name": "big",
            "trigger": "action",
            "tools": ["payments.*"],
            "condition": "decimal(arguments.amount) > decimal('100')",
            "then": "approve",
            "approvers": ["finance"],
        }
    )
    gate = house.ask()

    refused(house, gate, errors.NotAnApprover, arguments={"payment": "p-1", "amount": "500.00"})


# Ceremonies


def test_what_is_reviewed_must_have_been_opened(house):
    house.tool(risk="medium")
    gate = house.ask()
    assert gate.ceremony == "review"
    house.look(gate, "carol")

    refused(house, gate, errors.ConfirmationRequired)
    assert house.decide("carol", gate).state == "approved"


def test_to_reject_nothing_need_have_been_opened(house):
    house.tool(effect="irreversible", risk="high")
    gate = house.ask()

    assert house.decide("alice", gate, "reject", reason="no").state == "rejected"


@pytest.mark.parametrize("given", [None, False, "true"])
def test_what_is_explicit_is_confirmed_with_true(house, given):
    house.tool(risk="high")
    gate = house.ask()
    house.look(gate, "alice")
    assert gate.ceremony == "explicit"

    refused(house, gate, errors.ConfirmationRequired, confirmation=given)
    assert house.decide("alice", gate, confirmation=True).state == "approved"


@pytest.mark.parametrize("given", [None, True, "refund", "REFUND 20.00", "refund {amount}"])
def test_what_is_irreversible_is_typed(house, given):
    house.tool(effect="irreversible", confirmation="refund {amount}")
    gate = house.ask()
    house.look(gate, "alice")
    assert (gate.ceremony, gate.required_confirmation) == ("typed", "refund 20.00")

    refused(house, gate, errors.ConfirmationRequired, confirmation=given)
    assert house.decide("alice", gate, confirmation="refund 20.00").state == "approved"


def test_the_typed_text_is_made_of_the_arguments_that_will_run(house):
    house.tool(effect="irreversible", confirmation="refund {amount}")
    gate = house.ask()
    house.look(gate, "alice")
    edited = {"payment": "p-1", "amount": "7.00"}

    refused(house, gate, errors.ConfirmationRequired, arguments=edited, confirmation="refund 20.00")
    decided = house.decide("alice", gate, arguments=edited, confirmation="refund 7.00")
    assert decided.state == "approved"


def test_the_tools_name_is_typed_where_it_asks_for_nothing_else(house):
    house.tool(effect="irreversible")

    assert house.ask().required_confirmation == "payments.refund"


@pytest.mark.parametrize(
    ("effect", "risk", "raised"),
    [
        ("reversible", "low", "review"),
        ("reversible", "medium", "explicit"),
        ("reversible", "high", "typed"),
        ("irreversible", "low", "typed"),
    ],
)
def test_a_preview_that_cannot_be_taken_raises_the_ceremony(house, effect, risk, raised):
    house.previews["payments.refund"] = no_preview
    house.tool(previewed=True, effect=effect, risk=risk)

    gate = house.ask()

    assert (gate.state, gate.ceremony, gate.preview) == ("pending", raised, None)
    assert "down" in gate.preview_error


# Time and change


def test_an_expired_gate_is_refused_and_recorded_by_the_system(house):
    house.policy(
        {
            "name": "quick",
            "trigger": "action",
            "tools": ["payments.*"],
            "then": "approve",
            "expires_in": 60,
        }
    )
    gate = house.ask()
    past = gate.opened_at - timedelta(seconds=1)
    Gate.objects.filter(pk=gate.pk).update(expires_at=past)
    Interrupt.objects.filter(pk=gate.interrupt_id).update(expires_at=past)

    with pytest.raises(errors.GateExpired):
        house.decide("alice", gate)

    assert fresh(gate).state == "expired"
    assert not Decision.objects.exists()
    assert Step.objects.get(pk=gate.step_id).status == "rejected"
    assert Interrupt.objects.get(pk=gate.interrupt_id).resolution == "time_out"
    refused(house, gate, errors.GateExpired)
    refused(house, gate, errors.NotAnApprover, "bob")
    assert house.work(gate.run_id) == 0
    assert house.calls == []


def test_a_policy_that_denies_by_now_withdraws_the_gate(house):
    gate = house.ask()
    house.policy(
        {
            "name": "no-more",
            "trigger": "action",
            "tools": ["payments.*"],
            "then": "deny",
            "reason": "frozen",
        }
    )

    with pytest.raises(errors.AlreadyDecided):
        house.decide("alice", gate)

    step = Step.objects.get(pk=gate.step_id)
    assert fresh(gate).state == "withdrawn"
    assert (step.status, step.reason) == ("denied", "frozen")
    assert Interrupt.objects.get(pk=gate.interrupt_id).resolution == "resume"
    assert not Decision.objects.exists()
    refused(house, gate, errors.AlreadyDecided)


def test_who_may_not_decide_brings_nothing_up_to_date(house):
    gate = house.ask()
    house.policy({"name": "no", "trigger": "action", "tools": ["*"], "then": "deny"})

    refused(house, gate, errors.NotAnApprover, "bob")
    assert fresh(gate).state == "pending"


def test_a_newer_version_of_the_tool_is_asked_about_anew(house):
    gate = house.ask()
    house.tool(risk="high")

    with pytest.raises(errors.AlreadyDecided):
        house.decide("alice", gate)

    step = Step.objects.get(pk=gate.step_id)
    newer = Gate.objects.get(pk=step.gate)
    assert fresh(gate).state == "superseded"
    assert (newer.state, newer.ceremony, newer.tool_version.number) == ("pending", "explicit", 2)
    assert (step.status, step.tool_number) == ("waiting", 2)
    assert Interrupt.objects.get(pk=gate.interrupt_id).gate == newer.pk
    assert newer.digest != gate.digest
    house.look(newer, "alice")
    assert house.decide("alice", newer, confirmation=True).state == "approved"
    assert house.work(gate.run_id) == 1


def test_arguments_that_fit_the_newer_version_no_more_are_denied(house):
    gate = house.ask()
    house.tool(arguments={"type": "object", "required": ["iban"]})

    with pytest.raises(errors.AlreadyDecided):
        house.decide("alice", gate)

    assert fresh(gate).state == "withdrawn"
    assert Step.objects.get(pk=gate.step_id).status == "denied"


def test_a_retired_tool_is_denied(house):
    from django.utils import timezone

    from interrupts.models import Tool
    from tenants.authority import raise_authority

    gate = house.ask()
    with transaction.atomic():
        Tool.objects.update(retired_at=timezone.now())
        raise_authority()

    with pytest.raises(errors.AlreadyDecided):
        house.decide("alice", gate)

    assert fresh(gate).state == "withdrawn"
    assert Step.objects.get(pk=gate.step_id).status == "denied"


def test_authority_taken_away_while_the_page_was_open_is_gone(house):
    gate = house.ask()
    house.grant("alice", "mail.*")

    refused(house, gate, errors.NotAnApprover)
    assert house.decide("carol", gate).state == "approved"
    assert MAY_DECIDE["carol"] == ["*"]
