"""pprint without addresses, printing to the script's output."""

from __future__ import annotations

from typing import Protocol

from bascule.guest.facade import FacadeContext, Members
from bascule.guest.value_text import stable_repr


class Writer(Protocol):
    """Where text goes."""

    def write(self, text: str, /) -> int: ...


class PrettyPrinter:
    """pprint without addresses, printing to the script's output."""

    __slots__ = ("_options", "_output")

    def __init__(self, output: Writer, options: dict[str, object]) -> None:
        self._output = output
        self._options = options

    def pformat(self, value: object) -> str:
        """Return the pretty text of ``value``."""
        import pprint

        class Stable(pprint.PrettyPrinter):
            def format(
                self, object: object, context: dict[int, int], maxlevels: int, level: int
            ) -> tuple[str, bool, bool]:
                text, readable, recursive = super().format(object, context, maxlevels, level)
                return (stable_repr(object) if " at 0x" in text else text), readable, recursive

        return Stable(**self._options).pformat(value)  # type: ignore[arg-type]

    def pprint(self, value: object) -> None:
        """Print the pretty text of ``value``."""
        self._output.write(self.pformat(value) + "\n")


def pprint_module(context: FacadeContext) -> Members:
    """Give pprint."""
    output = context.environment.output
    known = frozenset(["indent", "width", "depth", "compact", "sort_dicts", "underscore_numbers"])

    def make(**options: object) -> PrettyPrinter:
        for name in options:
            if name not in known:
                raise TypeError(f"pprint: {name} is not available: text goes to the script's output")
        return PrettyPrinter(output, options)

    def pformat(object: object, **options: object) -> str:
        return make(**options).pformat(object)

    def pprint(object: object, **options: object) -> None:
        make(**options).pprint(object)

    def pp(object: object, **options: object) -> None:
        make(**{"sort_dicts": False, **options}).pprint(object)

    make.__name__ = make.__qualname__ = "PrettyPrinter"
    return {"PrettyPrinter": make, "pformat": pformat, "pp": pp, "pprint": pprint}
