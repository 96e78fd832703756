"""``bascule serve``: the console and its API in one process, until it is told to end."""

from __future__ import annotations

import importlib.util
import inspect
import logging
import os
import socket
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Optional

import typer

from bascule.bridge.settings import SETTINGS
from bascule.cli.exits import Exit
from bascule.cli.streams import tools_on_stderr
from bascule.cli.waiting import tell_waiting
from bascule.console.settings_table import SERVE_SETTINGS

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from bascule.bridge import Policy
    from bascule.console.settings import Settings
    from bascule.console.tokens import Tokens
    from bascule.tools.source import AnySource

EXTRA: Final = "pip install 'bascule[console]'"
_NEEDED: Final = ("jinja2", "sse_starlette", "starlette", "uvicorn")


def register(app: typer.Typer) -> None:
    """Add the command, with one flag for each row of both tables of settings."""
    app.command("serve")(_with_flags())


def serve(*, config: Path | None, log_level: str, **given: Any) -> None:
    """Serve the operator console: pages, JSON API, live events."""
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        print(f"bascule: the console needs {', '.join(missing)}: {EXTRA}", file=sys.stderr)
        raise typer.Exit(Exit.CONFIGURATION)
    from dataclasses import replace

    from bascule.bridge.limits import Limits, read_limits
    from bascule.console import read_settings

    limit_names = {row.name for row in SETTINGS}
    settings = read_settings(
        {name: value for name, value in given.items() if name not in limit_names}, os.environ, file=config
    )
    limits = read_limits(
        {name: value for name, value in given.items() if name in limit_names},
        os.environ,
        base=Limits(**settings.limits),  # type: ignore[arg-type]  # checked there
    )
    listener = _listen(settings)
    settings = replace(settings, port=listener.getsockname()[1])
    _keep_log(log_level)
    _serve(settings, limits, listener)


def _tell_waiting_at_start(app: Starlette, sources: Sequence[AnySource]) -> None:
    """Say which tools wait to be confirmed as soon as the server has opened their sources."""
    own = app.router.lifespan_context

    @asynccontextmanager
    async def telling(served: Any) -> AsyncGenerator[None]:
        async with own(served):
            tell_waiting(sources)
            yield

    app.router.lifespan_context = telling


def _serve(settings: Settings, limits: Any, listener: socket.socket) -> None:
    import uvicorn

    from bascule.bridge import Executor, Policy, ask_elsewhere
    from bascule.bridge.sqlite_store import SqliteStore
    from bascule.cli.extra_tools import add_extra_tools, extra_callers
    from bascule.cli.serve_mcp import mount_mcp
    from bascule.console import build_app
    from bascule.console.connections import bound_connections
    from bascule.console.database import Database
    from bascule.console.tokens import Tokens
    from bascule.sandbox import WEAKER
    from bascule.tools.loading import load_sources

    with tools_on_stderr():
        registry = load_sources(*settings.tools) if settings.tools else []
    policy = Policy.load(*settings.policy) if settings.policy else None
    _check_files(settings, policy, registry)
    store = SqliteStore(settings.store)
    database = Database.beside(Path(settings.store))
    executor = Executor(
        add_extra_tools(registry, store, search_tools=settings.search_tools, scratch=settings.scratch),
        policy=policy,
        approver=ask_elsewhere,
        isolation=settings.isolation,  # type: ignore[arg-type]  # checked by Settings
        limits=limits,
        store=store,
        docker_host=settings.docker_host or None,
        runtime=settings.runtime or None,
    )
    if settings.isolation == "process":
        print(f"bascule: {WEAKER}", file=sys.stderr)
    app = build_app(executor, database, settings, sources=registry)
    mount_mcp(app, callers=extra_callers(search_tools=settings.search_tools, scratch=settings.scratch))
    _tell_waiting_at_start(app, registry)
    _say_where(settings, Tokens(database))
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=settings.connections,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=5,
        h11_max_incomplete_event_size=32 << 10,
        http=bound_connections(arrive_s=settings.body_s, connections=settings.connections),
        ws="none",
        lifespan="on",
    )
    server = uvicorn.Server(config)
    try:
        with tools_on_stderr():
            server.run(sockets=[listener])
    finally:
        database.close()
        store.close()
    if not server.started:
        raise typer.Exit(Exit.UNAVAILABLE)


def _check_files(settings: Settings, policy: Policy | None, registry: Sequence[AnySource]) -> None:
    """Find mistakes in what is given before a store is made, so that none is left behind."""
    from bascule.console.access import read_proxies
    from bascule.console.outbox import read_targets
    from bascule.tools import Registry
    from bascule.tools.source import split_sources

    read_proxies(settings)
    read_targets(settings)
    ready, sources = split_sources(registry)
    tools = Registry(ready)
    if policy is not None and not sources:
        policy.check(tools)


def _listen(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host, settings.port))
    except OSError as error:
        listener.close()
        print(f"bascule: cannot listen on {settings.host}:{settings.port}: {error.strerror}", file=sys.stderr)
        raise typer.Exit(Exit.UNAVAILABLE) from error
    return listener


def _say_where(settings: Settings, tokens: Tokens) -> None:
    """Say where the console is, and print the first token, once."""
    from bascule.console.tokens import DEFAULT_DAYS

    print(f"bascule: the console is at {settings.base_url}", file=sys.stderr)
    if not settings.tools:
        print("bascule: no --tools: scripts that are submitted can call nothing", file=sys.stderr)
    if not tokens.all():
        secret, token = tokens.create("admin", "admin", lasts_s=DEFAULT_DAYS * 86_400.0)
        print(
            f"bascule: token {token.id} of admin, {DEFAULT_DAYS} days, shown only now: {secret}",
            file=sys.stderr,
        )


def _keep_log(level: str) -> None:
    from bascule.console.guard import JsonLines

    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name in ("bascule", "uvicorn"):
        log = logging.getLogger(name)
        log.handlers[:] = [handler]
        log.propagate = False
        log.setLevel(level.upper())


def _with_flags() -> Any:
    """Return the command with the signature that typer reads its flags from."""

    def command(**values: Any) -> None:
        serve(**values)

    level = "debug, info, warning or error; one JSON object per line on standard error."
    annotations: dict[str, Any] = {
        "config": Annotated[
            Optional[Path],  # noqa: UP045  # read by typer at run time
            typer.Option(
                "--config", help="YAML file with settings, by the names of the flags.", dir_okay=False
            ),
        ],
        "log_level": Annotated[str, typer.Option("--log-level", help=level)],
    }
    defaults: dict[str, Any] = {"config": None, "log_level": "info"}
    types: dict[str, Any] = {
        "text": Optional[str],  # noqa: UP045
        "texts": Optional[list[str]],  # noqa: UP045
        "whole": Optional[int],  # noqa: UP045
        "seconds": Optional[float],  # noqa: UP045
        "flag": Optional[bool],  # noqa: UP045
    }
    for row in SERVE_SETTINGS:
        more = " Repeatable." if row.kind == "texts" else ""
        help_ = f"{row.help}{more} Default: {row.default!r}. Environment: {row.environment}."
        option = typer.Option(row.flag, help=help_)
        annotations[row.name] = Annotated[types[row.kind], option]
        defaults[row.name] = None
    for setting in SETTINGS:
        kind = types["whole"] if setting.whole else types["seconds"]
        option = typer.Option(
            setting.flag, min=setting.minimum, max=setting.maximum, metavar=setting.unit.upper(),
            help=f"{setting.help} Default: {setting.default:,}.", rich_help_panel="Limits of runs",
        )  # fmt: skip
        annotations[setting.name] = Annotated[kind, option]
        defaults[setting.name] = None
    command.__doc__ = serve.__doc__
    command.__annotations__ = annotations
    command.__signature__ = inspect.Signature(  # type: ignore[attr-defined]  # typer looks here
        [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=defaults[name], annotation=annotation
            )
            for name, annotation in annotations.items()
        ]
    )
    return command
