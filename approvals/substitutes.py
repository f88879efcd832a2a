"""Who stands in for whom, as it is read for pages; what it lets them do says authority.py."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Coalesce, Now

from approvals.models import Assignment, Decision, Substitution, Verdict
from tenants.models import User


def in_force() -> QuerySet[Substitution]:
    """Return the substitutions that run now, with their people."""
    found = Substitution.objects.filter(ended_at=None, starts_at__lte=Now(), ends_at__gt=Now())
    return found.select_related("person", "substitute")


def not_over(user_id: UUID | None = None) -> QuerySet[Substitution]:
    """Return the substitutions that run or are to come: all, or those of and by a person."""
    found = Substitution.objects.filter(ended_at=None, ends_at__gt=Now())
    if user_id is not None:
        found = found.filter(Q(person=user_id) | Q(substitute=user_id))
    return found.select_related("person", "substitute")


def stood_for(user_id: UUID) -> list[UUID]:
    """Return for whom the person stands in now."""
    found = in_force().filter(substitute=user_id)
    return list(found.order_by("person_id").values_list("person_id", flat=True).distinct())


def waits_for(user_id: UUID, people: Sequence[UUID]) -> Q:
    """Return which gates wait for the person, or for one of those that they stand in for.

    What is the person's own request does not, nor what they approved in an earlier stage, whoever
    of the two it was by.
    """
    asked = Assignment.objects.filter(gate=OuterRef("pk"), passed_at=None)
    own = Q(assignments__user=user_id, assignments__passed_at=None)
    if not people:
        return own
    agents = Q(run__requested_by=user_id) | Q(run__agent__owner=user_id)
    approved = Q(Exists(_approved_before(user_id)))
    theirs = Q(Exists(asked.filter(user__in=people))) & ~agents & ~approved
    return Q(Exists(asked.filter(user=user_id))) | theirs


def _approved_before(user_id: UUID) -> QuerySet[Decision]:
    """Return the person's approvals, or by who stands in for them, in stages before the open one."""
    votes = Decision.objects.filter(gate=OuterRef("pk"), counts=True, verdict=Verdict.APPROVE)
    earlier = votes.annotate(of=Coalesce("stage", 1)).filter(of__lt=OuterRef("stage"))
    return earlier.filter(Q(user=user_id) | Q(acting_for=user_id))


def first_end(pairs: Iterable[tuple[UUID, UUID]]) -> datetime | None:
    """Return when the first of these (substitute, person) ends; None where one has.

    Of several of the same two it is the first too: any of them may be ended before its time.
    """
    wanted = set(pairs)
    ends: dict[tuple[UUID, UUID], datetime] = {}
    for one in in_force().filter(substitute__in=[substitute for substitute, _ in wanted]):
        pair = (one.substitute_id, one.person_id)
        if pair in wanted:
            ends[pair] = min(ends.get(pair, one.ends_at), one.ends_at)
    return min(ends.values()) if wanted == ends.keys() else None


def standing_in_for(people: Iterable[UUID]) -> list[Substitution]:
    """Return the substitutions of these people that run now."""
    return list(in_force().filter(person__in=list(people)).order_by("substitute__username"))


def named(user_id: UUID | None) -> User | None:
    """Return a person; None for nobody."""
    return None if user_id is None else User.objects.get(pk=user_id)
