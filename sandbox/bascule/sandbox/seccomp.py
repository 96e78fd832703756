"""Our system-call filters: JSON profiles for engines and runtimes, and the same compiled for the kernel.

The profiles in ``images/guest`` are the only place where a call is allowed. What is compiled here is what
``process`` isolation gives the kernel itself: classic BPF, checked against the profile call by call in tests.
"""

from __future__ import annotations

import hashlib
import json
import struct
import tempfile
from pathlib import Path
from typing import Any, Final, cast

from bascule.sandbox.cache import cache_dir
from bascule.sandbox.context import image_file
from bascule.sandbox.system_calls import NUMBERS

MACHINES: Final = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
"""Processor to its column in ``NUMBERS`` and to what the kernel calls it (linux/audit.h)."""

_LOAD, _MASK, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x06
"""Of linux/bpf_common.h: load a word, and with a constant, jump if equal, jump if at least, return."""

_NUMBER_AT, _MACHINE_AT, _ARGUMENTS_AT = 0, 4, 16
"""Offsets in struct seccomp_data."""

_ALLOW: Final = 0x7FFF0000
_ERRNO: Final = 0x00050000
_KILL: Final = 0x80000000
_X32: Final = 0x40000000
_LOW: Final = 0xFFFFFFFF

Instruction = tuple[int, int, int, int]
"""Code, instructions to skip when true, when false, and the constant."""


def seccomp_profile(*, channel: bool = False, reuse: bool = False, alone: bool = False) -> str:
    """Return our profile as the engine wants it: JSON text, without our comments.

    Args:
        channel: the guest meets its host at a unix socket and may therefore connect to one.
        reuse: several guests run in one container, one after the other, and close their memory to each other.
        alone: the guest may start threads, but no other process.
    """
    profile = _alone() if alone else _profile("seccomp.json")
    if channel:
        profile["syscalls"] += _profile("seccomp-channel.json")["syscalls"]
    if reuse:
        profile["syscalls"] += _profile("seccomp-reuse.json")["syscalls"]
    for rule in profile["syscalls"]:
        rule.pop("comment", None)
    return json.dumps(profile, separators=(",", ":"))


def profile_file(profile: str) -> str:
    """Return the path of a file with a profile, in the user's cache; written unless it is there."""
    place = cache_dir("seccomp") / f"{hashlib.sha256(profile.encode()).hexdigest()[:16]}.json"
    if not place.is_file() or place.read_text("utf-8") != profile:
        with tempfile.NamedTemporaryFile("w", dir=place.parent, delete=False, encoding="utf-8") as file:
            file.write(profile)
        Path(file.name).replace(place)
    return str(place)


def process_filter(machine: str) -> bytes | None:
    """Return the filter of ``process`` isolation for a processor; None where we have no table for it.

    Its guest is given to the kernel without an engine, and may not start another process.
    """
    if machine not in MACHINES:
        return None
    return compile_filter(_alone(), machine)


def compile_filter(profile: dict[str, Any], machine: str) -> bytes:
    """Translate a profile into classic BPF for seccomp(2).

    Rules of one call are tried in their order. Another processor's entry (a 32-bit one) kills the process;
    x86_64's x32 entry gets the default.

    Args:
        profile: as engines take it, with the comparisons SCMP_CMP_EQ and SCMP_CMP_MASKED_EQ only.
        machine: a key of ``MACHINES``.

    Raises:
        ValueError: the profile says something that has no translation, or names an unknown call.
    """
    column, audit = MACHINES[machine]
    default = _action(profile["defaultAction"], profile.get("defaultErrnoRet", 1))
    program: list[Instruction] = [
        (_LOAD, 0, 0, _MACHINE_AT),
        (_EQUAL, 1, 0, audit),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER_AT),
        (_AT_LEAST, 0, 1, _X32),
        (_RETURN, 0, 0, default),
    ]
    for rule in cast("list[dict[str, Any]]", profile["syscalls"]):
        action = _action(rule["action"], rule.get("errnoRet", 1))
        for name in cast("list[str]", rule["names"]):
            if name not in NUMBERS:
                raise ValueError(f"no number for the system call {name}")
            number = NUMBERS[name][column]
            if number is not None:
                program += _rule(number, rule.get("args", []), action)
    program.append((_RETURN, 0, 0, default))
    return b"".join(struct.pack("HBBI", *each) for each in program)


def _rule(number: int, comparisons: list[dict[str, Any]], action: int) -> list[Instruction]:
    """Return the instructions of one rule; without a match they end behind their last one."""
    body: list[Instruction] = []
    for comparison in comparisons:
        body += _comparison(comparison)
    body.append((_RETURN, 0, 0, action))
    # What does not match goes to the end; each instruction knows how far that is from itself.
    length = len(body)
    placed = [
        (code, 0, length - place - 1, constant) if code == _EQUAL else (code, 0, 0, constant)
        for place, (code, _, _, constant) in enumerate(body)
    ]
    return [(_LOAD, 0, 0, _NUMBER_AT), (_EQUAL, 0, length, number), *placed]


def _comparison(comparison: dict[str, Any]) -> list[Instruction]:
    """Return the loads and jumps of one comparison of an argument: 64 bits, in two words."""
    mask = (1 << 64) - 1
    value = int(comparison["value"])
    match comparison["op"]:
        case "SCMP_CMP_EQ":
            pass
        case "SCMP_CMP_MASKED_EQ":
            mask, value = value, int(comparison["valueTwo"])
        case other:
            raise ValueError(f"no translation for {other}")
    at = _ARGUMENTS_AT + 8 * int(comparison["index"])
    return [
        *((_LOAD, 0, 0, at), (_MASK, 0, 0, mask & _LOW), (_EQUAL, 0, 0, value & _LOW)),
        *((_LOAD, 0, 0, at + 4), (_MASK, 0, 0, mask >> 32), (_EQUAL, 0, 0, value >> 32)),
    ]


def _action(name: str, errno: int) -> int:
    match name:
        case "SCMP_ACT_ALLOW":
            return _ALLOW
        case "SCMP_ACT_ERRNO":
            return _ERRNO | errno
        case other:
            raise ValueError(f"no translation for {other}")


def _alone() -> dict[str, Any]:
    """Return the profile with the rules in place that allow no second process."""
    profile = _profile("seccomp.json")
    special = _profile("seccomp-process.json")["syscalls"]
    replaced = {name for rule in special for name in rule["names"]}
    rules = [rule for rule in profile["syscalls"] if not replaced & set(rule["names"])]
    return {**profile, "syscalls": rules + special}


def _profile(name: str) -> dict[str, Any]:
    return cast("dict[str, Any]", json.loads(image_file(name)))
