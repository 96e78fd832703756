"""Which syntax a script may use: one row for each AST node type of CPython 3.11 to 3.14.

A node type without a row is refused, so a new Python version fails closed; a test fails when the running
Python has a node type without a row. ``allowed`` nodes only hold other nodes. ``checked`` nodes carry names
or rules of their own that the transformer looks at. ``refused`` nodes say what to write instead.

Also here, because they are syntax too: the special methods a class may define, the names that are never
bound, and the attribute names that are refused whatever the object is. Nothing here looks at objects;
that is the attribute table's business.
"""

from __future__ import annotations

from typing import Literal

import msgspec
from RestrictedPython.transformer import INSPECT_ATTRIBUTES


class SyntaxRule(msgspec.Struct, frozen=True, kw_only=True):
    """What is decided about one node type.

    Attributes:
        verdict: ``allowed``, ``checked`` (by a visit method of the transformer) or ``refused``.
        reason: why.
        title: how a message names it, when refused.
        substitute: what a script writes instead, when refused.
    """

    verdict: Literal["allowed", "checked", "refused"]
    reason: str
    title: str = ""
    substitute: str = ""


def _allowed(reason: str, *names: str) -> dict[str, SyntaxRule]:
    return {name: SyntaxRule(verdict="allowed", reason=reason) for name in names}


def _checked(reason: str, *names: str) -> dict[str, SyntaxRule]:
    return {name: SyntaxRule(verdict="checked", reason=reason) for name in names}


def _refused(name: str, *, title: str, reason: str, substitute: str) -> dict[str, SyntaxRule]:
    return {name: SyntaxRule(verdict="refused", reason=reason, title=title, substitute=substitute)}


SYNTAX: dict[str, SyntaxRule] = {
    # Containers of code.
    **_checked("becomes the body of the script function", "Module"),
    **_refused(
        "Interactive",
        title="interactive code",
        reason="only ast.parse in exec mode is used",
        substitute="write a script",
    ),
    **_refused(
        "Expression",
        title="a bare expression tree",
        reason="only ast.parse in exec mode is used",
        substitute="write a script",
    ),
    **_refused(
        "FunctionType",
        title="a type comment",
        reason="only ast.parse in exec mode is used",
        substitute="write a script",
    ),
    **_refused(
        "TypeIgnore",
        title="a type-ignore comment",
        reason="comments are not parsed",
        substitute="leave it out",
    ),
    # Expressions.
    **_allowed(
        "operators call methods of the operands, which are script code or table types",
        "BoolOp",
        "UnaryOp",
        "Compare",
        "IfExp",
    ),
    **_checked("`text % values` shows objects: their addresses are left out", "BinOp"),
    **_allowed("displays build plain containers", "Dict", "Set", "List", "Tuple", "Starred", "Slice"),
    **_checked("item access calls the object's own methods; `__dict__` is a copy", "Subscript"),
    **_allowed("a literal", "Constant"),
    **_checked("the name is checked", "Name"),
    **_checked("attributes are read and written through the guards", "Attribute"),
    **_checked("super(), str() and repr() need care", "Call"),
    **_allowed("keyword names are not bound in the script", "keyword"),
    **_checked("parameter names are checked", "Lambda", "arguments", "arg"),
    **_checked("the bound name is checked; the target is a plain name", "NamedExpr"),
    **_checked("guards inside need to know that they are in a comprehension", "ListComp", "SetComp"),
    **_checked("guards inside need to know that they are in a comprehension", "DictComp", "GeneratorExp"),
    **_checked("asynchronous ones make the script asynchronous", "comprehension"),
    **_checked("only inside async def or at the top level", "Await"),
    **_checked("only inside a function", "Yield", "YieldFrom"),
    **_checked("values are shown without addresses", "FormattedValue"),
    **_allowed("holds formatted values", "JoinedStr"),
    **_refused(
        "TemplateStr",
        title='a template string (t"...")',
        reason="interpolations hand out expression text and live values; nothing renders them",
        substitute="use an f-string",
    ),
    **_refused(
        "Interpolation",
        title='a template string (t"...")',
        reason="part of TemplateStr",
        substitute="use an f-string",
    ),
    # Statements.
    **_allowed("control flow", "Expr", "If", "While", "Break", "Continue", "Pass", "Assert", "Raise"),
    **_checked("targets are checked where they are bound", "For", "AsyncFor", "With", "AsyncWith"),
    **_allowed("the target is checked as name, attribute or item", "withitem"),
    **_checked("special class attributes are bound here only", "Assign"),
    **_checked("evaluates its target once; attributes are checked for reading and writing", "AugAssign"),
    **_checked("annotations may not run unguarded and may not raise", "AnnAssign"),
    **_allowed("the target is checked as name, attribute or item", "Delete"),
    **_checked("at the top level it ends the script with a value", "Return"),
    **_allowed("limits are not exceptions, so nothing can swallow them", "Try"),
    **_checked("the bound name is checked; a bare except catches Exception only", "ExceptHandler"),
    **_refused(
        "TryStar",
        title="except*",
        reason="type confusion in CPython before 3.13.2 (CVE-2025-22153)",
        substitute="write `except ExceptionGroup as group:` and look at `group.exceptions`",
    ),
    **_checked("resolved to facades; the bound name is checked", "Import", "ImportFrom", "alias"),
    **_checked("the names are strings, so they are checked here", "Global", "Nonlocal"),
    **_checked("names, parameters and decorators are checked", "FunctionDef", "AsyncFunctionDef"),
    **_checked("bases and keywords are checked; the class is registered", "ClassDef"),
    **_refused(
        "TypeAlias",
        title="a type alias statement",
        reason="its value is evaluated lazily, outside every check of ours",
        substitute="assign it: `Row = dict[str, int]`",
    ),
    **{
        name: SyntaxRule(
            verdict="refused",
            reason="binds names as strings and evaluates bounds lazily",
            title="type parameters in brackets",
            substitute='use `T = TypeVar("T")` and `Generic[T]`',
        )
        for name in ("TypeVar", "ParamSpec", "TypeVarTuple")
    },
    # Patterns: they read attributes and compare without asking anyone, so classes and values are hoisted.
    **_checked("class and value patterns are replaced by vetted ones", "Match", "match_case"),
    **_checked("the value is read before the match statement, through the guards", "MatchValue"),
    **_allowed("compares with None, True or False", "MatchSingleton"),
    **_allowed("sequences only", "MatchSequence", "MatchOr"),
    **_checked("the captured name is checked", "MatchMapping", "MatchStar", "MatchAs"),
    **_checked("the class is vetted at run time, attribute names before", "MatchClass"),
    # Contexts and operators.
    **_allowed("context of a name", "Load", "Store", "Del"),
    **_allowed("operator", "And", "Or", "Add", "Sub", "Mult", "MatMult", "Div", "Mod", "Pow", "LShift"),
    **_allowed("operator", "RShift", "BitOr", "BitXor", "BitAnd", "FloorDiv", "Invert", "Not", "UAdd"),
    **_allowed("operator", "USub", "Eq", "NotEq", "Lt", "LtE", "Gt", "GtE", "Is", "IsNot", "In", "NotIn"),
}


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ARITHMETIC = _words("add sub mul matmul truediv floordiv mod divmod pow lshift rshift and or xor")

SPECIAL_METHODS: frozenset[str] = _words(
    # Set-up. __new__ is left out: object.__new__ makes objects that no constructor has seen.
    "__init__ __post_init__ "
    # Text and identity. What they return is script data.
    "__repr__ __str__ __format__ __bytes__ __hash__ __bool__ __index__ __int__ __float__ __complex__ "
    # Comparison.
    "__eq__ __ne__ __lt__ __le__ __gt__ __ge__ "
    # Containers and iteration. __missing__ is called by dict only.
    "__len__ __iter__ __next__ __reversed__ __contains__ __getitem__ __setitem__ __delitem__ __missing__ "
    # Copies: called by our copy module only, with a dictionary of what is copied already.
    "__copy__ __deepcopy__ "
    # Calls and contexts.
    "__call__ __enter__ __exit__ __aenter__ __aexit__ __aiter__ __anext__ "
    # Numbers.
    "__neg__ __pos__ __abs__ __invert__ __round__ __trunc__ __floor__ __ceil__"
) | frozenset(
    f"__{prefix}{name}__" for name in _ARITHMETIC for prefix in ("", "r", "i") if prefix + name != "idivmod"
)
"""Special methods that classes may define, by ``def`` or by assigning what the script holds (it could call
that itself), and that ``super().name``, ``Base.name`` and ``value.name`` may name. Never in it: what
creates or changes classes (``__init_subclass__``, ``__set_name__``, ``__class_getitem__``,
``__mro_entries__``, ``__prepare__``), what answers for attributes (``__getattr__``, ``__getattribute__``,
``__setattr__``, ``__delattr__``, ``__get__``, ``__set__``, ``__dir__``), what lies about types
(``__instancecheck__``, ``__subclasscheck__``, ``__class__``), what runs at odd times (``__del__``,
``__reduce__`` and kin, ``__await__``, whose yields would reach the loop)."""

ENUM_HOOKS: frozenset[str] = frozenset({"_missing_", "_generate_next_value_"})
"""Names that only methods of a class may have: Enum calls them, with the script's own class and plain values.
They cannot be read, so a script calls neither itself."""

CLASS_VARIABLES: frozenset[str] = frozenset({"__slots__", "__match_args__", "__doc__"})
"""Special names that a plain assignment directly in a class body may bind: slots and match arguments to
literal strings, ``__doc__`` to text, any of SPECIAL_METHODS to None. CPython reads all of them as data."""

READABLE_SPECIALS: frozenset[str] = _words(
    "__name__ __qualname__ __class__ __doc__ __dict__ __annotations__ __members__ __cause__ __context__ "
    "__args__ __dataclass_fields__ __notes__"
)
"""Special attributes that are answered by helpers of ours, on load only: the name of a class or function,
the class as ``type(x)`` gives it, the text of a docstring, a copy of the fields of a script's own object or
dataclass, the arguments of a generic alias as ``typing.get_args`` gives them, the notes of an exception."""

READ_ONLY_SPECIALS: frozenset[str] = frozenset({"__setattr__", "__fspath__", "__getnewargs__"})
"""Special methods that no class defines and that are read where they are harmless: ``__setattr__`` of the
built-in ``object`` alone, which is how the ``__post_init__`` of a frozen dataclass sets a field, through the
guarded write; ``__fspath__`` of paths, which is
their text; ``__getnewargs__`` of tuples, which is their items."""

UNBINDABLE: frozenset[str] = frozenset({"super"})
"""Names the compiler treats specially and that a script therefore may not bind."""

REFUSED_ATTRIBUTES: frozenset[str] = frozenset(INSPECT_ATTRIBUTES) | _words(
    # Newer or lesser known doors to the same rooms; the type table would stop them as well.
    "tb_lasti tb_lineno f_lasti f_lineno gi_running gi_suspended cr_running cr_suspended ag_running "
    "co_consts co_names co_filename func_globals func_code im_func im_self im_class "
    # What ABCMeta keeps in the dictionary of a script's own class.
    "_abc_impl"
)
"""Attribute names that open frames, code and tracebacks, refused at compile time on any object."""


def is_special(name: str) -> bool:
    """Whether ``name`` starts and ends with an underscore, as ``__class__`` and ``_getattr_``; not ``_``."""
    return len(name) > 1 and name[0] == "_" and name[-1] == "_" and name.strip("_") != ""


def attribute_problem(name: str) -> str | None:
    """Say why no object may be asked for the attribute ``name``, or None when its type decides."""
    if is_special(name):
        return f"`{name}` is a special name and not available to scripts"
    if name in REFUSED_ATTRIBUTES:
        return f"`{name}` belongs to the interpreter and is not available to scripts"
    return None


def name_problem(name: str) -> str | None:
    """Say why a script may not bind or use the plain name ``name``, or None when it may."""
    if is_special(name):
        return f"`{name}` is a special name and not available to scripts"
    if name in UNBINDABLE:
        return f"`{name}` may not be given a new meaning"
    return None
