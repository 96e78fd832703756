"""Preflight of names and imports: what is bound nowhere, and what exists nowhere here."""

from __future__ import annotations

import ast
from collections.abc import Collection

from bascule.guest.advice import did_you_mean, nearest
from bascule.guest.errors import SCRIPT_ERRORS
from bascule.guest.rules.modules import MODULES, REFUSED_MODULES, missing_name, refusal, tools_may_help
from bascule.guest.rules.names import HINTS, NAMES
from bascule.guest.rules.syntax import is_special
from bascule.guest.survey import Survey

_OPEN_MODULES = frozenset({"asyncio", "concurrent", "concurrent.futures"})
"""Modules whose names are decided elsewhere."""

_GIVEN = {name for name, rule in NAMES.items() if rule.given}
_MAX_TOOLS = 12
_NO_IMPORT = "leave the import out, and call the tools by their names"


def check_names(survey: Survey) -> None:
    """Find names that are bound nowhere."""
    for name, uses in survey.loads.items():
        if name in survey.binders or name in _GIVEN or name in survey.roots or name in SCRIPT_ERRORS:
            continue
        if name in survey.known:
            continue
        if is_special(name):
            continue  # the compiler says so
        for node in uses:
            if not survey.is_caught(node, "NameError"):
                _unknown_name(survey, node)


def _unknown_name(survey: Survey, node: ast.Name) -> None:
    name = node.id
    if name in NAMES:
        substitute = NAMES[name].substitute
        hint = _tools(survey) if name == "open" else None
        survey.find(node, "refused_name", f"`{name}` is not available: {substitute}", hint or substitute)
        return
    if name in HINTS:
        survey.find(node, "unknown_name", f"`{name}` is not defined", HINTS[name])
        return
    if name in MODULES or name in _OPEN_MODULES:
        survey.find(node, "unknown_name", f"`{name}` is not imported", f"add `import {name}` at the top")
        return
    parent = survey.parents.get(node)
    is_called = isinstance(parent, ast.Call) and parent.func is node
    homes = sorted(module for module, names in MODULES.items() if name in names)
    if homes and not nearest(name, survey.tools, 1):
        home = min(homes, key=lambda module: (module not in _LIKELY_HOMES, module))
        survey.find(
            node, "unknown_name", f"`{name}` is not imported", f"add `from {home} import {name}` at the top"
        )
        return
    if isinstance(parent, ast.Attribute) and _is_tool(survey, parent.attr):
        hint = f"call the tool by its name, `{parent.attr}(...)`"
        survey.find(node, "unknown_name", f"`{name}` is not defined", hint)
        return
    if _is_caught_class(survey, node):
        hint = _EXCEPTIONS if not (near := did_you_mean(name, SCRIPT_ERRORS)) else f"{near} {_EXCEPTIONS}"
        survey.find(node, "unknown_name", f"`{name}` is not defined", hint)
        return
    callables = [item for item in survey.binders if is_called and _is_defined(survey, item)]
    known = [*survey.tools, *(callables if is_called else survey.binders), *_GIVEN]
    near = did_you_mean(name, survey.tools) if is_called else None
    hint = near or did_you_mean(name, known) or (_tools(survey) if is_called else None)
    if is_called:
        survey.find(node, "unknown_tool", f"there is no tool or function named `{name}`", hint)
    else:
        survey.find(node, "unknown_name", f"`{name}` is not defined", hint)


_EXCEPTIONS = (
    "`except ToolError as error` catches what any tool raises, `except ValueError` and its like what that "
    "class is made from"
)


def _is_caught_class(survey: Survey, node: ast.Name) -> bool:
    """Whether a name stands behind ``except``."""
    parent = survey.parents.get(node)
    if isinstance(parent, ast.Tuple):
        parent = survey.parents.get(parent)
    return isinstance(parent, ast.ExceptHandler)


def _is_defined(survey: Survey, name: str) -> bool:
    """Whether a name is bound by a definition or an import, and so can be what a call means."""
    kinds = ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.alias
    return any(isinstance(binder, kinds) for binder in survey.binders[name])


_LIKELY_HOMES = frozenset(
    {"collections", "dataclasses", "datetime", "decimal", "typing", "functools", "math"}
)


def _tools(survey: Survey) -> str | None:
    names = list(survey.tools)
    if not names:
        return None
    more = f" and {len(names) - _MAX_TOOLS} more" if len(names) > _MAX_TOOLS else ""
    return f"the tools are: {', '.join(names[:_MAX_TOOLS])}{more}"


def check_imports(survey: Survey) -> None:
    """Find imports of modules and names that are not here."""
    for node in survey.nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                _check_module(survey, alias, alias.name)
        elif (
            isinstance(node, ast.ImportFrom)
            and node.module
            and not node.level
            and node.module != "__future__"
        ):
            _check_from(survey, node, node.module)


def _check_from(survey: Survey, node: ast.ImportFrom, module: str) -> None:
    names = [alias for alias in node.names if alias.name != "*" and f"{module}.{alias.name}" not in MODULES]
    names = [alias for alias in names if f"{module}.{alias.name}" not in _OPEN_MODULES]
    if not names:
        return
    if module not in MODULES and any(_is_tool(survey, alias.name) for alias in names):
        survey.find(node, "refused_import", f"there is no module `{module}`: the tools are there", _NO_IMPORT)
        return
    if not _check_module(survey, node, module) or module in _OPEN_MODULES:
        return
    for alias in names:
        if alias.name in MODULES[module] or survey.is_caught(node, "ImportError"):
            continue
        known = MODULES[module]
        hint = missing_name(module, alias.name) or _near_or_all(alias.name, known)
        survey.find(alias, "unknown_import", f"`{module}` has no `{alias.name}` here", hint)


def _check_module(survey: Survey, node: ast.AST, name: str) -> bool:
    if name in MODULES or name in _OPEN_MODULES:
        return True
    if survey.is_caught(node, "ImportError", "ModuleNotFoundError"):
        return False
    top = name.partition(".")[0]
    near = [] if top in REFUSED_MODULES else nearest(name, [*MODULES, *_OPEN_MODULES], 1)
    if top in survey.given:
        hint = f"call `{top}` without an import"
        survey.find(node, "refused_import", f"`{top}` is a tool, not a module: it needs no import", hint)
    elif _holds_tools(survey, top):
        survey.find(node, "refused_import", f"there is no module `{name}`: the tools are there", _NO_IMPORT)
    elif near:
        survey.find(node, "refused_import", f"there is no module `{name}`", f"did you mean `{near[0]}`?")
    else:
        message = refusal(name)
        survey.find(node, "refused_import", message, _tools(survey) if tools_may_help(message) else None)
    return False


def _is_tool(survey: Survey, name: str) -> bool:
    return name in survey.given


def _holds_tools(survey: Survey, name: str) -> bool:
    """Whether the script takes tools for attributes of a module of its invention."""
    uses = (survey.parents.get(use) for use in survey.loads.get(name, ()))
    return any(isinstance(use, ast.Attribute) and _is_tool(survey, use.attr) for use in uses)


def check_module_attributes(survey: Survey) -> None:
    """Find names that an imported module does not have here."""
    for node in survey.nodes:
        if not (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)):
            continue
        module = _module_of(survey, node.value.id)
        if module is None or node.attr in MODULES[module] or f"{module}.{node.attr}" in MODULES:
            continue
        if f"{module}.{node.attr}" in _OPEN_MODULES or is_special(node.attr):
            continue
        if survey.is_caught(node, "AttributeError"):
            continue
        known = MODULES[module]
        hint = missing_name(module, node.attr) or _of_class(module, node) or _near_or_all(node.attr, known)
        survey.find(node, "refused_attribute", f"`{module}.{node.attr}` is not available", hint)


def _of_class(module: str, node: ast.Attribute) -> str | None:
    """Return what to write for a name of the class that has the module's own name."""
    if module != "datetime" or node.attr not in _OF_DATETIME:
        return None
    home = "date" if node.attr == "today" else "datetime"
    written = f"{ast.unparse(node.value)}.{home}.{node.attr}"
    return f"this is the module: write `{written}(...)`, the class in it"


_OF_DATETIME = frozenset(
    {"combine", "fromisoformat", "fromtimestamp", "now", "strftime", "strptime", "today", "utcnow"}
)


def _near_or_all(name: str, known: Collection[str]) -> str:
    return did_you_mean(name, known) or f"it has: {', '.join(sorted(known)[:40])}"


def _module_of(survey: Survey, name: str) -> str | None:
    """Return the module a name stands for, when nothing but one import binds it."""
    modules: set[str] = set()
    for binder in survey.binders.get(name, []):
        parent = survey.parents.get(binder)
        if not (isinstance(binder, ast.alias) and isinstance(parent, ast.Import)):
            return None
        modules.add(binder.name if binder.asname else binder.name.partition(".")[0])
    only = modules.pop() if len(modules) == 1 else None
    return only if only in MODULES else None
