"""The tenant's policy: drafts, and versions that never change, the newest of which is in force."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any
from uuid import UUID

from approvals.models import PolicyStatus, PolicyVersion
from approvals.policy import validate_policy
from config.errors import InvalidBody, VersionMismatch, faults
from config.jsontext import digest
from tenants.changes import Change, State, record
from tenants.clock import database_now
from tenants.journal import Actor
from tenants.models import Tenant
from tenants.scope import current_tenant_id

NAME = "policy"


def publish_policy(actor: Actor, document: Mapping[str, Any], *, why: str = "") -> list[Change]:
    """Put a checked policy in force; the one that is in force already changes nothing.

    What was authorised under the version before is judged again before it starts.
    """
    next_number, in_force = _take_number()
    stands = digest(document)
    if in_force is not None and in_force.digest == stands:
        return []
    made = PolicyVersion.objects.create(
        number=next_number,
        status=PolicyStatus.PUBLISHED,
        document=document,
        digest=stands,
        why=why,
        published_at=database_now(),
        published_by_id=_person(actor),
    )
    return _record(actor, in_force, made)


def save_draft(
    actor: Actor, document: Mapping[str, Any], *, why: str = "", draft_id: UUID | None = None
) -> tuple[PolicyVersion, list[Change]]:
    """Keep a checked policy that is not in force: a new draft, or what one says now.

    Raises PolicyVersion.DoesNotExist where there is no such draft.
    """
    next_number, _ = _take_number()
    draft, before = PolicyVersion(number=next_number), None
    if draft_id is not None:
        draft = PolicyVersion.objects.get(pk=draft_id, status=PolicyStatus.DRAFT)
        before = _draft_state(draft)
    draft.document, draft.digest, draft.why = dict(document), digest(document), why
    after = _draft_state(draft)
    if before == after:
        return draft, []
    draft.save()
    change = Change("draft", f"draft {draft.number}", before, after)
    record(actor, [change])
    return draft, [change]


def discard_draft(actor: Actor, draft_id: UUID) -> list[Change]:
    """Drop a draft. Raises PolicyVersion.DoesNotExist where there is no such draft."""
    _take_number()
    draft = PolicyVersion.objects.get(pk=draft_id, status=PolicyStatus.DRAFT)
    draft.delete()
    change = Change("draft", f"draft {draft.number}", _draft_state(draft), None)
    record(actor, [change])
    return [change]


def publish_draft(
    actor: Actor,
    draft_id: UUID,
    *,
    seen: str,
    instead_of: int,
    groups: Mapping[str, Collection[str]],
) -> list[Change]:
    """Put a draft in force as the newest version; the policy in force already changes nothing.

    ``seen`` is the digest of what its publisher read, ``instead_of`` the number of the version that
    they compared it with (0: none). Raises PolicyVersion.DoesNotExist, VersionMismatch where either
    is not so any more, InvalidBody where the tenant's ``groups`` no longer carry it.
    """
    next_number, in_force = _take_number()
    draft = PolicyVersion.objects.get(pk=draft_id, status=PolicyStatus.DRAFT)
    if draft.digest != seen or instead_of != (in_force.number if in_force else 0):
        raise VersionMismatch("The draft or the policy in force changed meanwhile; look again.")
    if wrong := validate_policy(draft.document, groups):
        raise InvalidBody(errors=faults(wrong))
    if in_force is not None and in_force.digest == draft.digest:
        return []
    # The one in force is the one with the highest number, so an older draft gets a new one.
    if draft.number != next_number - 1:
        draft.number = next_number
    draft.status, draft.published_at = PolicyStatus.PUBLISHED, database_now()
    draft.published_by_id = _person(actor)
    draft.save()
    return _record(actor, in_force, draft)


def _take_number() -> tuple[int, PolicyVersion | None]:
    """Return the next version's number and the version in force, under the tenant row's lock."""
    # Two at once would take one number: the tenant's row keeps them apart.
    Tenant.objects.select_for_update(no_key=True).get(pk=current_tenant_id())
    last = PolicyVersion.objects.order_by("-number").first()
    published = PolicyVersion.objects.filter(status=PolicyStatus.PUBLISHED)
    return last.number + 1 if last else 1, published.order_by("-number").first()


def _record(actor: Actor, before: PolicyVersion | None, after: PolicyVersion) -> list[Change]:
    change = Change(
        NAME,
        f"version {after.number}",
        _state(before) if before else None,
        _state(after),
        narrows=True,
    )
    record(actor, [change])
    return [change]


def _person(actor: Actor) -> UUID | None:
    return UUID(actor.id) if actor.kind == "user" else None


def _draft_state(draft: PolicyVersion) -> State:
    return {"why": draft.why, **draft.document}


def _state(version: PolicyVersion) -> State:
    return {"version": version.number, **version.document}
