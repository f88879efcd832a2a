"""How refusals and failures become problem documents."""

import json
import logging
from typing import Any

import psycopg
import pytest
from django.core import exceptions as core
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest
from django.http.request import UnreadablePostError
from django.test import RequestFactory
from rest_framework import exceptions as drf

from config import errors
from config.errors import DomainError, Problem, as_problem, faults, pointer

MEMBERS = {"type", "title", "status", "detail", "code", "errors"}


class StepKeyReused(DomainError):
    """The key names another step.

    A longer text.
    """

    code = "step-key-reused"


def answer(exc: Exception) -> tuple[int, dict[str, Any]]:
    response = as_problem(exc, {})
    document = json.loads(response.content)
    assert response["Content-Type"] == "application/problem+json"
    assert document["status"] == response.status_code
    assert document["type"] == f"urn:abeyance:problem:{document['code']}"
    assert set(document) - {"incident"} == MEMBERS
    return response.status_code, document


def test_a_domain_error_is_a_conflict_whose_docstring_is_the_title() -> None:
    assert answer(StepKeyReused("Key k names step 3.")) == (
        409,
        {
            "type": "urn:abeyance:problem:step-key-reused",
            "title": "The key names another step",
            "status": 409,
            "detail": "Key k names step 3.",
            "code": "step-key-reused",
            "errors": [],
        },
    )


def test_a_problem_without_detail_says_its_title() -> None:
    assert answer(StepKeyReused())[1]["detail"] == "The key names another step."


CODES = {
    errors.Unauthenticated: (401, "unauthenticated"),
    errors.Forbidden: (403, "forbidden"),
    errors.PeopleOnly: (403, "people-only"),
    errors.AgentsOnly: (403, "agents-only"),
    errors.NotFound: (404, "not-found"),
    errors.MethodNotAllowed: (405, "method-not-allowed"),
    errors.MalformedJson: (400, "malformed-json"),
    errors.InvalidBody: (422, "invalid-body"),
    errors.BodyTooLarge: (413, "body-too-large"),
    errors.VersionMismatch: (412, "version-mismatch"),
    errors.IdempotencyKeyReused: (422, "idempotency-key-reused"),
    errors.RequestInProgress: (409, "request-in-progress"),
}


@pytest.mark.parametrize(("kind", "expected"), CODES.items())
def test_each_code_of_the_contract_has_its_status(
    kind: type[Problem], expected: tuple[int, str]
) -> None:
    status, document = answer(kind())
    assert (status, document["code"]) == expected


FOREIGN = [
    (Http404(), 404, "not-found"),
    (core.ObjectDoesNotExist("Run matching query does not exist."), 404, "not-found"),
    (drf.NotFound(), 404, "not-found"),
    (drf.NotAuthenticated(), 401, "unauthenticated"),
    (drf.AuthenticationFailed(), 401, "unauthenticated"),
    (drf.PermissionDenied(), 403, "forbidden"),
    (core.PermissionDenied(), 403, "forbidden"),
    (drf.MethodNotAllowed("PUT"), 405, "method-not-allowed"),
    (drf.NotAcceptable(), 406, "not-acceptable"),
    (drf.UnsupportedMediaType("text/plain"), 415, "unsupported-media-type"),
    (drf.ParseError(), 400, "malformed-json"),
    (drf.ValidationError("no"), 422, "invalid-body"),
    (core.ValidationError("no"), 422, "invalid-body"),
    (core.RequestDataTooBig(), 413, "body-too-large"),
    (core.SuspiciousOperation(), 400, "malformed-request"),
    (core.BadRequest(), 400, "malformed-request"),
    (UnreadablePostError(), 400, "malformed-request"),
    (drf.Throttled(7), 429, "too-many-requests"),
    (OperationalError("no route"), 503, "unavailable"),
    (InterfaceError("closed"), 503, "unavailable"),
    (psycopg.OperationalError("gone"), 503, "unavailable"),
    (KeyError("secret"), 500, "internal-error"),
    (drf.APIException("secret"), 500, "internal-error"),
]


@pytest.mark.parametrize(("exc", "status", "code"), FOREIGN, ids=repr)
def test_what_others_raise_is_a_problem_too(exc: Exception, status: int, code: str) -> None:
    answered, document = answer(exc)
    assert (answered, document["code"]) == (status, code)


def test_a_status_of_its_own_keeps_its_code_and_words() -> None:
    class Gone(drf.APIException):
        status_code = 410
        default_code = "link_expired"
        default_detail = "The link has expired."

    status, document = answer(Gone())
    assert (status, document["code"], document["detail"]) == (
        410,
        "link-expired",
        "The link has expired.",
    )


def test_headers_belong_to_the_refusal() -> None:
    assert as_problem(errors.Unauthenticated(), {})["WWW-Authenticate"] == "Bearer"
    assert as_problem(drf.NotAuthenticated(), {})["WWW-Authenticate"] == "Bearer"
    assert as_problem(drf.Throttled(7), {})["Retry-After"] == "7"
    assert as_problem(OperationalError(), {})["Retry-After"] == "1"
    assert as_problem(StepKeyReused(headers={"ETag": '"7"'}), {})["ETag"] == '"7"'


@pytest.mark.parametrize("exc", [RuntimeError("password=hunter2"), OperationalError("hunter2")])
def test_a_failure_tells_an_incident_and_nothing_of_itself(
    exc: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR, logger="config.errors"):
        _, document = answer(exc)
    assert "hunter2" not in json.dumps(document)
    (record,) = caplog.records
    assert document["incident"] in record.getMessage()
    assert record.exc_info is not None
    assert record.exc_info[1] is exc


def test_a_refusal_is_not_logged_as_a_failure(caplog: pytest.LogCaptureFixture) -> None:
    answer(StepKeyReused())
    assert caplog.records == []


def test_serializer_errors_name_their_places() -> None:
    detail = {
        "steps": [{}, {"tool": ["Required."], "a/b": ["No.", "Never."]}],
        "labels": ["Not a list."],
        "non_field_errors": ["Together wrong."],
    }
    _, document = answer(drf.ValidationError(detail))
    assert document["errors"] == [
        {"pointer": "/steps/1/tool", "detail": "Required."},
        {"pointer": "/steps/1/a~1b", "detail": "No."},
        {"pointer": "/steps/1/a~1b", "detail": "Never."},
        {"pointer": "/labels", "detail": "Not a list."},
        {"pointer": "", "detail": "Together wrong."},
    ]


def test_model_validation_errors_name_their_places() -> None:
    _, document = answer(core.ValidationError({"name": "Too long.", "__all__": ["Taken."]}))
    assert document["errors"] == [
        {"pointer": "/name", "detail": "Too long."},
        {"pointer": "", "detail": "Taken."},
    ]


def test_a_problem_at_a_place_names_it() -> None:
    _, document = answer(errors.InvalidBody.at(pointer("a", 0), "No."))
    assert document["detail"] == "No."
    assert document["errors"] == [{"pointer": "/a/0", "detail": "No."}]


def test_faults_begin_where_they_are_put() -> None:
    assert faults([("/amount", "No."), ("", "Neither.")], at="/arguments") == [
        {"pointer": "/arguments/amount", "detail": "No."},
        {"pointer": "/arguments", "detail": "Neither."},
    ]


def test_a_long_pointer_is_cut_to_what_holds_the_place() -> None:
    long = pointer("a", "b" * 505, "c" * 10_000)
    _, document = answer(errors.InvalidBody.at(long, "No."))
    assert document["errors"][0]["pointer"] == pointer("a", "b" * 505)
    _, document = answer(errors.InvalidBody.at(pointer("c" * 10_000), "No."))
    assert document["errors"][0]["pointer"] == ""


def test_the_number_of_errors_is_bounded() -> None:
    problem = errors.InvalidBody(errors=faults((pointer(i), "No.") for i in range(5000)))
    assert len(answer(problem)[1]["errors"]) == 100


def test_what_utf8_cannot_say_does_not_break_the_answer() -> None:
    assert answer(errors.InvalidBody.at("/\ud800", "No."))[1]["errors"][0]["pointer"] == "/?"


# What never reaches a view of the API


@pytest.fixture
def api_request() -> HttpRequest:
    return RequestFactory().get("/api/v1/no-such-path")


def test_an_unknown_path_of_the_api_is_a_problem(api_request: HttpRequest) -> None:
    response = errors.not_found(api_request, Http404())
    assert response.status_code == 404
    assert json.loads(response.content)["code"] == "not-found"


def test_what_django_refuses_is_a_problem(api_request: HttpRequest) -> None:
    response = errors.bad_request(api_request, core.RequestDataTooBig())
    assert (response.status_code, json.loads(response.content)["code"]) == (413, "body-too-large")
    response = errors.permission_denied(api_request, core.PermissionDenied())
    assert (response.status_code, json.loads(response.content)["code"]) == (403, "forbidden")


def test_a_failing_middleware_is_a_problem_with_an_incident(
    api_request: HttpRequest, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise RuntimeError("hunter2")

    try:
        fail()
    except RuntimeError:
        response = errors.server_error(api_request)
    document = json.loads(response.content)
    assert (response.status_code, document["code"]) == (500, "internal-error")
    assert document["incident"] in caplog.text
    assert "hunter2" in caplog.text
    assert "hunter2" not in json.dumps(document)


def test_pages_keep_their_own_errors() -> None:
    page = RequestFactory().get("/inbox")
    for response in [
        errors.not_found(page, Http404()),
        errors.bad_request(page, core.BadRequest()),
        errors.permission_denied(page, core.PermissionDenied()),
        errors.server_error(page),
    ]:
        assert response["Content-Type"].startswith("text/html")
