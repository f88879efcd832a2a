"""Who calls: the service, by its signatures, or somebody who holds the shop's own key."""

from __future__ import annotations

import hmac
import json
import secrets
from collections.abc import Mapping
from pathlib import Path

from standardwebhooks import Webhook, WebhookVerificationError


class Stranger(Exception):
    """The call is neither signed by the service nor made with the shop's key."""


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
            Webhook(self._secret(tool)).verify(body, dict(headers))
        except (WebhookVerificationError, LookupError, ValueError) as fault:
            raise Stranger from fault
        return "abeyance"

    def _secret(self, tool: str) -> str:
        given: str = json.loads(self._credentials.read_text())[self._tenant]["tools"][tool]
        return given
