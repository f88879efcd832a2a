"""A tenant's own groups: named sets of its members."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from tenants.changes import Change, record, refuse_own
from tenants.journal import Actor
from tenants.models import Group, GroupMember, Membership


def set_groups(
    actor: Actor, wanted: Mapping[str, Collection[str]], *, others_end: bool = False
) -> list[Change]:
    """Make these groups hold these members (by username); with ``others_end`` others are removed.

    Leaving a group narrows: what its members approved may count no more. A rule may ask for a
    group's approval, so nobody puts themselves into one (OwnAuthority). Raises
    Membership.DoesNotExist for somebody who is no live member.
    """
    groups = {group.name: group for group in Group.objects.all()}
    held = _held()
    members = {
        member.user.username: member
        for member in Membership.objects.filter(active=True).select_related("user")
    }
    changes: list[Change] = []
    for name, usernames in wanted.items():
        if unknown := set(usernames) - members.keys():
            raise Membership.DoesNotExist(", ".join(sorted(unknown)))
        new = name not in groups
        if new:
            groups[name] = Group.objects.create(name=name)
        before, after = set() if new else held.get(name, set()), set(usernames)
        for joining in after - before:
            refuse_own(actor, members[joining].user_id, "Nobody puts themselves into a group.")
        if new or before != after:
            changes.append(_change(name, None if new else before, after))
            _write(groups[name], before - after, [members[who] for who in sorted(after - before)])
    if others_end:
        changes += _end([name for name in groups if name not in wanted], held)
    record(actor, changes)
    return changes


def remove_groups(actor: Actor, names: Collection[str]) -> list[Change]:
    """Remove these groups; one that is not there is no change."""
    there = Group.objects.filter(name__in=names).order_by("name").values_list("name", flat=True)
    changes = _end(list(there), _held())
    record(actor, changes)
    return changes


def leave_groups(members: Collection[Membership]) -> list[Change]:
    """Take these members out of every group; the caller records what is returned."""
    usernames = {member.user.username for member in members}
    changes: list[Change] = []
    for name, before in sorted(_held().items()) if usernames else ():
        if leaving := before & usernames:
            changes.append(_change(name, before, before - leaving))
    GroupMember.objects.filter(membership__in=[member.pk for member in members]).delete()
    return changes


def members_of_groups() -> dict[str, set[str]]:
    """Return the tenant's groups, each with its members by username."""
    return {name: set() for name in Group.objects.values_list("name", flat=True)} | _held()


def _end(names: Sequence[str], held: Mapping[str, set[str]]) -> list[Change]:
    Group.objects.filter(name__in=names).delete()
    return [_change(name, held.get(name, set()), None) for name in names]


def _held() -> dict[str, set[str]]:
    held: dict[str, set[str]] = {}
    rows = GroupMember.objects.values_list("group__name", "membership__user__username")
    for group, username in rows:
        held.setdefault(group, set()).add(username)
    return held


def _write(group: Group, leaving: set[str], joining: list[Membership]) -> None:
    if leaving:
        group.members.filter(membership__user__username__in=leaving).delete()
    GroupMember.objects.bulk_create(
        GroupMember(group=group, membership=member) for member in joining
    )


def _change(name: str, before: set[str] | None, after: set[str] | None) -> Change:
    return Change(
        "group",
        name,
        None if before is None else {"members": sorted(before)},
        None if after is None else {"members": sorted(after)},
        narrows=bool((before or set()) - (after or set())),
    )
