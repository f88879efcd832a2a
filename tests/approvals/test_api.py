"""Gates, decisions and policy over HTTP."""

import re
import secrets
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connections

from approvals.models import Decision, Gate, View
from config.keys import secret_hash
from tenants.ids import uuid7
from tenants.models import Membership, Role, Tenant, User, UserToken
from tenants.scope import tenant_scope
from tests.approvals.house import CALL, fresh

APPROVE = {"name": "two", "trigger": "action", "tools": ["*"], "then": "approve", "quorum": 2}


def decide(house, gate, who="alice", verdict="approve", **more):
    headers = more.pop("headers", {})
    body = {"verdict": verdict, "digest": gate.digest, **more}
    return house.request(who, "POST", f"/gates/{gate.pk}/decisions", body, **headers)


def test_a_decision_answers_with_the_gate_and_the_runs_version(house):
    gate = house.ask()

    status, body, headers = decide(house, gate)

    assert (status, body["state"]) == (201, "approved")
    assert body["decisions"][0]["by"] == "alice"
    assert body["quorum"] == {"needed": 1, "given": 1}
    assert headers["ETag"] == f'"{body["state_version"]}"'
    seen = house.request("alice", "GET", f"/gates/{gate.pk}")[1]
    assert body == seen
    assert body["similar"] is None


def test_the_same_decision_again_is_answered_as_replayed(house):
    gate = house.ask()
    decide(house, gate)

    status, body, headers = decide(house, gate)

    assert (status, headers["Idempotent-Replayed"]) == (200, "true")
    assert len(body["decisions"]) == 1


def test_a_request_with_a_key_is_answered_again_whatever_was_decided_since(house):
    house.policy(APPROVE)
    gate = house.ask()
    key = {"headers": {"Idempotency-Key": "k1"}}
    first = decide(house, gate, **key)
    decide(house, gate, "carol")

    again = decide(house, gate, **key)

    assert again[:2] == first[:2] == (201, first[1])
    assert again[2]["Idempotent-Replayed"] == "true"
    assert decide(house, gate, verdict="reject", reason="no", **key)[0] == 422
    assert Decision.objects.count() == 2


def test_a_refusal_is_not_kept_under_its_key(house):
    house.tool(risk="medium")
    gate = house.ask()
    key = {"headers": {"Idempotency-Key": "k1"}}

    assert decide(house, gate, **key)[1]["code"] == "confirmation-required"
    house.request("alice", "GET", f"/gates/{gate.pk}")
    assert decide(house, gate, **key)[0] == 201


@pytest.mark.parametrize(
    ("who", "status", "code"),
    [
        ("bot", 403, "people-only"),
        ("other", 403, "people-only"),
        ("bob", 403, "not-an-approver"),
        ("olga", 403, "not-an-approver"),
        ("vera", 403, "forbidden"),
    ],
)
def test_who_may_not_is_told_so(house, who, status, code):
    gate = house.ask()
    before = house.trace(gate)

    told = decide(house, gate, who)

    assert (told[0], told[1]["code"]) == (status, code)
    assert house.trace(gate) == before


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/verdict"),
        ({"verdict": None, "digest": "x"}, "/verdict"),
        ({"verdict": "Approve", "digest": "x"}, "/verdict"),
        ({"verdict": True, "digest": "x"}, "/verdict"),
        ({"verdict": "approve"}, "/digest"),
        ({"verdict": "approve", "digest": "x", "approved_by": "carol"}, "/approved_by"),
        ({"verdict": "approve", "digest": "x", "arguments": []}, "/arguments"),
        ({"verdict": "approve", "digest": "x", "tool": "mail.send"}, "/tool"),
        ({"verdict": "approve", "digest": "x", "hold_seconds": 61}, "/hold_seconds"),
        ({"verdict": "reject", "digest": "x", "reason": 7}, "/reason"),
    ],
)
def test_a_decision_of_another_shape_is_refused(house, body, pointer):
    gate = house.ask()
    before = house.trace(gate)

    status, told, _ = house.request("alice", "POST", f"/gates/{gate.pk}/decisions", body)

    assert (status, told["code"]) == (422, "invalid-body")
    assert pointer in [error["pointer"] for error in told["errors"]]
    assert house.trace(gate) == before


def test_refusals_name_what_is_wrong(house):
    house.tool(effect="irreversible", confirmation="refund {amount}")
    gate = house.ask()
    house.look(gate, "alice")

    assert decide(house, gate, digest="sha256:0")[1]["code"] == "digest-mismatch"
    assert decide(house, gate)[1]["code"] == "confirmation-required"
    assert decide(house, gate, headers={"If-Match": '"1"'})[0] == 412
    assert decide(house, gate, confirmation="refund 20.00")[0] == 201
    assert decide(house, gate, "carol")[1]["code"] == "already-decided"


def test_the_refusal_of_a_superseded_gate_carries_the_one_in_its_place(house):
    gate = house.ask()
    house.tool(risk="high")

    status, told, _ = decide(house, gate)

    assert (status, told["code"]) == (409, "already-decided")
    assert told["gate"]["state"] == "pending"
    assert told["gate"]["id"] != str(gate.pk)
    assert told["gate"]["what"]["tool_version"] == 2


def test_an_unknown_gate_is_not_found(house):
    body = {"verdict": "approve", "digest": "x"}
    for who in ("alice", "bot"):
        for method, path, sent in (
            ("GET", f"/gates/{uuid7()}", None),
            ("GET", "/gates/not-an-id", None),
            ("POST", f"/gates/{uuid7()}/decisions", body),
            ("POST", f"/gates/{uuid7()}/decisions", {}),
            ("DELETE", f"/gates/{uuid7()}/decisions/{uuid7()}", None),
        ):
            status, told, _ = house.request(who, method, path, sent)
            assert (status, told["code"]) == (404, "not-found"), (who, method, path)


def test_nothing_of_a_gate_exists_for_another_tenant(house):
    gate = house.ask()
    decision = house.decided("alice", house.ask(), "approve").decision
    asked = {"text": "Which order?"}
    question = house.request("alice", "POST", f"/gates/{gate.pk}/questions", asked)[1]["id"]
    secret = f"aby_user_{secrets.token_urlsafe(32)}"
    before = house.trace(gate)

    def as_stranger():
        try:
            other = uuid7()
            with tenant_scope(other):
                Tenant.objects.create(id=other, slug="umbrella", name="Umbrella")
                user = User.objects.create(username="charlie")
                member = Membership.objects.create(user=user, role=Role.ADMIN)
                UserToken.objects.create(
                    membership=member, hash=secret_hash(secret), hint=secret[:16]
                )
            house.secrets["charlie"] = secret
            body = {"verdict": "approve", "digest": gate.digest}
            return [
                house.request("charlie", method, path, sent)[0]
                for method, path, sent in (
                    ("GET", f"/gates/{gate.pk}", None),
                    ("POST", f"/gates/{gate.pk}/decisions", body),
                    ("DELETE", f"/gates/{decision.gate_id}/decisions/{decision.pk}", None),
                    ("POST", f"/gates/{gate.pk}/questions", asked),
                    ("POST", f"/gates/{gate.pk}/questions/{question}/answer", asked),
                )
            ] + [house.request("charlie", "GET", "/gates")[1]["results"]]
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as apart:
        assert apart.submit(as_stranger).result(30) == [404, 404, 404, 404, 404, []]
    assert house.trace(gate) == before
    assert not View.objects.exists()


# Looking


def test_an_agent_is_not_told_who_decided_nor_what_helps_people(house):
    gate = house.ask()
    decide(house, gate)

    of_agent = house.request("bot", "GET", f"/gates/{gate.pk}")[1]
    of_viewer = house.request("vera", "GET", f"/gates/{gate.pk}")[1]

    assert {"similar", "delegation_offer"}.isdisjoint(of_agent)
    assert "by" not in of_agent["decisions"][0]
    assert of_agent["may_decide"] is False
    assert of_viewer["decisions"][0]["by"] == "alice"
    assert of_viewer["delegation_offer"] is None
    of_viewer = house.request("vera", "GET", f"/gates/{house.ask().pk}")[1]
    assert of_viewer["similar"] == {"approved": 1, "rejected": 0, "edited": 0}
    for person in house.people.values():
        assert str(person.id) not in str(of_agent)
        assert re.search(rf"\b{person.name}\b", str(of_agent)) is None


def test_another_agent_is_refused_its_gate(house):
    gate = house.ask()

    status, told, _ = house.request("other", "GET", f"/gates/{gate.pk}")

    assert (status, told["code"]) == (403, "not-your-run")
    assert house.request("other", "GET", "/gates")[1]["results"] == []
    assert not View.objects.exists()


def test_may_decide_is_of_the_person_who_asks(house):
    gate = house.ask(run=house.run(requested_by="alice"))

    said = {
        who: house.request(who, "GET", f"/gates/{gate.pk}")[1]["may_decide"]
        for who in ("alice", "bob", "carol", "olga", "vera")
    }

    assert said == {"alice": False, "bob": False, "carol": True, "olga": False, "vera": False}


def test_the_quorum_given_counts_who_still_may(house):
    house.policy(APPROVE)
    gate = house.ask()
    decide(house, gate)

    assert house.request("vera", "GET", f"/gates/{gate.pk}")[1]["quorum"]["given"] == 1
    house.grant("alice", "mail.*")
    assert house.request("vera", "GET", f"/gates/{gate.pk}")[1]["quorum"]["given"] == 0


def test_similar_counts_how_the_tools_gates_ended(house):
    decide(house, house.ask())
    decide(house, house.ask(), arguments={**CALL, "amount": "1.00"})
    decide(house, house.ask(), verdict="reject", reason="no")

    seen = house.request("alice", "GET", f"/gates/{house.ask().pk}")[1]

    assert seen["similar"] == {"approved": 2, "rejected": 1, "edited": 1}


def test_a_look_that_waits_is_held_till_the_run_moves(house):
    gate = house.ask()
    version = house.request("alice", "GET", f"/gates/{gate.pk}")[1]["state_version"]

    path = f"/gates/{gate.pk}?wait=5&after_version={version}"
    held = house.request("alice", "GET", path)[2]
    passed = house.request("alice", "GET", f"/gates/{gate.pk}?wait=5&after_version=0")[2]

    assert held["X-Abeyance-Wait"] == f"run:{gate.run_id}"
    assert "X-Abeyance-Wait" not in passed


# Lists


def ids(answer):
    return [one["id"] for one in answer[1]["results"]]


def test_gates_are_listed_by_state_tool_and_risk(house):
    house.tool("mail.send", risk="high")
    refund, mail = house.ask(), house.ask("mail.send")
    decide(house, refund)

    def listed(query):
        return ids(house.request("alice", "GET", f"/gates?{query}"))

    assert listed("") == [str(refund.pk), str(mail.pk)]
    assert listed("state=pending") == [str(mail.pk)]
    assert listed("state=approved") == [str(refund.pk)]
    assert listed("tool=mail.send") == [str(mail.pk)]
    assert listed("tool=no.such") == []
    assert listed("risk=high") == [str(mail.pk)]
    for wrong in ("state=open", "risk=huge", "mine=yes", "tool=%00"):
        assert house.request("alice", "GET", f"/gates?{wrong}")[0] == 422


def test_mine_are_those_that_wait_for_me_or_that_i_had_a_say_in(house):
    house.tool("mail.send")
    house.grant("bob", "mail.*")
    refund, mail = house.ask(), house.ask("mail.send")

    def mine(who, query=""):
        return ids(house.request(who, "GET", f"/gates?mine=true{query}"))

    assert mine("alice") == [str(refund.pk), str(mail.pk)]
    assert mine("bob") == [str(mail.pk)]
    assert mine("vera") == mine("bot") == []
    decide(house, refund)
    assert mine("alice") == mine("carol") == [str(mail.pk)]
    assert mine("alice", "&state=approved") == [str(refund.pk)]
    assert mine("carol", "&state=approved") == []


def test_a_list_costs_the_same_however_long_it_is(house, django_assert_max_num_queries):
    for _ in range(3):
        decide(house, house.ask(), verdict="reject", reason="no")
        house.ask()

    with django_assert_max_num_queries(9):
        assert len(ids(house.request("alice", "GET", "/gates"))) == 6


def test_gates_come_in_pages_of_fifty(house):
    from interrupts.services.steps import propose

    calls = [{"tool": "payments.refund", "arguments": CALL} for _ in range(60)]
    propose(house.agent, house.run().pk, proposals=calls)

    first = house.request("alice", "GET", "/gates?mine=true")
    path = first[1]["next"].partition("/api/v1")[2]
    second = house.request("alice", "GET", path)

    assert (len(ids(first)), len(ids(second))) == (50, 10)
    assert set(ids(first)).isdisjoint(ids(second))
    assert second[1]["next"] is None


# Taking back


def test_a_decision_is_taken_back_over_http(house):
    gate = house.ask()
    made = decide(house, gate, hold_seconds=30)[1]["decisions"][0]["id"]
    path = f"/gates/{gate.pk}/decisions/{made}"

    assert house.request("carol", "DELETE", path)[1]["code"] == "forbidden"
    assert house.request("bot", "DELETE", path)[1]["code"] == "people-only"
    status, body, _ = house.request("alice", "DELETE", path)
    assert (status, body["state"], body["decisions"][0]["counts"]) == (200, "pending", False)
    assert house.request("alice", "DELETE", path)[0] == 200
    other = house.ask()
    stray = house.request("alice", "DELETE", f"/gates/{other.pk}/decisions/{made}")
    assert stray[0] == 404


# Policy


def test_the_policy_in_force_is_shown_to_members(house):
    assert house.request("vera", "GET", "/policies/current")[1]["policy_version"] == 0
    house.policy(APPROVE)

    shown = house.request("vera", "GET", "/policies/current")[1]

    assert (shown["policy_version"], shown["policy"]["rules"]) == (1, [APPROVE])
    assert house.request("bot", "GET", "/policies/current")[1]["code"] == "people-only"
    assert house.request("bot", "PUT", "/policies/current", {})[0] == 405


def check(house, who="bot", **body):
    sent = {"tool": "payments.refund", "arguments": CALL, **body}
    return house.request(who, "POST", "/policies/check", sent)


def test_policy_is_asked_without_proposing(house):
    house.policy(
        {"name": "unsure", "trigger": "confidence", "below": 0.5, "then": "deny", "reason": "guess"}
    )

    status, said, _ = check(house)
    assert (status, said["verdict"], said["rule"]) == (200, "approve", "default")
    assert said["triggers"][0]["trigger"] == "default"
    assert (said["policy_version"], said["reason"]) == (1, None)
    assert check(house, confidence=0.2)[1]["verdict"] == "deny"
    assert check(house, "vera", confidence=0.2)[1]["reason"] == "guess"
    assert not Gate.objects.exists()


def test_what_cannot_be_judged_is_refused(house):
    assert check(house, tool="no.such")[1]["code"] == "unknown-tool"
    told = check(house, arguments={"payment": 1, "amount": "1"})[1]
    assert (told["code"], told["errors"][0]["pointer"]) == (
        "invalid-arguments",
        "/arguments/payment",
    )
    assert check(house, confidence=2)[1]["code"] == "invalid-body"
    assert check(house, extra=1)[1]["errors"][0]["pointer"] == "/extra"


def test_every_path_of_gates_is_published(house):
    from django.test import Client

    paths = Client().get("/api/v1/schema/").json()["paths"]

    published = {
        (path, method)
        for path, methods in paths.items()
        for method in methods
        if "gates" in path or "policies" in path or "substitutions" in path
    }
    assert {
        (path, method) for path, method in published if method in {"get", "post", "delete"}
    } == {
        ("/api/v1/gates", "get"),
        ("/api/v1/gates/decisions", "post"),
        ("/api/v1/gates/{id}", "get"),
        ("/api/v1/gates/{id}/decisions", "post"),
        ("/api/v1/gates/{id}/decisions/{decision}", "delete"),
        ("/api/v1/gates/{id}/assignment", "post"),
        ("/api/v1/gates/{id}/extension", "post"),
        ("/api/v1/gates/{id}/questions", "post"),
        ("/api/v1/gates/{id}/questions/{question}/answer", "post"),
        ("/api/v1/substitutions", "get"),
        ("/api/v1/substitutions", "post"),
        ("/api/v1/substitutions/{id}", "delete"),
        ("/api/v1/policies/current", "get"),
        ("/api/v1/policies", "get"),
        ("/api/v1/policies/calibration", "get"),
        ("/api/v1/policies/check", "post"),
        ("/api/v1/policies/overgating", "get"),
        ("/api/v1/policies/simulate", "post"),
        ("/api/v1/policies/why", "get"),
    }


def test_answers_are_what_is_published(house):
    from jsonschema import Draft202012Validator

    from tenants.api.openapi import document

    house.tool(previewed=True)
    gate = house.ask()
    decide(house, gate, arguments={**CALL, "amount": "1.00"})
    shape = {
        "$ref": "#/components/schemas/Gate",
        "components": document()["components"],
    }
    for who in ("alice", "bot"):
        shown = house.request(who, "GET", f"/gates/{gate.pk}")[1]
        assert list(Draft202012Validator(shape).iter_errors(shown)) == []
        declared = set(document()["components"]["schemas"]["Gate"]["properties"])
        assert set(shown) <= declared
    assert fresh(gate).state == "approved"
