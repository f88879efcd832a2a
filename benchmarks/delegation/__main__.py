"""`python -m benchmarks.delegation [--seeds 0-5] [--baselines] [--teams]`: one table."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator

from benchmarks.delegation.baselines import BASELINES, Learner
from benchmarks.delegation.playing import play_people, play_teams
from benchmarks.delegation.table import Summary, summary, table
from delegation.benchmark import cautious, eager

OWN: tuple[Callable[[], Learner], ...] = (cautious, eager)


def main() -> None:
    told = arguments().parse_args()
    first, _, last = told.seeds.partition("-")
    seeds = range(int(first), int(last or first) + 1)
    begun = time.monotonic()
    rows = list(measured(seeds, baselines=told.baselines, teams=told.teams))
    print(table(rows))
    print(f"\nseeds {told.seeds}, {rows[0][1].calls:,} calls, {time.monotonic() - begun:.0f} s")


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.delegation")
    parser.add_argument("--seeds", default="0-5", help="first-last; constants were chosen on 0-5")
    parser.add_argument("--baselines", action="store_true", help="common rules as well")
    parser.add_argument(
        "--teams", action="store_true", help="worlds where a gate goes to three too"
    )
    return parser


def measured(seeds: range, *, baselines: bool, teams: bool) -> Iterator[tuple[str, Summary]]:
    for make in (*(BASELINES if baselines else ()), *OWN):
        yield make().name, summary(play_people(make, seeds))
    if not teams:
        return
    for make in OWN:
        name = make().name
        yield f"{name}, three approvers", summary(play_teams(make, seeds, "addressee"))
        yield f"{name}, rules of any of the three", summary(play_teams(make, seeds, "anyone"))


if __name__ == "__main__":
    main()
