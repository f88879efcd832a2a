"""Why the hot write is a function and not one statement (docs/adr/0001).

The run is locked by somebody; a worker's commit waits for it; meanwhile the tenant's authority is
raised and committed; then the run is let go. The schedule is forced by looking at the server's
locks, so that it comes out the same each time.
"""

from collections.abc import Callable

import psycopg
import pytest
from django.db import connections

from benchmarks.hot_path import withdrawn
from benchmarks.hot_path.ground import Course, Ground, begin, ground
from interrupts.models import Attempt, Step, StepStatus
from tenants.scope import VARIABLE

pytestmark = pytest.mark.django_db(transaction=True)


def connect(alias: str, tenant: object = "") -> psycopg.Connection:
    parameters = connections[alias].get_connection_params()
    plain = {k: v for k, v in parameters.items() if k not in {"context", "cursor_factory"}}
    made = psycopg.connect(**plain, autocommit=True)
    made.execute(f"SELECT set_config('{VARIABLE}', %s, false)", [str(tenant)])
    return made


def withdraw(
    place: Ground, course: Course, way: Callable[[psycopg.Connection, Course], bool]
) -> withdrawn.Came:
    with connect("owner") as admin:
        return withdrawn.withdraw_while_it_waits(
            way, course, connect=lambda: connect("default", place.tenant), admin=admin
        )


def test_the_function_starts_nothing_under_an_authority_withdrawn_while_it_waited():
    with ground() as place:
        course = begin(place, 1)
        came = withdraw(place, course, withdrawn.by_function)
        recorded, following = Step.objects.filter(run=course.run).order_by("position")
        assert not came.started_after_withdrawal
        assert recorded.status == StepStatus.SUCCEEDED  # what was seen is a fact all the same
        assert following.status == StepStatus.READY
        assert not Attempt.objects.filter(step=following).exists()


@pytest.mark.parametrize(
    ("way", "after_answer"),
    [(withdrawn.by_statement, False), (withdrawn.by_statement_run_first, True)],
    ids=["drain lock first", "run lock first"],
)
def test_one_statement_would_start_an_effect_whose_permission_was_withdrawn(way, after_answer):
    with ground() as place:
        course = begin(place, 1)
        came = withdraw(place, course, way)
        _, following = Step.objects.filter(run=course.run).order_by("position")
        assert came == withdrawn.Came(
            started_after_withdrawal=True, started_after_answer=after_answer
        )
        assert following.status == StepStatus.EXECUTING
