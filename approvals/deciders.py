"""Who may decide a gate, for many people and gates at once: authority, narrowed by its approvers.

The authority function (approvals/authority.py) says who may at all; a rule's approvers are groups
of which whoever holds the authority must be one, and never widen it. Of a gate with stages they are
those of the one that is open, and whoever approved in one before it is not asked again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db import connection
from django.db.models import Exists, OuterRef, Q

from approvals import authority, stages
from approvals.authority import Call, Capacity, Refused, RunFor
from approvals.calls import within
from approvals.errors import NotYourStage
from approvals.models import Assignment, Decision, Gate, Substitution, Verdict
from tenants.models import GroupMember, Membership, OutboxMessage, Role
from tenants.queue import tell_soon

# Kinds of e-mail, one of each about a gate to a person.
ASKED: Final = "notice.asked"
REMINDER: Final = "notice.reminder"
UNDECIDABLE: Final = "notice.undecidable"
SUBSTITUTE: Final = "notice.substitute"  # what waits as a substitution begins: about it
NOT_AN_APPROVER: Final = Refused("not-an-approver")
NOT_YOUR_STAGE: Final = Refused("not-your-stage")


def _entitled(capacities: str, holder: str | None) -> str:
    """Return the SQL of gates and of who may decide them, but for the limits of their authority.

    Row-level security keeps each table inside the session's tenant.
    """
    whose = holder or "who.id"
    refusal = authority.refusal_sql(
        user="who.id",
        holder=holder,
        tool="gate.tool_id",
        agent="run.agent_id",
        requester="run.requested_by_id",
    )
    named = authority.in_a_group_sql(holder=whose, is_named="named.name = ANY(gate.approvers)")
    return f"""
    SELECT gate.id AS gate, who.id AS person, {whose} AS holder,
        {authority.limits_sql(holder=whose, tool="gate.tool_id")} AS limits
    FROM approvals_gate gate
    JOIN interrupts_run run ON run.id = gate.run_id
    CROSS JOIN ({capacities}) who
    WHERE gate.id = ANY(%(gates)s)
        AND (cardinality(gate.approvers) = 0 OR {named})
        AND (gate.stage IS NULL OR NOT EXISTS (
            SELECT FROM approvals_decision vote
            WHERE vote.gate_id = gate.id AND vote.counts AND vote.verdict = '{Verdict.APPROVE}'
                AND coalesce(vote.stage, 1) < gate.stage
                AND (vote.user_id IN (who.id, {whose}) OR vote.acting_for_id IN (who.id, {whose}))))
        AND {refusal} IS NULL"""  # noqa: S608 - names of ours


def refusals(
    users: Sequence[UUID],
    tool_id: UUID,
    run: RunFor,
    approvers: Sequence[str],
    call: Call | None,
) -> dict[Capacity, Refused | None]:
    """Return for each person, and each they stand in for, why they may not decide; None: they may."""
    found = authority.refusals(users, tool_id, run, call)
    if approvers:
        inside = _members({holder for _, holder in found}, approvers)
        for capacity, refused in found.items():
            if (refused is None or refused.limits) and capacity[1] not in inside:
                found[capacity] = NOT_AN_APPROVER
    return found


def standing(
    user: UUID, tool_id: UUID, run: RunFor, approvers: Sequence[str], call: Call | None
) -> tuple[UUID | None, Refused | None]:
    """Return for whom the person would decide (None: for themself), and why they may not.

    Their own authority comes first. Where they may by none, what is told is what comes closest.
    """
    return _standing(user, refusals([user], tool_id, run, approvers, call))


def _standing(
    user: UUID, found: dict[Capacity, Refused | None]
) -> tuple[UUID | None, Refused | None]:
    own = found.pop((user, user))
    others = sorted(found.items())
    if own is None:
        return None, None
    for (_, holder), refused in others:
        if refused is None:
            return holder, None
    told = [own, *(refused for _, refused in others if refused is not None)]
    return None, next((one for one in told if one != NOT_AN_APPROVER), NOT_AN_APPROVER)


def check(
    user: UUID, tool_id: UUID, run: RunFor, approvers: Sequence[str], call: Call | None
) -> UUID | None:
    """Return for whom the person decides; None: for themself.

    Raises NotAnApprover, OwnRequest or BeyondAuthority where they may not.
    """
    acting_for, refused = standing(user, tool_id, run, approvers, call)
    if refused is not None:
        raise authority.problem(refused)
    return acting_for


def lost(
    votes: Sequence[Decision],
    tool_id: UUID,
    run: RunFor,
    approvers: Sequence[str],
    call: Call | None,
) -> list[UUID]:
    """Return whose votes count no more: they may not decide any longer as they did."""
    found = refusals([one.user_id for one in votes], tool_id, run, approvers, call)
    return [
        one.user_id
        for one in votes
        if found.get((one.user_id, one.holder_id), NOT_AN_APPROVER) is not None
    ]


def gate_refusals(
    users: Sequence[UUID], gate: Gate, run: RunFor, call: Call
) -> dict[Capacity, Refused | None]:
    """Return for each person, and each they stand in for, why they may not decide the gate now.

    Whoever is of another stage than the open one, or approved in one before it, is told that.
    """
    if not gate.stages:
        return refusals(users, gate.tool_id, run, gate.approvers, call)
    found = authority.refusals(users, gate.tool_id, run, call)
    may = entitled([gate.pk], users).get(gate.pk, set())
    left = [one for one, refused in found.items() if refused is None and one not in may]
    if left:
        concerned = _of_a_stage({person for one in left for person in one}, gate)
        found |= {
            one: NOT_AN_APPROVER if concerned.isdisjoint(one) else NOT_YOUR_STAGE for one in left
        }
    return found


def gate_standing(
    user: UUID, gate: Gate, run: RunFor, call: Call
) -> tuple[UUID | None, Refused | None]:
    """Return for whom the person would decide the gate now, and why they may not (see `standing`)."""
    return _standing(user, gate_refusals([user], gate, run, call))


def check_gate(user: UUID, gate: Gate, run: RunFor, call: Call) -> UUID | None:
    """Return for whom the person decides the gate; None: for themself.

    Raises NotAnApprover, OwnRequest, BeyondAuthority, or NotYourStage, which says which stage is
    open.
    """
    acting_for, refused = gate_standing(user, gate, run, call)
    if refused == NOT_YOUR_STAGE:
        raise NotYourStage(stage_words(gate))
    if refused is not None:
        raise authority.problem(refused)
    return acting_for


def stage_words(gate: Gate) -> str:
    """Say which stage is open, and who decides it."""
    who = " or ".join(gate.approvers) or "whoever may decide the tool"
    return (
        f"Stage {gate.stage} of {len(gate.stages)} is open: {who} decides it. A person approves in"
        " one stage only."
    )


def _of_a_stage(people: set[UUID], gate: Gate) -> set[UUID]:
    """Return which of these people are asked in a stage of the gate, or approved in one."""
    named = [stage.approvers for stage in gate.all_stages]
    if not all(named):
        return people
    approved = Decision.objects.filter(gate=gate, counts=True, verdict=Verdict.APPROVE)
    voted = {person for one in approved for person in one.people}
    return (voted & people) | _members(people, sorted({name for names in named for name in names}))


def _members(users: Iterable[UUID], groups: Sequence[str]) -> set[UUID]:
    found = GroupMember.objects.filter(
        group__name__in=groups, membership__user__in=list(users), membership__active=True
    )
    return set(found.values_list("membership__user_id", flat=True))


_AMONG: Final = _entitled(authority.capacities_sql("%(among)s::uuid[]"), "who.holder")


def entitled(gates: Sequence[UUID], among: Iterable[UUID]) -> Mapping[UUID, set[Capacity]]:
    """Return by gate in which capacities these people may decide it now, in one statement.

    Where somebody's authority has limits, the calls are read for them too.
    """
    with connection.cursor() as cursor:
        cursor.execute(_AMONG, {"gates": list(gates), "among": list(among)})
        rows = cursor.fetchall()
    found: dict[UUID, set[Capacity]] = defaultdict(set)
    for gate, user, holder in within(rows):
        found[gate].add((user, holder))
    return found


_MEMBERS: Final = "SELECT m.user_id AS id FROM tenants_membership m WHERE m.active"
# Whoever has limits comes back, unless they are named as within them.
# From now on till people are reminded: as policy says, or half of the time that is left.
_WARNED: Final = """coalesce(
                gate.expires_at - %(now)s::timestamptz
                    - make_interval(secs => (gate.routing ->> 'warn_before')::float8),
                (gate.expires_at - %(now)s::timestamptz) / 2)"""


def _with_substitutes(asked: str) -> str:
    """Return the SQL of those who are asked, and of who stands in for them, then or later."""
    return f"""(
        SELECT asked.gate_id, asked.user_id, NULL::timestamptz AS starts_at,
            NULL::timestamptz AS ends_at
        FROM {asked} asked
        UNION ALL SELECT asked.gate_id, stands.substitute_id, stands.starts_at, stands.ends_at
        FROM {asked} asked JOIN approvals_substitution stands
            ON stands.person_id = asked.user_id AND stands.ended_at IS NULL
                AND stands.ends_at > %(now)s::timestamptz)"""  # noqa: S608 - names of ours


# Whoever stands in is told only while they do.
_WHILE: Final = """(told.starts_at IS NULL
        OR (told.due_at >= told.starts_at AND told.due_at < told.ends_at))"""
_ASSIGN: Final = f"""
    WITH may AS MATERIALIZED ({_entitled(_MEMBERS, None)}),
    added AS (
        INSERT INTO approvals_assignment (id, tenant_id, gate_id, user_id, assigned_at)
        SELECT gen_random_uuid(), gate.tenant_id, may.gate, may.person, %(now)s
        FROM may JOIN approvals_gate gate ON gate.id = may.gate
        WHERE may.limits = '{{}}' OR (may.gate, may.person) IN (
            SELECT * FROM unnest(%(of)s::uuid[], %(within)s::uuid[]))
        ON CONFLICT DO NOTHING RETURNING tenant_id, gate_id, user_id
    ),
    owed AS (
    INSERT INTO tenants_outboxmessage
        (id, tenant_id, kind, payload, about, recipient, due_at, attempts, error)
    SELECT gen_random_uuid(), gate.tenant_id, told.kind, '{{}}', gate.id, asked.user_id,
        told.due_at, 0, ''
    FROM {_with_substitutes("added")} asked
    JOIN approvals_gate gate ON gate.id = asked.gate_id
    JOIN tenants_user person ON person.id = asked.user_id AND person.email <> ''
    LEFT JOIN approvals_noticepreference wants ON wants.user_id = asked.user_id
    CROSS JOIN LATERAL (VALUES
        ('{ASKED}', %(now)s::timestamptz, coalesce(wants.asked, true), asked.starts_at,
            asked.ends_at),
        ('{REMINDER}', %(now)s::timestamptz
            + {_WARNED},
            coalesce(wants.reminders, true), asked.starts_at, asked.ends_at)
    ) told (kind, due_at, is_wanted, starts_at, ends_at)
    WHERE told.is_wanted AND told.due_at IS NOT NULL AND {_WHILE}
    ON CONFLICT DO NOTHING RETURNING 1
    )
    SELECT NULL, NULL, NULL, '{{}}' FROM owed
    UNION ALL SELECT gate, person, holder, limits FROM may WHERE limits <> '{{}}'"""  # noqa: S608 - names of ours


def assign(gates: Sequence[UUID], now: datetime) -> None:
    """Put the gates into the inbox of everybody who may decide them now; again adds nobody twice.

    What they are told by e-mail, now and when half of the time has passed, or as long before its
    end as policy says, is written with it.
    """
    limited = _assign(gates, now, [])
    if limited and (those := within(limited)):
        _assign(gates, now, those)


def _assign(
    gates: Sequence[UUID], now: datetime, those: Sequence[tuple[Any, ...]]
) -> list[tuple[Any, ...]]:
    """Assign to whoever has no limits, or is within them; return who has (see `within`)."""
    of = [gate for gate, *_ in those]
    people = [person for _, person, _ in those]
    with connection.cursor() as cursor:
        cursor.execute(_ASSIGN, {"gates": list(gates), "now": now, "of": of, "within": people})
        rows = cursor.fetchall()
    limited = [row for row in rows if row[0] is not None]
    if len(limited) < len(rows):
        tell_soon()
    return limited


_REMIND: Final = f"""
    INSERT INTO tenants_outboxmessage
        (id, tenant_id, kind, payload, about, recipient, due_at, attempts, error)
    SELECT gen_random_uuid(), gate.tenant_id, '{REMINDER}', '{{}}', gate.id, asked.user_id,
        told.due_at, 0, ''
    FROM {_with_substitutes("(SELECT * FROM approvals_assignment WHERE passed_at IS NULL)")} asked
    JOIN approvals_gate gate ON gate.id = asked.gate_id
    JOIN tenants_user person ON person.id = asked.user_id AND person.email <> ''
    LEFT JOIN approvals_noticepreference wants ON wants.user_id = asked.user_id
    CROSS JOIN LATERAL (VALUES
        (%(now)s::timestamptz + {_WARNED}, asked.starts_at, asked.ends_at)
    ) told (due_at, starts_at, ends_at)
    WHERE gate.id = ANY(%(gates)s) AND coalesce(wants.reminders, true)
        AND (%(to)s::uuid IS NULL OR asked.user_id = %(to)s::uuid)
        AND told.due_at IS NOT NULL AND {_WHILE}
    ON CONFLICT DO NOTHING"""  # noqa: S608 - names of ours


def remind_anew(gate_id: UUID, now: datetime) -> None:
    """Have those who are asked reminded by the gate's new end, whether or not they were before.

    A reminder that is being sent now stays as it is.
    """
    of_gate = OutboxMessage.objects.filter(kind=REMINDER, about=gate_id)
    of_gate.filter(Q(attempts=0) | Q(due_at=None)).delete()
    _remind([gate_id], now, None)


def _remind(gates: Sequence[UUID], now: datetime, to: UUID | None) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_REMIND, {"gates": list(gates), "now": now, "to": to})


def tell_substitute(substitution: Substitution, now: datetime) -> None:
    """Have a substitute told, as it begins, of what waits by then, and reminded of what does now."""
    begins = max(now, substitution.starts_at)
    OutboxMessage.objects.create(
        kind=SUBSTITUTE,
        payload={},
        about=substitution.pk,
        recipient=substitution.substitute_id,
        due_at=begins,
    )
    waits = Assignment.objects.filter(user=substitution.person_id, passed_at=None)
    gates = list(waits.filter(gate__expires_at__gt=begins).values_list("gate_id", flat=True))
    if gates:
        _remind(gates, begins, substitution.substitute_id)
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
    stale = [one.pk for one in assigned if (one.user_id, one.user_id) not in may[one.gate_id]]
    Assignment.objects.filter(pk__in=stale).delete()
    assign(gates, now)
    # What was handed to one who may not any more comes back to those who handed it on.
    asked = Assignment.objects.filter(gate=OuterRef("gate"), passed_at=None)
    Assignment.objects.filter(~Exists(asked), gate__in=gates).update(passed_at=None)
