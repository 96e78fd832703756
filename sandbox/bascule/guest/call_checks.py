"""Preflight of tool calls: parameter names and literal arguments against the tool's schema."""

from __future__ import annotations

import ast
from typing import cast

from bascule.guest.advice import did_you_mean
from bascule.guest.schemas import Schema, fields, only_type, problems
from bascule.guest.signature import describe_parameters, describe_type
from bascule.guest.survey import Survey
from bascule.wire import ToolStub

_AMOUNTS = frozenset(
    {"count", "first", "head", "last", "length", "limit", "lines", "max", "max_items", "max_lines"}
    | {"max_results", "n", "num", "offset", "size", "skip", "tail", "top"}
)
"""Arguments that ask for a part of a result."""


def check_tool_calls(survey: Survey) -> None:
    """Find calls whose arguments certainly do not fit."""
    for call, stub in survey.calls():
        arguments = _arguments(call, stub)
        if arguments is not None and not survey.is_caught(
            call, "TypeError", "ValueError", "ToolArgumentError"
        ):
            _check_call(survey, call, stub, *arguments)
    _check_namespaces(survey)


def _properties(stub: ToolStub) -> dict[str, Schema]:
    return cast("dict[str, Schema]", stub.parameters.get("properties") or {})


def _required(stub: ToolStub) -> list[str]:
    return cast("list[str]", stub.parameters.get("required") or [])


def _arguments(
    call: ast.Call, stub: ToolStub
) -> tuple[list[ast.expr], dict[str, tuple[ast.AST, ast.expr]]] | None:
    """Return positionals and keywords as the call will bind them, or None when that is not certain."""
    if any(isinstance(part, ast.Starred) for part in call.args) or any(k.arg is None for k in call.keywords):
        return None
    named = {keyword.arg: (keyword, keyword.value) for keyword in call.keywords if keyword.arg is not None}
    if len(call.args) != 1 or named:
        return list(call.args), cast("dict[str, tuple[ast.AST, ast.expr]]", named)
    only = call.args[0]
    if not isinstance(only, ast.Dict):
        # Anything but a literal may turn out to be the one dict of arguments.
        return ([only], {}) if isinstance(only, (ast.Constant, ast.JoinedStr, ast.List)) else None
    spelled: dict[str, tuple[ast.AST, ast.expr]] = {}
    for key, value in zip(only.keys, only.values, strict=True):
        if not (isinstance(key, ast.Constant) and isinstance(key.value, str)):
            return None
        spelled[key.value] = (key, value)
    known = _properties(stub)
    if spelled.keys() <= known.keys() and set(_required(stub)) <= spelled.keys():
        return [], spelled
    if _takes_dict(stub):
        return [only], {}
    return [], spelled


def _takes_dict(stub: ToolStub) -> bool:
    """Whether the first parameter can be a dict itself."""
    first = next(iter(_properties(stub).values()), None)
    return first is not None and only_type(first, stub.parameters)[0] in ("object", None)


def _check_call(
    survey: Survey,
    call: ast.Call,
    stub: ToolStub,
    positionals: list[ast.expr],
    named: dict[str, tuple[ast.AST, ast.expr]],
) -> None:
    known = _properties(stub)
    name, usage = stub.name, f"write {describe_parameters(stub.name, stub.parameters)}"
    parameters = list(known)
    if len(positionals) > len(parameters):
        count = f"{len(parameters)} argument{'' if len(parameters) == 1 else 's'}"
        message = f"{name}() takes {count}, got {len(positionals)}"
        survey.find(positionals[len(parameters)], "invalid_arguments", message, usage)
    if _check_spread(survey, call, stub, positionals, named):
        return
    bound: dict[str, ast.expr] = dict(zip(parameters, positionals, strict=False))
    for key, (node, value) in named.items():
        if key not in known:
            takes = f"it takes only {', '.join(known)}" if known else "it takes none"
            sliced = "; it gives all of its result: slice that in the script"
            advice = (did_you_mean(key, known) or usage) + (sliced if key.lower() in _AMOUNTS else "")
            survey.find(node, "invalid_arguments", f"{name}() has no argument `{key}`; {takes}", advice)
        elif key in bound:
            survey.find(node, "invalid_arguments", f"{name}() gets `{key}` twice", usage)
        else:
            bound[key] = value
    for key in _required(stub):
        if key not in bound:
            kind = describe_type(known.get(key, {}), stub.parameters)
            message = f"{name}() is missing the argument `{key}` ({kind})"
            survey.find(call, "invalid_arguments", message, usage)
    for key, value in bound.items():
        for node, message, hint in problems(value, known[key], stub.parameters, key):
            survey.find(node, "invalid_arguments", f"{name}(): {message}", hint or usage)


def _check_spread(
    survey: Survey,
    call: ast.Call,
    stub: ToolStub,
    positionals: list[ast.expr],
    named: dict[str, tuple[ast.AST, ast.expr]],
) -> bool:
    """Find the fields of a tool's one dict given as arguments of their own, which takes one message."""
    properties = _properties(stub)
    if positionals or not named or len(properties) != 1:
        return False
    (parameter, schema), *_ = properties.items()
    inside = fields(schema, stub.parameters)
    if not inside or parameter in named or not named.keys() <= inside.keys():
        return False
    written = ", ".join(f"{key!r}: ..." for key in named)
    survey.find(
        call,
        "invalid_arguments",
        f"{stub.name}() takes one argument, `{parameter}`, a dict that holds these fields",
        f"write {stub.name}({parameter}={{{written}}})",
    )
    return True


def _check_namespaces(survey: Survey) -> None:
    """Find ``crm.find_contcat(...)``: a name that a namespace of tools does not have."""
    spaces = {name.rpartition(".")[0] for name in survey.tools if "." in name}
    for node in survey.nodes:
        if not isinstance(node, ast.Attribute):
            continue
        name = survey.dotted(node)
        if name is None or name.rpartition(".")[0] not in spaces or name.partition(".")[0] in survey.binders:
            continue
        if name not in survey.tools and name not in spaces:
            hint = did_you_mean(name, survey.tools)
            survey.find(node, "unknown_tool", f"there is no tool named `{name}`", hint)
