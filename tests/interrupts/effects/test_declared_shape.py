"""What a declared request may say, and the place of each fault."""

import copy
from typing import Any

import pytest

from interrupts.declarations import check_tool, secret_faults
from interrupts.effects import needs_secret

PAY: dict[str, Any] = {
    "name": "charges.refund",
    "effect": "irreversible",
    "risk": "high",
    "key_lifetime": 86400,
    "sensitive": ["/card"],
    "arguments": {
        "type": "object",
        "required": ["charge", "amount"],
        "properties": {
            "charge": {"type": "string"},
            "amount": {"type": "integer"},
            "reason": {"type": "string"},
            "card": {"type": "string"},
            "tags": {"type": "array", "items": {"type": "string"}},
        },
        "additionalProperties": False,
    },
    "executor": {
        "kind": "http",
        "timeout": 5,
        "request": {
            "method": "POST",
            "url": "https://api.pay.test/v1/charges/{arguments.charge}/refunds",
            "query": {"expand": ["charge", "{arguments.tags}"]},
            "headers": {
                "Authorization": {"secret": "pay-key", "prefix": "Bearer "},
                "Pay-Version": "2026-01-01",
            },
            "idempotency_header": "Request-Id",
            "form": {"amount": "{arguments.amount}", "metadata[step]": "{key}"},
        },
        "answer": {"result": "", "external_id": "/id", "cost": "/fee", "error": "/error/message"},
        "outcomes": [
            {"status": 402, "means": "failed"},
            {"status": 404, "means": "unknown"},
            {"status": 409, "where": {"/error/code": ["idempotency_in_use"]}, "means": "unknown"},
            {"status": "5xx", "where": {"/error/code": ["not_started"]}, "means": "not_performed"},
        ],
    },
    "preview": {
        "request": {"url": "https://api.pay.test/v1/charges/{arguments.charge}"},
        "answer": {
            "summary": "Refund {arguments.amount} of {answer.amount}",
            "changes": [{"object": "charge", "before": "{answer.amount}", "after": 0}],
            "warnings": ["{answer.warning}"],
            "fresh_for": 60,
        },
    },
    "reconcile": {
        "settle_after": 3,
        "request": {
            "url": "https://api.pay.test/v1/refunds",
            "query": {"reference": "{key}"},
            "headers": {"Authorization": {"secret": "pay-key", "user": "api"}},
        },
        "answer": {"result": "/data/0", "external_id": "/data/0/id"},
        "outcomes": [
            {"status": 200, "where": {"/data/0/status": ["done", "sent"]}, "means": "performed"},
            {"status": 200, "where": {"/data": [[]]}, "means": "not_performed"},
            {"status": 202, "means": "pending"},
        ],
    },
    "compensate": {
        "request": {
            "method": "DELETE",
            "url": "https://api.pay.test/v1/refunds/{external_id}",
            "headers": {"Pay-Key": {"secret": "other-key"}, "X-Of": "{result.id}"},
            "json": {"key": "{compensation_key}", "all": "{result}"},
        },
        "answer": {"body": "none"},
    },
}


def declared(*path: str | int, value: Any) -> dict[str, Any]:
    made = copy.deepcopy(PAY)
    at: Any = made
    for part in path[:-1]:
        at = at[part]
    at[path[-1]] = value
    return made


def places(tool: dict[str, Any]) -> list[str]:
    return [place for place, _ in check_tool(tool)]


def test_a_sound_declaration_has_no_faults() -> None:
    assert check_tool(PAY) == []


def test_it_is_no_request_of_ours_to_sign() -> None:
    parts = {name: PAY[name] for name in ("preview", "reconcile", "compensate")}
    assert needs_secret(PAY["executor"], **parts) is False


REQUEST = ("executor", "request")


@pytest.mark.parametrize(
    ("path", "value", "place"),
    [
        (REQUEST, [], "/executor/request"),
        (REQUEST, {"method": "POST"}, "/executor/request/url"),
        ((*REQUEST, "metod"), "POST", "/executor/request/metod"),
        ((*REQUEST, "method"), "post", "/executor/request/method"),
        ((*REQUEST, "method"), "HEAD", "/executor/request/method"),
        ((*REQUEST, "method"), ["POST"], "/executor/request/method"),
        ((*REQUEST, "json"), {}, "/executor/request/form"),
        ((*REQUEST, "query"), [], "/executor/request/query"),
        ((*REQUEST, "query"), {"a": {}}, "/executor/request/query"),
        ((*REQUEST, "query"), {"a": None}, "/executor/request/query"),
        ((*REQUEST, "form"), {"a": [{}]}, "/executor/request/form"),
        ((*REQUEST, "form"), {"a": "{arguments.none}"}, "/executor/request/form/a"),
        ((*REQUEST, "form"), {"a": "{amount}"}, "/executor/request/form/a"),
        ((*REQUEST, "form"), {"a": "{arguments}"}, "/executor/request/form/a"),
        ((*REQUEST, "form"), {"a": "{arguments.amount"}, "/executor/request/form/a"),
        ((*REQUEST, "form"), {"a": "{result.id}"}, "/executor/request/form/a"),
        ((*REQUEST, "form"), {"a": "{key.x}"}, "/executor/request/form/a"),
        ((*REQUEST, "form"), {"a": "{attempt}"}, "/executor/request/form/a"),
        ((*REQUEST, "form"), {"a/b": ["x", "{none}"]}, "/executor/request/form/a~1b/1"),
        ((*REQUEST, "query"), {"card": "{arguments.card}"}, "/executor/request/query/card"),
        ((*REQUEST, "idempotency_header"), "", "/executor/request/idempotency_header"),
        ((*REQUEST, "idempotency_header"), "a b", "/executor/request/idempotency_header"),
        ((*REQUEST, "idempotency_header"), "Host", "/executor/request/idempotency_header"),
        ((*REQUEST, "headers"), [], "/executor/request/headers"),
        ((*REQUEST, "headers", "a b"), "x", "/executor/request/headers/a b"),
        ((*REQUEST, "headers", "A\r\nB"), "x", "/executor/request/headers/A\r\nB"),
        ((*REQUEST, "headers", "host"), "x", "/executor/request/headers/host"),
        ((*REQUEST, "headers", "Content-Length"), "1", "/executor/request/headers/Content-Length"),
        ((*REQUEST, "headers", "Request-ID"), "1", "/executor/request/headers/Request-ID"),
        ((*REQUEST, "headers", "pay-version"), "1", "/executor/request/headers/pay-version"),
        ((*REQUEST, "headers", "X"), "a\r\nb", "/executor/request/headers/X"),
        ((*REQUEST, "headers", "X"), " a", "/executor/request/headers/X"),
        ((*REQUEST, "headers", "X"), "ä", "/executor/request/headers/X"),
        ((*REQUEST, "headers", "X"), 1, "/executor/request/headers/X"),
        ((*REQUEST, "headers", "X"), "{nothing}", "/executor/request/headers/X"),
        ((*REQUEST, "headers", "X"), {}, "/executor/request/headers/X"),
        ((*REQUEST, "headers", "X"), {"secret": "a/b"}, "/executor/request/headers/X"),
        ((*REQUEST, "headers", "X"), {"secret": 1}, "/executor/request/headers/X"),
        ((*REQUEST, "headers", "X"), {"secret": "a", "value": "b"}, "/executor/request/headers/X"),
        ((*REQUEST, "headers", "X"), {"secret": "a", "user": "b:"}, "/executor/request/headers/X"),
        (
            (*REQUEST, "headers", "X"),
            {"secret": "a", "user": "b", "prefix": "c"},
            "/executor/request/headers/X",
        ),
        (("executor", "url"), "https://api.pay.test/", "/executor/url"),
        (("executor", "answer"), "/id", "/executor/answer"),
        (("executor", "answer", "id"), "/id", "/executor/answer/id"),
        (("executor", "answer", "result"), "id", "/executor/answer/result"),
        (("executor", "answer", "cost"), None, "/executor/answer/cost"),
        (("executor", "answer", "body"), "text", "/executor/answer/body"),
        (("executor", "answer", "external_id"), {"header": 1}, "/executor/answer/external_id"),
        (("executor", "answer"), {"body": "none", "result": "/a"}, "/executor/answer/result"),
        (("preview", "answer"), {}, "/preview/answer/summary"),
        (("preview", "answer", "summary"), "", "/preview/answer/summary"),
        (("preview", "answer", "summary"), "{arguments.card}", "/preview/answer/summary"),
        (("preview", "answer", "summary"), "{key}", "/preview/answer/summary"),
        (("preview", "answer", "changes"), [{"before": 1}], "/preview/answer/changes"),
        (("preview", "answer", "warnings"), "x", "/preview/answer/warnings"),
        (("preview", "answer", "fresh_for"), -1, "/preview/answer/fresh_for"),
        (("preview", "answer", "more"), 1, "/preview/answer/more"),
        (("preview", "outcomes"), [{"status": 200, "means": "performed"}], "/preview/outcomes"),
        (("preview", "request", "method"), "DELETE", "/preview/request/method"),
        (("preview", "request", "form"), {}, "/preview/request/form"),
        (("reconcile", "attempts"), 0, "/reconcile/attempts"),
        (("reconcile", "outcomes"), [], "/reconcile/outcomes"),
        (("reconcile", "answer", "cost"), "/fee", "/reconcile/answer/cost"),
        (
            ("reconcile", "request", "idempotency_header"),
            "X",
            "/reconcile/request/idempotency_header",
        ),
        (("compensate", "request", "method"), "GET", "/compensate/request/method"),
    ],
)
def test_a_fault_is_told_with_its_place(path: tuple[str, ...], value: Any, place: str) -> None:
    assert place in places(declared(*path, value=value))


@pytest.mark.parametrize(
    "url",
    [
        None,
        "",
        "/v1/refunds",
        "ftp://api.pay.test/",
        "https://{arguments.charge}/v1",
        "https://api.{arguments.charge}.test/v1",
        "https://api.pay.test:{arguments.amount}/v1",
        "{arguments.charge}://api.pay.test/v1",
        "https://{arguments.charge}@api.pay.test/v1",
        "https://user:word@api.pay.test/v1",
        "https://api.pay.test/v1?charge={arguments.charge}",
        "https://api.pay.test/v1?all=1",
        "https://api.pay.test/v1#{arguments.charge}",
        "https://api.pay.test/v1/../{arguments.charge}",
        "https://api.pay.test/v1/%2e%2e/x",
        "https://api.pay.test/v1/./x",
        "https://api.pay.test/v1/%zz",
        "https://api.pay.test/v1/{{arguments.charge}}",
        "https://api.pay.test/v1/{arguments.charge",
        "https://api.pay.test/v1/{}",
        "https://api.pay.test/v1/{arguments.none}",
        "https://api.pay.test/v1/{arguments.card}",
        "https://api.pay.test/v1/{arguments}",
        "https://api.pay.test/v1/{charge}",
        "https://api.pay.test/ v1",
        "https://api.pay.test\\@evil.test/",
        "https://api.pay.test/" + "x" * 2000,
    ],
)
def test_a_name_stands_in_the_path_of_a_url_and_nowhere_else(url: Any) -> None:
    assert places(declared(*REQUEST, "url", value=url)) == ["/executor/request/url"]


@pytest.mark.parametrize(
    "name",
    ["Authorization", "cookie", "X-Api-Key", "apikey", "X-Auth-Token", "Proxy-Authorization"],
)
def test_what_signs_in_is_never_written_in_a_declaration(name: str) -> None:
    tool = declared(*REQUEST, "headers", value={name: "Bearer in-clear"})
    assert places(tool) == [f"/executor/request/headers/{name}"]


PERFORMED = {"/status": ["done"]}


@pytest.mark.parametrize(
    ("rule", "place"),
    [
        ([], ""),
        ({"means": "failed"}, "/status"),
        ({"status": 402}, "/means"),
        ({"status": True, "means": "failed"}, "/status"),
        ({"status": "all", "means": "failed"}, "/status"),
        ({"status": 199, "means": "failed"}, "/status"),
        ({"status": "499-400", "means": "failed"}, "/status"),
        ({"status": 402, "means": "pending"}, "/means"),
        ({"status": 402, "means": "failed", "why": "x"}, "/why"),
        ({"status": 402, "means": "failed", "where": []}, "/where"),
        ({"status": 402, "means": "failed", "where": {"status": ["x"]}}, "/where/status"),
        ({"status": 402, "means": "failed", "where": {"/status": []}}, "/where/~1status"),
        ({"status": 402, "means": "failed", "where": {"/status": "x"}}, "/where/~1status"),
        ({"status": 402, "means": "failed", "where": {"/s": [{"a": 1}]}}, "/where/~1s"),
        # What no declaration may claim.
        ({"status": 500, "means": "failed"}, "/means"),
        ({"status": 503, "means": "not_performed"}, "/means"),
        ({"status": "5xx", "means": "performed"}, "/means"),
        ({"status": "400-599", "means": "failed"}, "/means"),
        ({"status": 504, "means": "failed", "where": PERFORMED}, "/means"),
        ({"status": 408, "means": "not_performed", "where": PERFORMED}, "/means"),
        ({"status": 302, "means": "performed", "where": PERFORMED}, "/means"),
        ({"status": "2xx", "means": "failed"}, "/means"),
        ({"status": 200, "means": "not_performed"}, "/means"),
        ({"status": 409, "means": "performed"}, "/means"),
        ({"status": "200-499", "means": "failed", "where": PERFORMED}, "/means"),
    ],
)
def test_an_outcome_claims_no_more_than_an_answer_can_prove(rule: Any, place: str) -> None:
    assert places(declared("executor", "outcomes", value=[rule])) == [
        f"/executor/outcomes/0{place}"
    ]


@pytest.mark.parametrize(
    "rule",
    [
        {"status": 200, "means": "performed"},
        {"status": "4xx", "means": "not_performed"},
        {"status": 404, "means": "not_performed"},
        {"status": 404, "means": "failed"},
        {"status": 500, "means": "performed", "where": {"/status": ["done"]}},
        {"status": 302, "means": "performed", "where": {"/status": ["done"]}},
        {"status": 408, "means": "not_performed", "where": {"/status": ["none"]}},
        {"status": 404, "means": "unknown", "where": {"/status": ["none"]}},
    ],
)
def test_who_is_asked_proves_nothing_by_a_status_alone(rule: Any) -> None:
    assert places(declared("reconcile", "outcomes", value=[rule])) == [
        "/reconcile/outcomes/0/means"
    ]


def test_what_is_found_out_is_about_this_very_call() -> None:
    tool = declared("reconcile", "request", "query", value={"charge": "{arguments.amount}"})
    assert places(tool) == ["/reconcile/outcomes/0"]
    tool["reconcile"]["outcomes"][0]["where"]["/data/0/reference"] = ["{key}"]
    assert check_tool(tool) == []


def test_a_get_is_for_what_has_no_effect() -> None:
    tool = declared(*REQUEST, value={"method": "GET", "url": "https://api.pay.test/v1"})
    assert "/executor/request/method" in places(tool)
    assert check_tool({**tool, "effect": "read", "key_lifetime": None}) == []


def test_a_key_that_is_not_sent_is_honoured_by_nobody() -> None:
    tool = declared(*REQUEST, "idempotency_header", value=None)
    assert check_tool(tool) == []  # it stands in the body
    tool["executor"]["request"]["form"] = {"amount": "{arguments.amount}"}
    assert places(tool) == ["/key_lifetime"]


def test_a_declaration_is_bounded() -> None:
    tool = declared(*REQUEST, "form", value={"a": "x" * 70_000})
    assert places(tool) == ["/executor"]


def test_a_secret_that_is_not_there_is_told_with_its_place() -> None:
    assert [*secret_faults([PAY], {"pay-key", "other-key"})] == []
    assert [place for place, _ in secret_faults([{**PAY, "name": "x"}, PAY], {"pay-key"})] == [
        "/0/compensate/request/headers/Pay-Key",
        "/1/compensate/request/headers/Pay-Key",
    ]
