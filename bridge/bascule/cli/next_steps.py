"""The commands that come next: said in full, so that they can be copied as they are."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

TOOLS_PLACEHOLDER = "SPEC"
"""Stands for what only the operator knows: with which tools the run was begun."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NextSteps:
    """Writes commands about one store.

    Attributes:
        store: file of the store; None with ``server``.
        server: address of a console.
        given: flags with which a run was begun and which its resuming needs again; empty when not known.
    """

    store: Path | None
    server: str | None = None
    given: Sequence[str] = field(default=("--tools", TOOLS_PLACEHOLDER))

    def show_approval(self, approval_id: str) -> str:
        """Return the command that shows a card."""
        return self._command("approvals", "show", approval_id)

    def decide(self, verdict: str, approval_id: str, digest: str, *more: str) -> str:
        """Return the command that decides about what was shown."""
        return self._command("approvals", verdict, approval_id, *more, digest=digest[:16])

    def resume(self, run_id: str) -> str:
        """Return the command that goes on with a run."""
        return f"{self._command('runs', 'resume', run_id)} {shlex.join(self.given)}"

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
    approve: str,
    isolation: str,
    docker_host: str | None,
    runtime: str | None,
) -> list[str]:
    """Return the flags that resuming a run needs again, those with their usual values left out."""
    flags = [word for each in tools for word in ("--tools", each)]
    flags += ["--search-tools"] if search_tools else []
    flags += ["--scratch"] if scratch else []
    flags += [word for each in policy for word in ("--policy", str(each))]
    flags += ["--approve", approve] if approve != "terminal" else []
    flags += ["--isolation", isolation] if isolation != "container" else []
    flags += ["--docker-host", docker_host] if docker_host is not None else []
    flags += ["--runtime", runtime] if runtime is not None else []
    return flags
