"""Into which states a tenant is brought before a service is tried, and what is named in them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from approvals.services import gates, questions, substitutions
from interrupts.models import Checkpoint, Guidance, Step
from interrupts.services import (
    attempts,
    compensating,
    draining,
    freezes,
    holds,
    judging,
    runs,
    starting,
)
from interrupts.services.holds import Asked
from tenants.authority import raise_authority
from tenants.journal import SYSTEM
from tests.crashes.scene import Scene
from tests.property.world import new_version

Names = dict[str, str]
VERIFIER = {"kind": "python", "timeout": 2, "attempts": 3, "backoff": 1, "before_next": True}
FAR = datetime(2999, 1, 1, tzinfo=UTC)
STATE = {"format": "f", "version": "1", "data": [1]}


def named(**ids: UUID) -> Names:
    return {name: str(pk) for name, pk in ids.items()}


def nothing(scene: Scene) -> Names:
    return {}


def a_run(scene: Scene) -> Names:
    return named(run=scene.run())


def a_step(tool: str) -> Callable[[Scene], Names]:
    def prepare(scene: Scene) -> Names:
        run, step = scene.step(tool)
        return named(run=run, step=step)

    return prepare


def two_steps(scene: Scene) -> Names:
    run = scene.run()
    scene.propose(run, "pay", "put")
    return named(run=run)


def done(tool: str) -> Callable[[Scene], Names]:
    def prepare(scene: Scene) -> Names:
        run, step = scene.done(tool)
        return named(run=run, step=step)

    return prepare


def lost(tool: str, end: str = "lost", later: float = 0.0) -> Callable[[Scene], Names]:
    def prepare(scene: Scene) -> Names:
        run, step = scene.lost(tool, end)
        scene.move(later)
        return named(run=run, step=step, interrupt=scene.interrupt(run, "outcome_unknown"))

    return prepare


def claimed(scene: Scene) -> Names:
    run, step, attempt = scene.claimed()
    return named(run=run, step=step, attempt=attempt)


def agents_unknown(scene: Scene) -> Names:
    run, step, attempt = scene.claimed()
    attempts.report(scene.agent, attempt, fence=1, outcome="unknown")
    return named(run=run, step=step)


def under_way(tool: str) -> Callable[[Scene], Names]:
    """A call that was made, and whose worker has it to record."""

    def prepare(scene: Scene) -> Names:
        run, step = scene.step(tool)
        starting_attempt = _intend(scene, run, step)
        scene.far.perform(tool, str(step))
        return named(run=run, step=step, attempt=starting_attempt)

    return prepare


def _intend(scene: Scene, run: UUID, step: UUID) -> UUID:
    from interrupts.content import get
    from interrupts.work import working

    with working(run, SYSTEM) as work:
        row = Step.objects.get(pk=step)
        return starting.start(work, row, get(row.arguments), worker="w").pk


def lapsed(scene: Scene) -> Names:
    names = under_way("pay")(scene)
    scene.move(13.0)
    return names


def stopped(scene: Scene) -> Names:
    run = scene.run()
    return named(run=run, interrupt=scene.stop(run))


def asked_for_input(scene: Scene) -> Names:
    run = scene.run()
    asked = Asked(reason="input_required")
    return named(run=run, interrupt=holds.open_interrupt(scene.agent, run, asked=asked)[0].pk)


def revised(scene: Scene) -> Names:
    run = scene.run()
    scene.respond(scene.stop(run), "revise", value={"guidance": "not so"})
    return named(run=run, guidance=Guidance.objects.get(run=run).pk)


def over_budget(scene: Scene) -> Names:
    run = scene.run(budget={"tokens": 10})
    runs.report_usage(scene.agent, run, tokens=11)
    return named(run=run, interrupt=scene.interrupt(run, "budget_exhausted"))


def ended(scene: Scene) -> Names:
    run = scene.run(agent_state=STATE)
    runs.complete_run(scene.agent, run, output=None)
    return named(run=run, checkpoint=Checkpoint.objects.filter(run=run).latest("sequence").pk)


def parent(scene: Scene) -> Names:
    run = scene.run()
    scene.propose(scene.run(parent=run), "pay")
    return named(run=run)


def to_be_judged(tool: str, verifier: str) -> Callable[[Scene], Names]:
    """A step whose receipt a verifier is to judge, and one that may start only after that."""

    def prepare(scene: Scene) -> Names:
        scene.change(lambda: new_version(tool, verifier={**VERIFIER, "function": verifier}))
        run = scene.run()
        step, _ = scene.propose(run, tool, "put")
        if Step.objects.get(pk=step).gate is not None:
            scene.approve(step)
        return named(run=run, step=step)

    return prepare


def awaited(tool: str, verifier: str) -> Callable[[Scene], Names]:
    """The step was done; its verdict is awaited."""

    def prepare(scene: Scene) -> Names:
        names = to_be_judged(tool, verifier)(scene)
        scene.work(UUID(names["run"]))
        return names

    return prepare


def not_passed(scene: Scene) -> Names:
    names = awaited("book", "rejects")(scene)
    judging.judge(UUID(names["step"]), "w")
    return {**names, **named(interrupt=scene.interrupt(UUID(names["run"]), "verifier_rejected"))}


def undoing_refused(scene: Scene) -> Names:
    run, step = scene.done("book")
    compensating.compensate_step(scene.people["olga"], step)
    scene.far.ends = [("refused", None)]
    compensating.compensate(step, "w")
    return named(run=run, step=step, interrupt=scene.interrupt(run, "effect_failed"))


def undo_wanted(scene: Scene) -> Names:
    run, step = scene.done("book")
    compensating.compensate_step(scene.people["olga"], step)
    return named(run=run, step=step)


def to_be_asked_first(scene: Scene) -> Names:
    names = lost("pay", "not begun")(scene)
    scene.respond(
        UUID(names["interrupt"]), value={"outcome": "not_performed", "evidence": "looked"}
    )
    scene.move(15.0)
    return names


def stale(scene: Scene) -> Names:
    names = a_step("pay")(scene)
    scene.change(raise_authority)
    return names


def frozen(scene: Scene) -> Names:
    names = a_step("pay")(scene)
    freeze, _ = freezes.freeze(scene.people["olga"], scope="tenant")
    return {**names, **named(freeze=freeze.pk)}


def stood_in_for(scene: Scene) -> Names:
    """What alice approved has not started, and carol stands in for her."""
    names = approved(scene)
    alice, carol = scene.people["alice"], scene.people["carol"].name
    row = substitutions.set_as(alice, substitute=carol, ends_at=FAR).row
    return {**names, **named(substitution=row.pk)}


def drained(scene: Scene) -> Names:
    host = str(scene.world.tenant)
    draining.begin_drain(host)
    return {"host": host}


def gated(tool: str, **more: Any) -> Callable[[Scene], Names]:
    def prepare(scene: Scene) -> Names:
        return _shown(scene, scene.gate(tool, **more))

    return prepare


def _shown(scene: Scene, gate: UUID) -> Names:
    for who in ("alice", "carol"):
        shown = gates.look_at_gate(scene.people[who], gate).gate
    typed = shown.required_confirmation or ""
    return {**named(gate=gate, run=shown.run_id), "digest": shown.digest, "typed": typed}


def voted(scene: Scene) -> Names:
    names = gated("post")(scene)
    scene.decide("carol", UUID(names["gate"]))
    return names


def two_gates(scene: Scene) -> Names:
    """Two calls in runs of their own; the second run is the one that is looked at."""
    other = gated("book")(scene)
    names = gated("book")(scene)
    return {**names, "other_gate": other["gate"], "other_digest": other["digest"]}


def gate_then(later: float, tool: str = "book") -> Callable[[Scene], Names]:
    def prepare(scene: Scene) -> Names:
        names = gated(tool)(scene)
        scene.move(later)
        return names

    return prepare


def approved(scene: Scene) -> Names:
    names = gated("book")(scene)
    made = scene.decide("alice", UUID(names["gate"]))
    return {**names, **named(decision=made.decision.pk)}


def questioned(scene: Scene) -> Names:
    names = gated("book")(scene)
    asked = questions.ask_agent(scene.people["alice"], UUID(names["gate"]), text="Which order?")
    return {**names, **named(question=asked.question.pk)}


def left_behind(scene: Scene) -> Names:
    names = gated("book")(scene)
    scene.change(lambda: new_version("book"))
    return names


def undecidable(scene: Scene) -> Names:
    """Nobody may decide any more, and no inbox says so yet."""
    names = gated("book")(scene)
    scene.change(lambda: scene.world.grant({"vera": ["*"]}))
    return names


def preparing(scene: Scene) -> Names:
    run, step = scene.step("send")
    return named(run=run, gate=Step.objects.get(pk=step).gate)
