"""What breaks between an agent and the real service, and what nevertheless happens once."""

from __future__ import annotations

import os
import re
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from abeyance import Abeyance, Call, Proposal, Step

from tests.live import eventually, live
from tests.platform.service import ancestors, processes
from tests.sdk.stage import LiveStage

pytestmark = pytest.mark.slow

LOOK = {"command": "uptime"}


@contextmanager
def losing(port: int, answers: int) -> Iterator[str]:
    """A way to the service on which the first answers to POSTs are lost: taken, worked, not told."""
    left = threading.Semaphore(answers)
    listener = socket.create_server(("127.0.0.1", 0))

    def serve(near: socket.socket) -> None:
        with near, socket.create_connection(("127.0.0.1", port)) as far:
            near.settimeout(30)
            request = whole_request(near)
            if not request:
                return
            far.sendall(re.sub(rb"(?i)connection: keep-alive", b"Connection: close", request))
            answer = b""
            while part := far.recv(65536):
                answer += part
            if request.startswith(b"POST") and left.acquire(blocking=False):
                return
            near.sendall(answer)

    def accept() -> None:
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=[near], daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    listener.close()


def whole_request(near: socket.socket) -> bytes:
    request = b""
    while b"\r\n\r\n" not in request:
        if not (part := near.recv(65536)):
            return b""
        request += part
    head, _, body = request.partition(b"\r\n\r\n")
    length = re.search(rb"(?i)content-length: (\d+)", head)
    while length and len(body) < int(length[1]):
        part = near.recv(65536)
        body += part
        request += part
    return request


def test_lost_answers_of_the_service_make_nothing_twice(live_stage: LiveStage) -> None:
    with losing(live().port, answers=4) as url, Abeyance(url, live_stage.key) as client:
        run = client.run("losing", "Refund order 7")
        receipt = run.step("note", "note", {"text": "once"})
        assert run.usage(tokens=5).tokens == 5
        run.complete({"done": True})
    assert live_stage.performed() == [("note", {"text": "once"})]
    assert receipt.result == {"noted": "once"}
    found = live_stage.olga.get("runs", workflow="losing")["results"]
    assert [one["id"] for one in found] == [run.id]
    assert found[0]["session"] == 1


def test_an_agent_waits_through_the_end_of_the_web_processes(live_stage: LiveStage) -> None:
    run = live_stage.client().run("killed", "Refund order 7")
    (step,) = run.propose(Proposal(key="pay", tool="pay", arguments={"amount": "5"}))
    came: list[Any] = []
    waiting = threading.Thread(target=lambda: came.append(run.wait(step)))
    waiting.start()
    time.sleep(0.5)
    for pid in of_the_service("granian"):
        os.kill(pid, signal.SIGKILL)
    live_stage.on("pay").approve()
    waiting.join(90)
    assert came[0].result == {"paid": "5"}
    assert live_stage.performed() == [("pay", {"amount": "5"})]


def of_the_service(part: str) -> list[int]:
    living = processes()
    parents = {pid: parent for pid, (parent, _) in living.items()}
    return [
        pid
        for pid, (_, command) in living.items()
        if part in command and live().pid in ancestors(pid, parents)
    ]


def test_heartbeats_keep_a_claim_longer_than_its_lease(live_stage: LiveStage) -> None:
    run = live_stage.client().run("beating", "Look")

    def make(call: Call) -> str:
        assert call.lease == 2
        time.sleep(5)
        assert not call.is_stale
        return "done"

    receipt = run.step("look", "local.shell", LOOK, make=make)
    assert (receipt.result, receipt.step.attempts, receipt.source) == ("done", 1, "agent")
    kinds = [one["kind"] for one in live_stage.olga.get(f"runs/{run.id}/journal")["results"]]
    assert "attempt.lapsed" not in kinds


def test_a_call_in_flight_is_told_that_a_person_wants_it_broken_off(live_stage: LiveStage) -> None:
    run = live_stage.client().run("stopped", "Look")

    def make(call: Call) -> str:
        asked = {"reason": "operator_stop", "question": "Stop?", "in_flight": "cancel"}
        live_stage.replies["Stop?"] = {"resolution": "resume"}
        live_stage.olga.post(f"runs/{run.id}/interrupts", asked)
        eventually(lambda: call.cancel_requested, 15)
        return "broken off"

    assert run.step("look", "local.shell", LOOK, make=make).result == "broken off"


def test_a_try_that_a_dead_process_left_is_not_made_again(live_stage: LiveStage) -> None:
    """Its lease lapses, nobody knows how far it came, and a person settles it."""
    dead = live_stage.client().run("dead", "Look")
    (step,) = dead.propose(Proposal(key="look", tool="local.shell", arguments=LOOK))
    claim(live_stage, dead, step)
    live_stage.found.append("performed")

    def never(_call: Call) -> None:
        raise AssertionError("it was made again")

    receipt = live_stage.client().resume(dead.id).step("look", "local.shell", LOOK, make=never)
    assert (receipt.source, receipt.step.attempts) == ("person", 1)


def claim(stage: LiveStage, run: Any, step: Step) -> None:
    answer = httpx.post(
        f"{stage.url}/api/v1/steps/{step.id}/claim",
        json={"session": run.session},
        headers={"Authorization": f"Bearer {stage.key}"},
        timeout=30,
    )
    assert answer.status_code == 200, answer.text
