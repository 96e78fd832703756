"""Which builder makes which facade. Decides nothing about names: that is ``rules/modules.py``.

A module's own code is imported when a script imports the facade, not before: idle guests stay small.
"""

from __future__ import annotations

import datetime
import importlib
from collections.abc import Callable, Iterator, MutableMapping

from bascule.guest.environment import Environment
from bascule.guest.facade import Builder, Facade, FacadeContext, FacadeGuards, Members, take
from bascule.guest.rules.late import LATE
from bascule.guest.rules.modules import MODULES

_PACKAGE = "bascule.guest.facades"

_OWN: dict[str, str] = {
    "abc": "records:abc_module",
    "calendar": "clocks:calendar_module",
    "collections": "records:collections_module",
    "contextlib": "contexts:contextlib_module",
    "copy": "records:copy_module",
    "dataclasses": "records:dataclasses_module",
    "decimal": "numerals:decimal_module",
    "enum": "records:enum_module",
    "functools": "callables:functools_module",
    "gc": "streams:gc_module",
    "itertools": "callables:itertools_module",
    "json": "texts:json_module",
    "logging": "logs:logging_module",
    "operator": "callables:operator_module",
    "pathlib": "paths:pathlib_module",
    "pprint": "pretty:pprint_module",
    "random": "randomness:random_module",
    "secrets": "randomness:secrets_module",
    "statistics": "randomness:statistics_module",
    "sys": "streams:sys_module",
    "time": "clocks:time_module",
    "traceback": "tracebacks:traceback_module",
    "typing": "records:typing_module",
    "urllib.parse": "texts:urllib_parse_module",
    "uuid": "randomness:uuid_module",
}
"""Facade name to the module of this package and the function in it that gives the names that are ours."""

_WHOLE: dict[str, str] = {
    "asyncio": "bascule.guest.aio:build_asyncio",
    "concurrent.futures": "bascule.guest.pool:build_futures",
}
"""Facades that are entirely ours: the real module is never imported. Name to the function that makes it."""


class Modules(MutableMapping[str, Facade]):
    """Facades by dotted name, each built when it is first asked for."""

    def __init__(self, context: FacadeContext) -> None:
        self._context = context
        self._built: dict[str, Facade] = {}
        self._names = dict.fromkeys((*MODULES, *_WHOLE))

    def __getitem__(self, name: str) -> Facade:
        facade = self._built.get(name)
        if facade is None:
            if name not in self._names:
                raise KeyError(name)
            facade = self._built[name] = self._build(name)
        return facade

    def __setitem__(self, name: str, facade: Facade) -> None:
        self._names[name] = None
        self._built[name] = facade

    def __delitem__(self, name: str) -> None:
        del self._names[name]
        self._built.pop(name, None)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def _build(self, name: str) -> Facade:
        if name in _WHOLE:
            module_name, function = _WHOLE[name].split(":")
            whole: Callable[[FacadeContext], Facade] = getattr(importlib.import_module(module_name), function)
            return whole(self._context)
        own: Members = {}
        if name in _OWN:
            module_name, function = _OWN[name].split(":")
            builder: Builder = getattr(importlib.import_module(f"{_PACKAGE}.{module_name}"), function)
            own = builder(self._context)
        inner = {key.removeprefix(f"{name}."): key for key in MODULES if key.startswith(f"{name}.")}
        native = MODULES[name] - own.keys() - inner.keys()
        members = own | (take(importlib.import_module(name), native) if native else {})
        members |= {short: self[full] for short, full in inner.items()}
        if name in LATE:
            self._context.guards.admit(LATE[name]())
        return Facade(name, members)


def build_modules(environment: Environment, guards: FacadeGuards) -> Modules:
    """Return the importable modules of one run. Nothing in them is shared with another run."""
    return Modules(FacadeContext(environment, guards))


def class_replacements(environment: Environment) -> dict[tuple[type, str], Callable[..., object]]:
    """Return what stands in for class methods that would look at the machine.

    Each is what reading the name from the class gives, ready to be called.
    """
    clock = environment.clock

    def today() -> datetime.date:
        return clock.utc().date()

    def now(tz: datetime.tzinfo | None = None) -> datetime.datetime:
        moment = clock.utc()
        return moment.replace(tzinfo=None) if tz is None else moment.astimezone(tz)

    def utcnow() -> datetime.datetime:
        return clock.utc().replace(tzinfo=None)

    def strptime(date_string: str, format: str, /) -> datetime.datetime:
        # Called from here, the C code finds its Python part through our builtins, not the script's.
        return datetime.datetime.strptime(date_string, format)

    return {
        (datetime.date, "today"): today,
        (datetime.datetime, "today"): utcnow,
        (datetime.datetime, "now"): now,
        (datetime.datetime, "utcnow"): utcnow,
        (datetime.datetime, "strptime"): strptime,
    }
