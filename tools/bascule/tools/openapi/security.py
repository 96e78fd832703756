"""Credentials of an operation: from named secrets, put into a request at the last moment and nowhere else."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal
from urllib.parse import quote

from bascule.tools.errors import ToolLoadError
from bascule.tools.imported.words import clean_phrase
from bascule.tools.openapi.document import Document
from bascule.tools.schema import JsonSchema, is_array, is_object

_BEARER: Final = frozenset({"oauth2", "openIdConnect"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Credential:
    """One credential, ready to be put into a request; never shown."""

    place: Literal["header", "query", "cookie"]
    name: str
    value: str = field(repr=False)


def choose_credentials(
    document: Document, operation: JsonSchema, secrets: Mapping[str, str] | Literal["none"], *, where: str
) -> tuple[Credential, ...]:
    """Return the credentials of the first way to authenticate for which all secrets are there.

    Raises:
        ToolLoadError: there is no such way, and the operation wants one.
    """
    wanted = operation.get("security", document.data.get("security"))
    ways = [way for way in wanted if is_object(way)] if is_array(wanted) else []
    if secrets == "none" or not ways:
        return ()
    given = [way for way in ways if way and all(name in secrets for name in way)]
    if given:
        return tuple(_credential(document, name, secrets[name], where) for name in given[0])
    if {} in ways:
        return ()
    names = " or ".join(" and ".join(clean_phrase(name, max_chars=60) for name in way) for way in ways[:5])
    raise ToolLoadError(
        "secret_missing",
        f"{where} must be authenticated: name a secret for {names} under auth, or write auth: none",
    )


def scheme_names(document: Document) -> frozenset[tuple[str, str]]:
    """Return place and lower-case name of all that authenticates: scripts must not pass it themselves."""
    components = document.data.get("components")
    schemes = components.get("securitySchemes") if is_object(components) else None
    found = {("header", "authorization")}
    for node in schemes.values() if is_object(schemes) else ():
        scheme = document.find(node)
        if scheme.get("type") == "apiKey":
            found.add((str(scheme.get("in")), str(scheme.get("name")).lower()))
    return frozenset(found)


def _credential(document: Document, name: str, secret: str, where: str) -> Credential:
    components = document.data.get("components")
    schemes = components.get("securitySchemes") if is_object(components) else None
    scheme = document.find(schemes.get(name) if is_object(schemes) else None)
    kind, place, key = scheme.get("type"), scheme.get("in"), scheme.get("name")
    if kind in _BEARER or (kind == "http" and str(scheme.get("scheme")).lower() == "bearer"):
        return Credential(place="header", name="Authorization", value=f"Bearer {secret}")
    if kind == "http" and str(scheme.get("scheme")).lower() == "basic":
        encoded = base64.b64encode(secret.encode()).decode()
        return Credential(place="header", name="Authorization", value=f"Basic {encoded}")
    if kind == "apiKey" and isinstance(key, str) and key.isascii() and key.isprintable() and key:
        if place == "header" and all(character.isalnum() or character in "-_" for character in key):
            return Credential(place="header", name=key, value=secret)
        if place == "query":
            return Credential(place="query", name=quote(key, safe=""), value=quote(secret, safe=""))
        if place == "cookie":
            return Credential(place="cookie", name=quote(key, safe=""), value=quote(secret, safe=""))
    shown = clean_phrase(name, max_chars=60)
    raise ToolLoadError(
        "tool_source_invalid", f"{where}: the security scheme {shown} is of no kind we know how to use"
    )
