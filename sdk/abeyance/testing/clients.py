"""The clients that talk to the service in memory, and how a test scripts it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import httpx

from abeyance.aio import AsyncAbeyance
from abeyance.client import Abeyance
from abeyance.testing.script import Made, Reply, ToolScript
from abeyance.testing.service import FakeService
from abeyance.values import Document


class Scripted:
    """What a test says in advance, and looks at afterwards."""

    service: FakeService

    def on(self, tool: str) -> ToolScript:
        """Script what becomes of the next proposals of a tool: ``fake.on("x").approve().reject("no")``."""
        return self.service.scripts[tool]

    def answer(self, question: str, value: Any) -> None:
        """Answer the question, once it is asked, with this value."""
        self.service.replies[question] = Reply(value)

    def redirect(self, question: str, guidance: str) -> None:
        """In place of an answer, say what to do differently."""
        self.service.replies[question] = Reply(guidance=guidance)

    def stop(self, *, guidance: str | None = None, cancel: bool = False) -> None:
        """A person stops the newest run, and when the agent waits lets it go on, or cancels it."""
        self.service.stop(guidance=guidance, cancel=cancel)

    @property
    def made(self) -> Sequence[Made]:
        """The calls that were made, in order."""
        return self.service.made

    @property
    def runs(self) -> Sequence[Document]:
        """The runs, as the API shows them, in the order they were started."""
        return list(self.service.runs.values())

    @property
    def questions(self) -> Sequence[Document]:
        """What the agent was asked about steps, in order, each with its `answer`."""
        return list(self.service.questions.values())

    @property
    def dry_runs(self) -> Mapping[str, Document]:
        """What the agent said that its calls would do, by the id of the step."""
        return dict(self.service.dry_runs)

    def steps(self, run: str) -> Sequence[Document]:
        """The steps of a run, as the API shows them, in order."""
        return [one for one in self.service.steps.values() if one["run"] == run]


class FakeAbeyance(Scripted, Abeyance):
    """`Abeyance` without a service: `tools` gives each tool's result, or a function that makes it.

    `agent_tools` are those that the agent runs itself. A second client on the same `service` is a
    second process of the agent. Waiting takes no time. What nothing in the script brings about,
    and is waited for without a timeout, raises Unscripted.
    """

    def __init__(
        self,
        tools: Mapping[str, Any] | None = None,
        *,
        agent_tools: Collection[str] = (),
        service: FakeService | None = None,
    ) -> None:
        self.service = service or FakeService(tools or {}, agent_tools)
        super().__init__(
            "http://abeyance.test",
            "aby_agent_test",
            http=httpx.Client(transport=httpx.MockTransport(self.service.handle)),
            clock=self.service.clock,
        )


class AsyncFakeAbeyance(Scripted, AsyncAbeyance):
    """`AsyncAbeyance` without a service; see `FakeAbeyance`."""

    def __init__(
        self,
        tools: Mapping[str, Any] | None = None,
        *,
        agent_tools: Collection[str] = (),
        service: FakeService | None = None,
    ) -> None:
        self.service = service or FakeService(tools or {}, agent_tools)
        super().__init__(
            "http://abeyance.test",
            "aby_agent_test",
            http=httpx.AsyncClient(transport=httpx.MockTransport(self.service.handle)),
            clock=self.service.clock,
        )
