"""Every row of the table of what came back, seen from a far end that a test controls."""

import socket
import threading
import time
from dataclasses import replace
from decimal import Decimal
from email.utils import formatdate

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from interrupts.effects import Observed, Outcome
from tests.interrupts.effects.conftest import SECRET
from tests.interrupts.effects.far_end import answering, raw_answer, resetting, sending

DONE = {"result": {"refunded": True}, "external_id": "re_1", "cost": "0.30"}
SLACK = 1.5


@pytest.mark.parametrize("status", [200, 201, 202, 299])
def test_a_readable_2xx_is_success(far_end, effect, call, status):
    far_end.behave = answering(status, DONE)
    seen = effect.execute(call)
    assert seen == Observed(
        Outcome.SUCCEEDED, {"refunded": True}, "re_1", Decimal("0.30"), None, None
    )


def test_a_null_result_is_a_result(far_end, effect, call):
    far_end.behave = answering(200, {"result": None})
    assert effect.execute(call) == Observed(Outcome.SUCCEEDED)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 410, 413, 415, 422])
def test_a_definite_refusal_is_a_failure(far_end, effect, call, status):
    far_end.behave = answering(status, {"error": "no"})
    seen = effect.execute(call)
    assert seen.outcome is Outcome.FAILED
    assert str(status) in seen.error


def test_a_refusal_is_definite_though_its_body_breaks_off(far_end, effect, call):
    far_end.behave = sending(b"HTTP/1.1 400 No\r\nContent-Length: 100\r\n\r\npart")
    assert effect.execute(call).outcome is Outcome.FAILED


@pytest.mark.parametrize(
    "status",
    [
        *(300, 301, 302, 303, 304, 307, 308),
        *(402, 406, 407, 408, 409, 411, 412, 416, 417, 418, 421, 423, 424, 425, 426, 428, 431, 451),
        *(500, 501, 502, 503, 504, 507, 599),
    ],
)
def test_every_other_status_leaves_the_outcome_unknown(far_end, effect, call, status):
    body = b"" if status == 304 else b'{"result": 1}'
    far_end.behave = sending(raw_answer(status, body, "Retry-After: 1"))
    seen = effect.execute(call)
    assert seen.outcome is Outcome.UNKNOWN
    assert seen.retry_after is None
    assert len(far_end.asked) == 1


def test_a_redirect_is_not_followed(far_end, effect, call):
    far_end.behave = answering(307, {"result": 1}, f"Location: http://{far_end.authority}/else")
    assert effect.execute(call).outcome is Outcome.UNKNOWN
    assert [asked.path for asked in far_end.asked] == ["/effects/refund"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b'{"result": ',
        b"[]",
        b"1",
        b"{}",
        b'{"Result": 1}',
        b'{"result": NaN}',
        b'{"result": 1, "result": 2}',
        b'{"result": "\xff"}',
        b'{"result": ' + b"[" * 65 + b"]" * 65 + b"}",
        b'{"result": ' + b"[" * 100_000,
        b'{"result": "' + b"x" * (1024 * 1024) + b'"}',
        b"\x1f\x8b\x08 not JSON",
    ],
)
def test_a_2xx_that_cannot_be_read_leaves_the_outcome_unknown(far_end, effect, call, body):
    far_end.behave = answering(200, body)
    seen = effect.execute(call)
    assert seen.outcome is Outcome.UNKNOWN
    assert "not known" in seen.error


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        (b"9007199254740993", "9007199254740993"),
        (b"-1e400", "-1e400"),
        (b'"a\\u0000b"', "a\ufffdb"),
        (
            b'[{"k\\ud800": ["\\udfff", 1, 1.5, true, null]}]',
            [{"k\ufffd": ["\ufffd", 1, 1.5, True, None]}],
        ),
    ],
)
def test_what_cannot_be_kept_of_a_2xx_is_replaced_and_said(far_end, effect, call, said, kept):
    far_end.behave = answering(200, b'{"result": %b, "external_id": "re_1"}' % said)
    seen = effect.execute(call)
    assert (seen.outcome, seen.result, seen.external_id) == (Outcome.SUCCEEDED, kept, "re_1")
    assert ("replaced" in (seen.error or "")) == ("\ufffd" in str(kept))
    found = b'{"outcome": "performed", "result": %b}' % said
    far_end.behave = answering(200, found)
    assert effect.reconcile(call).result == kept


@pytest.mark.parametrize(
    "said", [b'{"a": 1, "a": "\\u0000"}', b'{"a\\u0000": 1, "a\\ud800": 2}', b'["\\u0000", NaN]']
)
def test_what_is_ambiguous_is_not_guessed_at_beside_what_is_replaced(far_end, effect, call, said):
    far_end.behave = answering(200, b'{"result": %b}' % said)
    assert effect.execute(call).outcome is Outcome.UNKNOWN


def test_an_answer_of_just_a_mebibyte_is_read(far_end, effect, call):
    padding = 1024 * 1024 - len(b'{"result":""}')
    far_end.behave = answering(200, b'{"result":"%b"}' % (b"x" * padding))
    assert effect.execute(call).result == "x" * padding


@pytest.mark.parametrize(
    "data",
    [
        raw_answer(200, b'{"result": 1}')[:-1],
        b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nd\r\n{"result": 1}\r\n',
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Le",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
        b"HTTP/1.1 103 Early\r\n\r\n",
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 100_000 + b"\r\n",
        b"",
    ],
)
def test_an_answer_that_breaks_off_leaves_the_outcome_unknown(far_end, effect, call, data):
    far_end.behave = sending(data)
    assert effect.execute(call).outcome is Outcome.UNKNOWN
    assert len(far_end.asked) == 1


def test_a_reset_connection_leaves_the_outcome_unknown(far_end, effect, call):
    far_end.behave = resetting
    assert effect.execute(call).outcome is Outcome.UNKNOWN
    assert len(far_end.asked) == 1


def test_interim_answers_are_passed_over(far_end, effect, call):
    interim = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
    far_end.behave = sending(interim + raw_answer(200, b'{"result": 7}'))
    assert effect.execute(call).result == 7


@pytest.mark.parametrize(
    "framing",
    [
        b'Transfer-Encoding: chunked\r\n\r\n5\r\n{"res\r\n8\r\nult": 7}\r\n0\r\n\r\n',
        b'Connection: close\r\n\r\n{"result": 7}',
    ],
)
def test_bodies_are_read_in_every_framing(far_end, effect, call, framing):
    far_end.behave = sending(b"HTTP/1.1 200 OK\r\n" + framing)
    assert effect.execute(call) == Observed(Outcome.SUCCEEDED, 7)


# 429: proved not begun


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ([], None),
        (["Retry-After: 7"], 7.0),
        (["Retry-After: 0"], 0.0),
        (["Retry-After: 99999999999999999999"], 3600.0),
        (["Retry-After: -5"], None),
        (["Retry-After: 1.5"], None),
        (["Retry-After: soon"], None),
        (["Retry-After: ²"], None),
        (
            [
                "Date: Wed, 21 Oct 2026 07:28:00 GMT",
                "Retry-After: Wed, 21 Oct 2026 07:28:30 GMT",
            ],
            30.0,
        ),
        (["Retry-After: Wed, 21 Oct 2015 07:28:00 GMT"], 0.0),
    ],
)
def test_a_busy_far_end_has_not_begun(far_end, effect, call, headers, seconds):
    far_end.behave = answering(429, {"error": "busy"}, *headers)
    seen = effect.execute(call)
    assert (seen.outcome, seen.retry_after) == (Outcome.NOT_PERFORMED, seconds)


def test_a_date_without_the_far_ends_clock_is_taken_by_ours(far_end, effect, call):
    far_end.behave = answering(429, None, f"Retry-After: {formatdate(time.time() + 60)}")
    assert effect.execute(call).retry_after == pytest.approx(60, abs=3)


# Not sent


def test_a_refused_connection_is_not_performed(effect_at, call):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    seen = effect_at(f"http://127.0.0.1:{port}/", [f"127.0.0.1:{port}"]).execute(call)
    assert seen == Observed(
        Outcome.NOT_PERFORMED, error="The far end could not be reached: connection refused."
    )


def test_no_time_left_is_not_performed(far_end, effect, call):
    seen = effect.execute(replace(call, timeout=0.0))
    assert seen.outcome is Outcome.NOT_PERFORMED
    assert far_end.asked == []


def test_what_cannot_be_written_as_a_request_fails_unsent(far_end, effect, call):
    seen = effect.execute(replace(call, idempotency_key="a\r\nX-Other: b"))
    assert seen.outcome is Outcome.FAILED
    assert far_end.connections == 0


# One deadline over everything


def test_no_answer_in_time_leaves_the_outcome_unknown(far_end, effect, brief):
    far_end.behave = lambda _connection, _asked: far_end.closing.wait(5)
    began = time.monotonic()
    seen = effect.execute(brief)
    assert seen.outcome is Outcome.UNKNOWN
    assert time.monotonic() - began < brief.timeout + SLACK


@pytest.mark.parametrize("at", [0, 20, 60], ids=["status", "headers", "body"])
def test_an_answer_that_drips_is_bounded_as_a_whole(far_end, effect, brief, at):
    answer = raw_answer(200, b'{"result": "' + b"x" * 400 + b'"}')

    def drip(connection, _asked):
        connection.sendall(answer[:at])
        for byte in answer[at:]:
            connection.sendall(bytes([byte]))
            if far_end.closing.wait(0.05):
                return

    far_end.behave = drip
    began = time.monotonic()
    seen = effect.execute(brief)
    assert seen.outcome is Outcome.UNKNOWN
    assert time.monotonic() - began < brief.timeout + SLACK


def test_endless_interim_answers_are_bounded_too(far_end, effect, brief):
    def chatter(connection, _asked):
        while not far_end.closing.wait(0.01):
            connection.sendall(b"HTTP/1.1 103 Early Hints\r\n\r\n")

    far_end.behave = chatter
    began = time.monotonic()
    assert effect.execute(brief).outcome is Outcome.UNKNOWN
    assert time.monotonic() - began < brief.timeout + SLACK


def test_a_request_that_is_not_taken_in_time_leaves_the_outcome_unknown(effect_at, brief):
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        port = deaf.getsockname()[1]
        effect = effect_at(f"http://127.0.0.1:{port}/", [f"127.0.0.1:{port}"])
        began = time.monotonic()
        seen = effect.execute(replace(brief, arguments=b'{"x":"%b"}' % (b"x" * 8 * 1024 * 1024)))
    assert seen.outcome is Outcome.UNKNOWN
    assert "did not take" in seen.error
    assert time.monotonic() - began < brief.timeout + SLACK


def test_a_request_that_is_taken_in_drips_is_bounded_as_a_whole(effect_at, brief):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        authority = f"127.0.0.1:{listener.getsockname()[1]}"

        def sip():
            connection, _ = listener.accept()
            with connection:
                while connection.recv(4096):
                    time.sleep(0.001)

        sipping = threading.Thread(target=sip, daemon=True)
        sipping.start()
        began = time.monotonic()
        arguments = b'{"x":"%b"}' % (b"x" * 16 * 1024 * 1024)
        effect = effect_at(f"http://{authority}/", [authority])
        seen = effect.execute(replace(brief, arguments=arguments, timeout=0.6))
        assert time.monotonic() - began < 0.6 + SLACK
        sipping.join(10)
    assert seen.outcome is Outcome.UNKNOWN


def test_a_refusal_before_the_request_was_read_is_heard(far_end, effect, call):
    far_end.early = raw_answer(413, b"")
    seen = effect.execute(replace(call, arguments=b'{"x":"%b"}' % (b"x" * 900_000)))
    assert seen.outcome is Outcome.FAILED


# What is sent


def test_the_request_is_what_the_protocol_says(far_end, effect, call):
    effect.execute(call)
    [asked] = far_end.asked
    assert (asked.method, asked.path) == ("POST", "/effects/refund")
    assert asked.headers["host"] == far_end.authority
    assert asked.headers["idempotency-key"] == "key-1"
    assert asked.headers["content-type"] == "application/json"
    assert asked.json() == {
        "tool": "payments.refund",
        "arguments": {"amount": "20.00", "payment": "p-€-1"},
        "run": "run-1",
        "step": "step-1",
        "attempt": "attempt-1",
    }


def test_the_arguments_are_sent_byte_for_byte(far_end, effect, call):
    arguments = '{"a":1e21,"b":"\\u2028é"}'.encode()
    effect.execute(replace(call, arguments=arguments))
    assert arguments in far_end.asked[0].body


def test_the_signature_verifies_and_names_the_attempt(far_end, effect, call):
    effect.execute(call)
    [asked] = far_end.asked
    Webhook(SECRET).verify(asked.body, asked.headers)
    assert asked.headers["webhook-id"] == "attempt-1"
    with pytest.raises(WebhookVerificationError):
        Webhook(SECRET).verify(asked.body.replace(b"20.00", b"99.00"), asked.headers)


def test_no_redirect_cookie_or_credential_is_carried(far_end, effect, call):
    far_end.behave = answering(200, {"result": 1}, "Set-Cookie: a=b")
    effect.execute(call)
    effect.execute(call)
    for asked in far_end.asked:
        assert not {"cookie", "authorization", "proxy-authorization"} & asked.headers.keys()


def test_proxies_of_the_environment_are_not_used(far_end, effect, call, monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert effect.execute(call).outcome is Outcome.SUCCEEDED


# Connections


def test_a_far_end_that_hangs_up_between_two_calls_harms_neither(far_end, effect, call):
    """It closes after each answer without having said so: a kept connection would be stale."""
    far_end.behave = answering(200, {"result": 1}, "Connection: keep-alive")
    assert [effect.execute(call).outcome for _ in range(3)] == [Outcome.SUCCEEDED] * 3
    assert (far_end.connections, len(far_end.asked)) == (3, 3)


def test_a_lost_answer_is_never_asked_for_again(far_end, effect, call):
    effect.execute(call)
    far_end.behave = sending(b"")
    assert effect.execute(call).outcome is Outcome.UNKNOWN
    assert (far_end.connections, len(far_end.asked)) == (2, 2)


# What the agent is told


def test_a_refusal_is_not_quoted_unless_allowed(far_end, effect, call):
    far_end.behave = answering(422, {"error": "card 4111 declined"})
    assert effect.execute(call).error == "The far end refused it (with status 422)."


def test_a_quoted_refusal_is_one_short_printable_line(far_end, effect_at, call):
    far_end.behave = answering(400, b"no\r\n\x1b[31m\xe2\x80\xaethis \xff" + b"x" * 5000)
    error = effect_at(quote_refusals=True).execute(call).error
    assert error.startswith("The far end refused it (with status 400): no ")
    assert error.isprintable()
    assert len(error) <= 500


def test_no_error_names_the_secret_or_the_address(far_end, effect, call):
    far_end.behave = resetting
    error = effect.execute(call).error
    assert SECRET not in error
    assert SECRET not in repr(effect)
    assert "127.0.0.1" not in error


# What is kept of an answer


@pytest.mark.parametrize(
    ("given", "kept"),
    [("re_1", "re_1"), (17, "17"), ("", None), (True, None), (["x"], None), ("x" * 1001, None)],
)
def test_an_external_id_is_a_text(far_end, effect, call, given, kept):
    far_end.behave = answering(200, {"result": 1, "external_id": given})
    seen = effect.execute(call)
    assert (seen.outcome, seen.external_id) == (Outcome.SUCCEEDED, kept)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("0.10", Decimal("0.1")),
        ("999999999999999.0123456789", Decimal("999999999999999.0123456789")),
        ("1000000000000000", None),
        ("1e3", Decimal(1000)),
        (2, Decimal(2)),
        (0.1, Decimal("0.1")),
        ("0", Decimal(0)),
        ("0.00000000001", Decimal(0)),
        ("-1", None),
        ("NaN", None),
        ("Infinity", None),
        ("1e999999999", None),
        ("much", None),
        (True, None),
        ([], None),
        (None, None),
    ],
)
def test_a_cost_is_exact_or_none(far_end, effect, call, given, kept):
    far_end.behave = answering(200, {"result": 1, "cost": given})
    seen = effect.execute(call)
    assert (seen.outcome, str(seen.cost)) == (Outcome.SUCCEEDED, str(kept))
