"""The commands that come next: said in full, so that they can be copied as they are."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bascule.bridge.settings import SETTINGS

if TYPE_CHECKING:
    from bascule.bridge.history import CommandLine

TOOLS_PLACEHOLDER = "SPEC"
"""Stands for what only the operator knows: with which tools a program has begun a run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NextSteps:
    """Writes commands about one store.

    Attributes:
        store: file of the store; None with ``server``.
        server: address of a console.
        given: flags of this command which resuming a run needs again; None where it was begun by another one.
    """

    store: Path | None
    server: str | None = None
    given: Sequence[str] | None = None

    def show_approval(self, approval_id: str) -> str:
        """Return the command that shows a card."""
        return self._command("approvals", "show", approval_id)

    def decide(self, verdict: str, approval_id: str, digest: str, *more: str) -> str:
        """Return the command that decides about what was shown."""
        return self._command("approvals", verdict, approval_id, *more, digest=digest[:16])

    def resume(self, run_id: str, begun: CommandLine | None = None) -> str:
        """Return the command that goes on with a run; empty for one of a console, which does so by itself.

        Args:
            begun: how the run was begun, as its store has it.
        """
        if self.server is not None:
            return ""
        if self.given is not None:
            return f"{self._command('runs', 'resume', run_id)} {shlex.join(self.given)}"
        if begun is None or not "".join((begun.folder, *begun.flags)).isprintable():
            return f"{self._command('runs', 'resume', run_id)} --tools {TOOLS_PLACEHOLDER}"
        if begun.folder == os.getcwd():
            return f"{self._command('runs', 'resume', run_id)} {shlex.join(begun.flags)}"
        there = shlex.join(["bascule", "runs", "resume", run_id, "--store", os.path.abspath(str(self.store))])
        return f"cd {shlex.quote(begun.folder)} && {there} {shlex.join(begun.flags)}"

    def resolve(self, run_id: str, seq: int) -> str:
        """Return the command that says what became of a call; what it says is left to be chosen."""
        return (
            f"{self._command('runs', 'resolve', run_id, str(seq))}"
            " --happened RESULT | --did-not-happen | --tell-script"
        )

    def list_approvals(self) -> str:
        """Return the command that lists what waits for people."""
        return self._command("approvals", "list")

    def _command(self, *words: str, digest: str = "") -> str:
        place = ["--store", str(self.store)] if self.server is None else ["--server", self.server]
        flags = [*place, *(("--digest", digest) if digest else ())]
        return shlex.join(["bascule", *words, *flags])


def given_flags(
    *,
    tools: Iterable[str],
    search_tools: bool,
    scratch: bool,
    policy: Iterable[Path],
    secret: Iterable[str],
    approve: str,
    isolation: str,
    docker_host: str | None,
    runtime: str | None,
    limits: Mapping[str, float | None],
) -> list[str]:
    """Return the flags that resuming a run needs again, those with their usual values left out."""
    flags = [word for each in tools for word in ("--tools", each)]
    flags += ["--search-tools"] if search_tools else []
    flags += ["--scratch"] if scratch else []
    flags += [word for each in policy for word in ("--policy", str(each))]
    flags += [word for each in secret for word in ("--secret", each)]
    flags += ["--approve", approve] if approve != "terminal" else []
    flags += ["--isolation", isolation] if isolation != "container" else []
    flags += ["--docker-host", docker_host] if docker_host is not None else []
    flags += ["--runtime", runtime] if runtime is not None else []
    flags += [
        word
        for setting in SETTINGS
        if (value := limits.get(setting.name)) is not None
        for word in (setting.flag, f"{value:.15g}")
    ]
    return flags
