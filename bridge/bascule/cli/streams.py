"""The standard streams of the command: always there, and standard output for nothing but the result."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Generator
from typing import cast

_STREAMS = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))


def ready_streams() -> None:
    """Put the null device where a stream was closed, and let no character fail for its encoding."""
    for name, mode in _STREAMS:
        if getattr(sys, name) is None:  # the lowest free descriptor is the one that is missing
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115  # stays open
    stdout: object = sys.stdout
    if isinstance(stdout, io.TextIOWrapper):
        cast("io.TextIOWrapper", stdout).reconfigure(errors="backslashreplace")


@contextlib.contextmanager
def tools_on_stderr() -> Generator[None]:
    """Send to standard error whatever tools, and programs they start, print on standard output."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)
