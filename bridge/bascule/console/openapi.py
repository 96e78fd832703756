"""The OpenAPI 3.1 document of the API, made from the rows that the routes are made from."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from pydantic.json_schema import models_json_schema

from bascule.console.operation import Operation
from bascule.console.problems import TITLES
from bascule.console.schemas import ProblemReply

_REF: Final = "#/components/schemas/{model}"
_EVERYWHERE: Final = (400, 401, 403, 408, 413, 421, 422, 429, 503)


def make_document(operations: Iterable[Operation], *, version: str, url: str) -> dict[str, Any]:
    """Return the document."""
    rows = list(operations)
    models = [(model, "validation") for row in rows for model in (row.body,) if model is not None]
    models += [(row.reply, "serialization") for row in rows if row.reply is not None]
    models.append((ProblemReply, "serialization"))
    refs, definitions = models_json_schema(models, ref_template=_REF)  # type: ignore[arg-type]  # pairs of literals
    names: dict[Any, dict[str, Any]] = {model: ref for (model, _), ref in refs.items()}
    paths: dict[str, dict[str, Any]] = {}
    for row in rows:
        path = re.sub(r":\w+\}", "}", row.path)
        paths.setdefault(path, {})[row.method.lower()] = _describe(row, names)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Bascule",
            "version": version,
            "description": "Runs, approvals and what belongs to them. Send `Authorization: Bearer <token>`.",
        },
        "servers": [{"url": url}],
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": definitions.get("$defs", {}),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _describe(row: Operation, names: dict[Any, dict[str, Any]]) -> dict[str, Any]:
    answer: dict[str, Any] = {"description": "Done."}
    if row.reply is not None:
        answer["content"] = {"application/json": {"schema": names[row.reply]}}
    else:
        answer["content"] = {row.media_type: {"schema": {"type": "string"}}}
    responses: dict[str, Any] = {str(row.status): answer}
    problem = {"application/problem+json": {"schema": names[ProblemReply]}}
    body_only = (400, 415) if row.body is not None else ()
    for status in sorted({*_EVERYWHERE, *row.also, *body_only}):
        fine = status < 300
        responses[str(status)] = answer if fine else {"description": TITLES[status], "content": problem}
    found: dict[str, Any] = {
        "summary": row.summary,
        "description": f"Rights: {' or '.join(row.rights)}.",
        "operationId": row.handler.__name__,
        "parameters": [*_path_parameters(row), *_query_parameters(row), *_header_parameters(row)],
        "responses": responses,
    }
    if row.body is not None:
        content = {"application/json": {"schema": names[row.body]}}
        found["requestBody"] = {"required": True, "content": content}
    return found


def _path_parameters(row: Operation) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": {"type": "integer", "minimum": 0}
            if kind == ":int"
            else {"type": "string", "minLength": 1},
        }
        for name, kind in re.findall(r"\{(\w+)(:\w+)?\}", row.path)
    ]


def _query_parameters(row: Operation) -> list[dict[str, Any]]:
    if row.query is None:
        return []
    schema = row.query.model_json_schema()
    return [
        {"name": name, "in": "query", "required": False, "schema": _inline(each)}
        for name, each in schema["properties"].items()
    ]


def _inline(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a parameter; in a query there is no null, only what is left out."""
    kept = {name: value for name, value in schema.items() if name not in ("title", "default")}
    choices = [each for each in kept.pop("anyOf", []) if each.get("type") != "null"]
    if len(choices) == 1:
        return {**kept, **choices[0]}
    return {**kept, "anyOf": choices} if choices else kept


def _header_parameters(row: Operation) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "header", "required": False, "description": text, "schema": {"type": "string"}}
        for name, text in row.headers
    ]
