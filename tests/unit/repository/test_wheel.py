"""What users install: the packages, the image files, nothing of the repository besides."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    into = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", str(into), str(ROOT)],
        check=True,
        capture_output=True,
        timeout=120,
    )
    (wheel,) = into.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def test_the_wheel_holds_every_package_and_nothing_else(names: list[str]) -> None:
    tops = {name.split("/")[0] for name in names if ".dist-info/" not in name}
    packages = {name.split("/")[1] for name in names if name.startswith("bascule/")}
    assert tops == {"bascule"}
    assert packages >= {"guest", "sandbox", "wire", "bridge", "models", "cli", "tools"}
    assert packages <= {path.name for path in ROOT.glob("*/bascule/*")}


def test_the_wheel_has_no_init_file_that_would_close_the_namespace(names: list[str]) -> None:
    assert "bascule/__init__.py" not in names


def test_the_wheel_carries_every_source_file_and_the_marker_of_types(names: list[str]) -> None:
    expected = {
        str(path.relative_to(ROOT / root))
        for root in ("sandbox", "bridge", "tools")
        for path in (ROOT / root / "bascule").rglob("*")
        if path.suffix == ".py" or path.name == "py.typed"
    }
    assert expected <= set(names)


def test_the_wheel_carries_the_image_files(names: list[str]) -> None:
    expected = {
        f"bascule/sandbox/images/{path.relative_to(ROOT / 'images')}"
        for path in (ROOT / "images").rglob("*")
        if path.is_file()
    }
    assert expected
    assert expected <= set(names)


def test_the_wheel_carries_no_tests_and_no_cases(names: list[str]) -> None:
    found = [name for name in names if "test" in name.lower() or "corpus" in name]
    assert found == ["bascule/bridge/testing.py"]  # the pytest plugin, for the tests of users
