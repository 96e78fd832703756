"""Errors of the API and of pages: shown as ``application/problem+json`` (RFC 9457) or as a page."""

from __future__ import annotations

from typing import Final

from starlette.responses import JSONResponse

from bascule.bridge.display import show
from bascule.bridge.errors import DecisionRefused, PolicyError, ResumeError, RunBusy, RunNotFound, StoreError
from bascule.sandbox import SandboxError
from bascule.wire import BasculeError

TITLES: Final = {
    400: "Bad request",
    401: "Not logged in",
    403: "Not allowed",
    404: "Not found",
    405: "Method not allowed",
    408: "Too slow",
    409: "Conflict",
    413: "Too large",
    415: "Unsupported media type",
    421: "Misdirected request",
    422: "Unprocessable",
    429: "Too many requests",
    500: "Internal error",
    503: "Unavailable",
}


class Problem(Exception):
    """Raised wherever a request cannot be served.

    Args:
        code: stable word for programs.
        detail: for people; what to do. May quote the request and is made safe to show where it is shown.
    """

    def __init__(self, status: int, code: str, detail: str, *, headers: dict[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.headers = headers or {}

    def response(self) -> JSONResponse:
        """Return it for a program."""
        content = {
            "type": "about:blank",
            "title": TITLES.get(self.status, "Error"),
            "status": self.status,
            "code": self.code,
            "detail": show(self.detail),
        }
        return JSONResponse(content, self.status, headers=self.headers, media_type="application/problem+json")


_CONFLICTS: Final = ("approval_closed", "digest_mismatch", "already_decided")
_FORBIDDEN: Final = ("not_an_approver", "self_approval")


def problem_of(error: BasculeError) -> Problem:
    """Return an error of the bridge as a problem of a request."""
    status = 500
    if isinstance(error, RunNotFound) or error.code == "approval_not_found":
        status = 404
    elif isinstance(error, DecisionRefused):
        status = 409 if error.code in _CONFLICTS else 403 if error.code in _FORBIDDEN else 422
    elif isinstance(error, RunBusy | ResumeError):
        status = 409
    elif isinstance(error, PolicyError):
        status = 422
    elif isinstance(error, StoreError | SandboxError):
        status = 503
    return Problem(status, error.code, error.message)
