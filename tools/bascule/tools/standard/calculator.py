"""Exact arithmetic for scripts and models, without eval: numbers, operators and a closed list of functions.

The expression is hostile text. It is bounded and made of few characters before Python's parser sees it, its
tree is walked by a table of node types, and no intermediate number can grow beyond `MAX_BITS`.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable
from typing import Any, Final, cast

from bascule.tools.tool import tool

MAX_CHARS: Final = 500
MAX_NESTING: Final = 30
MAX_NODES: Final = 200
MAX_BITS: Final = 4096
"""Size of the largest integer on the way, about 1233 digits."""

MAX_RESULT_BITS: Final = 1023
"""Size of a result: within what any reader of JSON can hold as a number, about 308 digits."""

MAX_FACTORIAL: Final = 400

Number = int | float

_ALLOWED = re.compile(r"[0-9A-Za-z_+\-*/%().,\s]*", re.ASCII)
_DEEP = re.compile(r"(?:[+\-]\s*){10}|\*\*\s*[^*]*(?:\*\*[^*]*){10}")

_BINARY: Final[dict[type[ast.operator], Callable[[Any, Any], Any]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: lambda left, right: left / right,
    ast.FloorDiv: lambda left, right: left // right,
    ast.Mod: operator.mod,
}


def _factorial(number: Number) -> int:
    if not isinstance(number, int) or not 0 <= number <= MAX_FACTORIAL:
        raise ValueError(f"factorial takes a whole number from 0 to {MAX_FACTORIAL}")
    return math.factorial(number)


def _round(number: Number, digits: Number = 0) -> Number:
    if not isinstance(digits, int) or not -300 <= digits <= 300:
        raise ValueError("round takes a whole number of digits from -300 to 300")
    return round(number, digits) if digits else round(number)


def _sum(*numbers: Number) -> Number:
    return sum(numbers)


def _mean(*numbers: Number) -> Number:
    return sum(numbers) / len(numbers)


FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "abs": abs,
    "acos": math.acos,
    "asin": math.asin,
    "atan": math.atan,
    "atan2": math.atan2,
    "ceil": math.ceil,
    "cos": math.cos,
    "degrees": math.degrees,
    "exp": math.exp,
    "factorial": _factorial,
    "floor": math.floor,
    "gcd": math.gcd,
    "hypot": math.hypot,
    "log": math.log,
    "log10": math.log10,
    "log2": math.log2,
    "max": max,
    "mean": _mean,
    "min": min,
    "radians": math.radians,
    "round": _round,
    "sin": math.sin,
    "sqrt": math.sqrt,
    "sum": _sum,
    "tan": math.tan,
}
CONSTANTS: Final = {"pi": math.pi, "e": math.e, "tau": math.tau}


@tool(effects="read", parallel_safe=True, timeout_s=5, examples=[{"expression": "round(1234.5 * 0.19, 2)"}])
def calculate(expression: str) -> int | float:
    """Work out an arithmetic expression exactly as Python would.

    Operators are + - * / // % ** and parentheses; functions are abs, sqrt, round, min, max, sum, mean,
    floor, ceil, exp, log, log2, log10, sin, cos, tan, asin, acos, atan, atan2, hypot, degrees, radians, gcd
    and factorial; constants pi, e and tau.

    Args:
        expression: like "round(1234.5 * 0.19, 2)", at most 500 characters.
    """
    return evaluate(expression)


def evaluate(expression: str) -> Number:
    """Return the value of an expression.

    Raises:
        ValueError: it is no arithmetic, too long, or a number on the way is too large or not finite; the
            message says what to write instead.
    """
    try:
        value = _value(_parse(expression))
    except ZeroDivisionError as error:
        raise ValueError("division by zero") from error
    except OverflowError as error:
        raise ValueError("a number on the way is too large") from error
    if isinstance(value, int) and value.bit_length() > MAX_RESULT_BITS:
        raise ValueError("the result is too large; it has more than 308 digits")
    return _checked(value)


def _parse(expression: str) -> ast.expr:
    if len(expression) > MAX_CHARS:
        raise ValueError(f"the expression has {len(expression)} characters; {MAX_CHARS} are allowed")
    if not _ALLOWED.fullmatch(expression) or _DEEP.search(expression):
        raise ValueError("write numbers, + - * / // % ** ( ) , and names of functions only; ^ is written **")
    depth = 0
    for character in expression:
        depth += (character == "(") - (character == ")")
        if depth > MAX_NESTING:
            raise ValueError(f"more than {MAX_NESTING} parentheses inside each other")
    try:
        tree = ast.parse(" ".join(expression.split()), mode="eval").body
    except (SyntaxError, MemoryError, RecursionError, ValueError) as error:
        raise ValueError(f"this is no arithmetic expression: {getattr(error, 'msg', error)}") from None
    if sum(1 for _ in ast.walk(tree)) > MAX_NODES:
        raise ValueError("the expression has too many parts")
    return tree


def _value(node: ast.expr) -> Number:
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return _checked(cast("Number", node.value))
    if isinstance(node, ast.Name) and node.id in CONSTANTS:
        return CONSTANTS[node.id]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        inner = _value(node.operand)
        return -inner if isinstance(node.op, ast.USub) else inner
    if isinstance(node, ast.BinOp):
        left, right = _value(node.left), _value(node.right)
        if isinstance(node.op, ast.Pow):
            return _power(left, right)
        return _checked(_BINARY[type(node.op)](left, right))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        return _call(node.func.id, [_value(argument) for argument in node.args])
    if isinstance(node, ast.Call | ast.Name):
        name = ast.unparse(node.func if isinstance(node, ast.Call) else node)
        raise ValueError(
            f"{name!r:.60} is not known; functions: {', '.join(FUNCTIONS)}; constants: pi, e, tau"
        )
    raise ValueError(f"a {type(node).__name__} is no part of arithmetic")


def _call(name: str, arguments: list[Number]) -> Number:
    function = FUNCTIONS.get(name)
    if function is None:
        raise ValueError(f"{name!r:.60} is not known; functions: {', '.join(FUNCTIONS)}")
    if name in ("max", "min") and len(arguments) == 1:
        return arguments[0]
    try:
        return _checked(function(*arguments))
    except TypeError as error:
        raise ValueError(f"{name}: {error}") from None


def _power(base: Number, exponent: Number) -> Number:
    """Raise to a power whose size is known beforehand."""
    whole = isinstance(base, int) and isinstance(exponent, int) and abs(base) > 1
    if whole and abs(exponent) * int(base).bit_length() > 2 * MAX_BITS:
        raise ValueError("the power is too large")
    value: object = base**exponent
    if isinstance(value, complex):
        raise ValueError("the root of a negative number is not real")
    return _checked(cast("Number", value))


def _checked(value: Number) -> Number:
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError("the result is not a finite number")
    elif value.bit_length() > MAX_BITS:
        raise ValueError("a number on the way is too large")
    return value
