"""Gates on a locked run: opened, shown, edited, settled. `move` is the one writer of a state."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from approvals import clocks, deciders, judging, queue, routing, selectors, snapshots
from approvals.models import (
    GATE_MOVES,
    OPEN_GATES,
    Assignment,
    Ceremony,
    Decision,
    Gate,
    GateState,
    Pattern,
)
from approvals.snapshots import Asked, PreviousStep
from interrupts import catalogue, content
from interrupts.authorizer import Judgement
from interrupts.digests import step_digest
from interrupts.errors import IllegalMove
from interrupts.models import Interrupt, Step, ToolVersion
from interrupts.transitions import holds, needs, steps
from interrupts.work import Work
from tenants.scope import current_tenant_id

PREVIEW_TRIES: Final = 3
MAX_PREVIEW_SECONDS: Final = 10.0
SHOWN: Final = [
    "headline",
    "consequence",
    "arguments",
    "arguments_digest",
    "digest",
    "ceremony",
    "required_confirmation",
    "preview",
    "preview_error",
    "fresh_until",
]
# What the journal vouches for of a gate, each time it changes: what is asked, of whom, and how.
IMPRINT: Final = (
    "tenant_id",
    "run_id",
    "step_id",
    "tool_id",
    "tool_version_id",
    "pattern",
    "risk",
    "effect",
    "ceremony",
    "required_confirmation",
    "headline",
    "consequence",
    "arguments",
    "arguments_digest",
    "digest",
    "why",
    "what_could_go_wrong",
    "preview",
    "preview_error",
    "fresh_until",
    "rule",
    "triggers",
    "policy_version",
    "quorum",
    "stages",
    "approvers",
    "routing",
    "twin",
    "expires_at",
    "on_expiry",
    "opened_at",
)
REQUIRED: Final = [
    "rule",
    "triggers",
    "policy_version",
    "quorum",
    "stages",
    "stage",
    "approvers",
    "routing",
    "on_expiry",
]


def move(gate: Gate, to: GateState) -> None:
    if to not in GATE_MOVES[GateState(gate.state)]:
        raise IllegalMove(f"A gate that is {gate.state} does not become {to}.")
    gate.state = to


# Opening


def open_gate(
    work: Work, step: Step, judgement: Judgement, gate_id: UUID, interrupt: Interrupt | None
) -> Gate:
    """Ask people about a step that is held: the gate, and who may decide it now.

    Where its tool offers a preview the gate is preparing, and a worker takes it after the commit.
    """
    before = selectors.previous_steps([step], snapshots.MAX_PREVIOUS)[step.pk]
    gate = made_gate(work, step, judgement, gate_id, interrupt, previous=before)
    gate.pattern = Pattern.PROPOSE_CONFIRM
    gate.state = GateState.PENDING
    if catalogue.offers(gate.tool_version, step.tool_name).preview:
        gate.pattern, gate.state = Pattern.PREVIEW, GateState.PREPARING
        _prepare(work, gate)
    gate.save(force_insert=True)
    deciders.assign([gate.pk], work.now)
    tell_opened(work, gate)
    check_decidable(work, gate)
    return gate


def made_gate(
    work: Work,
    step: Step,
    judgement: Judgement,
    gate_id: UUID,
    interrupt: Interrupt | None,
    *,
    body: bytes | None = None,
    previous: Sequence[PreviousStep] | None = None,
) -> Gate:
    """Return the gate that ``judgement`` asks for, with all that is shown of it, not yet kept.

    ``previous`` are the steps before it as they are shown; None: nobody is shown it as it opens.
    """
    version = catalogue.version(current_tenant_id(), step.tool_version_id)
    body = content.get(step.arguments) if body is None else body
    asked = Asked(step.tool_name, version, json.loads(body))
    offers = catalogue.offers(version, step.tool_name)
    gate = Gate(
        id=gate_id,
        run=work.run,
        step=step,
        interrupt=interrupt,
        tool_id=step.tool_id,
        tool_version=version,
        risk=version.risk,
        effect=version.effect,
        arguments=step.arguments,
        why=snapshots.why(work.run, step, asked, previous),
        what_could_go_wrong=snapshots.risks(version, step, undoable=offers.compensate),
        twin=step.twin,
        expires_at=judgement.expires_at,
        on_expiry=judgement.on_expiry,
        opened_at=work.now,
    )
    require(gate, judgement)
    clocks.begin(gate, judgement, work.now)
    show(gate, asked)
    return gate


def tell_opened(work: Work, gate: Gate) -> None:
    work.note(
        "gate.opened",
        gate=gate.pk,
        step=gate.step_id,
        interrupt=gate.interrupt_id,
        digest=gate.digest,
        rule=gate.rule,
        policy_version=gate.policy_version,
        quorum=gate.quorum,
        expires_at=gate.expires_at,
        state=gate.state,
        imprint=work.imprint(gate, IMPRINT),
        **stage_of(gate),
    )


def stage_of(gate: Gate) -> dict[str, int]:
    """Return which stage of the gate is open, as the journal tells it; nothing where it has none."""
    return {} if gate.stage is None else {"stage": gate.stage, "of": len(gate.stages)}


def check_decidable(work: Work, gate: Gate) -> None:
    """Note whether anybody may decide an open gate; where nobody may, its admins are told."""
    nobody = deciders.nobody_may(gate)
    if nobody == (gate.undecidable_at is not None):
        return
    gate.undecidable_at = work.now if nobody else None
    gate.save(update_fields=["undecidable_at"])
    work.note("gate.undecidable" if nobody else "gate.decidable", gate=gate.pk, step=gate.step_id)
    if nobody:
        deciders.tell_admins(gate.pk, work.now)


def asked_about(gate: Gate, arguments: Any) -> Asked:
    """Return what the gate asks about, with these arguments in the place of its own."""
    version = catalogue.version(current_tenant_id(), gate.tool_version_id)
    return Asked(gate.step.tool_name, version, arguments)


def require(gate: Gate, judgement: Judgement) -> None:
    """Write on the gate what policy asks for; a larger quorum and more stages that were stay."""
    detail = judgement.detail
    routing.take_up(gate, judgement)
    routing.offer(gate, judging.reasons(judgement.policy_version, gate.step.tool_name))
    gate.rule = judgement.rule
    gate.policy_version = judgement.policy_version
    gate.triggers = detail.get("triggers") or [_untold(judgement)]


def escalate(work: Work, gate: Gate) -> None:
    """Ask the next group in the place of those who did not answer in time, for as long again.

    Nobody is asked after them: then it is rejected. Of a stage with an end of its own and of the
    whole decision each may have its next group. Whoever is not among them has no say any more.
    """
    to, seconds = gate.routing["escalate_to"], gate.routing["escalate_in"]
    routing.escalate(gate, to)
    if clocks.has(gate):
        clocks.escalate(gate, to, seconds, work.now)
    else:
        if "extendable_to" in gate.routing:
            gate.routing["asked_at"] = snapshots.instant(work.now)
        gate.expires_at = work.now + timedelta(seconds=seconds)
        gate.on_expiry = "reject"
    gate.save(update_fields=["approvers", "stages", "routing", "expires_at", "on_expiry"])
    deciders.reassign([gate.pk], work.now)
    work.note(
        "gate.escalated",
        gate=gate.pk,
        step=gate.step_id,
        to=to,
        expires_at=gate.expires_at,
        imprint=work.imprint(gate, IMPRINT),
    )
    check_decidable(work, gate)


def _untold(judgement: Judgement) -> dict[str, str]:
    explanation = judgement.reason or "A person is asked whatever policy says."
    return {"rule": judgement.rule, "trigger": "default", "explanation": explanation}


def _prepare(work: Work, gate: Gate) -> None:
    """Have the preview taken; a hint that is lost is sent again once the gate is due."""
    gate.preview_tries, gate.preview_until = 0, None
    gate.due_at = work.now + queue.GRACE
    queue.prepare(gate)


# What is shown


def show(
    gate: Gate,
    asked: Asked,
    *,
    preview: dict[str, Any] | None = None,
    error: str | None = None,
    fresh_until: datetime | None = None,
) -> None:
    """Write on the gate what people see, and the digests that their decisions are bound to.

    A preview that could not be taken raises the ceremony by one level.
    """
    tenant = current_tenant_id()
    gate.headline = asked.headline
    gate.consequence = asked.consequence
    gate.arguments_digest = snapshots.arguments_digest(asked, tenant)
    gate.digest = snapshots.what_digest(asked, tenant, preview)
    ceremony = snapshots.ceremony_of(asked.version)
    gate.ceremony = snapshots.raised(ceremony) if error is not None else ceremony
    typed = gate.ceremony == Ceremony.TYPED
    gate.required_confirmation = asked.confirmation if typed else None
    gate.preview = preview
    gate.preview_error = error
    gate.fresh_until = fresh_until


def take_up_preview(work: Work, gate: Gate, asked: Asked, taken: snapshots.Taken) -> bool:
    """Show what the preview said; return whether what is shown has changed by it.

    Votes for what was shown before a pending gate's preview changed do not count for the new.
    """
    before, was = gate.digest, GateState(gate.state)
    if was == GateState.PREPARING:
        move(gate, GateState.PENDING)
    preview = taken.shown
    if preview is not None:
        preview = {**preview, "observed_at": snapshots.instant(taken.observed_at)}
    show(gate, asked, preview=preview, error=taken.error, fresh_until=taken.fresh_until)
    gate.due_at = gate.preview_until = None
    gate.save(update_fields=["state", "due_at", "preview_until", *SHOWN])
    changed = gate.digest != before
    if was == GateState.PENDING and changed:
        discount(work, gate)
    work.note(
        "gate.previewed",
        gate=gate.pk,
        digest=gate.digest,
        failed=taken.error is not None,
        changed=changed,
        imprint=work.imprint(gate, IMPRINT),
    )
    return changed


def edit(work: Work, gate: Gate, asked: Asked, body: bytes, judgement: Judgement) -> bytes:
    """Put edited arguments in the place of those shown, on gate and step; others vote afresh.

    ``body`` is their canonical form; returns its digest in the content. The preview shown was of
    other arguments and goes. Stages begin with the first again.
    """
    step = gate.step
    edits = content.put(body, sensitive=bool(asked.sensitive))
    gate.arguments = step.arguments = edits
    step.digest = step_digest(step.tool_name, step.tool_number, body)
    steps.keep_seen(work, step, judging.through_an_edit(step, judgement))
    step.save(update_fields=["arguments", "digest", "judged"])
    before, gate.stage = gate.stage, None
    require(gate, judgement)
    if clocks.has(gate) and gate.stage != before:
        routing.opened(gate)
        clocks.start(gate, work.now)
    show(gate, asked)
    gate.why["dry_run"] = snapshots.dry_run(step, asked)
    gate.save(update_fields=[*SHOWN, *REQUIRED, "why", "expires_at"])
    tell_end(work, gate)
    discount(work, gate)
    if gate.stages:
        deciders.reassign([gate.pk], work.now)
    return edits


def ask_about_edit(work: Work, gate: Gate) -> None:
    """Have those asked who may decide an edit that still lacks decisions, and its preview taken."""
    prepare_again(work, gate)
    deciders.reassign([gate.pk], work.now)
    check_decidable(work, gate)


def prepare_again(work: Work, gate: Gate) -> None:
    """Have an edit's preview taken while decisions are missing, where its tool offers one."""
    if gate.pattern == Pattern.PREVIEW:
        move(gate, GateState.PREPARING)
        _prepare(work, gate)
        gate.save(update_fields=["state", "due_at", "preview_tries", "preview_until"])


def ask_more(work: Work, gate: Gate, judgement: Judgement) -> None:
    """Take up what a newer policy asks for of an open gate, and who is asked by it."""
    require(gate, judgement)
    gate.save(update_fields=REQUIRED)
    if steps.keep_seen(work, gate.step, judgement):
        gate.step.save(update_fields=["judged"])
    tell_end(work, gate)
    deciders.reassign([gate.pk], work.now)
    check_decidable(work, gate)


def tell_end(work: Work, gate: Gate) -> None:
    """Have the interrupt say when the gate expires by now, and what that does."""
    interrupt, ends = gate.interrupt, (gate.expires_at, gate.on_expiry)
    if interrupt is not None and (interrupt.expires_at, interrupt.on_expiry) != ends:
        holds.ask_otherwise(work, interrupt, expires_at=gate.expires_at, on_expiry=gate.on_expiry)
        work.due(gate.expires_at)


# Votes


def discount(work: Work, gate: Gate, users: Iterable[UUID] | None = None) -> None:
    """Let the votes on the gate (of these people) count no more."""
    votes = Decision.objects.filter(gate=gate, counts=True)
    if users is not None:
        votes = votes.filter(user__in=list(users))
    ended = list(votes.values_list("pk", flat=True))
    if ended:
        Decision.objects.filter(pk__in=ended).update(counts=False)
        work.note("gate.votes_ended", gate=gate.pk, decisions=ended)


# Settling


def settle(work: Work, gate: Gate, to: GateState) -> None:
    """Make the gate final; nobody is asked any more."""
    move(gate, to)
    gate.settled_at, gate.due_at = work.now, None
    gate.save(update_fields=["state", "settled_at", "due_at"])
    Assignment.objects.filter(gate=gate).delete()


def close(work: Work, gate: Gate, to: GateState, why: str) -> None:
    """Settle a gate without a verdict: withdrawn, superseded, or expired."""
    settle(work, gate, to)
    work.note(f"gate.{to}", gate=gate.pk, step=gate.step_id, why=why)


def can_close(gate: Gate, to: GateState) -> bool:
    """Say whether it is open, or an approval that no longer holds; what is final stays as it is."""
    if gate.state == GateState.APPROVED:
        return to == GateState.SUPERSEDED
    return gate.state in OPEN_GATES


def reopen(work: Work, gate: Gate, interrupt: Interrupt) -> None:
    """Ask again about a gate whose approval was taken back before its step started."""
    move(gate, GateState.PENDING)
    gate.interrupt, gate.settled_at = interrupt, None
    gate.save(update_fields=["state", "interrupt", "settled_at", *clocks.SAVED])
    deciders.assign([gate.pk], work.now)
    # Its stage's clock has started anew.
    anew = {"imprint": work.imprint(gate, IMPRINT)} if clocks.has(gate) else {}
    work.note("gate.reopened", gate=gate.pk, step=gate.step_id, interrupt=interrupt.pk, **anew)
    check_decidable(work, gate)


# A newer version of the tool


def adopt(work: Work, step: Step, version: ToolVersion) -> None:
    """Make the step a call of another version of its tool."""
    body = content.get(step.arguments)
    step.tool_version = version
    step.tool_number = version.number
    step.executor = version.executor_kind
    step.effect = version.effect
    step.risk = version.risk
    step.timeout_seconds = version.timeout_seconds
    step.digest = step_digest(step.tool_name, version.number, body)
    step.save(
        update_fields=[
            "tool_version",
            "tool_number",
            "executor",
            "effect",
            "risk",
            "timeout_seconds",
            "digest",
        ]
    )
    work.note("step.renewed", step=step.pk, tool_version=step.tool_number, digest=step.digest)
    if needs.state(work, step, version):
        step.save(update_fields=needs.MEMBERS)
