"""The globals a script runs in: its tools, the error classes, the built-ins, and the hidden helpers.

Fresh for every run; nothing in it is shared with another.
"""

from __future__ import annotations

from collections.abc import Mapping

from bascule.guest import hidden
from bascule.guest.builtins import build_builtins
from bascule.guest.compiler import CompiledScript
from bascule.guest.environment import Environment
from bascule.guest.errors import SCRIPT_ERRORS
from bascule.guest.evaluation import build_eval
from bascule.guest.facade import Facade
from bascule.guest.facades import build_modules, class_replacements
from bascule.guest.guards import Guards
from bascule.guest.imports import Imports
from bascule.guest.matching import Holder, Matcher


def build_namespace(
    compiled: CompiledScript,
    environment: Environment,
    tools: Mapping[str, object],
    modules: Mapping[str, Facade] | None = None,
) -> dict[str, object]:
    """Return the globals for ``exec(compiled.code, ...)``, which then hold the function ``<script>``.

    Args:
        compiled: the script.
        environment: clock, randomness, output and loop of the run.
        tools: what the script may call, by name; a dotted namespace is a Facade.
        modules: facades in place of, or beside, those of :func:`build_modules`.
    """
    namespace: dict[str, object] = {"__name__": "__main__"}
    guards = Guards(replacements=class_replacements(environment), namespace=namespace)
    known = build_modules(environment, guards)
    known.update(modules or {})
    imports = Imports(known)
    matcher = Matcher(guards.check)
    namespace |= {
        "__builtins__": {
            **build_builtins(guards, environment.output),
            "eval": build_eval(namespace, guards),
        },
        **SCRIPT_ERRORS,
        **tools,
        **guards.globals(compiled.names),
        hidden.IMPORT: imports.import_top,
        hidden.IMPORT_FROM: imports.import_from,
        hidden.MATCHABLE: matcher.matchable,
        hidden.HOLDER: Holder,
        hidden.GUARDS: guards,
    }
    return namespace


def extend_namespace(
    namespace: dict[str, object], compiled: CompiledScript, tools: Mapping[str, object]
) -> None:
    """Make the globals of one script of a session ready for the next: its names stay, tools are as told."""
    guards = namespace[hidden.GUARDS]
    assert isinstance(guards, Guards)
    namespace |= tools
    namespace |= guards.globals(compiled.names)


def names_left(namespace: Mapping[str, object]) -> frozenset[str]:
    """Return the names that a script could write and that are bound."""
    return frozenset(name for name in namespace if name.isidentifier())
