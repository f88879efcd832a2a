"""Why a step ran without asking, or why somebody was asked: what is kept of it, in plain words."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

from approvals.models import Gate
from delegation import beside, words
from delegation.models import Delegation, DelegationUse, DelegationVersion, SpotCheck
from interrupts.models import Step
from tenants.models import User


def explain(step_id: UUID) -> list[str]:
    """Return what rules had to do with a step, a line each. Raises Step.DoesNotExist."""
    step = Step.objects.get(pk=step_id)
    return [*_allowed(step), *_asked(step)] or ["No rule had anything to do with it."]


def _allowed(step: Step) -> Iterator[str]:
    for use in DelegationUse.objects.filter(step=step.pk).select_related("delegation__user"):
        rule = use.delegation
        kept = DelegationVersion.objects.filter(delegation=rule, version=use.version).first()
        yield (
            f"It ran without asking {rule.user.username}, by their rule {rule.pk} in version"
            f" {use.version} ({rule.origin}), at {use.at.isoformat()}; decision {use.decision}."
        )
        if kept is not None:
            yield words.sentence(step.tool_name, kept.predicate, kept.limits)
            yield f"{kept.sha256} by {kept.by} at {kept.at.isoformat()}"


def _asked(step: Step) -> Iterator[str]:
    for gate in Gate.objects.filter(step=step.pk, settled_at=None):
        people = Delegation.objects.filter(tool=step.tool_id, tool_number=step.tool_number)
        for user_id in sorted(set(people.values_list("user_id", flat=True))):
            why = beside.why_asked(gate, user_id)
            name = User.objects.values_list("username", flat=True).get(pk=user_id)
            if why is not None:
                yield f"{name} is asked since {why}."
    for check in SpotCheck.objects.filter(gate__in=Gate.objects.filter(step=step.pk).values("pk")):
        why = f"one in {1 / check.share:.1f} is asked all the same"
        if check.after is not None:
            why = f"spot check {check.after} of the like had no answer"
        yield f"It was a spot check of rule {check.delegation_id} in version {check.version}: {why}."
