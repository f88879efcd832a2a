"""Which addresses a call may go to: resolved once, each checked, connected to as checked.

Refused is everything that is not plainly public: an address that a tenant may not name must not
become reachable through a name that resolves to it, whenever it does so.
"""

import socket
from collections.abc import Container
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from queue import Empty, SimpleQueue
from threading import Thread

from interrupts.effects.cancellation import Cancellation
from interrupts.effects.deadline import Deadline
from interrupts.effects.targets import Target

# The IANA special-purpose registry, multicast, and a provider's metadata service whose number
# looks public (168.63.129.16; the others lie in ranges refused here).
_REFUSED_V4 = [
    ip_network(text)
    for text in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "168.63.129.16/32",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
    )
]
# Only global unicast is taken: loopback, unique local, link-local, multicast, IPv4-mapped and
# NAT64 addresses lie outside it.
_GLOBAL_V6 = IPv6Network("2000::/3")
_REFUSED_V6 = [
    IPv6Network(text)
    for text in (
        "2001::/23",  # protocol assignments, Teredo among them
        "2001:db8::/32",
        "2002::/16",  # 6to4: an IPv4 address in disguise
        "3fff::/20",
    )
]


class AddressRefused(Exception):
    """The host resolves to an address that is not public, and nobody has allowed the host."""


class Unresolved(Exception):
    """The host has no address now; the message says why."""


def is_public(address: IPv4Address | IPv6Address) -> bool:
    """Tell whether an address is one of the public Internet."""
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _REFUSED_V4)
    return address in _GLOBAL_V6 and not any(address in network for network in _REFUSED_V6)


def addresses_of(
    target: Target, *, allowed: Container[str], deadline: Deadline, cancellation: Cancellation
) -> list[str]:
    """Resolve the target's host once and return its addresses, best first.

    Where the target's `host:port` is not in `allowed`, every one of them is public. Raises
    `AddressRefused`, `Unresolved` and `Cancelled`.
    """
    found = _resolve(target, deadline, cancellation)
    if target.authority not in allowed:
        refused = [address for address in found if not is_public(ip_address(address))]
        if refused:
            raise AddressRefused(f"{target.authority} is at {', '.join(refused)}")
    return found


def _resolve(target: Target, deadline: Deadline, cancellation: Cancellation) -> list[str]:
    if _is_address(target.host):
        return [target.host]
    answer: SimpleQueue[list[str] | str] = SimpleQueue()
    # The resolver takes no limit of time, so it is left behind where it takes too long.
    Thread(target=_look_up, args=(target, answer), name="resolve", daemon=True).start()
    try:
        with cancellation.ending(lambda: answer.put("the call was cancelled")):
            found = answer.get(timeout=deadline.remaining())
    except (Empty, TimeoutError):
        raise Unresolved("its host name was not resolved in time") from None
    if isinstance(found, str):
        raise Unresolved(found)
    return found


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _look_up(target: Target, answer: SimpleQueue[list[str] | str]) -> None:
    try:
        found = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        answer.put("its host name does not resolve")
    else:
        answer.put(list(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in found)))
