"""json, csv and urllib.parse: text in, plain data out."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from bascule.guest.facade import FacadeContext, Members
from bascule.wire import Note

_PARSED = (dict, list, int, float, bool, type(None))
_ENCODER_OPTIONS = frozenset(
    {
        "allow_nan",
        "check_circular",
        "default",
        "ensure_ascii",
        "indent",
        "separators",
        "skipkeys",
        "sort_keys",
    }
)
_DECODER_OPTIONS = frozenset(
    {"object_hook", "object_pairs_hook", "parse_constant", "parse_float", "parse_int"}
)


class JSONEncoder:
    """What scripts extend to say how their objects become JSON: override ``default``."""

    def __init__(self, **options: Any) -> None:
        if not issubclass(type(self), JSONEncoder):  # pyright: ignore[reportUnnecessaryIsInstance]
            # Called on something else, it would set an attribute there.
            raise TypeError("JSONEncoder.__init__ needs a JSONEncoder")
        self._options = _checked(options, _ENCODER_OPTIONS, "JSONEncoder")

    def default(self, o: object) -> Any:
        """Return plain data for ``o``, or raise TypeError."""
        raise TypeError(f"Object of type {type(o).__name__} is not JSON serializable")

    def encode(self, o: object) -> str:
        """Return the JSON of ``o``."""
        # Checked again: a subclass may have put others there, cls among them.
        options: dict[str, Any] = {"default": self.default}
        options |= _checked(self._options, _ENCODER_OPTIONS, "JSONEncoder")
        return json.dumps(o, **options)


def _checked(options: dict[str, Any], known: frozenset[str], who: str) -> dict[str, Any]:
    for name in options:
        if name not in known:
            raise TypeError(f"{who} has no option {name!r} here; it has: {', '.join(sorted(known))}")
    return options


def json_module(context: FacadeContext) -> Members:
    """Give json: loads passes on what is parsed already, dumps takes no encoder but ours."""
    notes, read = context.environment.notes, context.guards.read

    def loads(s: Any, **options: Any) -> Any:
        _checked(options, _DECODER_OPTIONS, "json.loads")
        if type(s) in _PARSED:
            if not any(note.code == "json_already_parsed" for note in notes):
                text = (
                    f"json.loads got a {type(s).__name__}, which is parsed already, and returned it unchanged"
                )
                notes.append(Note(code="json_already_parsed", message=text))
            return s
        return json.loads(s, **options)

    def dumps(obj: object, *, cls: type | None = None, **options: Any) -> str:
        if cls is None:
            return json.dumps(obj, **_checked(options, _ENCODER_OPTIONS, "json.dumps"))
        if not issubclass(cls, JSONEncoder):
            raise TypeError("json.dumps: cls must extend json.JSONEncoder; or pass default=function")
        encoder: JSONEncoder = cls(**options)
        return encoder.encode(obj)

    def load(fp: object, **options: Any) -> Any:
        return loads(read(fp, "read")(), **options)

    def dump(obj: object, fp: object, **options: Any) -> None:
        read(fp, "write")(dumps(obj, **options))

    return {"JSONEncoder": JSONEncoder, "dump": dump, "dumps": dumps, "load": load, "loads": loads}


def urllib_parse_module(context: FacadeContext) -> Members:
    """Give urllib.parse; functions behind a cache are called, not shown."""
    from urllib import parse

    def uncached(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: object, **keywords: object) -> Any:
            return function(*args, **keywords)

        call.__name__ = call.__qualname__ = function.__name__
        return call

    return {name: uncached(getattr(parse, name)) for name in ("urlsplit", "urlparse", "urljoin", "unquote")}
