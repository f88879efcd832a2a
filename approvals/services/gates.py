"""Gates looked at, brought up to date with tool and policy, and asked again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import UUID

from approvals import authorizer, clocks, judging, selectors, snapshots, staging, transitions
from approvals.models import OPEN_GATES, Gate, GateState, View
from approvals.shown import GateShown
from interrupts import content
from interrupts.authorizer import Judgement
from interrupts.errors import NotYourRun
from interrupts.models import (
    Reason,
    Resolution,
    ResponseKind,
    Step,
    StepStatus,
    ToolVersion,
)
from interrupts.transitions import holds, needs, steps
from interrupts.transitions.moves import move_step
from interrupts.work import Work, working
from tenants.ids import uuid7
from tenants.journal import SYSTEM
from tenants.principal import Principal


def look_at_gate(principal: Principal, gate_id: UUID) -> GateShown:
    """Show a gate; that a person was shown it is kept, once for each thing that is shown.

    Raises NotYourRun for another agent's. Nothing else is changed.
    """
    gate = selectors.gates().get(pk=gate_id)
    if principal.is_agent:
        if gate.run.agent_id != principal.id:
            raise NotYourRun
        return selectors.shown_gate(gate, None)
    shown = selectors.shown_gate(gate, principal.id)
    keep_views([shown], principal.id)
    return shown


def keep_views(shown: Sequence[GateShown], user_id: UUID) -> None:
    """Keep that the person was shown these gates, once for each thing that is shown."""
    seen = View.objects.filter(gate__in=[one.gate.pk for one in shown], user=user_id)
    known = set(seen.values_list("gate_id", "digest"))
    new = [one for one in shown if (one.gate.pk, one.gate.digest) not in known]
    if not new:
        return
    now = selectors.database_time()
    # Two pages opened at once show one thing.
    View.objects.bulk_create([_view(one, user_id, now) for one in new], ignore_conflicts=True)


def _view(shown: GateShown, user_id: UUID, now: datetime) -> View:
    gate = shown.gate
    view = View(
        gate=gate,
        user_id=user_id,
        digest=gate.digest,
        snapshot=shown.facts,
        at=now,
    )
    view.imprint = snapshots.vouched(gate.run_id, view)
    return view


def bring_up_to_date(gate_id: UUID) -> None:
    """Settle an open gate that tool, policy or agent have left behind: withdrawn, or asked anew.

    A step that is denied now, by policy or with its agent, is denied; a call of an older version of
    its tool is asked about anew, as a call of the version in force. Of stages the one is opened that
    lacks approvals by now.
    """
    run_id = Gate.objects.values_list("run_id", flat=True).get(pk=gate_id)
    with working(run_id, SYSTEM) as work:
        gate = Gate.objects.select_related("step", "interrupt").get(pk=gate_id)
        before = len(work.entries)
        if gate.state in OPEN_GATES:
            _bring_up_to_date(work, gate)
        if gate.state in OPEN_GATES and gate.stages:
            staging.count(work, gate)
        if len(work.entries) == before:
            work.state_unchanged()


def _bring_up_to_date(work: Work, gate: Gate) -> None:
    step, body = gate.step, content.get(gate.arguments)
    ended = steps.of_agent(work)
    if ended is not None:
        _deny(work, gate, ended.reason)
        return
    version = authorizer.current_version(work, step)
    if version is None or (why := authorizer.unfit(version, body)):
        _deny(work, gate, why if version is not None else authorizer.RETIRED)
        return
    judged = judging.judge(work, step, version, body)
    if judged.verdict == "deny":
        steps.keep_seen(work, step, judged)
        _deny(work, gate, judged.reason)
    elif missed := needs.lacking(step, work.now):
        _ask_what_is_known(work, gate, missed)
    elif version.pk != gate.tool_version_id:
        _ask_anew(work, gate, version, authorizer.asked_anew(judged, authorizer.NEWER_VERSION))
    elif gate.policy_version != judged.policy_version and judged.verdict == "approve":
        transitions.ask_more(work, gate, judged)
        work.note(
            "gate.updated",
            gate=gate.pk,
            policy_version=judged.policy_version,
            imprint=work.imprint(gate, transitions.IMPRINT),
            **transitions.stage_of(gate),
        )


def _deny(work: Work, gate: Gate, why: str | None) -> None:
    transitions.close(work, gate, GateState.WITHDRAWN, why or "policy denies it")
    steps.settle_without_running(work, gate.step, StepStatus.DENIED, why)
    if gate.interrupt is not None and gate.interrupt.resolved_at is None:
        holds.resolve(work, gate.interrupt, Resolution.RESUME, by=SYSTEM)


def _ask_what_is_known(work: Work, gate: Gate, missed: Mapping[str, str | None]) -> None:
    """Hold the step until a person says what it misses; it is gated anew then."""
    transitions.close(work, gate, GateState.SUPERSEDED, needs.STALE)
    needs.hold(work, gate.step, missed)
    if gate.interrupt is not None and gate.interrupt.resolved_at is None:
        holds.resolve(work, gate.interrupt, Resolution.RESUME, by=SYSTEM)


def _ask_anew(work: Work, gate: Gate, version: ToolVersion, judged: Judgement) -> None:
    """Open a gate in the place of this one; the interrupt goes on holding the run."""
    step, interrupt = gate.step, gate.interrupt
    transitions.close(work, gate, GateState.SUPERSEDED, authorizer.NEWER_VERSION)
    transitions.adopt(work, step, version)
    step.gate = uuid7()
    steps.keep_seen(work, step, judged)
    step.save(update_fields=["gate", "judged"])
    if interrupt is not None:
        holds.ask_otherwise(
            work,
            interrupt,
            gate=step.gate,
            expires_at=judged.expires_at,
            on_expiry=judged.on_expiry,
            evidence={"rule": judged.rule, "policy_version": judged.policy_version},
        )
        work.due(judged.expires_at)
    transitions.open_gate(work, step, judged, step.gate, interrupt)


def ask_again(work: Work, gate: Gate) -> None:
    """Hold a step again whose approval was taken back before it started."""
    step = gate.step
    move_step(step, StepStatus.WAITING)
    _take_stamp(step)
    if clocks.has(gate):
        clocks.start(gate, work.now)
    hold = holds.Hold(
        reason=Reason(gate.interrupt.reason if gate.interrupt else Reason.APPROVAL_REQUIRED),
        kind=ResponseKind.DECISION,
        question=f"May {step.tool_name} run as shown?",
        who=("decider",),
        step=step.pk,
        gate=gate.pk,
        evidence={"rule": gate.rule, "policy_version": gate.policy_version},
        expires_at=gate.expires_at,
        on_expiry=gate.on_expiry,
    )
    step.held_by, step.interrupt, step.due_at = "gate", hold.id, None
    step.save(update_fields=[*steps.STAMP, "interrupt", "due_at"])
    (interrupt,) = holds.open_holds(work, hold)
    transitions.reopen(work, gate, interrupt)


def _take_stamp(step: Step) -> None:
    step.authorized_by = step.authorized_rule = step.authorized_digest = None
    step.authorized_gate = step.authorized_tool_version = step.authorized_until = None
    step.authorized_under = step.authorized_policy_version = None


def newest_gate(gate: Gate) -> Gate:
    """Return the gate that asks about the step now, in the place of a superseded one."""
    waiting = selectors.gates().filter(step=gate.step_id, state__in=sorted(OPEN_GATES))
    return waiting.first() or gate
