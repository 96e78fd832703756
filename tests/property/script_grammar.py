"""Makes scripts of every statement and expression a script may hold, hostile names and attributes among them.

Numbers, texts and loops stay small and functions call only what is defined before them, so whatever comes out
ends soon, in the guest and in plain CPython alike.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from textwrap import indent

from hypothesis import strategies as st

_NAMES = ("a", "b", "c", "d", "_", "_e")
_ATTRIBUTES = ("x", "y", "_z", "real", "args", "append", "upper", "items", "keys")
_HOSTILE_NAMES = (
    "__builtins__", "__import__", "_getattr_", "_print_", "__name__", "eval", "open", "super", "__class__",
    "printed", "__debug__", "type", "object", "vars", "<getattr>",
)  # fmt: skip
_HOSTILE_ATTRIBUTES = (
    "__class__", "__dict__", "__globals__", "__subclasses__", "__mro__", "gi_frame", "cr_frame", "f_back",
    "tb_frame", "__init__", "__getattribute__", "__reduce_ex__", "format", "format_map",
    "mro", "__traceback__",
    "with_traceback",
    "__self__", "__func__", "func", "obj",
)  # fmt: skip
_CALLED = (
    "len", "str", "repr", "sorted", "list", "tuple", "set", "dict", "sum", "min", "max", "bool", "int",
    "float", "abs", "any", "all", "enumerate", "reversed", "type", "isinstance", "hash", "callable",
    "iter", "next",
)  # fmt: skip
_BINARY = (
    "+",
    "-",
    "*",
    "/",
    "//",
    "%",
    "&",
    "|",
    "^",
    "@",
    "==",
    "!=",
    "<",
    "in",
    "not in",
    "is",
    "and",
    "or",
)


@dataclass
class Writer:
    """Writes one script.

    Attributes:
        hostile: whether names and attributes that must not work are used too.
        functions: what calls may name, by number of parameters.
    """

    draw: st.DrawFn
    hostile: bool
    functions: dict[str, int] = field(default_factory=dict[str, int])
    classes: list[str] = field(default_factory=list[str])
    made: int = 0
    in_function: bool = False
    in_async: bool = False
    in_loop: bool = False

    def pick(self, *choices: str) -> str:
        """Choose one."""
        return self.draw(st.sampled_from(choices))

    def name(self) -> str:
        """Return a variable."""
        if self.hostile and self.draw(st.integers(0, 15)) == 0:
            return self.pick(*_HOSTILE_NAMES)
        return self.pick(*_NAMES)

    def attribute(self) -> str:
        """Return the name of an attribute."""
        if self.hostile and self.draw(st.integers(0, 3)) == 0:
            return self.pick(*_HOSTILE_ATTRIBUTES)
        return self.pick(*_ATTRIBUTES)

    def fresh(self, prefix: str) -> str:
        """Return a name that was not used before."""
        self.made += 1
        return f"{prefix}{self.made}"

    # ------------------------------------------------------------ expressions

    def expression(self, depth: int = 3) -> str:
        """Return an expression."""
        kinds = ["number", "text", "name", "constant"]
        if depth:
            kinds += [
                "binary", "binary", "unary", "list", "tuple", "dict", "set", "call", "call", "method",
                "attribute",
                "item", "slice", "choice", "lambda", "comprehension", "formatted", "walrus", "own",
            ]  # fmt: skip
            if self.in_async:
                kinds.append("await")
        found: str = getattr(self, f"_{self.pick(*kinds)}")(depth - 1)
        return found

    def _number(self, _: int) -> str:
        return self.pick("0", "1", "2", "-1", "1.5", "True", "2j")

    def _text(self, _: int) -> str:
        if self.hostile:
            return self.pick("'a'", "''", "'{0.__class__}'", "'%s'", "b'a'", "'x'")
        return self.pick("'a'", "''", "'%s'", "b'a'", "'x'")

    def _name(self, _: int) -> str:
        return self.name()

    def _constant(self, _: int) -> str:
        return self.pick("None", "...", "[]", "{}", "()", "NotImplemented")

    def _binary(self, depth: int) -> str:
        return f"({self.expression(depth)} {self.pick(*_BINARY)} {self.expression(depth)})"

    def _unary(self, depth: int) -> str:
        return f"({self.pick('not ', '-', '~', '+')}{self.expression(depth)})"

    def _several(self, depth: int) -> str:
        parts = [self.expression(depth) for _ in range(self.draw(st.integers(0, 2)))]
        if parts and self.draw(st.integers(0, 4)) == 0:
            parts[-1] = f"*{parts[-1]}"
        return ", ".join(parts)

    def _list(self, depth: int) -> str:
        return f"[{self._several(depth)}]"

    def _tuple(self, depth: int) -> str:
        return f"({self.expression(depth)}, {self.expression(depth)})"

    def _dict(self, depth: int) -> str:
        return f"{{{self.expression(0)}: {self.expression(depth)}, **{{'x': {self.expression(depth)}}}}}"

    def _set(self, depth: int) -> str:
        return f"{{{self.expression(0)}, {self.expression(depth)}}}"

    def _call(self, depth: int) -> str:
        if self.functions and self.pick("own", "given") == "own":
            name = self.pick(*self.functions)
            return f"{name}({', '.join(self.expression(depth) for _ in range(self.functions[name]))})"
        return f"{self.pick(*_CALLED)}({self._several(depth)})"

    def _method(self, depth: int) -> str:
        return f"{self.expression(depth)}.{self.attribute()}({self._several(depth)})"

    def _attribute(self, depth: int) -> str:
        return f"({self.expression(depth)}).{self.attribute()}"

    def _item(self, depth: int) -> str:
        return f"{self._list(depth)}[{self.expression(0)}]"

    def _slice(self, depth: int) -> str:
        return f"({self.expression(depth)})[{self.pick('0:1', ':', '::-1', '1:')}]"

    def _choice(self, depth: int) -> str:
        return f"({self.expression(depth)} if {self.expression(depth)} else {self.expression(depth)})"

    def _lambda(self, depth: int) -> str:
        return f"(lambda {self.name()}=1, *{self.fresh('p')}: {self.expression(0 if depth < 1 else 1)})"

    def _comprehension(self, depth: int) -> str:
        name = self.name()
        body = f"{self.expression(depth)} for {name} in {self._source()} if {self.expression(0)}"
        return self.pick(f"[{body}]", f"list({body})", f"{{{name}: {body}}}", f"sum([{body}])")

    def _source(self) -> str:
        return self.pick("range(2)", "(1, 2)", "'ab'", "[(), 3]", "{'k': 1}")

    def _formatted(self, depth: int) -> str:
        return f'f"{{({self.pick("a", "b", "1", "None")})!r}} {{1 + {self.pick("1", "2")}:>4}}"'

    def _walrus(self, depth: int) -> str:
        return f"({self.name()} := {self.expression(depth)})"

    def _own(self, depth: int) -> str:
        return f"{self.pick(*self.classes)}({self.expression(depth)})" if self.classes else self._list(depth)

    def _await(self, depth: int) -> str:
        return f"(await asyncio.sleep(0, {self.expression(depth)}))"

    # ------------------------------------------------------------ statements

    def block(self, depth: int) -> str:
        """Return some statements, indented."""
        return indent("\n".join(self.statement(depth) for _ in range(self.draw(st.integers(1, 3)))), "    ")

    def statement(self, depth: int = 3) -> str:
        """Return one statement."""
        kinds = [
            "assign",
            "assign",
            "augment",
            "show",
            "show",
            "unpack",
            "delete",
            "assertion",
            "annotate",
            "store",
        ]
        if depth:
            kinds += ["if_", "for_", "while_", "try_", "with_", "match_", "function", "class_", "raise_"]
            kinds += ["async_function"]
        if self.in_function:
            kinds.append("return_")
        if self.in_loop:
            kinds += ["jump"]
        if self.hostile:
            kinds += ["import_", "scope"]
        found: str = getattr(self, f"_{self.pick(*kinds)}")(max(depth - 1, 0))
        return found

    def _assign(self, _: int) -> str:
        return f"{self.pick(self.name(), f'{self.name()} = {self.name()}')} = {self.expression()}"

    def _augment(self, _: int) -> str:
        return f"{self.name()} {self.pick('+=', '-=', '*=', '|=')} {self.expression(1)}"

    def _show(self, _: int) -> str:
        return f"print({self.expression()}, {self.expression(1)})"

    def _unpack(self, _: int) -> str:
        target = self.pick("a, b", "a, *b", "[a, (b, c)]", "a, b = c")
        return f"{target} = {self.pick('1, 2', '1, (2, 3)', self.expression(2))}"

    def _delete(self, _: int) -> str:
        return f"del {self.pick(self.name(), f'{self.name()}[0]', f'{self.name()}.{self.attribute()}')}"

    def _assertion(self, _: int) -> str:
        return f"assert {self.expression(2)}, {self.expression(1)}"

    def _annotate(self, _: int) -> str:
        return (
            f"{self.name()}: {self.pick('int', 'list[int]', chr(34) + 'X' + chr(34))} = {self.expression(2)}"
        )

    def _store(self, _: int) -> str:
        target = self.pick(f"{self.name()}[{self.expression(0)}]", f"{self.name()}.{self.attribute()}")
        return f"{target} {self.pick('=', '+=')} {self.expression(1)}"

    def _if_(self, depth: int) -> str:
        return f"if {self.expression(2)}:\n{self.block(depth)}\nelse:\n{self.block(depth)}"

    def _looping(self, depth: int) -> str:
        before, self.in_loop = self.in_loop, True
        body = self.block(depth)
        self.in_loop = before
        return body

    def _for_(self, depth: int) -> str:
        return f"for {self.name()} in {self._source()}:\n{self._looping(depth)}\nelse:\n{self.block(0)}"

    def _while_(self, depth: int) -> str:
        before, self.in_loop = self.in_loop, False
        body = self.block(depth)
        self.in_loop = before
        return f"while {self.expression(1)}:\n{body}\n    break"

    def _try_(self, depth: int) -> str:
        catch = self.pick(
            "except Exception as _e:", "except (TypeError, ValueError):", "except AttributeError as b:"
        )
        end = self.pick("", f"\nelse:\n{self.block(0)}", f"\nfinally:\n{self.block(0)}")
        return f"try:\n{self.block(depth)}\n{catch}\n{self.block(depth)}{end}"

    def _with_(self, depth: int) -> str:
        return f"with contextlib.suppress({self.pick('TypeError', 'Exception')}) as a:\n{self.block(depth)}"

    def _match_(self, depth: int) -> str:
        patterns = ["1", "'a' | None", "[a, *b]", "{'x': c, **d}", "int(a)", "str()", "(1 | 2) as b", "_"]
        if self.hostile:
            patterns += ["str(__class__=a)", "object(__dict__=a)", "[*_getattr_]", "{'x': 1, **__builtins__}"]
        return (
            f"match {self.expression(2)}:\n    case {self.pick(*patterns)} if {self.expression(1)}:\n"
            f"{indent(self.block(depth), '    ')}\n    case _:\n        pass"
        )

    def _function(self, depth: int, *, asynchronous: bool = False) -> str:
        name = self.fresh("f")
        state = self.in_function, self.in_async, self.in_loop
        self.in_function, self.in_async, self.in_loop = True, asynchronous, False
        functions = dict(self.functions)
        extra = self.pick("", ", *args", ", *, c=2", ", /", ", **d")
        body = self.block(depth)
        self.functions = functions
        self.in_function, self.in_async, self.in_loop = state
        if not asynchronous:
            self.functions[name] = 2
        parameter = self.name() if self.hostile else "a"
        return f"{'async ' if asynchronous else ''}def {name}({parameter}, b=1{extra}):\n{body}"

    def _async_function(self, depth: int) -> str:
        return self._function(depth, asynchronous=True)

    def _class_(self, depth: int) -> str:
        name = self.fresh("C")
        method = self._function(0).replace("def f", "def m", 1)
        self.functions.popitem()
        base = self.pick("", "(list)", "(dict)", "(ValueError)", *(f"({known})" for known in self.classes))
        hook = self.pick(
            "__repr__(self): return 'R'", "__len__(self): return 1", "__eq__(self, o): return True"
        )
        if self.hostile:
            hook = self.pick(
                hook, "__getattr__(self, n): return n", "__del__(self): print(1)", "__class__(self): 1"
            )
        self.classes.append(name)
        return (
            f"class {name}{base}:\n    x = {self.expression(1)}\n    def __init__(self, v=None):\n"
            f"        self.y = v\n    def {hook}\n{indent(method, '    ')}"
        )

    def _raise_(self, _: int) -> str:
        return f"raise {self.pick('ValueError', 'KeyError')}({self.expression(1)})"

    def _return_(self, _: int) -> str:
        return f"return {self.expression(2)}"

    def _jump(self, _: int) -> str:
        return self.pick("break", "continue")

    def _import_(self, _: int) -> str:
        return self.pick(
            "import os", "import json as _e", "from sys import modules", "import builtins",
            "from json import decoder",
            "from math import *", "import json.decoder", "from . import x", "import asyncio as __builtins__",
        )  # fmt: skip

    def _scope(self, _: int) -> str:
        return f"{self.pick('global', 'nonlocal')} {self.name()}"


_HEAD = "import contextlib\na, b, c, d, _, _e = 1, [2, 3], 'abc', {'x': 1}, None, (4,)\n"


@st.composite
def scripts(draw: st.DrawFn, *, hostile: bool) -> str:
    """Return a strategy for scripts."""
    writer = Writer(draw=draw, hostile=hostile)
    body = [writer.statement() for _ in range(draw(st.integers(1, 6)))]
    end = "print(a, b, c, d)\n"
    return "import asyncio\n" * ("asyncio" in "".join(body)) + _HEAD + "\n".join(body) + "\n" + end
