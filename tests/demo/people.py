"""The demo's people, played over the API: they approve what waits and settle what got lost."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from demo.service import Person, Service


@contextmanager
def deciding(service: Service, **of_tools: str) -> Iterator[list[BaseException]]:
    """Have people act for the length of the block: approve, or what is given for a tool's last name.

    Yields what went wrong meanwhile, which must be nothing.
    """
    over, faults = threading.Event(), []

    def play() -> None:
        try:
            while not over.wait(0.2):
                look(service, of_tools)
        except (httpx.HTTPError, RuntimeError, KeyError) as fault:
            faults.append(fault)

    thread = threading.Thread(target=play, daemon=True)
    thread.start()
    try:
        yield faults
    finally:
        over.set()
        thread.join(60)
    assert faults == []


def look(service: Service, of_tools: dict[str, str]) -> None:
    """Have everybody do once what is theirs to do."""
    for name in ("bob", "carol"):
        person = service.person(name)
        for gate in person.get("gates", state="pending", mine="true")["results"]:
            verdict = of_tools.get(gate["what"]["tool"].rpartition(".")[2], "approve")
            if verdict == "approve":
                person.approve(gate["id"])
            else:
                reject(person, gate)
    settle(service)


def reject(person: Person, gate: Any) -> None:
    body = {"verdict": "reject", "digest": gate["what"]["digest"], "reason": "not today"}
    person.post(f"gates/{gate['id']}/decisions", body)


def settle(service: Service) -> None:
    """Look into the ledger, and say of what got lost that it was performed."""
    ada = service.person("ada")
    for interrupt in ada.get("interrupts", status="open", reason="outcome_unknown")["results"]:
        step = interrupt["step"]
        entry = next(one for one in service.far_end.entries() if one["key"] == step)
        ada.found_performed(interrupt["id"], "It stands in the ledger.", entry["external_id"])
