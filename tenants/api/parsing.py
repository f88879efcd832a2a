"""The body of a request, as strict JSON."""

from typing import Any

from django.http import HttpRequest

from config import jsontext
from config.errors import BodyTooLarge, UnsupportedMediaType

MIB = 1024 * 1024


def read_body(request: HttpRequest, limit: int) -> bytes:
    """Return the raw body; BodyTooLarge over ``limit`` bytes, before it is read where it says so."""
    if _announced(request) > limit:
        raise BodyTooLarge(f"This path takes up to {limit} bytes.")
    raw = request.body
    if len(raw) > limit:
        raise BodyTooLarge(f"This path takes up to {limit} bytes.")
    return raw


def _announced(request: HttpRequest) -> int:
    length = request.META.get("CONTENT_LENGTH") or "0"
    return int(length) if length.isdecimal() else 0


def parse_body(request: HttpRequest, raw: bytes) -> Any:
    """Read the body: JSON, whatever else it says it is is refused; none at all is ``{}``."""
    if not raw:
        return {}
    kind = request.META.get("CONTENT_TYPE") or ""
    kind = kind.partition(";")[0].strip().lower()
    if kind and kind != "application/json" and not kind.endswith("+json"):
        raise UnsupportedMediaType("The body is JSON: send it as application/json.")
    return jsontext.parse(raw)
