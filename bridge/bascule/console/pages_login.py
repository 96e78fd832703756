"""Logging in with a token, and out. A token that submits scripts opens no page."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from bascule.console.logins import COOKIE, FORGET_COOKIE
from bascule.console.pages import Visit, back, error_page, page, render, take_form
from bascule.console.problems import Problem
from bascule.console.state import console_of


async def show_login(request: Request) -> Response:
    """Show the form."""
    console = console_of(request)
    target = _own_path(request.query_params.get("next", "/"))
    if console.access.browser(request, console.policy) is not None:
        return RedirectResponse(target, 303)
    return render(console, request, "login.html", None, target=target, problem="")


async def log_in(request: Request) -> Response:
    """Take a token and give a new session."""
    console = console_of(request)
    address = "" if request.client is None else request.client.host
    try:
        console.throttle.check_address(address)
        form = await take_form(request)
    except Problem as problem:
        return error_page(request, problem, None)
    target = _own_path(form.get("next", "/"))
    token = console.tokens.find(form.get("token", "").strip())
    if token is None or token.scope == "run":
        console.throttle.note_failure(address)
        said = (
            "This token is not valid (any more)."
            if token is None
            else "This token submits scripts; it opens no page."
        )
        return render(console, request, "login.html", None, status=403, target=target, problem=said)
    response = RedirectResponse(target, 303)
    before = request.cookies.get(COOKIE)
    if before is not None:
        console.access.logins.end(before)
    response.headers.append(
        "set-cookie", console.access.logins.set_cookie(console.access.logins.begin(token))
    )
    return response


async def log_out(visit: Visit) -> Response:
    """End the session."""
    visit.console.access.logins.end(visit.request.cookies.get(COOKIE, ""))
    response = back("/login")
    response.headers.append("set-cookie", FORGET_COOKIE)
    return response


def _own_path(target: str) -> str:
    """Return a path on this console; anything that could lead elsewhere becomes the inbox."""
    fine = target.startswith("/") and not target.startswith("//") and "\\" not in target
    return target if fine and target.isprintable() and target.isascii() else "/"


ROUTES = (
    Route("/login", show_login, methods=["GET"]),
    Route("/login", log_in, methods=["POST"]),
    page("/logout", log_out, method="POST"),
)
