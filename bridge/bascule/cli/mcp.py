"""``bascule mcp``: the tools as an MCP server on standard input and output."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Optional

import typer

from bascule.cli.driver import Isolation
from bascule.cli.exits import Exit
from bascule.cli.extra_tools import ScratchFlag, SearchFlag, add_extra_tools, extra_callers
from bascule.cli.host_flags import DockerHostFlag, RuntimeFlag
from bascule.cli.limit_flags import add_limit_flags

if TYPE_CHECKING:
    from bascule.bridge import Store

Decider = Literal["console", "deny", "all"]
Direct = Literal["fit", "all", "none"]

_Tools = Annotated[
    list[str],
    typer.Option(
        "--tools",
        metavar="SPEC",
        help="module:attr, module, file.py, file.py:attr, mcp.json or openapi.yaml. Repeatable.",
    ),
]
_Policy = Annotated[
    Optional[list[Path]],  # noqa: UP045  # read by typer at run time
    typer.Option(
        "--policy", metavar="FILE", help="YAML rule file, a layer of the policy. Repeatable.", dir_okay=False
    ),
]
_User = Annotated[
    str | None, typer.Option("--user", metavar="NAME", help="For whom the runs are. Default: who runs this.")
]
_Approve = Annotated[
    Decider | None,
    typer.Option(
        "--approve",
        help="Who decides where policy asks: people, in the console or by `bascule approvals`, which needs"
        " --store and is the default with it; or nobody: deny.",
    ),
]
_Isolation = Annotated[
    Isolation,
    typer.Option("--isolation", help="oci: runc or crun without an engine. process is weaker; it says how."),
]
_StoreFile = Annotated[
    Optional[Path],  # noqa: UP045  # as above
    typer.Option(
        "--store", envvar="BASCULE_STORE", help="File that keeps runs; made when missing.", dir_okay=False
    ),
]
_Console = Annotated[
    Optional[str],  # noqa: UP045  # as above
    typer.Option(
        "--console-url",
        envvar="BASCULE_CONSOLE_URL",
        help="Address of the console, given to the host with every run that waits for people.",
    ),
]
_Direct = Annotated[
    Direct,
    typer.Option("--direct", help="Tools offered as functions of their own: all, none, or if they fit."),
]


_FLAGS: Final[dict[str, Any]] = {
    "tools": _Tools,
    "search_tools": SearchFlag,
    "scratch": ScratchFlag,
    "policy": _Policy,
    "user": _User,
    "approve": _Approve,
    "isolation": _Isolation,
    "store": _StoreFile,
    "console_url": _Console,
    "direct": _Direct,
    "docker_host": DockerHostFlag,
    "runtime": RuntimeFlag,
}


def register(app: typer.Typer) -> None:
    """Add the command, with one flag for each row of the table of limits."""
    app.command("mcp")(add_limit_flags(serve_mcp, _FLAGS))


def serve_mcp(
    *,
    tools: list[str],
    search_tools: bool = False,
    scratch: bool = False,
    policy: list[Path] | None = None,
    user: str | None = None,
    approve: Decider | None = None,
    isolation: Isolation = "container",
    store: Path | None = None,
    console_url: str | None = None,
    direct: Direct = "fit",
    docker_host: str | None = None,
    runtime: str | None = None,
    **limits: float | None,
) -> None:
    """Serve the tools to an MCP host on standard input and output, until it closes its side.

    Standard output is the protocol's alone; everything for people is on standard error.
    """
    from bascule.bridge import Executor, Policy
    from bascule.bridge.limits import read_limits
    from bascule.bridge.memory_store import MemoryStore
    from bascule.bridge.sqlite_store import SqliteStore
    from bascule.bridge.terminal import whoami
    from bascule.cli.driver import drive, pick_approver, suspend_at_once
    from bascule.cli.logs import keep_log_safe
    from bascule.sandbox import WEAKER
    from bascule.tools.loading import load_sources

    try:
        from bascule.models.mcp_server import make_server, serve_descriptors
        from bascule.models.mcp_stdio import claim_descriptors
    except ModuleNotFoundError as error:
        print(f"bascule: {error}", file=sys.stderr)
        raise typer.Exit(Exit.UNAVAILABLE) from error
    from bascule.models.surface import ToolSurface

    keep_log_safe()
    if approve == "console" and store is None:
        print("bascule: --approve console needs --store FILE, which people decide in", file=sys.stderr)
        raise typer.Exit(Exit.USAGE)
    decider: Decider = approve or ("deny" if store is None else "console")
    if isolation == "process":
        print(f"bascule: {WEAKER}", file=sys.stderr)
    if decider == "all":
        print("bascule: --approve all: every call that policy asks about is approved", file=sys.stderr)
    with claim_descriptors() as (read_from, write_to):
        kept: Store = MemoryStore(keep_values=True) if store is None else SqliteStore(store)
        try:
            given_tools = load_sources(*tools)
            executor = Executor(
                add_extra_tools(given_tools, kept, search_tools=search_tools, scratch=scratch),
                policy=Policy.load(*policy) if policy else None,
                approver=pick_approver(decider),
                isolation=isolation,
                limits=read_limits(suspend_at_once(limits, wait=False), os.environ),
                user=user or whoami(),
                store=kept,
                docker_host=docker_host,
                runtime=runtime,
            )

            async def serve() -> None:
                # The tools of sources are there by now.
                callers = extra_callers(search_tools=search_tools, scratch=scratch)
                surface = ToolSurface(executor, direct=direct, callers=callers)
                server = make_server(lambda request: surface, console_url=console_url)
                await serve_descriptors(server, read_from, write_to)

            drive(executor, serve, sources=given_tools)
        finally:
            kept.close()
