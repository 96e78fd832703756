"""Fuzzes compiler, guards and wire decoder, guided by coverage.

``python -m tests.escape.fuzz_compiler SECONDS`` starts from the attack corpus. What is expected of each input
is said in ``fuzz_target``; an input that breaks it ends the run and is shown.
"""

from __future__ import annotations

import importlib
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.escape.rows import load

_MAX_SEED_BYTES = 4096


def main(seconds: int) -> None:
    """Fuzz for so many seconds, or say why not."""
    try:
        atheris: Any = importlib.import_module("atheris")
    except ModuleNotFoundError:
        print("fuzzing skipped: atheris has no wheel for this platform")
        return
    with atheris.instrument_imports(include=["bascule"]):
        target = importlib.import_module("tests.escape.fuzz_target").Target()
    with tempfile.TemporaryDirectory() as folder:
        for row in load("interpreter"):
            seed = row.code.encode("utf-8", "surrogatepass")
            if len(seed) < _MAX_SEED_BYTES:
                Path(folder, row.id).write_bytes(b"\0" + seed)
        options = [f"-max_total_time={seconds}", "-timeout=20", f"-max_len={_MAX_SEED_BYTES}"]
        atheris.Setup([sys.argv[0], *options, folder], target)
        atheris.Fuzz()


if __name__ == "__main__":
    main(int(sys.argv[1]))
