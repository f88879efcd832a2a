"""What holds for every path of the API, whichever it is: read from what is published."""

import json
import re
from typing import Any

from django.urls import resolve

from config.errors import DomainError
from tenants.api import openapi
from tenants.api.operation import Operation
from tests.api.conftest import NO_SUCH, Api, published

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
# What needs no particular object, with a body that would be accepted.
UNKNOWN = dict.fromkeys(
    [
        "runs",
        "steps",
        "attempts",
        "gates",
        "interrupts",
        "checkpoints",
        "freezes",
        "delegations",
        "delegation-templates",
        "decision",
        "question",
        "decided",
    ],
    NO_SUCH,
) | {"name": "no.such"}


def operation(path: str, method: str) -> Operation:
    """What a published path declares of a method."""
    url = re.sub(r"\{(id|decision|question)\}", NO_SUCH, path).replace("{name}", "x")
    declared: Operation = resolve(url).func.cls.operations[method]
    return declared


def is_problem(status: int, body: Any) -> bool:
    members = {"type", "title", "status", "detail", "code", "errors"}
    return (
        members <= set(body)
        and body["status"] == status
        and body["type"] == f"urn:abeyance:problem:{body['code']}"
    )


def posts() -> list[str]:
    return [path for method, path in published() if method == "POST"]


def callers(path: str, method: str) -> list[str]:
    """Who may call it at all, by the kind of caller and the role."""
    declared = operation(path, method)
    people = [] if declared.who == "agents" else ["ada", "olga"]
    return people + ([] if declared.who == "people" else ["bot"])


def test_everything_is_published_and_tested_here() -> None:
    assert len(published()) > 35
    assert len(posts()) > 15


def statuses() -> dict[str, int]:
    """By code, with what status each refusal is answered."""
    found: list[type[DomainError]] = [DomainError]
    for one in found:
        found += one.__subclasses__()
    return {one.code: one.status for one in found}


def test_a_refusal_is_published_with_the_status_that_it_has() -> None:
    said = [
        (method, path, code, status)
        for method, path in published()
        for code, status in operation(path, method).refusals.items()
    ]
    assert len(said) > 50
    answered = statuses()
    assert len(answered) > 30
    assert [one for one in said if answered.get(one[2], one[3]) != one[3]] == []


def test_whoever_is_not_known_learns_nothing(api: Api) -> None:
    before = api.rows()
    for _, path in published():
        for where in (api.fill(path), api.fill(path, UNKNOWN)):
            for method in METHODS:
                status, body, headers = api.send("nobody", method, where, raw=b"{")
                assert (status, body["code"]) == (401, "unauthenticated"), (method, where)
                assert headers["WWW-Authenticate"] == "Bearer"
    assert api.rows() == before


def test_what_is_not_there_is_404_before_anything_else_is_said(api: Api) -> None:
    for _, path in published():
        if "{" not in path:
            continue
        for who in ("bot", "ada", "vera"):
            for method in METHODS:
                status, body, _ = api.send(who, method, api.fill(path, UNKNOWN), raw=b"{")
                assert (status, body["code"]) == (404, "not-found"), (who, method, path)
        broken = api.fill(path, {**UNKNOWN, **dict.fromkeys(api.ids, "not-a-uuid")})
        assert api.send("ada", "GET", broken)[0] in (404, 405), broken


def test_nothing_of_a_tenant_exists_for_another_one(api: Api) -> None:
    before = api.rows()
    for method, path in published():
        if "{id}" not in path:
            continue
        for who in ("stranger", "stranger-ada"):
            for body in (b"{", b"{}"):
                status, told, _ = api.send(who, method, api.fill(path), raw=body)
                assert (status, told["code"]) == (404, "not-found"), (who, method, path)
    assert api.rows() == before


def test_lists_hold_nothing_of_another_tenant(api: Api) -> None:
    for path in ("/runs", "/gates", "/interrupts", "/freezes"):
        for who in ("stranger", "stranger-ada"):
            status, body, _ = api.send(who, "GET", path)
            assert status == 403 or body["results"] == [], (who, path)
        assert api.made("ada", "GET", path)["results"] != [], path


def test_another_method_is_405_with_those_there_are(api: Api) -> None:
    declared: dict[str, set[str]] = {}
    for method, path in published():
        declared.setdefault(path, set()).add(method)
    for path, methods in declared.items():
        for method in set(METHODS) - methods:
            status, body, headers = api.send("bot", method, api.fill(path), raw=b"{")
            assert (status, body["code"]) == (405, "method-not-allowed"), (method, path)
            assert set(headers["Allow"].split(", ")) >= methods
            assert is_problem(status, body)


def test_no_path_ends_with_a_slash_and_none_redirects(api: Api) -> None:
    for _, path in published():
        status, body, _ = api.send("bot", "GET", api.fill(path) + "/")
        assert (status, body["code"]) == (404, "not-found"), path
    for where in ("", "/", "/nowhere", "/runs/nowhere", "/runs//steps"):
        for method in METHODS:
            status, body, _ = api.send("bot", method, where, raw=b"{")
            assert status == 404, (method, where)
            assert is_problem(status, body)


HOSTILE = {
    b'{"a": 1': (400, "malformed-json"),
    b"{'a': 1}": (400, "malformed-json"),
    b'{"a": 1} x': (400, "malformed-json"),
    b"\xff\xfe": (400, "malformed-json"),
    b'{"a": 1, "a": 2}': (422, "invalid-body"),
    b'{"a": NaN}': (422, "invalid-body"),
    b'{"a": -Infinity}': (422, "invalid-body"),
    b'{"a": 9007199254740993}': (422, "invalid-body"),
    b'{"a": 1e400}': (422, "invalid-body"),
    b'{"a": "\\u0000"}': (422, "invalid-body"),
    b'{"a": "\\ud800"}': (422, "invalid-body"),
    b'{"a": ' + b"[" * 65 + b"]" * 65 + b"}": (422, "invalid-body"),
    b"[" * 100_000: (None, None),
    b"[]": (None, None),
    b"null": (None, None),
    b'"x"': (None, None),
    b"7": (None, None),
}


def test_hostile_json_is_refused_everywhere_and_nothing_is_stored(api: Api) -> None:
    before = api.rows()
    for path in posts():
        who = callers(path, "POST")[0]
        for raw, (status, code) in HOSTILE.items():
            found, body, headers = api.send(who, "POST", api.fill(path), raw=raw)
            assert found in (400, 422), (path, raw[:20], body)
            assert is_problem(found, body)
            assert headers["Content-Type"] == "application/problem+json"
            if status is not None:
                assert (found, body["code"]) == (status, code), (path, raw[:20])
    assert api.rows() == before


def test_a_member_that_no_one_declared_is_refused_with_its_pointer(api: Api) -> None:
    before = api.rows()
    for path in posts():
        for who in callers(path, "POST"):
            status, body, _ = api.send(who, "POST", api.fill(path), {"no/such": 1})
            assert (status, body["code"]) == (422, "invalid-body"), (who, path, body)
            assert "/no~1such" in {fault["pointer"] for fault in body["errors"]}, path
    assert api.rows() == before


def test_a_body_over_its_limit_is_refused_before_its_path_is_looked_at(api: Api) -> None:
    before = api.rows()
    for path in posts():
        limit = operation(path, "POST").limit
        for ids in (api.ids, UNKNOWN):
            raw = b'{"x": "' + b"x" * limit + b'"}'
            status, body, _ = api.send("bot", "POST", api.fill(path, ids), raw=raw)
            assert (status, body["code"]) == (413, "body-too-large"), path
    assert api.rows() == before


def test_the_kind_of_caller_is_told_after_the_json_and_before_the_shape(api: Api) -> None:
    before = api.rows()
    for method, path in published():
        declared = operation(path, method)
        for who, refused, code in (
            ("bot", declared.who == "people", "people-only"),
            ("ada", declared.who == "agents", "agents-only"),
        ):
            if refused:
                raw = b'{"no_such": 1}'
                status, body, _ = api.send(who, method, api.fill(path), raw=raw)
                assert (status, body["code"]) == (403, code), (who, method, path)
                if method == "POST":
                    assert api.send(who, method, api.fill(path), raw=b"{")[0] == 400
    assert api.rows() == before


def test_a_viewer_changes_nothing(api: Api) -> None:
    before = api.rows()
    for method, path in published():
        declared = operation(path, method)
        if method != "GET" and declared.changes and declared.who != "agents":
            status, body, _ = api.send("vera", method, api.fill(path), {"no_such": 1})
            assert (status, body["code"]) == (403, "forbidden"), (method, path)
    assert api.rows() == before


def test_every_member_reads_everything(api: Api) -> None:
    for method, path in published():
        if method == "GET" and operation(path, "GET").who == "both":
            for who in ("vera", "bob", "olga", "ada"):
                assert api.send(who, "GET", api.fill(path))[0] == 200, (who, path)


def test_an_agent_reads_its_own_runs_only(api: Api) -> None:
    own = {"runs", "steps", "gates", "interrupts", "checkpoints"}
    for method, path in published():
        noun = path.removeprefix("/api/v1/").partition("/")[0]
        if method == "GET" and "{id}" in path and noun in own:
            assert api.send("bot", "GET", api.fill(path))[0] == 200, path
            status, body, _ = api.send("other", "GET", api.fill(path))
            assert (status, body["code"]) == (403, "not-your-run"), path
    for path in ("/runs", "/gates", "/interrupts"):
        assert api.made("other", "GET", path)["results"] == []


def test_a_get_changes_nothing(api: Api) -> None:
    before = api.rows()
    for method, path in published():
        if method == "GET":
            for who in ("bot", "alice", "ada"):
                api.send(who, "GET", api.fill(path))
                api.send(who, "HEAD", api.fill(path))
    assert api.rows() == before


def test_nothing_is_kept_by_those_who_pass_an_answer_on(api: Api) -> None:
    for where in ("/runs", "/nowhere"):
        assert api.send("bot", "GET", where)[2]["Cache-Control"] == "no-store"


NO_LISTS = (
    *("{id}", "{name}", "current", "events", "journal"),
    *("calibration", "overgating", "reach", "why"),  # figures and words
)


def test_every_list_is_a_page(api: Api) -> None:
    for method, path in published():
        if method != "GET" or path.endswith(NO_LISTS):
            continue
        body = api.made("ada", "GET", api.fill(path))
        assert set(body) == {"results", "next", "previous"}, path
        status, told, _ = api.send("ada", "GET", f"{api.fill(path)}?cursor=x")
        assert (status, told.get("code")) == (422, "invalid-query"), path


def test_the_published_document_is_valid_openapi() -> None:
    from drf_spectacular.validation import validate_schema

    document = json.loads(json.dumps(openapi.document()))
    assert document["openapi"] == "3.1.0"
    validate_schema(document)
    ids = [one["operationId"] for ops in document["paths"].values() for one in ops.values()]
    assert len(ids) == len(set(ids))
    text = json.dumps(document)
    for name in {part.split('"')[0] for part in text.split("#/components/schemas/")[1:]}:
        assert name in document["components"]["schemas"], name
