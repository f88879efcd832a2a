from __future__ import annotations

from django.db import models

from tenants.models import TenantOwned, User


class NoticePreference(TenantOwned):
    """What a person is told by e-mail in a tenant; where there is no row, everything."""

    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+", db_index=False)
    asked = models.BooleanField(default=True)  # when a decision waits for them
    reminders = models.BooleanField(default=True)  # when half of the time to decide has passed
    answers = models.BooleanField(default=True)  # when an agent has answered what they asked
    votes = models.BooleanField(default=True)  # what others make of what they approved
    expiries = models.BooleanField(default=True)  # when what waited for them has expired
    outcomes = models.BooleanField(default=True)  # when what they approved failed or is unknown
    recoveries = models.BooleanField(default=True)  # when they are to settle an unknown outcome
    # By the database too: hosts of an older release write rows without it.
    interrupts = models.BooleanField(default=True, db_default=True)  # when they are to answer one
    # When a rule is suggested to them, or one of theirs is paused.
    rules = models.BooleanField(default=True, db_default=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["user", "tenant"], name="notices_preferred_once"),
        ]

    def __str__(self) -> str:
        return f"notices of {self.user_id}"
