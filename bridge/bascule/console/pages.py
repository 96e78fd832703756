"""What all pages share: who may see them, how forms are taken, and how templates are rendered.

A page is for somebody logged in; a form is taken only from our own pages, made for this very login, by POST.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from bascule.bridge.executor import Executor
from bascule.console import shown
from bascule.console.access import check_form_token
from bascule.console.principal import Principal, Right
from bascule.console.problems import TITLES, Problem, problem_of
from bascule.console.reading import parse_form, parse_query, read_body
from bascule.console.state import Console, console_of, require
from bascule.wire import BasculeError

FOLDER: Final = Path(__file__).parent

ModelT = TypeVar("ModelT", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Visit:
    """One request of somebody logged in; ``form`` is empty for GET."""

    console: Console
    principal: Principal
    request: Request
    form: dict[str, str]

    def path(self, name: str) -> str:
        """Return a part of the path."""
        return str(self.request.path_params[name])

    def query(self, model: type[ModelT]) -> ModelT:
        """Return the query parameters; empty ones, as forms send them, count as left out."""
        given = {name: value for name, value in self.request.query_params.items() if value != ""}
        scope = {**self.request.scope, "query_string": "&".join(
            f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in given.items()
        ).encode()}  # fmt: skip
        return parse_query(model, Request(scope))

    def allowed(self) -> bool:
        """Tell whether whoever came would be let in again."""
        return self.console.access.browser(self.request, self.console.policy) is not None

    def page(self, template: str, *, status: int = 200, **values: Any) -> Response:
        """Render a template."""
        return render(self.console, self.request, template, self.principal, status=status, **values)


Handler = Callable[[Visit], Awaitable[Response]]


def make_templates(executor: Executor) -> Environment:
    """Return the templates, with every text escaped and with the functions that make texts safe to show."""
    templates = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    shower = shown.Shower(executor.redact)
    filters: dict[str, Any] = {
        "show": shower.text,
        "block": shower.block,
        "indented": shower.indented,
        "showjson": shower.json,
        "stamp": shown.stamp,
        "iso": shown.iso,
        "span": shown.span,
        "size": shown.size,
        "pretty": shown.pretty,
        "seconds": shown.seconds,
        "facts_line": shown.facts_line,
        "tojson_plain": shown.plain_json,
        "text": shown.text_of,
        "is_odd": shown.is_odd,
    }
    templates.filters.update(filters)
    functions: dict[str, Any] = {"arguments_of": shower.arguments, "numbered": shown.numbered}
    templates.globals.update(functions)
    return templates


def render(
    console: Console,
    request: Request,
    template: str,
    principal: Principal | None,
    *,
    status: int = 200,
    **values: Any,
) -> Response:
    """Render a template for somebody, or for nobody yet."""
    now = time.time()
    body = request.app.state.templates.get_template(template).render(
        principal=principal,
        pending_count=len(console.hub.pending) if principal is not None else 0,
        path=request.url.path,
        now=now,
        **values,
    )
    return HTMLResponse(body, status)


def page(path: str, handler: Handler, right: Right = "read", *, method: str = "GET") -> Route:
    """Return the route of a page or of a form's target.

    Args:
        right: what somebody must have.
        method: ``POST`` for what changes anything; never ``GET``.
    """

    async def serve(request: Request) -> Response:
        console = console_of(request)
        principal = console.access.browser(request, console.policy)
        if principal is None:
            target = request.url.path + (f"?{request.url.query}" if request.url.query else "")
            suffix = f"?next={quote(target, safe='')}" if method == "GET" and target != "/" else ""
            return RedirectResponse(f"/login{suffix}", 303)
        request.state.principal = principal
        try:
            console.throttle.admit(principal.name)
            form: dict[str, str] = {}
            if method == "POST":
                form = await take_form(request)
                check_form_token(principal, form.get("form_token", ""))
            require(principal, right)
            return await handler(Visit(console, principal, request, form))
        except Problem as problem:
            return error_page(request, problem, principal)
        except BasculeError as error:
            return error_page(request, problem_of(error), principal)

    return Route(path, serve, methods=[method], name=handler.__name__)


async def take_form(request: Request) -> dict[str, str]:
    """Return a form that one of our own pages sent.

    Raises:
        Problem: it did not, or is no form.
    """
    console = console_of(request)
    console.access.check_origin(request)
    if not request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        raise Problem(415, "media_type_unsupported", "send a form")
    settings = console.settings
    return parse_form(await read_body(request, max_bytes=settings.body_bytes, within_s=settings.body_s))


def error_page(request: Request, problem: Problem, principal: Principal | None) -> Response:
    """Return an error as a page."""
    response = render(
        console_of(request),
        request,
        "error.html",
        principal,
        status=problem.status,
        title=TITLES.get(problem.status, "Error"),
        problem=problem,
    )
    response.headers.update(problem.headers)
    return response


def back(path: str) -> Response:
    """Send a browser to a page after its form was taken, so that reloading sends nothing twice."""
    return RedirectResponse(path, 303)
