"""The host a URL leads to, or nothing when readers of URLs could disagree about it.

URLs are chosen by an untrusted script. What RFC 3986 and the WHATWG standard read differently (backslashes,
user names, white space, letters beyond ASCII, numbers that some read as IPv4) has no host here, so that allow
rules do not match and deny rules do.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable

_URL = re.compile(
    r"(?:[A-Za-z][A-Za-z0-9+.-]*://)?(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::[0-9]{1,5})?(?:[/?#].*)?"
)
_UNCLEAR = re.compile(r"[\x00-\x20\x7f-\U0010ffff\\@]")
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")


def find_host(text: str) -> str | None:
    """Return the host of a URL or of ``host[:port]`` in lower case, None when it is not beyond doubt."""
    if _UNCLEAR.search(text):
        return None
    found = _URL.fullmatch(text)
    if found is None:
        return None
    host = found.group("host").lower()
    if host.startswith("["):
        try:
            return str(ipaddress.IPv6Address(host[1:-1]))
        except ValueError:
            return None
    host = host.removesuffix(".")
    labels = host.split(".")
    if not all(_LABEL.fullmatch(label) for label in labels):
        return None
    if _NUMBER.fullmatch(labels[-1]):
        try:
            return str(ipaddress.IPv4Address(host))
        except ValueError:
            return None
    return host


def host_is_in(host: str, allowed: Iterable[str]) -> bool:
    """Tell whether a host is one of these, or lies below one written as ``*.example.com``."""
    for each in allowed:
        name = each.lower()
        if name.startswith("*."):
            if host.endswith(name[1:]) and len(host) > len(name) - 1:
                return True
        elif host == name:
            return True
    return False
