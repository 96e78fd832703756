"""Which built-in names a script has: one row for each name in ``builtins`` of CPython 3.11 to 3.14.

``given`` names are put into the fresh dictionary that every run gets (some as safe implementations of our
own, see :mod:`bascule.guest.builtins`); ``refused`` names say what to write instead, which is what the model
reads. A name without a row is not given; a test fails when the running Python has one.
"""

from __future__ import annotations

import msgspec


class NameRule(msgspec.Struct, frozen=True, kw_only=True):
    """What is decided about one built-in name.

    Attributes:
        given: whether scripts have it.
        reason: why.
        substitute: what a script writes instead, when it is refused.
    """

    given: bool
    reason: str
    substitute: str = ""


def _given(reason: str, names: str) -> dict[str, NameRule]:
    return {name: NameRule(given=True, reason=reason) for name in names.split()}


def _refused(names: str, *, reason: str, substitute: str) -> dict[str, NameRule]:
    return {name: NameRule(given=False, reason=reason, substitute=substitute) for name in names.split()}


_NO_FILES = "there is no file system: print or return the result, or call one of the tools"
_NO_EVALUATION = "write the code itself; json.loads parses data"

NAMES: dict[str, NameRule] = {
    **_given("constants", "True False None Ellipsis NotImplemented __debug__"),
    **_given("plain data types", "bool int float complex str bytes bytearray memoryview"),
    **_given("containers", "list tuple dict set frozenset range slice"),
    **_given("iteration; limits are enforced from outside", "enumerate filter map zip reversed iter next"),
    **_given("iteration in async scripts", "aiter anext"),
    **_given("reductions", "all any sum min max sorted len"),
    **_given("numbers", "abs divmod pow round hash"),
    **_given("text; without memory addresses", "ascii bin chr format hex oct ord repr print"),
    **_given("a number for each object, counted in each run: never an address", "id"),
    **_given("tests", "callable isinstance issubclass"),
    **_given("attributes, through the guards", "getattr hasattr setattr delattr"),
    **_given("one argument only; gives real classes only where scripts may name them", "type"),
    **_given("class building blocks", "object property classmethod staticmethod"),
    **_given("compiled only as the receiver of an attribute", "super"),
    **_given(
        "root of what scripts may catch; BaseException is the same class to a script",
        "Exception BaseException",
    ),
    **_given(
        "exceptions are data; their attributes are in the table",
        "ArithmeticError AssertionError AttributeError BlockingIOError BrokenPipeError BufferError "
        "ChildProcessError ConnectionAbortedError ConnectionError ConnectionRefusedError "
        "ConnectionResetError EOFError EnvironmentError ExceptionGroup BaseExceptionGroup "
        "FileExistsError FileNotFoundError FloatingPointError GeneratorExit IOError ImportError "
        "IndentationError IndexError InterruptedError IsADirectoryError KeyError KeyboardInterrupt "
        "LookupError MemoryError ModuleNotFoundError NameError NotADirectoryError NotImplementedError "
        "OSError OverflowError PermissionError ProcessLookupError PythonFinalizationError "
        "RecursionError ReferenceError RuntimeError StopAsyncIteration StopIteration SyntaxError "
        "SystemError SystemExit TabError TimeoutError TypeError UnboundLocalError "
        "UnicodeDecodeError UnicodeEncodeError UnicodeError UnicodeTranslateError ValueError "
        "ZeroDivisionError",
    ),
    **_given(
        "warnings are exceptions too",
        "Warning BytesWarning DeprecationWarning EncodingWarning FutureWarning ImportWarning "
        "PendingDeprecationWarning ResourceWarning RuntimeWarning SyntaxWarning UnicodeWarning "
        "UserWarning",
    ),
    **_given("end the script", "exit quit"),
    **_given("a constant, decided at compile time", "__name__"),
    **_refused("open", reason="the container holds nothing of yours", substitute=_NO_FILES),
    **_refused(
        "input",
        reason="nobody is there to answer while a script runs",
        substitute="nobody can answer while the script runs: take the value from a tool or ask first",
    ),
    **_given("one short expression, compiled and guarded as the script itself is", "eval"),
    **_refused("exec compile", reason="code that no check has seen", substitute=_NO_EVALUATION),
    **_refused(
        "globals locals",
        reason="namespaces hold the guards",
        substitute="keep values in a dict of your own",
    ),
    **_refused(
        "vars",
        reason="hands out live namespaces",
        substitute="use `obj.__dict__` for the fields of your own objects, or dataclasses.asdict",
    ),
    **_refused(
        "dir",
        reason="lists what the attribute table hides",
        substitute="print the value itself: tool results are plain dicts and lists",
    ),
    **_refused("help license credits copyright", reason="interactive", substitute="leave it out"),
    **_refused("breakpoint", reason="there is no debugger", substitute="use print"),
    **_refused("__import__", reason="imports resolve to facades", substitute="write an import statement"),
    **_refused(
        "__build_class__ __doc__ __loader__ __spec__ __package__ _IncompleteInputError",
        reason="interpreter internals",
        substitute="leave it out",
    ),
    **_refused("__file__", reason="not a file", substitute="there is no file system: leave it out"),
}

HINTS: dict[str, str] = {
    "unicode": "write `str`",
    "xrange": "write `range`",
    "raw_input": NAMES["input"].substitute,
    "reduce": "write `from functools import reduce`",
    "long": "write `int`",
    "basestring": "write `str`",
    "unichr": "write `chr`",
    "null": "write `None`",
    "true": "write `True`",
    "false": "write `False`",
    "undefined": "write `None`",
    "console": "write `print(...)`",
}
"""Names of other Pythons and other languages that models write, with what is meant."""
