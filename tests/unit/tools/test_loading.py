"""Loading tools from files and modules, and errors that name the line."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bascule.tools import ToolDefinitionError, ToolLoadError, load_tools


@pytest.fixture(autouse=True)
def _restore_imports(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        del sys.modules[name]


def write(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return str(path)


SUITE = '''
from neighbour import helper

def look(word: str) -> str:
    """Look."""
    return helper(word)

def change(word: str) -> None:
    """Change."""

async def send(word: str) -> None:
    """Send."""

def keep(word: str) -> None:
    """Keep."""

TOOLS = {"look": look, "renamed": change, "send": send, "keep": keep}
EFFECTS = {"look": "read", "renamed": "write", "send": "external"}
'''

DECORATED = '''
from bascule.tools import Registry, tool

@tool(effects="read")
def first(n: int) -> int:
    """First."""
    return n

@tool(name="space.second")
def second(n: int) -> int:
    """Second."""
    return n

def plain(n: int) -> int:
    """Plain."""
    return n

class Client:
    def fetch(self, key: str) -> str:
        """Fetch."""
        return key

client = Client()
several = [first, plain]
named = {"first": first, "other": plain}
registry = Registry([second])
number = 3
'''


def test_a_suite_of_plain_functions_is_taken_with_its_effects(tmp_path: Path) -> None:
    write(tmp_path / "neighbour.py", "def helper(word): return word.upper()")
    tools = {each.name: each for each in load_tools(write(tmp_path / "suite.py", SUITE))}
    assert {name: each.effects for name, each in tools.items()} == {
        "look": "read",
        "renamed": "once",
        "send": "once",
        "keep": "once",
    }
    assert tools["send"].labels == {"external"}
    assert tools["look"].call({"word": "a"}) == "A"
    again = load_tools(str(tmp_path / "suite.py"))
    assert again[0].function is tools["look"].function, "a file is run once"


def test_everything_decorated_in_a_module_is_found(tmp_path: Path) -> None:
    write(tmp_path / "decorated.py", DECORATED)
    for spec in ("decorated", "decorated.py", str(tmp_path / "decorated.py")):
        assert [each.name for each in load_tools(spec)] == ["first", "space.second"]


@pytest.mark.parametrize(
    ("attribute", "names"),
    [
        ("first", ["first"]),
        ("plain", ["plain"]),
        ("several", ["first", "plain"]),
        ("named", ["first", "other"]),
        ("registry", ["space.second"]),
        ("client.fetch", ["fetch"]),
    ],
)
def test_an_attribute_may_be_anything_that_holds_tools(
    tmp_path: Path, attribute: str, names: list[str]
) -> None:
    write(tmp_path / "decorated.py", DECORATED)
    for spec in (f"decorated:{attribute}", f"decorated.py:{attribute}"):
        assert [each.name for each in load_tools(spec)] == names


def test_several_sources_are_merged_in_order_and_must_not_clash(tmp_path: Path) -> None:
    write(tmp_path / "decorated.py", DECORATED)
    write(tmp_path / "other.py", DECORATED)
    names = [each.name for each in load_tools("decorated:plain", "decorated:first", "decorated:plain")]
    assert names == ["plain", "first"]
    with pytest.raises(ToolDefinitionError) as caught:
        load_tools("decorated", "other")
    assert caught.value.code == "tool_duplicate"


@pytest.mark.parametrize(
    ("text", "spec", "code", "words"),
    [
        ("", "absent.py", "tool_source_missing", "there is no file absent.py"),
        ("", "absent_module", "tool_source_missing", "there is no module absent_module"),
        ("", "absent_package.inner:x", "tool_source_missing", "there is no module absent_package"),
        ("import nowhere_to_be_found", "bad", "tool_source_broken", r"bad\.py:1: ModuleNotFoundError"),
        ("import nowhere_to_be_found", "bad.py", "tool_source_broken", r"bad\.py:1: ModuleNotFoundError"),
        ("x = 1\ny = x / 0", "bad.py", "tool_source_broken", r"bad\.py:2: ZeroDivisionError"),
        ("raise SystemExit(3)", "bad", "tool_source_broken", r"bad\.py:1: SystemExit"),
        ("def f(:", "bad.py", "tool_source_broken", r"bad\.py:1: SyntaxError"),
        ("import json\n\njson.loads('{')", "bad.py", "tool_source_broken", r"bad\.py:3: JSONDecodeError"),
        ("x = 1", "bad.py", "tool_source_empty", r"^bad\.py: it has no tools; decorate"),
        (DECORATED, "bad.py:frist", "tool_source_missing", "has no frist; tools in it: first, second"),
        (DECORATED, "bad.py:client.fetsh", "tool_source_missing", "has no fetsh$"),
        (DECORATED, "bad.py:number.real.imag.nope", "tool_source_missing", "has no nope$"),
        (DECORATED, "bad.py:number", "tool_source_invalid", "a int is no tool"),
        (DECORATED, "bad.py:Client", "tool_source_invalid", "a type is no tool"),
        ("def f(x): ...\nTOOLS = [f]", "bad.py", "tool_source_broken",
         r"parameter x has no annotation.*bad\.py:1"),
        ("TOOLS = {'a': 3}", "bad.py", "tool_source_invalid", "'a' is a int; give a function"),
        (f"{DECORATED}\nTOOLS = {{'second': second}}", "bad.py", "tool_source_invalid",
         "'second' names the tool space.second; write 'space.second'"),
        ("def f() -> None: ...\nTOOLS = {'a': f}\nEFFECTS = {'a': 'maybe'}", "bad.py", "tool_source_invalid",
         "EFFECTS.'a'. is 'maybe'; it must be one of read"),
        ("def f() -> None: ...\nTOOLS = {'a': f}\nEFFECTS = {'a': 3}", "bad.py", "tool_source_invalid",
         "is 3"),
        ("TOOLS = {}\nEFFECTS = []", "bad.py", "tool_source_invalid", "is no dict"),
        ("from bascule.tools import tool\n\n@tool\ndef f(x): ...", "bad.py", "tool_source_broken",
         r"^bad\.py:3: ToolDefinitionError: f\(\): parameter x has no annotation; name its type$"),
        ("", ":attr", "tool_source_invalid", "write module:attr"),
        ("", "module:", "tool_source_invalid", "write module:attr"),
        ("", "module:not an attribute", "tool_source_invalid", "write module:attr"),
        ("", "", "tool_source_invalid", "write module:attr"),
        ("", "C:/absent.py", "tool_source_missing", "there is no file C:"),
    ],
)  # fmt: skip
def test_an_error_names_the_source_and_the_line(
    tmp_path: Path, text: str, spec: str, code: str, words: str
) -> None:
    write(tmp_path / "bad.py", text)
    with pytest.raises(ToolLoadError, match=words) as caught:
        load_tools(spec)
    assert caught.value.code == code
    assert str(caught.value).startswith(f"{spec}:")


def test_a_module_defined_nowhere_is_named_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    module = type(sys)("made_up")
    monkeypatch.setitem(sys.modules, "made_up", module)
    with pytest.raises(ToolLoadError, match="made_up has no tools"):
        load_tools("made_up")
