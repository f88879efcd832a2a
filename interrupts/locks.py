"""Every row lock of the engine.

Order: the tenant's drain lock (shared), then runs by id, in one statement; a run's steps,
attempts, interrupts and gates are changed only under their run's lock and need none of their own.
A parent's id is always smaller than its child's, so a family is locked from the top down. Then
the days of the runs' agent, the newest first (interrupts/days.py). The tenant's row is locked last.
"""

from datetime import date, datetime
from uuid import UUID

from django.db import connection

from interrupts.models import AgentDay, Freeze, Run
from tenants import authority
from tenants.scope import current_tenant_id


def lock_family(run_id: UUID) -> tuple[datetime, int]:
    """Lock a run and its descendants; return the database's time and the authority version.

    Raises Run.DoesNotExist where the tenant has no such run.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT now_at, authority_version FROM interrupts_lock_family(%s, %s)",
            [current_tenant_id(), run_id],
        )
        now, authority_version = cursor.fetchone()
    if now is None:
        raise Run.DoesNotExist(f"run {run_id}")
    return now, authority_version


def lock_day(agent_id: UUID, day: date) -> AgentDay:
    """Lock and return the row that an agent's day is counted in; the first to ask makes it."""
    rows = AgentDay.objects.select_for_update(no_key=True).filter(agent=agent_id, day=day)
    row = rows.first()
    if row is None:
        # Two that begin a day at once: the one waits here for the other's row, and finds it then.
        AgentDay.objects.bulk_create([AgentDay(agent_id=agent_id, day=day)], ignore_conflicts=True)
        row = rows.get()
    return row


def lock_out_engine() -> None:
    """Hold the tenant's drain lock alone till the transaction ends: no run is worked meanwhile."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_advisory_xact_lock(%s, hashtext(%s::text))",
            [authority.DRAIN, str(current_tenant_id())],
        )


def lock_freeze(freeze_id: UUID) -> Freeze:
    """Lock and return a freeze; Freeze.DoesNotExist where the tenant has none such."""
    return Freeze.objects.select_for_update().get(pk=freeze_id)
