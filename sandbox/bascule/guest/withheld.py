"""What a script holds in a rehearsal in place of a result that does not exist yet. Using it ends it.

It may be kept, passed around, put into lists and returned, because none of that depends on what it is. Every
other use would be a guess, so the run ends at that line, at once: nothing of the script unwinds. Python has
no hook for ``is`` and for most patterns; `bascule.guest.identity` puts one in.
"""

from __future__ import annotations

from typing import NoReturn, TypeVar, cast

from bascule.guest.ending import Ender
from bascule.guest.position import calling_line

T = TypeVar("T")


class Withheld:
    """The result of a call that was not made. Opaque: no attributes, no operations, no text."""

    __slots__ = ("_ender", "_what")

    def __init__(self, what: str, ender: Ender) -> None:
        self._what = what
        self._ender = ender

    def use(self, *_: object, **__: object) -> NoReturn:
        """End the rehearsal: from here on the script depends on the result."""
        self._ender.stop(
            status="failed",
            kind="rehearsal_end",
            message=f"the rehearsal ends here: the script uses the result of {self._what},"
            " which was withheld",
            line=calling_line(),
        )

    # What `isinstance` looks at when the type itself is not the one it is asked for.
    __class__ = property(use)  # pyright: ignore[reportAssignmentType, reportIncompatibleMethodOverride]


def see(value: T) -> T:
    """Return a value that the script asks about with ``is``; end the rehearsal if it is withheld."""
    if isinstance(value, Withheld):
        value.use()
    return value


def see_inside(value: T) -> T:
    """Return a value that the script matches; end the rehearsal if it is withheld, or holds what is."""
    end_if_withheld(value)
    return value


def end_if_withheld(value: object) -> None:
    """End the rehearsal if plain data holds a withheld result."""
    if type(value) is Withheld:
        value.use()
    if type(value) is dict:
        for item in cast("dict[object, object]", value).values():
            end_if_withheld(item)
    elif type(value) is list or type(value) is tuple:
        for item in cast("list[object]", value):
            end_if_withheld(item)


_USES = (
    "abs add aenter aexit aiter and anext bool bytes call ceil complex contains delitem divmod enter "
    "eq exit float floor floordiv format ge getitem gt hash iadd index int invert iter le len lshift "
    "lt matmul mod mul ne neg next or pos pow radd rand rdivmod repr reversed rfloordiv rlshift "
    "rmatmul rmod rmul ror round rpow rrshift rshift rsub rtruediv rxor setitem str sub truediv "
    "trunc xor"
)
for _use in _USES.split():  # a table of names reads better as text
    setattr(Withheld, f"__{_use}__", Withheld.use)
