"""What a tenant's secrets are called, and what they hold for whoever sends them."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator
from typing import Final

from tenants.models import Secret
from tenants.sealing import SealBroken, unseal

SECRET: Final = "secret"  # noqa: S105 - the purpose that such a value is sealed for

logger = logging.getLogger(__name__)


def secret_names() -> frozenset[str]:
    """Return the names of the tenant's secrets that hold a value."""
    return frozenset(Secret.objects.filter(removed_at=None).values_list("name", flat=True))


def secret_values(names: Collection[str]) -> dict[str, str]:
    """Return those of the named secrets that hold a value which opens, by name.

    For the moment of a call only: what it returns is neither kept nor shown.
    """
    return dict(_opened(Secret.objects.filter(name__in=names, removed_at=None)))


def _opened(rows: Iterable[Secret]) -> Iterator[tuple[str, str]]:
    for row in rows:
        try:
            yield row.name, value_of(row)
        except SealBroken:
            logger.warning("secret %s, version %s, does not open", row.name, row.version)


def value_of(row: Secret) -> str:
    """Open a secret that holds a value. Raises `SealBroken`."""
    return unseal(bytes(row.sealed or b""), SECRET, row.pk, row.version).decode()
