"""Which attribute names an object gives, decided by its exact type alone.

This is the fourth allow-list. A type without a row gives nothing, so frames, code objects, tracebacks, real
modules and every type nobody thought of are closed. A row with no names marks a type that scripts may hold
but not look into. Names some Python versions lack carry the version that brought them (``is_integer@3.12``).

Rows of types from modules that are slow to import are made when a script imports the module: see
``rules/late.py``. Types named here come from modules the guest has loaded anyway.
"""

# Samples stand for their types here, so their element types do not matter.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportDeprecated=false

from __future__ import annotations

import abc
import builtins
import collections
import collections.abc
import contextlib
import datetime
import decimal
import enum
import functools
import io
import itertools
import numbers
import operator
import random
import re
import string
import sys
import textwrap
import time
import types
import typing
import uuid
from typing import Any, cast

from bascule.guest.errors import SCRIPT_ERRORS

Row = frozenset[str]


def names(text: str) -> Row:
    """Read a row: names separated by blanks; ``name@3.12`` counts from that Python on."""
    row: set[str] = set()
    for word in text.split():
        name, _, version = word.partition("@")
        if not version or sys.version_info >= tuple(int(part) for part in version.split(".")):
            row.add(name)
    return frozenset(row)


NOTHING = names("")
"""For types that may be held, called, iterated or compared, but not looked into."""

_STR = names(
    """capitalize casefold center count encode endswith expandtabs find format format_map index isalnum
    isalpha isascii isdecimal isdigit isidentifier islower isnumeric isprintable isspace istitle isupper
    join ljust lower lstrip maketrans partition removeprefix removesuffix replace rfind rindex rjust
    rpartition rsplit rstrip split splitlines startswith strip swapcase title translate upper zfill"""
)
_BYTES = names(
    """capitalize center count decode endswith expandtabs find fromhex hex index isalnum isalpha isascii
    isdigit islower isspace istitle isupper join ljust lower lstrip maketrans partition removeprefix
    removesuffix replace rfind rindex rjust rpartition rsplit rstrip split splitlines startswith strip
    swapcase title translate upper zfill"""
)
_INT = names(
    """as_integer_ratio bit_count bit_length conjugate denominator from_bytes imag is_integer@3.12 numerator
    real to_bytes"""
)
_DICT = names("clear copy fromkeys get items keys pop popitem setdefault update values")
_LIST = names("append clear copy count extend index insert pop remove reverse sort")
_FROZENSET = names("copy difference intersection isdisjoint issubset issuperset symmetric_difference union")
_SET = _FROZENSET | names(
    """add clear difference_update discard intersection_update pop remove symmetric_difference_update
    update"""
)
_TUPLE = names("count index")
_NAMED_TUPLE = _TUPLE | names("_asdict _fields _make _replace")

_ERROR = names("add_note args")
# Not with_traceback: tracebacks are nothing a script can hold. Not AttributeError.obj and .name or
# NameError.name: they hand out live objects (CVE-2024-47532).
_OS_ERROR = _ERROR | names("errno strerror")
_UNICODE_ERROR = _ERROR | names("encoding end object reason start")
_SYNTAX_ERROR = _ERROR | names("lineno msg offset text")
_GROUP = _ERROR | names("derive exceptions message split subgroup")

ERRORS: dict[type[BaseException], Row] = {
    BaseException: _ERROR,
    Exception: _ERROR,
    ArithmeticError: _ERROR,
    AssertionError: _ERROR,
    AttributeError: _ERROR,
    BlockingIOError: _OS_ERROR,
    BrokenPipeError: _OS_ERROR,
    BufferError: _ERROR,
    ChildProcessError: _OS_ERROR,
    ConnectionAbortedError: _OS_ERROR,
    ConnectionError: _OS_ERROR,
    ConnectionRefusedError: _OS_ERROR,
    ConnectionResetError: _OS_ERROR,
    EOFError: _ERROR,
    BaseExceptionGroup: _GROUP,
    ExceptionGroup: _GROUP,
    FileExistsError: _OS_ERROR,
    FileNotFoundError: _OS_ERROR,
    FloatingPointError: _ERROR,
    GeneratorExit: _ERROR,
    ImportError: _ERROR | names("msg name"),  # name is the refused module's name, a str
    IndentationError: _SYNTAX_ERROR,
    IndexError: _ERROR,
    InterruptedError: _OS_ERROR,
    IsADirectoryError: _OS_ERROR,
    KeyError: _ERROR,
    KeyboardInterrupt: _ERROR,
    LookupError: _ERROR,
    MemoryError: _ERROR,
    ModuleNotFoundError: _ERROR | names("msg name"),
    NameError: _ERROR,
    NotADirectoryError: _OS_ERROR,
    NotImplementedError: _ERROR,
    OSError: _OS_ERROR,
    OverflowError: _ERROR,
    PermissionError: _OS_ERROR,
    ProcessLookupError: _OS_ERROR,
    RecursionError: _ERROR,
    ReferenceError: _ERROR,
    RuntimeError: _ERROR,
    StopAsyncIteration: _ERROR,
    StopIteration: _ERROR | names("value"),
    SyntaxError: _SYNTAX_ERROR,
    SystemError: _ERROR,
    SystemExit: _ERROR | names("code"),
    TabError: _SYNTAX_ERROR,
    TimeoutError: _OS_ERROR,
    TypeError: _ERROR,
    UnboundLocalError: _ERROR,
    UnicodeDecodeError: _UNICODE_ERROR,
    UnicodeEncodeError: _UNICODE_ERROR,
    UnicodeError: _ERROR,
    UnicodeTranslateError: _UNICODE_ERROR,
    ValueError: _ERROR,
    ZeroDivisionError: _ERROR,
    Warning: _ERROR,
    DeprecationWarning: _ERROR,
    RuntimeWarning: _ERROR,
    UserWarning: _ERROR,
    FutureWarning: _ERROR,
    BytesWarning: _ERROR,
    EncodingWarning: _ERROR,
    ImportWarning: _ERROR,
    PendingDeprecationWarning: _ERROR,
    ResourceWarning: _ERROR,
    SyntaxWarning: _ERROR,
    UnicodeWarning: _ERROR,
    re.error: _ERROR | names("colno lineno msg pattern pos"),
    decimal.DecimalException: _ERROR,
    **{
        getattr(decimal, name): _ERROR
        for name in ("ConversionSyntax", "DivisionImpossible", "DivisionUndefined", "InvalidContext")
        if hasattr(decimal, name)
    },
    decimal.Clamped: _ERROR,
    decimal.DivisionByZero: _ERROR,
    decimal.FloatOperation: _ERROR,
    decimal.Inexact: _ERROR,
    decimal.InvalidOperation: _ERROR,
    decimal.Overflow: _ERROR,
    decimal.Rounded: _ERROR,
    decimal.Subnormal: _ERROR,
    decimal.Underflow: _ERROR,
    **{
        kind: _ERROR for kind in (getattr(builtins, "PythonFinalizationError", None),) if kind
    },  # from 3.13 on
}

_VIEW = names("isdisjoint")  # not .mapping: comparing a mappingproxy hands out the dict behind it (bpo-43838)
_SEQUENCE = names("count index")
_MUTABLE_SEQUENCE = _SEQUENCE | names("append clear extend insert pop remove reverse")
_MAPPING = names("get items keys values")
_MUTABLE_MAPPING = _MAPPING | names("clear pop popitem setdefault update")
_GENERATOR = names("close send throw")

ABSTRACT: dict[type, Row] = {
    # What script classes inherit from them as well; never register(), which is the metaclass's.
    abc.ABC: NOTHING,
    collections.abc.AsyncGenerator: names("aclose asend athrow"),
    collections.abc.AsyncIterable: NOTHING,
    collections.abc.AsyncIterator: NOTHING,
    collections.abc.Awaitable: NOTHING,
    collections.abc.Callable: NOTHING,  # type: ignore[dict-item]
    collections.abc.Collection: NOTHING,
    collections.abc.Container: NOTHING,
    collections.abc.Coroutine: _GENERATOR,
    collections.abc.Generator: _GENERATOR,
    collections.abc.Hashable: NOTHING,
    collections.abc.ItemsView: _VIEW,
    collections.abc.Iterable: NOTHING,
    collections.abc.Iterator: NOTHING,
    collections.abc.KeysView: _VIEW,
    collections.abc.Mapping: _MAPPING,
    collections.abc.MappingView: NOTHING,
    collections.abc.MutableMapping: _MUTABLE_MAPPING,
    collections.abc.MutableSequence: _MUTABLE_SEQUENCE,
    collections.abc.MutableSet: names("add clear discard isdisjoint pop remove"),
    collections.abc.Reversible: NOTHING,
    collections.abc.Sequence: _SEQUENCE,
    collections.abc.Set: names("isdisjoint"),
    collections.abc.Sized: NOTHING,
    collections.abc.ValuesView: NOTHING,
    # Buffer came with 3.12, ByteString goes with 3.17.
    **{getattr(collections.abc, name): NOTHING for name in ("Buffer",) if hasattr(collections.abc, name)},
    **{
        getattr(collections.abc, name): _SEQUENCE
        for name in ("ByteString",)
        if hasattr(collections.abc, name)
    },
    numbers.Number: NOTHING,
    numbers.Complex: names("conjugate imag real"),
    numbers.Real: names("conjugate imag real"),
    numbers.Rational: names("conjugate denominator imag numerator real"),
    numbers.Integral: names("conjugate denominator imag numerator real"),
    typing.Generic: NOTHING,
    typing.Protocol: NOTHING,
}

_HINTS: tuple[object, ...] = (
    # Classes that mean something in annotations only.
    typing.IO,
    typing.TextIO,
    typing.BinaryIO,
    typing.SupportsAbs,
    typing.SupportsFloat,
    typing.SupportsIndex,
    typing.SupportsInt,
    typing.SupportsRound,
    typing.Annotated,
    typing.Any,
    typing.NewType,
    typing.ParamSpec,
    typing.TypeVar,
    typing.TypeVarTuple,
)

_DECIMAL = names(
    """adjusted as_integer_ratio as_tuple canonical compare compare_signal compare_total compare_total_mag
    conjugate copy_abs copy_negate copy_sign exp fma from_float from_number@3.14 imag is_canonical is_finite
    is_infinite is_nan is_normal is_qnan is_signed is_snan is_subnormal is_zero ln log10 logb logical_and
    logical_invert logical_or logical_xor max max_mag min min_mag next_minus next_plus next_toward normalize
    number_class quantize radix real remainder_near rotate same_quantum scaleb shift sqrt to_eng_string
    to_integral to_integral_exact to_integral_value"""
)
_DECIMAL_CONTEXT = names(
    """Emax Emin Etiny Etop abs add canonical capitals clamp clear_flags clear_traps compare compare_signal
    compare_total compare_total_mag copy copy_abs copy_decimal copy_negate copy_sign create_decimal
    create_decimal_from_float divide divide_int divmod exp flags fma is_canonical is_finite is_infinite is_nan
    is_normal is_qnan is_signed is_snan is_subnormal is_zero ln log10 logb logical_and logical_invert
    logical_or logical_xor max max_mag min min_mag minus multiply next_minus next_plus next_toward normalize
    number_class plus power prec quantize radix remainder remainder_near rotate rounding same_quantum scaleb
    shift sqrt subtract to_eng_string to_integral to_integral_exact to_integral_value to_sci_string traps"""
)
_DATE = names(
    """ctime day isocalendar isoformat isoweekday month replace strftime timetuple toordinal weekday year"""
)
_TIME_OF_DAY = names(
    "dst fold hour isoformat microsecond minute replace second strftime tzinfo tzname utcoffset"
)
_DATETIME = _DATE | _TIME_OF_DAY | names("astimezone date time timestamp timetz utctimetuple")
_TZINFO = names("dst fromutc tzname utcoffset")
_COUNTER = _DICT | names("elements most_common subtract total")
_RANDOM = names(
    """betavariate binomialvariate@3.12 choice choices expovariate gammavariate gauss getrandbits
    lognormvariate normalvariate paretovariate randbytes randint random randrange sample seed shuffle
    triangular uniform vonmisesvariate weibullvariate"""
)
_IO = names(
    """close closed flush isatty read readable readline readlines seek seekable tell truncate writable write
    writelines"""
)
_MEMBER = names("name value")  # of Enum classes that are not the script's own


ATTRIBUTES: dict[type, Row] = {
    object: NOTHING,
    type: NOTHING,  # class objects go by CLASS_ATTRIBUTES
    type(None): NOTHING,
    type(Ellipsis): NOTHING,
    type(NotImplemented): NOTHING,
    # ------------------------------------------------------------ numbers, text, containers
    bool: _INT,
    int: _INT,
    float: names("as_integer_ratio conjugate fromhex hex imag is_integer real"),
    complex: names("conjugate imag real"),
    str: _STR,
    bytes: _BYTES,
    memoryview: names(
        """cast contiguous format hex itemsize nbytes ndim readonly release shape
        strides suboffsets tobytes tolist toreadonly"""
    ),
    bytearray: _BYTES | names("append clear copy extend insert pop remove reverse"),
    list: _LIST,
    tuple: _TUPLE,
    dict: _DICT,
    set: _SET,
    frozenset: _FROZENSET,
    range: _TUPLE | names("start step stop"),
    slice: names("indices start step stop"),
    # ------------------------------------------------------------ iterators and views
    type({}.keys()): _VIEW,
    type({}.values()): NOTHING,
    type({}.items()): _VIEW,
    type(iter({}.keys())): NOTHING,
    type(iter({}.values())): NOTHING,
    type(iter({}.items())): NOTHING,
    type(reversed({}.keys())): NOTHING,
    type(reversed({}.values())): NOTHING,
    type(reversed({}.items())): NOTHING,
    type(iter([])): NOTHING,
    type(reversed([])): NOTHING,
    type(iter(())): NOTHING,
    type(iter("a")): NOTHING,
    type(iter("é")): NOTHING,
    type(iter(b"")): NOTHING,
    type(iter(bytearray())): NOTHING,
    type(iter(range(0))): NOTHING,
    type(iter(range(1 << 100))): NOTHING,
    type(iter(set())): NOTHING,
    type(iter(int, 1)): NOTHING,
    enumerate: NOTHING,
    filter: NOTHING,
    map: NOTHING,
    reversed: NOTHING,
    zip: NOTHING,
    types.GeneratorType: names("close send throw"),  # never gi_frame, gi_code, gi_yieldfrom (CVE-2023-37271)
    types.AsyncGeneratorType: names("aclose asend athrow"),  # never ag_frame, ag_code, ag_await
    types.CoroutineType: NOTHING,  # never cr_frame, cr_code, cr_await, cr_origin
    types.MappingProxyType: names("copy get items keys values"),
    # ------------------------------------------------------------ callables and descriptors
    types.FunctionType: NOTHING,  # names the script itself set on its functions are the guards' business
    types.BuiltinFunctionType: NOTHING,  # never __self__, which is the real module
    type(re.compile("").search): NOTHING,  # methods of C types made on the heap, likewise
    types.MethodType: NOTHING,  # never __self__ and __func__
    types.MethodDescriptorType: NOTHING,
    types.MethodWrapperType: NOTHING,
    types.WrapperDescriptorType: NOTHING,
    types.ClassMethodDescriptorType: NOTHING,
    types.GetSetDescriptorType: NOTHING,
    types.MemberDescriptorType: NOTHING,
    property: names("deleter getter setter"),
    staticmethod: NOTHING,
    classmethod: NOTHING,
    super: NOTHING,  # what super() gives is the guards' business
    # ------------------------------------------------------------ collections
    collections.Counter: _COUNTER,
    collections.OrderedDict: _DICT | names("move_to_end"),
    collections.defaultdict: _DICT | names("default_factory"),
    collections.deque: names(
        """append appendleft clear copy count extend extendleft index insert maxlen pop popleft remove
        reverse rotate"""
    ),
    collections.ChainMap: _DICT | names("maps new_child parents"),
    type(collections.OrderedDict().keys()): _VIEW,
    type(collections.OrderedDict().values()): NOTHING,
    type(collections.OrderedDict().items()): _VIEW,
    type(iter(collections.OrderedDict())): NOTHING,
    type(iter(collections.deque())): NOTHING,
    type(reversed(collections.deque())): NOTHING,
    type(vars(decimal.DecimalTuple)["sign"]): NOTHING,  # a field of a named tuple, read from the class
    # ------------------------------------------------------------ itertools, functools, operator
    itertools.accumulate: NOTHING,
    **{kind: NOTHING for kind in (getattr(itertools, "batched", None),) if kind},  # from 3.12 on
    itertools.chain: NOTHING,
    itertools.combinations: NOTHING,
    itertools.combinations_with_replacement: NOTHING,
    itertools.compress: NOTHING,
    itertools.count: NOTHING,
    itertools.cycle: NOTHING,
    itertools.dropwhile: NOTHING,
    itertools.filterfalse: NOTHING,
    itertools.groupby: NOTHING,
    type(next(itertools.groupby([1]))[1]): NOTHING,
    itertools.islice: NOTHING,
    itertools.pairwise: NOTHING,
    itertools.permutations: NOTHING,
    itertools.product: NOTHING,
    itertools.repeat: NOTHING,
    itertools.starmap: NOTHING,
    itertools.takewhile: NOTHING,
    type(itertools.tee(())[0]): NOTHING,
    itertools.zip_longest: NOTHING,
    type(functools.lru_cache(ascii)): names("cache_clear cache_info cache_parameters"),
    type(functools.lru_cache(ascii).cache_info()): _NAMED_TUPLE | names("currsize hits maxsize misses"),
    functools.cached_property: NOTHING,
    type(functools.cmp_to_key(lambda a, b: 0)): NOTHING,
    type(functools.cmp_to_key(lambda a, b: 0)(0)): NOTHING,
    operator.itemgetter: NOTHING,
    # ------------------------------------------------------------ re
    re.Pattern: names(
        "findall finditer flags fullmatch groupindex groups match pattern search split sub subn"
    ),
    re.Match: names(
        """end endpos expand group groupdict groups lastgroup lastindex pos re regs span start string"""
    ),
    re.RegexFlag: _MEMBER,
    # ------------------------------------------------------------ dates and decimals
    datetime.date: _DATE,
    datetime.datetime: _DATETIME,
    datetime.time: _TIME_OF_DAY,
    datetime.timedelta: names("days microseconds seconds total_seconds"),
    datetime.timezone: _TZINFO,
    datetime.tzinfo: _TZINFO,
    type(datetime.date.min.isocalendar()): _TUPLE | names("week weekday year"),
    time.struct_time: _TUPLE
    | names("tm_gmtoff tm_hour tm_isdst tm_mday tm_min tm_mon tm_sec tm_wday tm_yday tm_year tm_zone"),
    decimal.Decimal: _DECIMAL,
    decimal.DecimalTuple: _NAMED_TUPLE | names("digits exponent sign"),
    decimal.Context: _DECIMAL_CONTEXT,
    type(decimal.localcontext()): NOTHING,
    type(decimal.Context().flags): names("copy get items keys values"),
    # ------------------------------------------------------------ text and streams
    string.Template: names("get_identifiers@3.11 is_valid@3.11 safe_substitute substitute template"),
    textwrap.TextWrapper: names(
        """break_long_words break_on_hyphens drop_whitespace expand_tabs fill fix_sentence_endings
        initial_indent max_lines placeholder replace_whitespace subsequent_indent tabsize width wrap"""
    ),
    io.StringIO: _IO | names("getvalue newlines"),
    io.BytesIO: _IO | names("getbuffer getvalue read1 readinto readinto1"),
    # ------------------------------------------------------------ contextlib
    type(contextlib.asynccontextmanager(cast(Any, lambda: None))()): NOTHING,
    contextlib.suppress: NOTHING,
    contextlib.nullcontext: NOTHING,
    contextlib.ExitStack: names("callback close enter_context pop_all push"),
    contextlib.AsyncExitStack: names(
        """aclose callback enter_async_context enter_context pop_all push push_async_callback
        push_async_exit"""
    ),
    type(
        contextlib.contextmanager(lambda: iter(()))()
    ): NOTHING,  # public .gen, .func, .args would be its insides
    # ------------------------------------------------------------ others
    uuid.UUID: names(
        """bytes bytes_le clock_seq clock_seq_hi_variant clock_seq_low fields hex int node time
        time_hi_version time_low time_mid urn variant version"""
    ),
    random.Random: _RANDOM,
    enum.auto: NOTHING,
    enum.verify: NOTHING,
    enum.EnumCheck: _MEMBER,
    type(vars(abc.ABC)["_abc_impl"]): NOTHING,
    types.SimpleNamespace: NOTHING,  # its own names: see OPEN
    type(sys.version_info): _TUPLE | names("major micro minor releaselevel serial"),
    type(sys.float_info): _TUPLE
    | names("""dig epsilon mant_dig max max_10_exp max_exp min min_10_exp min_exp radix rounds"""),
    # ------------------------------------------------------------ what annotations are made of
    types.GenericAlias: NOTHING,
    types.UnionType: NOTHING,
    **dict.fromkeys(
        {
            type(value)
            for value in (
                typing.Any,
                typing.Annotated[int, 1],
                typing.Callable,
                typing.Callable[[int], int],
                typing.ClassVar,
                typing.Concatenate,
                typing.ForwardRef("a"),
                typing.Generic[typing.AnyStr],  # type: ignore[index]
                typing.List,  # noqa: UP006
                typing.List[int],  # noqa: UP006
                typing.Literal,
                typing.Literal[1],
                typing.NamedTuple,
                typing.NewType("N", int),
                typing.Optional,
                typing.Optional[int],  # noqa: UP045
                typing.ParamSpec("P"),
                typing.ParamSpec("P").args,
                typing.ParamSpec("P").kwargs,
                typing.Protocol,
                typing.Tuple,  # noqa: UP006
                typing.TypeVar("T"),
                typing.TypeVarTuple("Ts"),
                typing.TypedDict,
                typing.Unpack[typing.Tuple[int, ...]],  # noqa: UP006
                typing.Unpack[typing.TypeVarTuple("Ts")],
            )
        }
        - {type, types.FunctionType},
        NOTHING,
    ),
    **ABSTRACT,
    **{hint: NOTHING for hint in _HINTS if isinstance(hint, type)},
    **ERRORS,
    **dict.fromkeys(SCRIPT_ERRORS.values(), _ERROR | names("kind message retryable suggestion")),
}

_OWN_NAMES: dict[type, Row] = {
    # Names of the class itself, beside the methods and constants of its instances.
    bool: NOTHING,
    float: names("from_number@3.14"),
    complex: names("from_number@3.14"),
    datetime.date: names(
        "fromisocalendar fromisoformat fromordinal fromtimestamp max min resolution strptime@3.14 today"
    ),
    datetime.datetime: names(
        """combine fromisocalendar fromisoformat fromordinal fromtimestamp max min now resolution strptime
        today utcfromtimestamp utcnow"""
    ),
    datetime.time: names("fromisoformat max min resolution strptime@3.14"),
    datetime.timedelta: names("max min resolution"),
    datetime.timezone: names("max min utc"),
    itertools.chain: names("from_iterable"),
}

_CHECKED = (
    types.MethodDescriptorType,
    types.ClassMethodDescriptorType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
    classmethod,
    staticmethod,
)


def class_row(kind: type, row: Row, own: Row = NOTHING) -> Row:
    """Return what a class object may give of its instances' names, beside its own.

    Methods written in C check what they are called on. Methods and properties written in Python do not: with
    ``Counter.copy(SomeClass)``, which is ``SomeClass.__class__(SomeClass)``, a script would hold the real
    ``type``.
    """
    found = {
        name: next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), None) for name in row
    }
    return own | {name for name, member in found.items() if isinstance(member, _CHECKED)}


CLASS_ATTRIBUTES: dict[type, Row] = {
    kind: class_row(kind, row, _OWN_NAMES.get(kind, NOTHING))
    for kind, row in ATTRIBUTES.items()
    if kind not in {types.GeneratorType, types.AsyncGeneratorType, types.SimpleNamespace, property, type}
    and (kind.__module__ not in {"typing", "_typing"} or kind in ABSTRACT or kind in _HINTS)
}
"""What a class object gives: its own names and, for ``map(str.strip, rows)``, its methods written in C."""

REPLACED: frozenset[tuple[type, str]] = frozenset(
    {
        (str, "format"),  # reads attributes of its arguments in C (CVE-2023-41039)
        (str, "format_map"),
        (datetime.date, "today"),  # the run's clock, not the machine's
        (datetime.datetime, "today"),
        (datetime.datetime, "now"),
        (datetime.datetime, "utcnow"),
        (datetime.datetime, "strptime"),  # imports a module through the caller's builtins
    }
)
"""Never given natively: the guards put a safe implementation in their place, or refuse."""

OPEN: frozenset[type] = frozenset({types.SimpleNamespace})
"""Bags of names the script chose: any public name may be read, set and deleted."""

WRITABLE: dict[type, Row] = {
    decimal.Context: names("Emax Emin capitals clamp prec rounding"),
    textwrap.TextWrapper: ATTRIBUTES[textwrap.TextWrapper] - {"fill", "wrap"},
    collections.defaultdict: names("default_factory"),
    collections.ChainMap: names("maps"),
}
"""Names that may be set on instances, beside everything on the script's own objects."""

OPERABLE: frozenset[type] = frozenset(
    {
        *(object, bool, int, float, complex, str, bytes, bytearray, range, slice, type(None)),
        *(list, tuple, dict, set, frozenset, collections.OrderedDict, collections.defaultdict),
        *(collections.deque, decimal.Decimal, datetime.date, datetime.datetime, datetime.time),
        *(datetime.timedelta, BaseException, Exception),
    }
)
"""Types written in C whose special methods scripts may read of an object: ``rows.__len__``, ``a.__add__``.
They check what they get, run no Python of ours, and do what the operator does. Not Counter: some of its are
written in Python."""

EXTENSIBLE: frozenset[object] = frozenset(
    {
        object,
        *(error for error in ERRORS if issubclass(error, Exception)),
        int,
        float,
        str,
        bytes,
        tuple,
        list,
        dict,
        set,
        frozenset,
        collections.Counter,
        collections.OrderedDict,
        collections.defaultdict,
        collections.deque,
        enum.Enum,
        enum.IntEnum,
        enum.StrEnum,
        enum.Flag,
        enum.IntFlag,
        datetime.tzinfo,
        typing.Generic,
        typing.NamedTuple,
        typing.Protocol,
        typing.TypedDict,
        *ABSTRACT,
    }
)
"""What a script class may inherit from, beside other script classes, subscripted generics of these and what
the late rows of an imported module add. Not date and datetime: a subclass would read the machine's clock."""
