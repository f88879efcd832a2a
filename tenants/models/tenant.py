from django.db import models
from django.db.models.functions import Now

from tenants.ids import uuid7


class Tenant(models.Model):
    """An organisation. Its row is also the head of its journal stream."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    slug = models.SlugField(max_length=63, unique=True)
    name = models.CharField(max_length=200)
    # Raised by everything that narrows; what was authorised under an older one is asked again.
    authority_version = models.BigIntegerField(default=1, editable=False)
    freezes = models.PositiveIntegerField(default=0, editable=False)  # how many are in force
    journal_seq = models.BigIntegerField(default=0, editable=False)
    journal_hash = models.BinaryField(default=bytes, editable=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        permissions = [("decide_tool", "Can decide gates of every tool of this tenant")]

    def __str__(self) -> str:
        return self.name
