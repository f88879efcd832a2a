"""The far end's URLs: how one is read, and what is refused in it."""

import re
from dataclasses import dataclass
from ipaddress import IPv6Address
from typing import Final
from urllib.parse import SplitResult, quote, urlsplit

MAX_URL: Final = 2000
KEY: Final = "{key}"
_DEFAULT_PORTS = {"http": 80, "https": 443}
_WRITTEN = re.compile(r"[!-\[\]-~]+")
_NAME = re.compile(r"[a-z0-9_]([a-z0-9._-]*[a-z0-9._])?")


class InvalidUrl(ValueError):
    """The URL can be no far end; the message says why."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where a request goes. `path` holds the query too."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def authority(self) -> str:
        """Host and port as `allowed_hosts` names them: nothing is left out or made equal."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def host_header(self) -> str:
        """Host and port as the Host header names them (RFC 9110, 7.2)."""
        authority = self.authority
        if self.port == _DEFAULT_PORTS[self.scheme]:
            return authority.rpartition(":")[0]
        return authority


def target_of(url: str) -> Target:
    """Read an absolute http or https URL. Raises `InvalidUrl`."""
    parts = _parts_of(url)
    host, port = _host_and_port(parts)
    if parts.scheme not in _DEFAULT_PORTS:
        raise InvalidUrl("The scheme must be http or https.")
    if "@" in parts.netloc:
        raise InvalidUrl("A URL holds no user name and no password.")
    if not (_is_ipv6(host) if ":" in host else _NAME.fullmatch(host)):
        raise InvalidUrl("The host of the URL is invalid.")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(parts.scheme, host, port or _DEFAULT_PORTS[parts.scheme], path)


def _parts_of(url: str) -> SplitResult:
    if not url or len(url) > MAX_URL:
        raise InvalidUrl(f"A URL has 1 to {MAX_URL} characters.")
    if not _WRITTEN.fullmatch(url):
        raise InvalidUrl("A URL is written in printable ASCII without spaces or backslashes.")
    if "#" in url:
        raise InvalidUrl("A URL holds no fragment.")
    try:
        return urlsplit(url)
    except ValueError:
        raise InvalidUrl("The host of the URL is invalid.") from None


def _host_and_port(parts: SplitResult) -> tuple[str, int | None]:
    try:
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise InvalidUrl("The port of the URL is invalid.") from None
    if port == 0 or parts.netloc.endswith(":"):
        raise InvalidUrl("The port of the URL is invalid.")
    return host, port


def _is_ipv6(host: str) -> bool:
    try:
        return IPv6Address(host).scope_id is None
    except ValueError:
        return False


def with_key(url: str, key: str) -> str:
    """Put an idempotency key into its place, where the URL has one."""
    return url.replace(KEY, quote(key, safe=""))
