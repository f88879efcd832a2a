"""`make demo-twice`: one lost answer, without the service and with it. Ends by itself.

A customer is owed money, the shop pays, and the answer is lost on its way back. The naive agent does
what programs do: it tries again. The other one has the service make the call.
"""

from __future__ import annotations

import os
import sys
import time
from itertools import zip_longest
from typing import Any, Final
from uuid import uuid4

import httpx
from abeyance import Abeyance, Proposal, Receipt, Run, Step, StillWaiting

from demo.service import NotThere, Service

TRIES: Final = 3
LONGEST_SECONDS: Final = 60.0
WIDTH: Final = 48


def main() -> None:
    try:
        service = Service.here(os.environ)
    except NotThere as fault:
        sys.exit(f"demo-twice: {fault}")
    reference = uuid4().hex[:8]
    alone, through = f"alone-{reference}", f"through-{reference}"
    say(
        "Both agents are to refund 12.80 EUR once. Each time the shop pays, and its answer is lost."
    )
    say("\nWithout the service")
    pay_alone(service, refund(alone))
    say("\nThrough the service")
    pay_through(service, refund(through))
    say("\nThe shop's ledger, side by side")
    paid = [_rows(service, one) for one in (alone, through)]
    say(
        beside(
            [f"without: paid {len(paid[0])} x", *paid[0]],
            [f"through: paid {len(paid[1])} x", *paid[1]],
        )
    )
    if [len(one) for one in paid] != [2, 1]:
        sys.exit("demo-twice: that is not what was to be shown")


def refund(reference: str) -> dict[str, str]:
    return {
        "payment": "pay-1017",
        "amount": "12.80",
        "customer": "Grace Murphy",
        "reference": reference,
    }


def lose_the_answer(service: Service, arguments: dict[str, str]) -> None:
    match = {"reference": arguments["reference"]}
    service.far_end.order(
        {"tool": "payments.refund", "mode": "lost_answer", "match": match, "lookups": False}
    )


def pay_alone(service: Service, arguments: dict[str, str]) -> None:
    """Call the shop with its own key, and try again where no answer comes: as a tool function does."""
    lose_the_answer(service, arguments)
    for number in range(1, TRIES + 1):
        try:
            result = service.far_end.make("payments.refund", arguments)
        except httpx.TransportError as fault:
            say(f"  try {number}: {type(fault).__name__}; the agent takes that for a failure")
        else:
            say(f"  try {number}: {result}")
            return


def pay_through(service: Service, arguments: dict[str, str]) -> None:
    """Propose the same; this program also plays the people who would click."""
    lose_the_answer(service, arguments)
    with Abeyance(service.url, service.agent_key) as client:
        run = client.run("support", "Refund Grace Murphy 12.80 EUR")
        (step,) = run.propose(proposal(arguments))
        say(f"  the agent proposes; the step is {step.status}, and bob approves it")
        service.person("bob").approve(step.gate or "")
        step = until(run, step, "unknown")
        say("  the answer is lost; nobody knows what happened, so the run is suspended:")
        say(f"    {run.refresh()['suspension']}: the call is not repeated")
        receipt = start_anew(service, client, run, arguments)
    say(f"  the agent gets its receipt: {receipt.external_id}, found by a {receipt.source}")


def start_anew(service: Service, client: Abeyance, run: Run, arguments: dict[str, str]) -> Receipt:
    """The agent crashes and begins again; meanwhile ada looks into the shop's ledger."""
    again = client.resume(run.id)
    (step,) = again.propose(proposal(arguments))
    say(f"  the agent crashes, starts anew and proposes again: the same step, still {step.status}")
    (entry,) = _entries(service, arguments["reference"])
    evidence = f"The shop's ledger has it as {entry['external_id']}."
    (interrupt,) = again.refresh()["open_interrupts"]
    service.person("ada").found_performed(interrupt, evidence, entry["external_id"])
    say(f"  ada looks into the shop's ledger and settles it: performed, {entry['external_id']}")
    receipt = again.wait(step, timeout=LONGEST_SECONDS)
    again.complete({"refunded": arguments["amount"]})
    return receipt


def proposal(arguments: dict[str, str]) -> Proposal:
    return Proposal(key="refund", tool="payments.refund", arguments=arguments)


def until(run: Run, step: Step, status: str) -> Step:
    """Wait until the step has this status, or none of its waiting will bring it about."""
    deadline = time.monotonic() + LONGEST_SECONDS
    while step.status != status and time.monotonic() < deadline:
        try:
            run.wait(step, timeout=0.5)
        except StillWaiting as waiting:
            step = waiting.step
        else:
            break
    return step


def _entries(service: Service, reference: str) -> list[dict[str, Any]]:
    return [
        one for one in service.far_end.entries() if one["arguments"].get("reference") == reference
    ]


def _rows(service: Service, reference: str) -> list[str]:
    return [
        f"{one['external_id']:<10} {one['arguments']['amount']} EUR  key {(one['key'] or 'none')[:13]}"
        for one in _entries(service, reference)
    ]


def beside(left: list[str], right: list[str]) -> str:
    """Lay two columns side by side."""
    return "\n".join(
        f"  {one:<{WIDTH}} {other}".rstrip()
        for one, other in zip_longest(left, right, fillvalue="")
    )


def say(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - this is a program for a terminal


if __name__ == "__main__":
    main()
