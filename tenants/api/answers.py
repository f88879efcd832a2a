"""Answers: values as JSON, times as RFC 3339 in UTC, problems and versions in headers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.http import HttpResponse

from tenants.idempotency import Answer

JSON = "application/json"
REPLAYED = "Idempotent-Replayed"


def answer(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
    """Render ``value`` as the JSON body of an answer."""
    return Answer(status, headers or {}, _encode(value))


def nothing() -> Answer:
    """Answer 204: it is done, and there is nothing to show."""
    return Answer(204, {}, "")


def instant(moment: datetime | None) -> str | None:
    """Render a time as RFC 3339 in UTC with a ``Z``."""
    if moment is None:
        return None
    return f"{moment.astimezone(UTC).replace(tzinfo=None).isoformat()}Z"


def etag(version: int) -> dict[str, str]:
    """Return the ETag header of a run's ``state_version``."""
    return {"ETag": f'"{version}"'}


def replayed(first: Answer) -> Answer:
    """Return the first answer again, marked as such."""
    return first._replace(headers={**first.headers, REPLAYED: "true"})


def response(made: Answer) -> HttpResponse:
    """Return the HTTP response of an answer."""
    status, headers, body = made
    if not body:
        sent = HttpResponse(status=status, headers=dict(headers))
        del sent.headers["Content-Type"]
        return sent
    return HttpResponse(body.encode(), status=status, headers=dict(headers), content_type=JSON)


def _other(value: Any) -> Any:
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, datetime):
        return instant(value)
    if isinstance(value, Decimal):
        return format(value.normalize(), "f")
    raise TypeError(f"{type(value).__name__} is not JSON")


_encode = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, separators=(",", ":"), default=_other
).encode
