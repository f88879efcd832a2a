"""/metrics: true whoever answers, given to nobody else, and no load and no failure of the service."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.db import OperationalError
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families

from config.metrics import families, page, reading
from interrupts import sweep
from interrupts.models import Interrupt, Run, Step, Tally
from interrupts.services import damage, draining
from interrupts.transitions import holds
from interrupts.work import working
from tenants.clock import database_now
from tenants.ids import uuid7
from tenants.journal import SYSTEM
from tenants.models import OutboxMessage
from tenants.rls import SWEEP
from tenants.scope import renew_connection, tenant_scope
from tests import clock
from tests.database import forget_statistics, superuser
from tests.interrupts.house import (
    authority,
    earlier,
    house,
    make_house,
    nothing_changes,
    nothing_remembered,
    sent,
)

__all__ = ["authority", "house", "nothing_remembered", "sent"]
pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "sweep"])
TOKEN = "0123456789abcdef-metrics"
ALERTS = Path(__file__).parent.parent.parent / "docs" / "alerts.yml"


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "kept", page.Kept(reading.read))


@pytest.fixture
def later(house: Any) -> Iterator[Callable[[float], None]]:
    """Lets time pass."""
    with clock.movable():
        renew_connection()
        yield clock.move


@pytest.fixture
def named(settings: Any) -> None:
    settings.ABEYANCE_METRICS_TOKEN = TOKEN


def get(*, token: str | None = None, **meta: str) -> Any:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    return Client(HTTP_HOST="127.0.0.1:8765").get("/metrics", headers=headers, **meta)


def scrape(**how: Any) -> dict[str, Any]:
    """Every family by its name, as Prometheus reads it."""
    page.kept = page.Kept(reading.read)
    answer = get(**how)
    assert answer.status_code == 200, answer.content
    return {one.name: one for one in text_string_to_metric_families(answer.content.decode())}


def value(name: str, /, family: str | None = None, **labels: str) -> float:
    (found,) = values(scrape(), name, family, **labels)
    return found


def values(
    told: dict[str, Any], name: str, family: str | None = None, **labels: str
) -> list[float]:
    samples = told[family or name].samples
    return [
        one.value
        for one in samples
        if one.name == name and labels.items() <= {"tenant": "", **one.labels}.items()
    ]


# What it tells


def test_every_family_is_explained_and_named_by_its_unit() -> None:
    told = scrape()
    assert len(told) > 20
    for name, family in told.items():
        assert re.fullmatch(r"abeyance_[a-z_]+[a-z]", name)
        assert family.documentation
        assert family.type in {"gauge", "counter"}
        ends = {one.name.endswith("_total") for one in family.samples}
        assert ends <= {family.type == "counter"}
        if "seconds" in name or "timestamp" in name:
            assert name.endswith("_seconds")


def test_nothing_yet_is_told_as_nothing() -> None:
    told = scrape()
    for name in ("abeyance_gates_pending", "abeyance_outcomes_unknown", "abeyance_runs_due"):
        assert values(told, name) == [0]
    assert values(told, "abeyance_sweep_lag_seconds") == [0]
    assert told["abeyance_drain_began_timestamp_seconds"].samples == []
    (build,) = told["abeyance_build_info"].samples
    assert build.labels["version"] == "0.1.0"


def test_a_gate_that_waits_is_told_by_its_age_and_its_end(house: Any, later: Any) -> None:
    house.tool("asked")
    house.policy.verdicts["asked"] = "approve"
    house.policy.expires_in = 7800
    run = house.run()
    house.propose(run, ("asked", {"n": 1}))
    told = scrape()
    assert values(told, "abeyance_gates_pending") == [1]
    assert values(told, "abeyance_gates_near_expiry") == [0]
    assert values(told, "abeyance_interrupts_open", reason="approval_required") == [1]
    assert values(told, "abeyance_runs", status="suspended", suspension="safely_suspended") == [1]
    later(7200)
    told = scrape()
    (age,) = values(told, "abeyance_gate_oldest_pending_seconds")
    assert 7200 <= age < 7300
    assert values(told, "abeyance_gates_near_expiry") == [1]
    house.decide(Step.objects.get())
    assert value("abeyance_gates_pending") == 0


def test_an_unknown_outcome_is_told_by_its_age_until_it_is_found(house: Any, later: Any) -> None:
    house.tool("t")
    run, step = house.lost()
    later(1800)
    told = scrape()
    assert values(told, "abeyance_outcomes_unknown") == [1]
    assert 1800 <= values(told, "abeyance_outcome_oldest_unknown_seconds")[0] < 1900
    assert values(told, "abeyance_runs_set_aside") == [0]
    assert values(told, "abeyance_runs", status="suspended", suspension="unknown_outcome") == [1]
    held = Interrupt.objects.get()
    with working(run.pk, SYSTEM) as work:
        holds.ask_otherwise(work, held, evidence={**held.evidence, "set_aside": True})
    assert value("abeyance_runs_set_aside") == 1
    house.recover(step, "performed")
    told = scrape()
    assert values(told, "abeyance_outcome_oldest_unknown_seconds") == [0]
    assert values(told, "abeyance_runs_set_aside") == [0]
    assert values(told, "abeyance_runs", status="running") == [1]


def test_what_is_due_is_told_with_how_late_it_is(house: Any) -> None:
    house.tool("t")
    late, soon = house.run(), house.run()
    house.propose(late, ("t", {}))
    house.propose(soon, ("t", {}))
    assert value("abeyance_sweep_lag_seconds") == 0
    earlier(late, "due_at", 100)
    told = scrape()
    assert values(told, "abeyance_runs_due") == [1]
    assert 90 <= values(told, "abeyance_sweep_lag_seconds")[0] < 200


def test_a_call_in_flight_is_told_and_one_that_was_taken_over_is_counted(house: Any) -> None:
    house.tool("own", kind="agent")
    run = house.run()
    (step,) = house.propose(run, ("own", {}))
    attempt = house.claim(step)
    told = scrape()
    assert values(told, "abeyance_calls_in_flight", executor="agent") == [1]
    assert values(told, "abeyance_calls_in_flight", executor="service") == [0]
    house.lapse(attempt)
    told = scrape()
    assert values(told, "abeyance_calls_in_flight", executor="agent") == [0]
    assert values(told, "abeyance_takeovers_total", "abeyance_takeovers", executor="agent") == [1]


def test_what_the_sweep_does_and_counts_is_told(house: Any, monkeypatch: Any) -> None:
    house.tool("own", kind="agent")
    broken = house.run()
    house.claim(house.propose(broken, ("own", {}))[0])
    earlier(broken, "due_at", 60)
    monkeypatch.setattr(sweep, "_rounds", sweep._Rounds())
    monkeypatch.setattr(sweep.looking, "look", damaged)
    before = database_now().timestamp()
    sweep.sweep_once()
    Tally.objects.create(name="wakes_lost", value=5)
    told = scrape()
    assert values(told, "abeyance_runs_unworkable") == [1]
    assert values(told, "abeyance_sweep_ended_timestamp_seconds")[0] >= before
    assert values(told, "abeyance_sweep_rounds_total", "abeyance_sweep_rounds") == [1]
    assert values(told, "abeyance_wakes_lost_total", "abeyance_wakes_lost") == [5]


def damaged(run_id: Any) -> None:
    raise ValueError("its rows are not what was written")


def test_a_damaged_run_is_told_until_it_verifies_again(house: Any) -> None:
    run = house.run()
    assert value("abeyance_runs_damaged") == 0
    damage.show(run.pk, "entry 1 is gone")
    Run.objects.filter(pk=run.pk).update(damaged_at=run.created_at - timedelta(seconds=600))
    told = scrape()
    assert values(told, "abeyance_runs_damaged") == [1]
    assert 600 <= values(told, "abeyance_run_oldest_damaged_seconds")[0] < 700
    damage.clear(run.pk)
    told = scrape()
    assert values(told, "abeyance_runs_damaged") == [0]
    assert values(told, "abeyance_run_oldest_damaged_seconds") == [0]


def test_messages_that_wait_and_drains_that_stand_are_told(house: Any) -> None:
    message = OutboxMessage.objects.create(kind="notice.x", payload={})
    earlier(message, "created_at", 500)
    drain = draining.begin_drain("*")
    told = scrape()
    assert values(told, "abeyance_outbox_messages") == [1]
    assert values(told, "abeyance_outbox_oldest_seconds")[0] >= 500
    (since,) = values(told, "abeyance_drain_began_timestamp_seconds", host="*")
    assert since == pytest.approx(drain.since.timestamp(), abs=0.001)


# Tenants


@pytest.fixture
def many(authority: Any, sent: Any, nothing_remembered: Any, monkeypatch: Any) -> list[str]:
    """Twelve tenants; the n-th has n runs that are due."""
    slugs = []
    for number in range(1, 13):
        with tenant_scope(uuid7()):
            one = make_house(authority, sent, monkeypatch)
            slugs.append(one.tenant.slug)
            one.tool("t")
            for _ in range(number):
                earlier_due(one)
    return slugs


def earlier_due(one: Any) -> None:
    run = one.run()
    Run.objects.filter(pk=run.pk).update(due_at=run.created_at - timedelta(seconds=60))


def test_the_worst_tenants_are_named_and_the_others_summed(named: None, many: list[str]) -> None:
    told = scrape(token=TOKEN)["abeyance_runs_due"].samples
    by_tenant = {one.labels["tenant"]: one.value for one in told}
    expected = {slug: number for number, slug in enumerate(many, 1) if number > 2}
    assert by_tenant == {**expected, "": 1 + 2}
    assert len(by_tenant) == families.TENANTS + 1


def test_without_a_token_no_tenant_is_named(many: list[str]) -> None:
    page.kept = page.Kept(reading.read)
    text = get().content.decode()
    assert not [slug for slug in many if slug in text]
    assert value("abeyance_runs_due") == sum(range(1, 13))


def test_counts_stop_at_their_bound_and_ages_do_not(house: Any, monkeypatch: Any) -> None:
    house.tool("asked")
    house.policy.verdicts["asked"] = "approve"
    for _ in range(4):
        house.propose(house.run(), ("asked", {}))
    earlier(Interrupt.objects.order_by("-id").first(), "opened_at", 9000)
    bounded = reading.HELD.replace(str(reading.MOST), "2")
    monkeypatch.setattr(reading, "HELD", bounded)
    told = scrape()
    assert values(told, "abeyance_gates_pending") == [2]
    assert values(told, "abeyance_gate_oldest_pending_seconds")[0] >= 9000


PLANNED = [
    *("interrupts_interrupt", "interrupts_run", "interrupts_attempt"),
    *("approvals_gate", "tenants_outboxmessage"),
]
INDEXED = {
    "HELD": "interrupt_open_since",
    "OUTBOX": "outbox_due",
    "RUNS": "run_live",
    "DAMAGED": "run_damaged",
    "CALLS": "one_live_attempt_per_step",
}


@pytest.mark.parametrize("name", sorted(INDEXED))
def test_each_statement_walks_the_index_of_what_is_open(name: str) -> None:
    assert INDEXED[name] in plan(getattr(reading, name))


@pytest.mark.parametrize(
    ("table", "index"), [("interrupts_run", "run_due"), ("approvals_gate", "gate_due")]
)
def test_what_is_due_is_found_by_its_index_and_not_what_is_due_later(
    table: str, index: str
) -> None:
    explained = plan(reading.DUE.format(table=table))
    assert index in explained
    assert re.search(r"Index Cond: \(.*due_at <= ", explained)


def plan(statement: str) -> str:
    """The plan of tables of which nothing is known; to read one whole, as a small one is, is no choice."""
    with superuser() as connection, connection.transaction(force_rollback=True):
        forget_statistics(connection, PLANNED)
        connection.execute(f"SET LOCAL ROLE {SWEEP}")
        connection.execute("SET LOCAL enable_seqscan = off")
        return "\n".join(line for (line,) in connection.execute(f"EXPLAIN {statement}").fetchall())


# Who may read it


@pytest.mark.parametrize("given", [None, "", "wrong", TOKEN[:-1], TOKEN + "x", "\u00e9" * 16])
def test_with_a_token_nobody_reads_it_without(named: None, given: str | None) -> None:
    answer = get(token=given)
    assert (answer.status_code, answer["WWW-Authenticate"][:6]) == (401, "Bearer")
    assert b"abeyance_runs" not in answer.content
    assert get(token=TOKEN, REMOTE_ADDR="203.0.113.9").status_code == 200


@pytest.mark.parametrize(
    "meta",
    [
        {"REMOTE_ADDR": "203.0.113.9"},
        {"REMOTE_ADDR": "::ffff:203.0.113.9"},
        {"REMOTE_ADDR": ""},
        *({header: "203.0.113.9"} for header in page.PASSED_ON),
    ],
    ids=lambda meta: "=".join(*meta.items()),
)
def test_without_a_token_only_this_machine_reads_it(meta: dict[str, str]) -> None:
    assert get(**meta).status_code == 403


@pytest.mark.parametrize("address", ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"])
def test_this_machine_reads_it_without_a_token(address: str) -> None:
    assert get(REMOTE_ADDR=address).status_code == 200


@pytest.mark.parametrize(
    ("name", "given"),
    [("ABEYANCE_PROXIES", 1), ("ABEYANCE_BASE_URL", "https://abeyance.example")],
)
def test_a_service_that_is_reached_from_elsewhere_needs_a_token(
    settings: Any, name: str, given: Any
) -> None:
    setattr(settings, name, given)
    assert get().status_code == 403


def test_a_name_of_elsewhere_needs_a_token(settings: Any) -> None:
    settings.ALLOWED_HOSTS = ["abeyance.example"]
    assert Client(HTTP_HOST="abeyance.example").get("/metrics").status_code == 403


def test_a_look_changes_nothing_and_a_post_is_none(house: Any) -> None:
    with nothing_changes():
        assert get().status_code == 200
        assert Client(HTTP_HOST="127.0.0.1").post("/metrics").status_code == 405


# Neither load nor failure


def test_however_many_ask_it_is_read_once_in_a_while(monkeypatch: Any) -> None:
    made: list[int] = []
    figures = reading.read()
    monkeypatch.setattr(page, "kept", page.Kept(lambda: made.append(1) or figures))
    for _ in range(5):
        assert get().status_code == 200
    assert made == [1]
    monkeypatch.setattr(page, "KEPT_SECONDS", 0.0)
    get()
    assert made == [1, 1]


def test_a_database_that_is_away_is_a_clear_503_and_asked_once(monkeypatch: Any) -> None:
    tried: list[int] = []

    def away() -> Any:
        tried.append(1)
        raise OperationalError("connection refused at a secret place")

    monkeypatch.setattr(page, "kept", page.Kept(away))
    for _ in range(3):
        answer = get()
        assert answer.status_code == 503
        assert answer.content == b"abeyance: the database could not be read: OperationalError\n"
    assert tried == [1]


def test_a_database_that_is_slow_is_given_up(monkeypatch: Any) -> None:
    monkeypatch.setattr(reading, "SWEEP", "SELECT pg_sleep(30)")
    monkeypatch.setattr(reading, "STATEMENT_SECONDS", 0.05)
    page.kept = page.Kept(reading.read)
    answer = get()
    assert (answer.status_code, b"OperationalError" in answer.content) == (503, True)


def test_whoever_waits_for_anothers_reading_is_let_go(monkeypatch: Any) -> None:
    monkeypatch.setattr(page, "PATIENCE_SECONDS", 0.01)
    with page.kept._lock:
        assert get().status_code == 503
    assert get().status_code == 200


# Health


def test_a_drain_is_told_by_readiness_and_makes_nothing_unready() -> None:
    assert "drained" not in Client().get("/healthz/ready").json()["checks"]
    drain = draining.begin_drain("h1")
    told = Client().get("/healthz/ready")
    assert told.status_code == 200
    assert told.json()["checks"]["drained"] == f"h1 since {drain.since.isoformat()}"


# Alerts


@pytest.fixture
def rules() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load(ALERTS.read_text())["groups"]
    found: list[dict[str, Any]] = group["rules"]
    return found


def test_there_are_five_rules_each_with_what_it_takes(rules: list[dict[str, Any]]) -> None:
    assert len({rule["alert"] for rule in rules}) == 5
    for rule in rules:
        assert re.fullmatch(r"\d+m", rule["for"])
        assert rule["labels"]["severity"] in {"page", "ticket"}
        assert rule["annotations"]["summary"]
        name, _, anchor = rule["annotations"]["runbook"].partition("#")
        headings = re.findall(r"^## (.+)$", (ALERTS.parent.parent / name).read_text(), re.MULTILINE)
        assert anchor in [
            heading.lower().replace(" ", "-").replace(",", "") for heading in headings
        ]


def test_every_metric_that_a_rule_names_is_told(rules: list[dict[str, Any]]) -> None:
    drain = draining.begin_drain("h1")
    names = {one.name for family in scrape().values() for one in family.samples}
    drain.delete()
    for rule in rules:
        asked = set(re.findall(r"\babeyance_\w+", rule["expr"]))
        assert asked
        assert asked <= names, rule["alert"]


def test_prometheus_takes_the_rules() -> None:
    if not (promtool := shutil.which("promtool")):
        pytest.skip("promtool is not installed")
    done = subprocess.run([promtool, "check", "rules", str(ALERTS)], check=False)
    assert done.returncode == 0
