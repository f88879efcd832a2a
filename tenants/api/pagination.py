"""Lists in pages of fifty, oldest first, by a key that rows keep: no page shifts under a reader."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar
from urllib.parse import urlencode
from uuid import UUID

from django.db import models
from django.http import HttpRequest

from tenants.api.answers import answer
from tenants.api.checks import Schema, is_uuid
from tenants.errors import InvalidQuery
from tenants.idempotency import Answer

PAGE: Final = 50
CURSOR_QUERY: Final[dict[str, Schema]] = {
    "cursor": {"type": "string", "description": "Where the page begins: from `next` or `previous`."}
}
M = TypeVar("M", bound=models.Model)


def page_schema(item: Schema) -> Schema:
    """Return the schema of a page of ``item``."""
    url = {"type": ["string", "null"], "format": "uri"}
    return {
        "type": "object",
        "required": ["results", "next", "previous"],
        "properties": {
            "results": {"type": "array", "items": item, "maxItems": PAGE},
            "next": url,
            "previous": url,
        },
    }


def page(
    request: HttpRequest,
    rows: models.QuerySet[M],
    render: Callable[[Sequence[M]], Sequence[Any]],
    *,
    by: str = "pk",
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """Answer with the page of ``rows`` that the request's cursor names, ordered by ``by``.

    ``by`` is a unique, never changing field: an id or a sequence number. ``render`` gets the rows
    of the page at once. Raises InvalidQuery for a cursor that is none of ours.
    """
    backwards, edge = _read_cursor(request, of_integers=by != "pk")
    if edge is not None:
        rows = rows.filter(**{f"{by}__{'lt' if backwards else 'gt'}": edge})
    found = list(rows.order_by(f"-{by}" if backwards else by)[: PAGE + 1])
    more = len(found) > PAGE
    shown = found[:PAGE]
    if backwards:
        shown.reverse()
    before, after = _edges(shown, by, edge)
    has_previous, has_next = (more, True) if backwards else (edge is not None, more)
    return answer(
        {
            "results": list(render(shown)),
            "next": _link(request, "n", after) if has_next else None,
            "previous": _link(request, "p", before) if has_previous else None,
        },
        headers=headers,
    )


def _edges(shown: Sequence[models.Model], by: str, edge: Any) -> tuple[Any, Any]:
    if not shown:
        return edge, edge
    return getattr(shown[0], by), getattr(shown[-1], by)


def _link(request: HttpRequest, direction: str, edge: Any) -> str:
    query = request.GET.dict()
    query.pop("wait", None)
    query["cursor"] = base64.urlsafe_b64encode(f"{direction}{edge}".encode()).decode().rstrip("=")
    return request.build_absolute_uri(f"{request.path}?{urlencode(query)}")


def _read_cursor(request: HttpRequest, *, of_integers: bool) -> tuple[bool, UUID | int | None]:
    """Return whether the page ends before its edge, and the edge; (False, None) without cursor."""
    raw = request.GET.get("cursor")
    if raw is None:
        return False, None
    direction, edge = _decoded(raw)
    if direction not in {"n", "p"}:
        raise _unknown()
    if of_integers and edge.isascii() and edge.isdecimal() and len(edge) <= 18:
        return direction == "p", int(edge)
    if not of_integers and is_uuid(edge):
        return direction == "p", UUID(edge)
    raise _unknown()


def _decoded(raw: str) -> tuple[str, str]:
    try:
        text = base64.b64decode(raw + "=" * (-len(raw) % 4), altchars=b"-_", validate=True).decode()
    except ValueError:
        raise _unknown() from None
    return text[:1], text[1:]


def _unknown() -> InvalidQuery:
    return InvalidQuery.at("/cursor", "Not a cursor of this service.")
