"""Nothing that is not listed is reachable: a crawl over everything a script can name.

From the built-ins, every module, a tool and objects of a script's own, the crawl follows each attribute the
guards give, each item, iteration and call with no argument or one. What it meets must have a row in the
attribute tables, or be a script's own; and never a module, frame, code object, traceback, or a built-in that
runs text or opens files.
"""

from __future__ import annotations

import builtins
import gc
import io
import itertools
import os
import sys
import types
import warnings
from collections import Counter, deque
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn, cast

import pytest

from bascule.guest.calls import Tool, ToolCall
from bascule.guest.classes import TypeFunction, TypeView
from bascule.guest.compiler import compile_script
from bascule.guest.ending import RunEnded
from bascule.guest.facade import Facade
from bascule.guest.guards import Guards
from bascule.guest.namespace import build_namespace
from bascule.guest.rules.modules import MODULES
from bascule.guest.run import Run
from bascule.wire import Act, Done, Finish, GuestLimits, GuestUsage, Start, ToolStub

FORBIDDEN_TYPES = (
    types.ModuleType,
    types.FrameType,
    types.CodeType,
    types.TracebackType,
    types.CellType,
)

FORBIDDEN_BUILTINS: dict[int, str] = {
    id(value): name
    for name, value in {
        "__build_class__": builtins.__build_class__,
        "__import__": builtins.__import__,
        "breakpoint": breakpoint,
        "compile": compile,
        "delattr": delattr,
        "dir": dir,
        "eval": eval,
        "exec": exec,
        "getattr": getattr,
        "globals": globals,
        "hasattr": hasattr,
        "input": input,
        "io.FileIO": io.FileIO,
        "locals": locals,
        "open": open,
        "setattr": setattr,
        "sys.modules": sys.modules,
        "type": type,
        "types.CodeType": types.CodeType,
        "types.FunctionType": types.FunctionType,
        "types.ModuleType": types.ModuleType,
        "vars": vars,
        "vars(builtins)": vars(builtins),
    }.items()
}

OPAQUE = (Facade, Tool, ToolCall, TypeView, TypeFunction)
"""The guest's own objects that scripts hold; only Facade gives names, those it was built with."""

PROBES = """
    __builtins__ __class__ __closure__ __code__ __dict__ __func__ __getattribute__ __globals__ __loader__
    __self__ __subclasses__ __wrapped__ ag_code ag_frame args builtins codecs cr_await cr_code cr_frame enum
    f_back f_builtins f_globals func gen gi_code gi_frame keywords mro obj os sys tb_frame
    throw with_traceback
""".split()  # noqa: SIM905 (words)

LIMITS = GuestLimits(
    wall_s=60.0,
    cpu_s=60.0,
    memory_bytes=1 << 30,
    output_bytes=1 << 30,
    recursion=1_000,
    calls=100_000,
    frame_bytes=1 << 20,
)

_NOTHING = Finish(status="limit", activations=(), usage=GuestUsage(cpu_s=0.0, peak_memory_bytes=0))

INSTANCES_PER_TYPE = 12
MAX_OBJECTS = 20_000

SCRIPT = """
import abc
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

class Plain:
    shared = 1
    def __init__(self):
        self.x = 1
    def method(self, *values):
        return values
    @property
    def prop(self):
        return self.x
    @classmethod
    def make(cls):
        return cls()

class Words(str):
    pass

class Table(dict):
    pass

class Problem(ValueError):
    pass

@dataclass
class Row:
    a: int = 1

class Colour(Enum):
    RED = 1

class Pair(NamedTuple):
    a: int = 1

class Base(abc.ABC):
    @abc.abstractmethod
    def f(self): ...

def function(*values, **named):
    return values

def apply(callee, *values):
    # Calls come from the script's own code: some functions look at who calls them.
    return callee(*values)

def generator():
    yield 1

def failing():
    try:
        function.missing
    except AttributeError as error:
        return error

def chained():
    try:
        try:
            {}["a"]
        except KeyError as error:
            raise Problem("b") from error
    except Problem as error:
        return error

class Context:
    def __enter__(self):
        return self
    def __exit__(self, *details):
        self.details = details
        return True

with Context() as context:
    1 / 0

objects = [
    Plain(), Words("a"), Table(a=1), Problem("a"), Row(), Colour.RED, Pair(), function, generator(),
    failing(),
    chained(), Plain.method, Plain().method, lambda: 0, property, [1], {"a": 1}, {1}, "{0}", b"a", 1.5, (1,),
    iter([1]), (n for n in [1]), range(3), slice(1), type(1), type(function), context, NotImplemented, ...,
]
"""


class Nobody:
    """Stands for the host: whoever waits for it ends the run."""

    def exchange(self, act: Act) -> Done:
        raise RunEnded(_NOTHING)

    def hand_over(self, act: Act) -> None:
        pass


def _end(finish: Finish) -> NoReturn:
    raise RunEnded(finish)


class Crawl:
    """One walk over what can be reached."""

    def __init__(self) -> None:
        stub = ToolStub(name="look", parameters={"properties": {"n": {"type": "integer"}}})
        start = Start(script=SCRIPT, tools=(stub,), seed=1, now=1.0, limits=LIMITS)
        run = Run(start, Nobody(), _end)
        compiled = compile_script(SCRIPT, tool_names=["look"])
        tools = run.tools(awaitable=True)
        tool = tools["look"]
        self.namespace = build_namespace(compiled, run.environment, tools)
        self.guards = _guards(self.namespace)
        exec(compiled.code, self.namespace)
        cast(Any, self.namespace["<script>"])()
        self.met: Counter[object] = Counter()
        self.problems: dict[str, str] = {}
        self.cut_short = False
        self._kept: dict[int, object] = {}
        self._queue: deque[tuple[object, str]] = deque()
        own = cast(list[object], self.namespace["objects"])
        self.samples: list[object] = [
            *(2, "a", b"a", [1], (1, 2), {"a": 1}, own[0], own[4], self.namespace["function"]),
            *(self.namespace["Plain"], tool, ValueError("a"), self._facade("json")),
        ]

    def _facade(self, name: str) -> Facade:
        importer = cast(Any, self.namespace["<import from>"])
        return cast(Facade, importer(name))

    def run(self) -> None:
        made = cast(dict[str, object], self.namespace["__builtins__"])
        for name, value in made.items():
            if not name.startswith("__"):
                self.add(value, name)
        for name, value in self.namespace.items():
            if not name.startswith(("<", "__")):
                self.add(value, name)
        for name in (*MODULES, "asyncio", "concurrent.futures"):
            self.add(self._facade(name), f"import {name}")
        while self._queue:
            self.follow(*self.take())

    def take(self) -> tuple[object, str]:
        return self._queue.popleft()

    def add(self, value: object, path: str) -> None:
        self.judge(value, path)
        key = _sort_of(value)
        self.met[key] += 1
        if self.met[key] > (1 if key is not type(value) else INSTANCES_PER_TYPE) or id(value) in self._kept:
            return
        if len(self._kept) >= MAX_OBJECTS:
            self.cut_short = True
            return
        self._kept[id(value)] = value
        self._queue.append((value, path))

    def judge(self, value: object, path: str) -> None:
        kind = type(value)
        if isinstance(value, FORBIDDEN_TYPES):
            if path.endswith("details[2]"):
                return  # __exit__ gets the live traceback, as Python gives it; see below: it gives nothing
            self.problems.setdefault(f"forbidden {kind.__name__}", path)
        elif id(value) in FORBIDDEN_BUILTINS:
            self.problems.setdefault(f"forbidden {FORBIDDEN_BUILTINS[id(value)]}", path)
        elif isinstance(value, type):
            if not self.guards.classes.is_nameable(value) and value not in self.guards.tables.instances:
                self.problems.setdefault(f"class {value.__module__}.{value.__qualname__}", path)
        elif not (
            kind in self.guards.tables.instances
            or self.guards.classes.is_known(kind)
            or isinstance(value, OPAQUE)
        ):
            self.problems.setdefault(f"type {kind.__module__}.{kind.__qualname__}", path)

    def follow(self, value: object, path: str) -> None:
        for name in {*dir(value), *PROBES}:
            try:
                found = self.guards.read(value, name)
            except Exception:  # whatever refuses: nothing was given
                continue
            self.add(found, f"{path}.{name}")
        if isinstance(value, Facade | type):
            if isinstance(value, type):
                self.call(value, path)
            return
        for index, item in enumerate(_items(value)):
            self.add(item, f"{path}[{index}]")
        self.call(value, path)

    def call(self, value: object, path: str) -> None:
        if isinstance(value, types.CoroutineType | types.GeneratorType):
            value.close()
            return
        if not callable(value):
            return
        apply = cast(Any, self.namespace["apply"])
        for arguments in ((), *((sample,) for sample in self.samples)):
            try:
                result = apply(value, *arguments)
            except RunEnded:
                continue
            except BaseException as error:  # exit() and cancellations too
                error.__traceback__ = None
                result = error
            self.add(result, f"{path}({', '.join(type(argument).__name__ for argument in arguments)})")


def _sort_of(value: object) -> object:
    """Return what makes a value worth following on its own: functions by code, classes by themselves."""
    if isinstance(value, types.FunctionType):
        return value.__code__
    if isinstance(value, types.MethodType):
        return _sort_of(value.__func__)
    if isinstance(value, types.BuiltinFunctionType):
        return type(value.__self__), value.__qualname__
    return value if isinstance(value, type | Facade) else type(value)


def _guards(namespace: dict[str, object]) -> Guards:
    return cast(Guards, cast(Any, namespace["<check>"]).__self__)


def _items(value: object) -> Iterator[object]:
    if isinstance(value, dict):
        yield from itertools.islice(cast(dict[object, object], value).keys(), 20)
        yield from itertools.islice(cast(dict[object, object], value).values(), 20)
        return
    with suppress(Exception):
        yield from itertools.islice(cast(Any, value), 5)


@contextmanager
def crawling() -> Generator[Crawl]:
    """Give a crawl; what it leaves, coroutines that nobody awaits among it, ends with it unheard."""
    walk = Crawl()
    try:
        yield walk
    finally:
        with unheard():
            vars(walk).clear()
            gc.collect()


@contextmanager
def unheard() -> Generator[None]:
    """Let nothing be said of coroutines that are made and never awaited."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.fixture(scope="module")
def crawl() -> Iterator[Crawl]:
    with crawling() as walk:
        with unheard():
            walk.run()
        yield walk


@pytest.mark.filterwarnings("ignore")
def test_the_crawl_meets_only_what_is_listed(crawl: Crawl) -> None:
    assert crawl.problems == {}


def test_the_crawl_went_everywhere(crawl: Crawl) -> None:
    assert len(crawl.met) > 200
    assert sum(crawl.met.values()) > 3_000
    assert not crawl.cut_short


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "leak", [os, open, types.FunctionType, io.FileIO, sys.modules, compile("1", "", "eval")]
)
def test_the_crawl_finds_what_is_planted(leak: object) -> None:
    with crawling() as walk:
        walk.add(Facade("planted", {"leak": leak}), "planted")
        value, path = walk.take()
        walk.follow(value, path)
        del value
        assert list(walk.problems.values()) == ["planted.leak"]


@pytest.mark.parametrize("name", ["tb_frame", "tb_next", "tb_lineno", "with_traceback"])
def test_a_traceback_handed_to_exit_gives_nothing(crawl: Crawl, name: str) -> None:
    context: Any = crawl.namespace["context"]
    with pytest.raises(AttributeError):
        crawl.guards.read(context.details[2], name)
