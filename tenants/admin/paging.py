"""Lists of tables that may be large: nothing is counted to its end, nothing skipped for ever."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpRequest

if TYPE_CHECKING:
    Pages = Paginator[Any]
else:
    Pages = Paginator

MOST_COUNTED: Final = 1000


class CappedPaginator(Pages):
    """Pages through the first so many rows; what is further back is found by id or by its run."""

    @cached_property
    def count(self) -> int:
        rows: Any = self.object_list
        if not isinstance(rows, QuerySet):
            return len(rows)
        return rows.order_by().values("pk")[:MOST_COUNTED].count()


def by_id(rows: QuerySet[Any], asked: str) -> QuerySet[Any]:
    """Return the row of that id; none where it is no id."""
    try:
        return rows.filter(pk=UUID(asked.strip()))
    except ValueError:
        return rows.none()


class SearchedById:
    """A list that is searched by whole ids only: no scan."""

    search_help_text: Any = "A whole id"

    def get_search_fields(self, request: HttpRequest) -> tuple[str, ...]:  # noqa: ARG002 - Django's signature
        return ("pk",)

    def get_search_results(
        self,
        request: HttpRequest,  # noqa: ARG002 - Django's signature
        queryset: QuerySet[Any],
        search_term: str,
    ) -> tuple[QuerySet[Any], bool]:
        return (by_id(queryset, search_term) if search_term else queryset), False
