"""What models write out of habit and scripts cannot do: each message says what to write, all come at once."""

from __future__ import annotations

import pytest

from tests.unit.guest.harness import run

REFUSALS: dict[str, str] = {
    "import os": "io.StringIO",
    "class C:\n    def _missing_(cls, v):\n        return super()._missing_(v)": "return None",
    "import subprocess": "call one of the tools",
    "import requests": "call one of the tools",
    "import numpy as np": "statistics",
    "import pandas as pd": "lists and dicts",
    "import threading": "ThreadPoolExecutor",
    "import yaml": "use json",
    "import pickle": "use json",
    "import sqlite3": "use lists and dicts",
    "import pydantic": "use dataclasses",
    "import pytz": "use zoneinfo",
    "import dateutil.parser": "datetime.fromisoformat",
    "import shutil": "io.StringIO",
    "import zlib": "binascii.crc32",
    "import warnings": "use logging.warning or print",
    "import inspect": "cannot look into the interpreter",
    "from collections import UserDict": "inherit from dict",
    "from string import Formatter": "str.format_map",
    "from typing import get_type_hints": "__annotations__",
    "from dataclasses import make_dataclass": "class statement",
    "from csv import Sniffer": "pass delimiter=",
    "from json import JSONDecoder": "object_hook=",
    "from sys import stdin": "nobody can answer",
    "from types import FunctionType": "callable(...)",
    "from math import sqroot": "did you mean `sqrt`",
    "from datetime import strptime": "did you mean `time`",
    "with open('report.csv', 'w') as file:\n    file.write('x')": "print or return the result",
    "answer = input('Go on? ')": "take the value from a tool",
    "exec('x = 1')": "write the code itself",
    "compile('1', 'x', 'eval')": "write the code itself",
    "scope = globals()": "a dict of your own",
    "scope = locals()": "a dict of your own",
    "vars(thing)": "obj.__dict__",
    "dir(thing)": "print the value itself",
    "breakpoint()": "use print",
    "module = __import__('os')": "write an import statement",
    "print(__file__)": "leave it out",
    "xrange(5)": "write `range`",
    "raw_input()": "take the value from a tool",
    "unicode('x')": "write `str`",
    "print(null)": "write `None`",
    "print(true)": "write `True`",
    "reduce(max, [1])": "from functools import reduce",
    "console.log('x')": "write `print(...)`",
    "print(thing.__class__.__bases__)": "special name",
    "print(thing.__subclasses__())": "special name",
    "from math import *": "name what you use",
    "from . import sibling": "relative",
    "class A(metaclass=Meta):\n    pass": "class decorator",
    "class A:\n    def __getattr__(self, name):\n        return name": "a dict as a field",
    "class A:\n    def __setattr__(self, name, value):\n        pass": "a property",
    "class A:\n    def __init_subclass__(cls):\n        pass": "class decorator",
    "class A:\n    def __new__(cls):\n        return cls": "a function that makes the object",
    "class A:\n    def __get__(self, thing, owner):\n        return 1": "use a property",
    "class A:\n    def __del__(self):\n        pass": "use a context manager",
    "class A:\n    def __await__(self):\n        yield": "`async def` method",
    "try:\n    pass\nexcept* ValueError:\n    pass": "ExceptionGroup",
    "def __helper__():\n    pass": "special name",
    "raise Missing('x')": "named `Missing`",
    "fetch_orders(1)": "no tool or function named `fetch_orders`",
}
"""What a model writes and words of the message or suggestion that answers it."""

BEFORE = "thing = {}\n"


@pytest.mark.parametrize("written", REFUSALS)
def test_the_answer_names_what_to_write_instead(written: str) -> None:
    errors = run(f"{BEFORE}{written}\n").errors
    said = "\n".join(f"{error.message} {error.suggestion or ''}" for error in errors)
    assert REFUSALS[written] in said
    assert errors[0].line is not None


@pytest.mark.parametrize("part", range(3))
def test_everything_that_is_wrong_is_said_at_once(part: int) -> None:
    # Of 25 findings at most; one script each for a third of what is above.
    written = list(REFUSALS)[part::3]
    calls: list[int] = []

    def save(n: int) -> None:
        calls.append(n)

    outcome = run("save(1)\n" + BEFORE + "\n".join(written) + "\n", {"save": save})
    said = [f"{error.message} {error.suggestion or ''}" for error in outcome.errors]
    missing = [each for each in written if not any(REFUSALS[each] in text for text in said)]
    assert missing == []
    assert len(outcome.errors) >= len(written)
    assert calls == []
