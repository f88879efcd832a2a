"""The rows that a crowded tenant is filled with are such as the service writes."""

from datetime import timedelta

import psycopg
import pytest

from benchmarks.counters import dsn
from benchmarks.ours.copying import First, copy
from delegation import predicates
from delegation.models import DecisionEvent, Delegation, EventKind, LearnerState
from delegation.services import rebuilding
from interrupts.models import Tool
from tenants.clock import database_now
from tests.approvals.house import empty_house
from tests.clock import moving_clock
from tests.delegation.conftest import office
from tests.delegation.office import CALL, ROLES, TOOL

__all__ = ["empty_house", "moving_clock", "office"]
PEOPLE, EVENTS = 5, 40


@pytest.fixture
def owner(monkeypatch, settings):
    where = settings.DATABASES["owner"]
    monkeypatch.setenv("BENCH_SOCKETS", str(where["HOST"]))
    monkeypatch.setenv("BENCH_USER", where["USER"])
    name = settings.DATABASES["default"]["NAME"]
    with psycopg.connect(dsn(name), autocommit=True) as connection:
        yield connection


def first_event(rule):
    at = database_now() - timedelta(days=90)
    DecisionEvent.objects.create(
        user_id=rule.user_id,
        sequence=1,
        kind=EventKind.APPROVE,
        tool=rule.tool,
        at=at,
        data={
            "step": "s",
            "tool_number": 1,
            "agent": "bot",
            "workflow": "refunds",
            "asked_at": at.timestamp(),
            "risk": rule.risk,
            "roles": ROLES,
            "arguments": CALL,
            "answer": {"seconds": 9.0, "opened": True, "bulk": False},
        },
    )
    LearnerState.objects.update_or_create(user_id=rule.user_id, defaults={"sequence": EVENTS})


def test_everybody_of_a_crowd_has_rules_that_speak_and_events_that_teach(office, owner):
    office.house.tool("mail.send", roles=ROLES)
    rule = office.rule()
    first_event(rule)
    tools = list(Tool.objects.filter(name__in=[TOOL, "mail.send"]).values_list("pk", flat=True))
    copy(
        owner,
        First(rule.user_id, rule.pk, rule.tool, tools),
        people=PEOPLE,
        events=EVENTS,
    )
    made = list(Delegation.objects.all())
    assert len({(one.user_id, one.tool) for one in made}) == len(made) == PEOPLE * len(tools)
    assert all(predicates.sha256(one.predicate) == one.sha256 for one in made)
    assert DecisionEvent.objects.count() == EVENTS
    assert len(set(DecisionEvent.objects.values_list("user_id", flat=True))) == PEOPLE
    assert len(rebuilding.rebuild()) == PEOPLE
    assert rebuilding.check() == []
    assert all(one.state["units"] for one in LearnerState.objects.all())
    runs = [office.propose(order=f"o-{at}") for at in range(12)]
    assert {one.authorized_by for one in runs} == {"delegation"}
