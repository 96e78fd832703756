"""A real HTTP server that serves what an OpenAPI document says and holds every request against it.

It is written from the specification and shares no code with the client: routing is werkzeug's, values are
checked with jsonschema_rs. A request that the document does not describe is answered with 400 and the reason.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, cast
from urllib.parse import parse_qs, urlsplit

import jsonschema_rs
from werkzeug.formparser import parse_form_data
from werkzeug.routing import Map, Rule


class Wrong(Exception):
    """The request is not what the document describes."""


class Service:
    """Serves one document at ``base``; everything it received is in ``requests``."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document
        self.requests: list[dict[str, Any]] = []
        self.answers: dict[str, list[tuple[int, dict[str, str], bytes]]] = {}
        rules = [
            Rule(path.replace("{", "<").replace("}", ">"), endpoint=(path, method), methods=[method.upper()])
            for path, item in document["paths"].items()
            for method in item
            if method != "parameters"
        ]
        self._map = Map(rules, strict_slashes=True, merge_slashes=False)
        self.base = ""

    def handle(
        self, method: str, target: str, headers: dict[str, str], body: bytes
    ) -> tuple[int, dict[str, str], bytes]:
        """Answer one request."""
        url = urlsplit(target)
        adapter = self._map.bind("localhost", path_info=None)
        try:
            (path, verb), variables = adapter.match(_decode(url.path), method=method)
            operation = self.document["paths"][path][verb]
            received = {
                "operation": operation["operationId"],
                "path": variables,
                "query": parse_qs(url.query, keep_blank_values=True, strict_parsing=bool(url.query)),
                "headers": headers,
                "target": target,
                "body": self._check_body(operation, headers, body),
            }
            self._check_parameters(operation, received)
        except Exception as error:  # whatever a request provokes is its fault
            return 400, {"Content-Type": "text/plain"}, f"{type(error).__name__}: {error}".encode()
        self.requests.append(received)
        waiting = self.answers.get(operation["operationId"])
        if waiting:
            return waiting.pop(0)
        return self._answer(operation, received)

    def _check_parameters(self, operation: dict[str, Any], received: dict[str, Any]) -> None:
        described = {each["name"] for each in operation.get("parameters", []) if each["in"] == "query"}
        for name in received["query"]:
            if name.partition("[")[0] not in described | {"api_key"}:
                raise Wrong(f"unknown query parameter {name}")
        for each in operation.get("parameters", []):
            given = self._value(each, received)
            if given is None:
                if each.get("required"):
                    raise Wrong(f"{each['name']} is missing")
                continue
            self._validate(each["schema"], given, each["name"])

    def _value(self, each: dict[str, Any], received: dict[str, Any]) -> Any:
        name, schema = each["name"], each["schema"]
        if each["in"] == "path":
            raw = received["path"].get(name)
        elif each["in"] == "header":
            raw = received["headers"].get(name.lower())
        elif each["in"] == "cookie":
            cookies = dict(
                part.split("=", 1) for part in received["headers"].get("cookie", "").split("; ") if part
            )
            raw = cookies.get(name)
        elif each.get("style") == "deepObject":
            found = {
                key[len(name) + 1 : -1]: values[0]
                for key, values in received["query"].items()
                if key.startswith(f"{name}[")
            }
            return {key: _read(schema["properties"][key], text) for key, text in found.items()} or None
        else:
            values = received["query"].get(name)
            if values is None:
                return None
            if schema.get("type") == "array":
                texts = values if each.get("explode", True) else values[0].split(",")
                return [_read(schema["items"], text) for text in texts]
            raw = values[0]
        if raw is None:
            return None
        if schema.get("type") == "array":
            return [_read(schema["items"], text) for text in raw.split(",")]
        return _read(schema, raw)

    def _check_body(self, operation: dict[str, Any], headers: dict[str, str], body: bytes) -> Any:
        described = operation.get("requestBody")
        if described is None:
            if body:
                raise Wrong("a body where none is described")
            return None
        kind = headers.get("content-type", "").partition(";")[0]
        media = described["content"].get(kind)
        if media is None:
            if not body and not described.get("required"):
                return None
            raise Wrong(f"Content-Type {kind} is not described")
        if kind == "application/json":
            value = json.loads(body)
        elif kind == "text/plain":
            value = body.decode()
        else:
            from io import BytesIO

            environ = {
                "wsgi.input": BytesIO(body),
                "CONTENT_LENGTH": str(len(body)),
                "CONTENT_TYPE": headers["content-type"],
                "REQUEST_METHOD": "POST",
            }
            _, form, _ = parse_form_data(environ)
            properties = media["schema"]["properties"]
            value = {
                key: [_read(properties[key]["items"], text) for text in form.getlist(key)]
                if properties[key]["type"] == "array"
                else _read(properties[key], form[key])
                for key in form
            }
        self._validate(media["schema"], value, "body")
        return value

    def _validate(self, schema: Any, value: Any, where: str) -> None:
        whole = {**schema, "components": self.document.get("components", {})}
        for error in jsonschema_rs.Draft202012Validator(whole).iter_errors(value):
            raise Wrong(f"{where}: {error.message}")

    def _answer(
        self, operation: dict[str, Any], received: dict[str, Any]
    ) -> tuple[int, dict[str, str], bytes]:
        code, response = next(iter(operation["responses"].items()))
        content = response.get("content", {})
        if not content:
            return int(code), {}, b""
        value = self._example(content["application/json"]["schema"], received)
        return int(code), {"Content-Type": "application/json"}, json.dumps(value).encode()

    def _example(self, schema: dict[str, Any], received: dict[str, Any], depth: int = 0) -> Any:
        """Return a value of a schema; members that were in the request are what was sent."""
        if "$ref" in schema:
            node: Any = self.document
            for step in schema["$ref"].removeprefix("#/").split("/"):
                node = node[step]
            return self._example(node, received, depth)
        if schema.get("type") == "object":
            body: Any = received["body"]
            sent = cast("dict[str, Any]", body) if isinstance(body, dict) else {}
            return {
                key: sent[key] if depth == 0 and key in sent else self._example(member, received, depth + 1)
                for key, member in schema.get("properties", {}).items()
                if depth < 2 or key in schema.get("required", [])
            }
        if schema.get("type") == "array":
            return [self._example(schema["items"], received, depth + 1)]
        return {"integer": 7, "number": 1.5, "boolean": True}.get(
            schema["type"], schema.get("enum", ["text"])[0]
        )


def _decode(path: str) -> str:
    from urllib.parse import unquote

    return "/".join(unquote(segment).replace("/", "\u2215") for segment in path.split("/"))


def _read(schema: dict[str, Any], text: str) -> Any:
    kind = schema.get("type")
    if kind == "string":
        return text
    return json.loads(text)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    service: ClassVar[Service]

    def _serve(self) -> None:
        length = int(self.headers.get("Content-Length", "0"))
        headers = {name.lower(): value for name, value in self.headers.items()}
        status, answer, body = self.service.handle(self.command, self.path, headers, self.rfile.read(length))
        if status == 0:  # the test wants the connection to be lost
            self.close_connection = True
            return
        self.send_response(status)
        for name, value in answer.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = do_HEAD = _serve

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the test's output is the test's."""


@contextmanager
def serve(document: dict[str, Any]) -> Generator[Service]:
    """Serve a document on a free port of this machine."""
    service = Service(document)
    handler = type("Handler", (_Handler,), {"service": service})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    service.base = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield service
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
