"""The words of mails: what they say of one call, and how a text of others is made plain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from django.conf import settings
from django.urls import reverse
from django.utils import timezone

from approvals.models import Gate
from interrupts.models import Effect, Step

_RISKS: Final = {"low": "Low risk", "medium": "Medium risk", "high": "High risk"}


@dataclass(frozen=True, slots=True)
class Told:
    """One thing that a mail tells: alone, or as a line among others."""

    subject: str
    said: str
    headline: str
    facts: Sequence[str]
    link: str
    link_says: str = "Open the decision"
    line: str = ""  # among others; the subject where it says nothing else
    foot: Sequence[str] = field(default=())


@dataclass(frozen=True, slots=True)
class Together:
    """What many of a kind are called in one mail: the count's words, and the page with all."""

    what: str  # "decisions wait for you"
    page: str

    @property
    def url(self) -> str:
        return url(reverse(self.page))


def about(gate: Gate) -> list[str]:
    """Return what a mail names of a gate at its foot."""
    return [f"Decision {gate.pk}, digest {gate.digest[7:15]}."]


def link_to(gate: Gate) -> str:
    return url(reverse("decision", args=[gate.pk]))


def url(path: str) -> str:
    return f"{settings.ABEYANCE_BASE_URL.rstrip('/')}{path}"


def risk_of(call: Gate | Step) -> str:
    return "Irreversible" if call.effect == Effect.IRREVERSIBLE else _RISKS[call.risk]


def undo_of(call: Gate | Step) -> str:
    if call.effect == Effect.IRREVERSIBLE:
        return "it can't be undone"
    return "it can be undone" if call.effect == Effect.REVERSIBLE else "its tool has no undo"


def when(moment: datetime) -> str:
    local = timezone.localtime(moment)
    today = local.date() == timezone.localdate()
    return local.strftime("%H:%M" if today else "%d %b, %H:%M")


def plain(text: str) -> str:
    """Return one line in which no mail program finds an address to make a link of."""
    return " ".join(text.split()).replace("://", ": //").replace("www.", "www .")
