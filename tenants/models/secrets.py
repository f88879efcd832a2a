from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

from tenants.models.base import TenantOwned


class Secret(TenantOwned):
    """What a tenant signs in with at somebody else's API: sent by the service, shown to nobody.

    The value is sealed under a key outside the database; a new value is the next version in the
    place of the older one. A secret that was removed keeps its name and holds nothing.
    """

    name = models.CharField(max_length=100)
    version = models.PositiveIntegerField()
    sealed = models.BinaryField(null=True, editable=False)
    set_at = models.DateTimeField(db_default=Now(), editable=False)
    removed_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "name"], name="secret_name_once_per_tenant"),
            models.CheckConstraint(
                condition=models.Q(sealed=None, removed_at__isnull=False)
                | models.Q(sealed__isnull=False, removed_at=None),
                name="a_removed_secret_holds_nothing",
            ),
        ]

    def __str__(self) -> str:
        return self.name
