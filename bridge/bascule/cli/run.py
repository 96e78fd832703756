"""``bascule run``: one script from a file or standard input, its result on standard output."""

from __future__ import annotations

import inspect
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Optional

import typer

from bascule.bridge.settings import SETTINGS
from bascule.cli.exits import Exit, describe_exits, exit_for_result
from bascule.cli.streams import tools_on_stderr

if TYPE_CHECKING:
    from bascule.bridge import Approver, Executor, Result

Approve = Literal["terminal", "deny", "all"]
Isolation = Literal["container", "oci", "process"]

MAX_SCRIPT_BYTES: Final = 1 << 20
"""Largest script that is read."""

_Script = Annotated[str, typer.Argument(help="File with the script, or - for standard input.")]
_Tools = Annotated[
    list[str],
    typer.Option("--tools", metavar="SPEC", help="module:attr, module, file.py or file.py:attr. Repeatable."),
]
_Policy = Annotated[Path | None, typer.Option("--policy", help="YAML rule file.", dir_okay=False)]
_Approve = Annotated[Approve, typer.Option("--approve", help="Who decides where policy asks.")]
_Isolation = Annotated[
    Isolation,
    typer.Option("--isolation", help="oci: runc or crun without an engine. process is weaker; it says how."),
]
_Seed = Annotated[
    int | None, typer.Option("--seed", min=0, max=2**63 - 1, help="Decides random and uuid4 in the script.")
]
_DockerHost = Annotated[str | None, typer.Option("--docker-host", help="Address of the engine.")]
_Runtime = Annotated[str | None, typer.Option("--runtime", help="Container runtime, as the engine names it.")]
_Json = Annotated[bool, typer.Option("--json", help="Print the whole result as one JSON object.")]
_Receipts = Annotated[bool, typer.Option("--receipts", help="Print a table of all calls at the end.")]
_Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no account.")]


def register(app: typer.Typer) -> None:
    """Add the command, with one flag for each row of the table of limits."""
    app.command("run", epilog=describe_exits())(_with_limit_flags())


def run(
    script: str,
    *,
    tools: list[str],
    policy: Path | None = None,
    approve: Approve = "terminal",
    isolation: Isolation = "container",
    seed: int | None = None,
    docker_host: str | None = None,
    runtime: str | None = None,
    json: bool = False,
    receipts: bool = False,
    quiet: bool = False,
    **limits: float | None,
) -> None:
    """Run one script and print its result."""
    import asyncio

    from bascule.bridge import Executor, Policy
    from bascule.bridge.limits import read_limits
    from bascule.cli.logs import keep_log_safe
    from bascule.cli.progress import Progress
    from bascule.cli.summary import print_account, print_receipts, print_result
    from bascule.sandbox import WEAKER
    from bascule.tools import load_tools

    keep_log_safe()
    text = _read_script(script)
    with tools_on_stderr():
        registry = load_tools(*tools)
    executor = Executor(
        registry,
        policy=None if policy is None else Policy.load(policy),
        approver=_approver(approve),
        isolation=isolation,
        limits=read_limits(limits, os.environ),
        docker_host=docker_host,
        runtime=runtime,
    )
    if isolation == "process":
        print(f"bascule: {WEAKER}", file=sys.stderr)
    if approve == "all":
        print("bascule: --approve all: every call that policy asks about is approved", file=sys.stderr)
    if not quiet:
        executor.subscribe(Progress(sys.stderr))
    try:
        with tools_on_stderr():
            result = asyncio.run(_run(executor, text, seed))
    except asyncio.CancelledError:  # likewise
        print("bascule: ended by a signal", file=sys.stderr)
        raise typer.Exit(Exit.TERMINATED) from None
    except KeyboardInterrupt:  # by now the run is cancelled and its sandbox removed
        print("bascule: interrupted", file=sys.stderr)
        raise typer.Exit(Exit.INTERRUPTED) from None
    if receipts:
        print_receipts(result, sys.stderr)
    if not quiet:
        print_account(result, sys.stderr)
    try:
        print_result(result, json=json)
    except OSError as error:
        # What is left in the buffer has nowhere to go.
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
        print(f"bascule: the result cannot be written: {error}", file=sys.stderr)
        raise typer.Exit(Exit.INTERNAL) from error
    raise typer.Exit(exit_for_result(result))


async def _run(executor: Executor, script: str, seed: int | None) -> Result:
    import asyncio

    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    for name in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(name) is signal.SIG_DFL:  # nohup stays nohup
            loop.add_signal_handler(name, task.cancel)
    async with executor:
        return await executor.run(script, seed=seed)


def _approver(name: Approve) -> Approver:
    from bascule.bridge import approve_all, ask_in_terminal, deny_all

    return {"terminal": ask_in_terminal, "deny": deny_all, "all": approve_all}[name]


def _read_script(script: str) -> str:
    try:
        if script == "-":
            data = sys.stdin.buffer.read(MAX_SCRIPT_BYTES + 1)
        else:
            with open(script, "rb") as file:
                data = file.read(MAX_SCRIPT_BYTES + 1)
        if len(data) > MAX_SCRIPT_BYTES:
            raise ValueError(f"it is larger than {MAX_SCRIPT_BYTES} bytes")
        return data.decode("utf-8")
    except (OSError, ValueError) as error:
        print(f"bascule: the script cannot be read: {error}", file=sys.stderr)
        raise typer.Exit(Exit.NO_INPUT) from error


def _with_limit_flags() -> Any:
    """Return the command with the signature that typer reads its flags from."""

    def command(**values: Any) -> None:
        run(values.pop("script"), **values)

    annotations: dict[str, Any] = {
        "script": _Script,
        "tools": _Tools,
        "policy": _Policy,
        "approve": _Approve,
        "isolation": _Isolation,
        "seed": _Seed,
        "docker_host": _DockerHost,
        "runtime": _Runtime,
        "json": _Json,
        "receipts": _Receipts,
        "quiet": _Quiet,
    }
    defaults = {
        name: parameter.default
        for name, parameter in inspect.signature(run).parameters.items()
        if parameter.default is not inspect.Parameter.empty
    }
    for setting in SETTINGS:
        number = int if setting.whole else float
        option = typer.Option(
            setting.flag,
            min=setting.minimum,
            max=setting.maximum,
            metavar=setting.unit.upper(),
            help=f"{setting.help} Default: {setting.default:,}. Environment: {setting.environment}.",
            rich_help_panel="Limits",
        )
        annotations[setting.name] = Annotated[Optional[number], option]  # noqa: UP045  # built at run time
        defaults[setting.name] = None
    kind = inspect.Parameter.KEYWORD_ONLY
    parameters = [
        inspect.Parameter(
            name, kind, default=defaults.get(name, inspect.Parameter.empty), annotation=annotation
        )
        for name, annotation in annotations.items()
    ]
    command.__doc__ = run.__doc__
    command.__annotations__ = annotations
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # typer looks here
    return command
