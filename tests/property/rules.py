"""What changes who may what: policy, grants, tools, agents and freezes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.db import transaction

from interrupts.services import (
    freezes,
)
from tenants.journal import SYSTEM
from tenants.services.agents import AgentWanted, set_agents
from tests.property.actions import action, one_of, when
from tests.property.stage import Stage
from tests.property.world import POLICIES, new_version


class Rules(Stage):
    """Narrows and widens, and remembers for itself what holds."""

    @when(lambda self: self.now.steps)
    @action(weight=2, policy=one_of("usual", "usual", *sorted(POLICIES)))
    def publish(self, policy: str) -> None:
        def act() -> None:
            with transaction.atomic():
                self.world.publish(policy)

        self.changes(act, lambda: setattr(self, "policy", policy))

    @when(lambda self: self.now.steps)
    @action(names=one_of((), ("alice",), ("carol",), ("alice", "carol")))
    def grant(self, names: tuple[str, ...]) -> None:
        may = {"ada", "rosa", "vera", *names}

        def act() -> None:
            with transaction.atomic():
                self.world.grant({name: ["*"] for name in sorted(may)})

        self.changes(act, lambda: setattr(self, "may", may))

    @when(lambda self: self.now.steps)
    @action(tool=one_of("pay", "book", "mine"))
    def new_version(self, tool: str) -> None:
        def act() -> None:
            with transaction.atomic():
                new_version(tool)

        self.changes(act, lambda: self.versions.update({tool: self.versions[tool] + 1}))

    @when(lambda self: self.now.steps)
    @action(weight=1)
    def agent_comes_and_goes(self) -> None:
        wanted = [AgentWanted("other"), AgentWanted("bot", self.principal("ada").name)]

        def act() -> None:
            with transaction.atomic():
                set_agents(SYSTEM, wanted[: 1 if self.agent_acts else 2], others_end=True)

        self.changes(act, lambda: setattr(self, "agent_acts", not self.agent_acts))

    def changes(self, act: Callable[[], Any], then: Callable[[], None]) -> None:
        """Change who may what; where its process dies it is the database that says whether."""
        before = self.outside.look().tenant
        self.do(act)
        if self.outside.look().tenant != before:
            then()
        if self.lost and self.lost[-1] is act:
            self.lost.pop()

    @when(lambda self: self.now.steps and len(self.now.freezes) < 2)
    @action(weight=1, scope=one_of(("tenant", ""), ("tool", "pay"), ("agent", "bot")))
    def freeze(self, scope: tuple[str, str]) -> None:
        self.do(lambda: freezes.freeze(self.principal("olga"), scope=scope[0], name=scope[1]))

    @when(lambda self: self.now.freezes)
    @action(weight=4)
    def thaw(self) -> None:
        for pk in self.now.freezes:
            self.do(lambda pk=pk: freezes.thaw(self.principal("olga"), UUID(pk)))
