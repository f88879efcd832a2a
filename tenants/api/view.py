"""The one way into the API: sign-in, tenant, and refusals in the order the contract names.

401, 413, 404, 405, strict JSON, 403 by kind and role, the shape of the body; what follows (403 by
object, its state, the rest of the content) is the service's. Whether the path's object exists is
looked up only where something else would be refused: what goes well finds out in the service.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from django.core.exceptions import BadRequest, ObjectDoesNotExist, SuspiciousOperation
from django.db import DatabaseError, InterfaceError
from django.http import Http404, HttpRequest, HttpResponse
from django.http.request import UnreadablePostError
from rest_framework.views import APIView

from config import jsontext
from config.errors import MethodNotAllowed, NotFound, Problem, as_problem, translate
from tenants import idempotency, refusals
from tenants.api.answers import replayed, response
from tenants.api.auth import SignedIn, signed_in
from tenants.api.http import read_if_match
from tenants.api.openapi import TenantSchema
from tenants.api.operation import Operation
from tenants.api.parsing import parse_body, read_body
from tenants.conditions import IfMatch
from tenants.errors import InvalidHeader
from tenants.idempotency import Answer, KeyName
from tenants.models import TenantOwned
from tenants.principal import Principal
from tenants.statements import Row, Statement

FORESEEN = (
    Problem,
    ObjectDoesNotExist,
    Http404,
    DatabaseError,
    InterfaceError,
    BadRequest,
    SuspiciousOperation,
    UnreadablePostError,
)
MAX_KEY = 255
_HANDLERS = {"POST": "post", "PUT": "put", "PATCH": "patch", "DELETE": "delete"}


@dataclass(slots=True)
class ApiCall:
    """One request, read: who asks, and a body that has the declared shape."""

    request: HttpRequest
    principal: Principal
    body: Any
    found: Row = ()  # what ``beside`` looked up

    @property
    def query(self) -> Mapping[str, str]:
        return self.request.GET.dict()

    @property
    def if_match(self) -> IfMatch:
        return read_if_match(self.request.META.get("HTTP_IF_MATCH"))


class TenantView(APIView):
    """A path of the API. Its methods are declared with `operation` and take an `ApiCall`.

    ``subject`` is the model of the path's ``pk``: an unknown one, or one of another tenant, is 404
    before anything else about the request is.
    """

    subject: ClassVar[type[TenantOwned] | None] = None
    schema = TenantSchema()
    operations: ClassVar[Mapping[str, Operation]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        found: dict[str, Operation] = {
            method.upper(): declared
            for method in cls.http_method_names
            if (declared := getattr(getattr(cls, method, None), "operation", None))
        }
        if "GET" in found:
            found["HEAD"] = found["GET"]
        cls.operations = found

    def dispatch(self, request: HttpRequest, *_args: Any, **kwargs: Any) -> HttpResponse:
        try:
            with signed_in(request, self.beside(**kwargs)) as signed:
                made = response(self._served(request, signed, kwargs))
        except FORESEEN as refusal:
            made = as_problem(refusal)
        made.headers.setdefault("Cache-Control", "no-store")
        return made

    def exists(self, **kwargs: Any) -> bool:
        """Return whether the object that the path names is there, in this tenant."""
        if self.subject is None:
            return True
        return self.subject.objects.filter(pk=kwargs["pk"]).exists()

    def beside(self, **kwargs: Any) -> Statement | None:  # noqa: ARG002
        """Return what is to be looked up in the caller's tenant while they are signed in."""
        return None

    def at_once(self, call: ApiCall, name: KeyName, **kwargs: Any) -> Answer | None:  # noqa: ARG002
        """Answer a request with a key in few round trips; None: nothing is done, go the long way.

        What it does, and the answer under the key, must be one transaction.
        """
        return None

    def _served(self, request: HttpRequest, signed: SignedIn, kwargs: Mapping[str, Any]) -> Answer:
        try:
            return self._serve(request, signed, kwargs)
        except FORESEEN as refusal:
            refusals.tell(signed.principal, request, translate(refusal))
            raise

    def _serve(self, request: HttpRequest, signed: SignedIn, kwargs: Mapping[str, Any]) -> Answer:
        operation = self.operations.get(request.method or "")
        raw = read_body(request, operation.limit if operation else self._largest())
        try:
            if operation is None:
                return self._without_operation(request)
            call = _read(request, signed, operation, raw)
        except Problem:
            if not self.exists(**kwargs):
                raise NotFound from None
            raise
        handler = self._handler(request.method)
        key = request.META.get("HTTP_IDEMPOTENCY_KEY") if request.method == "POST" else None
        if key is None:
            return handler(call, **kwargs)
        name = _name(call, key)
        if (made := self.at_once(call, name, **kwargs)) is not None:
            return made
        return _once(name, operation, lambda: handler(call, **kwargs))

    def _handler(self, method: str | None) -> Callable[..., Answer]:
        handler: Callable[..., Answer] = getattr(self, _HANDLERS.get(str(method), "get"))
        return handler

    def _largest(self) -> int:
        return max((one.limit for one in self.operations.values()), default=Operation("").limit)

    def _without_operation(self, request: HttpRequest) -> Answer:
        allow = {"Allow": ", ".join([*self.operations, "OPTIONS"])}
        if request.method == "OPTIONS" and self.operations:
            return Answer(204, allow, "")
        raise MethodNotAllowed(headers=allow)


def _read(request: HttpRequest, signed: SignedIn, operation: Operation, raw: bytes) -> ApiCall:
    body = parse_body(request, raw) if request.method != "GET" else {}
    operation.admit(signed.principal)
    operation.body.check(body)
    return ApiCall(request, signed.principal, body, signed.found)


def _name(call: ApiCall, key: str) -> KeyName:
    if not 1 <= len(key) <= MAX_KEY or not key.isprintable():
        raise InvalidHeader(f"Idempotency-Key takes 1 to {MAX_KEY} printable characters.")
    return KeyName(str(call.principal.actor), key, _fingerprint(call))


def _once(name: KeyName, operation: Operation, handle: Callable[[], Answer]) -> Answer:
    """Work a request with a key once: an answer is kept, a refusal leaves what it recorded."""
    refusal: Problem | None = None
    with idempotency.once(*name, in_transaction=not operation.own_transaction) as pending:
        if pending.first is not None:
            return replayed(pending.first)
        try:
            made = handle()
            idempotency.store_answer_within_transaction(*made)
        except Problem as problem:
            refusal = problem
    if refusal is not None:
        raise refusal
    return made


def _fingerprint(call: ApiCall) -> bytes:
    request = call.request
    named = f"{request.method} {request.path}\n".encode()
    return hashlib.sha256(named + jsontext.canonical(call.body)).digest()


class Nowhere(TenantView):
    """Whatever path no other view took."""

    def exists(self, **_kwargs: Any) -> bool:
        return False
