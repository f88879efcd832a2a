"""Rules that ask people, and what people made of being asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from approvals.hindsight.gates import COUNTED, Counts, Window, ask
from approvals.hindsight.proportions import Proportion, wilson
from approvals.models import PolicyStatus, PolicyVersion
from approvals.policy import DEFAULT

LEAST_DECIDED: Final = 20
_VERSIONS_READ: Final = 20
BY_RULE: Final = f"""
SELECT looked.found, ruled.* FROM (SELECT count(*) AS found FROM looked_at) looked
LEFT JOIN (
    SELECT rules.name, count(*), count(*) FILTER (WHERE jsonb_array_length(triggers) = 1),
        percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds) FILTER (WHERE outcome IS NOT NULL),
        string_agg(reason, ' ') FILTER (WHERE outcome IS NOT NULL), {COUNTED}
    FROM judged
    CROSS JOIN LATERAL (
        SELECT DISTINCT one ->> 'rule' AS name FROM jsonb_array_elements(triggers) one
    ) fired
    JOIN unnest(%(names)s::text[], %(versions)s::integer[]) rules (name, version)
        ON rules.name = fired.name AND policy_version >= rules.version
    GROUP BY 1
) ruled ON true
"""  # noqa: S608 - words of ours


@dataclass(frozen=True, slots=True)
class RuleAsked:
    """How often a rule asked, as it stands since a version, and what people said.

    ``alone``: no other rule asked about the same call. ``seconds`` is the median from a gate's
    opening to its decision. ``reasons`` are the declared ones that were chosen, by code, how often.
    """

    rule: str
    version: int
    least: int
    asked: int = 0
    alone: int = 0
    seconds: float | None = None
    counts: Counts = field(default_factory=Counts)
    reasons: Mapping[str, int] = field(default_factory=dict)

    @property
    def refusal(self) -> Proportion | None:
        return wilson(self.counts.refused, self.counts.decided)

    @property
    def in_vain(self) -> bool:
        """Whether people decided often enough, and each time let run what stood as proposed."""
        counts = self.counts
        untouched = counts.as_proposed == counts.decided and not counts.undone
        return counts.decided >= self.least and untouched

    @property
    def meaning(self) -> str:
        """Say in one sentence what the numbers mean."""
        decided, refusal = self.counts.decided, self.refusal
        if refusal is None:
            return "Nobody has decided a gate of this rule, so nothing can be said of it."
        if self.in_vain:
            return (
                f"All of {decided} were approved as proposed: with 95 % confidence people would"
                f" refuse no more than {refusal.upper:.1%} of such calls; whether that is worth"
                " asking about is for people to say."
            )
        if self._touched:
            return f"Of {decided} decided, {self._touched}: to ask made a difference."
        return (
            f"{decided} decided and none refused or edited, which is fewer than {self.least} and"
            f" so says little: with 95 % confidence up to {refusal.upper:.1%} would be refused."
        )

    @property
    def _touched(self) -> str:
        counts = self.counts
        told = {
            "refused": counts.refused,
            "edited": counts.edited,
            "answered in the call's place": counts.responded,
            "approved and undone": counts.undone,
        }
        return ", ".join(f"{number} {what}" for what, number in told.items() if number)


@dataclass(frozen=True, slots=True)
class Overgating:
    """The rules in force that ask, those first that asked in vain."""

    window: Window
    considered: int
    more: bool
    policy_version: int
    least: int
    rules: Sequence[RuleAsked]


def read_overgating(window: Window, least: int = LEAST_DECIDED) -> Overgating:
    """Return what became of each rule's asking; three statements, of a bounded number of gates."""
    published = PolicyVersion.objects.filter(status=PolicyStatus.PUBLISHED)
    in_force = published.order_by("-number").first()
    rules = _standing(in_force, window.since) if in_force else {}
    rules[DEFAULT] = 0  # what no rule names, under whichever version
    considered, more, rows = ask(window, BY_RULE, names=list(rules), versions=list(rules.values()))
    found = {name: told for name, *told in rows}

    def asked(rule: str, version: int) -> RuleAsked:
        asked, alone, seconds, codes, *counts = found.get(rule, (0, 0, None, None))
        # A code has no space in it.
        reasons = dict(Counter((codes or "").split()).most_common())
        return RuleAsked(rule, version, least, asked, alone, seconds, Counts(*counts), reasons)

    made = [asked(rule, version) for rule, version in rules.items()]
    made.sort(key=lambda one: (not one.in_vain, -one.counts.decided, -one.asked, one.rule))
    number = in_force.number if in_force else 0
    return Overgating(window, considered, more, number, least, made)


def _standing(in_force: PolicyVersion, since: datetime) -> dict[str, int]:
    """Return each rule that asks, with the earliest version since which it reads as it does now.

    What an older rule of the same name asked about says nothing of the one in force. Versions that
    were out of force before the window are not read, nor more than a bound.
    """
    rules = {one["name"]: one for one in in_force.document.get("rules") or () if _asks(one)}
    standing = dict.fromkeys(rules, in_force.number)
    unchanged = set(rules)
    earlier = PolicyVersion.objects.filter(
        status=PolicyStatus.PUBLISHED, number__lt=in_force.number
    )
    began = in_force.published_at
    for version in earlier.order_by("-number")[:_VERSIONS_READ]:
        if began is not None and began < since:
            break
        before = {one["name"]: one for one in version.document.get("rules") or ()}
        unchanged = {name for name in unchanged if before.get(name) == rules[name]}
        standing.update(dict.fromkeys(unchanged, version.number))
        began = version.published_at
    return standing


def _asks(rule: Mapping[str, Any]) -> bool:
    return bool(rule["then"] == "approve")
