"""A far end that speaks a protocol of its own, and values that may not leave their slots."""

import base64
import json
import logging
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interrupts.effects import (
    Call,
    Effect,
    Finding,
    Observed,
    Outcome,
    Preview,
    PreviewFailed,
    Reconciled,
    effect_for,
)
from interrupts.effects.declared.filling import Filler, Unfillable
from interrupts.effects.declared.requests import DeclaredRequest
from tests.interrupts.effects.far_end import FarEnd, answering, raw_answer, resetting, sending

SECRET = "sk_live_4eC39HqLyjWDarjtT1zdp7dc"
CALL = Call(
    tool="charges.refund",
    tool_version=1,
    arguments=b"{}",
    run="run-1",
    step="step-1",
    attempt="attempt-1",
    idempotency_key="key-1",
    timeout=2.0,
)
MADE: dict[str, Any] = {"id": "re_1", "object": {"sum": 5}, "fee": "0.30"}
Make = Callable[..., Effect]


def call(**arguments: Any) -> Call:
    return replace(CALL, arguments=json.dumps(arguments).encode())


@pytest.fixture
def secrets() -> dict[str, str]:
    return {"pay-key": SECRET}


@pytest.fixture
def make(far_end: FarEnd, secrets: dict[str, str]) -> Make:
    """Make an effect whose executor, or another part, is this declaration."""

    def make(part: str = "executor", path: str = "/v1/refunds", **declared: Any) -> Effect:
        request = {"url": f"http://{far_end.authority}{path}", **declared.pop("request", {})}
        mine = {"request": request, **declared}
        own = {"kind": "http", "url": far_end.url}
        parts: dict[str, Any] = {"preview": None, "reconcile": None, "compensate": None}
        if part == "executor":
            own = {"kind": "http", **mine}
        else:
            parts[part] = mine
        return effect_for(
            own,
            **parts,
            secret=None,
            allowed_hosts=[far_end.authority],
            quote_refusals=True,
            tenant="acme",
            read_secrets=lambda names: {n: secrets[n] for n in names if n in secrets},
        )

    return make


# What is sent


def test_a_form_is_sent_as_payment_providers_take_it(far_end: FarEnd, make: Make) -> None:
    effect = make(
        path="/v1/charges/{arguments.charge}/refunds",
        request={
            "query": {"expand[]": ["charge", "{arguments.more}"], "page": 1},
            "headers": {
                "Authorization": {"secret": "pay-key", "prefix": "Bearer "},
                "Pay-Version": "2026-01-01",
                "X-Of": "{tenant}/{run}/{step}",
                "User-Agent": "Shop",
            },
            "idempotency_header": "Request-Id",
            "form": {
                "amount": "{arguments.amount}",
                "test": True,
                "tags[]": "{arguments.tags}",
                "metadata[key]": "{key}",
                "note": "Refund of {arguments.amount} cent & more",
                "left_out": "{arguments.none}",
                "left_out_too": "about {arguments.none}",
            },
        },
        answer={"result": "/object", "external_id": "/id", "cost": "/fee"},
    )
    far_end.behave = answering(201, MADE)
    seen = effect.execute(call(charge="ch/1 ü", amount=1250, tags=["a", "b=c"], more=["x y"]))
    assert seen == Observed(Outcome.SUCCEEDED, {"sum": 5}, "re_1", Decimal("0.30"))
    (asked,) = far_end.asked
    assert (asked.method, asked.path) == (
        "POST",
        "/v1/charges/ch%2F1%20%C3%BC/refunds?expand%5B%5D=charge&expand%5B%5D=x%20y&page=1",
    )
    sent = {name: asked.headers.get(name) for name in ("authorization", "pay-version", "x-of")}
    assert sent == {
        "authorization": f"Bearer {SECRET}",
        "pay-version": "2026-01-01",
        "x-of": "acme/run-1/step-1",
    }
    assert asked.headers["request-id"] == "key-1"
    assert asked.headers["user-agent"] == "Shop"
    assert asked.headers["content-type"] == "application/x-www-form-urlencoded"
    assert "idempotency-key" not in asked.headers
    assert not [name for name in asked.headers if name.startswith("webhook")]
    assert parse_qsl(asked.body.decode(), strict_parsing=True) == [
        ("amount", "1250"),
        ("test", "true"),
        ("tags[]", "a"),
        ("tags[]", "b=c"),
        ("metadata[key]", "key-1"),
        ("note", "Refund of 1250 cent & more"),
    ]


def test_a_json_body_is_built_member_by_member(far_end: FarEnd, make: Make) -> None:
    body = {
        "to": [{"email": "{arguments.to}"}],
        "amount": "{arguments.amount}",
        "flag": "{arguments.flag}",
        "nothing": "{arguments.nothing}",
        "lines": "{arguments.lines}",
        "left": "{arguments.absent}",
        "text": 'Dear {arguments.to}, {{"x": 1}}',
        "fixed": [1, None, True, "{arguments.absent}"],
        "all": "{arguments}",
    }
    given = {"to": '", "bcc": "eve', "amount": 1.5, "flag": False, "nothing": None, "lines": [{}]}
    far_end.behave = answering(200, {})
    make(request={"json": body}).execute(call(**given))
    (asked,) = far_end.asked
    assert asked.headers["content-type"] == "application/json"
    assert asked.headers["idempotency-key"] == "key-1"
    assert asked.json() == {
        "to": [{"email": '", "bcc": "eve'}],
        "amount": 1.5,
        "flag": False,
        "nothing": None,
        "lines": [{}],
        "text": 'Dear ", "bcc": "eve, {"x": 1}',
        "fixed": [1, None, True],
        "all": given,
    }


def test_a_user_and_a_secret_sign_in_together(far_end: FarEnd, make: Make) -> None:
    far_end.behave = answering(200, {})
    effect = make(request={"headers": {"Authorization": {"secret": "pay-key", "user": "api"}}})
    effect.execute(call())
    basic = base64.b64encode(f"api:{SECRET}".encode()).decode()
    assert far_end.asked[0].headers["authorization"] == f"Basic {basic}"
    assert far_end.asked[0].headers["content-length"] == "0"


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE"])
def test_the_method_is_the_declared_one_and_a_get_has_no_key(
    far_end: FarEnd, make: Make, method: str
) -> None:
    far_end.behave = answering(200, {"a": 1})
    assert make(request={"method": method}).execute(call()).result == {"a": 1}
    (asked,) = far_end.asked
    assert asked.method == method
    assert ("idempotency-key" in asked.headers) is (method != "GET")


def test_no_key_is_sent_where_the_far_end_takes_none(far_end: FarEnd, make: Make) -> None:
    far_end.behave = answering(200, {})
    make(request={"idempotency_header": None}).execute(call())
    assert "idempotency-key" not in far_end.asked[0].headers


# Hostile values

HOSTILE = [
    "a/b",
    "a?admin=1",
    "a#b",
    "a;b=c",
    "a&b=c",
    "%2e%2e%2f",
    "a%0d%0aX: y",
    "\u202eevil",
    "ÿ💥",
    "@evil.test",
    ":443",
    "{key}",
    "a\\b",
    " ",
    "+",
    "...",
    "é\u0301",
]


@pytest.mark.parametrize("value", HOSTILE)
def test_a_value_stays_in_its_slot(far_end: FarEnd, make: Make, value: str) -> None:
    effect = make(
        path="/v1/{arguments.v}/x-{arguments.v}/end",
        request={"query": {"q": "{arguments.v}", "z": "1"}, "form": {"f": "{arguments.v}"}},
    )
    far_end.behave = answering(200, {})
    assert effect.execute(call(v=value)).outcome is Outcome.SUCCEEDED
    (asked,) = far_end.asked
    split = urlsplit(asked.path)
    assert [unquote(part) for part in split.path.split("/")] == [
        "",
        "v1",
        value,
        f"x-{value}",
        "end",
    ]
    assert parse_qsl(split.query, strict_parsing=True) == [("q", value), ("z", "1")]
    assert parse_qsl(asked.body.decode(), strict_parsing=True) == [("f", value)]


CLIMBING = [
    "",
    ".",
    "..",
    "../admin",
    "a/../b",
    "..\\..",
    "a/.",
    "\uff0e\uff0e",
    "a\r\nX: y",
    "\x00",
]


@pytest.mark.parametrize("value", [*CLIMBING, None, [], {"a": 1}])
def test_a_value_that_could_lead_elsewhere_is_not_sent(
    far_end: FarEnd, make: Make, value: Any
) -> None:
    seen = make(path="/v1/{arguments.v}/refunds").execute(call(v=value))
    assert (seen.outcome, seen.sent, far_end.connections) == (Outcome.FAILED, False, 0)


def test_pieces_do_not_make_a_step_up_together(far_end: FarEnd, make: Make) -> None:
    seen = make(path="/v1/.{arguments.v}/refunds").execute(call(v="."))
    assert (seen.outcome, far_end.connections) == (Outcome.FAILED, 0)


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "a\nb", "\x00", "ä", " a", "a ", ""])
def test_a_value_that_no_header_holds_is_not_sent(far_end: FarEnd, make: Make, value: str) -> None:
    seen = make(request={"headers": {"X-Name": "{arguments.v}"}}).execute(call(v=value))
    assert (seen.outcome, far_end.connections) == (Outcome.FAILED, 0)


def test_little_does_not_become_much(far_end: FarEnd, make: Make) -> None:
    fields = {f"f{n}": "{arguments.v}" for n in range(100)}
    seen = make(request={"form": fields}).execute(call(v="x" * 20_000))
    assert (seen.outcome, far_end.connections) == (Outcome.FAILED, 0)
    assert "1 MiB" in (seen.error or "")


@given(st.text(), st.text())
def test_whatever_the_values_are_the_host_and_the_path_keep_their_form(a: str, b: str) -> None:
    request = DeclaredRequest.of(
        "executor",
        {
            "url": "https://api.pay.test:8443/v1/{arguments.a}/x{arguments.b}",
            "query": {"q": "{arguments.a}"},
        },
    )
    try:
        made = request.fill(Filler({"arguments": {"a": a, "b": b}}), {}, "k")
    except (Unfillable, UnicodeEncodeError):
        return
    split = urlsplit(made.url)
    assert (split.scheme, split.netloc, split.fragment) == ("https", "api.pay.test:8443", "")
    assert [unquote(part, errors="strict") for part in split.path.split("/")] == [
        "",
        "v1",
        a,
        f"x{b}",
    ]
    assert parse_qsl(split.query, keep_blank_values=True) == [("q", a)]


def test_the_far_end_is_still_a_public_one_or_allowed(far_end: FarEnd, secrets: Any) -> None:
    declared = {"kind": "http", "request": {"url": f"http://{far_end.authority}/"}}
    parts: dict[str, Any] = dict.fromkeys(("preview", "reconcile", "compensate", "secret"))
    seen = effect_for(declared, **parts, allowed_hosts=[]).execute(call())
    assert (seen.outcome, far_end.connections) == (Outcome.FAILED, 0)


def test_a_redirect_is_not_followed(far_end: FarEnd, make: Make) -> None:
    far_end.behave = answering(302, {}, f"Location: http://{far_end.authority}/else")
    assert make().execute(call()).outcome is Outcome.UNKNOWN
    assert far_end.connections == 1


# What came back

RULES = [
    {"status": 402, "means": "failed"},
    {"status": 404, "means": "unknown"},
    {"status": 202, "means": "unknown"},
    {"status": 429, "means": "unknown"},
    {"status": 200, "where": {"/ok": [False]}, "means": "failed"},
    {"status": "2xx", "where": {"/busy": [1, "{key}"]}, "means": "not_performed"},
    {"status": 409, "where": {"/error/code": ["exists"], "/key": ["{key}"]}, "means": "performed"},
    {"status": "5xx", "where": {"/error/code": ["not_started"]}, "means": "not_performed"},
    {"status": "400-499", "where": {"/locked": [None, []]}, "means": "not_performed"},
]
NOT_STARTED = {"error": {"code": "not_started"}}


@pytest.mark.parametrize(
    ("status", "body", "outcome"),
    [
        (200, {"ok": True}, "succeeded"),
        (200, {"ok": False}, "failed"),
        (200, {"ok": 0}, "succeeded"),
        (201, {"busy": 1}, "not_performed"),
        (201, {"busy": True}, "succeeded"),
        (201, {"busy": "key-1"}, "not_performed"),
        (201, {"busy": "{key}"}, "succeeded"),
        (202, {"ok": True}, "unknown"),
        (204, b"", "unknown"),
        (200, b"OK", "unknown"),
        (400, {"a": 1}, "failed"),
        (400, {"locked": None}, "not_performed"),
        (400, {"locked": []}, "not_performed"),
        (402, {"a": 1}, "failed"),
        (402, b"", "failed"),
        (404, {"a": 1}, "unknown"),
        (409, {"error": {"code": "exists"}, "key": "key-1"}, "succeeded"),
        (409, {"error": {"code": "exists"}, "key": "key-2"}, "unknown"),
        (409, {"error": {"code": "exists"}}, "unknown"),
        (429, {}, "unknown"),
        (500, {"error": {"code": "oops"}}, "unknown"),
        (503, NOT_STARTED, "not_performed"),
        (503, [NOT_STARTED], "unknown"),
        (418, {}, "unknown"),
        (302, {"ok": True}, "unknown"),
        # Whatever was declared of them: a timeout, and what cannot be read.
        (504, NOT_STARTED, "unknown"),
        (408, {"locked": None}, "unknown"),
        (402, b"<h1>Payment required</h1>", "unknown"),
        (400, b"<h1>Bad</h1>", "unknown"),
        (503, b'{"error": {"code": "not_started"}', "unknown"),
        (200, b'{"ok": false', "unknown"),
    ],
)
def test_the_first_rule_that_holds_says_what_an_answer_means(
    far_end: FarEnd, make: Make, status: int, body: Any, outcome: str
) -> None:
    far_end.behave = answering(status, body)
    assert make(outcomes=RULES).execute(call()).outcome == outcome


@pytest.mark.parametrize(
    "behave",
    [
        resetting,
        sending(b""),
        sending(b"HTTP/1.1 402 No\r\nContent-Length: 100\r\n\r\n{"),
        sending(
            b"HTTP/1.1 503 No\r\nContent-Length: 100\r\n\r\n" + json.dumps(NOT_STARTED).encode()
        ),
        sending(raw_answer(402, b"{}" + b" " * 1024 * 1024)),
    ],
    ids=["reset", "nothing", "broke off", "broke off after all of it", "too large"],
)
def test_no_declaration_makes_anything_of_an_answer_that_broke_off(
    far_end: FarEnd, make: Make, behave: Any
) -> None:
    far_end.behave = behave
    assert make(outcomes=RULES).execute(call()).outcome is Outcome.UNKNOWN


def test_no_declaration_makes_anything_of_a_timeout(far_end: FarEnd, make: Make) -> None:
    far_end.behave = lambda *_: far_end.closing.wait(3) and None
    seen = make(outcomes=RULES).execute(replace(call(), timeout=0.3))
    assert seen.outcome is Outcome.UNKNOWN


def test_what_did_not_begin_is_tried_again_when_the_far_end_says(
    far_end: FarEnd, make: Make
) -> None:
    far_end.behave = answering(503, NOT_STARTED, "Retry-After: 7")
    assert make(outcomes=RULES).execute(call()).retry_after == 7
    far_end.behave = answering(429, {}, "Retry-After: 5")
    assert make().execute(call()).retry_after == 5


def test_a_result_that_is_not_where_it_was_declared_is_unreadable(
    far_end: FarEnd, make: Make
) -> None:
    far_end.behave = answering(200, {"data": 1})
    assert make(answer={"result": "/object"}).execute(call()).outcome is Outcome.UNKNOWN


def test_an_answer_without_a_body_names_its_id_in_a_header(far_end: FarEnd, make: Make) -> None:
    effect = make(answer={"body": "none", "external_id": {"header": "X-Message-Id"}})
    far_end.behave = answering(202, b"", "X-Message-Id: m-1")
    assert effect.execute(call()) == Observed(Outcome.SUCCEEDED, None, "m-1")
    far_end.behave = answering(202, b"<h1>Sign in to the network</h1>")
    assert effect.execute(call()).outcome is Outcome.UNKNOWN


def test_a_number_that_is_too_long_for_us_is_kept_as_text(far_end: FarEnd, make: Make) -> None:
    effect = make(answer={"external_id": "/id"})
    far_end.behave = answering(200, b'{"id": 1234567890123456789, "n": -9007199254740993, "m": 7}')
    said = {"id": "1234567890123456789", "n": "-9007199254740993", "m": 7}
    assert effect.execute(call()) == Observed(Outcome.SUCCEEDED, said, "1234567890123456789")
    for refused in (
        b'{"id": 1234567890123456789, "id": 1}',
        b'{"id": 1234567890123456789, "x": NaN}',
        b"[" * 100_000 + b"1" * 30,
    ):
        far_end.behave = answering(200, refused)
        assert effect.execute(call()).outcome is Outcome.UNKNOWN


def test_a_character_that_cannot_be_kept_is_replaced_and_said(far_end: FarEnd, make: Make) -> None:
    far_end.behave = answering(200, b'{"id": 1e400, "x": "a\\u0000b"}')
    seen = make(answer={"external_id": "/id"}).execute(call())
    assert (seen.outcome, seen.result) == (Outcome.SUCCEEDED, {"id": "1e400", "x": "a\ufffdb"})
    assert "replaced" in (seen.error or "")


def test_a_refusal_says_what_the_far_end_says(far_end: FarEnd, make: Make) -> None:
    far_end.behave = answering(400, {"error": {"message": "No such charge"}, "trace": "x" * 500})
    seen = make(answer={"error": "/error/message"}).execute(call())
    assert seen.error == "The far end refused it (with status 400): No such charge"


# What undoes it, asks about it and looks at it before

ASKED = [
    {"status": 200, "where": {"/status": ["done"], "/ref": ["{key}"]}, "means": "performed"},
    {"status": 200, "where": {"/status": ["no"]}, "means": "failed"},
    {"status": 200, "where": {"/status": ["open"]}, "means": "pending"},
    {"status": 404, "where": {"/error/code": ["resource_missing"]}, "means": "not_performed"},
]


@pytest.mark.parametrize(
    ("status", "body", "finding"),
    [
        (200, {"status": "done", "ref": "key-1", "id": "re_1"}, Finding.PERFORMED),
        (200, {"status": "done", "ref": "key-2", "id": "re_1"}, Finding.CANNOT_TELL),
        (200, {"status": "no"}, Finding.FAILED),
        (200, {"status": "open"}, Finding.PENDING),
        (404, {"error": {"code": "resource_missing"}}, Finding.NOT_PERFORMED),
        (404, {"error": {"code": "no_such_route"}}, Finding.CANNOT_TELL),
        (404, {"outcome": "not_performed"}, Finding.CANNOT_TELL),
        (404, b"", Finding.CANNOT_TELL),
        (404, b"<h1>Not found</h1>", Finding.CANNOT_TELL),
        (200, b"<h1>Sign in</h1>", Finding.CANNOT_TELL),
        (200, {}, Finding.CANNOT_TELL),
        (500, {"status": "done", "ref": "key-1"}, Finding.CANNOT_TELL),
        (302, {"status": "done", "ref": "key-1"}, Finding.CANNOT_TELL),
    ],
)
def test_what_is_found_out_is_what_the_declaration_recognises(
    far_end: FarEnd, make: Make, status: int, body: Any, finding: Finding
) -> None:
    effect = make(
        "reconcile",
        path="/v1/refunds/by-reference/{key}",
        answer={"external_id": "/id"},
        outcomes=ASKED,
    )
    far_end.behave = answering(status, body)
    said = effect.reconcile(call())
    assert said.outcome is finding
    assert (far_end.asked[0].method, far_end.asked[0].path) == (
        "GET",
        "/v1/refunds/by-reference/key-1",
    )
    if finding is Finding.PERFORMED:
        assert said == Reconciled(finding, body, "re_1")


def test_who_cannot_be_reached_tells_nothing(far_end: FarEnd, make: Make) -> None:
    far_end.behave = resetting
    effect = make("reconcile", outcomes=ASKED, request={"query": {"ref": "{key}"}})
    assert effect.reconcile(call()).outcome is Finding.CANNOT_TELL


def test_it_is_undone_by_its_id_under_a_key_of_its_own(far_end: FarEnd, make: Make) -> None:
    effect = make(
        "compensate",
        path="/v1/refunds/{external_id}/cancel",
        request={"json": {"of": "{result.sum}", "key": "{compensation_key}", "call": "{key}"}},
        outcomes=[{"status": 409, "where": {"/code": ["done"]}, "means": "performed"}],
    )
    far_end.behave = answering(200, {"id": "re_1"})
    assert effect.compensate(call(), {"sum": 5}, "re_1").outcome is Outcome.SUCCEEDED
    (asked,) = far_end.asked
    assert (asked.path, asked.headers["idempotency-key"]) == (
        "/v1/refunds/re_1/cancel",
        "key-1:compensate",
    )
    assert asked.json() == {"of": 5, "key": "key-1:compensate", "call": "key-1"}
    for status, body, outcome in [
        (204, b"", Outcome.SUCCEEDED),
        (409, {"code": "done"}, Outcome.SUCCEEDED),
        (409, {"code": "other"}, Outcome.FAILED),
        (404, {}, Outcome.FAILED),
        (429, {}, Outcome.NOT_PERFORMED),
        (500, {}, Outcome.UNKNOWN),
    ]:
        far_end.behave = answering(status, body)
        assert effect.compensate(call(), {"sum": 5}, "re_1").outcome is outcome, status


def test_what_has_no_id_to_be_undone_by_is_for_a_person(far_end: FarEnd, make: Make) -> None:
    effect = make("compensate", path="/v1/refunds/{external_id}/cancel")
    seen = effect.compensate(call(), None, None)
    assert (seen.outcome, seen.sent, far_end.connections) == (Outcome.FAILED, False, 0)


def test_a_preview_shows_how_things_are_and_would_be(far_end: FarEnd, make: Make) -> None:
    effect = make(
        "preview",
        path="/v1/charges/{arguments.charge}",
        answer={
            "summary": "Refund {arguments.amount} of {answer.amount} {answer.currency}",
            "changes": [
                {
                    "object": "charge {arguments.charge}",
                    "before": "{answer.refunded}",
                    "after": "{arguments.amount}",
                }
            ],
            "warnings": ["{answer.warning}", "Dispute: {answer.dispute}"],
            "fresh_for": 60,
        },
    )
    said = {"amount": 5000, "currency": "EUR", "refunded": 0, "dispute": "du_1"}
    far_end.behave = answering(200, said)
    assert effect.preview(call(charge="ch_1", amount=1250)) == Preview(
        "Refund 1250 of 5000 EUR",
        [{"object": "charge ch_1", "before": 0, "after": 1250}],
        ["Dispute: du_1"],
        60.0,
    )
    assert (far_end.asked[0].method, far_end.asked[0].path) == ("GET", "/v1/charges/ch_1")
    for status, body in [(404, said), (200, {}), (200, b"no"), (200, b""), (200, {"amount": {}})]:
        far_end.behave = answering(status, body)
        with pytest.raises(PreviewFailed):
            effect.preview(call(charge="ch_1", amount=1250))


def test_what_is_not_declared_goes_the_services_own_way(far_end: FarEnd, make: Make) -> None:
    far_end.behave = answering(200, {"result": 7})
    effect = make("preview", answer={"summary": "x"})
    assert effect.execute(call()).result == 7
    assert far_end.asked[0].json()["tool"] == "charges.refund"
    assert effect.reconcile(call()).outcome is Finding.CANNOT_TELL


# Secrets

SIGNED: dict[str, Any] = {"headers": {"Authorization": {"secret": "pay-key", "prefix": "Bearer "}}}


def test_without_its_secret_a_call_is_not_begun(
    far_end: FarEnd, make: Make, secrets: dict[str, str]
) -> None:
    effects = {
        part: make(part, request=SIGNED, answer={"summary": "x"})
        for part in ("executor", "preview")
    }
    effects |= {part: make(part, request=SIGNED) for part in ("reconcile", "compensate")}
    secrets.clear()
    seen = effects["executor"].execute(call())
    assert (seen.outcome, seen.sent) == (Outcome.FAILED, False)
    assert seen.error == "The secret pay-key is not set; the call was not begun."
    assert effects["compensate"].compensate(call(), None, None).outcome is Outcome.FAILED
    said = effects["reconcile"].reconcile(call())
    assert (said.outcome, "pay-key" in (said.error or "")) == (Finding.CANNOT_TELL, True)
    with pytest.raises(PreviewFailed, match="pay-key"):
        effects["preview"].preview(call())
    assert far_end.connections == 0


BASIC = base64.b64encode(f"api:{SECRET}".encode()).decode()
ECHOES = [
    SECRET,
    SECRET.upper(),
    f"Bearer {SECRET}",
    base64.b64encode(SECRET.encode()).decode(),
    BASIC,
    f"Basic {BASIC}",
]


@pytest.mark.parametrize("status", [200, 400, 500])
@pytest.mark.parametrize("echo", ECHOES)
def test_a_secret_that_is_sent_back_is_taken_out(
    far_end: FarEnd, make: Make, caplog: pytest.LogCaptureFixture, status: int, echo: str
) -> None:
    caplog.set_level(logging.DEBUG)
    escaped = "".join(f"\\u{ord(char):04x}" for char in echo)
    body = f'{{"a": "x {echo} y", "{echo}": ["{escaped}"], "id": "{echo}"}}'.encode()
    signed = {"headers": {"A": {"secret": "pay-key"}, "B": {"secret": "pay-key", "user": "api"}}}
    effect = make(request=signed, answer={"external_id": "/id"})
    for sent in (body, f"<p>{echo}</p>".encode()):
        far_end.behave = answering(status, sent, f"X-Echo: {echo}")
        seen = repr(effect.execute(call())) + caplog.text
        for form in {*ECHOES, SECRET.lower(), escaped}:
            assert form not in seen
    assert far_end.asked[0].headers["a"] == SECRET


def test_one_of_digits_is_taken_out_where_it_comes_back_as_a_number(
    far_end: FarEnd, make: Make, secrets: dict[str, str]
) -> None:
    secrets["pay-key"] = "1234567890"
    far_end.behave = answering(200, {"a": 1234567890, "b": 12345678901.5, "c": 7})
    assert make(request=SIGNED).execute(call()).result == {"a": "•••", "b": "•••", "c": 7}


def test_a_preview_and_an_answer_about_a_call_hold_no_secret_either(
    far_end: FarEnd, make: Make
) -> None:
    far_end.behave = answering(200, {"status": "done", "ref": "key-1", "echo": SECRET})
    preview = make("preview", request=SIGNED, answer={"summary": "{answer.echo}"}).preview(call())
    assert preview.summary == "•••"
    asked = make("reconcile", request=SIGNED, outcomes=ASKED).reconcile(call())
    assert (asked.outcome, asked.result["echo"]) == (Finding.PERFORMED, "•••")
