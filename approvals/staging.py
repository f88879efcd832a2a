"""Gates with stages on a locked run: approvals that stand are counted, and the next stage opened.

Where a stage has an end of its own, its clock starts as it is opened, also when it is opened again.

The one that is open is the first that lacks approvals, so no approval of a later one stands: where
one before it loses one, the later ones end, and their people are asked again in their turn.
"""

from __future__ import annotations

from collections.abc import Sequence

from approvals import clocks, deciders, routing, stages, transitions
from approvals.models import Decision, Gate, Verdict
from approvals.stages import Vote
from interrupts.work import Work


def count(work: Work, gate: Gate) -> bool:
    """End the approvals that stand no more, and open the stage that is next; True: all are done.

    Again changes nothing. Whoever is asked by it is told. A gate whose time is up is left as it is
    till that has been recorded: a stage that is opened has its time anew.
    """
    if clocks.is_over(gate, work.now):
        return False
    votes = _end_what_does_not_stand(work, gate)
    number = stages.open_stage(gate.all_stages, votes)
    if number is None:
        return True
    later = [one.user for one in votes if one.stage > number]
    if later:
        transitions.discount(work, gate, later)
    if number != gate.stage:
        _open(work, gate, number)
    transitions.check_decidable(work, gate)
    return False


def _end_what_does_not_stand(work: Work, gate: Gate) -> Sequence[Vote]:
    votes = stages.standing([gate]).get(gate.pk, [])
    counting = Decision.objects.filter(gate=gate, counts=True, verdict=Verdict.APPROVE)
    lost = set(counting.values_list("user_id", flat=True)) - {one.user for one in votes}
    if lost:
        transitions.discount(work, gate, lost)
    return votes


def _open(work: Work, gate: Gate, number: int) -> None:
    gate.stage = number
    gate.approvers = list(gate.all_stages[number - 1].approvers)
    ends = clocks.has(gate)
    if ends:
        routing.opened(gate)
        clocks.start(gate, work.now)
    gate.save(update_fields=["stage", "approvers", *clocks.SAVED])
    work.note(
        "gate.stage_opened",
        gate=gate.pk,
        step=gate.step_id,
        stage=number,
        of=len(gate.stages),
        approvers=gate.approvers,
        imprint=work.imprint(gate, transitions.IMPRINT),
        **({"expires_at": gate.expires_at} if ends else {}),
    )
    deciders.reassign([gate.pk], work.now)
    if ends:
        transitions.tell_end(work, gate)
        deciders.remind_anew(gate.pk, work.now)
