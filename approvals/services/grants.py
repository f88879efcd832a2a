"""Who is given authority over which tools: guardian's permissions, one row a person and tool."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final
from uuid import UUID

from django.contrib.auth.models import Permission

from approvals.authority import PERMISSION
from approvals.models import TenantPermission, ToolPermission
from config.globs import matches
from interrupts.models import Tool
from tenants.changes import Change, State, record, refuse_own
from tenants.journal import Actor
from tenants.models import Membership, User
from tenants.scope import current_tenant_id

EVERY_TOOL: Final = "*"
# A person and what they may decide: a tool, or the tenant, which stands for every tool.
Grant = tuple[UUID, UUID]


def set_grants(
    actor: Actor, wanted: Mapping[str, Sequence[str]], *, others_end: bool = False
) -> list[Change]:
    """Let each member (by username) decide gates of the tools that their globs match now.

    ``*`` is every tool, those still to come too; any other glob is the tools there are. With
    ``others_end`` nobody else may decide any. Raises Membership.DoesNotExist for somebody who is
    no live member, OwnAuthority where somebody would be given by themselves what they have not.
    """
    people = _members(wanted)
    tools = dict(Tool.objects.values_list("pk", "name").filter(retired_at=None))
    held = _held()
    asked = {
        (people[username], granted)
        for username, globs in wanted.items()
        for granted in _matched(globs, tools)
    }
    ended = {one for one in held - asked if others_end or one[0] in people.values()}
    given = asked - held
    for person, _ in given:
        refuse_own(actor, person, "Nobody gives themselves what they may decide.")
    _give(given)
    _take(ended)
    changes = _changes(held, held - ended | given)
    record(actor, changes)
    return changes


def held_by(user_id: UUID) -> list[str]:
    """Return what a person may decide, by name; `*` is every tool."""
    ids = {granted for who, granted in _held(user=user_id) if who == user_id}
    names = list(Tool.objects.filter(pk__in=ids).order_by("name").values_list("name", flat=True))
    return [EVERY_TOOL, *names] if current_tenant_id() in ids else names


def _matched(globs: Iterable[str], tools: Mapping[UUID, str]) -> set[UUID]:
    matched: set[UUID] = set()
    for glob in globs:
        if glob == EVERY_TOOL:
            matched.add(current_tenant_id())
            continue
        matched.update(tool for tool, name in tools.items() if matches(glob, name))
    return matched


def _members(usernames: Iterable[str]) -> dict[str, UUID]:
    names = set(usernames)
    rows = Membership.objects.filter(active=True, user__username__in=names)
    found = dict(rows.values_list("user__username", "user_id"))
    if unknown := names - found.keys():
        raise Membership.DoesNotExist(", ".join(sorted(unknown)))
    return found


def _held(**of: UUID) -> set[Grant]:
    held: set[Grant] = set()
    for model in (ToolPermission, TenantPermission):
        rows = model.objects.filter(permission__codename=PERMISSION, **of)
        held |= set(rows.values_list("user_id", "content_object_id"))
    return held


def _give(grants: Iterable[Grant]) -> None:
    of_tenant, of_tools = _split(grants)
    for model, pairs in ((ToolPermission, of_tools), (TenantPermission, of_tenant)):
        if pairs:
            permission = _permission(model)
            model.objects.bulk_create(
                model(user_id=user, permission=permission, content_object_id=granted)
                for user, granted in pairs
            )


def _take(grants: Iterable[Grant]) -> None:
    of_tenant, of_tools = _split(grants)
    by_tool: dict[UUID, list[UUID]] = defaultdict(list)
    for user, tool in of_tools:
        by_tool[tool].append(user)
    for tool, users in by_tool.items():
        ToolPermission.objects.filter(content_object=tool, user__in=users).delete()
    TenantPermission.objects.filter(user__in=[user for user, _ in of_tenant]).delete()


def _split(grants: Iterable[Grant]) -> tuple[list[Grant], list[Grant]]:
    tenant = current_tenant_id()
    ordered = sorted(grants)
    return (
        [one for one in ordered if one[1] == tenant],
        [one for one in ordered if one[1] != tenant],
    )


def _permission(model: type[ToolPermission | TenantPermission]) -> Permission:
    target = model._meta.get_field("content_object").related_model._meta  # noqa: SLF001 - Django's API
    return Permission.objects.get(
        codename=PERMISSION,
        content_type__app_label=target.app_label,
        content_type__model=target.model_name,
    )


def _changes(before: set[Grant], after: set[Grant]) -> list[Change]:
    touched = {user for user, _ in before ^ after}
    names = dict(User.objects.filter(pk__in=touched).values_list("pk", "username"))
    called = {current_tenant_id(): EVERY_TOOL, **dict(Tool.objects.values_list("pk", "name"))}
    return [
        Change(
            "authority",
            username,
            _state(user, before, called),
            _state(user, after, called),
            narrows=any(one[0] == user for one in before - after),
        )
        for user, username in sorted(names.items(), key=lambda item: item[1])
    ]


def _state(user: UUID, grants: set[Grant], called: Mapping[UUID, str]) -> State | None:
    names = sorted(called[granted] for who, granted in grants if who == user)
    return {"may_decide": names} if names else None
