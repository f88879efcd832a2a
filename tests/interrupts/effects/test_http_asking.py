"""Preview, reconcile and compensate as the far-end protocol has them."""

from dataclasses import replace
from decimal import Decimal

import pytest
from standardwebhooks import Webhook

from interrupts.effects import (
    Finding,
    Observed,
    Outcome,
    Preview,
    PreviewFailed,
    Reconciled,
    effect_for,
)
from tests.interrupts.effects.conftest import SECRET
from tests.interrupts.effects.far_end import answering, resetting, sending

# Preview


def test_a_preview_is_asked_for_without_an_idempotency_key(far_end, effect, call):
    far_end.behave = answering(200, {"summary": "Refunds 20.00", "changes": [], "warnings": []})
    assert effect.preview(call) == Preview("Refunds 20.00", [], [], None)
    [asked] = far_end.asked
    assert (asked.method, asked.path) == ("POST", "/preview/refund")
    assert "idempotency-key" not in asked.headers
    assert asked.json() == {
        "tool": "payments.refund",
        "arguments": {"amount": "20.00", "payment": "p-€-1"},
    }
    Webhook(SECRET).verify(asked.body, asked.headers)


def test_a_preview_holds_what_is_shown_and_nothing_else(far_end, effect, call):
    far_end.behave = answering(
        200,
        {
            "summary": "s",
            "changes": [{"object": "payment", "after": {"state": "refunded"}, "colour": 1}],
            "warnings": ["late"],
            "fresh_for": 30,
            "extra": 1,
        },
    )
    change = {"object": "payment", "before": None, "after": {"state": "refunded"}}
    assert effect.preview(call) == Preview("s", [change], ["late"], 30.0)


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"summary": ""},
        {"summary": 1},
        {"summary": "s", "changes": {}},
        {"summary": "s", "changes": [1]},
        {"summary": "s", "changes": [{"after": 1}]},
        {"summary": "s", "warnings": "w"},
        {"summary": "s", "warnings": [1]},
        {"summary": "s", "fresh_for": "1"},
        {"summary": "s", "fresh_for": True},
        {"summary": "s", "fresh_for": -1},
        [],
        b"{",
    ],
)
def test_an_answer_that_is_no_preview_fails(far_end, effect, call, answer):
    far_end.behave = answering(200, answer)
    with pytest.raises(PreviewFailed, match="No preview could be taken"):
        effect.preview(call)


@pytest.mark.parametrize("status", [302, 400, 404, 429, 500, 503])
def test_only_a_2xx_is_a_preview(far_end, effect, call, status):
    far_end.behave = answering(status, {"summary": "s"})
    with pytest.raises(PreviewFailed, match=str(status)):
        effect.preview(call)


def test_a_preview_that_gets_no_answer_fails_in_time(far_end, effect, brief):
    far_end.behave = lambda _connection, _asked: far_end.closing.wait(5)
    with pytest.raises(PreviewFailed, match="in time"):
        effect.preview(brief)


def test_a_tool_without_a_preview_says_so(effect_at, call):
    with pytest.raises(PreviewFailed, match="no preview"):
        effect_at(preview=None).preview(call)


# Reconcile


@pytest.mark.parametrize(
    ("status", "answer", "finding"),
    [
        (200, {"outcome": "performed"}, Finding.PERFORMED),
        (200, {"outcome": "failed"}, Finding.FAILED),
        (200, {"outcome": "pending"}, Finding.PENDING),
        (404, {"outcome": "not_performed"}, Finding.NOT_PERFORMED),
        (200, {"outcome": "not_performed"}, Finding.CANNOT_TELL),
        (201, {"outcome": "performed"}, Finding.CANNOT_TELL),
        (404, {"outcome": "performed"}, Finding.CANNOT_TELL),
        (404, b"<html>404 Not Found</html>", Finding.CANNOT_TELL),
        (404, {}, Finding.CANNOT_TELL),
        (404, b"", Finding.CANNOT_TELL),
        (404, {"outcome": "not_performed\u0000"}, Finding.CANNOT_TELL),
        (410, {"outcome": "not_performed"}, Finding.CANNOT_TELL),
        (200, {"outcome": ["performed"]}, Finding.CANNOT_TELL),
        (200, {"outcome": "done"}, Finding.CANNOT_TELL),
        (200, b'{"outcome": "performed"', Finding.CANNOT_TELL),
        (302, {"outcome": "performed"}, Finding.CANNOT_TELL),
        (429, {"outcome": "not_performed"}, Finding.CANNOT_TELL),
        (503, {"outcome": "not_performed"}, Finding.CANNOT_TELL),
    ],
)
def test_what_a_far_end_says_of_a_call(far_end, effect, call, status, answer, finding):
    far_end.behave = answering(status, answer)
    found = effect.reconcile(call)
    assert found.outcome is finding
    assert (found.error is None) is (finding is not Finding.CANNOT_TELL)


def test_what_was_performed_comes_with_its_result(far_end, effect, call):
    far_end.behave = answering(200, {"outcome": "performed", "result": [1], "external_id": "re_1"})
    assert effect.reconcile(call) == Reconciled(Finding.PERFORMED, [1], "re_1")


@pytest.mark.parametrize("behaviour", [resetting, sending(b"")])
def test_no_answer_cannot_tell(far_end, effect, call, behaviour):
    far_end.behave = behaviour
    assert effect.reconcile(call).outcome is Finding.CANNOT_TELL


def test_the_key_stands_in_the_path_as_one_segment(far_end, effect, call):
    effect.reconcile(replace(call, idempotency_key="a/b?c=d&e#f %é"))
    [asked] = far_end.asked
    assert (asked.method, asked.path) == (
        "GET",
        "/effects/refund/a%2Fb%3Fc%3Dd%26e%23f%20%25%C3%A9",
    )
    Webhook(SECRET).verify(asked.body, asked.headers, json_parse=False)


def test_a_tool_that_cannot_be_asked_cannot_tell(far_end, effect_at, call):
    assert effect_at(reconcile=None).reconcile(call).outcome is Finding.CANNOT_TELL
    assert far_end.connections == 0


# Compensate


def test_a_compensation_goes_out_under_a_key_of_its_own(far_end, effect, call):
    far_end.behave = answering(200, {"result": "undone", "external_id": "un_1", "cost": "1"})
    seen = effect.compensate(call, {"refunded": True}, "re_1")
    assert seen == Observed(Outcome.SUCCEEDED, "undone", "un_1", Decimal(1))
    [asked] = far_end.asked
    assert (asked.method, asked.path) == ("POST", "/effects/refund/key-1/compensate")
    assert asked.headers["idempotency-key"] == "key-1:compensate"
    assert asked.json() == {
        "arguments": {"amount": "20.00", "payment": "p-€-1"},
        "result": {"refunded": True},
        "external_id": "re_1",
    }
    Webhook(SECRET).verify(asked.body, asked.headers)


def test_each_sending_of_a_compensation_is_a_message_of_its_own(far_end, effect, call):
    """A receiver that drops messages it has seen must not drop the second one."""
    effect.compensate(call, None, None)
    effect.compensate(call, None, None)
    first, second = far_end.asked
    assert first.headers["webhook-id"] != second.headers["webhook-id"]
    assert first.headers["idempotency-key"] == second.headers["idempotency-key"]


@pytest.mark.parametrize(("status", "body"), [(200, b""), (204, b""), (202, b"[]"), (200, b"{")])
def test_any_2xx_ends_a_compensation(far_end, effect, call, status, body):
    far_end.behave = answering(status, body)
    assert effect.compensate(call, None, None) == Observed(Outcome.SUCCEEDED)


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 405, 409, 410, 413, 422, 451])
def test_a_4xx_refuses_a_compensation(far_end, effect, call, status):
    far_end.behave = answering(status, {})
    assert effect.compensate(call, None, None).outcome is Outcome.FAILED


@pytest.mark.parametrize("status", [302, 408, 425, 500, 503])
def test_what_is_neither_leaves_a_compensation_unknown(far_end, effect, call, status):
    far_end.behave = answering(status, {})
    assert effect.compensate(call, None, None).outcome is Outcome.UNKNOWN


def test_a_busy_far_end_has_not_begun_to_compensate(far_end, effect, call):
    far_end.behave = answering(429, {}, "Retry-After: 3")
    seen = effect.compensate(call, None, None)
    assert (seen.outcome, seen.retry_after) == (Outcome.NOT_PERFORMED, 3.0)


def test_a_lost_compensation_is_unknown(far_end, effect, call):
    far_end.behave = resetting
    assert effect.compensate(call, None, None).outcome is Outcome.UNKNOWN


def test_a_tool_without_a_compensation_fails_unsent(far_end, effect_at, call):
    assert effect_at(compensate=None).compensate(call, None, None).outcome is Outcome.FAILED
    assert far_end.connections == 0


# A tool that its agent runs


def test_an_agents_tool_is_previewed_but_never_executed_here(far_end, call):
    far_end.behave = answering(200, {"summary": "s"})
    effect = effect_for(
        {"kind": "agent", "lease": 5},
        preview={"url": f"http://{far_end.authority}/preview"},
        reconcile=None,
        compensate=None,
        secret=SECRET,
        allowed_hosts=[far_end.authority],
    )
    assert effect.preview(call).summary == "s"
    with pytest.raises(TypeError, match="run by its agent"):
        effect.execute(call)
    assert len(far_end.asked) == 1
