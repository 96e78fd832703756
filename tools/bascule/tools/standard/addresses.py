"""Which network addresses a fetch may reach: those of the public internet, resolved once and then kept to.

A name is untrusted even when its host is allowed: whoever owns it decides where it points, and may answer
differently the second time (DNS rebinding). So every address of an answer is judged, one bad one refuses all,
and connections are made to the very addresses that were judged.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Sequence
from typing import Final

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

Resolve = Callable[[str, int], Sequence[str]]
"""From a host's name and port to all its addresses, as text."""

MAX_ADDRESSES: Final = 4
"""Addresses of one host that are tried, so that no name makes us knock at many doors."""

_EMBEDDING: Final = tuple(
    ipaddress.IPv6Network(network)
    for network in (
        "::/96",  # IPv4-compatible
        "::ffff:0:0/96",  # IPv4-mapped
        "::ffff:0:0:0/96",  # IPv4-translated
        "64:ff9b::/96",  # NAT64
        "64:ff9b:1::/48",  # NAT64, local
        "2001::/32",  # Teredo
        "2002::/16",  # 6to4
        "fec0::/10",  # site-local
    )
)
"""IPv6 networks whose addresses stand for IPv4 ones, which may be private; no public service needs them."""


def resolve_host(host: str, port: int) -> Sequence[str]:
    """Return the addresses of a host, as this machine resolves it.

    Raises:
        OSError: it has none.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def is_public(text: str) -> bool:
    """Tell whether an address is one of the public internet; what is no address is not."""
    try:
        address: Address = ipaddress.ip_address(text)
    except ValueError:  # an address with a scope is link-local
        return False
    if isinstance(address, ipaddress.IPv6Address) and any(address in network for network in _EMBEDDING):
        return False
    return address.is_global and not (
        address.is_multicast or address.is_reserved or address.is_unspecified or address.is_loopback
    )


def choose_addresses(host: str, port: int, *, resolve: Resolve, private: bool) -> Sequence[str]:
    """Return the addresses to connect to, the first that answers; all are judged, `MAX_ADDRESSES` are given.

    Args:
        private: whether private addresses are allowed as well.

    Raises:
        PermissionError: one of the host's addresses is not public.
        OSError: it has none.
    """
    addresses = resolve(host, port)
    if not addresses:
        raise OSError(f"{host} has no address")
    if not private:
        for address in addresses:
            if not is_public(address):
                raise PermissionError(
                    f"{host} leads to an address that is not public; do not try another way"
                )
    return addresses[:MAX_ADDRESSES]
