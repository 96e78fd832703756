"""Finds out who a request comes from. Each kind of route takes one kind of proof and no other.

The API takes bearer tokens only, so no page elsewhere can use a browser's cookie there. Pages take the
cookie, or the identity headers of a listed proxy that knows the shared secret.
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from starlette.requests import HTTPConnection, Request

from bascule.bridge.errors import LimitsError
from bascule.bridge.policy import Policy
from bascule.bridge.store import Store
from bascule.console.logins import COOKIE, Logins
from bascule.console.principal import Principal, Scope
from bascule.console.problems import Problem
from bascule.console.settings import Settings
from bascule.console.tokens import MAX_NAME_CHARS, Token, Tokens

SECRET_HEADER: Final = "x-bascule-proxy-secret"
USER_HEADER: Final = "x-forwarded-user"
GROUPS_HEADER: Final = "x-forwarded-groups"
MIN_SECRET_CHARS: Final = 16

_SAFE_SITES: Final = ("same-origin",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proxies:
    """Proxies whose identity headers are believed, and the groups that decide about roles."""

    networks: tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]
    secret: str
    admin_group: str
    operator_group: str

    def identify(self, connection: HTTPConnection) -> tuple[str, frozenset[str], Scope] | None:
        """Return name, groups and scope when such a proxy vouches for somebody."""
        if connection.client is None or not self.networks or USER_HEADER not in connection.headers:
            return None
        try:
            address = ipaddress.ip_address(connection.client.host)
        except ValueError:
            return None
        given = connection.headers.get(SECRET_HEADER, "")
        if not any(address in network for network in self.networks) or not hmac.compare_digest(
            given.encode(), self.secret.encode()
        ):
            return None
        names = connection.headers.getlist(USER_HEADER)
        name = names[0].strip()
        if len(names) != 1 or not name or len(name) > MAX_NAME_CHARS or not name.isprintable():
            return None
        said = ",".join(connection.headers.getlist(GROUPS_HEADER))
        groups = frozenset(part.strip() for part in said.split(",") if part.strip())
        scope: Scope = "view"
        if self.admin_group in groups:
            scope = "admin"
        elif self.operator_group in groups:
            scope = "approve"
        return name, groups, scope


def read_proxies(settings: Settings) -> Proxies:
    """Return the proxies of the settings.

    Raises:
        LimitsError: the secret cannot be read, or is too short.
    """
    secret = ""
    if settings.trusted_proxies:
        try:
            secret = Path(settings.proxy_secret_file).read_text("utf-8").strip()
        except (OSError, ValueError) as error:
            raise LimitsError(f"proxy_secret_file cannot be read: {error}") from error
        if len(secret) < MIN_SECRET_CHARS:
            raise LimitsError(f"proxy_secret_file must hold at least {MIN_SECRET_CHARS} characters")
    return Proxies(
        networks=tuple(ipaddress.ip_network(each, strict=False) for each in settings.trusted_proxies),
        secret=secret,
        admin_group=settings.proxy_admin_group,
        operator_group=settings.proxy_operator_group,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Authenticates requests.

    Attributes:
        origins: ``scheme://host[:port]`` of our own pages.
    """

    tokens: Tokens
    logins: Logins
    proxies: Proxies
    store: Store
    origins: frozenset[str]

    def bearer(self, headers: Mapping[str, str], policy: Policy) -> Principal | None:
        """Return who a bearer token stands for."""
        kind, _, secret = headers.get("authorization", "").partition(" ")
        token = self.tokens.find(secret.strip()) if kind.lower() == "bearer" else None
        return None if token is None else _principal(token, policy, channel=f"api ({token.id})")

    def browser(self, request: HTTPConnection, policy: Policy) -> Principal | None:
        """Return who is logged in, or whom a proxy vouches for."""
        vouched = self.proxies.identify(request)
        if vouched is not None:
            name, groups, scope = vouched
            user = policy.identify(Principal(name=name, groups=groups, scope=scope, channel="").user)
            assert user is not None
            return Principal(
                name=name,
                groups=user.groups,
                scope=scope,
                channel="console (proxy)",
                form_secret=self.store.keyed_hash(f"proxy form|{name}".encode()),
            )
        cookie = request.cookies.get(COOKIE, "")
        token = self.logins.find(cookie) if cookie else None
        if token is None:
            return None
        secret = self.store.keyed_hash(f"form|{cookie}".encode())
        return _principal(token, policy, channel="console", form_secret=secret)

    def check_origin(self, request: Request) -> None:
        """Refuse a state-changing request of a browser that does not come from our own pages.

        Raises:
            Problem: 403.
        """
        site = request.headers.get("sec-fetch-site")
        origin = request.headers.get("origin")
        fine = site in _SAFE_SITES if site is not None else origin is not None
        if not fine or (origin is not None and origin not in self.origins):
            raise Problem(403, "foreign_origin", "this form was not sent by a page of this console")


def check_form_token(principal: Principal, given: str) -> None:
    """Refuse a form that was not made for this login.

    Raises:
        Problem: 403.
    """
    if not principal.form_secret or not hmac.compare_digest(principal.form_secret.encode(), given.encode()):
        raise Problem(403, "form_token_invalid", "this form is out of date; load the page again, then decide")


def _principal(token: Token, policy: Policy, *, channel: str, form_secret: str = "") -> Principal:
    bare = Principal(name=token.name, groups=token.groups, scope=token.scope, channel=channel)
    user = policy.identify(bare.user)
    assert user is not None
    return Principal(
        name=token.name, groups=user.groups, scope=token.scope, channel=channel, form_secret=form_secret
    )
