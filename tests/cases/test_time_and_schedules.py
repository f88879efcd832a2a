"""Cases of the kind time-and-schedules: a clock that people set back changes nothing."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.core import mail

from tenants.models import User
from tests.cases.world import World, as_superuser, page_of

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "sweep"])
AMSTERDAM = ZoneInfo("Europe/Amsterdam")


def now() -> datetime:
    with as_superuser() as looking:
        (moment,) = looking.execute("SELECT clock_timestamp()").fetchone() or (None,)
    assert isinstance(moment, datetime)
    return moment.astimezone(UTC)


def set_back(after: datetime) -> datetime:
    """The next time from which Amsterdam's clocks show an hour a second time, in UTC."""
    hour = timedelta(hours=1)
    moment = after.replace(minute=0, second=0, microsecond=0)
    while moment.astimezone(AMSTERDAM).hour != (moment - hour).astimezone(AMSTERDAM).hour:
        moment += hour
    return moment


def test_the_hour_that_comes_twice_is_swept_once(world: World) -> None:
    """rf-time-01 (celery/celery#1604; celery/celery#6438).

    A gate expires in the hour that Amsterdam's clocks show twice; the sweep comes again and again.
    """
    rule = {"name": "asks", "trigger": "action", "tools": ["*"], "then": "approve"}
    world.given(world.tool("deploy"), rules=[{**rule, "expires_in": 5400}])
    User.objects.filter(username="appr1").update(time_zone="Europe/Amsterdam")
    run = world.run()
    moment = set_back(now())
    world.advance((moment - timedelta(minutes=60) - now()).total_seconds())
    step = world.propose(run, "deploy", {"ref": "a"})
    gate = world.gate(step)
    expires = datetime.fromisoformat(gate["expires_at"])
    assert gate["expires_at"].endswith("Z")
    assert timedelta(minutes=29) < expires - moment < timedelta(minutes=31)
    # Both 02:30 of the people's clock: an hour apart, and the first is not the one.
    first, second = (
        (expires - timedelta(hours=1)).astimezone(AMSTERDAM),
        expires.astimezone(AMSTERDAM),
    )
    assert f"{first:%H:%M}" == f"{second:%H:%M}"
    world.advance(1900)
    for _ in range(3):
        world.catch_up()
    assert world.gate(step)["state"] == "pending"
    assert f"{second:%H:%M}" in page_of(world, "appr1", f"/decisions/{gate['id']}")
    for _ in range(4):  # what was missed is caught up by the next sweep, and once
        world.advance(3700)
        world.catch_up()
        world.catch_up()
    gate = world.gate(step)
    assert gate["state"] == "expired"
    assert world.kinds(run).count("gate.expired") == 1
    # Each of the three who may decide was asked, and told of its end: once each.
    assert {to for one in mail.outbox for to in one.to} == {f"appr{n}@acme.test" for n in (1, 2, 3)}
    assert Counter(to for one in mail.outbox for to in one.to).most_common(1)[0][1] == 2
    assert len({(one.subject, one.to[0]) for one in mail.outbox}) == len(mail.outbox) == 6
