"""The executor `python`: functions that installed packages offer in `abeyance.tools`.

A tool is `function(arguments, call) -> result`, or a `PythonTool` that can also be previewed,
reconciled and undone. It runs in the worker process, in the thread that asked. Nothing can stop
it from outside: `call.timeout` says how long it may take, and what it waits for (a socket, a lock,
a subprocess) should be given that limit. `call.cancel_requested` becomes true once a person stopped
the run and wants what is in flight cancelled: a tool that looks at it may raise `NotPerformed` while
it has begun nothing, or break off; one that does not is finished. The service bounds the attempt,
not the code: when the lease (the timeout and two seconds) has lapsed the outcome is unknown,
whatever the function does later, and its late receipt then settles it.

What a tool says: it returns (succeeded), returns an `Observed` (what that says), raises
`NotPerformed` (nothing was begun, send it again) or `Refused` (nothing was done, for good).
Any other exception says nothing about what it did, so the outcome is unknown.

A preview is the tool's own, or a function in `abeyance.previews` that the declaration names:
`function(arguments, call) -> Preview`. It has no effect, and so may be left behind where it takes
longer than `call.timeout`: it runs in a thread beside the one that asks, for no tenant.
"""

import inspect
import json
import logging
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache, partial
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

from config.errors import Problem
from config.jsontext import canonical, parse
from config.keeping import kept, loses
from interrupts.effects.aside import Late, within
from interrupts.effects.base import (
    MAX_RESULT_BYTES,
    REPLACED,
    Call,
    Finding,
    Observed,
    Outcome,
    Preview,
    PreviewFailed,
    Reconciled,
    cost_of,
    delay_of,
    external_id_of,
    plain,
)
from interrupts.effects.previews import UnreadablePreview, preview_of

GROUP: Final = "abeyance.tools"
PREVIEWS: Final = "abeyance.previews"

logger = logging.getLogger(__name__)


class NotPerformed(Exception):
    """Raised by a tool that has begun nothing; the call is sent again after `retry_after` seconds.

    The message may be shown to the agent.
    """

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Refused(Exception):
    """Raised by a tool that has done nothing and never will. The message may be shown."""


class NotInstalled(Exception):
    """No usable function of that name is installed; the message may be shown."""


Previewing = Callable[[dict[str, Any], Call], Any]


@dataclass(frozen=True, slots=True)
class PythonTool:
    """What an entry point offers. A plain function may carry the last three as attributes."""

    execute: Callable[[dict[str, Any], Call], Any]
    preview: Previewing | None = None
    reconcile: Callable[[dict[str, Any], Call], Reconciled] | None = None
    compensate: Callable[[dict[str, Any], Call, Any, str | None], Any] | None = None


@dataclass(frozen=True, slots=True)
class PythonEffect:
    """The installed function of this name, or of the tool's name where it is None.

    `previewer` names the installed function that previews it, where that is not the tool's own.
    """

    function: str | None = None
    previewer: str | None = None

    def preview(self, call: Call) -> Preview:
        try:
            look = previewing(self.function or call.tool, self.previewer)
        except NotInstalled as fault:
            raise PreviewFailed(str(fault)) from fault
        return _previewed(call, partial(look, json.loads(call.arguments), call))

    def execute(self, call: Call) -> Observed:
        try:
            tool = tool_named(self.function or call.tool)
        except NotInstalled as fault:
            return Observed(Outcome.NOT_PERFORMED, error=str(fault))
        return _observed(call, partial(tool.execute, json.loads(call.arguments), call))

    def reconcile(self, call: Call) -> Reconciled:
        try:
            tool = tool_named(self.function or call.tool)
        except NotInstalled as fault:
            return Reconciled(Finding.CANNOT_TELL, error=str(fault))
        if tool.reconcile is None:
            return Reconciled(Finding.CANNOT_TELL, error="The tool cannot be asked.")
        return _reconciled(call, partial(tool.reconcile, json.loads(call.arguments), call))

    def compensate(self, call: Call, result: Any, external_id: str | None) -> Observed:
        try:
            tool = tool_named(self.function or call.tool)
        except NotInstalled as fault:
            return Observed(Outcome.NOT_PERFORMED, error=str(fault))
        if tool.compensate is None:
            return Observed(Outcome.FAILED, error="The tool has no compensation.")
        arguments = json.loads(call.arguments)
        return _observed(call, partial(tool.compensate, arguments, call, result, external_id))


@cache
def tool_named(name: str) -> PythonTool:
    """Return the installed tool of this name, imported once a process. Raises `NotInstalled`."""
    loaded = installed_named(name, GROUP, "tool")
    return loaded if isinstance(loaded, PythonTool) else _from_function(loaded)


def previewing(tool: str, previewer: str | None) -> Previewing:
    """Return what previews an installed tool: its own preview, or the installed one of that name.

    Raises `NotInstalled`.
    """
    if previewer is not None:
        found: Previewing = installed_named(previewer, PREVIEWS, "preview")
        return found
    own = tool_named(tool).preview
    if own is None:
        raise NotInstalled("The tool has no preview.")
    return own


@cache
def installed_named(name: str, group: str, noun: str) -> Any:
    """Return what is installed in a group of entry points under a name. Raises `NotInstalled`."""
    offers = _installed(group).get(name, ())
    if not offers:
        raise NotInstalled(f"No installed package offers a {noun} named {plain(name, 100)}.")
    if len({offer.value for offer in offers}) > 1:
        raise NotInstalled(f"Several installed packages offer a {noun} named {name}.")
    return _load(offers[0], noun)


@cache
def _installed(group: str) -> dict[str, list[EntryPoint]]:
    found: dict[str, list[EntryPoint]] = {}
    for point in entry_points(group=group):
        found.setdefault(point.name, []).append(point)
    return found


def forget_installed() -> None:
    """Look the installed packages up anew, where the path to them has changed."""
    _installed.cache_clear()
    installed_named.cache_clear()
    tool_named.cache_clear()


def _load(point: EntryPoint, noun: str) -> Any:
    try:
        loaded = point.load()
    except Exception as fault:  # foreign code: importing it may raise anything
        _log_raised(f"importing {point.value}", fault)
        raise NotInstalled(f"The installed {noun} {point.name} cannot be imported.") from fault
    called = loaded.execute if isinstance(loaded, PythonTool) else loaded
    if not callable(called) or inspect.iscoroutinefunction(called):
        raise NotInstalled(f"The installed {noun} {point.name} is no synchronous function.")
    return loaded


def _from_function(function: Any) -> PythonTool:
    return PythonTool(
        function,
        getattr(function, "preview", None),
        getattr(function, "reconcile", None),
        getattr(function, "compensate", None),
    )


def _observed(call: Call, act: Callable[[], Any]) -> Observed:
    try:
        value = act()
    except NotPerformed as fault:
        delay = delay_of(fault.retry_after)
        return Observed(Outcome.NOT_PERFORMED, error=plain(str(fault)), retry_after=delay)
    except Refused as fault:
        return Observed(Outcome.FAILED, error=plain(str(fault)))
    except Exception as fault:  # noqa: BLE001  (foreign code: whatever it raises proves nothing)
        _log_raised(f"{call.tool} (attempt {call.attempt})", fault)
        return Observed(Outcome.UNKNOWN, error="The tool broke off; whether it acted is not known.")
    if isinstance(value, Observed):
        return _said(value)
    return _said(Observed(Outcome.SUCCEEDED, value))


def _said(seen: Observed) -> Observed:
    """Keep of what a tool says what can be recorded."""
    try:
        outcome = Outcome(seen.outcome)
        result, is_replaced = _kept(seen.result)
    except (TypeError, ValueError, RecursionError, Problem):
        return Observed(
            Outcome.UNKNOWN,
            error="What the tool says cannot be recorded; whether it acted is not known.",
        )
    error = REPLACED if is_replaced and outcome is Outcome.SUCCEEDED else seen.error
    return Observed(
        outcome,
        result,
        external_id_of(seen.external_id),
        cost_of(seen.cost),
        None if error is None else plain(str(error)),
        delay_of(seen.retry_after),
    )


def _storable(value: Any) -> Any:
    """Return the value as JSON has it: what is read back later is what was recorded."""
    if value is None:
        return None
    text = canonical(value)
    if len(text) > MAX_RESULT_BYTES:
        raise ValueError("larger than 1 MiB")
    return parse(text)


def _kept(value: Any) -> tuple[Any, bool]:
    """Return what can be kept of what happened, and whether a character of it was replaced."""
    try:
        return _storable(value), False
    except (ValueError, Problem):
        return _storable(kept(value)), loses(value)


def _previewed(call: Call, act: Callable[[], Any]) -> Preview:
    try:
        value = within(call.timeout, call.tool, act)
        shown = _storable(asdict(value) if isinstance(value, Preview) else value)
        return preview_of(shown if isinstance(shown, dict) else {})
    except (PreviewFailed, Refused, NotPerformed) as fault:
        raise PreviewFailed(plain(str(fault))) from fault
    except (UnreadablePreview, Late) as fault:
        raise PreviewFailed(f"No preview could be taken. {fault}") from fault
    except Exception as fault:  # foreign code; a preview has no effect
        _log_raised(f"preview of {call.tool}", fault)
        raise PreviewFailed("No preview could be taken. The tool broke off.") from fault


def _reconciled(call: Call, act: Callable[[], Reconciled]) -> Reconciled:
    try:
        found = act()
        return Reconciled(
            Finding(found.outcome),
            _kept(found.result)[0],
            external_id_of(found.external_id),
            None if found.error is None else plain(found.error),
        )
    except Exception as fault:  # noqa: BLE001  (foreign code; asking has no effect)
        _log_raised(f"reconciling {call.tool} (attempt {call.attempt})", fault)
        return Reconciled(Finding.CANNOT_TELL, error="The tool broke off while it was asked.")


def _log_raised(what: str, fault: Exception) -> None:
    # Without the exception's message: it may quote an argument that must not be logged.
    frames = "".join(traceback.format_tb(fault.__traceback__))
    logger.error("%s raised %s\n%s", what, type(fault).__qualname__, frames)
