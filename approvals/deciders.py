"""Who may decide a gate, for many people and gates at once: authority, narrowed by its approvers.

The authority function (approvals/authority.py) says who may at all; a rule's approvers are groups
of which a person must be one, and never widen it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from django.db import connection
from django.db.models import Exists, OuterRef, Q

from approvals import authority
from approvals.authority import Refusal, RunFor
from approvals.errors import NotAnApprover, OwnRequest
from approvals.models import Assignment
from config.errors import Problem
from tenants.models import GroupMember, Membership, OutboxMessage, Role
from tenants.queue import tell_soon

# Kinds of e-mail, one of each about a gate to a person.
ASKED: Final = "notice.asked"
REMINDER: Final = "notice.reminder"
UNDECIDABLE: Final = "notice.undecidable"
_PROBLEMS: Final[Mapping[Refusal, type[Problem]]] = {
    "not-an-approver": NotAnApprover,
    "own-request": OwnRequest,
}
# Row-level security keeps each table inside the session's tenant.
_ENTITLED: Final = f"""
    FROM approvals_gate gate
    JOIN interrupts_run run ON run.id = gate.run_id
    CROSS JOIN tenants_membership who
    WHERE gate.id = ANY(%(gates)s) AND who.active
        AND (cardinality(gate.approvers) = 0 OR EXISTS (
            SELECT FROM tenants_groupmember belongs
            JOIN tenants_group named ON named.id = belongs.group_id
            WHERE belongs.membership_id = who.id AND named.name = ANY(gate.approvers)))
        AND {
    authority.refusal_sql(
        user="who.user_id",
        tool="gate.tool_id",
        agent="run.agent_id",
        requester="run.requested_by_id",
    )
} IS NULL"""


def refusals(
    users: Sequence[UUID], tool_id: UUID, run: RunFor, approvers: Sequence[str]
) -> dict[UUID, Refusal | None]:
    """Return for each person why they may not decide; None: they may."""
    found = authority.refusals(users, tool_id, run)
    if approvers:
        inside = _members(users, approvers)
        for user, refusal in found.items():
            if refusal is None and user not in inside:
                found[user] = "not-an-approver"
    return found


def check(user: UUID, tool_id: UUID, run: RunFor, approvers: Sequence[str]) -> None:
    """Raise NotAnApprover or OwnRequest where the person may not decide."""
    if refusal := refusals([user], tool_id, run, approvers)[user]:
        raise _PROBLEMS[refusal]


def _members(users: Sequence[UUID], groups: Sequence[str]) -> set[UUID]:
    found = GroupMember.objects.filter(
        group__name__in=groups, membership__user__in=users, membership__active=True
    )
    return set(found.values_list("membership__user_id", flat=True))


def entitled(gates: Sequence[UUID], among: Iterable[UUID]) -> Mapping[UUID, set[UUID]]:
    """Return by gate which of these people may decide it now, in one statement."""
    found: dict[UUID, set[UUID]] = defaultdict(set)
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT gate.id, who.user_id {_ENTITLED} AND who.user_id = ANY(%(among)s)",
            {"gates": list(gates), "among": list(among)},
        )
        for gate, user in cursor.fetchall():
            found[gate].add(user)
    return found


# From now on till people are reminded: as policy says, or half of the time that is left.
_WARNED: Final = """coalesce(
                gate.expires_at - %(now)s::timestamptz
                    - make_interval(secs => (gate.routing ->> 'warn_before')::float8),
                (gate.expires_at - %(now)s::timestamptz) / 2)"""
_ASSIGN: Final = f"""
    WITH added AS (
        INSERT INTO approvals_assignment (id, tenant_id, gate_id, user_id, assigned_at)
        SELECT gen_random_uuid(), gate.tenant_id, gate.id, who.user_id, %(now)s
        {_ENTITLED} ON CONFLICT DO NOTHING RETURNING tenant_id, gate_id, user_id
    )
    INSERT INTO tenants_outboxmessage
        (id, tenant_id, kind, payload, about, recipient, due_at, attempts, error)
    SELECT gen_random_uuid(), added.tenant_id, told.kind, '{{}}', added.gate_id, added.user_id,
        told.due_at, 0, ''
    FROM added
    JOIN approvals_gate gate ON gate.id = added.gate_id
    JOIN tenants_user person ON person.id = added.user_id AND person.email <> ''
    LEFT JOIN approvals_noticepreference wants ON wants.user_id = added.user_id
    CROSS JOIN LATERAL (VALUES
        ('{ASKED}', %(now)s::timestamptz, coalesce(wants.asked, true)),
        ('{REMINDER}', %(now)s::timestamptz
            + {_WARNED},
            coalesce(wants.reminders, true))
    ) told (kind, due_at, is_wanted)
    WHERE told.is_wanted AND told.due_at IS NOT NULL
    ON CONFLICT DO NOTHING"""  # noqa: S608 - names of ours


def assign(gates: Sequence[UUID], now: datetime) -> None:
    """Put the gates into the inbox of everybody who may decide them now; again adds nobody twice.

    What they are told by e-mail, now and when half of the time has passed, or as long before its
    end as policy says, is written with it.
    """
    with connection.cursor() as cursor:
        cursor.execute(_ASSIGN, {"gates": list(gates), "now": now})
        tells = cursor.rowcount > 0
    if tells:
        tell_soon()


_REMIND: Final = f"""
    INSERT INTO tenants_outboxmessage
        (id, tenant_id, kind, payload, about, recipient, due_at, attempts, error)
    SELECT gen_random_uuid(), gate.tenant_id, '{REMINDER}', '{{}}', gate.id, asked.user_id,
        %(now)s::timestamptz + {_WARNED}, 0, ''
    FROM approvals_gate gate
    JOIN approvals_assignment asked ON asked.gate_id = gate.id AND asked.passed_at IS NULL
    JOIN tenants_user person ON person.id = asked.user_id AND person.email <> ''
    LEFT JOIN approvals_noticepreference wants ON wants.user_id = asked.user_id
    WHERE gate.id = %(gate)s AND coalesce(wants.reminders, true)
    ON CONFLICT DO NOTHING"""  # noqa: S608 - names of ours


def remind_anew(gate_id: UUID, now: datetime) -> None:
    """Have those who are asked reminded by the gate's new end, whether or not they were before.

    A reminder that is being sent now stays as it is.
    """
    of_gate = OutboxMessage.objects.filter(kind=REMINDER, about=gate_id)
    of_gate.filter(Q(attempts=0) | Q(due_at=None)).delete()
    with connection.cursor() as cursor:
        cursor.execute(_REMIND, {"gate": gate_id, "now": now})


def nobody_may(gate_id: UUID) -> bool:
    """Say whether an open gate is in nobody's inbox."""
    return not Assignment.objects.filter(gate=gate_id).exists()


def tell_admins(gate_id: UUID, now: datetime) -> None:
    """Have the tenant's admins told, once, that nobody may decide the gate."""
    admins = Membership.objects.filter(role=Role.ADMIN, active=True, user__is_active=True)
    told = [
        OutboxMessage(kind=UNDECIDABLE, payload={}, about=gate_id, recipient=user_id, due_at=now)
        for user_id in admins.exclude(user__email="").values_list("user_id", flat=True)
    ]
    OutboxMessage.objects.bulk_create(told, ignore_conflicts=True)
    tell_soon()


def reassign(gates: Sequence[UUID], now: datetime) -> None:
    """Put open gates into the inboxes they belong in now, and take them out of all others."""
    assigned = list(Assignment.objects.filter(gate__in=gates))
    may = entitled(gates, {one.user_id for one in assigned})
    stale = [one.pk for one in assigned if one.user_id not in may.get(one.gate_id, ())]
    Assignment.objects.filter(pk__in=stale).delete()
    assign(gates, now)
    # What was handed to one who may not any more comes back to those who handed it on.
    asked = Assignment.objects.filter(gate=OuterRef("gate"), passed_at=None)
    Assignment.objects.filter(~Exists(asked), gate__in=gates).update(passed_at=None)
