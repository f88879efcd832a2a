"""The tenant's journal, newest first, and what it says of one thing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db.models import JSONField, QuerySet
from django.db.models.functions import Cast
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from tenants.models import Agent, JournalEntry, User
from tenants.scope import current_tenant_id

A_PAGE: Final = 50
_KINDS: Final = ("added", "changed", "removed")


@dataclass(frozen=True, slots=True)
class Shown:
    """An entry as it is read: who, what, and each member that differs, before and after."""

    seq: int
    at: datetime
    kind: str
    actor: str
    name: str
    fields: Sequence[tuple[str, str, str]]


def entries_of(noun: str, name: str) -> list[Shown]:
    """Return what the journal says of one thing: the newest entries."""
    rows = _stream().annotate(said=Cast("text", JSONField()))
    kinds = [f"{noun}.{kind}" for kind in _KINDS]
    return _shown(rows.filter(kind__in=kinds, said__data__name=name)[:A_PAGE])


def journal_view(request: HttpRequest, context: dict[str, Any]) -> HttpResponse:
    """Show a page of the tenant's stream: those before ``before``."""
    asked = request.GET.get("before", "")
    rows = _stream()
    if asked.isdecimal() and len(asked) < 19:
        rows = rows.filter(seq__lt=int(asked))
    entries = _shown(rows[:A_PAGE])
    more = entries[-1].seq if len(entries) == A_PAGE else None
    shown = {**context, "title": "Journal", "entries": entries, "more": more}
    return TemplateResponse(request, "admin/journal.html", shown)


def _stream() -> QuerySet[JournalEntry]:
    return JournalEntry.objects.filter(stream=current_tenant_id()).order_by("-seq")


def _shown(rows: Iterable[JournalEntry]) -> list[Shown]:
    read = [(row, json.loads(row.text)) for row in rows]
    names = _names([said["actor"] for _, said in read])
    return [
        Shown(
            row.seq,
            row.at,
            row.kind,
            names.get(said["actor"]["id"], f"{said['actor']['kind']} {said['actor']['id']}"),
            str(said["data"].get("name", "")),
            _fields(said["data"]),
        )
        for row, said in read
    ]


def _names(actors: Iterable[dict[str, str]]) -> dict[str, str]:
    """Return people and agents by id. A superuser who acted here is named here, though no member."""
    ids: dict[str, set[str]] = {"user": set(), "agent": set()}
    for actor in actors:
        if actor["kind"] in ids and _is_id(actor["id"]):
            ids[actor["kind"]].add(actor["id"])
    people = User.objects.filter(pk__in=ids["user"]).values_list("pk", "username")
    agents = Agent.objects.filter(pk__in=ids["agent"]).values_list("pk", "name")
    return {str(pk): name for pk, name in [*people, *agents]}


def _is_id(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True


def _fields(data: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return each member that differs; of an entry without before and after, what it says."""
    if "before" not in data and "after" not in data:
        return [(name, "", _plain(value)) for name, value in sorted(data.items()) if name != "name"]
    before, after = data.get("before") or {}, data.get("after") or {}
    return [
        (name, _plain(before.get(name)), _plain(after.get(name)))
        for name in sorted({**before, **after})
        if before.get(name) != after.get(name)
    ]


def _plain(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)
