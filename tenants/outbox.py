"""E-mails to people, from rows that stand or fall with what they tell.

A row is claimed before its mail is sent and marked after: no two workers send it, and only a crash
between the sending and the mark repeats it, under the same Message-ID. Many at once become one
mail: what goes beyond a few within a minute is gathered, for at most that minute.
"""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from smtplib import SMTPException
from typing import Final, cast
from urllib.parse import urlsplit
from uuid import UUID

from django.conf import settings
from django.core.mail import EmailMessage
from django.db import connection, connections, transaction
from django.db.models import F
from django.db.models.functions import Now
from django.utils.module_loading import import_string

from tenants import queue
from tenants.clock import database_now
from tenants.ids import uuid7
from tenants.models import OutboxMessage

BATCH: Final = 500
AGAIN_SECONDS: Final = 5
MOST_IN_ONE: Final = 100
MANY: Final = 5  # mails of a kind that a person gets one by one within
WITHIN: Final = timedelta(minutes=1)
CLAIMED: Final = timedelta(minutes=2)  # till a mail whose sender died is sent by another
TRIES: Final = 12
FIRST_WAIT: Final = 30  # seconds, doubling
LONGEST_WAIT: Final = 3600
MOST_ERROR: Final = 500
Compose = Callable[[str, UUID, Sequence[OutboxMessage]], EmailMessage | None]
logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Parcel:
    """What goes into one mail."""

    id: UUID
    kind: str
    recipient: UUID
    messages: Sequence[OutboxMessage]


_hinted: dict[UUID, float] = {}


def sweep_outbox() -> int:
    """Have a worker send what is due in each tenant; return how many were told to.

    The sweep itself sends nothing: a mail server that is slow keeps nobody else waiting. While a
    worker is at it, it is told no more than every few seconds.
    """
    with connections["sweep"].cursor() as cursor:
        cursor.execute(
            "SELECT DISTINCT tenant_id FROM (SELECT tenant_id FROM tenants_outboxmessage"
            " WHERE due_at <= clock_timestamp() ORDER BY due_at LIMIT %s) due",
            [BATCH],
        )
        tenants = [tenant for (tenant,) in cursor.fetchall()]
    now = time.monotonic()
    for tenant in [one for one, at in _hinted.items() if now - at >= AGAIN_SECONDS]:
        del _hinted[tenant]
    waiting = [tenant for tenant in tenants if tenant not in _hinted]
    for tenant in waiting:
        _hinted[tenant] = now
        queue.send(str(tenant))
    return len(waiting)


def send_due() -> int:
    """Send what is due in the current tenant; return how many mails were worked on."""
    due = OutboxMessage.objects.filter(due_at__lte=Now(), recipient__isnull=False)
    worked = 0
    for kind, recipient in set(due.values_list("kind", "recipient")[:BATCH]):
        if _composer(kind) is None or recipient is None:
            continue
        for parcel in _claim(kind, recipient):
            _send(parcel)
            worked += 1
    return worked


def _composer(kind: str) -> Compose | None:
    name = settings.OUTBOX.get(kind.split(".", maxsplit=1)[0])
    return cast(Compose, import_string(name)) if name else None


# Claiming


def _claim(kind: str, recipient: UUID) -> list[Parcel]:
    """Take what is due for a person, so that nobody else sends it, and sort it into mails."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            # One at a time counts how many a person was sent within the minute.
            cursor.execute(
                "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"{kind} {recipient}"]
            )
        now = database_now()
        rows = OutboxMessage.objects.filter(kind=kind, recipient=recipient)
        due = list(rows.filter(due_at__lte=now).order_by("id")[:MOST_IN_ONE])
        parcels = list(_again(due))
        parcels += _fresh([one for one in due if not one.attempts], now)
        taken = [one.pk for parcel in parcels for one in parcel.messages]
        OutboxMessage.objects.filter(pk__in=taken).update(
            due_at=now + CLAIMED, attempts=F("attempts") + 1
        )
    return parcels


def _again(due: Sequence[OutboxMessage]) -> Iterator[Parcel]:
    """Return what was tried before, in the mails that it was in then."""
    mails: dict[UUID, list[OutboxMessage]] = defaultdict(list)
    for one in due:
        if one.attempts:
            mails[one.batch or one.pk].append(one)
    for pk, messages in mails.items():
        yield Parcel(pk, messages[0].kind, cast(UUID, messages[0].recipient), messages)


def _fresh(fresh: Sequence[OutboxMessage], now: datetime) -> list[Parcel]:
    """Return a mail each, or where they are many one for all, or nothing yet."""
    if not fresh:
        return []
    kind, recipient = fresh[0].kind, cast(UUID, fresh[0].recipient)
    recent = OutboxMessage.objects.filter(
        kind=kind, recipient=recipient, batch=None, sent_at__gt=now - WITHIN
    )
    if recent.count() + len(fresh) <= MANY:
        return [Parcel(one.pk, kind, recipient, [one]) for one in fresh]
    ids = [one.pk for one in fresh]
    until = fresh[0].created_at + WITHIN
    if now < until:
        OutboxMessage.objects.filter(pk__in=ids).update(due_at=until)
        return []
    batch = uuid7()
    OutboxMessage.objects.filter(pk__in=ids).update(batch=batch)
    return [Parcel(batch, kind, recipient, fresh)]


# Sending


def _send(parcel: Parcel) -> None:
    compose = _composer(parcel.kind)
    mail = compose(parcel.kind, parcel.recipient, parcel.messages) if compose else None
    rows = OutboxMessage.objects.filter(
        pk__in=[one.pk for one in parcel.messages], sent_at__isnull=True
    )
    if mail is None:
        rows.update(due_at=None, error="it was no longer needed")
        return
    mail.extra_headers["Message-ID"] = f"<{parcel.id}@{_domain()}>"
    try:
        mail.send()
    except (OSError, SMTPException) as failure:
        _try_later(parcel, str(failure) or type(failure).__name__)
        return
    rows.update(sent_at=Now(), due_at=None, error="")


def _try_later(parcel: Parcel, why: str) -> None:
    tried = max(one.attempts for one in parcel.messages) + 1
    wait = timedelta(seconds=min(FIRST_WAIT << (tried - 1), LONGEST_WAIT))
    if tried >= TRIES:
        logger.error("mail %s is given up after %s tries: %s", parcel.id, tried, why)
    OutboxMessage.objects.filter(pk__in=[one.pk for one in parcel.messages]).update(
        due_at=None if tried >= TRIES else Now() + wait, error=why[:MOST_ERROR]
    )


def _domain() -> str:
    return urlsplit(settings.ABEYANCE_BASE_URL).hostname or "localhost"
