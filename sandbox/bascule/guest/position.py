"""Where the script is: decides which line a message names. Trusts the file name of code objects.

Only code compiled from the script carries the name ``<script>``; frames of the guest itself are skipped, so
no message ever shows one.
"""

# What coroutines are made of does not matter here.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

import sys
from types import CoroutineType, FrameType, GeneratorType

SCRIPT_FILE = "<script>"
"""File name that the compiler gives to every code object of the script."""


def script_line(frame: FrameType | None) -> int | None:
    """Return the line of the innermost script frame at or above ``frame``."""
    while frame is not None:
        if frame.f_code.co_filename == SCRIPT_FILE:
            return frame.f_lineno
        frame = frame.f_back
    return None


def calling_line() -> int | None:
    """Return the line of the script that called into the guest on this thread."""
    # There is no public way to the caller's frame.
    return script_line(sys._getframe(1))  # pyright: ignore[reportPrivateUsage]


def calling_function() -> str:
    """Return the name of the script's function that called into the guest on this thread."""
    # There is no public way to the caller's frame.
    frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None and frame.f_code.co_filename != SCRIPT_FILE:
        frame = frame.f_back
    return "<module>" if frame is None or frame.f_code.co_name == SCRIPT_FILE else frame.f_code.co_name


def awaiting_line(waiting: object) -> int | None:
    """Return the innermost line at which a suspended coroutine waits."""
    line: int | None = None
    inner: object = waiting
    while True:
        frame: FrameType | None
        if isinstance(inner, CoroutineType):
            frame, inner = inner.cr_frame, inner.cr_await
        elif isinstance(inner, GeneratorType):
            frame, inner = inner.gi_frame, inner.gi_yieldfrom
        else:
            return line
        if frame is not None and frame.f_code.co_filename == SCRIPT_FILE:
            line = frame.f_lineno
