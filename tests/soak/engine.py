"""A container engine of the soak's own, which may be restarted and killed without harm to anybody else's."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

from bascule.sandbox import SandboxError, find_engine

_START_S = 60.0
_STOP_S = 30.0


class PrivateEngine:
    """dockerd in its own folder and network namespace; ends with ``stop``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self.host = f"unix://{folder}/docker.sock"

    def start(self) -> None:
        """Start it and wait until it answers."""
        command = [
            *(
                "unshare",
                "--net",
                "--",
                "dockerd",
                "--host",
                self.host,
                "--bridge",
                "none",
                "--iptables=false",
            ),
            *("--data-root", f"{self._folder}/data", "--exec-root", f"{self._folder}/exec"),
            *("--pidfile", f"{self._folder}/dockerd.pid"),
        ]
        log = (self._folder / "log").open("ab")
        with log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        until_s = time.monotonic() + _START_S
        while time.monotonic() < until_s:
            try:
                find_engine(self.host, timeout_s=5)
                return
            except SandboxError:
                time.sleep(0.1)
        raise RuntimeError(f"the private engine did not start; see {self._folder}/log")

    def stop(self) -> None:
        """Ask it to end, and kill it when it does not."""
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def restart(self) -> None:
        """Stop and start."""
        self.stop()
        self.start()
