"""Whose rules may speak for a call: the people drawn one after the other, with what they may decide.

One prepared statement reads the rules of a few people with why each may not decide the call: of ten
thousand rules those of one tool's version and of the people who are drawn. Who has such rules is
remembered for as long as nothing narrows, since whatever lets a rule speak or ends it raises the
authority version; the statement looks at each rule again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any, Final
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS

from approvals.authority import RunFor, in_a_group_sql, limits_sql, refusal_sql
from config.memo import Memo
from delegation.learner import coin
from delegation.models import Delegation
from delegation.selectors import unanswered_sql
from tenants.scope import current_tenant_id
from tenants.statements import prepared_rows

BATCHES: Final = (2, 14, 112)  # how many of those drawn are looked at at once, till one may decide
READ: Final = (  # in the model's order
    "id",
    "tenant_id",
    "user_id",
    "tool",
    "tool_number",
    "version",
    "origin",
    "predicate",
    "check_share",
    "sha256",
    "expires_at",
)
_PEOPLE: Memo[Sequence[UUID]] = Memo(4096)

# Rules that speak now, but for their time: of whoever asked to see everything none does.
_SPEAKS: Final = """rule.tool = asked.tool AND rule.tool_number = asked.tool_number
    AND rule.status = 'active' AND (asked.learned OR rule.origin <> 'learned')
    AND rule.confirmed_under >= asked.denied_in
    AND NOT EXISTS (SELECT FROM delegation_delegationpreference wish
        WHERE wish.user_id = rule.user_id AND wish.asks_everything_since IS NOT NULL)"""
_READ_PEOPLE: Final = f"""
SELECT DISTINCT rule.user_id FROM delegation_delegation rule
JOIN (SELECT %b::uuid AS tool, %b::integer AS tool_number, %b::boolean AS learned,
        %b::integer AS denied_in) asked
    ON {_SPEAKS}
ORDER BY rule.user_id"""  # noqa: S608 - names of ours


def _speakers(who: str, which: str) -> str:
    """Return the SQL of the rules of ``who`` that speak now, with why each may not decide.

    ``who`` has ``id``, ``owes`` and ``again``.
    """
    refusal = refusal_sql(
        user="who.id", tool="asked.tool", agent="asked.agent", requester="asked.requester"
    )
    inside = in_a_group_sql(holder="who.id", is_named="named.name = ANY(asked.approvers)")
    return f"""
    WITH asked AS MATERIALIZED (SELECT %b::uuid AS tool, %b::integer AS tool_number,
        %b::boolean AS learned, %b::integer AS denied_in, %b::uuid AS agent,
        %b::uuid AS requester, %b::text[] AS approvers, %b::timestamptz AS now_at, {which})
    SELECT may.refusal, may.limits, may.inside, who.owes, who.again,
        {", ".join(f"rule.{name}" for name in READ)}
    FROM asked CROSS JOIN {who}
    CROSS JOIN LATERAL (SELECT {refusal} AS refusal,
        {limits_sql(holder="who.id", tool="asked.tool")} AS limits,
        cardinality(asked.approvers) = 0 OR {inside} AS inside OFFSET 0) may
    JOIN delegation_delegation rule ON rule.user_id = who.id AND {_SPEAKS}
        AND (rule.expires_at IS NULL OR rule.expires_at > asked.now_at)"""  # noqa: S608


# Those drawn, and before them whoever has not answered a check of the like. It is asked again
# whoever is drawn: those who owe an answer may have no rule by now that speaks for the call.
_DRAWN: Final = f"""LATERAL (
    SELECT one.id, min(one.place) AS place, bool_or(one.owes) AS owes,
        bool_or(bool_or(one.owes)) OVER () AS again FROM (
        SELECT first.id, first.place, false FROM unnest(asked.people) WITH ORDINALITY first(id, place)
        UNION ALL SELECT owed.person, 0, true
        FROM ({unanswered_sql(shape="asked.shape", call="asked.call")}) owed(check_id, person)
    ) one(id, place, owes) GROUP BY one.id) who"""  # noqa: S608
_OF_PEOPLE: Final = (
    _speakers(_DRAWN, "%b::text AS shape, %b::text AS call, %b::uuid[] AS people")
    + " ORDER BY who.place, who.id, rule.id"
)
_OWNER: Final = """LATERAL (SELECT one.user_id AS id, false AS owes, false AS again
    FROM delegation_delegation one
    WHERE one.id = asked.rule) who"""
_OF_RULE: Final = _speakers(_OWNER, "%b::uuid AS rule") + " AND rule.id = asked.rule"


@dataclass(frozen=True, slots=True)
class Question:
    """What rules are asked about: calls of a tool's version, in a run, now."""

    tool: UUID
    tool_number: int
    learned: bool  # whether rules speak that nobody took up
    denied_in: int  # the policy version that last began to deny it: no rule from before it speaks
    run: RunFor
    approvers: Sequence[str]
    now: datetime

    @property
    def about(self) -> list[Any]:
        """What decides whether a rule speaks of such calls at all."""
        return [self.tool, self.tool_number, self.learned, self.denied_in]

    @property
    def parameters(self) -> list[Any]:
        run, approvers = self.run, list(self.approvers)
        return [*self.about, run.agent_id, run.requested_by_id, approvers, self.now]


@dataclass(frozen=True, slots=True)
class Speaker:
    """A person with their rules for the tool, and why they may not decide it; None: they may."""

    person: UUID
    refusal: str | None
    limits: Sequence[str]  # of their authority
    inside: bool  # one of the approvers
    owes: bool  # an answer to a check of the like
    again: bool  # somebody owes one, whoever it is
    rules: list[Delegation]


def drawn(
    asked: Question, like: tuple[str, str], authority_version: int, key: bytes, step: UUID
) -> Iterator[Speaker]:
    """Yield people with rules that speak for the tool, in an order drawn for the step.

    Before all others comes who has not answered a check of ``like``, a call by its shape and by
    itself. So many are looked at at most that deciding takes no longer in a large tenant.
    """
    about = asked.tool, asked.tool_number, asked.learned, asked.denied_in
    named = (current_tenant_id(), authority_version, *about)
    people = _PEOPLE.get(named, lambda: _people(asked))
    order, seen = in_drawn_order(people, key, str(step)), set[UUID]()
    for size in BATCHES:
        some = list(islice(order, size))
        if not some:
            return
        found = _read(_OF_PEOPLE, asked, *like, some)
        yield from (one for one in found if one.person not in seen)
        seen.update(one.person for one in found)


def of_rule(asked: Question, rule: UUID) -> Speaker | None:
    """Return whose the rule is, with it; None: it does not speak for such calls now."""
    return next(iter(_read(_OF_RULE, asked, rule)), None)


def in_drawn_order(people: Sequence[UUID], key: bytes, step: str) -> Iterator[UUID]:
    """Yield the people in an order that only who has the key can tell beforehand, each as likely.

    It is drawn as far as it is asked for, with one coin for each place.
    """
    moved: dict[int, UUID] = {}
    for place in range(len(people)):
        left = len(people) - place
        at = place + int(coin(key, f"{step} {place}") * left)
        yield moved.get(at, people[at])
        moved[at] = moved.get(place, people[place])


def _people(asked: Question) -> Sequence[UUID]:
    rows = prepared_rows(_READ_PEOPLE, asked.about)
    return tuple(person for (person,) in rows)


def _read(statement: str, asked: Question, *which: Any) -> Sequence[Speaker]:
    """Return the speakers of a statement, whose rules come one after the other."""
    found: dict[UUID, Speaker] = {}
    rows = prepared_rows(statement, [*asked.parameters, *which])
    for refusal, limits, inside, owes, again, *values in rows:
        rule = Delegation.from_db(DEFAULT_DB_ALIAS, READ, values)
        speaker = Speaker(rule.user_id, refusal, limits, inside, owes, again, [])
        found.setdefault(rule.user_id, speaker).rules.append(rule)
    return list(found.values())
