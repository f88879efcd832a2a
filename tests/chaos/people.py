"""People: they decide gates, stop runs and let them go on, and settle what only a person can."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from tests.chaos.farend import LANDS_WITHIN_SECONDS, Effect
from tests.chaos.state import Chaos

PAUSE_SECONDS = 0.4
AGENTS_OWN_SECONDS = 8  # then a person says it in an agent's place
PATIENCE_SECONDS = 40  # then a person does not wait for the service to find it out
VERDICTS = {"approve": 16, "reject": 2, "request_changes": 1, "respond": 1}
STOPS, FREEZES = 0.35, 0.1


def keep_at(chaos: Chaos, act: Callable[[Chaos, random.Random], None], name: str) -> None:
    dice = chaos.dice(name)
    while not chaos.over.wait(PAUSE_SECONDS):
        act(chaos, dice)


# Deciding


def decide(chaos: Chaos, dice: random.Random) -> None:
    name = dice.choice(("ann", "ben"))
    token = chaos.person(name)
    gates = chaos.results("/gates?state=pending&mine=true", token)
    dice.shuffle(gates)
    for listed in gates[:10]:
        status, gate = chaos.call("GET", f"/gates/{listed['id']}", token=token)
        if status == 200 and gate["state"] == "pending":
            _decide(chaos, dice, gate, token)


def _decide(chaos: Chaos, dice: random.Random, gate: dict[str, Any], token: str) -> None:
    verdict = dice.choices([*VERDICTS], [*VERDICTS.values()])[0]
    body: dict[str, Any] = {"verdict": verdict, "digest": gate["what"]["digest"]}
    if verdict == "approve" and gate["ceremony"] == "typed":
        body["confirmation"] = gate["required_confirmation"]
    elif verdict == "approve" and gate["ceremony"] == "explicit":
        body["confirmation"] = True
    elif verdict == "respond":
        body["value"] = "do it by hand"
    elif verdict != "approve":
        body["reason"] = "chaos"
    status, answer = chaos.call("POST", f"/gates/{gate['id']}/decisions", body, token=token)
    if status == 201:
        chaos.did["decisions"] += 1
        chaos.taken.decisions.add(gate["id"])
    elif status not in (200, 409, 410):
        chaos.problem(f"gate {gate['id']}: {verdict} is answered {status} {answer}")


# Stopping, and letting go on


def meddle(chaos: Chaos, dice: random.Random) -> None:
    token = chaos.person("olga")
    for held in chaos.results("/interrupts?status=open&reason=operator_stop", token):
        body = {"checkpoint": held["checkpoint"], "resolution": "resume"}
        chaos.call("POST", f"/interrupts/{held['id']}/response", body, token=token)
    for freeze in chaos.results("/freezes", token):
        chaos.call("DELETE", f"/freezes/{freeze['id']}", token=token)
    if chaos.ledger.calm:
        return
    going = sorted(chaos.taken.runs - chaos.ended)
    if going and dice.random() < STOPS:
        body = {"reason": "operator_stop", "in_flight": dice.choice(("finish", "cancel"))}
        run = dice.choice(going)
        status, _ = chaos.call("POST", f"/runs/{run}/interrupts", body, token=token)
        chaos.did["stops"] += status == 201
    if dice.random() < FREEZES:
        body = {"scope": "tool", "name": "do.note", "note": "chaos"}
        status, _ = chaos.call("POST", "/freezes", body, token=token)
        chaos.did["freezes"] += status == 201


# Settling what only a person can


def recover(chaos: Chaos, dice: random.Random) -> None:
    """Settle what the service does not find out by itself, by what the far end's ledger says."""
    token = chaos.person("olga")
    for held in chaos.results("/interrupts?status=open&reason=outcome_unknown", token):
        if _is_for_people(held):
            _recover(chaos, dice, held, token)


def _is_for_people(held: dict[str, Any]) -> bool:
    opened = datetime.fromisoformat(held["opened_at"])
    seconds = (datetime.now(UTC) - opened).total_seconds()
    evidence = held["evidence"]
    if evidence["tool"] == "do.move":
        return seconds > AGENTS_OWN_SECONDS
    if seconds <= LANDS_WITHIN_SECONDS:
        return False
    return evidence["next_at"] is None or seconds > PATIENCE_SECONDS


def _recover(chaos: Chaos, dice: random.Random, held: dict[str, Any], token: str) -> None:
    effect = Effect(held["evidence"]["tool"].split(".")[1], held["step"])
    offered = held["required_response"]["schema"]["properties"]["outcome"]["enum"]
    again = "not_performed" in offered and effect.name != "move" and dice.random() < 0.5
    if again and not chaos.ledger.happened(effect):
        outcome = "not_performed"  # nothing lands any more, so this stays true
    else:
        outcome = "performed" if chaos.ledger.rule_out(effect) else "skip"
    value = {"outcome": outcome, "evidence": "the ledger"}
    body = {"checkpoint": held["checkpoint"], "resolution": "resume", "value": value}
    status, answer = chaos.call("POST", f"/interrupts/{held['id']}/response", body, token=token)
    if status == 200:
        chaos.did[f"recovered as {outcome}"] += 1
    elif status != 409:
        chaos.problem(f"interrupt {held['id']}: {outcome} is answered {status} {answer}")
