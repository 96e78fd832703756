"""The application: routes, layers, and what runs in the background while it is served."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Iterable
from importlib.metadata import version
from typing import Final
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.staticfiles import StaticFiles

from bascule.bridge.executor import Executor
from bascule.console import (
    api_approvals,
    api_deployment,
    api_runs,
    pages_deployment,
    pages_inbox,
    pages_login,
    pages_runs,
)
from bascule.console.access import Access, read_proxies
from bascule.console.database import Database
from bascule.console.definitions import Definitions
from bascule.console.desk import Desk
from bascule.console.guard import Guard
from bascule.console.hub import Hub
from bascule.console.logins import Logins
from bascule.console.openapi import make_document
from bascule.console.operation import Operation
from bascule.console.outbox import Outbox, read_targets
from bascule.console.pages import FOLDER, error_page, make_templates
from bascule.console.problems import Problem
from bascule.console.settings import Settings
from bascule.console.state import Console, console_of
from bascule.console.throttle import Throttle
from bascule.console.tokens import Tokens
from bascule.tools.source import AnySource

OPERATIONS: Final[tuple[Operation, ...]] = (
    *api_runs.OPERATIONS,
    *api_approvals.OPERATIONS,
    *api_deployment.OPERATIONS,
)
"""The whole API."""


def build_app(
    executor: Executor,
    database: Database,
    settings: Settings,
    *,
    sources: Iterable[AnySource] = (),
) -> Starlette:
    """Return the console of an executor's store.

    Args:
        executor: with a store that outlives the process and `ask_elsewhere` as approver.
        database: the console's own tables.
        sources: what the executor was made with; those whose definitions people confirm are shown.

    Raises:
        LimitsError: proxies or webhooks of the settings cannot be used.
    """
    tokens = Tokens(database)
    console = Console(
        settings=settings,
        executor=executor,
        database=database,
        tokens=tokens,
        access=Access(
            tokens=tokens,
            logins=Logins(database, tokens, lasts_s=settings.session_s),
            proxies=read_proxies(settings),
            store=executor.store,
            origins=_origins(settings),
        ),
        desk=Desk(executor, database, at_once=settings.runs_at_once, grace_s=settings.grace_s),
        hub=Hub(executor.store, subscribers=settings.live_subscribers),
        outbox=Outbox(database, executor, read_targets(settings), base_url=settings.base_url),
        definitions=Definitions(sources, executor.store),
        throttle=Throttle(requests_per_minute=settings.requests_per_minute),
    )
    document = make_document(OPERATIONS, version=version("bascule"), url=settings.base_url)

    async def show_document(request: Request) -> Response:
        return JSONResponse(document)

    app = Starlette(
        routes=[
            Route("/healthz", _health),
            Route("/readyz", _readiness),
            Route("/v1/openapi.json", show_document),
            *(Route(row.path, row.serve, methods=[row.method]) for row in OPERATIONS),
            Route("/static/{path:path}", _static, name="static"),
            *pages_login.ROUTES,
            *pages_inbox.ROUTES,
            *pages_runs.ROUTES,
            *pages_deployment.ROUTES,
        ],
        middleware=[
            Middleware(Guard, hosts=find_hosts(settings), secure=settings.base_url.startswith("https:"))
        ],
        exception_handlers={HTTPException: _explain, Exception: _explain_crash},
        lifespan=_live,
    )
    app.state.console = console
    app.state.templates = make_templates(executor)
    return app


def find_hosts(settings: Settings) -> frozenset[str]:
    """Return the names that requests may be addressed to."""
    found = {urlsplit(settings.base_url).netloc.lower(), *(name.lower() for name in settings.host_names)}
    own = f"[{settings.host}]" if ":" in settings.host else settings.host
    names = {own, "127.0.0.1", "localhost", "[::1]"} if _is_loopback(settings.host) else {own}
    return frozenset(found | {f"{name}:{settings.port}" for name in names})


def _origins(settings: Settings) -> frozenset[str]:
    return frozenset(f"{scheme}://{host}" for host in find_hosts(settings) for scheme in ("http", "https"))


def _is_loopback(host: str) -> bool:
    return host in ("localhost", "::1") or host.startswith("127.")


@contextlib.asynccontextmanager
async def _live(app: Starlette) -> AsyncGenerator[None]:
    console: Console = app.state.console
    async with console.executor:
        await console.hub.look()
        workers = [
            asyncio.create_task(console.hub.watch(), name="hub"),
            asyncio.create_task(console.desk.carry_on(), name="desk"),
            asyncio.create_task(console.outbox.deliver(), name="outbox"),
        ]
        console.ready = True
        try:
            yield
        finally:
            console.ready = False
            console.hub.close()
            for worker in workers:
                worker.cancel()
            await asyncio.wait(workers)
            await console.desk.close()


async def _health(request: Request) -> Response:
    return JSONResponse({"status": "alive"})


async def _readiness(request: Request) -> Response:
    console = console_of(request)
    if not console.ready:
        return Problem(503, "not_ready", "starting or closing").response()
    await asyncio.to_thread(console.store.runs, limit=1)
    return JSONResponse({"status": "ready"})


_files = StaticFiles(directory=FOLDER / "static")


async def _static(request: Request) -> Response:
    response = await _files.get_response(request.path_params["path"], request.scope)
    response.headers["cache-control"] = "max-age=300"
    return response


async def _explain(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    status = error.status_code
    code = {404: "not_found", 405: "method_not_allowed"}.get(status, "request_refused")
    problem = Problem(status, code, f"{request.method} {request.url.path}: {error.detail}")
    problem.headers.update(error.headers or {})
    if request.url.path.startswith(("/v1/", "/static/")):
        return problem.response()
    return error_page(request, problem, None)


async def _explain_crash(request: Request, error: Exception) -> Response:
    problem = Problem(500, "internal", "this is a bug; the operator's log says more")
    return problem.response() if request.url.path.startswith("/v1/") else error_page(request, problem, None)
