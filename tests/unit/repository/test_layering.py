"""The layers of docs/architecture.md, read from the import statements themselves.

A test of text, not of behaviour: it trusts that nobody imports through `importlib` by a computed name,
which `test_guest_closure` checks for the guest by running it.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SOURCE_ROOTS = ("sandbox", "bridge", "tools")

MAY_IMPORT: dict[str, frozenset[str]] = {
    "wire": frozenset(),
    "guest": frozenset({"wire"}),
    "sandbox": frozenset({"wire"}),
    "tools": frozenset({"wire"}),
    "bridge": frozenset({"wire", "sandbox", "tools"}),
    "models": frozenset({"wire", "sandbox", "tools", "bridge"}),
    "console": frozenset({"wire", "sandbox", "tools", "bridge"}),
    "cli": frozenset({"wire", "sandbox", "tools", "bridge", "models", "console"}),
}
"""Package to the other packages of `bascule` it may import. A package without a row fails."""

THIRD_PARTY: dict[str, frozenset[str]] = {
    "wire": frozenset({"msgspec"}),
    "guest": frozenset({"msgspec", "RestrictedPython"}),
}
"""Closed lists for what is copied into the container; elsewhere any declared dependency will do."""

DECLARED = frozenset(
    {
        "RestrictedPython",
        "agents",
        "anthropic",
        "anyio",
        "docker",
        "google",
        "httpx2",
        "jinja2",
        "langchain_core",
        "limits",
        "markupsafe",
        "mcp",
        "mcp_types",
        "msgspec",
        "openai",
        "psycopg",
        "pydantic",
        "pydantic_ai",
        "pydantic_core",
        "rfc8785",
        "rich",
        "sse_starlette",
        "starlette",
        "tenacity",
        "toktok",
        "typer",
        "uvicorn",
        "wordllama",
        "yaml",
    }
)
"""Import names of the dependencies in pyproject.toml and of what they document as theirs (pydantic_core;
anyio, httpx2 and mcp_types of mcp)."""

ALSO_WITH_DOCKER = frozenset({"requests", "urllib3"})
"""The docker package raises their exceptions as part of its interface."""


PYTEST_PLUGIN = Path("bridge/bascule/bridge/testing.py")
"""The one module that only pytest loads, and that therefore may import it."""


def package_of(path: Path) -> str:
    """Return the sub-package of `bascule` that a source file belongs to."""
    return path.relative_to(ROOT).parts[2]


def sources() -> list[Path]:
    """Return every Python file below the three source roots."""
    return sorted(path for root in SOURCE_ROOTS for path in (ROOT / root / "bascule").rglob("*.py"))


def imported_modules(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line and dotted name of every import statement, those inside functions included."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative import"
            module = node.module or ""
            if module == "bascule":
                yield from ((node.lineno, f"bascule.{alias.name}") for alias in node.names)
            else:
                yield node.lineno, module


def is_plugin(path: Path, top: str) -> bool:
    """Return whether this is the pytest plugin importing pytest."""
    return top == "pytest" and path.relative_to(ROOT) == PYTEST_PLUGIN


def violations(path: Path) -> list[str]:
    """Return one line for each import of a file that its layer may not make."""
    package = package_of(path)
    third_party = THIRD_PARTY.get(package, DECLARED | ALSO_WITH_DOCKER)
    found: list[str] = []
    for line, module in imported_modules(path):
        top, *rest = module.split(".")
        if top == "bascule":
            if rest[0] != package and rest[0] not in MAY_IMPORT[package]:
                found.append(f"{path.relative_to(ROOT)}:{line}: {package} may not import bascule.{rest[0]}")
        elif top not in sys.stdlib_module_names and top not in third_party and not is_plugin(path, top):
            found.append(f"{path.relative_to(ROOT)}:{line}: {package} may not import {top}")
    return found


def test_every_import_stays_within_its_layer() -> None:
    assert [line for path in sources() for line in violations(path)] == []


def test_every_package_has_a_row_in_the_table() -> None:
    assert {package_of(path) for path in sources()} <= set(MAY_IMPORT)


def test_the_table_has_no_cycle() -> None:
    order = list(MAY_IMPORT)
    for package, others in MAY_IMPORT.items():
        assert all(order.index(other) < order.index(package) for other in others)


def test_the_namespace_package_has_no_init_file() -> None:
    assert [root for root in SOURCE_ROOTS if (ROOT / root / "bascule" / "__init__.py").exists()] == []


def test_every_package_says_what_its_contract_is() -> None:
    inits = [path for path in sources() if path.name == "__init__.py"]
    assert inits
    missing = [
        str(path.relative_to(ROOT))
        for path in inits
        if not any(
            isinstance(node, ast.Assign)
            and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets)
            for node in ast.parse(path.read_text(encoding="utf-8")).body
        )
    ]
    assert missing == []


@pytest.mark.parametrize(
    ("statement", "package"),
    [
        ("from bascule.bridge import Executor", "sandbox"),
        ("import bascule.tools", "guest"),
        ("import yaml", "wire"),
        ("from bascule import cli", "bridge"),
        ("import numpy", "tools"),
    ],
)
def test_a_forbidden_import_is_found(
    statement: str, package: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    source = tmp_path / "sandbox" / "bascule" / package / "module.py"
    source.parent.mkdir(parents=True)
    source.write_text(f"def f():\n    {statement}\n", encoding="utf-8")
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    assert len(violations(source)) == 1
