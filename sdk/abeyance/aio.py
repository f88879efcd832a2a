"""The client for programs on asyncio: the same calls, awaited."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from decimal import Decimal
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

import httpx

from abeyance import driving, making, questions
from abeyance.connections import AsyncConnection, Clock, RealClock, limits
from abeyance.driving import Driven
from abeyance.errors import StepError
from abeyance.formats import StateFormat
from abeyance.handle import Handle
from abeyance.protocol import Flow
from abeyance.requests import DEFAULT_PATIENCE, Caller
from abeyance.values import (
    Asking,
    Call,
    Checkpoint,
    Document,
    Finding,
    Guidance,
    Proposal,
    Question,
    Receipt,
    RunOptions,
    State,
    Step,
    Usage,
    Words,
)

T = TypeVar("T")


class AsyncAbeyance:
    """An agent's way to the service at `url`, under the agent's own key.

    A service that does not answer is tried for `patience` seconds, each time under the same
    idempotency key. `http` is a client of your own, for proxies or certificates, which you close.
    Tasks may share one client.
    """

    def __init__(
        self,
        url: str,
        key: str,
        *,
        patience: float = DEFAULT_PATIENCE,
        http: httpx.AsyncClient | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._caller = Caller(key, patience)
        self._owns = http is None
        client = httpx.AsyncClient(limits=limits()) if http is None else http
        self._connection = AsyncConnection(url, client, clock or RealClock())
        self._executors: dict[str, Document] = {}

    async def run(
        self,
        workflow: str,
        goal: str,
        *,
        state: State | None = None,
        key: str | None = None,
        **options: Unpack[RunOptions],
    ) -> AsyncRun:
        """Start a run and take it for this process.

        With a `key` that was used before, within a day, it is the run that was started then.
        """
        body = {"workflow": workflow, "goal": goal, **options}
        return await self._taken(driving.start(self._caller, self._executors, body, state, key))

    async def resume(self, run_id: str) -> AsyncRun:
        """Take an existing run for this process; an earlier process drives it no longer."""
        return await self._taken(driving.resume(self._caller, self._executors, run_id))

    async def close(self) -> None:
        if self._owns:
            await self._connection.http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        _kind: type[BaseException] | None,
        _fault: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def _taken(self, flow: Flow[Driven]) -> AsyncRun:
        return AsyncRun(self._connection, await self._connection.drive(flow))


class AsyncRun(Handle):
    """A run, driven by this process."""

    def __init__(self, connection: AsyncConnection, driven: Driven) -> None:
        super().__init__(driven)
        self._connection = connection

    async def refresh(self) -> Document:
        """Look at the run again."""
        return await self._drive(driving.refresh(self._driven))

    async def step(
        self,
        key: str,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        answer: Callable[[Question], Awaitable[str]] | None = None,
        make: Callable[[Call], Awaitable[Any]] | None = None,
        state: State | None = None,
        timeout: float | None = None,
        **words: Unpack[Words],
    ) -> Receipt:
        """Have a call made, once, and return the receipt; a second pass returns the recorded one.

        Waits until policy, and whoever it asks, has decided and the call is done: without end, or
        for `timeout` seconds. `make` makes the call where the tool is one that the agent runs
        itself. `answer` answers what people ask about the call while it waits. Raises the StepError
        that says what became of it, StillWaiting among them.
        """
        proposal = Proposal(key=key, tool=tool, arguments=arguments, words=words)
        if make is None and answer is None:
            return await self._drive(driving.step(self._driven, proposal, state, timeout))
        (step,) = await self.propose(proposal, state=state, timeout=timeout)
        if make is None:
            return await self.wait(step, answer=answer, timeout=timeout)
        if answer is not None:
            step = await self._decided(step, answer, await self._drive(driving.deadline(timeout)))
        return await self.execute(step, make, timeout=timeout)

    async def steps(
        self,
        proposals: list[Proposal],
        *,
        parallel: bool = False,
        state: State | None = None,
        timeout: float | None = None,
    ) -> list[Receipt | StepError]:
        """Have the calls of one turn made: decided one by one, begun once all are decided.

        Returns for each its receipt, or the StepError that says why there is none.
        """
        return await self._drive(
            driving.group(self._driven, proposals, state, timeout, parallel=parallel)
        )

    async def propose(
        self,
        *proposals: Proposal,
        parallel: bool = False,
        state: State | None = None,
        timeout: float | None = None,
    ) -> list[Step]:
        """Propose without waiting for an outcome; `wait` or `execute` goes on with the steps."""
        return await self._drive(
            driving.propose(self._driven, proposals, state, timeout, parallel=parallel)
        )

    async def wait(
        self,
        step: Step,
        *,
        answer: Callable[[Question], Awaitable[str]] | None = None,
        timeout: float | None = None,
    ) -> Receipt:
        """Wait for the outcome of a step that was proposed; answers and raises as `step` does."""
        until = await self._drive(driving.deadline(timeout))
        if answer is not None:
            step = await self._decided(step, answer, until)
        return await self._drive(driving.wait(self._driven, step, until))

    async def execute(
        self, step: Step, make: Callable[[Call], Awaitable[Any]], *, timeout: float | None = None
    ) -> Receipt:
        """Make a call that the agent runs itself, as soon as it may start, and report it.

        `make` gets the call with the arguments that were decided, and returns the result or a
        `Performed`; meanwhile heartbeats keep the claim. It raises NotPerformed or Refused where
        the call did not happen; whatever else it raises leaves the outcome unknown. What is
        settled already is not made again.
        """
        until = await self._drive(driving.deadline(timeout))
        claimed = await self._drive(making.claim(self._driven, step, timeout))
        if isinstance(claimed, Step):
            claimed = await self._drive(driving.judged(self._driven, claimed, until))
            return driving.received(claimed)
        watched = making.Watched()
        try:
            async with self._connection.beside(making.heartbeats(self._driven, claimed)):
                with watched:
                    watched.result = await make(claimed)
        finally:
            step = await self._drive(making.report(self._driven, step, claimed, watched.seen))
        step = await self._drive(driving.judged(self._driven, step, until))
        return driving.received(step)

    async def reconcile(
        self, step: Step, *, performed: bool, evidence: str, **found: Unpack[Finding]
    ) -> Step:
        """Say what the agent found out about a call of its own whose outcome is unknown."""
        return await self._drive(
            driving.reconcile(self._driven, step, found, performed=performed, evidence=evidence)
        )

    async def ask(
        self,
        question: str,
        schema: Mapping[str, Any] | None = None,
        *,
        anew: bool = False,
        timeout: float | None = None,
        **more: Unpack[Asking],
    ) -> Any:
        """Put a question to people, wait, and return the value that they gave.

        The same question in the same run returns the value on record, unless it is asked `anew`.
        `schema` is a JSON Schema that the value fulfils. Raises NotAnswered.
        """
        return await self._drive(
            driving.ask(self._driven, question, schema, more, timeout, anew=anew)
        )

    async def answer(self, question: Question, text: str) -> None:
        """Answer what a person asks about a step; the same answer again is no change."""
        await self._drive(questions.answer(self._driven, question, text))

    async def usage(
        self, *, tokens: int = 0, cost: Decimal | str | int = 0, seconds: float = 0
    ) -> Usage:
        """Add to what the run has used; returns whether to stop, and guidance.

        Also the agent's sign of life: call it while the model thinks for long.
        """
        return await self._drive(driving.report_usage(self._driven, tokens, cost, seconds))

    async def acknowledge(self, *guidance: Guidance) -> None:
        """Say that the agent has read this guidance; all that is known where none is named."""
        await self._drive(driving.acknowledge(self._driven, guidance))

    async def checkpoint(self, state: State, *, base: Checkpoint | None = None) -> Checkpoint:
        """Put the agent's own state, for whatever process resumes the run.

        With a `base` of the same format and version, `state.data` holds only what was added:
        ``{"/messages": [...]}``, the items by the pointer of their list.
        """
        return await self._drive(driving.put_state(self._driven, state, base))

    async def latest_checkpoint(
        self,
        format: StateFormat | None = None,  # noqa: A002 - it is what the service calls it
    ) -> Checkpoint | None:
        """Return the run's newest checkpoint, with the agent's state as it was last put.

        With a `format` the state is brought to the version of that. Raises UnknownState.
        """
        return await self._drive(driving.latest_checkpoint(self._driven, format))

    async def complete(self, output: Any = None) -> None:
        """End the run as completed, as soon as it is not suspended; again is no change.

        Where people are asked first, their answer is waited for. Raises NotCompleted where they want
        something else done before.
        """
        await self._drive(driving.end(self._driven, "complete", {"output": output}))

    async def fail(self, error: Any) -> None:
        """End the run as failed, as soon as it is not suspended; again is no change."""
        await self._drive(driving.end(self._driven, "fail", {"error": error}))

    async def _decided(
        self, step: Step, answer: Callable[[Question], Awaitable[str]], until: float | None
    ) -> Step:
        """Answer what is asked about the step until it waits no more."""
        while True:
            step = await self._drive(questions.until_asked(self._driven, step, until))
            if not step.questions:
                return step
            for one in step.questions:
                text = await answer(one)
                await self._drive(questions.answer_if_open(self._driven, one, text))
            step = await self._drive(driving.changed(self._driven, step, until))

    async def _drive(self, flow: Flow[T]) -> T:
        return await self._connection.drive(flow)
