"""Where e-mails go: to the server that EMAIL_URL names, else into a folder of the service's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from config.supervisor.failures import CannotStart
from config.supervisor.paths import DataFolder

TIMEOUT_SECONDS: Final = 10
_SMTP: Final[Mapping[str, tuple[int, str]]] = {
    "smtp": (25, ""),
    "smtp+tls": (587, "EMAIL_USE_TLS"),
    "smtps": (465, "EMAIL_USE_SSL"),
}


def mail_settings(environ: Mapping[str, str], folder: DataFolder) -> dict[str, Any]:
    """Return Django's settings for e-mail.

    EMAIL_URL is `smtp://`, `smtp+tls://` (STARTTLS) or `smtps://` with user:password@host:port.
    """
    given = environ.get("EMAIL_URL", "")
    if not given:
        return {
            "EMAIL_BACKEND": "django.core.mail.backends.filebased.EmailBackend",
            "EMAIL_FILE_PATH": str(folder.mail),
        }
    url = urlsplit(given)
    if url.scheme not in _SMTP or not url.hostname:
        raise CannotStart("EMAIL_URL is smtp://, smtp+tls:// or smtps:// and names a host")
    port, secure = _SMTP[url.scheme]
    found: dict[str, Any] = {
        "EMAIL_BACKEND": "django.core.mail.backends.smtp.EmailBackend",
        "EMAIL_HOST": url.hostname,
        "EMAIL_PORT": url.port or port,
        "EMAIL_HOST_USER": unquote(url.username or ""),
        "EMAIL_HOST_PASSWORD": unquote(url.password or ""),
        "EMAIL_TIMEOUT": TIMEOUT_SECONDS,
    }
    return {**found, secure: True} if secure else found
