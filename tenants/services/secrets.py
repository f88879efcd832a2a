"""A tenant's secrets: set under a name, replaced as the next version, removed; never shown."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from django.db.models.functions import Now

from tenants.changes import Change, State, record
from tenants.errors import InvalidSecret
from tenants.ids import uuid7
from tenants.journal import Actor
from tenants.models import Secret, Tenant
from tenants.scope import current_tenant_id
from tenants.sealing import SealBroken, seal
from tenants.selectors import SECRET, value_of

NAME: Final = r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}"
# Shorter ones could not be told from the rest of an answer that repeats them.
LEAST, MOST = 8, 8000
_WRITTEN: Final = re.compile(r"[!-~](?:[ -~]*[!-~])?")


def value_fault(value: str) -> str | None:
    """Return why this can be no secret's value, without quoting it; None where it can be one."""
    if not LEAST <= len(value) <= MOST:
        return f"A secret has {LEAST} to {MOST} characters."
    if not _WRITTEN.fullmatch(value):
        return "A secret is one line of printable ASCII, with no space at its ends."
    return None


def name_fault(name: str) -> str | None:
    """Return why this can be no secret's name; None where it can be one."""
    if re.fullmatch(NAME, name):
        return None
    return "A secret's name is 1 to 100 letters, digits and . - _."


def set_secrets(
    actor: Actor, values: Mapping[str, str], *, keep: Collection[str] | None = None
) -> list[Change]:
    """Give these secrets their values; the value that one has already is no change.

    With ``keep`` those that are neither in it nor given are removed. What a secret holds stands in
    no change and no journal entry: only its name and version do. Raises InvalidSecret.
    """
    for name, value in values.items():
        if fault := name_fault(name) or value_fault(value):
            raise InvalidSecret(fault)
    _one_at_a_time()
    rows = {row.name: row for row in Secret.objects.all()}
    changes = [
        change
        for name, value in values.items()
        if (change := _set(rows.get(name), name, value)) is not None
    ]
    if keep is not None:
        changes += _remove([row for name, row in rows.items() if name not in {*keep, *values}])
    record(actor, changes)
    return changes


def remove_secrets(actor: Actor, names: Collection[str]) -> list[Change]:
    """Destroy what these secrets hold: tools that name one call nobody any more.

    A repeat is no change.
    """
    _one_at_a_time()
    changes = _remove(list(Secret.objects.filter(name__in=names)))
    record(actor, changes)
    return changes


def _one_at_a_time() -> None:
    """Two that set one new name at once would both make its first version."""
    Tenant.objects.select_for_update(no_key=True).get(pk=current_tenant_id())


def _set(row: Secret | None, name: str, value: str) -> Change | None:
    if row is None:
        row = Secret(pk=uuid7(), name=name, version=1)
        row.sealed = seal(value.encode(), SECRET, row.pk, row.version)
        row.save(force_insert=True)
        return Change("secret", name, None, _state(row))
    if _holds(row, value):
        return None
    before = None if row.removed_at else _state(row)
    row.version += 1
    row.sealed = seal(value.encode(), SECRET, row.pk, row.version)
    Secret.objects.filter(pk=row.pk).update(
        version=row.version, sealed=row.sealed, set_at=Now(), removed_at=None
    )
    return Change("secret", name, before, _state(row))


def _holds(row: Secret, value: str) -> bool:
    if row.removed_at is not None:
        return False
    try:
        return value_of(row) == value
    except SealBroken:
        return False


def _remove(rows: Sequence[Secret]) -> list[Change]:
    held = [row for row in rows if row.removed_at is None]
    ending = [row.pk for row in held]
    Secret.objects.filter(pk__in=ending).update(sealed=None, removed_at=Now())
    return [Change("secret", row.name, _state(row), None, narrows=True) for row in held]


def _state(row: Secret) -> State:
    return {"version": row.version}
