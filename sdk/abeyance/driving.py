"""Driving a run: everything that an agent does, as flows that both kinds of client run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from abeyance.errors import (
    BY_STATUS,
    NeedsAgent,
    NotAnswered,
    NotCompleted,
    RunEnded,
    RunSuspended,
    StepError,
    StillWaiting,
)
from abeyance.formats import StateFormat, based_on
from abeyance.protocol import Flow, now
from abeyance.requests import Caller, new_key
from abeyance.values import (
    ENDED_RUN,
    Checkpoint,
    Document,
    Guidance,
    Proposal,
    Receipt,
    State,
    Step,
    Usage,
)

LONGEST_WAIT: Final = 50.0  # of one request; the service holds it for 60 at most


@dataclass(slots=True)
class Driven:
    """A run as this process drives it: its session, and how it was last seen."""

    caller: Caller
    executors: dict[str, Document]
    document: dict[str, Any]
    session: int | None = None

    @property
    def path(self) -> str:
        return f"runs/{self.document['id']}"

    @property
    def guidance(self) -> list[Guidance]:
        """What people said and the agent has not acknowledged."""
        return [one for one in map(Guidance.of, self.document["guidance"]) if not one.acknowledged]

    def named(self) -> dict[str, Any]:
        """The session, for what only the newest one may do."""
        return {} if self.session is None else {"session": self.session}


# The run


def start(
    caller: Caller,
    executors: dict[str, Document],
    body: Mapping[str, Any],
    state: State | None,
    key: str | None,
) -> Flow[Driven]:
    """Start a run and take it; a key used before takes up the run it started."""
    whole = {**body, **({"agent_state": state.document()} if state else {})}
    made = yield from caller.post("runs", whole, key)
    return (yield from _taken(Driven(caller, executors, made)))


def resume(caller: Caller, executors: dict[str, Document], run_id: str) -> Flow[Driven]:
    """Take a run that exists; of one that has ended what is recorded can still be read."""
    found = yield from caller.get(f"runs/{run_id}")
    return (yield from _taken(Driven(caller, executors, found)))


def _taken(run: Driven) -> Flow[Driven]:
    try:
        claimed = yield from run.caller.post(f"{run.path}/claim", {})
    except RunEnded:
        yield from refresh(run)
        return run
    run.session = claimed["session"]
    yield from refresh(run)
    return run


def refresh(run: Driven) -> Flow[Document]:
    run.document = yield from run.caller.get(run.path)
    return run.document


def until_running(run: Driven, until: float | None) -> Flow[bool]:
    """Wait until people let the run go on; False: the time is over. Raises RunEnded."""
    yield from refresh(run)
    while run.document["status"] == "suspended":
        if (seconds := (yield from _left(until))) <= 0:
            return False
        query = {"wait": seconds, "after_version": run.document["state_version"]}
        run.document = yield from run.caller.get(run.path, query)
    if run.document["status"] != "running":
        raise _ended(run)
    return True


def _ended(run: Driven) -> RunEnded:
    status = run.document["status"]
    return RunEnded({"code": "run-ended", "status": 409, "detail": f"The run is {status}."})


def report_usage(
    run: Driven, tokens: int, cost: Decimal | str | int, seconds: float
) -> Flow[Usage]:
    """Add to what the run has used; also the sign of life of an agent that thinks for long."""
    used = {"tokens": tokens, "cost": f"{Decimal(cost):f}", "seconds": seconds}
    told = yield from run.caller.post(f"{run.path}/usage", {**used, **run.named()})
    usage = Usage.of(told)
    known = {one["id"]: one for one in run.document["guidance"]}
    run.document["guidance"] = list((known | {one["id"]: one for one in told["guidance"]}).values())
    return usage


def acknowledge(run: Driven, read: Sequence[Guidance]) -> Flow[None]:
    """Say what guidance the agent has read: all that is known where none is named."""
    body = {"guidance": [one.id for one in read or run.guidance], **run.named()}
    run.document = yield from run.caller.post(f"{run.path}/acknowledge", body)


def end(run: Driven, verb: str, body: Mapping[str, Any]) -> Flow[Document]:
    """Complete or fail the run, as soon as it is not suspended; again it is no change.

    Where people are asked first, their answer is waited for. Raises NotCompleted.
    """
    wanted = {"complete": "completed", "fail": "failed"}[verb]
    key = new_key()
    while True:
        try:
            run.document = yield from run.caller.post(
                f"{run.path}/{verb}", {**body, **run.named()}, key
            )
            if run.document["status"] != "suspended":
                return run.document
            known = {one.id for one in run.guidance}
            yield from until_running(run, None)
            if told := [one.text for one in run.guidance if one.id not in known]:
                raise NotCompleted(told[-1])
            key = new_key()  # the answer to the first is kept
        except RunSuspended:
            yield from until_running(run, None)
        except RunEnded:
            if (yield from refresh(run))["status"] != wanted:
                raise
            return run.document


# Checkpoints


def put_state(run: Driven, state: State, base: Checkpoint | None) -> Flow[Checkpoint]:
    """Put the agent's state: whole, or, beside a base, as what its lists grew by."""
    if base is not None:
        state = replace(state, base=based_on(base))
    body = {"agent_state": state.document(), **run.named()}
    put = Checkpoint.of((yield from run.caller.post(f"{run.path}/checkpoints", body)))
    run.document["checkpoint"] = put.id
    return put


def latest_checkpoint(run: Driven, format: StateFormat | None) -> Flow[Checkpoint | None]:  # noqa: A002
    """Read the run's newest checkpoint, with the agent's state as it was last put.

    With a format the state is brought to its version. Raises UnknownState.
    """
    checkpoint = (yield from refresh(run))["checkpoint"]
    if checkpoint is None:
        return None
    found = Checkpoint.of((yield from run.caller.get(f"checkpoints/{checkpoint}")))
    if format is None or found.state is None:
        return found
    read = format.read(found.state)
    kept = found.state.version
    return replace(found, state=read, kept_version=None if read.version == kept else kept)


# Steps


def propose(
    run: Driven,
    proposals: Sequence[Proposal],
    state: State | None,
    timeout: float | None,
    *,
    parallel: bool,
) -> Flow[list[Step]]:
    """Propose a step or a group, as soon as the run is not suspended.

    Raises RunSuspended where the time is over before that, RunEnded, and what else is refused.
    """
    until = yield from deadline(timeout)
    return (yield from _propose(run, proposals, state, until, parallel=parallel))


def _propose(
    run: Driven,
    proposals: Sequence[Proposal],
    state: State | None,
    until: float | None,
    *,
    parallel: bool = False,
) -> Flow[list[Step]]:
    documents = [one.document() for one in proposals]
    if state is not None:  # beside the last one: the service keeps the last that is given
        documents[-1]["agent_state"] = state.document()
    single = len(documents) == 1
    body = documents[0] if single else {"steps": documents}
    body |= {**run.named(), **({"parallel": True} if parallel else {})}
    made = yield from _proposed(run, body, until)
    rows = [made] if single else made["steps"]
    return [Step.of(row, one.arguments) for row, one in zip(rows, proposals, strict=True)]


def _proposed(run: Driven, body: Mapping[str, Any], until: float | None) -> Flow[Document]:
    key = new_key()
    while True:
        try:
            return (yield from run.caller.post(f"{run.path}/steps", body, key))
        except RunSuspended:
            if not (yield from until_running(run, until)):
                raise


def settled(run: Driven, step: Step, until: float | None) -> Flow[Step]:
    """Wait until the step has an outcome, and until that may stand where a verifier judges it.

    Raises StillWaiting when the time is over, NeedsAgent.
    """
    waited = False
    while not step.is_settled:
        if step.status == "ready":
            yield from _raise_if_the_agents(run, step)
        if (yield from unknown_for_good(run, step)):
            return step
        step = yield from changed(run, step, until)
        waited = True
    if step.is_held:
        return (yield from judged(run, step, until))
    if waited and (step.gate or step.interrupt):  # whoever decided may have left guidance
        yield from refresh(run)
    return step


def judged(run: Driven, step: Step, until: float | None) -> Flow[Step]:
    """Wait while a verdict on what the step did holds its run. Raises StillWaiting."""
    if not step.is_held:
        return step
    while step.is_held:
        step = yield from changed(run, step, until)
    yield from refresh(run)  # whoever answered a verdict may have left guidance
    return step


def unknown_for_good(run: Driven, step: Step) -> Flow[bool]:
    """Whether the run has ended without anybody having found out what became of the step."""
    return step.status == "unknown" and (yield from refresh(run))["status"] in ENDED_RUN


def changed(
    run: Driven, step: Step, until: float | None, at_most: float = LONGEST_WAIT
) -> Flow[Step]:
    """Wait until something of the step's run has changed. Raises StillWaiting."""
    if (seconds := (yield from _left(until))) <= 0:
        raise StillWaiting(step)
    query = {"wait": min(seconds, at_most), "after_version": step.state_version}
    return Step.of((yield from run.caller.get(f"steps/{step.id}", query)), step.proposed)


def _raise_if_the_agents(run: Driven, step: Step) -> Flow[None]:
    """A tool that the agent runs itself would wait for ever for somebody else to run it."""
    if (yield from executor(run, step.tool))["kind"] == "agent":
        raise NeedsAgent(step)


def executor(run: Driven, tool: str) -> Flow[Document]:
    """Return how a tool is run; asked once, since it seldom changes."""
    if tool not in run.executors:
        found = yield from run.caller.get(f"tools/{tool}")
        run.executors[tool] = found["executor"]
    return run.executors[tool]


def outcome(step: Step) -> Receipt | StepError:
    """Return the receipt of a settled step, or why there is none."""
    return Receipt.of(step) if step.status == "succeeded" else BY_STATUS[step.status](step)


def received(step: Step) -> Receipt:
    """Return the receipt of a settled step; raise why there is none."""
    came = outcome(step)
    if isinstance(came, StepError):
        raise came
    return came


def deadline(timeout: float | None) -> Flow[float | None]:
    return None if timeout is None else (yield from now()) + timeout


def _left(until: float | None) -> Flow[float]:
    """Return for how long to wait now: what is left of the time, within one request's bound."""
    return LONGEST_WAIT if until is None else min(LONGEST_WAIT, until - (yield from now()))


def wait(run: Driven, step: Step, until: float | None) -> Flow[Receipt]:
    return received((yield from settled(run, step, until)))


def step(
    run: Driven, proposal: Proposal, state: State | None, timeout: float | None
) -> Flow[Receipt]:
    """Propose, wait, and return the receipt; raise what became of it where there is none."""
    until = yield from deadline(timeout)
    (made,) = yield from _propose(run, [proposal], state, until)
    return received((yield from settled(run, made, until)))


def group(
    run: Driven,
    proposals: Sequence[Proposal],
    state: State | None,
    timeout: float | None,
    *,
    parallel: bool,
) -> Flow[list[Receipt | StepError]]:
    """Propose the calls of one turn together; return what became of each, in their order."""
    until = yield from deadline(timeout)
    made = yield from _propose(run, proposals, state, until, parallel=parallel)
    came: list[Receipt | StepError] = []
    for one in made:
        try:
            came.append(outcome((yield from settled(run, one, until))))
        except (StillWaiting, NeedsAgent) as waiting:
            came.append(waiting)
    return came


def reconcile(
    run: Driven, step: Step, found: Mapping[str, Any], *, performed: bool, evidence: str
) -> Flow[Step]:
    """Say what the agent found out about a call of its own whose outcome is unknown."""
    outcome = "performed" if performed else "not_performed"
    body = {"outcome": outcome, "evidence": evidence, **found}
    taken = yield from run.caller.post(f"steps/{step.id}/reconciliation", body)
    return Step.of(taken, step.proposed)


# Questions

ASKING: Final = "input_required"


def ask(
    run: Driven,
    question: str,
    schema: Mapping[str, Any] | None,
    more: Mapping[str, Any],
    timeout: float | None,
    *,
    anew: bool,
) -> Flow[Any]:
    """Put a question to people and return the value; one asked before has its answer on record."""
    until = yield from deadline(timeout)
    interrupt = None if anew else (yield from _asked_before(run, question))
    if interrupt is None:
        put = {"reason": ASKING, "question": question, **more, **run.named()}
        put |= {} if schema is None else {"schema": dict(schema)}
        interrupt = yield from run.caller.post(f"{run.path}/interrupts", put)
    while interrupt["status"] == "open":
        if (seconds := (yield from _left(until))) <= 0:
            raise NotAnswered("waiting", question)
        query = {"wait": seconds, "after_version": interrupt["state_version"]}
        interrupt = yield from run.caller.get(f"interrupts/{interrupt['id']}", query)
    yield from refresh(run)
    return _answer(interrupt)


def _asked_before(run: Driven, question: str) -> Flow[Document | None]:
    """Return the newest interrupt with this question that is open or was answered."""
    found = None
    query: dict[str, str | int | float] | None = {"run": run.document["id"], "reason": ASKING}
    while query is not None:
        page = yield from run.caller.get("interrupts", query)
        for one in page["results"]:
            answered = one["status"] == "open" or one["resolution"] == "resume"
            if one["required_response"]["question"] == question and answered:
                found = one
        query = _query_of(page["next"])
    return found


def _query_of(url: str | None) -> dict[str, str | int | float] | None:
    return dict(parse_qsl(urlsplit(url).query)) if url else None


def _answer(interrupt: Document) -> Any:
    question = interrupt["required_response"]["question"]
    response = interrupt["response"] or {}
    if interrupt["resolution"] == "resume":
        return response.get("value")
    if interrupt["resolution"] == "revise":
        raise NotAnswered("revised", question, response["value"]["guidance"])
    raise NotAnswered("cancelled", question)
