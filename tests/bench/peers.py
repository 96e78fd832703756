"""The peers, installed from the registry into a virtual environment of their own at bench time."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

PACKAGES = ("pydantic-monty", "smolagents", "RestrictedPython", "llm-sandbox[docker]")

_INSTALL_S = 600
_RUN_S = 300

Measures = dict[str, dict[str, float] | str]
"""Peer to measure to seconds, or to why it does not run here."""


class Peers:
    """A scratch environment; removed with ``close``."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="bascule-peers-")
        self._python = Path(self._folder.name, "bin", "python")
        self.missing = ""
        subprocess.run([sys.executable, "-m", "venv", self._folder.name], check=True)
        done = subprocess.run(
            [self._python, "-m", "pip", "install", "--quiet", "--no-input", *PACKAGES],
            capture_output=True,
            text=True,
            check=False,
            timeout=_INSTALL_S,
        )
        if done.returncode != 0:
            self.missing = done.stderr.strip()[-300:]

    def measure(self) -> Measures:
        """Measure every peer once."""
        if self.missing:
            return {"peers": self.missing}
        script = Path(__file__).with_name("peers_inside.py")
        done = subprocess.run(
            [self._python, str(script)], capture_output=True, text=True, check=False, timeout=_RUN_S
        )
        if done.returncode != 0:
            return {"peers": done.stderr.strip()[-300:]}
        found: Measures = json.loads(done.stdout.splitlines()[-1])
        return found

    def close(self) -> None:
        """Remove the environment."""
        self._folder.cleanup()
