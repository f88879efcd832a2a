"""Where a call may go: resolved once, every address checked, connected to as checked."""

import socket
import time
from ipaddress import ip_address

import pytest

from interrupts.effects import Finding, Observed, Outcome, PreviewFailed
from interrupts.effects.addresses import is_public
from tests.interrupts.effects.far_end import answering

REFUSED = [
    "0.0.0.0",  # noqa: S104  (an address to refuse)
    "10.0.0.1",
    "100.64.0.1",
    "100.100.100.200",
    "127.0.0.1",
    "127.255.255.254",
    "168.63.129.16",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:93.184.216.34",
    "64:ff9b::7f00:1",
    "64:ff9b::5db8:d822",
    "64:ff9b:1::1",
    "100::1",
    "2001::1",
    "2001:db8::1",
    "2002:7f00:1::1",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fec0::1",
    "ff02::1",
]


@pytest.fixture
def resolver(monkeypatch):
    """Replace the resolver: each look-up takes the next list of addresses, the last one for ever."""

    class Resolver:
        def __init__(self):
            self.looked_up = []
            self.answers = []

        def __call__(self, host, port, *_args, **_kwargs):
            self.looked_up.append(host)
            found = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (ip, port)) for ip in found]

    resolver = Resolver()
    monkeypatch.setattr(socket, "getaddrinfo", resolver)
    return resolver


@pytest.fixture
def connected(monkeypatch):
    """Record where sockets connect to; nothing listens there."""
    places = []

    def connect(_socket, address):
        places.append(address)
        raise ConnectionRefusedError(111, "Connection refused")

    monkeypatch.setattr(socket.socket, "connect", connect)
    return places


@pytest.mark.parametrize("address", REFUSED)
def test_a_name_at_a_refused_address_is_never_called(resolver, connected, effect_at, call, address):
    resolver.answers = [[address]]
    seen = effect_at("http://far.test/", []).execute(call)
    assert seen == Observed(
        Outcome.FAILED,
        error="The far end's address is not a public one, and its host is not allowed.",
    )
    assert connected == []


@pytest.mark.parametrize("address", REFUSED)
def test_a_refused_address_written_out_is_never_called(connected, effect_at, call, address):
    host = f"[{address}]" if ":" in address else address
    assert effect_at(f"http://{host}:8080/", []).execute(call).outcome is Outcome.FAILED
    assert connected == []


@pytest.mark.parametrize(
    "address", ["93.184.216.34", "8.8.8.8", "172.32.0.1", "2606:2800:220:1::1", "2a00:1450::1"]
)
def test_public_addresses_are_public(address):
    assert is_public(ip_address(address))


def test_a_public_address_is_called(resolver, connected, effect_at, call):
    resolver.answers = [["93.184.216.34"]]
    seen = effect_at("http://far.test/", []).execute(call)
    assert seen.outcome is Outcome.NOT_PERFORMED
    assert connected == [("93.184.216.34", 80)]


def test_one_refused_address_among_public_ones_refuses_the_call(
    resolver, connected, effect_at, call
):
    resolver.answers = [["93.184.216.34", "10.0.0.1"]]
    assert effect_at("http://far.test/", []).execute(call).outcome is Outcome.FAILED
    assert connected == []


def test_a_name_that_is_rebound_after_the_check_is_not_followed(
    resolver, connected, effect_at, call
):
    resolver.answers = [["93.184.216.34"], ["127.0.0.1"]]
    effect_at("http://far.test:8080/", []).execute(call)
    assert resolver.looked_up == ["far.test"]
    assert connected == [("93.184.216.34", 8080)]


@pytest.mark.parametrize("host", ["127.1", "0x7f000001", "2130706433", "0177.0.0.1", "localhost"])
def test_no_spelling_of_loopback_gets_through(far_end, effect_at, call, host):
    """Even where the plain spelling of it is allowed."""
    seen = effect_at(f"http://{host}:{far_end.port}/", [far_end.authority]).execute(call)
    assert seen.outcome is Outcome.FAILED
    assert far_end.connections == 0


@pytest.mark.parametrize(
    "allowed", [["127.0.0.1"], ["127.0.0.1:80"], ["127.0.0.1.:{port}"], ["*:{port}"], ["*"], []]
)
def test_a_host_is_allowed_only_with_its_very_port(far_end, effect_at, call, allowed):
    listed = [entry.format(port=far_end.port) for entry in allowed]
    assert effect_at(allowed=listed).execute(call).outcome is Outcome.FAILED
    assert far_end.connections == 0


def test_a_trailing_dot_makes_another_host(resolver, far_end, effect_at, call):
    resolver.answers = [["127.0.0.1"]]
    allowed = [f"far.test:{far_end.port}"]
    dotted = effect_at(f"http://far.test.:{far_end.port}/", allowed).execute(call)
    assert dotted.outcome is Outcome.FAILED
    assert far_end.connections == 0
    plain = effect_at(f"http://Far.test:{far_end.port}/", allowed).execute(call)
    assert plain.outcome is Outcome.SUCCEEDED
    assert far_end.asked[0].headers["host"] == f"far.test:{far_end.port}"


def test_the_deployment_may_allow_a_host_for_everyone(far_end, effect_at, call, settings):
    settings.ABEYANCE_ALLOWED_HOSTS = [far_end.authority]
    assert effect_at(allowed=[]).execute(call).outcome is Outcome.SUCCEEDED


def test_the_default_port_is_a_port(resolver, connected, effect_at, call):
    resolver.answers = [["10.0.0.1"]]
    assert effect_at("https://far.test/", ["far.test:443"]).execute(call).outcome is (
        Outcome.NOT_PERFORMED
    )
    assert effect_at("http://far.test/", ["far.test:443"]).execute(call).outcome is Outcome.FAILED
    assert connected == [("10.0.0.1", 443)]


def test_a_dead_address_is_passed_over(resolver, far_end, effect_at, call):
    resolver.answers = [["127.0.0.2", "127.0.0.1"]]
    host = f"far.test:{far_end.port}"
    assert effect_at(f"http://{host}/", [host]).execute(call).outcome is Outcome.SUCCEEDED
    assert len(far_end.asked) == 1


def test_a_name_that_does_not_resolve_is_not_performed(monkeypatch, effect_at, call):
    def fails(*_args, **_kwargs):
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", fails)
    assert effect_at("http://far.test/", []).execute(call) == Observed(
        Outcome.NOT_PERFORMED,
        error="The far end could not be reached: its host name does not resolve.",
    )


@pytest.mark.parametrize("host", ["a..b", "x" * 64 + ".test"])
def test_a_name_that_no_resolver_takes_is_not_performed(effect_at, call, host):
    assert effect_at(f"http://{host}/", []).execute(call).outcome is Outcome.NOT_PERFORMED


def test_a_resolver_that_hangs_is_left_behind(monkeypatch, effect_at, brief):
    def hangs(*_args, **_kwargs):
        time.sleep(1.5)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", hangs)
    began = time.monotonic()
    seen = effect_at("http://far.test/", []).execute(brief)
    assert seen.outcome is Outcome.NOT_PERFORMED
    assert time.monotonic() - began < 1


def test_preview_reconcile_and_compensate_are_checked_alike(far_end, effect_at, call):
    far_end.behave = answering(200, {"summary": "s", "outcome": "performed"})
    effect = effect_at(allowed=[])
    with pytest.raises(PreviewFailed):
        effect.preview(call)
    assert effect.reconcile(call).outcome is Finding.CANNOT_TELL
    assert effect.compensate(call, None, None).outcome is Outcome.FAILED
    assert far_end.connections == 0
