"""The shipped tool mail.send, on Django's locmem backend and against a mail server of our own."""

import json
import socket
import threading
from dataclasses import replace

import pytest
from django.core import mail

from interrupts.effects import Outcome, Preview, effect_for

ARGUMENTS = {"to": "ada@example.test", "subject": "Grüße", "body": "Hello,\nAda"}


@pytest.fixture
def mail_call(call):
    def make(**changed):
        arguments = json.dumps({**ARGUMENTS, **changed}).encode()
        return replace(call, tool="mail.send", arguments=arguments)

    return make


@pytest.fixture
def effect():
    return effect_for(
        {"kind": "python"},
        preview=None,
        reconcile=None,
        compensate=None,
        secret=None,
        allowed_hosts=[],
    )


@pytest.fixture
def sender(settings):
    settings.DEFAULT_FROM_EMAIL = "Acme <robot@acme.test>"


@pytest.mark.usefixtures("sender")
def test_a_message_is_sent_as_it_was_approved(effect, mail_call):
    seen = effect.execute(mail_call())
    [message] = mail.outbox
    assert (message.to, message.cc, message.bcc) == (["ada@example.test"], [], [])
    assert (message.subject, message.body) == ("Grüße", "Hello,\nAda")
    assert message.from_email == "Acme <robot@acme.test>"
    assert seen.outcome is Outcome.SUCCEEDED
    assert seen.external_id == message.message()["Message-ID"]
    assert seen.result == {"message_id": seen.external_id}


@pytest.mark.usefixtures("sender")
def test_the_message_id_follows_from_the_idempotency_key(effect, mail_call):
    first = effect.execute(mail_call())
    again = effect.execute(replace(mail_call(), attempt="attempt-2"))
    other = effect.execute(replace(mail_call(), idempotency_key="key-2"))
    assert first.external_id == again.external_id != other.external_id
    assert first.external_id.endswith("@acme.test>")
    assert "key-1" not in first.external_id


@pytest.mark.usefixtures("sender")
def test_the_preview_shows_the_message_and_sends_none(effect, mail_call):
    shown = effect.preview(mail_call())
    assert shown == Preview(
        "An e-mail to ada@example.test: Grüße",
        [
            {
                "object": "e-mail to ada@example.test",
                "before": None,
                "after": {
                    "from": "Acme <robot@acme.test>",
                    "to": "ada@example.test",
                    "subject": "Grüße",
                    "body": "Hello,\nAda",
                },
            }
        ],
        [],
        None,
    )
    assert mail.outbox == []


@pytest.mark.parametrize(
    "changed",
    [
        {"to": "nobody"},
        {"to": ["ada@example.test"]},
        {"to": "ada@example.test, bob@example.test"},
        {"to": "ada@example.test\r\nBcc: eve@example.test"},
        {"to": "Ada <ada@example.test>"},
        {"to": ""},
        {"subject": "a\nBcc: eve@example.test"},
        {"subject": "a\u2028b"},
        {"subject": ""},
        {"subject": "x" * 501},
        {"subject": 1},
        {"body": None},
        {"body": "x" * 100_001},
        {"bcc": "eve@example.test"},
        {"from": "eve@example.test"},
    ],
)
def test_arguments_that_are_no_message_are_refused(effect, mail_call, changed):
    assert effect.execute(mail_call(**changed)).outcome is Outcome.FAILED
    assert mail.outbox == []


def test_a_missing_argument_is_refused(effect, call):
    seen = effect.execute(replace(call, tool="mail.send", arguments=b'{"to":"a@b.test"}'))
    assert seen.outcome is Outcome.FAILED
    assert mail.outbox == []


def test_a_backend_that_says_nothing_leaves_the_outcome_unknown(effect, mail_call, monkeypatch):
    backend = "django.core.mail.backends.locmem.EmailBackend.send_messages"
    monkeypatch.setattr(backend, lambda _backend, _messages: None)
    assert effect.execute(mail_call()).outcome is Outcome.UNKNOWN


class MailServer:
    """Takes messages over SMTP; `replies` holds what it says instead, by command.

    An empty reply hangs up. The command "." is the end of a message's data.
    """

    def __init__(self):
        self.replies = {}
        self.messages = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(5)

    def _serve(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection, connection.makefile("rwb", buffering=0) as stream:
                self._talk(stream)

    def _talk(self, stream):
        if not self._reply(stream, "hello", "220 far.test"):
            return
        while line := stream.readline():
            command = line.decode().split()[0].upper()
            answers = {"QUIT": "221 bye", "DATA": "354 go on"}
            if not self._reply(stream, command, answers.get(command, "250 fine")):
                return
            if command == "DATA" and command not in self.replies:
                lines = []
                while (line := stream.readline()) not in {b".\r\n", b""}:
                    lines.append(line)
                if not self._reply(stream, ".", "250 taken"):
                    return
                self.messages.append(b"".join(lines).decode())

    def _reply(self, stream, command, usual):
        reply = self.replies.get(command, usual)
        if reply:
            stream.write(reply.encode() + b"\r\n")
        return bool(reply)


@pytest.fixture
def server(settings):
    server = MailServer()
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", server.port
    yield server
    server.close()


@pytest.mark.usefixtures("sender")
def test_a_mail_server_takes_the_message(server, effect, mail_call):
    seen = effect.execute(mail_call())
    assert seen.outcome is Outcome.SUCCEEDED
    [message] = server.messages
    assert f"Message-ID: {seen.external_id}" in message


@pytest.mark.parametrize("command", ["EHLO", "MAIL", "RCPT", "DATA", "."])
@pytest.mark.parametrize(
    ("code", "outcome"), [("550", Outcome.FAILED), ("451", Outcome.NOT_PERFORMED)]
)
def test_a_refusal_leaves_the_message_with_us(server, effect, mail_call, command, code, outcome):
    server.replies[command] = f"{code} not for ada@example.test"
    if command == "EHLO":
        server.replies["HELO"] = server.replies["EHLO"]
    seen = effect.execute(mail_call())
    assert seen.outcome is outcome
    assert code in seen.error
    assert "ada" not in seen.error


@pytest.mark.parametrize("command", ["MAIL", "RCPT", "DATA", "."])
def test_a_server_that_hangs_up_leaves_the_outcome_unknown(server, effect, mail_call, command):
    server.replies[command] = ""
    assert effect.execute(mail_call()).outcome is Outcome.UNKNOWN


@pytest.mark.parametrize("reply", ["250", "OK", "354 more"])
def test_a_strange_reply_after_the_data_proves_nothing(server, effect, mail_call, reply):
    server.replies["."] = reply
    outcome = effect.execute(mail_call()).outcome
    assert outcome is (Outcome.SUCCEEDED if reply == "250" else Outcome.UNKNOWN)


def test_a_failing_goodbye_does_not_undo_the_message(server, effect, mail_call):
    server.replies["QUIT"] = "554 no"
    assert effect.execute(mail_call()).outcome is Outcome.SUCCEEDED


@pytest.mark.parametrize("greeting", ["", "554 closed", "421 busy"])
def test_a_server_that_does_not_greet_has_not_begun(server, effect, mail_call, greeting):
    server.replies["hello"] = greeting
    assert effect.execute(mail_call()).outcome is Outcome.NOT_PERFORMED


def test_a_server_that_is_not_there_has_not_begun(server, effect, mail_call, settings):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        settings.EMAIL_PORT = listener.getsockname()[1]
    assert effect.execute(mail_call()).outcome is Outcome.NOT_PERFORMED


def test_a_server_that_is_silent_is_bounded_by_the_calls_time(server, effect, mail_call, settings):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        settings.EMAIL_PORT = silent.getsockname()[1]
        seen = effect.execute(replace(mail_call(), timeout=0.2))
    assert seen.outcome is Outcome.NOT_PERFORMED
