"""What is done, from the names of a state alone, since another process does it.

The same again is the same request once more.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import transaction

from approvals import hot
from approvals.models import Gate
from approvals.services import bulk, decisions, edits, extensions
from approvals.services.bulk import Chosen
from config.errors import Problem
from interrupts import worker
from interrupts.models import Outcome, Run, Source
from interrupts.services import (
    attempts,
    draining,
    starting,
    steps,
)
from interrupts.transitions.receipts import Seen
from tenants.idempotency import KeyName
from tenants.journal import SYSTEM
from tests.crashes.scene import DONE, THE_KEY, THE_REQUEST, Scene
from tests.crashes.states import Names

EXECUTED = Seen(outcome=Outcome.SUCCEEDED, source=Source.EXECUTOR, by="worker:w", result=b"1")


def keyed(act: Callable[[Scene, Names], Any]) -> Callable[[Scene, Names], None]:
    """What is not the same when done again is sent under an idempotency key."""
    return lambda scene, names: scene.once(lambda: act(scene, names))


def told(code: str, act: Callable[[Scene, Names], Any]) -> Callable[[Scene, Names], None]:
    """What is refused with this code, after something was recorded all the same."""

    def run(scene: Scene, names: Names) -> None:
        try:
            act(scene, names)
        except Problem as refusal:
            if refusal.code != code:
                raise
        else:
            raise AssertionError(f"not refused with {code}")

    return run


def respond(resolution: str = "resume", **more: Any) -> Callable[[Scene, Names], Any]:
    def act(scene: Scene, names: Names) -> None:
        scene.respond(UUID(names["interrupt"]), resolution, **more)

    return act


def recover(outcome: str) -> Callable[[Scene, Names], Any]:
    return respond(value={"outcome": outcome, "evidence": "looked"})


def decide(verdict: str = "approve", **more: Any) -> Callable[[Scene, Names], Any]:
    def act(scene: Scene, names: Names) -> None:
        given = {"digest": names["digest"], **more}
        if verdict == "approve":
            given["confirmation"] = names["typed"] or True
        decisions.decide_gate(scene.people["alice"], UUID(names["gate"]), verdict=verdict, **given)

    return act


def approve_together(scene: Scene, names: Names) -> None:
    both = [
        Chosen(UUID(names[f"{which}gate"]), names[f"{which}digest"]) for which in ("", "other_")
    ]
    told = bulk.approve_together(scene.people["alice"], both)
    assert [one.status for one in told] == ["approved", "approved"], told


def approve_at_once(scene: Scene, names: Names) -> None:
    """As a request with a key is: at once where that is possible, else by the long way."""
    body = {"verdict": "approve", "digest": names["digest"]}
    gate = UUID(names["gate"])
    key = KeyName(str(scene.agent.actor), THE_KEY, THE_REQUEST)
    made = decisions.approve_at_once(
        scene.people["alice"], hot.look(gate), key, body, lambda _: DONE
    )
    if made is None:
        keyed(decide())(scene, names)


def of(name: str, act: Callable[..., Any], *beside: Any, **more: Any) -> Callable[..., Any]:
    """Call a service of the agent's for what is named."""
    return lambda scene, names: act(scene.agent, UUID(names[name]), *beside, **more)


def by(who: str, name: str, act: Callable[..., Any], **more: Any) -> Callable[..., Any]:
    return lambda scene, names: act(scene.people[who], UUID(names[name]), **more)


def propose(scene: Scene, names: Names) -> None:
    proposals = [
        {"tool": tool, "arguments": {"n": n}, "key": f"k{n}"}
        for n, tool in enumerate(("pay", "book", "drop"))
    ]
    steps.propose(scene.agent, UUID(names["run"]), proposals=proposals)


def stop(scene: Scene, names: Names) -> None:
    scene.stop(UUID(names["run"]))


def drain(scene: Scene, names: Names) -> None:
    draining.begin_drain(str(scene.world.tenant))  # of a host where nobody works


def end_drain(scene: Scene, names: Names) -> None:
    draining.end_drain(names["host"])


def work(scene: Scene, names: Names) -> None:
    worker.work_run(UUID(names["run"]), Run.objects.get(pk=names["run"]).epoch)


def wake(name: str, act: Callable[..., Any], *beside: Any) -> Callable[[Scene, Names], Any]:
    return lambda scene, names: act(UUID(names[name]), *beside)


def in_transaction(act: Callable[[Scene], Any]) -> Callable[[Scene, Names], None]:
    """Configuration, in the transaction of whoever changes it."""

    def run(scene: Scene, names: Names) -> None:
        with transaction.atomic():
            act(scene)

    return run


def take_back(scene: Scene, names: Names) -> None:
    decisions.withdraw_decision(scene.people["alice"], UUID(names["gate"]), UUID(names["decision"]))


def give_more_time(scene: Scene, names: Names) -> None:
    gate = Gate.objects.get(pk=names["gate"])
    until = gate.opened_at + timedelta(seconds=90)
    extensions.extend_gate(scene.people["alice"], gate.pk, expires_at=until, note="wait for Bob")


def look_at_edit(scene: Scene, names: Names) -> None:
    edits.look_at_edit(
        scene.people["alice"],
        UUID(names["gate"]),
        digest=names["digest"],
        arguments={"n": 0, "amount": 1},
    )


def recorded(scene: Scene, names: Names) -> None:
    ids = (UUID(names[name]) for name in ("run", "step", "attempt"))
    attempts.record_seen(*ids, EXECUTED, SYSTEM)


def read(scene: Scene, names: Names) -> None:
    attempts.record_read(UUID(names["run"]), UUID(names["step"]), EXECUTED, SYSTEM, "w")


def renewed(scene: Scene, names: Names) -> None:
    starting.renew(UUID(names["run"]), UUID(names["step"]), SYSTEM)
