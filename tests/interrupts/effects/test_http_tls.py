"""TLS: the certificate must bear the URL's host, whatever address the host resolved to."""

import socket
import ssl
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from interrupts.effects import Outcome, exchange
from interrupts.effects.cancellation import Cancellation
from tests.interrupts.effects.far_end import FarEnd, raw_answer


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    """A self-signed certificate of far.test, and its key, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "far.test")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("far.test")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "far.pem"
    path.write_bytes(
        made.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return path


@pytest.fixture
def names_asked():
    return []


@pytest.fixture
def secure_far_end(certificate, names_asked, monkeypatch):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    context.sni_callback = lambda _socket, name, _context: names_asked.append(name)
    far_end = FarEnd(context)
    monkeypatch.setattr(
        socket,
        "getaddrinfo",
        lambda _host, port, **_: [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))],
    )
    yield far_end
    far_end.close()


@pytest.fixture
def trusted(certificate, monkeypatch):
    context = ssl.create_default_context(cafile=certificate)
    monkeypatch.setattr("interrupts.effects.exchange._tls", lambda: context)


def at(effect_at, host, far_end):
    authority = f"{host}:{far_end.port}"
    return effect_at(f"https://{authority}/effects/refund", [authority.lower()])


@pytest.mark.usefixtures("trusted")
def test_the_hosts_name_is_asked_for_and_verified(secure_far_end, names_asked, effect_at, call):
    seen = at(effect_at, "far.test", secure_far_end).execute(call)
    assert seen.outcome is Outcome.SUCCEEDED
    assert names_asked == ["far.test"]
    assert secure_far_end.asked[0].headers["host"] == f"far.test:{secure_far_end.port}"


@pytest.mark.usefixtures("trusted")
def test_another_names_certificate_is_refused_unsent(secure_far_end, effect_at, call):
    seen = at(effect_at, "other.test", secure_far_end).execute(call)
    assert seen.outcome is Outcome.NOT_PERFORMED
    assert "certificate" in seen.error
    assert secure_far_end.asked == []


def test_a_certificate_nobody_vouches_for_is_refused_unsent(secure_far_end, effect_at, call):
    seen = at(effect_at, "far.test", secure_far_end).execute(call)
    assert seen.outcome is Outcome.NOT_PERFORMED
    assert "certificate" in seen.error
    assert secure_far_end.asked == []


def test_a_far_end_without_tls_is_refused_unsent(far_end, effect_at, call):
    far_end.early = raw_answer(400, b"")
    seen = effect_at(f"https://{far_end.authority}/").execute(call)
    assert seen.outcome is Outcome.NOT_PERFORMED
    assert "TLS" in seen.error


@pytest.mark.usefixtures("trusted")
def test_a_call_that_is_cut_stays_encrypted_and_its_outcome_is_unknown(
    secure_far_end, effect_at, call, monkeypatch
):
    """It is cut between two of its own looks at the connection."""
    spoken = []
    receive = exchange._receive

    def cut(connection, *rest):
        call.cancellation.ask()
        spoken.append(connection.version())
        return receive(connection, *rest)

    monkeypatch.setattr(exchange, "_receive", cut)
    secure_far_end.behave = lambda connection, _asked: connection.recv(1)
    call = replace(call, timeout=120, cancellation=Cancellation())
    seen = at(effect_at, "far.test", secure_far_end).execute(call)
    assert seen.outcome is Outcome.UNKNOWN
    assert spoken in (["TLSv1.3"], ["TLSv1.2"])


def test_a_handshake_that_hangs_is_bounded(effect_at, brief):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        authority = f"127.0.0.1:{silent.getsockname()[1]}"
        seen = effect_at(f"https://{authority}/", [authority]).execute(brief)
    assert seen.outcome is Outcome.NOT_PERFORMED
    assert "in time" in seen.error
