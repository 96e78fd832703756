"""Tools from where a user has them: ``module:attr``, ``module``, ``file.py``, ``file.py:attr``, and files
that describe a source of tools (`DOCUMENT_READERS`).

Runs the user's code on the host: a specification comes from an operator's command line or settings and is
trusted as such. Decides what in a module counts as its tools.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import FunctionType, MethodType, ModuleType
from typing import Any, Final, cast

from bascule.tools.errors import ToolDefinitionError, ToolLoadError
from bascule.tools.options import Effects
from bascule.tools.registry import Registry
from bascule.tools.source import ToolSource
from bascule.tools.tool import AnyTool, Tool, tool

_EFFECTS: dict[object, tuple[Effects, frozenset[str]]] = {
    "read": ("read", frozenset()),
    "idempotent": ("idempotent", frozenset()),
    "once": ("once", frozenset()),
    "write": ("once", frozenset()),
    "external": ("once", frozenset({"external"})),
}
"""What a module's EFFECTS may say of a function: our effects and labels for it."""


_READER: Final = "bascule.tools.documents:read_described_source"

DOCUMENT_READERS: Final[Mapping[str, str]] = {".json": _READER, ".yaml": _READER, ".yml": _READER}
"""Suffix of files that describe a source, to the ``module:function`` that reads one: it takes the
specification and the path and returns a `ToolSource`, not yet open. Modules are imported when needed."""


def load_sources(*specs: str) -> list[AnyTool | ToolSource]:
    """Load tools as `load_tools` does, and sources that are still to be opened, in order.

    Args:
        specs: as for `load_tools`; or a file with one of the suffixes of `DOCUMENT_READERS`.

    Raises:
        ToolLoadError: as `load_tools`; a document is none.
    """
    loaded: list[AnyTool | ToolSource] = []
    for spec in specs:
        if _suffix(spec) in DOCUMENT_READERS:
            loaded.append(_read_document(spec))
        else:
            loaded += _load(spec)
    return loaded


def load_tools(*specs: str) -> list[AnyTool]:
    """Load tools from one or several sources, in order.

    Args:
        specs: each ``module:attr``, ``module``, ``file.py`` or ``file.py:attr``. An attribute may be a
            tool, a function, a list, tuple or dict of them, a Registry, or a dotted path to one. A whole
            module gives its ``TOOLS`` (with ``EFFECTS``), or else every tool and Registry in it.

    Raises:
        ToolLoadError: nothing was found, or loading failed; the message names file and line.
        ToolDefinitionError: ``tool_duplicate``: two of the sources give tools of one name.
    """
    for spec in specs:
        if _suffix(spec) in DOCUMENT_READERS:
            raise ToolLoadError(
                "tool_source_invalid", f"{spec} describes a source that must be opened; use load_sources"
            )
    tools = [each for spec in specs for each in _load(spec)]
    return list(Registry(tools))


def _load(spec: str) -> list[AnyTool]:
    source, attribute = _split(spec)
    module = _import_file(spec, Path(source)) if source.endswith(".py") else _import_module(spec, source)
    try:
        if attribute is None:
            return _from_module(spec, module)
        value: object = module
        for name in attribute.split("."):
            if not hasattr(value, name):
                raise ToolLoadError(
                    "tool_source_missing", f"{spec}: {_file_of(module)} has no {name}{_hint(value)}"
                )
            value = getattr(value, name)
        return _from_value(spec, value, _effects_of(spec, module))
    except ToolDefinitionError as error:
        raise ToolLoadError("tool_source_broken", f"{spec}: {error}") from error
    except ToolLoadError:
        raise
    except Exception as error:  # looking at what a module holds runs its code too
        raise _broken(spec, error) from error


def _suffix(spec: str) -> str:
    return Path(spec).suffix.lower()


def _read_document(spec: str) -> ToolSource:
    path = Path(spec)
    if not path.is_file():
        raise ToolLoadError("tool_source_missing", f"{spec}: there is no file {path}")
    module, _, function = DOCUMENT_READERS[_suffix(spec)].partition(":")
    read: Callable[[str, Path], ToolSource] = getattr(importlib.import_module(module), function)
    return read(spec, path)


def _split(spec: str) -> tuple[str, str | None]:
    source, colon, attribute = spec.rpartition(":")
    if not colon:
        source, attribute = spec, ""
    elif not all(part.isidentifier() for part in attribute.split(".")):
        if not attribute.endswith(".py"):  # C:\tools.py has a colon of its own
            raise ToolLoadError("tool_source_invalid", f"{spec}: write module:attr, file.py or file.py:attr")
        source, attribute = spec, ""
    if not source:
        raise ToolLoadError("tool_source_invalid", f"{spec}: write module:attr, file.py or file.py:attr")
    return source, attribute or None


def _import_module(spec: str, name: str) -> ModuleType:
    with contextlib.suppress(OSError):  # the folder we stand in may be gone
        _reach(Path.cwd())
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and (name == error.name or name.startswith(f"{error.name}.")):
            raise ToolLoadError(
                "tool_source_missing", f"{spec}: there is no module {error.name} here or in the environment"
            ) from error
        raise _broken(spec, error) from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a user's module may raise anything
        raise _broken(spec, error) from error


def _import_file(spec: str, path: Path) -> ModuleType:
    try:
        found_file = path.is_file()
    except OSError as error:
        raise ToolLoadError("tool_source_missing", f"{spec}: {error.strerror}") from error
    if not found_file:
        raise ToolLoadError("tool_source_missing", f"{spec}: there is no file {path}")
    resolved = path.resolve()
    name = f"bascule_tools_{hashlib.sha256(os.fsencode(resolved)).hexdigest()[:12]}"
    if name in sys.modules:
        return sys.modules[name]
    _reach(resolved.parent)
    found = importlib.util.spec_from_file_location(name, resolved)
    assert found is not None  # the suffix .py decides that
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules[name] = module  # dataclasses and postponed annotations look it up
    try:
        found.loader.exec_module(module)
    except BaseException as error:  # as above
        sys.modules.pop(name, None)
        if isinstance(error, KeyboardInterrupt):
            raise
        raise _broken(spec, error) from error
    return module


def _reach(folder: Path) -> None:
    """Let a module import its neighbours; at the end of the path, so that it hides nothing installed."""
    if str(folder) not in sys.path:
        sys.path.append(str(folder))


def _broken(spec: str, error: BaseException) -> ToolLoadError:
    """Name the innermost line of the user's own code at which loading failed."""
    if isinstance(error, SyntaxError) and error.filename:
        where = f"{error.filename}:{error.lineno}"
    else:
        here = os.path.dirname(__file__)
        python = os.path.dirname(os.__file__)
        frames = [
            frame
            for frame in traceback.extract_tb(error.__traceback__)
            if not frame.filename.startswith((here, "<frozen"))
            and ("site-packages" in frame.filename or not frame.filename.startswith(python))
        ]
        own = [frame for frame in frames if "site-packages" not in frame.filename] or frames
        where = f"{own[-1].filename}:{own[-1].lineno}" if own else spec
    file = where.rpartition(":")[0]
    if file and os.path.realpath(file) == os.path.realpath(spec):  # where says it, with the line
        return ToolLoadError(
            "tool_source_broken", f"{spec}:{where.rpartition(':')[2]}: {_words(error, where)}"
        )
    return ToolLoadError("tool_source_broken", f"{spec}: {where}: {_words(error, where)}")


def _words(error: BaseException, where: str) -> str:
    text = error.msg if isinstance(error, SyntaxError) else str(error)  # its str names the file again
    if isinstance(error, ToolDefinitionError) and error.location and where.endswith(f"/{error.location}"):
        text = text.removesuffix(f" ({error.location})")
    return f"{type(error).__name__}: {text}"


def _from_module(spec: str, module: ModuleType) -> list[AnyTool]:
    if hasattr(module, "TOOLS"):
        return _from_value(spec, module.TOOLS, _effects_of(spec, module))
    found: list[object] = [value for value in vars(module).values() if isinstance(value, Tool | Registry)]
    if not found:
        raise ToolLoadError(
            "tool_source_empty",
            f"{spec}: {'it' if spec.endswith('.py') else _file_of(module)} has no tools; decorate functions"
            f" with @tool, set TOOLS, or name one: {spec}:attr",
        )
    return _from_value(spec, found, {})


def _from_value(spec: str, value: object, effects: Mapping[str, object]) -> list[AnyTool]:
    if isinstance(value, Tool):
        return [cast("AnyTool", value)]
    if isinstance(value, FunctionType | MethodType):
        return [_wrap(spec, value.__name__, value, effects)]
    if isinstance(value, Mapping):
        members = cast("Mapping[object, object]", value)
        return [_from_member(spec, str(name), member, effects) for name, member in members.items()]
    if isinstance(value, Registry | list | tuple | set | frozenset):
        return [
            made for member in cast("Iterable[object]", value) for made in _from_value(spec, member, effects)
        ]
    raise ToolLoadError(
        "tool_source_invalid",
        f"{spec}: a {type(value).__name__} is no tool; give functions, tools, a list or dict of them, "
        "or a Registry",
    )


def _from_member(spec: str, name: str, member: object, effects: Mapping[str, object]) -> AnyTool:
    """Return the tool a dict names; for a function the key is its name."""
    if isinstance(member, FunctionType | MethodType):
        return _wrap(spec, name, member, effects)
    if isinstance(member, Tool):
        made = cast("AnyTool", member)
        if made.name == name:
            return made
        raise ToolLoadError(
            "tool_source_invalid",
            f"{spec}: {name!r} names the tool {made.name}; write {made.name!r}, or tool(name={name!r})",
        )
    raise ToolLoadError(
        "tool_source_invalid", f"{spec}: {name!r} is a {type(member).__name__}; give a function or a tool"
    )


def _wrap(spec: str, name: str, function: Callable[..., Any], effects: Mapping[str, object]) -> AnyTool:
    declared = effects.get(name, "once")
    if not isinstance(declared, str) or declared not in _EFFECTS:
        raise ToolLoadError(
            "tool_source_invalid",
            f"{spec}: EFFECTS[{name!r}] is {declared!r:.60}; "
            f"it must be one of {', '.join(map(str, _EFFECTS))}",
        )
    effect, labels = _EFFECTS[declared]
    return tool(effects=effect, labels=labels, name=name)(function)


def _effects_of(spec: str, module: ModuleType) -> Mapping[str, object]:
    effects = getattr(module, "EFFECTS", {})
    if not isinstance(effects, Mapping):
        raise ToolLoadError("tool_source_invalid", f"{spec}: EFFECTS in {_file_of(module)} is no dict")
    return cast("Mapping[str, object]", effects)


def _file_of(module: ModuleType) -> str:
    return str(getattr(module, "__file__", None) or module.__name__)


def _hint(value: object) -> str:
    names = (
        [name for name, member in vars(value).items() if isinstance(member, Tool)]
        if hasattr(value, "__dict__")
        else []
    )
    return f"; tools in it: {', '.join(names[:10])}" if names else ""
