"""Who is given authority over which tools: guardian's permissions, one row a person and tool.

What is given is said by entries: a glob, or globs with the condition that a call must meet. Where
several entries name a tool, each of their conditions must: none is looser for standing by another.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final
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
Limits = frozenset[str]
Grants = Mapping[Grant, Limits]
# A glob, or `{tools: [...], condition: ...}`, valid as the tenant file checks them.
Entry = str | Mapping[str, Any]


def set_grants(
    actor: Actor, wanted: Mapping[str, Sequence[Entry]], *, others_end: bool = False
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
        (people[username], granted): limits
        for username, entries in wanted.items()
        for granted, limits in _matched(entries, tools).items()
    }
    kept = {one: limits for one, limits in held.items() if one[0] not in people.values()}
    after = asked if others_end else {**kept, **asked}
    for person in _widened(held, after):
        refuse_own(actor, person, "Nobody gives themselves what they may decide.")
    _take(one for one in held if held[one] != after.get(one))
    _give({one: limits for one, limits in after.items() if held.get(one) != limits})
    changes = _changes(held, after)
    record(actor, changes)
    return changes


def held_by(user_id: UUID) -> list[Entry]:
    """Return what a person may decide, by name; `*` is every tool."""
    held = _held(user=user_id)
    ids = [granted for _, granted in held]
    called = {current_tenant_id(): EVERY_TOOL}
    called.update(Tool.objects.filter(pk__in=ids).values_list("pk", "name"))
    return _entries(user_id, held, called)


def parts(entry: Entry) -> tuple[Sequence[str], str | None]:
    """Return an entry's globs, and its condition where it has one."""
    return ([entry], None) if isinstance(entry, str) else (entry["tools"], entry["condition"])


def _matched(entries: Iterable[Entry], tools: Mapping[UUID, str]) -> dict[UUID, Limits]:
    matched: dict[UUID, Limits] = {}
    for entry in entries:
        globs, condition = parts(entry)
        limits = frozenset(() if condition is None else (condition,))
        for granted in {one for glob in globs for one in _named(glob, tools)}:
            matched[granted] = matched.get(granted, frozenset()) | limits
    return matched


def _named(glob: str, tools: Mapping[UUID, str]) -> Iterable[UUID]:
    if glob == EVERY_TOOL:
        return (current_tenant_id(),)
    return (tool for tool, name in tools.items() if matches(glob, name))


def _widened(before: Grants, after: Grants) -> set[UUID]:
    """Return who may decide something after that they might not have before.

    A limit of a tool holds beside what is given for every tool, and one given for every tool beside
    what is given for a tool: taking it away widens what is left of the other.
    """
    given = {user for user, granted in after.keys() - before.keys()}
    loosened = {
        user
        for (user, granted), limits in before.items()
        if limits - after.get((user, granted), frozenset()) and _is_left(user, granted, after)
    }
    return given | loosened


def _is_left(user: UUID, granted: UUID, after: Grants) -> bool:
    """Return whether the person still may decide something of what was granted."""
    tenant = current_tenant_id()
    if granted == tenant:
        return any(one == user for one, _ in after)
    return (user, granted) in after or (user, tenant) in after


def _narrowed(before: Grants, after: Grants) -> set[UUID]:
    """Return who may not decide something after that they might have before."""
    return {user for (user, _) in before.keys() - after.keys()} | {
        user
        for (user, granted), limits in after.items()
        if limits - before.get((user, granted), frozenset())
    }


def _members(usernames: Iterable[str]) -> dict[str, UUID]:
    names = set(usernames)
    rows = Membership.objects.filter(active=True, user__username__in=names)
    found = dict(rows.values_list("user__username", "user_id"))
    if unknown := names - found.keys():
        raise Membership.DoesNotExist(", ".join(sorted(unknown)))
    return found


def _held(**of: UUID) -> dict[Grant, Limits]:
    held: dict[Grant, Limits] = {}
    for model in (ToolPermission, TenantPermission):
        rows = model.objects.filter(permission__codename=PERMISSION, **of)
        for user, granted, limits in rows.values_list("user_id", "content_object_id", "limits"):
            held[user, granted] = frozenset(limits)
    return held


def _give(grants: Grants) -> None:
    of_tenant, of_tools = _split(grants)
    for model, pairs in ((ToolPermission, of_tools), (TenantPermission, of_tenant)):
        if pairs:
            permission = _permission(model)
            model.objects.bulk_create(
                model(
                    user_id=user,
                    permission=permission,
                    content_object_id=granted,
                    limits=sorted(grants[user, granted]),
                )
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


def _changes(before: Grants, after: Grants) -> list[Change]:
    touched = {one[0] for one in {*before, *after} if before.get(one) != after.get(one)}
    narrowed = _narrowed(before, after)
    names = dict(User.objects.filter(pk__in=touched).values_list("pk", "username"))
    called = {current_tenant_id(): EVERY_TOOL, **dict(Tool.objects.values_list("pk", "name"))}
    return [
        Change(
            "authority",
            username,
            _state(user, before, called),
            _state(user, after, called),
            narrows=user in narrowed,
        )
        for user, username in sorted(names.items(), key=lambda item: item[1])
    ]


def _state(user: UUID, grants: Grants, called: Mapping[UUID, str]) -> State | None:
    entries = _entries(user, grants, called)
    return {"may_decide": entries} if entries else None


def _entries(user: UUID, grants: Grants, called: Mapping[UUID, str]) -> list[Entry]:
    """Return what makes up a person's authority: a tool without a limit, or each of its limits."""
    held = {called[granted]: limits for (who, granted), limits in grants.items() if who == user}
    entries: list[Entry] = []
    for name, limits in sorted(held.items()):
        if not limits:
            entries.append(name)
        entries += [{"tools": [name], "condition": limit} for limit in sorted(limits)]
    return entries
