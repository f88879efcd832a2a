"""What the engine did: runs, steps, attempts, receipts, interrupts, checkpoints. Only read."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import admin
from django.urls import reverse
from django.utils.html import format_html

from interrupts.models import AgentDay, Attempt, Checkpoint, Interrupt, Receipt, Run, Step
from tenants.admin.base import ReadAdmin
from tenants.admin.site import site
from tenants.admin.unfolded import AutocompleteFilter


def run_page(run: UUID) -> str:
    return reverse("run", args=(run,))


class OfRun(ReadAdmin[Any]):
    """A row of a run; the list narrows to one run by `?run__id__exact=`."""

    def people_url(self, obj: Any) -> str | None:
        return run_page(obj.run_id)


@admin.register(Run, site=site)
class RunAdmin(ReadAdmin[Run]):
    list_display = (
        "id",
        "workflow",
        "agent",
        "status",
        "suspension",
        "not_settled",
        "damaged_at",
        "created_at",
        "parts",
    )
    list_filter = (("agent", AutocompleteFilter),)
    list_filter_submit = True
    list_select_related = ("agent",)

    def people_url(self, obj: Run) -> str | None:
        return run_page(obj.pk)

    def not_settled(self, obj: Run) -> str:
        """What the suspension counts, all of it, so that nothing hides behind the first."""
        counts = {
            "unknown": obj.count_unknown,
            "in flight": obj.count_in_flight,
            "partly done": obj.count_partial,
        }
        return ", ".join(f"{number} {what}" for what, number in counts.items() if number)

    def parts(self, obj: Run) -> str:
        """Its steps."""
        url = reverse("admin:interrupts_step_changelist")
        return format_html(
            '<a class="text-primary-600 dark:text-primary-500" href="{}?run__id__exact={}">steps</a>',
            url,
            obj.pk,
        )


@admin.register(AgentDay, site=site)
class AgentDayAdmin(ReadAdmin[AgentDay]):
    """What an agent has used in a day: kept where a day's budget is declared for it."""

    list_display = ("day", "agent", "steps", "cost", "reserved_cost", "seconds", "tokens")
    list_filter = (("agent", AutocompleteFilter),)
    list_filter_submit = True
    list_select_related = ("agent",)


@admin.register(Step, site=site)
class StepAdmin(OfRun):
    list_display = ("id", "run", "position", "tool_name", "status", "outcome", "created_at")
    raw_id_fields = ("run",)


@admin.register(Attempt, site=site)
class AttemptAdmin(OfRun):
    list_display = ("id", "step", "fence", "epoch", "outcome", "started_at", "settled_at")
    list_select_related = ("step",)


@admin.register(Receipt, site=site)
class ReceiptAdmin(OfRun):
    list_display = ("id", "step", "source", "outcome", "by", "observed_at")
    list_select_related = ("step",)


@admin.register(Interrupt, site=site)
class InterruptAdmin(OfRun):
    list_display = ("id", "run", "reason", "status", "resolution", "opened_at")
    list_select_related = ("run",)


@admin.register(Checkpoint, site=site)
class CheckpointAdmin(OfRun):
    list_display = ("id", "run", "sequence", "status", "created_at")
    list_select_related = ("run",)
