"""A declared request, and the one request that it makes of a call's values."""

import base64
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self
from urllib.parse import quote, urlencode

from config.jsontext import canonical
from interrupts.effects.declared.filling import MAX_FILLED, Filler, Unfillable
from interrupts.effects.exchange import Request, Unsendable
from interrupts.paths import MISSING, Missing

IDEMPOTENCY_HEADER: Final = "Idempotency-Key"
DEFAULT_METHOD: Final = {"executor": "POST", "compensate": "POST"}  # and GET for what only asks
URL: Final = re.compile(r"(https?://[^/?#{}]+)(/[^?#]*)?")
HEADER_TEXT: Final = re.compile(r"[!-~](?:[ -~]*[!-~])?")
JSON, FORM = "application/json", "application/x-www-form-urlencoded"


class MissingSecret(Unsendable):
    """A secret that the request signs in with holds no value; nothing was sent."""


@dataclass(frozen=True, slots=True)
class DeclaredRequest:
    """A request as it is declared. `key_header` is where the idempotency key goes, if anywhere."""

    method: str
    base: str
    path: str
    query: Mapping[str, Any]
    headers: Mapping[str, Any]
    key_header: str | None
    json: Any
    form: Mapping[str, Any] | None

    @classmethod
    def of(cls, part: str, declared: Mapping[str, Any]) -> Self:
        """Read a declaration that was checked (`shape.check_request`)."""
        method = declared.get("method", DEFAULT_METHOD.get(part, "GET"))
        found = URL.fullmatch(declared["url"])
        if found is None:
            raise ValueError("a declared URL is checked before it is stored")
        carries = part in DEFAULT_METHOD and method != "GET"
        return cls(
            method=method,
            base=found[1],
            path=found[2] or "/",
            query=declared.get("query", {}),
            headers=declared.get("headers", {}),
            key_header=declared.get("idempotency_header", IDEMPOTENCY_HEADER if carries else None),
            json=declared.get("json", MISSING),
            form=declared.get("form"),
        )

    def fill(self, filler: Filler, secrets: Mapping[str, str], key: str) -> Request:
        """Make the request. Raises `Unfillable` and `MissingSecret`; both quote no value."""
        query = urlencode([*filler.pairs(self.query)], quote_via=quote)
        url = self.base + filler.path(self.path) + (f"?{query}" if query else "")
        body = self._body(filler)
        if len(body) > MAX_FILLED:
            raise Unfillable("What is to be sent is larger than 1 MiB.")
        headers = [*_filled(self.headers, filler, secrets)]
        if self.key_header is not None:
            headers.append((self.key_header, key))
        if body and not any(name.lower() == "content-type" for name, _ in headers):
            headers.append(("Content-Type", JSON if self.form is None else FORM))
        return Request(self.method, url, headers, body)

    def _body(self, filler: Filler) -> bytes:
        if self.form is not None:
            return urlencode([*filler.pairs(self.form)]).encode()
        if self.json is MISSING:
            return b""
        value = filler.structure(self.json)
        if value is MISSING:
            raise Unfillable("What the body is made of is not given.")
        return canonical(value)


def _filled(
    declared: Mapping[str, Any], filler: Filler, secrets: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    for name, said in declared.items():
        value = filler.text(said) if isinstance(said, str) else credential(said, secrets)
        if isinstance(value, Missing):
            continue
        if not HEADER_TEXT.fullmatch(value):
            raise Unfillable(f"A value holds what may not stand in the header {name}.")
        yield name, value


def credential(said: Mapping[str, str], secrets: Mapping[str, str]) -> str:
    """Make a header of a secret: behind a prefix, or as the password of a user (RFC 7617)."""
    value = secrets.get(said["secret"])
    if value is None:
        raise MissingSecret(f"The secret {said['secret']} is not set; the call was not begun.")
    if "user" in said:
        return "Basic " + base64.b64encode(f"{said['user']}:{value}".encode()).decode()
    return said.get("prefix", "") + value
