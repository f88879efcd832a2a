"""The tool `mail.send`: one e-mail to one person, over Django's e-mail backend.

One recipient a call: a mail server may take a message for some recipients and refuse it for
others, and then neither "sent" nor "not sent" would be true of it. The call's timeout bounds each
exchange with the mail server, not their sum.
"""

import contextlib
import hashlib
from smtplib import SMTPException, SMTPRecipientsRefused, SMTPResponseException
from typing import Any, Final

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.mail import EmailMessage, get_connection
from django.core.mail.backends.base import BaseEmailBackend
from django.core.mail.backends.smtp import EmailBackend as SmtpBackend
from django.core.validators import validate_email

from interrupts.effects.base import Call, Observed, Outcome, Preview
from interrupts.effects.python import NotPerformed, PythonTool, Refused

MEMBERS: Final = ("to", "subject", "body")
MAX_SUBJECT: Final = 500
MAX_BODY: Final = 100_000


def _send(arguments: dict[str, Any], call: Call) -> Observed:
    message = _message(arguments, call)
    connection = _opened(call.timeout)
    try:
        sent = connection.send_messages([message])
    except SMTPRecipientsRefused as fault:
        (code, _said), *_ = fault.recipients.values()
        raise _refusal(code) from fault
    except SMTPResponseException as fault:
        raise _refusal(fault.smtp_code) from fault
    finally:
        # The server has answered for the message; how it takes leave changes nothing.
        with contextlib.suppress(SMTPException, OSError):
            connection.close()
    if sent != 1:
        return Observed(
            Outcome.UNKNOWN, error="The e-mail backend did not say that it sent the message."
        )
    message_id = message.extra_headers["Message-ID"]
    return Observed(Outcome.SUCCEEDED, {"message_id": message_id}, message_id)


def _preview(arguments: dict[str, Any], call: Call) -> Preview:
    message = _message(arguments, call)
    shown = {
        "from": message.from_email,
        "to": message.to[0],
        "subject": message.subject,
        "body": message.body,
    }
    return Preview(
        summary=f"An e-mail to {message.to[0]}: {message.subject}",
        changes=[{"object": f"e-mail to {message.to[0]}", "before": None, "after": shown}],
        warnings=[],
        fresh_for=None,
    )


def _message(arguments: dict[str, Any], call: Call) -> EmailMessage:
    """Make the message, the same one for the same call. Raises `Refused`."""
    if sorted(arguments) != sorted(MEMBERS):
        raise Refused("An e-mail takes exactly to, subject and body.")
    to, subject, body = (_text_of(arguments, name) for name in MEMBERS)
    try:
        validate_email(to)
    except ValidationError as fault:
        raise Refused("The recipient is not one e-mail address.") from fault
    if not subject.isprintable() or not 0 < len(subject) <= MAX_SUBJECT:
        raise Refused(f"A subject is one line of at most {MAX_SUBJECT} characters.")
    if len(body) > MAX_BODY:
        raise Refused(f"A body has at most {MAX_BODY} characters.")
    headers = {"Message-ID": _message_id(call.idempotency_key)}
    return EmailMessage(subject, body, settings.DEFAULT_FROM_EMAIL, [to], headers=headers)


def _text_of(arguments: dict[str, Any], name: str) -> str:
    value = arguments[name]
    if not isinstance(value, str):
        raise Refused(f"An e-mail's {name} is a text.")
    return value


def _message_id(key: str) -> str:
    """Name the message by its call, so that a second copy of it can be told by its reader."""
    domain = settings.DEFAULT_FROM_EMAIL.rpartition("@")[2].strip("> ") or "localhost"
    return f"<{hashlib.sha256(key.encode()).hexdigest()[:40]}@{domain}>"


def _opened(timeout: float) -> BaseEmailBackend:
    """Reach the mail server. Until this is done no message has begun."""
    connection: BaseEmailBackend = get_connection()
    if isinstance(connection, SmtpBackend):
        connection.timeout = min(connection.timeout or timeout, timeout)
    try:
        connection.open()
    except OSError as fault:
        raise NotPerformed("The mail server could not be reached.") from fault
    return connection


def _refusal(code: int) -> Exception:
    """Tell what a reply to one of the message's commands proves (RFC 5321, 4.2.1).

    A 4yz or 5yz reply leaves the message with us, after its data too; other replies, and a
    connection that breaks, prove nothing and leave the outcome unknown. What the server says beside
    its code may name the recipient, and is left out.
    """
    if 400 <= code < 500:
        return NotPerformed(f"The mail server does not take the message now ({code}).")
    if 500 <= code < 600:
        return Refused(f"The mail server refused the message ({code}).")
    return OSError(f"the mail server replied {code}")


send = PythonTool(execute=_send, preview=_preview)
