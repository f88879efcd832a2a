"""Who calls: the service, by its signatures, or somebody who holds the shop's own key."""

from __future__ import annotations

import hmac
import json
import secrets
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from standardwebhooks import Webhook

TOLERANCE_SECONDS: Final = 300


class Stranger(Exception):
    """The call is neither signed by the service nor made with the shop's key."""


def signed(secret: str, headers: Mapping[str, str], body: bytes) -> bool:
    """Whether the request bears a signature of Standard Webhooks, made just now.

    Signed anew and compared, since a library's `verify` reads the body as JSON, and a look-up has none.
    Raises LookupError or ValueError for headers that are missing or no numbers.
    """
    message, sent = headers["webhook-id"], float(headers["webhook-timestamp"])
    if abs(time.time() - sent) > TOLERANCE_SECONDS:
        return False
    wanted = Webhook(secret).sign(message, datetime.fromtimestamp(sent, UTC), body.decode())
    given = headers["webhook-signature"].split()
    return any(hmac.compare_digest(one.encode(), wanted.encode()) for one in given)


class Callers:
    """Secrets are read when they are needed, since a new tool gets its own while this runs."""

    def __init__(self, credentials: Path, tenant: str, merchant_key: Path) -> None:
        self._credentials, self._tenant = credentials, tenant
        self._merchant_key = merchant_key
        if not merchant_key.exists():
            merchant_key.touch(mode=0o600)
            merchant_key.write_text(f"shop_{secrets.token_urlsafe(24)}\n")

    def who(self, tool: str, headers: Mapping[str, str], body: bytes) -> str:
        """Return who calls the tool. Raises Stranger."""
        given = headers.get("authorization", "").removeprefix("Bearer ")
        if given and hmac.compare_digest(given, self._merchant_key.read_text().strip()):
            return "merchant key"
        try:
            is_signed = signed(self._secret(tool), headers, body)
        except (LookupError, ValueError, OverflowError) as fault:
            raise Stranger from fault
        if not is_signed:
            raise Stranger
        return "abeyance"

    def _secret(self, tool: str) -> str:
        given: str = json.loads(self._credentials.read_text())[self._tenant]["tools"][tool]
        return given
