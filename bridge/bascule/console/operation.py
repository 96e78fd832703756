"""An operation of the API as data: routes and the OpenAPI document are both made from the same rows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from bascule.bridge.errors import StoreError
from bascule.console.principal import Principal, Right
from bascule.console.problems import Problem, problem_of
from bascule.console.reading import parse_json, parse_model, parse_query, read_body
from bascule.console.state import Console, console_of, require
from bascule.wire import BasculeError

ModelT = TypeVar("ModelT", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Call:
    """One request of the API, authenticated and within bounds.

    Attributes:
        raw: the body as it came.
    """

    console: Console
    principal: Principal
    request: Request
    raw: bytes
    body: BaseModel | None
    query: BaseModel | None

    def given(self, model: type[ModelT]) -> ModelT:
        """Return body or query as the model the operation declares."""
        found = self.body if isinstance(self.body, model) else self.query
        assert isinstance(found, model)
        return found

    def allowed(self) -> bool:
        """Tell whether whoever came would be let in again."""
        return self.console.access.bearer(self.request.headers, self.console.policy) is not None

    def path(self, name: str) -> str:
        """Return a part of the path."""
        return str(self.request.path_params[name])


Handler = Callable[[Call], Awaitable[BaseModel | Response]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One row.

    Attributes:
        rights: whoever has one of them may call it.
        media_type: of the reply when it is no JSON object.
        status: of the usual reply; further ones in ``also``.
    """

    method: Literal["GET", "POST", "DELETE"]
    path: str
    handler: Handler
    summary: str
    rights: tuple[Right, ...]
    body: type[BaseModel] | None = None
    query: type[BaseModel] | None = None
    reply: type[BaseModel] | None = None
    media_type: str = "application/json"
    status: int = 200
    also: tuple[int, ...] = ()
    headers: tuple[tuple[str, str], ...] = ()

    async def serve(self, request: Request) -> Response:
        """Authenticate, read, call, answer."""
        try:
            return await self._serve(request)
        except Problem as problem:
            return problem.response()
        except StoreError as error:
            return problem_of(error).response()
        except BasculeError as error:
            return problem_of(error).response()

    async def _serve(self, request: Request) -> Response:
        console = console_of(request)
        address = "" if request.client is None else request.client.host
        console.throttle.check_address(address)
        principal = console.access.bearer(request.headers, console.policy)
        if principal is None:
            if "authorization" in request.headers:
                console.throttle.note_failure(address)
            raise Problem(
                401, "token_missing", "send a valid token: Authorization: Bearer …",
                headers={"WWW-Authenticate": 'Bearer realm="bascule"'},
            )  # fmt: skip
        request.state.principal = principal
        console.throttle.admit(principal.name)
        if not any(principal.may(right) for right in self.rights):
            require(principal, self.rights[0])
        settings = console.settings
        raw = await read_body(request, max_bytes=settings.body_bytes, within_s=settings.body_s)
        body: BaseModel | None = None
        if self.body is not None:
            kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind != "application/json":
                raise Problem(415, "media_type_unsupported", "send application/json")
            body = parse_model(self.body, parse_json(raw))
        query = None if self.query is None else parse_query(self.query, request)
        answer = await self.handler(Call(console, principal, request, raw, body, query))
        if isinstance(answer, Response):
            return answer
        return reply(answer, self.status)


def reply(answer: BaseModel, status: int, **headers: str) -> Response:
    """Return a model as a response."""
    content: Any = answer.model_dump(mode="json")
    return JSONResponse(content, status, headers=headers)
