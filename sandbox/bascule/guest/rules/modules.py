"""Which modules a script may import, and which names each gives. Everything else does not exist.

A name listed here is taken from the real module unless the facade's builder (``guest/facades``) supplies its
own, which it must for everything that reads attributes, looks at the machine, or keeps state between runs.
Names that some Python versions lack are given by those that have them.
"""

from __future__ import annotations

import sys


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


MODULES: dict[str, frozenset[str]] = {
    # No ABCMeta: metaclasses are refused by the syntax rules.
    "abc": _words("ABC abstractmethod"),
    "base64": _words(
        """a85decode a85encode b16decode b16encode b32decode b32encode b32hexdecode b32hexencode b64decode
        b64encode b85decode b85encode decodebytes encodebytes standard_b64decode standard_b64encode
        urlsafe_b64decode urlsafe_b64encode z85decode z85encode"""
    ),
    "binascii": _words("Error a2b_base64 a2b_hex b2a_base64 b2a_hex crc32 crc_hqx hexlify unhexlify"),
    "bisect": _words("bisect bisect_left bisect_right insort insort_left insort_right"),
    # No setfirstweekday (shared state), no locale classes.
    "calendar": _words(
        """Calendar FRIDAY HTMLCalendar IllegalMonthError IllegalWeekdayError MONDAY SATURDAY SUNDAY
        THURSDAY TUESDAY TextCalendar WEDNESDAY calendar day_abbr day_name firstweekday isleap leapdays
        month month_abbr month_name monthcalendar monthrange prcal prmonth timegm weekday weekheader"""
    ),
    "cmath": _words(
        """acos acosh asin asinh atan atanh cos cosh e exp inf infj isclose isfinite isinf isnan log log10
        nan nanj phase pi polar rect sin sinh sqrt tan tanh tau"""
    ),
    # No UserString: its format() is str.format.
    "collections": _words("ChainMap Counter OrderedDict defaultdict deque namedtuple"),
    "collections.abc": _words(
        """AsyncGenerator AsyncIterable AsyncIterator Awaitable Buffer ByteString Callable Collection
        Container Coroutine Generator Hashable ItemsView Iterable Iterator KeysView Mapping MappingView
        MutableMapping MutableSequence MutableSet Reversible Sequence Set Sized ValuesView"""
    ),
    # No chdir; closing is ours: it reads .close through the guard.
    "contextlib": _words(
        """AsyncExitStack ContextDecorator ExitStack aclosing asynccontextmanager closing contextmanager
        nullcontext redirect_stderr redirect_stdout suppress"""
    ),
    # Ours: the real ones call __reduce_ex__ and __deepcopy__ of what they copy.
    "copy": _words("Error copy deepcopy replace"),
    # No register_dialect, field_size_limit (shared state), no Sniffer (makes classes).
    "csv": _words(
        """DictReader DictWriter Error QUOTE_ALL QUOTE_MINIMAL QUOTE_NONE QUOTE_NONNUMERIC QUOTE_NOTNULL
        QUOTE_STRINGS excel excel_tab list_dialects reader unix_dialect writer"""
    ),
    # No make_dataclass.
    "dataclasses": _words(
        """FrozenInstanceError InitVar KW_ONLY MISSING asdict astuple dataclass field fields is_dataclass
        replace"""
    ),
    "datetime": _words("MAXYEAR MINYEAR UTC date datetime time timedelta timezone tzinfo"),
    "decimal": _words(
        """BasicContext Clamped Context ConversionSyntax Decimal DecimalException DecimalTuple
        DefaultContext DivisionByZero DivisionImpossible DivisionUndefined ExtendedContext FloatOperation
        Inexact InvalidContext InvalidOperation MAX_EMAX MAX_PREC MIN_EMIN Overflow ROUND_05UP ROUND_CEILING
        ROUND_DOWN ROUND_FLOOR ROUND_HALF_DOWN ROUND_HALF_EVEN ROUND_HALF_UP ROUND_UP Rounded Subnormal
        Underflow getcontext localcontext setcontext"""
    ),
    "difflib": _words("Differ SequenceMatcher context_diff get_close_matches ndiff restore unified_diff"),
    "enum": _words("CONTINUOUS Enum Flag IntEnum IntFlag NAMED_FLAGS StrEnum UNIQUE auto unique verify"),
    "fractions": _words("Fraction"),
    # partial, wraps, singledispatch and what is for methods are ours: the real ones show what they hold or
    # evaluate annotations.
    "functools": _words(
        """cache cached_property cmp_to_key lru_cache partial partialmethod reduce singledispatch
        singledispatchmethod total_ordering update_wrapper wraps"""
    ),
    # No file_digest.
    # Memory is freed when the run ends: collect() finds nothing, and nothing lists objects.
    "gc": _words("collect disable enable isenabled"),
    "hashlib": _words(
        """algorithms_available algorithms_guaranteed blake2b blake2s md5 new pbkdf2_hmac sha1 sha224 sha256
        sha384 sha3_224 sha3_256 sha3_384 sha3_512 sha512 shake_128 shake_256"""
    ),
    "heapq": _words("heapify heappop heappush heappushpop heapreplace merge nlargest nsmallest"),
    "hmac": _words("HMAC compare_digest digest new"),
    "html": _words("escape unescape"),
    # Text in memory only; no open, no FileIO.
    "io": _words("BytesIO SEEK_CUR SEEK_END SEEK_SET StringIO UnsupportedOperation"),
    "itertools": _words(
        """accumulate batched chain combinations combinations_with_replacement compress count cycle
        dropwhile filterfalse groupby islice pairwise permutations product repeat starmap takewhile tee
        zip_longest"""
    ),
    "json": _words("JSONDecodeError JSONEncoder dump dumps load loads"),
    # All of it is ours and writes to the script's output; formats are expanded by our own str.format.
    "logging": _words(
        """CRITICAL DEBUG ERROR FATAL Filter Formatter Handler INFO Logger LoggerAdapter NOTSET NullHandler
        StreamHandler WARN WARNING basicConfig critical debug disable error exception getLevelName getLogger
        info log root warn warning"""
    ),
    "math": _words(
        """acos acosh asin asinh atan atan2 atanh cbrt ceil comb copysign cos cosh degrees dist e erf erfc
        exp exp2 expm1 fabs factorial floor fma fmod frexp fsum gamma gcd hypot inf isclose isfinite isinf
        isnan isqrt lcm ldexp lgamma log log10 log1p log2 modf nan nextafter perm pi pow prod radians
        remainder sin sinh sqrt sumprod tan tanh tau trunc ulp"""
    ),
    "numbers": _words("Complex Integral Number Rational Real"),
    # attrgetter and methodcaller are ours and read through the guard.
    "operator": _words(
        """abs add and_ attrgetter call concat contains countOf delitem eq floordiv ge getitem gt iadd iand
        iconcat ifloordiv ilshift imatmul imod imul index indexOf inv invert ior ipow irshift is_ is_none
        is_not is_not_none isub itemgetter itruediv ixor le length_hint lshift lt matmul methodcaller mod
        mul ne neg not_ or_ pos pow rshift setitem sub truediv truth xor"""
    ),
    # Paths as text: Path is a pure path whose file methods say that there are no files.
    "pathlib": _words("Path PosixPath PurePath PurePosixPath PureWindowsPath"),
    "pprint": _words("PrettyPrinter pformat pp pprint"),
    "random": _words(
        """Random SystemRandom betavariate binomialvariate choice choices expovariate gammavariate gauss
        getrandbits getstate lognormvariate normalvariate paretovariate randbytes randint random randrange
        sample seed setstate shuffle triangular uniform vonmisesvariate weibullvariate"""
    ),
    # No Scanner, no template, no purge.
    "re": _words(
        """A ASCII DOTALL I IGNORECASE L LOCALE M MULTILINE Match NOFLAG Pattern PatternError RegexFlag S U
        UNICODE VERBOSE X compile error escape findall finditer fullmatch match search split sub subn"""
    ),
    # Predictable by design: drawn from the run's seed.
    "secrets": _words(
        "SystemRandom choice compare_digest randbelow randbits token_bytes token_hex token_urlsafe"
    ),
    "statistics": _words(
        """NormalDist StatisticsError correlation covariance fmean geometric_mean harmonic_mean kde
        linear_regression mean median median_grouped median_high median_low mode multimode pstdev pvariance
        quantiles stdev variance"""
    ),
    # No Formatter: it reads attributes by name (CVE-2026-76825).
    "string": _words(
        """Template ascii_letters ascii_lowercase ascii_uppercase capwords digits hexdigits octdigits
        printable punctuation whitespace"""
    ),
    "struct": _words("calcsize error pack unpack"),
    # No modules, no frames, no hooks.
    "sys": _words(
        """argv byteorder exit float_info getrecursionlimit hash_info implementation maxsize maxunicode
        platform setrecursionlimit stderr stdout version version_info"""
    ),
    "textwrap": _words("TextWrapper dedent fill indent shorten wrap"),
    "time": _words(
        """altzone asctime ctime daylight gmtime localtime mktime monotonic monotonic_ns perf_counter
        perf_counter_ns process_time process_time_ns sleep strftime strptime struct_time thread_time time
        time_ns timezone tzname"""
    ),
    # No load: there are no files.
    "tomllib": _words("TOMLDecodeError loads"),
    # Own texts: real tracebacks name the guest's files.
    "traceback": _words("format_exc format_exception format_exception_only print_exc print_exception"),
    # No FunctionType, CodeType, ModuleType: constructors of what the walls are made of.
    "types": _words("MappingProxyType NoneType SimpleNamespace"),
    # No ForwardRef, get_type_hints, evaluate_forward_ref: they evaluate text.
    "typing": _words(
        """AbstractSet Annotated Any AnyStr AsyncContextManager AsyncGenerator AsyncIterable AsyncIterator
        Awaitable BinaryIO Callable ChainMap ClassVar Collection Concatenate Container ContextManager
        Coroutine Counter DefaultDict Deque Dict Final FrozenSet Generator Generic Hashable IO ItemsView
        Iterable Iterator KeysView List Literal LiteralString Mapping Match MutableMapping MutableSequence
        MutableSet NamedTuple Never NewType NoReturn NotRequired Optional OrderedDict ParamSpec Pattern
        Protocol ReadOnly Required Reversible Self Sequence Set Sized SupportsAbs SupportsFloat
        SupportsIndex SupportsInt SupportsRound TYPE_CHECKING Text TextIO Tuple Type TypeAlias TypeGuard
        TypeIs TypeVar TypeVarTuple TypedDict Union Unpack ValuesView assert_never assert_type cast final
        get_args get_origin no_type_check overload override reveal_type runtime_checkable"""
    ),
    "unicodedata": _words(
        """bidirectional category combining decimal decomposition digit east_asian_width is_normalized
        lookup mirrored name normalize numeric unidata_version"""
    ),
    "urllib": _words("parse"),
    "urllib.parse": _words(
        """ParseResult SplitResult parse_qs parse_qsl quote quote_from_bytes quote_plus unquote unquote_plus
        unquote_to_bytes urldefrag urlencode urljoin urlparse urlsplit urlunparse urlunsplit"""
    ),
    "uuid": _words(
        """NAMESPACE_DNS NAMESPACE_OID NAMESPACE_URL NAMESPACE_X500 RFC_4122 UUID uuid1 uuid3 uuid4 uuid5"""
    ),
    "zoneinfo": _words("ZoneInfo ZoneInfoNotFoundError available_timezones"),
}

_CALL_A_TOOL = "call one of the tools"
_NO_NETWORK = f"scripts have no network; {_CALL_A_TOOL}"
_NO_FILES = (
    "scripts have no files; keep data in variables, or use io.StringIO and io.BytesIO for text in memory"
)
_NO_PROCESS = f"scripts cannot start programs; {_CALL_A_TOOL}"
_NO_PACKAGE = (
    "only the standard library is here; work with lists and dicts, statistics, itertools and collections"
)
_NO_INSIDES = "scripts cannot look into the interpreter"
_NO_THREADS = (
    "use concurrent.futures.ThreadPoolExecutor or asyncio.gather to run several tool calls at the same time"
)
_JSON = "use json"

REFUSED_MODULES: dict[str, str] = {
    "aiohttp": _NO_NETWORK,
    "array": "use a list",
    "ast": "use json.loads for data; " + _NO_INSIDES,
    "boto3": _NO_NETWORK,
    "builtins": "the built-in names are there without an import",
    "codecs": "use str.encode and bytes.decode",
    "configparser": "split the lines with str.partition('=')",
    "contextvars": "pass values as arguments",
    "ctypes": _NO_INSIDES,
    "dateutil": "use datetime.fromisoformat, datetime.strptime and zoneinfo",
    "dis": _NO_INSIDES,
    "dotenv": "scripts have no environment variables; tools hold their own credentials",
    "fileinput": _NO_FILES,
    "getpass": "scripts cannot ask; tools hold their own credentials",
    "glob": _NO_FILES,
    "graphlib": "sort with a list and a set",
    "gzip": _NO_FILES,
    "http": _NO_NETWORK,
    "http.client": _NO_NETWORK,
    "httpx": _NO_NETWORK,
    "importlib": "write a plain import of a listed module",
    "inspect": _NO_INSIDES,
    "locale": "use format specifications such as {x:,.2f}",
    "lxml": _NO_PACKAGE,
    "marshal": _JSON,
    "matplotlib": _NO_PACKAGE,
    "multiprocessing": _NO_THREADS,
    "numpy": _NO_PACKAGE,
    "openai": _NO_NETWORK,
    "os": _NO_FILES + "; there are no environment variables either",
    "os.path": _NO_FILES,
    "pandas": _NO_PACKAGE,
    "pickle": _JSON,
    "platform": _NO_INSIDES,
    "psycopg2": _NO_NETWORK,
    "pydantic": "use dataclasses",
    "pytz": "use zoneinfo",
    "queue": "use asyncio.Queue or collections.deque",
    "requests": _NO_NETWORK,
    "runpy": _NO_INSIDES,
    "scipy": _NO_PACKAGE,
    "shelve": _JSON,
    "shutil": _NO_FILES,
    "signal": _NO_PROCESS,
    "site": _NO_INSIDES,
    "smtplib": _NO_NETWORK,
    "socket": _NO_NETWORK,
    "sqlite3": "use lists and dicts; " + _NO_FILES,
    "ssl": _NO_NETWORK,
    "subprocess": _NO_PROCESS,
    "tempfile": _NO_FILES,
    "threading": _NO_THREADS,
    "timeit": "the clock stands still while a script runs",
    "tqdm": "print the progress",
    "urllib.request": _NO_NETWORK,
    "urllib3": _NO_NETWORK,
    "warnings": "use logging.warning or print",
    "weakref": "use a plain reference",
    "xml": "use re or str methods",
    "xml.etree.ElementTree": "use re or str methods",
    "yaml": _JSON,
    "zipfile": _NO_FILES,
    "zlib": "use binascii.crc32 for checksums",
}
"""Modules that models import and that are not here, with what to do instead."""


_MISSING_NAMES: dict[tuple[str, str], str] = {
    ("collections", "UserDict"): "inherit from dict",
    ("collections", "UserList"): "inherit from list",
    ("collections", "UserString"): "inherit from str",
    ("contextlib", "AsyncContextDecorator"): "write `async with` in the function",
    ("contextlib", "chdir"): _NO_FILES,
    ("csv", "Sniffer"): "pass delimiter=, or count the candidates in the first line",
    ("csv", "register_dialect"): "pass delimiter=, quotechar= and the like to the reader or writer",
    ("dataclasses", "make_dataclass"): "write a class statement, or use collections.namedtuple",
    ("hashlib", "file_digest"): _NO_FILES,
    ("io", "TextIOWrapper"): "decode the bytes and use io.StringIO",
    ("io", "open"): _NO_FILES,
    ("json", "JSONDecoder"): "pass object_hook= to json.loads",
    ("string", "Formatter"): "use str.format or str.format_map, with a dict that defines __missing__",
    ("sys", "exc_info"): "use the exception of `except ... as error`",
    ("sys", "modules"): _NO_INSIDES,
    ("sys", "path"): _NO_FILES,
    ("sys", "stdin"): "nobody can answer while the script runs; call one of the tools for input",
    ("time", "tzset"): "use zoneinfo",
    ("tomllib", "load"): "use tomllib.loads with the text",
    ("typing", "get_type_hints"): "read `cls.__annotations__`",
    ("types", "FunctionType"): "use callable(...)",
    ("types", "ModuleType"): "use types.SimpleNamespace",
}
"""Names that models read of modules that are here, and what to write instead."""


def missing_name(module: str, name: str) -> str | None:
    """Return what to write instead of a name that a module does not have here, or None."""
    return _MISSING_NAMES.get((module, name))


def refusal(name: str) -> str:
    """Return the message for an import that is not allowed, in words for the model that wrote it."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        substitute = REFUSED_MODULES.get(".".join(parts[:length]))
        if substitute is not None:
            return f"{name} is not available: {substitute}"
    return f"{name} is not available; the modules that are: {', '.join(sorted(MODULES))}"


def tools_may_help(message: str) -> bool:
    """Whether a tool may do what a refused module was for: not where the message says what does."""
    return _CALL_A_TOOL in message or _NO_PACKAGE in message


_PACKAGES = (
    _words(
        """asyncio collections concurrent ctypes curses dbm email encodings ensurepip html http idlelib
        importlib json lib2to3 logging multiprocessing pydoc_data re sqlite3 tkinter tomllib turtledemo
        unittest urllib venv wsgiref xml xmlrpc zoneinfo"""
    )
    | _words("distutils" if sys.version_info < (3, 12) else "zipfile")
    | _words("_pyrepl pathlib sysconfig" if sys.version_info >= (3, 13) else "")
    | _words("compression string" if sys.version_info >= (3, 14) else "")
)
"""Modules of the standard library that have modules in them."""

_PLAIN_SUBMODULES = frozenset({"collections.abc", "os.path", "urllib.parse"})


def missing_in_python(path: str) -> tuple[str, str] | None:
    """Return the module that plain Python, too, does not find on the way to ``path``, and how it says so.

    None when plain Python would find all of it, or might.
    """
    parts = path.split(".")
    if parts[0] not in sys.stdlib_module_names:
        return parts[0], f"No module named {parts[0]!r}"
    for length in range(1, len(parts)):
        parent, child = ".".join(parts[:length]), ".".join(parts[: length + 1])
        is_plain = parent not in _PACKAGES if length == 1 else parent in _PLAIN_SUBMODULES
        if is_plain and child != "os.path":
            return child, f"No module named {child!r}; {parent!r} is not a package"
    return None
