"""The executor `http` where the request is declared: a far end that speaks its own protocol.

Secrets are read for the moment of each call, so that one which was removed is in no request after
that; each is taken out of whatever comes back before it is looked at.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Self

from config.jsontext import canonical
from interrupts.effects.base import (
    REPLACED,
    Call,
    Finding,
    Observed,
    Outcome,
    Preview,
    PreviewFailed,
    Reconciled,
    compensation_key,
    cost_of,
    external_id_of,
    plain,
)
from interrupts.effects.deadline import Deadline
from interrupts.effects.declared.filling import Filler
from interrupts.effects.declared.outcomes import (
    Body,
    Means,
    Rule,
    decide,
    read_body,
)
from interrupts.effects.declared.requests import DeclaredRequest, credential
from interrupts.effects.declared.scrubbing import Scrubber
from interrupts.effects.exchange import Answer, Lost, NotSent, Unsendable, exchange
from interrupts.effects.http import (
    MAX_QUOTE,
    REFUSALS,
    TRY_LATER,
    HttpEffect,
    busy,
    is_success,
    log_fault,
    not_answered,
    retry_after,
    status_of,
)
from interrupts.effects.previews import UnreadablePreview, preview_of
from interrupts.paths import MISSING, look_up, parse_pointer

PARTS: Final = ("executor", "preview", "reconcile", "compensate")
_FINDINGS: Final = {one.value: one for one in Finding}
SecretReader = Callable[[frozenset[str]], Mapping[str, str]]


class _Unreadable(Exception):
    """The answer is none that the declaration describes."""


class Seen(NamedTuple):
    """An answer as it was read: no secret is left in it."""

    answer: Answer
    body: Body
    filler: Filler
    scrubber: Scrubber

    @property
    def status(self) -> int:
        return self.answer.status


@dataclass(frozen=True, slots=True)
class Part:
    """One of the things that a tool, or who judges it, is asked, as it is declared."""

    request: DeclaredRequest
    answer: Mapping[str, Any]
    rules: tuple[Rule, ...]

    @classmethod
    def of(cls, name: str, declared: Mapping[str, Any]) -> Self:
        return cls(
            DeclaredRequest.of(name, declared["request"]),
            declared.get("answer", {}),
            tuple(Rule.of(rule) for rule in declared.get("outcomes", ())),
        )

    @property
    def credentials(self) -> list[Mapping[str, str]]:
        return [said for said in self.request.headers.values() if not isinstance(said, str)]

    def decide(self, seen: Seen) -> Rule | None:
        return decide(self.rules, seen.status, seen.body, seen.filler)

    def result(self, seen: Seen) -> Any:
        """Return the result where the declaration says it stands. Raises `_Unreadable`."""
        if self.answer.get("body") == "none":
            if seen.body.fault or seen.body.value is not MISSING:
                raise _Unreadable("The far end's answer has a body, and none was declared.")
            return None
        if seen.body.fault:
            raise _Unreadable(f"The far end's answer could not be read: {seen.body.fault}.")
        value = self._at("result", seen, default="")
        if value is MISSING:
            raise _Unreadable("The far end's answer has no result where it was declared.")
        return value

    def found(self, seen: Seen) -> Any:
        """Return the result of a call that was found out; None where the answer holds none."""
        value = self._at("result", seen, default="")
        return None if value is MISSING else value

    def external_id(self, seen: Seen) -> str | None:
        place = self.answer.get("external_id")
        if isinstance(place, Mapping):
            said = seen.answer.headers.get(place["header"].lower())
            return external_id_of(seen.scrubber.text(said)) if said else None
        return external_id_of(self._at("external_id", seen))

    def cost(self, seen: Seen) -> Any:
        return cost_of(self._at("cost", seen))

    def complaint(self, seen: Seen) -> str:
        """What the far end says against it: where that was declared, else all that it says."""
        if seen.body.value is MISSING:
            return seen.scrubber.text((seen.answer.body or b"").decode("utf-8", "replace"))
        value = self._at("error", seen, default="")
        if value is MISSING:
            return ""
        return value if isinstance(value, str) else canonical(value).decode()

    def words(self, seen: Seen) -> str:
        """What a verifier says beside its verdict, where that was declared and is text."""
        value = self._at("words", seen)
        return value if isinstance(value, str) else ""

    def _at(self, name: str, seen: Seen, default: str | None = None) -> Any:
        place = self.answer.get(name, default)
        if place is None or seen.body.value is MISSING:
            return MISSING
        return look_up(seen.body.value, parse_pointer(place))


@dataclass(frozen=True, slots=True)
class DeclaredEffect:
    """A tool of which some parts are declared requests; the others are `own`, signed by us."""

    own: HttpEffect
    parts: Mapping[str, Part]
    tenant: str
    read_secrets: SecretReader = field(repr=False)

    def preview(self, call: Call) -> Preview:
        if (part := self.parts.get("preview")) is None:
            return self.own.preview(call)
        try:
            seen = self.ask(part, call, {})
            return preview_of(_as_preview(part, seen, self._values(call)))
        except (Unsendable, NotSent, Lost, _Unreadable, UnreadablePreview) as fault:
            log_fault("preview", call, fault)
            raise PreviewFailed(f"No preview could be taken. {fault}") from fault

    def execute(self, call: Call) -> Observed:
        if (part := self.parts.get("executor")) is None:
            return self.own.execute(call)
        try:
            seen = self.ask(part, call, {}, key=call.idempotency_key)
        except (Unsendable, NotSent, Lost) as fault:
            return not_answered(call, fault)
        return self._observed(part, seen, call, undoes=False)

    def reconcile(self, call: Call) -> Reconciled:
        if (part := self.parts.get("reconcile")) is None:
            return self.own.reconcile(call)
        try:
            seen = self.ask(part, call, {})
        except (Unsendable, NotSent, Lost) as fault:
            log_fault("reconcile", call, fault)
            return Reconciled(Finding.CANNOT_TELL, error=plain(str(fault)))
        rule = part.decide(seen)
        finding = _FINDINGS.get(rule.means) if rule else None
        if finding is None:
            said = f"The far end answered {status_of(seen.answer)} and settled nothing."
            return Reconciled(Finding.CANNOT_TELL, error=said)
        performed = finding is Finding.PERFORMED
        result = part.found(seen) if performed else None
        return Reconciled(finding, result, part.external_id(seen))

    def compensate(self, call: Call, result: Any, external_id: str | None) -> Observed:
        if (part := self.parts.get("compensate")) is None:
            return self.own.compensate(call, result, external_id)
        key = compensation_key(call)
        more = {"compensation_key": key, "external_id": external_id, "result": result}
        try:
            seen = self.ask(part, call, more, key=key)
        except (Unsendable, NotSent, Lost) as fault:
            return not_answered(call, fault)
        return self._observed(part, seen, call, undoes=True)

    def ask(self, part: Part, call: Call, more: Mapping[str, Any], *, key: str = "") -> Seen:
        """Send the part's request once. Raises `Unsendable`, `NotSent` and `Lost`."""
        deadline = Deadline.after(call.timeout)
        filler = Filler({**self._values(call), **more})
        secrets = self._secrets()
        request = part.request.fill(filler, secrets, key)
        answer = exchange(
            request,
            allowed=self.own.allowed_hosts,
            deadline=deadline,
            cancellation=call.cancellation,
        )
        scrubber = self._scrubber(secrets)
        return Seen(answer, read_body(answer, scrubber), filler, scrubber)

    def _values(self, call: Call) -> dict[str, Any]:
        return {
            "arguments": json.loads(call.arguments),
            "key": call.idempotency_key,
            "run": call.run,
            "step": call.step,
            "tenant": self.tenant,
        }

    def _credentials(self) -> list[Mapping[str, str]]:
        return [said for part in self.parts.values() for said in part.credentials]

    def _secrets(self) -> Mapping[str, str]:
        names = frozenset(said["secret"] for said in self._credentials())
        return self.read_secrets(names) if names else {}

    def _scrubber(self, secrets: Mapping[str, str]) -> Scrubber:
        """Take out every secret of the tool, alone and as it was sent."""
        known = [said for said in self._credentials() if said["secret"] in secrets]
        sent = (credential(said, secrets).removeprefix("Basic ") for said in known)
        return Scrubber([*secrets.values(), *sent])

    def _observed(self, part: Part, seen: Seen, call: Call, *, undoes: bool) -> Observed:
        """Say what an answer proves: by the first rule about it, else by its status.

        Any 2xx ends what undoes an effect, and almost any 4xx refuses it: it has a key of its own.
        """
        if (rule := part.decide(seen)) is not None:
            return self._ruled(part, rule, seen, call, is_proved=undoes or bool(rule.where))
        if is_success(seen.status):
            return _succeeded(part, seen, call, is_proved=undoes)
        if seen.status == 429:
            return busy(seen.answer)
        if undoes:
            refuses = 400 <= seen.status < 500 and seen.status not in TRY_LATER
        else:
            refuses = seen.status in REFUSALS
        return self._refused(part, seen) if refuses else _unknown(seen)

    def _ruled(
        self, part: Part, rule: Rule, seen: Seen, call: Call, *, is_proved: bool
    ) -> Observed:
        match rule.means:
            case Means.PERFORMED:
                return _succeeded(part, seen, call, is_proved=is_proved)
            case Means.FAILED:
                return self._refused(part, seen)
            case Means.NOT_PERFORMED:
                error = f"The far end answered {status_of(seen.answer)}: it has not begun."
                wait = retry_after(seen.answer.headers)
                return Observed(Outcome.NOT_PERFORMED, error=error, retry_after=wait)
            case _:
                return _unknown(seen)

    def _refused(self, part: Part, seen: Seen) -> Observed:
        said = plain(part.complaint(seen), MAX_QUOTE) if self.own.quote_refusals else ""
        error = f"The far end refused it ({status_of(seen.answer)})" + (
            f": {said}" if said else "."
        )
        return Observed(Outcome.FAILED, error=plain(error))


def _succeeded(part: Part, seen: Seen, call: Call, *, is_proved: bool) -> Observed:
    """Take a success; one that is proved already needs no result where it was declared."""
    try:
        result = part.result(seen)
    except _Unreadable as fault:
        if not is_proved:
            log_fault("answer", call, fault)
            return Observed(Outcome.UNKNOWN, error=f"{fault} Whether it acted is not known.")
        result = None
    said = REPLACED if seen.body.is_replaced else None
    return Observed(Outcome.SUCCEEDED, result, part.external_id(seen), part.cost(seen), said)


def _unknown(seen: Seen) -> Observed:
    error = f"The far end answered {status_of(seen.answer)}; whether it acted is not known."
    return Observed(Outcome.UNKNOWN, error=error)


def _as_preview(part: Part, seen: Seen, values: Mapping[str, Any]) -> dict[str, Any]:
    """Make a preview of what the far end says of how things are. Raises `_Unreadable`."""
    if not is_success(seen.status):
        raise _Unreadable(f"The far end answered {status_of(seen.answer)}.")
    if seen.body.value is MISSING:
        raise _Unreadable("The far end's answer is no JSON that could be shown.")
    shown = Filler({**values, "answer": seen.body.value}).structure(dict(part.answer))
    if "summary" not in shown:
        raise _Unreadable("The far end's answer does not hold what the summary names.")
    return dict(shown)
