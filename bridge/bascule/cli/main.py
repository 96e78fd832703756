"""The command itself: its sub-commands, and how errors become exit statuses."""

from __future__ import annotations

import sys
from typing import Annotated, Final

import typer

from bascule.cli import approvals, audit, bench, doctor, image, mcp, policy, run, runs, serve, tokens, tools
from bascule.cli.exits import describe_exits, exit_for_error
from bascule.cli.streams import ready_streams

app: Final = typer.Typer(
    name="bascule",
    help="Run the scripts that models write to chain tools: in a container, over one bridge.",
    epilog=describe_exits(),
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
run.register(app)
mcp.register(app)
app.add_typer(runs.app, name="runs")
app.add_typer(approvals.app, name="approvals")
app.add_typer(audit.app, name="audit")
app.add_typer(policy.app, name="policy")
app.add_typer(tools.app, name="tools")
app.add_typer(image.app, name="image")
app.add_typer(bench.app, name="bench")
app.add_typer(tokens.app, name="tokens")
serve.register(app)
app.command("doctor")(doctor.doctor)


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(version("bascule"))
        raise typer.Exit


@app.callback()
def bascule(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Run the scripts that models write to chain tools: in a container, over one bridge."""


def main() -> None:
    """Run the command and end the process with its status."""
    ready_streams()
    try:
        app()
    except Exception as error:  # only ours are handled, but their class is not loaded before it is needed
        from bascule.wire import BasculeError

        if not isinstance(error, BasculeError):
            raise
        from bascule.bridge.display import show_block

        print(show_block(f"bascule: {error}"), file=sys.stderr)
        sys.exit(exit_for_error(error))


if __name__ == "__main__":
    main()
