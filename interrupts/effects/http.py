"""The executor `http`: signed requests to a far end, and what its answers prove.

An answer proves something only where it must: a 2xx that can be read (done), a refusal that is
definite (not done, and never will be), a 429 (not begun). Everything else leaves the outcome
unknown. The protocol is the API reference's "How the service calls tools over HTTP".
"""

import json
import logging
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final
from uuid import uuid4

from standardwebhooks import Webhook

from config.errors import Problem
from config.keeping import parse_kept
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
    delay_of,
    external_id_of,
    plain,
)
from interrupts.effects.deadline import Deadline
from interrupts.effects.exchange import Answer, Lost, NotSent, Request, Unsendable, exchange
from interrupts.effects.previews import UnreadablePreview, preview_of
from interrupts.effects.targets import with_key

REFUSALS: Final = frozenset({400, 401, 403, 404, 405, 410, 413, 415, 422})
# A compensation is deduplicated by its key, so only a status that asks for patience is no refusal.
TRY_LATER: Final = frozenset({408, 425, 429})
MAX_QUOTE: Final = 200

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class HttpEffect:
    """A tool whose far end is reached over HTTP. What it has no URL for, it cannot do.

    `allowed_hosts` are the `host:port` pairs that may be private. `quote_refusals` puts the
    beginning of a refusal's body into the error: only where no argument is sensitive, since a
    far end may repeat what it was sent.
    """

    url: str | None
    preview_url: str | None
    reconcile_url: str | None
    compensate_url: str | None
    secret: str | None = field(repr=False)
    allowed_hosts: frozenset[str]
    quote_refusals: bool = False

    def preview(self, call: Call) -> Preview:
        if self.preview_url is None:
            raise PreviewFailed("The tool has no preview.")
        body = b'{"arguments":%b,"tool":%b}' % (call.arguments, _text(call.tool))
        try:
            answer = self._ask("POST", self.preview_url, call, body=body)
            return preview_of(_readable(answer))
        except (Unsendable, NotSent, Lost, Unreadable, UnreadablePreview) as fault:
            log_fault("preview", call, fault)
            raise PreviewFailed(f"No preview could be taken. {fault}") from fault

    def execute(self, call: Call) -> Observed:
        if self.url is None:
            raise TypeError(f"{call.tool} is run by its agent, not by the service")
        body = b'{"arguments":%b,"attempt":%b,"run":%b,"step":%b,"tool":%b}' % (
            call.arguments,
            _text(call.attempt),
            _text(call.run),
            _text(call.step),
            _text(call.tool),
        )
        headers = [("Idempotency-Key", call.idempotency_key)]
        try:
            answer = self._ask("POST", self.url, call, call.attempt, headers, body)
        except (Unsendable, NotSent, Lost) as fault:
            return not_answered(call, fault)
        return self._observed(call, answer)

    def reconcile(self, call: Call) -> Reconciled:
        if self.reconcile_url is None:
            return Reconciled(Finding.CANNOT_TELL, error="The tool cannot be asked.")
        try:
            answer = self._ask("GET", with_key(self.reconcile_url, call.idempotency_key), call)
        except (Unsendable, NotSent, Lost) as fault:
            log_fault("reconcile", call, fault)
            return Reconciled(Finding.CANNOT_TELL, error=str(fault))
        return _found(answer)

    def compensate(self, call: Call, result: Any, external_id: str | None) -> Observed:
        if self.compensate_url is None:
            return Observed(Outcome.FAILED, error="The tool has no compensation.")
        body = b'{"arguments":%b,"external_id":%b,"result":%b}' % (
            call.arguments,
            _text(external_id),
            _text(result),
        )
        headers = [("Idempotency-Key", compensation_key(call))]
        url = with_key(self.compensate_url, call.idempotency_key)
        try:
            answer = self._ask("POST", url, call, None, headers, body)
        except (Unsendable, NotSent, Lost) as fault:
            return not_answered(call, fault)
        return self._compensated(answer)

    def read(self, url: str, call: Call, body: bytes) -> dict[str, Any]:
        """Send a signed question and return the JSON object of its 2xx answer.

        Raises `Unsendable`, `NotSent`, `Lost` and `Unreadable`.
        """
        return _readable(self._ask("POST", url, call, body=body))

    def _ask(
        self,
        method: str,
        url: str,
        call: Call,
        message_id: str | None = None,
        headers: list[tuple[str, str]] | None = None,
        body: bytes = b"",
    ) -> Answer:
        deadline = Deadline.after(call.timeout)
        request = Request(
            method,
            url,
            [
                *(headers or []),
                *([("Content-Type", "application/json")] if body else []),
                *self._signed(message_id or f"msg_{uuid4().hex}", body),
            ],
            body,
        )
        return exchange(
            request,
            allowed=self.allowed_hosts,
            deadline=deadline,
            cancellation=call.cancellation,
        )

    def _signed(self, message_id: str, body: bytes) -> list[tuple[str, str]]:
        if self.secret is None:
            return []
        now = datetime.fromtimestamp(int(time.time()), tz=UTC)
        return [
            ("webhook-id", message_id),
            ("webhook-timestamp", str(int(now.timestamp()))),
            ("webhook-signature", Webhook(self.secret).sign(message_id, now, body.decode())),
        ]

    def _observed(self, call: Call, answer: Answer) -> Observed:
        if is_success(answer.status):
            return _succeeded(call, answer)
        if answer.status == 429:
            return busy(answer)
        if answer.status in REFUSALS:
            return self._refused(answer)
        return Observed(
            Outcome.UNKNOWN,
            error=f"The far end answered {status_of(answer)}; whether it acted is not known.",
        )

    def _compensated(self, answer: Answer) -> Observed:
        if is_success(answer.status):
            return _undone(answer)
        if answer.status == 429:
            return busy(answer)
        if 400 <= answer.status < 500 and answer.status not in TRY_LATER:
            return self._refused(answer)
        return Observed(
            Outcome.UNKNOWN,
            error=f"The far end answered {status_of(answer)}; whether it is undone is not known.",
        )

    def _refused(self, answer: Answer) -> Observed:
        said = ""
        if self.quote_refusals and answer.body:
            said = plain(answer.body.decode("utf-8", "replace"), MAX_QUOTE)
        error = f"The far end refused it ({status_of(answer)})" + (f": {said}" if said else ".")
        return Observed(Outcome.FAILED, error=plain(error))


class Unreadable(Exception):
    """The far end answered, but not with what was asked for."""


def _text(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def is_success(status: int) -> bool:
    return 200 <= status < 300


def status_of(answer: Answer) -> str:
    redirect = ", a redirect, which is not followed" if 300 <= answer.status < 400 else ""
    return f"with status {answer.status}{redirect}"


def log_fault(act: str, call: Call, fault: Exception) -> None:
    logger.warning(
        "%s of %s (attempt %s): %s%s",
        act,
        call.tool,
        call.attempt,
        fault,
        f" [{fault.__cause__}]" if fault.__cause__ else "",
    )


def not_answered(call: Call, fault: Unsendable | NotSent | Lost) -> Observed:
    log_fault("call", call, fault)
    match fault:
        case Unsendable():
            return Observed(Outcome.FAILED, error=plain(str(fault)), sent=False)
        case NotSent():
            return Observed(Outcome.NOT_PERFORMED, error=plain(str(fault)), sent=False)
        case Lost():
            error = f"{fault} Whether it acted is not known."
            return Observed(Outcome.UNKNOWN, error=plain(error))


def _readable(answer: Answer, *required: str) -> dict[str, Any]:
    """Return the JSON object of a 2xx answer. Raises `Unreadable`."""
    return _read(answer, *required)[0]


def _read(answer: Answer, *required: str) -> tuple[dict[str, Any], bool]:
    """Return it, and whether something in it was replaced that cannot be kept."""
    if not is_success(answer.status):
        raise Unreadable(f"The far end answered {status_of(answer)}.")
    value, is_replaced = _object(answer)
    for name in required:
        if name not in value:
            raise Unreadable(f"The far end's answer has no {name}.")
    return value, is_replaced


def _object(answer: Answer) -> tuple[dict[str, Any], bool]:
    if answer.body is None:
        raise Unreadable(f"The far end's answer could not be read: {answer.fault}.")
    try:
        value, is_replaced = parse_kept(answer.body)
    except Problem as fault:
        # Neither the detail nor its pointer: they may quote what the far end was sent.
        raise Unreadable("The far end's answer is not JSON as it should be.") from fault
    if not isinstance(value, dict):
        raise Unreadable("The far end's answer is not a JSON object.")
    return value, is_replaced


def _succeeded(call: Call, answer: Answer) -> Observed:
    try:
        value, is_replaced = _read(answer, "result")
    except Unreadable as fault:
        log_fault("answer", call, fault)
        return Observed(Outcome.UNKNOWN, error=f"{fault} Whether it acted is not known.")
    cost = cost_of(value.get("cost"))
    if cost is None and value.get("cost") is not None:
        logger.warning("%s (attempt %s) named a cost that is none", call.tool, call.attempt)
    return Observed(
        Outcome.SUCCEEDED,
        value["result"],
        external_id_of(value.get("external_id")),
        cost,
        REPLACED if is_replaced else None,
    )


def _undone(answer: Answer) -> Observed:
    """Any 2xx ends a compensation; its body is kept where it can be read."""
    try:
        value = _readable(answer)
    except Unreadable:
        return Observed(Outcome.SUCCEEDED)
    return Observed(
        Outcome.SUCCEEDED,
        value.get("result"),
        external_id_of(value.get("external_id")),
        cost_of(value.get("cost")),
    )


def busy(answer: Answer) -> Observed:
    return Observed(
        Outcome.NOT_PERFORMED,
        error="The far end is busy (status 429) and has not begun.",
        retry_after=retry_after(answer.headers),
    )


def retry_after(headers: dict[str, str]) -> float | None:
    """Read Retry-After (RFC 9110, 10.2.3): seconds, or a date beside the answer's own Date.

    At most an hour. None where it is absent or neither.
    """
    value = headers.get("retry-after", "").strip()
    if value.isascii() and value.isdigit():
        return delay_of(int(value[:10]))
    if (until := _moment(value)) is None:
        return None
    return delay_of(until - (_moment(headers.get("date", "")) or time.time()))


def _moment(text: str) -> float | None:
    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError):
        return None


_SAID = {
    (200, "performed"): Finding.PERFORMED,
    (200, "failed"): Finding.FAILED,
    (200, "pending"): Finding.PENDING,
    (404, "not_performed"): Finding.NOT_PERFORMED,
}


def _found(answer: Answer) -> Reconciled:
    """Read what a far end says of a call. A bare 404 may be a wrong route, and proves nothing."""
    try:
        value, is_replaced = _object(answer)
    except Unreadable as fault:
        return Reconciled(Finding.CANNOT_TELL, error=f"{fault} (Answered {status_of(answer)}.)")
    outcome = value.get("outcome")
    finding = _SAID.get((answer.status, outcome)) if isinstance(outcome, str) else None
    if finding is None:
        return Reconciled(
            Finding.CANNOT_TELL,
            error=f"The far end answered {status_of(answer)} and settled nothing.",
        )
    return Reconciled(
        finding,
        value.get("result"),
        external_id_of(value.get("external_id")),
        REPLACED if is_replaced else None,
    )
