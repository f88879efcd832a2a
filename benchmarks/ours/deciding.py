"""How long it takes to say whether a rule speaks for a call, among 10,000 rules and 1,000,000 events.

Asked in the transactions of proposals of ten tools in turns, each of which 1,000 people have a rule
for. Prints ``{"deciding": {"p50_ms", "p99_ms", "cpu_p50_ms", "cpu_p99_ms", "anew_ms", "rules",
"events"}}``: the time on the clock, the processor time of this process and of its server's, and the
longest after something was narrowed, when it is read anew which tools have rules and whose.
"""

import time
from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

from django.db import transaction

from benchmarks.figures import milliseconds, report
from benchmarks.ours.api import step_body
from benchmarks.ours.crowded import NAMES, crowded
from benchmarks.ours.delegated import NotRuled, server_time
from benchmarks.ours.inprocess import as_agent
from benchmarks.ours.steps import STEPS, new_run
from delegation import authorizer
from delegation.models import DecisionEvent, Delegation, DelegationUse
from interrupts.services.steps import propose
from tenants.authority import raise_authority

RUNS = 20  # of 100 proposals each
ANEW = 20


class Timed:
    """The question whether a rule speaks for a call, with the seconds that each took."""

    def __init__(self) -> None:
        self.ask = authorizer._by_rule  # noqa: SLF001 - what is measured
        self.forget()

    def __call__(self, *asked: Any) -> Any:
        used, started = processor_time(), time.perf_counter()
        found = self.ask(*asked)
        self.samples.append(time.perf_counter() - started)
        self.used.append(processor_time() - used)
        return found

    def forget(self) -> None:
        """Time from now on."""
        self.samples: list[float] = []
        self.used: list[float] = []


def processor_time() -> float:
    """Return the seconds of a processor that this process and its server's have used."""
    return time.process_time() + server_time()


def propose_steps(key: str, steps: int) -> None:
    """Propose so many steps of a new run, of each tool in turn."""
    run = new_run(key).pk
    with as_agent(key) as agent:
        for number in range(steps):
            name = NAMES[number % len(NAMES)]
            propose(agent, run, proposals=[step_body(name)], single=True)


def propose_anew(key: str) -> None:
    """Propose a step after all that is remembered for as long as nothing narrows."""
    with as_agent(key), transaction.atomic():
        raise_authority()
    propose_steps(key, 1)


def measure(key: str, *, runs: int = RUNS, anew: int = ANEW) -> dict[str, float]:
    """Return how long deciding took. Raises NotRuled where a rule did not approve a step."""
    timed = Timed()
    with patch.object(authorizer, "_by_rule", timed):
        propose_steps(key, STEPS)
        timed.forget()
        for _ in range(runs):
            propose_steps(key, STEPS)
        figures = milliseconds(timed.samples) | cpu(timed.used)
        timed.forget()
        for _ in range(anew):
            propose_anew(key)
    with as_agent(key):
        found = DelegationUse.objects.count()
        told = {"rules": Delegation.objects.count(), "events": DecisionEvent.objects.count()}
    if found != (wanted := STEPS * (runs + 1) + anew):
        raise NotRuled(f"{found} of {wanted} steps were approved by a rule")
    return {**figures, "anew_ms": max(timed.samples) * 1e3, **told}


def cpu(used: Sequence[float]) -> dict[str, float]:
    """Return the percentiles of processor time by their names."""
    return {f"cpu_{name}": value for name, value in milliseconds(used).items()}


def main() -> None:
    """Measure and print."""
    report({"deciding": measure(crowded().agents["agent"])})


if __name__ == "__main__":
    main()
