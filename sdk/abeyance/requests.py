"""One call of the API, however often it has to be sent.

Each POST has a key of its own under which the service does a thing once, so a lost answer is asked
for again. Sent again is what got no answer, what is still in progress (409 `request-in-progress`),
and what the service or a proxy in front of it could not take now (429, 502, 503, 504).
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from abeyance.errors import ProblemError, Unreachable, problem
from abeyance.protocol import Answer, Flow, Lost, Request, now, send, sleep

FIRST_PAUSE: Final = 0.2
LONGEST_PAUSE: Final = 10.0
LATER: Final = frozenset({429, 502, 503, 504})
IN_PROGRESS: Final = "request-in-progress"
DEFAULT_PATIENCE: Final = 120.0


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls, and for how many seconds a service that does not answer is tried."""

    key: str
    patience: float = DEFAULT_PATIENCE

    def headers(self, idempotency_key: str | None) -> dict[str, str]:
        headers = {"Authorization": f"Bearer {self.key}", "Accept": "application/json"}
        return headers | ({"Idempotency-Key": idempotency_key} if idempotency_key else {})

    def get(
        self, path: str, query: Mapping[str, str | int | float] | None = None
    ) -> Flow[dict[str, Any]]:
        """Read something. Raises Unreachable and ProblemError."""
        request = Request("GET", path, query or {}, self.headers(None))
        return (yield from self._until_answered(request))

    def post(
        self, path: str, body: Mapping[str, Any], key: str | None = None
    ) -> Flow[dict[str, Any]]:
        """Have something done once, under this key or a new one. Raises Unreachable, ProblemError."""
        headers = self.headers(key or new_key())
        request = Request("POST", path, {}, headers, dict(body))
        return (yield from self._until_answered(request))

    def _until_answered(self, request: Request) -> Flow[dict[str, Any]]:
        patient_until = (yield from now()) + self.patience
        pause = FIRST_PAUSE
        while True:
            came = yield from send(request)
            if not _is_for_later(came):
                return _document(came)
            wait = max(pause * random.uniform(0.5, 1), _asked_for(came))  # noqa: S311 - no secret
            if (yield from now()) + wait > patient_until:
                raise _impatient(came)
            yield from sleep(wait)
            pause = min(pause * 2, LONGEST_PAUSE)


def new_key() -> str:
    return str(uuid.uuid4())


def _is_for_later(came: Answer | Lost) -> bool:
    if isinstance(came, Lost):
        return True
    return came.status in LATER or (came.document or {}).get("code") == IN_PROGRESS


def _asked_for(came: Answer | Lost) -> float:
    """Return the seconds that the answer asks to wait; it may name a date, which is passed over."""
    given = came.headers.get("retry-after", "") if isinstance(came, Answer) else ""
    return float(given) if given.isascii() and given.isdigit() else 0.0


def _impatient(came: Answer | Lost) -> Exception:
    if isinstance(came, Lost):
        fault = Unreachable(f"no answer: {str(came.fault) or type(came.fault).__name__}")
        fault.__cause__ = came.fault
        return fault
    return Unreachable(f"the service answers {came.status} and asks to be tried later")


def _document(came: Answer | Lost) -> dict[str, Any]:
    if isinstance(came, Lost):
        raise TypeError("there is no answer to read")
    if 200 <= came.status < 300 and came.document is not None:
        return dict(came.document)
    if came.document is not None and "code" in came.document:
        raise problem(came.document)
    raise ProblemError(
        {
            "code": "unexpected-answer",
            "status": came.status,
            "detail": "The answer is none of this service's: is this its address?",
        }
    )
