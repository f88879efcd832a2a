"""Where a history takes place: what is done there, what comes of it, and the moving clock."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from typing import Any
from unittest.mock import patch
from uuid import UUID

import psycopg
from hypothesis.stateful import RuleBasedStateMachine

from config.errors import Problem
from interrupts import catalogue
from interrupts.errors import Damaged, IllegalMove
from tenants.ids import uuid7
from tenants.scope import renew_connection, tenant_scope
from tests import clock
from tests.property.actions import Totals
from tests.property.calls import Calls
from tests.property.commits import Crash, Crashing, commits
from tests.property.facts import Facts, Outside
from tests.property.farend import Ledger
from tests.property.world import GRANTS, TOOLS, World, calling

AUTHORITY = {"forbidden", "not-an-approver", "own-request", "people-only", "agents-only"}
MOST_MESSAGES = 12


class Stage(Calls, RuleBasedStateMachine):
    """One tenant, its runs, a broker that loses and repeats messages, and a far end."""

    def __init__(self, owner: psycopg.Connection[Any], totals: Totals) -> None:
        super().__init__()
        self.totals, self.stack = totals, ExitStack()
        self.messages: list[tuple[str, dict[str, Any]]] = []
        self.faults: list[str] = []
        self.armed: Crashing | None = None
        self.lost: list[Callable[[], Any]] = []
        self.claims: list[tuple[UUID, int, str]] = []
        self.answered: list[Callable[..., Any]] = []
        self.proposals: dict[str, str] = {}  # by step, as its agent named it
        self.amounts: dict[int, set[int | None]] = {}
        self.policy, self.may, self.versions = "usual", set(GRANTS), dict.fromkeys(TOOLS, 1)
        self.agent_acts, self.n, self.depth, self.taken = True, 0, 0, 0
        self._enter(owner)
        self.now = self.outside.look()
        self.before: Facts | None = None

    def _enter(self, owner: psycopg.Connection[Any]) -> None:
        pk = uuid7()
        logging.disable(logging.CRITICAL)
        self.stack.callback(logging.disable, logging.NOTSET)
        self.stack.enter_context(tenant_scope(pk))
        self.world = World.made()
        self.outside = Outside(owner, str(pk))
        self.far = Ledger(self.begins, self.undoes)
        self.stack.enter_context(calling(self.far))
        for target, put in {
            "interrupts.queue._publish": self.send,
            "approvals.queue.send": lambda tenant, gate: self.send(
                "preview", {"tenant_id": tenant, "gate_id": gate}
            ),
            "interrupts.sweep.logger.exception": self.fault,
            "approvals.sweep.logger.exception": self.fault,
        }.items():
            self.stack.enter_context(patch(target, put))

    def do(self, act: Callable[[], Any]) -> Any:
        """Do what somebody asks for: it is done, refused, or its process dies in the middle."""
        armed, self.armed = self.armed, None
        try:
            with commits(armed) if armed else nullcontext():
                return act()
        except (IllegalMove, Damaged):
            raise
        except Problem as refusal:
            self.was_refused(refusal)
            return refusal
        except Crash:
            self.totals.counted["crashed"] += 1
            self.lost.append(act)
            self.restart()
            return None

    def was_refused(self, refusal: Problem) -> None:
        """Who may not has changed nothing."""
        self.totals.counted["refused"] += 1
        if refusal.code in AUTHORITY and self.depth == 0:
            assert self.outside.look().everything == self.now.everything, refusal

    def serve(self, act: Callable[[], Any]) -> None:
        """Do what the service does by itself: nothing of that is ever refused."""
        refusal = self.do(act)
        assert not isinstance(refusal, Problem), refusal

    def restart(self) -> None:
        """Begin anew as a process that knows nothing."""
        renew_connection()
        for cache in (catalogue._current, catalogue.version, catalogue.effect):
            cache.cache_clear()

    def send(self, task: str, names: dict[str, Any]) -> None:
        self.messages.append((task, dict(names)))
        del self.messages[:-MOST_MESSAGES]  # a broker that loses some

    def fault(self, text: str, *parts: Any) -> None:
        self.faults.append(f"{text % parts}: {sys.exc_info()[1]!r}")

    def pick(self, rows: list[Any], index: int) -> Any:
        return rows[index % len(rows)]

    def principal(self, name: str) -> Any:
        return self.world.people[name]

    def run_at(self, index: int) -> UUID:
        return UUID(self.pick(self.now.live_runs, index)["id"])

    def going_at(self, index: int) -> UUID:
        """A run that goes on, where one does; now and then any other."""
        going = [one for one in self.now.live_runs if one["status"] == "running"]
        return UUID(self.pick(going if going and index else self.now.live_runs, index)["id"])

    def move(self, seconds: float) -> None:
        """Let time pass, for the service and for the far end."""
        clock.move(seconds)
        self.far.passes(seconds)
