"""What the machine itself can do, measured beside us: the floors our figures are ratios of."""

from __future__ import annotations

import contextlib
import importlib
import os
import socket
import subprocess
import sys
import time

from bascule.sandbox import Backend, SandboxClosed, SandboxLimits

ECHO_BYTES = 88
ECHOES = 2000
FORKS_S = 2.0


def echo_s() -> float:
    """F_echo: one 88-byte echo between two processes over a socket pair."""
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        ours.close()
        while data := theirs.recv(ECHO_BYTES):
            theirs.sendall(data)
        os._exit(0)
    theirs.close()
    message = b"x" * ECHO_BYTES
    began = time.perf_counter()
    for _ in range(ECHOES):
        ours.sendall(message)
        ours.recv(ECHO_BYTES)
    took_s = (time.perf_counter() - began) / ECHOES
    ours.close()
    os.waitpid(pid, 0)
    return took_s


def exec_s() -> float:
    """F_exec: start and end of a bare interpreter."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-I", "-S", "-c", "pass"], check=True)
    return time.perf_counter() - began


def fork_s() -> float:
    """F_fork: a fork of an interpreter that has the guest's imports, to its first byte."""
    importlib.import_module("bascule.guest.script")
    reading, writing = os.pipe()
    began = time.perf_counter()
    pid = os.fork()
    if pid == 0:
        os.write(writing, b"x")
        os._exit(0)
    os.read(reading, 1)
    took_s = time.perf_counter() - began
    os.waitpid(pid, 0)
    os.close(reading)
    os.close(writing)
    return took_s


def fork_rate() -> float:
    """Return forks a second of such an interpreter, one after the other."""
    until_s = time.monotonic() + FORKS_S
    count = 0
    while time.monotonic() < until_s:
        fork_s()
        count += 1
    return count / FORKS_S


async def container_s(backend: Backend) -> float:
    """F_ctr, F_oci: create and start of a hardened container running bare Python, to its end of stream."""
    began = time.perf_counter()
    sandbox = await backend.start(SandboxLimits(), run_id="bench", command=["python3", "-S", "-c", "pass"])
    with contextlib.suppress(SandboxClosed):
        await sandbox.receive()
    took_s = time.perf_counter() - began
    await sandbox.close()
    return took_s


def import_s(code: str) -> float:
    """Start of an interpreter that imports something, less its bare start."""
    took: list[float] = []
    for each in (code, "pass"):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", each], check=True, stdout=subprocess.DEVNULL)
        took.append(time.perf_counter() - began)
    return took[0] - took[1]
