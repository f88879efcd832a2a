"""A learner as JSON and back, so that it need not hear every event again."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import asdict
from decimal import Decimal
from typing import Any, Final

from delegation.familiarity import Day, Familiarity, Seen, text
from delegation.learner import Learner
from delegation.predicates import Spent, canonical_json
from delegation.presets import CAUTIOUS, Settings
from delegation.proof import Proof
from delegation.records import Tool
from delegation.units import Evidence, Unit

VERSION: Final = 1


class OtherVersion(ValueError):
    """The state was written in another form, or under other settings: replay the events."""


def dump(learner: Learner) -> dict[str, Any]:
    """Return the whole state as JSON, in one order; amounts as text."""
    return {
        "version": VERSION,
        "settings": learner.settings.digest,
        "last_at": _time(learner.last_at),
        "incidents": learner.incidents,
        "asks_everything": learner.asks_everything,
        "stopped": sorted(learner.stopped),
        "proofs": {risk: _proof(proof) for risk, proof in sorted(learner.proofs.items())},
        "units": {name: _unit(unit) for name, unit in sorted(learner.units.items())},
    }


def load(state: Mapping[str, Any], settings: Settings = CAUTIOUS, key: bytes = b"") -> Learner:
    """Return the learner that was dumped. Raises `OtherVersion`."""
    if state.get("version") != VERSION or state.get("settings") != settings.digest:
        raise OtherVersion("The state was written in another form or under other settings.")
    learner = Learner(settings, key)
    learner.last_at = _read_time(state["last_at"])
    learner.incidents = list(state["incidents"])
    learner.asks_everything = state["asks_everything"]
    learner.stopped = set(state["stopped"])
    for risk, proof in learner.proofs.items():
        said = state["proofs"][risk]
        proof.tries = said["tries"]
        proof.answers, proof.refused = said["answers"], said["refused"]
    learner.units = {name: _read_unit(said) for name, said in state["units"].items()}
    return learner


def digest(learner: Learner) -> str:
    """Return what tells one state from another, as `sha256:<hex>`."""
    return "sha256:" + hashlib.sha256(canonical_json(dump(learner))).hexdigest()


def _proof(proof: Proof) -> dict[str, Any]:
    return {"tries": proof.tries, "answers": proof.answers, "refused": proof.refused}


def _unit(unit: Unit) -> dict[str, Any]:
    return {
        "tool": {
            "id": unit.tool.id,
            "version": unit.tool.version,
            "risk": unit.tool.risk,
            "roles": dict(unit.tool.roles),
        },
        "context": list(unit.context),
        "evidence": asdict(unit.evidence),
        "clean": unit.clean,
        "left": unit.left,
        "recent": unit.recent,
        "memory": _memory(unit.memory),
    }


def _memory(memory: Familiarity) -> dict[str, Any]:
    return {
        "seen": [
            [*value, one.times, one.at, one.blamed] for value, one in sorted(memory.seen.items())
        ],
        "pairs": [[*one, *other, times] for (one, other), times in sorted(memory.pairs.items())],
        "tops": [
            [*value, name, [text(one) for one in tops]]
            for (value, name), tops in sorted(memory.tops.items())
        ],
        "split": [list(one) for one in sorted(memory.split)],
        "day": {
            "number": memory.day.number,
            "spent": {"calls": memory.day.spent.calls, "sums": _texts(memory.day.spent.sums)},
            "calls": memory.day.calls,
            "sums": {
                name: [text(one) for one in sums] for name, sums in sorted(memory.day.sums.items())
            },
        },
    }


def _read_unit(said: Mapping[str, Any]) -> Unit:
    return Unit(
        Tool(**said["tool"]),
        tuple(said["context"]),
        _read_memory(said["memory"]),
        Evidence(**said["evidence"]),
        said["clean"],
        said["left"],
        list(said["recent"]),
    )


def _read_memory(said: Mapping[str, Any]) -> Familiarity:
    day = said["day"]
    return Familiarity(
        {(name, value): Seen(*known) for name, value, *known in said["seen"]},
        {((a, b), (c, d)): times for a, b, c, d, times in said["pairs"]},
        {((by, value), name): [*map(Decimal, tops)] for by, value, name, tops in said["tops"]},
        {(name, of) for name, of in said["split"]},
        Day(
            day["number"],
            Spent(day["spent"]["calls"], _decimals(day["spent"]["sums"])),
            list(day["calls"]),
            {name: [*map(Decimal, sums)] for name, sums in day["sums"].items()},
        ),
    )


def _texts(sums: Mapping[str, Decimal]) -> dict[str, str]:
    return {name: text(one) for name, one in sorted(sums.items())}


def _decimals(sums: Mapping[str, str]) -> dict[str, Decimal]:
    return {name: Decimal(one) for name, one in sums.items()}


def _time(at: float) -> float | None:
    return at if math.isfinite(at) else None


def _read_time(at: float | None) -> float:
    return -math.inf if at is None else at
