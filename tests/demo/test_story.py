"""The demo as a stranger runs it, beside the service, with people who decide."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from abeyance import Abeyance, Proposal

from config.supervisor.paths import PROJECT
from demo.desk import LOST_PAYMENT
from demo.service import Service
from demo.twice import lose_the_answer, refund, until
from tests.demo.people import deciding, reject
from tests.live import Live, eventually, live

pytestmark = pytest.mark.slow
NOAH = "noah.berg@customers.example"  # who asks for it in writing


@pytest.fixture
def service() -> Service:
    return live().demo


def demo(of: Live) -> subprocess.Popen[str]:
    # A shell that runs the tests in the background has Ctrl-C ignored by all that it starts.
    return subprocess.Popen(
        ["env", "--default-signal=INT", sys.executable, "-m", "demo"],
        cwd=PROJECT,
        env=of.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def since(service: Service, before: int) -> list[dict[str, Any]]:
    return service.far_end.entries()[before:]


def test_forty_requests_are_worked_once_though_the_agent_is_stopped_in_the_middle(
    service: Service,
) -> None:
    refuse_what_waits(service)
    before = len(service.far_end.entries())
    written = letters(service.mail, NOAH)  # by another round of the demo, in another test
    first = demo(live())
    read_until(first, "wait for you at")
    first.send_signal(signal.SIGINT)
    said, _ = first.communicate(timeout=60)
    assert "`make demo` takes it up again" in said
    assert refunds(since(service, before)) == []

    with deciding(service):
        second = demo(live())
        said, _ = second.communicate(timeout=170)
    assert second.returncode == 0, said
    assert said.startswith("Taking up where the agent was; nothing is done twice.")
    assert "All 40 requests are done: 28 before, 12 after somebody decided." in said

    effects = since(service, before)
    paid = Counter(one["arguments"]["payment"] for one in refunds(effects))
    assert len(paid) == 11
    assert set(paid.values()) == {1}
    assert paid[LOST_PAYMENT] == 1
    assert sum(one["tool"] == "notes.add" for one in effects) == 40
    assert not [one for one in effects if one["tool"] == "db.drop_table"]
    assert len({one["key"] for one in effects}) == len(effects)
    assert letters(service.mail, NOAH) - written == 1


def refuse_what_waits(service: Service) -> None:
    """Have refused what other tests left waiting: whoever approves here would have it paid too."""
    for name in ("bob", "carol"):
        person = service.person(name)
        for gate in person.get("gates", state="pending", mine="true")["results"]:
            reject(person, gate)


def refunds(effects: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [one for one in effects if one["tool"] == "payments.refund"]


def letters(folder: Path, to: str) -> int:
    return sum(path.read_text().count(f"To: {to}") for path in folder.iterdir())


def read_until(process: subprocess.Popen[str], words: str) -> list[str]:
    assert process.stdout
    said = []
    for line in process.stdout:
        said.append(line)
        if words in line:
            return said
    raise AssertionError(f"it ended without saying {words!r}: {said}")


def test_a_big_refund_takes_two_and_the_others_one(service: Service) -> None:
    with deciding(service):
        for amount in ("101.00", "100.00"):
            with Abeyance(service.url, service.agent_key) as client:
                call = {"payment": "pay-1012", "amount": amount, "customer": "Marta"}
                receipt = client.run("quorum", "Refund").step("r", "payments.refund", call)
            gate = service.person("ada").get(f"gates/{receipt.step.gate}")
            approved = [one for one in gate["decisions"] if one["verdict"] == "approve"]
            assert len({one["by"] for one in approved}) == (2 if amount == "101.00" else 1)


def test_a_lost_answer_is_paid_twice_without_the_service_and_once_through_it(
    service: Service,
) -> None:
    before = len(service.far_end.entries())
    done = live().run(sys.executable, "-m", "demo.twice")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "without: paid 2 x" in done.stdout
    assert "through: paid 1 x" in done.stdout
    effects = since(service, before)
    assert [one["caller"] for one in effects] == ["merchant key", "merchant key", "abeyance"]


@pytest.mark.parametrize("module", ["demo", "demo.twice"])
def test_without_a_service_it_says_what_to_do(module: str) -> None:
    environ = live().environ | {"ABEYANCE_PORT": "1"}
    done = subprocess.run(
        [sys.executable, "-m", module],
        cwd=PROJECT,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "make up" in done.stderr


def test_without_its_tenant_it_says_what_is_missing(tmp_path: Path) -> None:
    environ = live().environ | {"ABEYANCE_DATA_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "demo"],
        cwd=PROJECT,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "has no demo tenant" in done.stderr


def test_the_lost_answer_waits_for_a_person_though_the_shop_is_asked(service: Service) -> None:
    """The fault is ordered so that a look-up can't settle it; the ledger shows that it was done."""
    run, step = lost(service)
    found = service.person("ada").get(f"runs/{run}")
    assert found["suspension"] == "unknown_outcome"
    assert [one["key"] for one in service.far_end.entries()].count(step) == 1
    with deciding(service):
        eventually(lambda: service.person("ada").get(f"steps/{step}")["status"] == "succeeded")
    assert [one["key"] for one in service.far_end.entries()].count(step) == 1


def lost(service: Service) -> tuple[str, str]:
    """Have a refund made whose answer is lost; returns its run and its step."""
    from abeyance import Abeyance

    arguments = refund("story")
    lose_the_answer(service, arguments)
    with Abeyance(service.url, service.agent_key) as client:
        run = client.run("story", "Refund Grace")
        (step,) = run.propose(Proposal(key="r", tool="payments.refund", arguments=arguments))
        service.person("bob").approve(step.gate or "")
        assert until(run, step, "unknown").status == "unknown"
    return run.id, step.id
