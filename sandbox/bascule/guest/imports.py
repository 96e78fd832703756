"""Import statements of a script: they look up facades, nothing else."""

from __future__ import annotations

from collections.abc import MutableMapping

from bascule.guest.advice import did_you_mean, hinted
from bascule.guest.facade import Facade
from bascule.guest.rules.modules import missing_in_python, refusal


class Imports:
    """The two import helpers of one run.

    Args:
        modules: facades by dotted name.
    """

    def __init__(self, modules: MutableMapping[str, Facade]) -> None:
        self._modules = modules
        self._packages: dict[str, Facade] = {}

    def import_top(self, path: str) -> Facade:
        """``import a.b``: return the facade of ``a``, in which ``b`` can be found.

        Raises:
            ModuleNotFoundError: there is no such module here; the message names the substitute.
        """
        facade = self._find(path)
        top, _, rest = path.partition(".")
        if not rest:
            return facade
        if top in self._modules:
            return self._modules[top]
        child = rest.partition(".")[0]
        package = self._packages.get(top)
        members = {} if package is None else dict(vars(package))
        members[child] = self._modules.get(f"{top}.{child}", facade)
        self._packages[top] = Facade(top, members)
        return self._packages[top]

    def import_from(self, path: str, name: str | None = None) -> object:
        """``from a import b``, and ``import a.b as c`` without a name.

        Raises:
            ModuleNotFoundError: there is no such module here.
            ImportError: the module does not give the name.
        """
        if name is None:
            return self._find(path)
        if f"{path}.{name}" in self._modules:
            return self._modules[f"{path}.{name}"]
        facade = self._find(path)
        members = vars(facade)
        if name in members and not name.startswith("_"):
            return members[name]
        hint = did_you_mean(name, (key for key in members if not key.startswith("_")))
        message = f"cannot import name {name!r} from {path!r}: it is not available here"
        raise ImportError(f"{message}; {hint}" if hint else message, name=path)

    def _find(self, path: str) -> Facade:
        facade = self._modules.get(path)
        if facade is None:
            raise _not_found(path)
        return facade


def _not_found(path: str) -> ImportError:
    missing = missing_in_python(path)
    if missing is None:
        return ModuleNotFoundError(refusal(path), name=path)
    # What plain Python lacks as well is said in its words; the report adds what to do instead.
    name, message = missing
    return hinted(ModuleNotFoundError(message, name=name), refusal(path))
