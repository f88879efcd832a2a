"""Who judges what a tool did: a far end that is asked, or a function of an installed package.

A verifier sees the call and its receipt and says `passed` or `rejected`, with words for people.
Whatever else comes of asking it (no answer, one that can't be read, a function that breaks off)
is no ruling: what nobody said is never taken for passed. Asking has no effect, so it may be
repeated.
"""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Protocol

from config.jsontext import canonical
from interrupts.effects.base import MAX_ERROR, Call, plain
from interrupts.effects.declared.effect import DeclaredEffect, Part, SecretReader
from interrupts.effects.declared.outcomes import Means
from interrupts.effects.exchange import Lost, NotSent, Unsendable
from interrupts.effects.http import HttpEffect, Unreadable, log_fault, status_of
from interrupts.effects.python import NotInstalled, installed_named

GROUP: Final = "abeyance.verifiers"

logger = logging.getLogger(__name__)


class Says(StrEnum):
    """What a verifier may say of a receipt."""

    PASSED = "passed"
    REJECTED = "rejected"


_RULES: Final = {Means.PASSED: Says.PASSED, Means.REJECTED: Says.REJECTED}


@dataclass(frozen=True, slots=True)
class Ruling:
    """What came of asking a verifier; `says` is None where it said neither, and `error` why."""

    says: Says | None
    words: str = ""
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Seen:
    """The receipt that is judged, as a verifier gets it."""

    id: str
    source: str
    result: Any
    external_id: str | None
    observed_at: str  # RFC 3339

    def document(self) -> dict[str, Any]:
        return {
            "external_id": self.external_id,
            "id": self.id,
            "observed_at": self.observed_at,
            "result": self.result,
            "source": self.source,
        }


class Verifier(Protocol):
    """Call it with no transaction open; it never raises, and returns within the call's time."""

    def judge(self, call: Call, seen: Seen) -> Ruling:
        """Say what the verifier says of the receipt."""


VerifierFunction = Callable[[dict[str, Any], dict[str, Any], Call], Ruling]


@dataclass(frozen=True, slots=True)
class HttpVerifier:
    """A far end that judges: asked by requests that are signed as the tool's own are."""

    url: str
    far_end: HttpEffect

    def judge(self, call: Call, seen: Seen) -> Ruling:
        body = b'{"arguments":%b,"receipt":%b,"run":%b,"step":%b,"tool":%b,"tool_version":%d}' % (
            call.arguments,
            canonical(seen.document()),
            canonical(call.run),
            canonical(call.step),
            canonical(call.tool),
            call.tool_version,
        )
        try:
            answer = self.far_end.read(self.url, call, body)
        except (Unsendable, NotSent, Lost, Unreadable) as fault:
            log_fault("judging", call, fault)
            return Ruling(None, error=plain(str(fault)))
        return _ruled(answer.get("verdict"), answer.get("words"))


@dataclass(frozen=True, slots=True)
class DeclaredVerifier:
    """A checker that speaks a protocol of its own: what its answers mean is declared.

    What no rule is about, and what can't be read, is no ruling.
    """

    part: Part
    far_end: DeclaredEffect

    def judge(self, call: Call, seen: Seen) -> Ruling:
        more = {
            "receipt": seen.document(),
            "tool": call.tool,
            "tool_version": call.tool_version,
        }
        try:
            answered = self.far_end.ask(self.part, call, more)
        except (Unsendable, NotSent, Lost) as fault:
            log_fault("judging", call, fault)
            return Ruling(None, error=plain(str(fault)))
        rule = self.part.decide(answered)
        says = _RULES.get(rule.means) if rule else None
        if says is None:
            said = f"The verifier answered {status_of(answered.answer)} and ruled nothing."
            return Ruling(None, error=plain(said))
        return Ruling(says, plain(self.part.words(answered), MAX_ERROR))


@dataclass(frozen=True, slots=True)
class PythonVerifier:
    """The installed function of this name: `function(arguments, receipt, call) -> Ruling`."""

    function: str

    def judge(self, call: Call, seen: Seen) -> Ruling:
        try:
            judge = verifier_named(self.function)
        except NotInstalled as fault:
            return Ruling(None, error=str(fault))
        try:
            ruling = judge(json.loads(call.arguments), seen.document(), call)
            return _ruled(ruling.says, ruling.words)
        except Exception as fault:  # noqa: BLE001  (foreign code; asking has no effect)
            _log_raised(call, fault)
            return Ruling(None, error="The verifier broke off.")


def _ruled(says: Any, words: Any) -> Ruling:
    """Read what was said; anything but one of the two is no ruling."""
    if not isinstance(says, str) or says not in [*Says]:
        return Ruling(None, error="The verifier said neither passed nor rejected.")
    return Ruling(Says(says), plain(words, MAX_ERROR) if isinstance(words, str) else "")


def _log_raised(call: Call, fault: Exception) -> None:
    # Without the exception's message: it may quote an argument that must not be logged.
    frames = "".join(traceback.format_tb(fault.__traceback__))
    logger.error("the verifier of %s raised %s\n%s", call.tool, type(fault).__qualname__, frames)


def verifier_named(name: str) -> VerifierFunction:
    """Return the installed verifier of this name. Raises `NotInstalled`."""
    found: VerifierFunction = installed_named(name, GROUP, "verifier")
    return found


def verifier_for(
    declared: Mapping[str, Any], far_end: HttpEffect, tenant: str, read_secrets: SecretReader
) -> Verifier:
    """Return who judges, as it is declared; `far_end` signs and is bounded as the tool's calls."""
    if declared["kind"] == "python":
        return PythonVerifier(declared["function"])
    if "request" in declared:
        part = Part.of("verifier", declared)
        return DeclaredVerifier(
            part, DeclaredEffect(far_end, {"verifier": part}, tenant, read_secrets)
        )
    return HttpVerifier(declared["url"], far_end)
