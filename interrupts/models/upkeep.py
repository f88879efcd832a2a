"""What keeps the service going, of no tenant: drains, the sweep's last round, and what it counts."""

from __future__ import annotations

from typing import Final

from django.db import models

EVERY_HOST: Final = "*"


class Drain(models.Model):
    """While it stands, the workers of a host, or of every host, begin nothing.

    An intent looks at it under the drain lock that it holds shared (`interrupts_advance`), so none is
    committed once the lock was had alone after the row's commit.
    """

    host = models.CharField(
        primary_key=True, max_length=40
    )  # as workers name theirs, or EVERY_HOST
    since = models.DateTimeField()

    def __str__(self) -> str:
        return "every host" if self.host == EVERY_HOST else self.host


class SweepRound(models.Model):
    """The sweep's last round, and how many there were: one row, written by whoever sweeps."""

    ONLY: Final = 1

    id = models.PositiveSmallIntegerField(primary_key=True, default=ONLY)
    ended_at = models.DateTimeField()
    seconds = models.FloatField()
    rounds = models.BigIntegerField()
    unworkable = models.IntegerField()  # runs that could not be looked at in the last one

    def __str__(self) -> str:
        return f"round {self.rounds}"


class Tally(models.Model):
    """How often something rare has happened in the whole service, in the commits that did it."""

    name = models.CharField(primary_key=True, max_length=40)
    value = models.BigIntegerField()

    def __str__(self) -> str:
        return f"{self.name}: {self.value}"
