"""The filter given to the kernel says the same as the profile it was compiled from, call by call."""

from __future__ import annotations

import json
import struct
from typing import Any, cast

import pytest

from bascule.sandbox.context import image_file
from bascule.sandbox.refused import SYSTEM_CALLS
from bascule.sandbox.seccomp import MACHINES, compile_filter, process_filter, seccomp_profile
from bascule.sandbox.system_calls import NUMBERS

ALLOW, KILL, EPERM, ENOSYS = 0x7FFF0000, 0x80000000, 0x00050001, 0x00050026
CLONE_THREAD, CLONE_NEWUSER = 0x10000, 0x10000000

ARGUMENTS = [0, 1, 2, 15, 23, 38, 21505, 21523, 524289, CLONE_THREAD, CLONE_NEWUSER, 1 << 32, 1 << 63]


def run_filter(code: bytes, number: int, arguments: tuple[int, ...] = (), *, audit: int = 0xC000003E) -> int:
    """Do what the kernel does with classic BPF over struct seccomp_data."""
    data = struct.pack("iIQ6Q", number, audit, 0, *(arguments + (0,) * 6)[:6])
    program = list(struct.iter_unpack("HBBI", code))
    at = accumulator = 0
    while True:
        operation, yes, no, constant = program[at]
        at += 1
        match operation:
            case 0x20:
                (accumulator,) = struct.unpack_from("I", data, constant)
            case 0x54:
                accumulator &= constant
            case 0x15:
                at += yes if accumulator == constant else no
            case 0x35:
                at += yes if accumulator >= constant else no
            case 0x06:
                return int(constant)
            case _:
                raise AssertionError(f"unknown operation {operation:#x}")


def judge_by_profile(profile: dict[str, Any], name: str, arguments: tuple[int, ...]) -> int:
    """Read the profile as its format is defined: the first rule whose comparisons all hold."""
    for rule in profile["syscalls"]:
        if name in rule["names"] and all(holds(each, arguments) for each in rule.get("args", [])):
            return ALLOW if rule["action"] == "SCMP_ACT_ALLOW" else 0x00050000 | int(rule["errnoRet"])
    return EPERM


def holds(comparison: dict[str, Any], arguments: tuple[int, ...]) -> bool:
    value = arguments[int(comparison["index"])]
    if comparison["op"] == "SCMP_CMP_EQ":
        return bool(value == comparison["value"])
    return bool(value & comparison["value"] == comparison["valueTwo"])


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("channel", [False, True])
def test_the_compiled_filter_says_what_the_profile_says(machine: str, channel: bool) -> None:
    profile = json.loads(seccomp_profile(channel=channel))
    column, audit = MACHINES[machine]
    code = compile_filter(profile, machine)
    for name, numbers in NUMBERS.items():
        number = numbers[column]
        if number is None:
            continue
        for first, second in [each for n in ARGUMENTS for each in ((n, 0), (1, n), (n, n))]:
            arguments = (first, second, 0, 0, 0, 0)
            wanted = judge_by_profile(profile, name, arguments)
            assert run_filter(code, number, arguments, audit=audit) == wanted, (name, arguments)


@pytest.mark.parametrize("reuse", [False, True])
@pytest.mark.parametrize("alone", [False, True])
def test_no_rule_compares_one_argument_twice(reuse: bool, alone: bool) -> None:
    # Runtimes take several comparisons of one argument as alternatives, which allows more than was written.
    for rule in json.loads(seccomp_profile(channel=True, reuse=reuse, alone=alone))["syscalls"]:
        compared = [each["index"] for each in rule.get("args", [])]
        assert len(set(compared)) == len(compared), rule["names"]


@pytest.mark.parametrize("machine", MACHINES)
def test_a_process_may_make_threads_and_no_process(machine: str) -> None:
    code = cast("bytes", process_filter(machine))
    column, audit = MACHINES[machine]
    clone, clone3 = (NUMBERS[name][column] for name in ("clone", "clone3"))
    assert clone is not None
    assert clone3 is not None
    assert run_filter(code, clone, (CLONE_THREAD | 0xF00,), audit=audit) == ALLOW
    assert run_filter(code, clone, (17,), audit=audit) == EPERM
    assert run_filter(code, clone, (CLONE_THREAD | CLONE_NEWUSER,), audit=audit) == EPERM
    assert run_filter(code, clone3, audit=audit) == ENOSYS


@pytest.mark.parametrize("machine", MACHINES)
def test_what_an_intruder_would_try_and_every_unknown_call_is_refused(machine: str) -> None:
    code = cast("bytes", process_filter(machine))
    column, audit = MACHINES[machine]
    known = {numbers[column] for numbers in NUMBERS.values()}
    numbers = {each[column] for each in SYSTEM_CALLS.values()} | set(range(600)) - known
    for number in numbers - {None}:
        assert run_filter(code, cast("int", number), audit=audit) == EPERM, number


def test_other_entries_to_the_kernel_are_closed() -> None:
    code = cast("bytes", process_filter("x86_64"))
    read = 0
    assert run_filter(code, read, audit=0x40000003) == KILL  # int 0x80
    assert run_filter(code, 0x40000000 + read) == EPERM  # x32


def test_every_call_that_a_profile_names_has_a_number() -> None:
    for file in ("seccomp.json", "seccomp-channel.json", "seccomp-process.json"):
        rules = json.loads(image_file(file))["syscalls"]
        assert {name for rule in rules for name in rule["names"]} <= NUMBERS.keys()


def test_no_number_is_used_twice() -> None:
    for column in (0, 1):
        numbers = [each[column] for each in NUMBERS.values() if each[column] is not None]
        assert len(numbers) == len(set(numbers))


def test_a_processor_without_a_table_has_no_filter() -> None:
    assert process_filter("riscv64") is None


@pytest.mark.parametrize(
    "rule",
    [
        {"names": ["read"], "action": "SCMP_ACT_TRACE"},
        {"names": ["not_a_call"], "action": "SCMP_ACT_ALLOW"},
        {
            "names": ["read"],
            "action": "SCMP_ACT_ALLOW",
            "args": [{"index": 0, "value": 1, "op": "SCMP_CMP_GT"}],
        },
    ],
)
def test_what_has_no_translation_is_an_error(rule: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"no translation|no number"):
        compile_filter({"defaultAction": "SCMP_ACT_ERRNO", "syscalls": [rule]}, "x86_64")
