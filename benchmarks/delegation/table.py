"""What passes through worlds come to, as one row a learner."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from benchmarks.delegation.playing import Played

STRUCTURAL: Final = ("amount", "value", "path", "extra", "splice")


@dataclass(frozen=True)
class Summary:
    """Shares from 0 to 1; `wrong`, `avoidable`, `human_wrong` and `worst` per 10,000 calls."""

    calls: int
    removed: float
    removed_late: float
    wrong: float
    avoidable: float
    human_wrong: float
    structural: int
    bursts: float
    largest_incident: float
    first: float
    never: int
    leaked: float
    revoked_days: float
    p10: float
    p90: float
    worst: float

    def cells(self) -> list[str]:
        return [
            f"{self.removed:.1%}",
            f"{self.removed_late:.1%}",
            f"{self.wrong:.1f}",
            f"{self.avoidable:.1f}",
            f"{self.human_wrong:.0f}",
            str(self.structural),
            f"{self.bursts:.1%}",
            f"{self.largest_incident:,.0f}",
            f"{self.first:.0f}",
            str(self.never),
            f"{self.leaked:.1%}",
            f"{self.revoked_days:.1f}",
            f"{self.p10:.0%}-{self.p90:.0%}",
            f"{self.worst:.0f}",
        ]


HEAD: Final = (
    "learner",
    "removed",
    "last 15 days",
    "wrong/10k",
    "avoidable/10k",
    "wrong by people/10k",
    "smuggled",
    "bursts",
    "largest incident",
    "first at",
    "never",
    "leak",
    "revoked after, days",
    "p10-p90 removed",
    "worst/10k",
)


def summary(passes: Iterable[Played]) -> Summary:
    """Sum passes up; p10 and p90 are of those who do not skim everything."""
    found = list(passes)
    total: Counter[str] = Counter()
    shares: list[float] = []
    firsts: list[int] = []
    leaks: list[float] = []
    worst, never = [0.0], 0
    for played in found:
        for name, counts in played.counts.items():
            total += counts
            if not counts["delegable"]:
                continue
            if played.kinds[name] != "rubber":
                shares.append(counts["ran"] / counts["delegable"])
            if played.kinds[name] == "drift":
                leaks.append(played.last_leak.get(name, 0.0))
            worst.append(per_10k(counts["wrong"], counts["n"]))
            never += name not in played.first
        firsts += played.first.values()
    return Summary(
        calls=total["n"],
        removed=_share(total["ran"], total["delegable"]),
        removed_late=_share(total["ran_late"], total["late"]),
        wrong=per_10k(total["wrong"], total["n"]),
        avoidable=per_10k(total["avoidable"], total["n"]),
        human_wrong=per_10k(total["human_wrong"], total["n"]),
        structural=sum(_smuggled(found, way)[0] for way in STRUCTURAL),
        bursts=_share(*_smuggled(found, "burst")),
        largest_incident=max((max(one.incidents.values(), default=0) for one in found), default=0),
        first=statistics.median(firsts) if firsts else float("nan"),
        never=never,
        leaked=_share(total["leaked"], total["flipped"]),
        revoked_days=statistics.median(leaks) if leaks else float("nan"),
        p10=_quantile(shares, 0.1),
        p90=_quantile(shares, 0.9),
        worst=max(worst),
    )


def table(rows: Iterable[tuple[str, Summary]]) -> str:
    """Write rows as a table of Markdown."""
    lines = [HEAD, ("---",) * len(HEAD), *((name, *one.cells()) for name, one in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def per_10k(times: int, calls: int) -> float:
    return 1e4 * _share(times, calls)


def _smuggled(passes: Iterable[Played], way: str) -> tuple[int, int]:
    counts = sum((one.smuggled[way] for one in passes), Counter[bool]())
    return counts[True], counts.total()


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def _quantile(values: Sequence[float], share: float) -> float:
    return sorted(values)[int(share * len(values))] if values else float("nan")
