from __future__ import annotations

from django.db import models

from tenants.models.tenant import Tenant
from tenants.scope import TenantManager, current_tenant_id


class JournalEntry(models.Model):
    """One entry of a stream (a run's, or the tenant's): append-only, gap-free, chained.

    ``hash`` is the HMAC-SHA256, under the stream's key, of the previous entry's hash followed by
    ``text``, the exact text that says everything: {"actor", "at", "data", "kind", "seq"}. The
    database refuses a gap (each entry but the first refers to the one before it), a rewrite and a
    removal.
    """

    pk = models.CompositePrimaryKey("stream", "seq")
    stream = models.UUIDField()
    seq = models.BigIntegerField()
    tenant = models.ForeignKey(
        Tenant,
        on_delete=models.PROTECT,
        default=current_tenant_id,
        db_index=False,
        db_constraint=False,
        related_name="+",
    )
    kind = models.CharField(max_length=40)
    at = models.DateTimeField()
    text = models.TextField()
    key_id = models.CharField(max_length=40)
    hash = models.BinaryField(max_length=32)
    # `xid xid8`, the writing transaction's id, is a column without a field: Django has no such
    # type, and only consumers that follow commits read it.

    objects = TenantManager()
    unscoped = models.Manager()  # noqa: DJ012 - the default manager must come first

    class Meta:
        ordering = ["stream", "seq"]

    def __str__(self) -> str:
        return f"#{self.seq} {self.kind}"
