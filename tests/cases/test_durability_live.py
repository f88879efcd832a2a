"""Cases of the kind durability-and-recovery that take real processes: they are killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from config.supervisor.paths import PROJECT
from tests.cases.far_end import Outside
from tests.cases.world import auto, document, tool
from tests.platform.kept import ran_before
from tests.platform.service import Service, eventually, none_left, reachable_folder

pytestmark = pytest.mark.slow
ROUNDS = 50


class Deployment:
    """The service as it is started by anybody, with the tenants of the cases and one worker."""

    def __init__(self, folder: Path) -> None:
        self.outside = Outside()
        self.service = Service(folder / "data", environ={"ABEYANCE_WORKERS": "1"})
        ran_before(self.service.folder)
        self.service.start()
        self.secrets = self._apply(folder)

    def _apply(self, folder: Path) -> dict[str, dict[str, str]]:
        port = self.outside.server.port
        tools = [
            tool("deploy", port),
            tool("a.do", port, executor=self._brief("a.do", port)),
            tool("b.do", port),
            tool("ask", port, executor={"kind": "agent", "lease": 60}),
        ]
        rules = [auto("a.*", "b.*")]
        made = [
            document(one, port, tools, rules, groups={}, may_decide={})
            for one in ("acme", "globex")
        ]
        file, out = folder / "tenants.yaml", folder / "out.json"
        file.write_text("\n---\n".join(map(json.dumps, made)))
        command = [sys.executable, "manage.py", "apply", str(file), "--credentials-out", str(out)]
        subprocess.run(command, cwd=PROJECT, env=self.service.environ, check=True)
        given = json.loads(out.read_text())
        return {
            slug: {
                **one["agents"],
                **{name.partition("-")[0]: p["token"] for name, p in one["users"].items()},
            }
            for slug, one in given.items()
        }

    def _brief(self, name: str, port: int) -> dict[str, Any]:
        return {"kind": "http", "url": f"http://127.0.0.1:{port}/effects/{name}", "timeout": 1}

    def call(
        self, who: str, method: str, path: str, body: Any = None, slug: str = "acme"
    ) -> httpx.Response:
        return httpx.request(
            method,
            f"http://127.0.0.1:{self.service.port}/api/v1{path}",
            json=body,
            headers={"Authorization": f"Bearer {self.secrets[slug][who]}"},
            timeout=20,
        )

    def made(self, who: str, path: str, body: Any = None, slug: str = "acme") -> Any:
        answer = self.call(who, "POST", path, {} if body is None else body, slug)
        assert answer.status_code in (200, 201, 202), answer.text
        return answer.json()

    def get(self, who: str, path: str, slug: str = "acme") -> Any:
        answer = self.call(who, "GET", path, slug=slug)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def run(self, slug: str = "acme") -> Any:
        return self.made("ops", "/runs", {"workflow": "w", "goal": "g"}, slug)

    def propose(self, run: Any, name: str, slug: str = "acme", **arguments: Any) -> Any:
        body = {"tool": name, "arguments": arguments}
        return self.made("ops", f"/runs/{run['id']}/steps", body, slug)

    def becomes(self, step: Any, *states: str, slug: str = "acme") -> str:
        found: list[str] = []

        def look() -> bool:
            found.append(self.get("ops", f"/steps/{step['id']}", slug)["status"])
            return found[-1] in states

        assert eventually(look, 90), found[-1]
        return found[-1]

    def close(self) -> None:
        self.outside.close()
        self.service.discard()


@pytest.fixture(scope="module")
def deployed() -> Iterator[Deployment]:
    with reachable_folder() as folder:
        made = Deployment(folder)
        yield made
        made.close()


def killed(deployed: Deployment, *parts: str) -> None:
    """Kill -9 every process of the service whose command says one of these."""
    for part in parts:
        for pid in deployed.service.members(part):
            os.kill(pid, signal.SIGKILL)


def test_an_answer_is_seen_whoever_comes_first_and_once(deployed: Deployment) -> None:
    """rf-durb-03 (inngest/inngest#1433), fifty times.

    The answer comes before, while and after it is waited for; and it comes twice.
    """
    run = deployed.run()
    asks = {"reason": "input_required", "schema": {"type": "integer"}}
    with ThreadPoolExecutor(2) as pool:
        for n in range(ROUNDS):
            asked = deployed.made(
                "ops", f"/runs/{run['id']}/interrupts", {**asks, "question": f"{n}?"}
            )
            path = f"/interrupts/{asked['id']}"
            body = {"checkpoint": asked["checkpoint"], "resolution": "resume", "value": n}
            wait = f"{path}?wait=15&after_version={asked['state_version']}"
            began = time.monotonic()
            waits = pool.submit(partial(deployed.get, "ops", wait))
            answers = pool.submit(partial(deployed.made, "opr", f"{path}/response", body))
            assert waits.result()["response"]["value"] == answers.result()["response"]["value"] == n
            assert time.monotonic() - began < 15
            again = deployed.call("opr", "POST", f"{path}/response", body)
            assert again.headers["Idempotent-Replayed"] == "true"
            late = deployed.get("ops", wait)  # nobody has to have waited
            assert (late["status"], late["response"]["value"]) == ("resolved", n)
    kinds: list[str] = []
    while page := deployed.get("ops", f"/runs/{run['id']}/journal?after={len(kinds)}")["results"]:
        kinds += [entry["kind"] for entry in page]
    assert kinds.count("interrupt.resolved") == kinds.count("run.resumed") == ROUNDS


def test_one_that_is_killed_between_two_steps_holds_up_nobody(deployed: Deployment) -> None:
    """rf-durb-06 (dbos-inc/dbos-transact-py#805).

    The only worker is killed when two steps are done and the third is not begun; then in the
    middle of it.
    """
    run = deployed.run()
    one, two = (deployed.propose(run, "a.do", n=n) for n in (1, 2))
    for step in (one, two):
        deployed.becomes(step, "succeeded")
    freeze = deployed.made("opr", "/freezes", {"scope": "tool", "name": "b.do", "note": "x"})
    three = deployed.propose(run, "b.do", n=3)
    killed(deployed, "celery")
    other = deployed.propose(deployed.run("globex"), "a.do", "globex", n=9)
    deployed.becomes(other, "succeeded", slug="globex")
    assert deployed.get("ops", f"/steps/{three['id']}")["status"] == "ready"
    assert deployed.call("opr", "DELETE", f"/freezes/{freeze['id']}").status_code == 204
    deployed.becomes(three, "succeeded")

    deployed.outside.takes_its_time("a.do")
    four = deployed.propose(run, "a.do", n=4)
    assert deployed.outside.arrived.wait(90)
    deployed.outside.behaves("a.do")
    killed(deployed, "celery")
    other = deployed.propose(deployed.run("globex"), "a.do", "globex", n=10)
    deployed.becomes(other, "succeeded", slug="globex")
    deployed.becomes(four, "unknown")
    stuck = deployed.get("opr", f"/runs/{run['id']}")
    assert (stuck["status"], stuck["suspension"]) == ("suspended", "unknown_outcome")
    deployed.outside.let_go.set()
    deployed.becomes(four, "succeeded")  # it was asked about, and had been performed
    assert [a["n"] for _, a in deployed.outside.calls("a.do") if a["n"] == 4] == [4]


def test_a_question_outlives_everything_that_asked_it(deployed: Deployment) -> None:
    """rf-durb-01 (NeoLabs-Systems/NeoAgent#86; qf-studio/pilot#4411; librefang/librefang#3611).

    Every process is killed while an approval is open, and the broker comes back empty.
    """
    run = deployed.run()
    step = deployed.propose(run, "deploy", ref="a")
    mine = deployed.propose(deployed.run(), "ask", ref="b")
    before = deployed.get("appr1", f"/gates/{step['gate']}")
    family = deployed.service.family()
    os.kill(deployed.service.pid, signal.SIGKILL)
    for pid in family:
        _kill(pid)
    assert none_left(family)
    assert deployed.service.process
    deployed.service.process.communicate(timeout=30)
    for kept in deployed.service.folder.root.rglob("*.rdb"):
        kept.unlink()
    deployed.service.start()

    assert deployed.get("ops", f"/runs/{run['id']}")["status"] == "suspended"
    after = deployed.get("appr1", f"/gates/{step['gate']}")
    assert after == before
    decision = {"verdict": "approve", "digest": before["what"]["digest"]}
    for gate in (step["gate"], mine["gate"]):
        shown = deployed.get("appr1", f"/gates/{gate}")
        decision["digest"] = shown["what"]["digest"]
        assert deployed.made("appr1", f"/gates/{gate}/decisions", decision)["state"] == "approved"
    deployed.becomes(step, "succeeded")
    assert deployed.outside.times["deploy"] == 1
    claimed = deployed.made("ops", f"/steps/{mine['id']}/claim")
    assert claimed["arguments"] == {"ref": "b"}
    assert deployed.get("ops", f"/runs/{run['id']}")["status"] == "running"


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
