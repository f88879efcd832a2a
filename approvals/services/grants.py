"""Who is given authority over which tools: one row a person, or a group, and tool.

What is given is said by entries: a glob, or globs with the condition that a call must meet. Where
several entries name a tool, each of their conditions must: none is looser for standing by another.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from django.contrib.auth.models import Permission

from approvals.authority import PERMISSION
from approvals.models import GroupPermission, TenantPermission, ToolPermission
from config.globs import matches
from interrupts.models import Tool
from tenants.changes import Change, State, record, refuse_own
from tenants.journal import Actor
from tenants.models import Group, GroupMember, Membership, User
from tenants.scope import current_tenant_id

EVERY_TOOL: Final = "*"
# Who may decide (a person, a group) and what: a tool, or the tenant, which stands for every tool.
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
    held = _held()
    after = _after(held, {people[name]: entries for name, entries in wanted.items()}, others_end)
    for person in _widened(held, after):
        refuse_own(actor, person, "Nobody gives themselves what they may decide.")
    _take(one for one in held if held[one] != after.get(one))
    _give({one: limits for one, limits in after.items() if held.get(one) != limits})
    touched = {one[0] for one in {*held, *after}}
    names = dict(User.objects.filter(pk__in=touched).values_list("pk", "username"))
    changes = _changes("authority", held, after, names)
    record(actor, changes)
    return changes


def set_group_grants(
    actor: Actor, wanted: Mapping[str, Sequence[Entry]], *, others_end: bool = False
) -> list[Change]:
    """Let whoever is in each group (by name) decide gates of the tools that its globs match now.

    As `set_grants` does it for members. Raises Group.DoesNotExist for what is no group,
    OwnAuthority where somebody would give a group that they are in what it has not.
    """
    names = dict(Group.objects.values_list("pk", "name"))
    groups = {name: group for group, name in names.items()}
    if unknown := wanted.keys() - groups.keys():
        raise Group.DoesNotExist(", ".join(sorted(unknown)))
    held = _held_by_groups()
    after = _after(held, {groups[name]: entries for name, entries in wanted.items()}, others_end)
    for person in _members_of(_widened(held, after)):
        refuse_own(actor, person, "Nobody gives a group that they are in what it may decide.")
    _rewrite_groups(held, after)
    changes = _changes("group_authority", held, after, names)
    record(actor, changes)
    return changes


def end_group_grants(actor: Actor, *, keep: Collection[str] = ()) -> list[Change]:
    """Take all that was given to groups but those of these names; before the groups are removed."""
    others = Group.objects.exclude(name__in=keep).values_list("name", flat=True)
    return set_group_grants(actor, dict.fromkeys(others, ()))


def held_by(user_id: UUID) -> list[Entry]:
    """Return what a person may decide by themself, by name; `*` is every tool."""
    return _named_entries(user_id, _held(user=user_id))


def held_by_group(group_id: UUID) -> list[Entry]:
    """Return what whoever is in the group may decide, by name; `*` is every tool."""
    return _named_entries(group_id, _held_by_groups(group=group_id))


def _named_entries(holder: UUID, held: Grants) -> list[Entry]:
    ids = [granted for _, granted in held]
    called = {current_tenant_id(): EVERY_TOOL}
    called.update(Tool.objects.filter(pk__in=ids).values_list("pk", "name"))
    return _entries(holder, held, called)


def parts(entry: Entry) -> tuple[Sequence[str], str | None]:
    """Return an entry's globs, and its condition where it has one."""
    return ([entry], None) if isinstance(entry, str) else (entry["tools"], entry["condition"])


def _after(
    held: Grants,
    wanted: Mapping[UUID, Sequence[Entry]],
    others_end: bool,  # noqa: FBT001 - as it was said
) -> dict[Grant, Limits]:
    """Return who may decide what once those who are named may decide what is said of them."""
    tools = dict(Tool.objects.values_list("pk", "name").filter(retired_at=None))
    asked = {
        (holder, granted): limits
        for holder, entries in wanted.items()
        for granted, limits in _matched(entries, tools).items()
    }
    kept = {one: limits for one, limits in held.items() if one[0] not in wanted}
    return asked if others_end else {**kept, **asked}


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
    """Return who may decide something after that they might not have before: people, or groups.

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


def _held_by_groups(**of: UUID) -> dict[Grant, Limits]:
    tenant = current_tenant_id()
    rows = GroupPermission.objects.filter(**of).values_list("group_id", "tool_id", "limits")
    return {(group, tool or tenant): frozenset(limits) for group, tool, limits in rows}


def _members_of(groups: Iterable[UUID]) -> list[UUID]:
    """Return who is in one of these groups; who left the tenant is none of its members."""
    inside = GroupMember.objects.filter(group__in=list(groups), membership__active=True)
    return list(inside.values_list("membership__user_id", flat=True))


def _rewrite_groups(before: Grants, after: Grants) -> None:
    """Write what differs; nothing is deleted but what is given to the groups that it differs of."""
    tenant = current_tenant_id()
    differing = {one[0] for one in {*before, *after} if before.get(one) != after.get(one)}
    GroupPermission.objects.filter(group__in=differing).delete()
    GroupPermission.objects.bulk_create(
        GroupPermission(
            group_id=group,
            tool_id=None if granted == tenant else granted,
            limits=sorted(limits),
        )
        for (group, granted), limits in sorted(after.items())
        if group in differing
    )


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


def _changes(noun: str, before: Grants, after: Grants, names: Mapping[UUID, str]) -> list[Change]:
    touched = {one[0] for one in {*before, *after} if before.get(one) != after.get(one)}
    narrowed = _narrowed(before, after)
    called = {current_tenant_id(): EVERY_TOOL, **dict(Tool.objects.values_list("pk", "name"))}
    return [
        Change(
            noun,
            name,
            _state(holder, before, called),
            _state(holder, after, called),
            narrows=holder in narrowed,
        )
        for holder, name in sorted(names.items(), key=lambda item: item[1])
        if holder in touched
    ]


def _state(holder: UUID, grants: Grants, called: Mapping[UUID, str]) -> State | None:
    entries = _entries(holder, grants, called)
    return {"may_decide": entries} if entries else None


def _entries(holder: UUID, grants: Grants, called: Mapping[UUID, str]) -> list[Entry]:
    """Return what makes up somebody's authority: a tool without a limit, or each of its limits."""
    held = {called[granted]: limits for (who, granted), limits in grants.items() if who == holder}
    entries: list[Entry] = []
    for name, limits in sorted(held.items()):
        if not limits:
            entries.append(name)
        entries += [{"tools": [name], "condition": limit} for limit in sorted(limits)]
    return entries
