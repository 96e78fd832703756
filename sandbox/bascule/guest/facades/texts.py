"""json, csv and urllib.parse: text in, plain data out."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from bascule.guest.facade import Members, Run
from bascule.wire import Note

_PARSED = (dict, list, int, float, bool, type(None))
_ENCODER_OPTIONS = frozenset(
    ["skipkeys", "ensure_ascii", "check_circular", "allow_nan", "sort_keys", "indent", "separators", "default"]
)
_DECODER_OPTIONS = frozenset(["object_hook", "parse_float", "parse_int", "parse_constant", "object_pairs_hook"])


class JSONEncoder:
    """What scripts extend to say how their objects become JSON: override ``default``."""

    def __init__(self, **options: Any) -> None:
        self.__options = _checked(options, _ENCODER_OPTIONS, "JSONEncoder")

    def default(self, o: object) -> Any:
        """Return plain data for ``o``, or raise TypeError."""
        raise TypeError(f"Object of type {type(o).__name__} is not JSON serializable")

    def encode(self, o: object) -> str:
        """Return the JSON of ``o``."""
        return json.dumps(o, **{"default": self.default, **self.__options})


def _checked(options: dict[str, Any], known: frozenset[str], who: str) -> dict[str, Any]:
    for name in options:
        if name not in known:
            raise TypeError(f"{who} has no option {name!r} here; it has: {', '.join(sorted(known))}")
    return options


def json_module(run: Run) -> Members:
    """Give json: loads passes on what is parsed already, dumps takes no encoder but ours."""
    notes, read = run.environment.notes, run.guards.read

    def loads(s: Any, **options: Any) -> Any:
        _checked(options, _DECODER_OPTIONS, "json.loads")
        if type(s) in _PARSED:
            if not any(note.code == "json_already_parsed" for note in notes):
                notes.append(
                    Note(
                        code="json_already_parsed",
                        message=f"json.loads got a {type(s).__name__}, which is parsed already, and returned it "
                        "unchanged; results of tools need no json.loads",
                    )
                )
            return s
        return json.loads(s, **options)

    def dumps(obj: object, *, cls: type | None = None, **options: Any) -> str:
        if cls is None:
            return json.dumps(obj, **_checked(options, _ENCODER_OPTIONS, "json.dumps"))
        if not issubclass(cls, JSONEncoder):
            raise TypeError("json.dumps: cls must extend json.JSONEncoder; or pass default=function")
        encoder: Any = cls(**options)
        return encoder.encode(obj)

    def load(fp: object, **options: Any) -> Any:
        return loads(read(fp, "read")(), **options)

    def dump(obj: object, fp: object, **options: Any) -> None:
        read(fp, "write")(dumps(obj, **options))

    return {"JSONEncoder": JSONEncoder, "dump": dump, "dumps": dumps, "load": load, "loads": loads}


def urllib_parse_module(run: Run) -> Members:
    """Give urllib.parse; functions behind a cache are called, not shown."""
    from urllib import parse

    def uncached(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: object, **keywords: object) -> Any:
            return function(*args, **keywords)

        call.__name__ = call.__qualname__ = function.__name__
        return call

    return {name: uncached(getattr(parse, name)) for name in ("urlsplit", "urlparse", "urljoin", "unquote")}
