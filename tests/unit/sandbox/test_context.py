"""The build context: same installation, same bytes, same hash."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from bascule.sandbox.context import build_context, context_files, image_file
from bascule.sandbox.errors import SandboxError
from bascule.sandbox.wheels import Target, dependency_files, native_target


def tree(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_two_contexts_of_one_installation_are_equal(tmp_path: Path) -> None:
    hashes = {build_context(tmp_path / name) for name in ("one", "two")}
    assert len(hashes) == 1
    assert tree(tmp_path / "one") == tree(tmp_path / "two")


def test_the_image_file_carries_the_hash_that_is_returned(tmp_path: Path) -> None:
    image_hash = build_context(tmp_path)
    assert (tmp_path / "IMAGE").read_text("ascii") == image_hash


def test_files_are_read_only_and_python_or_its_libraries(tmp_path: Path) -> None:
    build_context(tmp_path)
    for path in tmp_path.rglob("*"):
        if path.is_file():
            assert path.stat().st_mode & 0o777 == 0o444
            assert path.suffix in (".py", ".so") or path.name == "IMAGE"


def test_another_base_or_another_python_gives_another_hash() -> None:
    hashes = {
        context_files()[1],
        context_files(base="other")[1],
        context_files(target=Target(python="3.12", machine="x86_64"))[1],
    }
    assert len(hashes) == 3


def test_the_libraries_are_those_of_the_python_asked_for() -> None:
    requirements = image_file("requirements.txt")
    names = dependency_files(requirements, Target(python="3.12", machine="x86_64"))
    assert any(name.startswith("msgspec/_core.cpython-312") for name in names)
    assert not any("dist-info" in name or name.endswith(".pyi") for name in names)


def test_a_wheel_whose_hash_is_not_pinned_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    requirements = image_file("requirements.txt")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    dependency_files(requirements, native_target())
    wheel = next(tmp_path.rglob("restrictedpython-*.whl"))
    wheel.write_bytes(wheel.read_bytes() + b"x")
    with pytest.raises(SandboxError) as caught:
        dependency_files(requirements, native_target())
    assert caught.value.code == "image_build_failed"
    assert "not a pinned wheel" in caught.value.message
