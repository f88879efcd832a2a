"""What the API says when it refuses: RFC 9457 problem documents, one code per meaning.

A `Problem` is raised anywhere below the API and becomes `application/problem+json` at its edge.
Apps derive from `DomainError` (409 unless they say otherwise), set `code`, and let the first line
of the docstring be the title.
"""

import json
import logging
import sys
import uuid
from collections.abc import Iterable, Iterator, Mapping
from http import HTTPStatus
from typing import Any, Self, TypedDict

import psycopg
from django.core.exceptions import (
    BadRequest,
    ObjectDoesNotExist,
    PermissionDenied,
    RequestDataTooBig,
    SuspiciousOperation,
)
from django.core.exceptions import ValidationError as DjangoValidationError
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse
from django.http.request import UnreadablePostError
from django.views import defaults
from rest_framework import exceptions as drf

PROBLEM_JSON = "application/problem+json"
MAX_ERRORS = 100
MAX_POINTER = 512
_API = "/api/"
_INCIDENT = "incident"

logger = logging.getLogger(__name__)


class Fault(TypedDict):
    """One place that is wrong: an RFC 6901 pointer into the body, and why."""

    pointer: str
    detail: str


def pointer(*parts: str | int) -> str:
    """Join keys and indexes to an RFC 6901 JSON pointer; no parts name the whole document."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)


def faults(pairs: Iterable[tuple[str, str]], at: str = "") -> list[Fault]:
    """Turn `(pointer, detail)` pairs into faults whose pointers begin at `at`."""
    return [{"pointer": at + place, "detail": detail} for place, detail in pairs]


class Problem(Exception):
    """The request is refused"""

    code: str = "problem"
    status: int = 400
    title: str = "The request is refused"
    usual_headers: Mapping[str, str] = {}
    is_of_binding: bool = False  # what is asked for is not what was approved, or agreed on before

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "title" not in cls.__dict__ and cls.__doc__:
            cls.title = cls.__doc__.strip().splitlines()[0].rstrip(".")

    def __init__(
        self,
        detail: str | None = None,
        *,
        errors: Iterable[Fault] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.detail = detail if detail is not None else f"{self.title}."
        self.errors: list[Fault] = list(errors)
        self.headers: dict[str, str] = {**self.usual_headers, **(headers or {})}
        super().__init__(self.detail)

    @classmethod
    def at(cls, place: str, detail: str) -> Self:
        """Return this problem with one fault: `place` is its pointer, `detail` says why."""
        return cls(detail, errors=[{"pointer": place, "detail": detail}])

    def document(self) -> dict[str, Any]:
        """Return the members of the problem document."""
        return {
            "type": f"urn:abeyance:problem:{self.code}",
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
            "code": self.code,
            "errors": [
                {"pointer": _bounded(fault["pointer"]), "detail": fault["detail"]}
                for fault in self.errors[:MAX_ERRORS]
            ],
        }


class DomainError(Problem):
    """The request is well formed, but the current state does not allow it."""

    code = "conflict"
    status = 409


class MalformedJson(Problem):
    """The body is not JSON as this service reads it."""

    code = "malformed-json"
    status = 400


class MalformedRequest(Problem):
    """The request is not HTTP as this service reads it."""

    code = "malformed-request"
    status = 400


class Unauthenticated(Problem):
    """No valid credential came with the request."""

    code = "unauthenticated"
    status = 401
    usual_headers = {"WWW-Authenticate": "Bearer"}


class Forbidden(Problem):
    """The caller is known and lacks the right."""

    code = "forbidden"
    status = 403


class PeopleOnly(Forbidden):
    """Only a person may do this."""

    code = "people-only"


class AgentsOnly(Forbidden):
    """Only an agent may do this."""

    code = "agents-only"


class NotFound(Problem):
    """Nothing of that name exists here."""

    code = "not-found"
    status = 404


class MethodNotAllowed(Problem):
    """The path does not take this method."""

    code = "method-not-allowed"
    status = 405


class NotAcceptable(Problem):
    """The service has no representation that the Accept header allows."""

    code = "not-acceptable"
    status = 406


class RequestInProgress(DomainError):
    """A request with this idempotency key is still being worked; ask again in a moment."""

    code = "request-in-progress"
    usual_headers = {"Retry-After": "1"}


class VersionMismatch(Problem):
    """The state has changed since the version named in If-Match."""

    code = "version-mismatch"
    status = 412


class BodyTooLarge(Problem):
    """The body is larger than this path takes."""

    code = "body-too-large"
    status = 413


class UnsupportedMediaType(Problem):
    """The body is of a media type this path does not take."""

    code = "unsupported-media-type"
    status = 415


class InvalidBody(Problem):
    """A member of the body is missing, unknown or of the wrong kind."""

    code = "invalid-body"
    status = 422


class IdempotencyKeyReused(Problem):
    """This idempotency key was used for another request."""

    code = "idempotency-key-reused"
    status = 422


class TooManyRequests(Problem):
    """The caller sends more than it may."""

    code = "too-many-requests"
    status = 429


class _Incident(Problem):
    """The service failed; the incident id finds it in the log."""

    def __init__(self, detail: str | None = None, **kwargs: Any) -> None:
        super().__init__(detail, **kwargs)
        self.incident = str(uuid.uuid4())

    def document(self) -> dict[str, Any]:
        return {**super().document(), _INCIDENT: self.incident}


class UnexpectedError(_Incident):
    """The service failed unexpectedly."""

    code = "internal-error"
    status = 500


class Unavailable(_Incident):
    """The service cannot reach what it needs; try again under the same Idempotency-Key."""

    code = "unavailable"
    status = 503
    usual_headers = {"Retry-After": "1"}


def as_problem(exc: Exception, _context: Mapping[str, Any] | None = None) -> HttpResponse:
    """Answer any exception with a problem document (the REST framework's EXCEPTION_HANDLER).

    An exception no one foresaw is logged with its traceback under an incident id; the answer holds
    the id and nothing of the exception.
    """
    problem = translate(exc)
    if isinstance(problem, _Incident):
        logger.error("%s %s", _INCIDENT, problem.incident, exc_info=exc)
    return problem_response(problem)


def problem_response(problem: Problem) -> HttpResponse:
    """Render a problem as the response that carries it."""
    body = json.dumps(problem.document(), ensure_ascii=False, separators=(",", ":"))
    return HttpResponse(
        body.encode("utf-8", "replace"),  # a lone surrogate quoted in a detail has no encoding
        status=problem.status,
        content_type=PROBLEM_JSON,
        headers=problem.headers,
    )


def translate(exc: Exception) -> Problem:
    """Return the problem that says what `exc` says."""
    if isinstance(exc, Problem):
        return exc
    if isinstance(exc, drf.ValidationError):
        return InvalidBody(errors=_validation_faults(exc.detail))
    if isinstance(exc, DjangoValidationError):
        return InvalidBody(errors=_validation_faults(_django_detail(exc)))
    for kinds, problem in _BY_KIND:
        if isinstance(exc, kinds):
            return problem(headers=_own_headers(exc))
    return _other_drf(exc) if isinstance(exc, drf.APIException) else UnexpectedError()


_BY_KIND: tuple[tuple[tuple[type[Exception], ...], type[Problem]], ...] = (
    # An unknown id and one of another tenant look alike.
    ((ObjectDoesNotExist, Http404, drf.NotFound), NotFound),
    ((drf.NotAuthenticated, drf.AuthenticationFailed), Unauthenticated),
    ((PermissionDenied, drf.PermissionDenied), Forbidden),
    ((drf.ParseError,), MalformedJson),
    ((drf.MethodNotAllowed,), MethodNotAllowed),
    ((drf.NotAcceptable,), NotAcceptable),
    ((drf.UnsupportedMediaType,), UnsupportedMediaType),
    ((drf.Throttled,), TooManyRequests),
    ((RequestDataTooBig,), BodyTooLarge),
    ((BadRequest, SuspiciousOperation, UnreadablePostError), MalformedRequest),
    (
        (OperationalError, InterfaceError, psycopg.OperationalError, psycopg.InterfaceError),
        Unavailable,
    ),
)


def _own_headers(exc: Exception) -> dict[str, str] | None:
    wait = getattr(exc, "wait", None)
    return {"Retry-After": str(int(wait))} if wait else None


def _other_drf(exc: drf.APIException) -> Problem:
    if exc.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return UnexpectedError()
    problem = Problem(str(exc.detail))
    problem.code = exc.default_code.replace("_", "-")
    problem.status = exc.status_code
    problem.title = HTTPStatus(exc.status_code).phrase
    return problem


def _django_detail(exc: DjangoValidationError) -> Any:
    return exc.message_dict if hasattr(exc, "error_dict") else exc.messages


def _validation_faults(detail: Any, at: str = "") -> list[Fault]:
    return [{"pointer": place, "detail": text} for place, text in _walk_validation(detail, at)]


def _walk_validation(detail: Any, at: str) -> Iterator[tuple[str, str]]:
    if isinstance(detail, Mapping):
        for key, value in detail.items():
            of_the_whole = key in {"non_field_errors", "__all__"}
            yield from _walk_validation(value, at if of_the_whole else at + pointer(key))
    elif isinstance(detail, list):
        for index, value in enumerate(detail):
            yield from _walk_validation(
                value, at if isinstance(value, str) else at + pointer(index)
            )
    else:
        yield at, str(detail)


def _bounded(place: str) -> str:
    """Cut a long pointer at a part, so that it still names what holds the place."""
    if len(place) <= MAX_POINTER:
        return place
    return place[: place.rfind("/", 0, MAX_POINTER)] if "/" in place[1:MAX_POINTER] else ""


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """Answer an unknown path (handler404, and a view for what no route takes)."""
    if request.path.startswith(_API):
        return problem_response(NotFound())
    return defaults.page_not_found(request, exception or Http404())


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer what Django itself refuses to read (handler400)."""
    if request.path.startswith(_API):
        return problem_response(translate(exception))
    return defaults.bad_request(request, exception)


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer a refusal from outside the API's views (handler403)."""
    if request.path.startswith(_API):
        return problem_response(Forbidden())
    return defaults.permission_denied(request, exception)


def server_error(request: HttpRequest) -> HttpResponse:
    """Answer an exception that a middleware or a page raised (handler500)."""
    if not request.path.startswith(_API):
        return defaults.server_error(request)
    problem = UnexpectedError()
    logger.error("%s %s", _INCIDENT, problem.incident, exc_info=sys.exc_info())
    return problem_response(problem)
