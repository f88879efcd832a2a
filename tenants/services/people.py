"""The people of a tenant, and what they are there."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.contrib.auth.hashers import make_password

from tenants.changes import Change, Issued, State, record, refuse_own
from tenants.journal import Actor
from tenants.models import Membership, User, UserToken
from tenants.services import credentials
from tenants.services.groups import leave_groups


@dataclass(frozen=True, slots=True)
class MemberWanted:
    username: str
    email: str
    role: str


class AnotherPerson(ValueError):
    """A username is taken by a person with another e-mail address; ``usernames`` says which."""

    def __init__(self, usernames: Iterable[str]) -> None:
        self.usernames = sorted(usernames)
        super().__init__(", ".join(self.usernames))


def set_members(
    actor: Actor,
    wanted: Sequence[MemberWanted],
    *,
    others_leave: bool = False,
    issued: Issued | None = None,
    tokens: bool = True,
) -> list[Change]:
    """Make these people members in these roles; with ``others_leave`` everybody else leaves.

    A person who is not known yet is made. One who is known is only made a member: their name,
    e-mail address and password are their own, whichever tenant asks. Those who leave lose their
    tokens, and who comes back is in none of the groups of before. With ``issued`` whoever joins, or
    never had one, gets a token (unless ``tokens`` says otherwise), and a person just made a password.
    Raises AnotherPerson, and OwnAuthority for somebody who would join, or take another role than
    they have, by themselves; nothing is changed then.
    """
    people = {user.username: user for user in known_people(one.username for one in wanted)}
    if strangers := others_emails(wanted, people):
        raise AnotherPerson(strangers)
    _refuse_own_roles(actor, wanted, people)
    people.update(_make_people([one for one in wanted if one.username not in people], issued))
    members = {member.user.username: member for member in Membership.objects.select_related("user")}
    back = [m for one in wanted if (m := members.get(one.username)) and not m.active]
    changes = _join([one for one in wanted if one.username not in members], people, members)
    changes += [change for one in wanted if (change := _adjust(members[one.username], one.role))]
    changes += leave_groups(back)
    if others_leave:
        staying = {one.username for one in wanted}
        changes += _leave([m for name, m in members.items() if m.active and name not in staying])
    if issued is not None and tokens:
        joined = {change.name for change in changes if change.kind == "added"}
        _issue_tokens([members[one.username] for one in wanted], joined, issued)
    record(actor, changes)
    return changes


def remove_members(actor: Actor, usernames: Collection[str]) -> list[Change]:
    """Make these members leave, with their tokens; one who left already is no change."""
    active = Membership.objects.select_related("user").filter(
        active=True, user__username__in=usernames
    )
    changes = _leave(list(active))
    record(actor, changes)
    return changes


def _refuse_own_roles(
    actor: Actor, wanted: Sequence[MemberWanted], people: Mapping[str, User]
) -> None:
    known = [one for one in wanted if one.username in people]
    here = Membership.objects.filter(
        active=True, user__username__in=[one.username for one in known]
    )
    roles = dict(here.values_list("user__username", "role"))
    for one in known:
        if roles.get(one.username) != one.role:
            person = people[one.username]
            refuse_own(actor, person.pk, "Nobody gives themselves a role.")


def known_people(usernames: Iterable[str]) -> Iterable[User]:
    """Return the people of these names, whatever tenants they belong to."""
    return User.objects.filter(username__in=list(usernames))


def others_emails(wanted: Iterable[MemberWanted], people: Mapping[str, User]) -> list[str]:
    """Return the usernames that belong to people with another e-mail address than is wanted."""
    return [
        one.username
        for one in wanted
        if (known := people.get(one.username)) and known.email.lower() != one.email.lower()
    ]


def _make_people(wanted: Sequence[MemberWanted], issued: Issued | None) -> dict[str, User]:
    made = {}
    for one in wanted:
        hashed = make_password(None)
        if issued is not None:
            password, hashed = credentials.new_password()
            issued.users.setdefault(one.username, {})["password"] = password
        made[one.username] = User(username=one.username, email=one.email, password=hashed)
    User.objects.bulk_create(made.values())
    return made


def _join(
    wanted: Sequence[MemberWanted], people: Mapping[str, User], members: dict[str, Membership]
) -> list[Change]:
    made = [Membership(user=people[one.username], role=one.role) for one in wanted]
    Membership.objects.bulk_create(made)
    members.update({member.user.username: member for member in made})
    return [Change("member", one.username, None, _state(one.role)) for one in wanted]


def _adjust(member: Membership, role: str) -> Change | None:
    """Give the member the role; what an earlier membership had is not what a new one has."""
    if member.active and member.role == role:
        return None
    before = _state(member.role) if member.active else None
    if before is None:
        credentials.revoke_tokens([member])
    member.active, member.role = True, role
    member.save(update_fields=["active", "role"])
    return Change("member", member.user.username, before, _state(role), narrows=before is not None)


def _leave(leaving: Sequence[Membership]) -> list[Change]:
    Membership.objects.filter(pk__in=[member.pk for member in leaving]).update(active=False)
    credentials.revoke_tokens(leaving)
    return [
        Change("member", member.user.username, _state(member.role), None, narrows=True)
        for member in leaving
    ]


def _issue_tokens(members: Sequence[Membership], joined: set[str], issued: Issued) -> None:
    having = set(
        UserToken.objects.filter(membership__in=members).values_list("membership_id", flat=True)
    )
    without = [one for one in members if one.user.username in joined or one.pk not in having]
    for username, token in credentials.issue_tokens(without).items():
        issued.users.setdefault(username, {})["token"] = token


def _state(role: str) -> State:
    return {"role": role}
