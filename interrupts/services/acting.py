"""What every use case on a run begins with: who may, which version, which session."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from config.errors import Forbidden, InvalidBody, Unauthenticated
from interrupts.authorizer import authorizer
from interrupts.errors import MayNot, NotYourRun, RunEnded, StaleSession
from interrupts.models import Run, RunStatus
from interrupts.work import Work, working
from tenants.conditions import ANY_VERSION, IfMatch
from tenants.models import AgentKey, Membership, Role
from tenants.principal import Principal

OPERATORS = frozenset({Role.OPERATOR, Role.ADMIN})


@contextmanager
def as_agent(
    principal: Principal,
    run_id: UUID,
    *,
    session: int | None = None,
    if_match: IfMatch = ANY_VERSION,
) -> Iterator[Work]:
    """Work on the agent's own run; the call is its heartbeat.

    Raises NotYourRun, StaleSession for an older session than the run's, VersionMismatch.
    """
    with working(run_id, principal.actor) as work:
        own_run(principal, work.run)
        check_session(work.run, session)
        if_match.check(work.run.state_version)
        work.run.last_seen_at = work.now
        yield work


@contextmanager
def as_person(
    principal: Principal, run_id: UUID, *, if_match: IfMatch = ANY_VERSION
) -> Iterator[Work]:
    """Work on a run of the tenant, as a person whose membership is live under the lock."""
    with working(run_id, principal.actor) as work:
        role_now(principal)
        if_match.check(work.run.state_version)
        yield work


def own_run(principal: Principal, run: Run) -> None:
    if not principal.is_agent:
        raise Forbidden("Only the run's agent may do this.")
    if run.agent_id != principal.id:
        raise NotYourRun


def key_now(principal: Principal) -> None:
    """Refuse an agent whose key was revoked since it signed in; read under the lock."""
    if principal.credential_id is None:
        return
    live = AgentKey.objects.filter(pk=principal.credential_id, revoked_at=None, agent__active=True)
    if not live.exists():
        raise Unauthenticated


def check_session(run: Run, session: int | None) -> None:
    if session is None:
        return
    if session > run.session or session < 1:
        raise InvalidBody.at("/session", "no such session was given")
    if session < run.session:
        raise StaleSession(f"Session {run.session} drives this run.")


def role_now(principal: Principal) -> str:
    """Return the person's role as it is now, under the lock; MayNot where they have left."""
    role = (
        Membership.objects.filter(user_id=principal.id, active=True)
        .values_list("role", flat=True)
        .first()
    )
    if role is None:
        raise MayNot("This person is no member any more.")
    return role


def may_stop(principal: Principal, run: Run) -> bool:
    """Say whether the person may stop or revise the run: docs/glossary.md, "Who may"."""
    role = role_now(principal)
    if role == Role.VIEWER:
        return False
    if role in OPERATORS or run.requested_by_id == principal.id:
        return True
    return authorizer().may_decide_any(principal.id, run)


def not_ended(run: Run) -> None:
    """Refuse what would propose, claim or start something in an ended or cancelling run."""
    if run.ended or run.status == RunStatus.CANCELLING:
        raise RunEnded(f"The run is {run.status}.")
