"""What mails say of rules that were learned: asked upwards of what settings.LEARNED_NEWS names."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol
from uuid import UUID

from django.conf import settings
from django.utils.module_loading import import_string

from approvals.services.notices.words import Told


class News(Protocol):
    """What of the rules, or pauses of rules, named is still news to their person."""

    def suggested(self, recipient: UUID, named: Sequence[UUID]) -> Sequence[Told]: ...

    def paused(self, recipient: UUID, named: Sequence[UUID]) -> Sequence[Told]: ...


def suggested(recipient: UUID, named: Sequence[UUID]) -> Sequence[Told]:
    return _news().suggested(recipient, named)


def paused(recipient: UUID, named: Sequence[UUID]) -> Sequence[Told]:
    return _news().paused(recipient, named)


@lru_cache(maxsize=1)
def _news() -> News:
    made: News = import_string(settings.LEARNED_NEWS)()
    return made
