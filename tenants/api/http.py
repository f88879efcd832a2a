"""What the API reads from headers and the query, and what it tells the front in headers."""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from datetime import datetime
from typing import TYPE_CHECKING, Final
from uuid import UUID

from django.http import HttpRequest

from config.errors import pointer
from tenants.api.checks import Schema, is_instant, is_uuid, read_instant
from tenants.conditions import ANY_VERSION, IfMatch
from tenants.errors import InvalidQuery

if TYPE_CHECKING:
    from tenants.api.view import ApiCall

MAX_WAIT_SECONDS: Final = 60
# The front tells which version it first saw when it asks again (config/front/holding.py).
SEEN: Final = "HTTP_X_ABEYANCE_SEEN"
# In any offset these are times that can be reckoned with and written in UTC.
_FIRST_YEAR: Final = 1970
_LAST_YEAR: Final = 9998
_ETAG = re.compile(r'\s*(W/)?"([^"]*)"\s*(?:,|$)')

WAIT_QUERY: Final[dict[str, Schema]] = {
    "wait": {
        "type": "number",
        "minimum": 0,
        "maximum": MAX_WAIT_SECONDS,
        "description": "Answer when the run has changed past `after_version`, or after so many"
        " seconds.",
    },
    "after_version": {
        "type": "integer",
        "minimum": 0,
        "description": "The `state_version` already known; the present one where absent.",
    },
}


def read_if_match(header: str | None) -> IfMatch:
    """Read If-Match (RFC 9110, 13.1.1): a weak or malformed tag matches nothing."""
    if header is None or header.strip() == "*":
        return ANY_VERSION
    return IfMatch(frozenset(tag for weak, tag in _ETAG.findall(header) if not weak))


def waiting(call: ApiCall, run_id: UUID, version: int) -> dict[str, str]:
    """Return the headers that make the front hold this GET until ``run_id`` is past ``version``.

    None where no wait was asked for, or the run is past ``after_version`` already. Raises
    InvalidQuery where either parameter is not what it should be.
    """
    if not call.request.GET:
        return {}
    seconds = _seconds(call.request)
    after = integer(call.request, "after_version", least=0)
    if not seconds:
        return {}
    if after is None:
        after = int(call.request.META.get(SEEN, version))
    if version > after:
        return {}
    return {"X-Abeyance-Wait": f"run:{run_id}", "X-Abeyance-Version": str(version)}


def _seconds(request: HttpRequest) -> float:
    raw = request.GET.get("wait", "0")
    try:
        seconds = float(raw) if raw.isascii() and not raw.startswith("_") else math.nan
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds <= MAX_WAIT_SECONDS:
        raise _invalid("wait", f"Must be a number of seconds from 0 to {MAX_WAIT_SECONDS}.")
    return seconds


def integer(request: HttpRequest, name: str, *, least: int = 0) -> int | None:
    """Return the integer parameter, None where absent; InvalidQuery where it is none."""
    raw = request.GET.get(name)
    if raw is None:
        return None
    if not (raw.isascii() and raw.isdecimal() and len(raw) <= 18 and int(raw) >= least):
        raise _invalid(name, f"Must be an integer from {least} on.")
    return int(raw)


def moment(request: HttpRequest, name: str) -> datetime | None:
    """Return the time parameter, None where absent; InvalidQuery where it is no RFC 3339 time."""
    raw = request.GET.get(name)
    if raw is None:
        return None
    if not is_instant(raw):
        raise _invalid(name, "Must be a time with its offset, as 2026-01-31T00:00:00Z.")
    read = read_instant(raw)
    if not _FIRST_YEAR <= read.year <= _LAST_YEAR:
        raise _invalid(name, f"Must be in the years {_FIRST_YEAR} to {_LAST_YEAR}.")
    return read


def identifier(request: HttpRequest, name: str) -> UUID | None:
    """Return the id parameter, None where absent; InvalidQuery where it is no UUID."""
    raw = request.GET.get(name)
    if raw is None:
        return None
    if not is_uuid(raw):
        raise _invalid(name, "Must be a UUID.")
    return UUID(raw)


def choice(request: HttpRequest, name: str, allowed: Collection[str]) -> str | None:
    """Return the parameter, None where absent; InvalidQuery where it is none of ``allowed``."""
    raw = request.GET.get(name)
    if raw is not None and raw not in allowed:
        raise _invalid(name, f"Must be one of: {', '.join(map(str, allowed))}.")
    return raw


def plain(request: HttpRequest, name: str) -> str | None:
    """Return a free text parameter, None where absent; InvalidQuery where it cannot be stored."""
    raw = request.GET.get(name)
    if raw is not None and "\x00" in raw:
        raise _invalid(name, "Must not hold NUL characters.")
    return raw


def _invalid(name: str, detail: str) -> InvalidQuery:
    return InvalidQuery.at(pointer(name), detail)
