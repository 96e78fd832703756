"""Renders docs/language.md from the rules themselves, so that the page cannot say anything else."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Sequence

from bascule.guest.rules.attributes import EXTENSIBLE
from bascule.guest.rules.modules import MODULES, REFUSED_MODULES
from bascule.guest.rules.names import HINTS, NAMES
from bascule.guest.rules.syntax import (
    ENUM_HOOKS,
    READ_ONLY_SPECIALS,
    READABLE_SPECIALS,
    SPECIAL_METHODS,
    SYNTAX,
)

_OWN_MODULES = ("asyncio", "concurrent.futures")
_INTRODUCTION = """\
# The language of scripts

Scripts are Python, run by CPython. What is listed here works as Python's own documentation says; what is not
listed does not exist. This page is made from the rules the guest itself reads
(`sandbox/bascule/guest/rules`); a test fails when it is out of date.

The rules hold for CPython 3.11 to 3.14. `make test` proves them on its own Python, `make versions` runs
the guest's tests, the reachability crawl and the attacks on the interpreter on 3.13 and 3.14; the attacks
with the interpreter switched off run on the Python of the guest image alone.
"""
_CAN = """\
## Can

- Everything ordinary: functions, closures, classes with inheritance and properties, dataclasses,
  enumerations, named tuples, exceptions, generators, comprehensions, `with`, `match`, decorators, f-strings,
  annotations.
- `async def`, and `await`, `async for` and `async with` at the top level too; blocking calls where a script
  has no `await`.
- `return` at the top level. Without it, the last expression or the name assigned last is the result.
- Attributes of the script's own objects freely; of all others, those listed for their exact type.
- `eval(text)` for one expression of at most 1,000 characters; it sees the variables around the call.
- Equal seeds give equal output. One exception is CPython's: a set of functions, classes, bound methods or
  `object()` has the order of their addresses, which can differ from run to run. Use a list or a dict, or
  sort by name.
- `__name__ == "__main__"`; `except:` and `except BaseException` catch what `except Exception` does.
"""


def page() -> str:
    """Return the whole page."""
    parts = [_INTRODUCTION, _CAN, _syntax(), _names(), _special_methods(), _modules()]
    return "\n".join(part.rstrip("\n") + "\n" for part in parts)


def _code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def _syntax() -> str:
    refused = {
        (rule.title, rule.substitute, rule.reason) for rule in SYNTAX.values() if rule.verdict == "refused"
    }
    return (
        "## Syntax that is refused\n\n"
        + _table(("what", "write instead", "why"), sorted(refused))
        + "\n\nAlso refused: `metaclass=` and other class keywords, relative imports, `import *`, names and "
        "attributes that\nbegin and end with an underscore, except those below.\n"
    )


def _names() -> str:
    given = sorted(name for name, rule in NAMES.items() if rule.given)
    errors = [name for name in given if _is_error(name)]
    others = [name for name in given if not _is_error(name)]
    refused = sorted(
        (f"`{name}`", rule.substitute, rule.reason) for name, rule in NAMES.items() if not rule.given
    )
    meant = sorted((f"`{name}`", hint) for name, hint in HINTS.items())
    return (
        f"## Built-in names\n\nGiven: {_code(others)}.\n\nExceptions: {_code(errors)}.\n\n"
        + _table(("refused", "write instead", "why"), refused)
        + "\n\nNames of other languages, and what a message says about them:\n\n"
        + _table(("name", "hint"), meant)
        + "\n"
    )


def _is_error(name: str) -> bool:
    # By name where this Python lacks it: the page is the same whichever Python writes it.
    found = getattr(builtins, name, None)
    return name.endswith(("Error", "Warning")) or (
        isinstance(found, type) and issubclass(found, BaseException)
    )


def _special_methods() -> str:
    bases = sorted({_base_name(base) for base in EXTENSIBLE} - {"ByteString", "Buffer"})
    named = [name for name in bases if not _is_error(name)]
    return (
        "## Special methods and attributes\n\n"
        f"Classes may define, and objects give: {_code(sorted(SPECIAL_METHODS))}.\n\n"
        f"Enum calls {_code(sorted(ENUM_HOOKS))}: classes may define them, nothing may read them.\n\n"
        f"Attributes that can be read: {_code(sorted(READABLE_SPECIALS))}; where they are harmless also "
        f"{_code(sorted(READ_ONLY_SPECIALS))}.\n\n"
        f"Classes may inherit from classes of the script, from {_code(named)} and the exceptions above.\n"
    )


def _base_name(base: object) -> str:
    return str(getattr(base, "__name__", None) or str(base).removeprefix("typing."))


def _modules() -> str:
    given = [(f"`{name}`", _code(sorted(names))) for name, names in sorted(MODULES.items())]
    refused = [(f"`{name}`", substitute) for name, substitute in sorted(REFUSED_MODULES.items())]
    return (
        "## Modules\n\n"
        + f"{_code(_OWN_MODULES)} run on the script's own deterministic loop. The others give these:\n\n"
        + _table(("module", "names"), given)
        + "\n\n## Modules that are not here\n\nAny other module is refused in the same way.\n\n"
        + _table(("module", "instead"), refused)
        + "\n"
    )
