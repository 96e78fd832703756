"""`make bench-faults`: many runs while guests, hosts and the engine are killed; then looks for what is left.

``FAULTS_RUNS`` sets how many (1,000), ``FAULTS_SEED`` the moments. Half of them run in containers of an
engine of the soak's own, half in a runtime's. Fails when an answer is wrong or anything is left.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import NoReturn

from bascule.sandbox import SandboxError, build_bundle, ensure_image
from bascule.sandbox.engine import Engine
from bascule.sandbox.hardening import OWNER_LABEL
from tests.soak.engine import PrivateEngine

RUNS = int(os.environ.get("FAULTS_RUNS", "1000"))
SEED = int(os.environ.get("FAULTS_SEED", "1"))
PAUSES_S = (0.3, 1.5)
PREFIXES = ("bascule-channel-", "bascule-oci-")


class Soak:
    """Runs one share and torments it."""

    def __init__(self, isolation: str, engine: PrivateEngine | None, folder: Path) -> None:
        self._isolation = isolation
        self._engine = engine
        self._folder = folder
        self._random = random.Random(SEED)
        self.counts: Counter[str] = Counter()
        self.wrong = 0
        self.files: tuple[int, int] = (0, 0)
        self._done = 0

    def run(self, runs: int) -> None:
        """Go on until so many runs have told their outcome, then run a last host that is left in peace."""
        while self._done < runs:
            self._one_host(runs - self._done, torment=True)
        self._one_host(20, torment=False)

    def _one_host(self, runs: int, *, torment: bool) -> None:
        host = subprocess.Popen(
            [
                *(sys.executable, "-m", "tests.soak.host", self._isolation),
                *(self._engine.host if self._engine else "", str(runs)),
            ],
            stdout=subprocess.PIPE,
            stderr=(self._folder / f"{self._isolation}.log").open("ab"),
            env={**os.environ, "TMPDIR": str(self._folder)},
        )
        reader = threading.Thread(target=self._listen, args=(host, torment))
        reader.start()
        try:
            while host.poll() is None and torment:
                time.sleep(self._random.uniform(*PAUSES_S))
                self._strike(host)
            host.wait()
        finally:
            host.kill()  # when we are ended ourselves
            host.wait()
            reader.join()

    def _listen(self, host: subprocess.Popen[bytes], torment: bool) -> None:
        assert host.stdout is not None
        first = 0
        with host.stdout:
            for line in host.stdout:
                told = json.loads(line)
                match told["event"]:
                    case "run":
                        self._done += 1
                        self.counts[told["status"] + (f" {told['kind']}" if told["kind"] else "")] += 1
                        self.wrong += told["status"] == "ok" and not told["right"]
                        if told["kind"]:
                            self.counts[f"    because: {told['why']}"] += 1
                    case "refused":
                        self.counts[f"refused {told['code']}"] += 1
                    case "start":
                        first = told["files"]
                    case _ if not torment:
                        self.files = (first, told["files"])
                    case _:
                        pass

    def _strike(self, host: subprocess.Popen[bytes]) -> None:
        chance = self._random.random()
        if chance < 0.8 or (self._engine is None and chance < 0.9):
            self._kill_a_guest()
        elif chance < 0.95 or self._engine is None:
            self.counts["(host killed)"] += 1
            host.kill()
        else:
            self.counts["(engine restarted)"] += 1
            self._engine.restart()

    def _kill_a_guest(self) -> None:
        guests = guests_of(self._folder)
        if guests:
            self.counts["(guest killed)"] += 1
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._random.choice(guests), signal.SIGKILL)


def guests_of(folder: Path) -> list[int]:
    """Return the processes of guests whose channel lies in this soak's folder (or whose engine does)."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        with contextlib.suppress(OSError):
            words = (entry / "cmdline").read_bytes().split(b"\0")
            ours = str(folder).encode() in (entry / "mountinfo").read_bytes()
            if words[0].endswith(b"python3") and b"/bascule" in words and ours:
                found.append(int(entry.name))
    return found


def left_over(folder: Path, engine: PrivateEngine) -> list[str]:
    """Return what is still there: containers, processes, files, control groups."""
    api = Engine(docker_host=engine.host)
    containers = api.call_now(api.api.containers, all=True, filters={"label": OWNER_LABEL})
    api.close()
    left = [f"container {each['Id'][:12]}" for each in containers]
    left += [f"process {pid}" for pid in guests_of(folder)]
    left += [f"file {each.name}" for each in folder.iterdir() if each.name.startswith(PREFIXES)]
    return left


def _leave(number: int, frame: FrameType | None) -> NoReturn:
    sys.exit(128 + number)


def main() -> None:
    """Soak both isolations, print what happened, and fail on anything left."""
    signal.signal(signal.SIGTERM, _leave)  # the engine must not outlive us
    with tempfile.TemporaryDirectory(prefix="bascule-soak-") as name:
        folder = Path(name)
        engine = PrivateEngine(folder)
        engine.start()
        try:
            sound = soak_both(engine, folder)
        finally:
            engine.stop()
    sys.exit(0 if sound else 1)


def soak_both(engine: PrivateEngine, folder: Path) -> bool:
    """Run the soak; return whether nothing was wrong or left."""
    ensure_image(docker_host=engine.host)
    soaks = {"container": Soak("container", engine, folder)}
    try:
        build_bundle()
        soaks["oci"] = Soak("oci", None, folder)
    except SandboxError as error:
        print(f"isolation oci is left out: {error.message}")
    for isolation, soak in soaks.items():
        began_s = time.monotonic()
        soak.run(RUNS // len(soaks))
        print(f"{isolation}: {time.monotonic() - began_s:.0f} s, files at start and end {soak.files}")
        for what, count in soak.counts.most_common():
            print(f"  {count:6} {what}")
    left = left_over(folder, engine)
    wrong = sum(soak.wrong for soak in soaks.values())
    leaked = any(last > first + 1 for first, last in (soak.files for soak in soaks.values()))
    print(f"wrong answers: {wrong}; left: {', '.join(left) or 'nothing'}")
    return not (wrong or left or leaked)


if __name__ == "__main__":
    main()
