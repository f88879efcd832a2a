"""`make chaos`: runs under kill -9 of everything, against a far end that breaks in every way.

Ends with one JSON line. Duplicates and losses are counted from the far end's ledger.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import secrets
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from tests.chaos.farend import Ledger, serve
from tests.chaos.service import KINDS, Service, insist

API = "/api/v1"
RUNS, KILLS, KILLS_A_KIND = 200, 200, 20
AGENTS = 12
GRACE_SECONDS = 240.0


@dataclass
class Chaos:
    service: Service
    ledger: Ledger
    credentials: dict[str, Any]
    random: random.Random
    runs: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    kills: Counter[str] = field(default_factory=Counter)
    over: threading.Event = field(default_factory=threading.Event)

    @property
    def agent(self) -> str:
        return str(self.credentials["agents"]["bot"])

    def person(self, name: str) -> str:
        return str(self.credentials["users"][name]["token"])

    def call(self, method: str, path: str, body: Any = None, *, token: str) -> tuple[int, Any]:
        return insist(self.service.port, method, API + path, body, token=token)


def tenant(slug: str, host: str) -> dict[str, Any]:
    def tool(name: str, effect: str, risk: str, **more: Any) -> dict[str, Any]:
        far = name.split(".")[1]
        return {
            "name": name,
            "description": name,
            "effect": effect,
            "risk": risk,
            "arguments": {"type": "object"},
            "key_lifetime": 86400,
            "executor": {"kind": "http", "url": f"http://{host}/effects/{far}", "timeout": 2},
            "reconcile": {
                "url": f"http://{host}/effects/{far}/{{key}}",
                "settle_after": 3,
                "attempts": 8,
                "backoff": 1,
            },
            **more,
        }

    pay = {"compensate": {"url": f"http://{host}/effects/pay/{{key}}/compensate"}}
    return {
        "tenant": slug,
        "name": "Chaos",
        "members": [
            {"username": "olga", "email": "olga@chaos.test", "role": "operator"},
            {"username": "ann", "email": "a@chaos.test", "role": "approver", "may_decide": ["*"]},
        ],
        "agents": [{"name": "bot"}],
        "tools": [
            tool("do.note", "idempotent", "low"),
            tool("do.pay", "reversible", "low", **pay),
            tool("do.look", "read", "low"),
        ],
        "policy": {
            "allowed_hosts": [host],
            "rules": [
                {"name": "free", "trigger": "action", "tools": ["do.note", "do.look"],
                 "then": "allow"},
            ],
            "budgets": {},
            "delegation": {"mode": "off"},
        },
    }  # fmt: skip


# Agents


def drive(chaos: Chaos, number: int) -> None:
    """One run from start to end, as an agent that may be restarted at any moment drives it."""
    dice = random.Random(f"{chaos.random.random()}-{number}")  # noqa: S311
    run = start(chaos, None)
    plan: list[list[tuple[str, str]]] = [
        [("do.note", "a")],
        [("do.pay", "b")],
        [("do.look", "c"), ("do.note", "d"), ("do.note", "e")],
    ]
    if dice.random() < 0.3:
        child(chaos, run)
    for turn in plan:
        if not propose(chaos, run, turn):
            return
        if dice.random() < 0.3:  # restarted: it proposes the same again
            propose(chaos, run, turn)
        if not settle(chaos, run):
            return
    if dice.random() < 0.2:
        chaos.call("POST", f"/runs/{run}/cancel", {"compensate": True}, token=chaos.person("olga"))
        fork(chaos, run, plan)
    else:
        finish(chaos, run)


def start(chaos: Chaos, parent: str | None) -> str:
    body: dict[str, Any] = {"workflow": "chaos", "goal": secrets.token_hex(4)}
    if parent:
        body["parent"] = parent
    while True:
        status, answer = chaos.call("POST", "/runs", body, token=chaos.agent)
        if status == 201:
            chaos.runs.append(answer["id"])
            return str(answer["id"])
        if status != 409:
            raise RuntimeError(f"{status} {answer}")
        time.sleep(0.5)


def child(chaos: Chaos, parent: str) -> None:
    run = start(chaos, parent)
    if propose(chaos, run, [("do.note", "x")]) and settle(chaos, run):
        finish(chaos, run)


def propose(chaos: Chaos, run: str, turn: list[tuple[str, str]], origin: str | None = None) -> bool:
    """Propose one turn's group; False once the run has ended. A fork repeats its origin's calls."""
    steps = [{"tool": tool, "arguments": {"run": origin or run, "key": key}, "key": key}
             for tool, key in turn]  # fmt: skip
    while not chaos.over.is_set():
        status, answer = chaos.call(
            "POST", f"/runs/{run}/steps", {"steps": steps}, token=chaos.agent
        )
        if status in (200, 201):
            return True
        code = (answer or {}).get("code")
        if code == "run-suspended":
            time.sleep(0.3)
        elif code == "run-ended":
            return False
        else:
            chaos.problems.append(f"propose: {status} {answer}")
            return False
    return False


def settle(chaos: Chaos, run: str) -> bool:
    """Wait until every step of the run is settled and it goes on; False once it has ended."""
    while not chaos.over.is_set():
        status, answer = chaos.call("GET", f"/runs/{run}/steps", token=chaos.agent)
        if status == 200 and all(one["settled_at"] for one in answer["results"]):
            _, seen = chaos.call("GET", f"/runs/{run}", token=chaos.agent)
            if seen["status"] == "running":
                return True
            if seen["ended_at"]:
                return False
        time.sleep(0.3)
    return False


def finish(chaos: Chaos, run: str) -> None:
    while not chaos.over.is_set():
        status, answer = chaos.call(
            "POST", f"/runs/{run}/complete", {"output": {}}, token=chaos.agent
        )
        if status == 200 or (answer or {}).get("code") == "run-ended":
            return
        time.sleep(0.5)


def fork(chaos: Chaos, run: str, plan: list[list[tuple[str, str]]]) -> None:
    while not chaos.over.is_set():
        _, seen = chaos.call("GET", f"/runs/{run}", token=chaos.agent)
        if seen["ended_at"]:
            break
        time.sleep(0.5)
    else:
        return
    status, answer = chaos.call(
        "POST", f"/runs/{run}/fork", {"checkpoint": seen["checkpoint"]}, token=chaos.person("olga")
    )
    if status != 201:
        chaos.problems.append(f"fork: {status} {answer}")
        return
    chaos.runs.append(answer["id"])
    if propose(chaos, answer["id"], plan[0], origin=run) and settle(chaos, answer["id"]):
        finish(chaos, answer["id"])


# People


def approve(chaos: Chaos) -> None:
    token = chaos.person("ann")
    while not chaos.over.is_set():
        _, answer = chaos.call("GET", "/gates?state=pending&mine=true", token=token)
        for gate in (answer or {}).get("results", []):
            chaos.call("GET", f"/gates/{gate['id']}", token=token)
            verdict = "reject" if chaos.random.random() < 0.1 else "approve"
            body = {"verdict": verdict, "digest": gate["what"]["digest"]}
            if verdict == "reject":
                body["reason"] = "chaos"
            chaos.call("POST", f"/gates/{gate['id']}/decisions", body, token=token)
        time.sleep(0.3)


def recover(chaos: Chaos) -> None:
    """Settle what the service can't find out by itself, by what the far end's ledger says."""
    token = chaos.person("olga")
    while not chaos.over.is_set():
        _, answer = chaos.call("GET", "/interrupts?status=open&reason=outcome_unknown", token=token)
        for held in (answer or {}).get("results", []):
            if held["evidence"].get("next_at") or not held["evidence"].get("asked"):
                continue
            step = held.get("step")
            _, seen = chaos.call("GET", f"/steps/{step}", token=token)
            name = seen["tool"].split(".")[1]
            happened = chaos.ledger.performed(name, step)
            value = {"outcome": "performed" if happened else "skip", "evidence": "the ledger"}
            body = {"checkpoint": held["checkpoint"], "resolution": "resume", "value": value}
            chaos.call("POST", f"/interrupts/{held['id']}/response", body, token=token)
        time.sleep(1)


# Killing


def destroy(chaos: Chaos, kills: int) -> None:
    """Kill one process after the other, each kind often enough, at random moments."""
    kinds = [kind for kind in KINDS for _ in range(KILLS_A_KIND)]
    kinds += [chaos.random.choice(KINDS) for _ in range(max(kills - len(kinds), 0))]
    chaos.random.shuffle(kinds)
    for kind in kinds[:kills]:
        if chaos.over.is_set():
            return
        time.sleep(chaos.random.uniform(0.1, 0.9))
        for _ in range(50):
            if chaos.service.kill_one(kind, chaos.random.choice):
                chaos.kills[kind] += 1
                break
            time.sleep(0.2)


# Counting


def count(chaos: Chaos, seed: int, started: float) -> dict[str, Any]:
    stuck = unfinished(chaos)
    steps = stored(chaos)
    duplicates = sum(times - 1 for times in chaos.ledger.effects.values() if times > 1)
    lost = 0
    for step, (name, status, effect) in steps.items():
        happened = chaos.ledger.performed(name, step)
        done = status in ("succeeded", "compensated", "compensating")
        if effect != "read" and happened != done:
            lost += 1
            chaos.problems.append(f"{name} {step} is {status}, the far end says {happened}")
        if status == "compensated" and not chaos.ledger.undone[name, step]:
            lost += 1
            chaos.problems.append(f"{name} {step} is compensated, the far end undid nothing")
    verified = chaos.service.manage("verify")
    unverified = 0 if verified.returncode == 0 else verified.stdout.count("\n")
    if unverified:
        chaos.problems.append(verified.stdout[-2000:] + verified.stderr[-2000:])
    return {
        "seed": seed,
        "runs": len(chaos.runs),
        "effects": sum(n for (name, _), n in chaos.ledger.effects.items() if name != "look"),
        "kills": sum(chaos.kills.values()),
        "kills_by_kind": dict(chaos.kills),
        "kills_by_far_end": chaos.ledger.kills,
        "duplicates": duplicates,
        "lost": lost,
        "stuck": len(stuck),
        "unverified": unverified,
        "takeover_p99_s": takeover(chaos),
        "seconds": round(time.monotonic() - started),
    }


def unfinished(chaos: Chaos) -> list[str]:
    """Runs that have not ended once everything has been left alone for a while."""
    end = time.monotonic() + GRACE_SECONDS
    left = list(chaos.runs)
    while left and time.monotonic() < end:
        left = [run for run in left if not ended(chaos, run)]
        time.sleep(1)
    chaos.problems += [f"run {run} has not ended" for run in left]
    return left


def ended(chaos: Chaos, run: str) -> bool:
    _, seen = chaos.call("GET", f"/runs/{run}", token=chaos.agent)
    return bool(seen and seen["ended_at"])


def database(chaos: Chaos) -> psycopg.Connection[Any]:
    done = chaos.service.manage(
        "shell",
        "--no-imports",
        "-c",
        "import json; from django.db import connections as c;"
        "p = c['owner'].get_connection_params();"
        "print(json.dumps({k: str(p[k]) for k in ('host','port','user','dbname') if k in p}))",
    )
    return psycopg.connect(**json.loads(done.stdout.strip().splitlines()[-1]), autocommit=True)


def stored(chaos: Chaos) -> dict[str, tuple[str, str, str]]:
    with database(chaos) as connection:
        rows = connection.execute(
            "SELECT id::text, split_part(tool_name, '.', 2), status, effect FROM interrupts_step"
        ).fetchall()
    return {step: (name, status, effect) for step, name, status, effect in rows}


def takeover(chaos: Chaos) -> float | None:
    """Seconds after its lease that an attempt whose worker died was taken over, p99."""
    with database(chaos) as connection:
        row = connection.execute(
            "SELECT percentile_disc(0.99) WITHIN GROUP (ORDER BY extract(epoch FROM"
            " lapsed_at - lease_expires_at)) FROM interrupts_attempt"
            " WHERE lapsed_at >= lease_expires_at"
        ).fetchone()
    return round(float(row[0]), 3) if row and row[0] is not None else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6))
    parser.add_argument("--minutes", type=float, default=0, help="go on for at least so long")
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--kills", type=int, default=KILLS)
    given = parser.parse_args()
    sys.stderr.write(f"seed {given.seed}\n")
    started = time.monotonic()
    base = Path("/var/lib/abeyance-chaos" if os.geteuid() == 0 else tempfile.gettempdir())
    base.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=base) as folder:
        Path(folder).chmod(0o755)
        service = Service.start(Path(folder))
        try:
            figures, problems = play(service, given, started)
        finally:
            service.stop()
    for problem in problems[:50]:
        sys.stderr.write(f"{problem}\n")
    sys.stdout.write(json.dumps(figures) + "\n")
    faults = ("duplicates", "lost", "stuck", "unverified")
    sys.exit(1 if any(figures[name] for name in faults) else 0)


class Numbers:
    """The numbers of the runs, each given to one agent."""

    def __init__(self) -> None:
        self.lock, self.next = threading.Lock(), 0

    def take(self) -> int:
        with self.lock:
            self.next += 1
            return self.next - 1


def work(
    chaos: Chaos,
    given: argparse.Namespace,
    started: float,
    killer: threading.Thread,
    numbers: Numbers,
) -> None:
    """Drive one run after the other: the runs asked for, and on while there is killing to do."""
    while numbers.next < given.runs or time.monotonic() - started < given.minutes * 60:
        drive(chaos, numbers.take())
    while killer.is_alive():
        drive(chaos, numbers.take())


def play(
    service: Service, given: argparse.Namespace, started: float
) -> tuple[dict[str, Any], list[str]]:
    ledger = Ledger(given.seed)
    server = serve(ledger)
    file = service.folder / "tenant.json"
    file.write_text(json.dumps(tenant("chaos", f"127.0.0.1:{server.server_address[1]}")))
    out = service.folder / "credentials.json"
    applied = service.manage("apply", str(file), "--credentials-out", str(out))
    if applied.returncode:
        raise RuntimeError(applied.stderr)
    credentials = json.loads(out.read_text())["chaos"]
    chaos = Chaos(service, ledger, credentials, random.Random(given.seed))  # noqa: S311
    people = [threading.Thread(target=t, args=(chaos,), daemon=True) for t in (approve, recover)]
    numbers = Numbers()
    killer = threading.Thread(target=destroy, args=(chaos, given.kills), daemon=True)
    for thread in (*people, killer):
        thread.start()
    agents = [
        threading.Thread(target=work, args=(chaos, given, started, killer, numbers), daemon=True)
        for _ in range(AGENTS)
    ]
    for thread in agents:
        thread.start()
    killer.join()
    ledger.calm = True
    for thread in agents:
        thread.join(GRACE_SECONDS)
    figures = count(chaos, given.seed, started)
    chaos.over.set()
    server.shutdown()
    return figures, chaos.problems


if __name__ == "__main__":
    main()
