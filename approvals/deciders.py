"""Who may decide a gate, for many people and gates at once: authority, narrowed by its approvers.

The authority function (approvals/authority.py) says who may at all; a rule's approvers are groups
of which a person must be one, and never widen it. Of a gate with stages they are those of the one
that is open, and whoever approved in one before it is not asked again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from django.db import connection
from django.db.models import Exists, OuterRef

from approvals import authority, stages
from approvals.authority import Refusal, RunFor
from approvals.errors import NotAnApprover, NotYourStage, OwnRequest
from approvals.models import Assignment, Decision, Gate, Verdict
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
    "not-your-stage": NotYourStage,
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
        AND (gate.stage IS NULL OR NOT EXISTS (
            SELECT FROM approvals_decision vote
            WHERE vote.gate_id = gate.id AND vote.user_id = who.user_id AND vote.counts
                AND vote.verdict = '{Verdict.APPROVE}' AND coalesce(vote.stage, 1) < gate.stage))
        AND {
    authority.refusal_sql(
        user="who.user_id",
        tool="gate.tool_id",
        agent="run.agent_id",
        requester="run.requested_by_id",
    )
} IS NULL"""  # noqa: S608 - names of ours


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


def gate_refusals(users: Sequence[UUID], gate: Gate, run: RunFor) -> dict[UUID, Refusal | None]:
    """Return for each person why they may not decide the gate now; None: they may.

    Whoever is of another stage than the open one, or approved in one before it, is told that.
    """
    if not gate.stages:
        return refusals(users, gate.tool_id, run, gate.approvers)
    found = authority.refusals(users, gate.tool_id, run)
    may = entitled([gate.pk], users).get(gate.pk, set())
    left = [user for user, refusal in found.items() if refusal is None and user not in may]
    if left:
        concerned = _of_a_stage(left, gate)
        found |= {
            user: "not-your-stage" if user in concerned else "not-an-approver" for user in left
        }
    return found


def check_gate(user: UUID, gate: Gate, run: RunFor) -> None:
    """Raise NotAnApprover, OwnRequest, or NotYourStage, which says which stage is open."""
    refusal = gate_refusals([user], gate, run)[user]
    if refusal == "not-your-stage":
        raise NotYourStage(stage_words(gate))
    if refusal:
        raise _PROBLEMS[refusal]


def stage_words(gate: Gate) -> str:
    """Say which stage is open, and who decides it."""
    who = " or ".join(gate.approvers) or "whoever may decide the tool"
    return (
        f"Stage {gate.stage} of {len(gate.stages)} is open: {who} decides it. A person approves in"
        " one stage only."
    )


def _of_a_stage(users: Sequence[UUID], gate: Gate) -> set[UUID]:
    """Return which of these people are asked in a stage of the gate, or approved in one."""
    named = [stage.approvers for stage in gate.all_stages]
    if not all(named):
        return set(users)
    approved = Decision.objects.filter(
        gate=gate, user__in=users, counts=True, verdict=Verdict.APPROVE
    )
    voted = set(approved.values_list("user_id", flat=True))
    return voted | _members(users, sorted({name for names in named for name in names}))


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
            + coalesce(
                gate.expires_at - %(now)s::timestamptz
                    - make_interval(secs => (gate.routing ->> 'warn_before')::float8),
                (gate.expires_at - %(now)s::timestamptz) / 2),
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


def nobody_may(gate: Gate) -> bool:
    """Say whether an open gate is in nobody's inbox, or a later stage has too few people."""
    if gate.stages:
        return bool(stages.short_of_people([gate]))
    return not Assignment.objects.filter(gate=gate.pk).exists()


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
