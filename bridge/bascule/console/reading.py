"""Reads what clients send: bodies within bounds of bytes, time, depth and count, as strict JSON or as a form.

Everything here is untrusted. JSON is UTF-8, without duplicate keys, NaN, infinities or lone surrogates, and
integers stay exact.
"""

from __future__ import annotations

import json
from typing import Any, Final, NoReturn, TypeVar
from urllib.parse import parse_qsl

import anyio
from pydantic import BaseModel, ValidationError
from starlette.requests import ClientDisconnect, Request

from bascule.console.problems import Problem
from bascule.wire import FrameError
from bascule.wire.codec import check_shape

MAX_FORM_FIELDS: Final = 5000
MAX_INTEGER_DIGITS: Final = 308

ModelT = TypeVar("ModelT", bound=BaseModel)


async def read_body(request: Request, *, max_bytes: int, within_s: float) -> bytes:
    """Return the body.

    Raises:
        Problem: 413 or 408; nothing of it was used.
    """
    parts: list[bytes] = []
    size = 0
    try:
        with anyio.fail_after(within_s):
            async for part in request.stream():
                size += len(part)
                if size > max_bytes:
                    raise Problem(413, "body_too_large", f"a body has at most {max_bytes} bytes")
                parts.append(part)
    except TimeoutError:
        raise Problem(408, "body_too_slow", f"the body did not arrive within {within_s:g} s") from None
    except ClientDisconnect:
        raise Problem(400, "body_incomplete", "the body ended too soon") from None
    return b"".join(parts)


def parse_json(data: bytes) -> Any:
    """Return JSON as plain data.

    Raises:
        Problem: 400: it is none, or breaks a bound.
    """
    try:
        check_shape(data)
        text = data.decode("utf-8")
        value = json.loads(
            text,
            object_pairs_hook=_unique,
            parse_constant=_refuse_constant,
            parse_int=_read_integer,
            parse_float=_read_float,
        )
        json.dumps(value, ensure_ascii=False).encode("utf-8")  # half of a surrogate pair cannot be written
    except FrameError as error:
        raise Problem(400, "json_out_of_bounds", error.message.replace("frame", "JSON")) from error
    except (ValueError, RecursionError) as error:
        raise Problem(400, "json_invalid", f"the body is no JSON: {error}") from error
    return value


def parse_model(model: type[ModelT], value: Any) -> ModelT:
    """Return plain data as a model.

    Raises:
        Problem: 422, with every fault by its path.
    """
    try:
        return model.model_validate(value, strict=True)
    except ValidationError as error:
        faults = [
            f"{'.'.join(map(str, each['loc'])) or 'body'}: {each['msg'].removeprefix('Value error, ')}"
            for each in error.errors(include_url=False, include_input=False, include_context=False)[:20]
        ]
        raise Problem(422, "body_invalid", "; ".join(faults)) from error


def parse_query(model: type[ModelT], request: Request) -> ModelT:
    """Return the query parameters as a model; unknown and repeated ones are faults."""
    values: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        if name in values:
            raise Problem(422, "query_invalid", f"{name} is given twice")
        values[name] = value
    try:
        return model.model_validate_strings(values)
    except ValidationError as error:
        faults = [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()[:20]]
        raise Problem(422, "query_invalid", "; ".join(faults)) from error


def parse_form(data: bytes) -> dict[str, str]:
    """Return a form; of a repeated field the first counts.

    Raises:
        Problem: 400: it is none.
    """
    try:
        pairs = parse_qsl(
            data.decode("ascii"),
            keep_blank_values=True,
            encoding="utf-8",
            errors="strict",
            max_num_fields=MAX_FORM_FIELDS,
        )
    except ValueError as error:
        raise Problem(400, "form_invalid", f"this is no form: {error}") from error
    form: dict[str, str] = {}
    for name, value in pairs:
        form.setdefault(name, value)
    return form


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("an object has the same key twice")
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _read_integer(digits: str) -> int:
    if len(digits) > MAX_INTEGER_DIGITS:
        raise ValueError(f"an integer has more than {MAX_INTEGER_DIGITS} digits")
    return int(digits)


def _read_float(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ValueError("a number is too large")
    return value
