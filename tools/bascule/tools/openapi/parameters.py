"""Values of parameters as they stand in a request: path, query, header and cookie, in every style there is.

Values come from scripts and are untrusted: everything is percent-encoded, a path segment can never become two
or none, and a header can never become two.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Final, Literal, cast
from urllib.parse import quote

from pydantic import JsonValue

Place = Literal["path", "query", "header", "cookie"]

STYLES: Final[dict[str, str]] = {"path": "simple", "query": "form", "header": "simple", "cookie": "form"}
_SEPARATORS: Final = {"spaceDelimited": "%20", "pipeDelimited": "%7C"}
MAX_VALUE_CHARS: Final = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestParameter:
    """One parameter.

    Attributes:
        name: as the service knows it.
        style, explode: see the OpenAPI specification, "Style Values".
        as_json: whether its value is sent as JSON text (a parameter with ``content``).
    """

    name: str
    place: Place
    style: str
    explode: bool
    as_json: bool = False


def write_path(parameter: RequestParameter, value: JsonValue) -> str:
    """Return what replaces ``{name}`` in a path.

    Raises:
        ValueError: the value cannot stand in a path.
    """
    if parameter.as_json:
        return _check_segment(parameter, _quote(json.dumps(value)))
    name = _quote(parameter.name)
    if parameter.style == "label":
        return "." + _check_segment(
            parameter, _join(value, "." if parameter.explode else ",", "=", parameter.explode)
        )
    if parameter.style == "matrix":
        if isinstance(value, dict) and parameter.explode:
            return "".join(f";{key}={item}" for key, item in _members(value))
        if isinstance(value, list) and parameter.explode:
            return "".join(f";{name}={_quote(_text(item))}" for item in value)
        return f";{name}={_join(value, ',', ',', False)}"
    return _check_segment(parameter, _join(value, ",", "=", parameter.explode))


def _check_segment(parameter: RequestParameter, segment: str) -> str:
    if segment in ("", ".", ".."):
        raise ValueError(f"{parameter.name}: {segment!r} cannot stand in a path")
    return segment


def write_query(parameter: RequestParameter, value: JsonValue) -> list[str]:
    """Return the encoded ``name=value`` parts of a query."""
    name = _quote(parameter.name)
    if parameter.as_json:
        return [f"{name}={_quote(json.dumps(value))}"]
    if isinstance(value, list):
        texts = [_quote(_text(item)) for item in value]
        if parameter.explode and parameter.style not in _SEPARATORS:
            return [f"{name}={text}" for text in texts]
        return [f"{name}={_SEPARATORS.get(parameter.style, ',').join(texts)}"] if texts else []
    if isinstance(value, dict):
        if parameter.style == "deepObject":
            return _deep(name, value, 0)
        if parameter.explode:
            return [f"{key}={item}" for key, item in _members(value)]
        return [f"{name}={','.join(part for member in _members(value) for part in member)}"]
    return [f"{name}={_quote(_text(value))}"]


def _deep(name: str, value: dict[str, JsonValue], depth: int) -> list[str]:
    parts: list[str] = []
    for key, item in value.items():
        inner = f"{name}%5B{_quote(key)}%5D"
        if isinstance(item, dict) and depth < 8:
            parts += _deep(inner, item, depth + 1)
        elif isinstance(item, list):
            parts += [f"{inner}%5B%5D={_quote(_text(each))}" for each in item]
        else:
            parts.append(f"{inner}={_quote(_text(item))}")
    return parts


def write_header(parameter: RequestParameter, value: JsonValue) -> str:
    """Return the value of a header.

    Raises:
        ValueError: it holds what would end the header, or is not ASCII.
    """
    if parameter.as_json:
        text = json.dumps(value)
    elif isinstance(value, list):
        text = ",".join(_text(item) for item in value)
    elif isinstance(value, dict):
        link = "=" if parameter.explode else ","
        text = ",".join(f"{key}{link}{_text(item)}" for key, item in value.items())
    else:
        text = _text(value)
    if not text.isascii() or any(ord(character) < 32 or ord(character) == 127 for character in text):
        raise ValueError(f"{parameter.name}: a header takes printable ASCII characters only")
    return text.strip(" ")


def write_cookie(parameter: RequestParameter, value: JsonValue) -> str:
    """Return ``name=value`` for the Cookie header."""
    text = json.dumps(value) if parameter.as_json else None
    return f"{_quote(parameter.name)}={_quote(text) if text is not None else _join(value, ',', ',', False)}"


def _members(value: dict[str, JsonValue]) -> list[tuple[str, str]]:
    return [(_quote(key), _quote(_text(item))) for key, item in value.items()]


def _join(value: JsonValue, separator: str, link: str, explode: bool) -> str:
    if isinstance(value, list):
        return separator.join(_quote(_text(item)) for item in value)
    if isinstance(value, dict):
        between = link if explode else ","
        return separator.join(f"{key}{between}{item}" for key, item in _members(value))
    return _quote(_text(value))


def _text(value: JsonValue) -> str:
    """Return one value as text; what is no scalar is JSON."""
    if isinstance(value, str):
        text = value
    elif isinstance(value, float) and math.isfinite(value) and value.is_integer() and abs(value) < 2**53:
        text = str(int(value))
    elif value is None:
        text = ""
    else:
        text = json.dumps(cast("object", value))
    if len(text) > MAX_VALUE_CHARS:
        raise ValueError(
            f"a value of more than {MAX_VALUE_CHARS} characters cannot stand in an address or a header"
        )
    return text


def _quote(text: str) -> str:
    return quote(text, safe="")
