"""Runs a server of the ``tau2-…-mcp-eval`` packages, and keeps of each task what its end says.

The servers write the whole database of a task to disk after every call. Here the last state of a task is
summed up when the next one begins: calls go to the server's own code, only its persistence is replaced.

    python tau2.py DOMAIN serve SUMMARY
    python tau2.py DOMAIN golden SUMMARY STEP    (every STEP-th task)
"""

from __future__ import annotations

import hashlib
import importlib
import json
import sys
from pathlib import Path
from typing import Any


def tasks(server: Any, domain: str) -> dict[str, list[tuple[str, dict[str, Any]]]]:
    """Return the calls that solve each task, by the key of its state."""
    folder = Path(server.__file__).parent / "data" / "tau2" / "domains" / domain
    found: dict[str, list[tuple[str, dict[str, Any]]]] = {}
    for task in json.loads((folder / "tasks.json").read_text()):
        criteria: dict[str, Any] = task.get("evaluation_criteria") or {}
        actions: list[dict[str, Any]] = criteria.get("actions") or []
        found[f"tau2/{domain}/{task['id']}"] = [(each["name"], each["arguments"]) for each in actions]
    return found


def _load_nothing(key: str) -> None:
    """Say that no state was kept from before."""


class Keeper:
    """Sums up tasks in place of the server's own persistence."""

    def __init__(self, server: Any, path: Path) -> None:
        self._server = server
        self._path = path
        self._last: tuple[str, Any] | None = None
        server._save_state = self.save
        server._load_state = _load_nothing

    def save(self, key: str, state: Any) -> None:
        """Take note of a state; sum up that of another task, and forget it."""
        if self._last is not None and self._last[0] != key:
            self.finish()
        self._last = (key, state)

    def finish(self) -> None:
        """Write what the last task came to: its database and how each call ended."""
        if self._last is None:
            return
        (key, state), self._last = self._last, None
        self._server._STATES.pop(key, None)
        database = json.dumps(state["db"], sort_keys=True).encode()
        errors = [call["tau2_tool_message"]["error"] for call in state["calls"]]
        names = [call["tau2_tool_call"]["name"] for call in state["calls"]]
        row = {"key": key, "db": hashlib.sha256(database).hexdigest(), "errors": errors, "names": names}
        with self._path.open("a") as file:
            file.write(json.dumps(row) + "\n")


def main() -> None:
    """Serve, or make the golden calls here."""
    domain, mode, path, *step = sys.argv[1:]
    server = importlib.import_module(f"tau2_{domain}_mcp.server")
    keeper = Keeper(server, Path(path))
    if mode == "serve":
        sys.argv = [domain]
        try:
            server.main()
        finally:
            keeper.finish()
        return
    for key, calls in list(tasks(server, domain).items())[:: int(step[0])]:
        for name, arguments in calls:
            server._call_business_tool(name, {**arguments, "state_key": key})
    keeper.finish()


if __name__ == "__main__":
    main()
