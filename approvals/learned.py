"""What is learned of people's answers, asked upwards beside a gate: named by settings.LEARNED."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from uuid import UUID

from django.conf import settings
from django.utils.module_loading import import_string

from approvals.models import Gate


@dataclass(frozen=True, slots=True)
class Learned:
    """What keeps a rule of the person's from deciding it, in plain words; and a rule that they may
    turn on so that they are not: ``{id, version, sentence, allowed, refused, asked}``."""

    why: str | None = None
    offer: Mapping[str, Any] | None = None


def of_gate(gate: Gate, user_id: UUID) -> Learned:
    """Return what is learned of the person that a gate is about."""
    return _of_gate()(gate, user_id)


@lru_cache(maxsize=1)
def _of_gate() -> Callable[[Gate, UUID], Learned]:
    made: Callable[[Gate, UUID], Learned] = import_string(settings.LEARNED)
    return made
