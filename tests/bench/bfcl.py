"""Multi-turn tasks of the Berkeley Function Calling Leaderboard: its stateful tools, golden calls as scripts.

The wheels are fetched when a test or bench runs and imported from the folder of artifacts; nothing of them is
kept here. Its tool classes are ordinary Python that others wrote and run in this process, on the host's side,
as any tool does. Golden calls are parsed, never evaluated.

Three traps: results are references to live state (they are copied when they are made), `TradingBot` writes
local times (the process must be in UTC), and `VehicleControlAPI` writes into its module in long-context mode
(this category does not use it).
"""

from __future__ import annotations

import ast
import copy
import functools
import importlib
import inspect
import itertools
import json
import sys
import warnings
import zipfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

from bascule.tools import AnyTool, canonical_json, tool
from bascule.tools.schema import is_object
from tests.conformance.packages import fetch_wheel

REQUIREMENTS: Final = ("bfcl-eval==2026.3.23", "mpmath==1.3.0")
CATEGORY: Final = "multi_turn_base"
_SOURCES: Final = "bfcl_eval.eval_checker.multi_turn_eval.func_source_code"
_MODULES: Final = {
    "GorillaFileSystem": "gorilla_file_system",
    "MathAPI": "math_api",
    "MessageAPI": "message_api",
    "TwitterAPI": "posting_api",
    "TicketAPI": "ticket_api",
    "TradingBot": "trading_bot",
    "TravelAPI": "travel_booking",
    "VehicleControlAPI": "vehicle_control",
}
_WITHOUT_STATE: Final = "MathAPI"


@dataclass(frozen=True, slots=True)
class Call:
    """One golden call."""

    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One conversation.

    Attributes:
        config: initial state by class.
        questions: what the user says in each turn.
        turns: the golden calls of each turn; some turns have none.
    """

    id: str
    classes: tuple[str, ...]
    config: Mapping[str, Any]
    questions: tuple[str, ...]
    turns: tuple[tuple[Call, ...], ...]


@dataclass(slots=True)
class World:
    """Fresh instances of an entry's classes, and what was called on them."""

    entry: Entry
    calls: list[bytes] = field(default_factory=list[bytes])
    instances: dict[str, Any] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        for name in self.entry.classes:
            instance = _class(name)()
            if name != _WITHOUT_STATE:
                instance._load_scenario(copy.deepcopy(self.entry.config.get(name, {})), long_context=False)
            self.instances[name] = instance

    def call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Call a method by name, as the leaderboard does: of two classes that have it the later, and with
        exceptions as text. What is kept of it has every default filled in."""
        owner = _owner(self.entry.classes, name)
        whole = inspect.signature(_methods(owner)[name]).bind(None, **arguments)
        whole.apply_defaults()
        self.calls.append(canonical_json([name, list(whole.args[1:]), whole.kwargs]))
        try:
            result = getattr(self.instances[owner], name)(**copy.deepcopy(dict(arguments)))
        except Exception as error:  # whatever the tools of the leaderboard raise
            return {"error": f"Error during execution: {error}"}
        return copy.deepcopy(_plain_numbers(result))

    def tools(self) -> list[AnyTool]:
        """Return the tools of the entry's classes, each bound to this world."""
        names = {name: None for each in self.entry.classes for name in _methods(each)}
        return [self._tool(name) for name in names]

    def state(self) -> Any:
        """Return everything public in the instances as plain data; times of day are left out."""
        return {
            name: _public(instance)
            | ({"cwd": instance._current_dir.name} if name == "GorillaFileSystem" else {})
            for name, instance in self.instances.items()
        }

    def _tool(self, name: str) -> AnyTool:
        method = _methods(_owner(self.entry.classes, name))[name]
        signature = inspect.signature(method)
        parameters = list(signature.parameters.values())[1:]

        @functools.wraps(method)
        def call(**arguments: Any) -> Any:
            return self.call(name, arguments)

        hints: dict[str, Any] = {**getattr(method, "__annotations__", {}), "return": Any}
        for golden in itertools.chain(*self.entry.turns):
            for key, value in golden.arguments.items() if golden.name == name else ():
                # One golden call contradicts its own annotation (a ticket number that is a text).
                if hints[key] is int and isinstance(value, str):
                    hints[key] = int | str
        call.__annotations__ = hints
        parameters = [each.replace(annotation=hints[each.name]) for each in parameters]
        call.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        return tool(effects="idempotent")(call)


def load_entries() -> list[Entry]:
    """Return all entries, or skip the test when the wheels cannot be fetched."""
    folder = _unpack()
    data = folder / "bfcl_eval" / "data"
    golden = {row["id"]: row for row in _rows(data / "possible_answer" / f"BFCL_v4_{CATEGORY}.json")}
    return [
        Entry(
            id=row["id"],
            classes=tuple(row["involved_classes"]),
            config=row["initial_config"],
            questions=tuple(" ".join(message["content"] for message in turn) for turn in row["question"]),
            turns=tuple(
                tuple(_parse(text, tuple(row["involved_classes"])) for text in turn)
                for turn in golden[row["id"]]["ground_truth"]
            ),
        )
        for row in _rows(data / f"BFCL_v4_{CATEGORY}.json")
    ]


def script_of(turn: tuple[Call, ...]) -> str:
    """Return the calls of one turn as a script that prints the last result."""
    lines = [
        f"{call.name}({', '.join(f'{key}={value!r}' for key, value in call.arguments.items())})"
        for call in turn
    ]
    return "\n".join([*lines[:-1], f"print({lines[-1]})"]) + "\n"


def _unpack() -> Path:
    """Unpack the wheels side by side and make them importable."""
    into = fetch_wheel(REQUIREMENTS[0]).parent.parent / "bfcl"
    for requirement in REQUIREMENTS:
        wheel = fetch_wheel(requirement)
        done = into / f".{wheel.stem}"
        if not done.exists():
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(into)
            done.touch()
    if str(into) not in sys.path:
        sys.path.append(str(into))
    return into


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


@functools.cache
def _class(name: str) -> type[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of code that is not ours
        return cast("type[Any]", getattr(importlib.import_module(f"{_SOURCES}.{_MODULES[name]}"), name))


@functools.cache
def _methods(name: str) -> dict[str, Callable[..., Any]]:
    found = inspect.getmembers(_class(name), inspect.isfunction)
    return {key: value for key, value in found if not key.startswith("_")}


def _owner(classes: tuple[str, ...], name: str) -> str:
    return next(each for each in reversed(classes) if name in _methods(each))


def _parse(text: str, classes: tuple[str, ...]) -> Call:
    node = ast.parse(text.strip(), mode="eval").body
    assert isinstance(node, ast.Call)
    assert isinstance(node.func, ast.Name)
    method = _methods(_owner(classes, node.func.id))[node.func.id]
    positional = [ast.literal_eval(each) for each in node.args]
    named = {each.arg: ast.literal_eval(each.value) for each in node.keywords if each.arg is not None}
    bound = inspect.signature(method).bind(None, *positional, **named)
    return Call(node.func.id, {key: value for key, value in bound.arguments.items() if key != "self"})


def _plain_numbers(result: Any) -> Any:
    """Return a result with its multi-precision numbers as floats; nothing else they return is no JSON."""
    if is_object(result):
        return {key: _plain_numbers(value) for key, value in result.items()}
    return float(result) if type(result).__name__ == "mpf" else result


def _plain(value: Any) -> Any:
    if isinstance(value, str | int | float | bool) or value is None:
        return value
    if is_object(value):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in cast("Sequence[Any]", value)]
    if isinstance(value, set):
        return sorted(map(str, cast("Collection[Any]", value)))
    kind = type(value).__name__
    if kind == "File":
        return {"file": value.name, "content": value.content}
    if kind == "Directory":
        return {"dir": value.name, "contents": _plain(value.contents)}
    if kind == "Random" or not hasattr(value, "__dict__"):
        return kind
    return _public(value)


def _public(instance: Any) -> dict[str, Any]:
    return {
        key: _plain(value) for key, value in cast("dict[str, Any]", vars(instance)).items() if key[0] != "_"
    }
