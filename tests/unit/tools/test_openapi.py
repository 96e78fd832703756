"""OpenAPI documents as tools, against a server that checks every request against the document."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import socket
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bascule.tools import ArgumentsInvalid, Registry, ToolContext, ToolLoadError
from bascule.tools.context import OutcomeUnknown
from bascule.tools.imported.failures import ServiceUnreachable
from bascule.tools.openapi import OpenApiSource, read_source
from bascule.tools.openapi.client import HttpFailed
from tests.openapi_server import Service, serve

pytestmark = pytest.mark.anyio

PET: dict[str, Any] = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "id": {"type": "integer", "readOnly": True},
        "name": {"type": "string", "minLength": 1},
        "tags": {"type": "array", "items": {"type": "string"}},
        "parent": {"$ref": "#/components/schemas/Pet"},
    },
}


def operation(name: str, **more: Any) -> dict[str, Any]:
    return {
        "operationId": name,
        "summary": f"Does {name}",
        "responses": {"200": {"description": "ok"}},
        **more,
    }


def parameter(name: str, place: str, schema: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": name, "in": place, "schema": schema, "required": place == "path", **more}


TEXT = {"type": "string"}
NUMBERS = {"type": "array", "items": {"type": "integer"}}


def body(media_type: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"required": True, "content": {media_type: {"schema": schema}}}


DOCUMENT: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": "Shop", "version": "1"},
    "servers": [{"url": "https://shop.example"}],
    "security": [{"key": []}],
    "components": {
        "schemas": {"Pet": PET},
        "securitySchemes": {
            "key": {"type": "apiKey", "in": "header", "name": "X-Key"},
            "inquery": {"type": "apiKey", "in": "query", "name": "api_key"},
            "basic": {"type": "http", "scheme": "basic"},
            "bearer": {"type": "http", "scheme": "bearer"},
        },
    },
    "paths": {
        "/pets/{petId}": {
            "get": operation(
                "getPet",
                parameters=[
                    parameter("petId", "path", TEXT),
                    parameter("ids", "query", NUMBERS),
                    parameter("short", "query", NUMBERS, explode=False),
                    parameter(
                        "filter",
                        "query",
                        {"type": "object", "properties": {"min": {"type": "integer"}, "name": TEXT}},
                        style="deepObject",
                    ),
                    parameter("flag", "query", {"type": "boolean"}),
                    parameter("X-Trace", "header", TEXT),
                    parameter("X-Key", "header", TEXT),
                    parameter("crumb", "cookie", TEXT),
                    parameter("class", "query", TEXT),
                    parameter("page-size", "query", {"type": "integer", "minimum": 1, "maximum": 100}),
                ],
                responses={
                    "200": {
                        "description": "ok",
                        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}},
                    }
                },
            ),
            "delete": operation(
                "dropPet", parameters=[parameter("petId", "path", TEXT)], security=[{"basic": []}]
            ),
        },
        "/pets": {
            "post": operation(
                "addPet",
                security=[{"bearer": []}],
                requestBody=body("application/json", {"$ref": "#/components/schemas/Pet"}),
                responses={
                    "201": {
                        "description": "ok",
                        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}},
                    }
                },
            ),
            "get": operation(
                "listPets", security=[{"inquery": []}], parameters=[parameter("cursor", "query", TEXT)]
            ),
        },
        "/form": {
            "post": operation(
                "sendForm",
                requestBody=body(
                    "application/x-www-form-urlencoded",
                    {"type": "object", "properties": {"a": TEXT, "n": NUMBERS}, "required": ["a"]},
                ),
            )
        },
        "/parts": {
            "post": operation(
                "sendParts",
                requestBody=body("multipart/form-data", {"type": "object", "properties": {"a": TEXT}}),
            )
        },
        "/note": {"put": operation("putNote", requestBody=body("text/plain", TEXT))},
        "/many": {
            "post": operation(
                "sendMany",
                requestBody=body(
                    "application/json", {"type": "array", "items": {"$ref": "#/components/schemas/Pet"}}
                ),
            )
        },
    },
}

SECRETS = {"KEY": "key-value-1", "QUERY": "query value/2", "BASIC": "user:pass-3", "BEARER": "bearer-value-4"}
AUTH = "{key: '${KEY}', inquery: '${QUERY}', basic: '${BASIC}', bearer: '${BEARER}'}"


@pytest.fixture
def service() -> Iterator[Service]:
    with serve(DOCUMENT) as running:
        yield running


def write(folder: Path, *, document: Any = DOCUMENT, selection: str = "") -> Path:
    """Write a document and its selection file; return the latter."""
    (folder / "shop.json").write_text(document if isinstance(document, str) else json.dumps(document))
    chosen = folder / "shop.tools.yaml"
    chosen.write_text(f"document: shop.json\n{selection}")
    return chosen


def source(folder: Path, service: Any, **options: Any) -> OpenApiSource:
    base = service.base if service is not None else "https://shop.example"
    lines = [f"servers: ['{base}']", f"auth: {AUTH}", *options.pop("lines", [])]
    return read_source("shop", write(folder, selection="\n".join(lines) + "\n", **options), secrets=SECRETS)


@contextlib.asynccontextmanager
async def opened(each: OpenApiSource) -> AsyncGenerator[Registry]:
    try:
        yield Registry(await each.open())
    finally:
        await each.close()


async def call(
    registry: Registry, name: str, /, *, context: ToolContext | None = None, **arguments: Any
) -> Any:
    tool = registry.get(f"shop.{name}")
    assert tool is not None, registry.names()
    values = tool.validate(arguments).values
    async with asyncio.timeout(30):
        return json.loads(tool.dump_result(await tool.call(values, context or ToolContext())))


async def test_every_kind_of_parameter_arrives_as_the_document_says(tmp_path: Path, service: Service) -> None:
    async with opened(source(tmp_path, service)) as registry:
        pet = await call(
            registry,
            "getPet",
            petId="a/b ?#%é",
            ids=[1, 2],
            short=[3, 4],
            filter={"min": 5, "name": "&x=y"},
            flag=True,
            X_Trace="t 1",
            crumb="c;d",
            class_="k",
            page_size=7,
        )
    assert pet["name"] == "text"
    [request] = service.requests
    assert request["path"] == {"petId": "a\u2215b ?#%é"}
    assert request["query"] == {
        "ids": ["1", "2"],
        "short": ["3,4"],
        "filter[min]": ["5"],
        "filter[name]": ["&x=y"],
        "flag": ["true"],
        "class": ["k"],
        "page-size": ["7"],
    }
    assert request["headers"]["x-trace"] == "t 1"
    assert request["headers"]["x-key"] == "key-value-1"
    assert request["headers"]["cookie"] == "crumb=c%3Bd"


async def test_every_kind_of_body_arrives_with_the_credentials_of_its_operation(
    tmp_path: Path, service: Service
) -> None:
    context = ToolContext(idempotency_key="KEY-1")
    async with opened(source(tmp_path, service)) as registry:
        added = await call(
            registry, "addPet", context=context, name="Rex", tags=["a"], parent={"name": "Max"}
        )
        assert (added["id"], added["name"]) == (7, "Rex")
        await call(registry, "sendForm", a="1&b=2", n=[1, 2])
        await call(registry, "sendParts", a='x\r\n--"y"')
        await call(registry, "putNote", body="Grüße")
        await call(registry, "sendMany", body=[{"name": "A"}, {"name": "B"}])
        await call(registry, "dropPet", petId="7")
        await call(registry, "listPets")
    bodies = {each["operation"]: each["body"] for each in service.requests}
    assert bodies["addPet"] == {"name": "Rex", "tags": ["a"], "parent": {"name": "Max"}}
    assert bodies["sendForm"] == {"a": "1&b=2", "n": [1, 2]}
    assert bodies["sendParts"] == {"a": 'x\r\n--"y"'}
    assert bodies["putNote"] == "Grüße"
    assert bodies["sendMany"] == [{"name": "A"}, {"name": "B"}]
    headers = {each["operation"]: each["headers"] for each in service.requests}
    assert headers["addPet"]["authorization"] == "Bearer bearer-value-4"
    assert headers["addPet"]["idempotency-key"] == "KEY-1"
    assert headers["dropPet"]["authorization"] == "Basic dXNlcjpwYXNzLTM="
    assert [each["query"] for each in service.requests if each["operation"] == "listPets"] == [
        {"api_key": ["query value/2"]}
    ]


async def test_the_read_only_members_and_the_keys_are_not_asked_of_scripts(tmp_path: Path) -> None:
    registry = Registry(source(tmp_path, None).make_tools())
    add, get = registry.get("shop.addPet"), registry.get("shop.getPet")
    assert add is not None
    assert get is not None
    assert list(add.parameters["properties"]) == ["name", "tags", "parent"]
    assert "X_Key" not in get.parameters["properties"]
    assert "pass the cursor" in registry.get("shop.listPets").description  # type: ignore[union-attr]
    everything = registry.render_stubs(detail="full") + json.dumps([tool.parameters for tool in registry])
    assert not any(secret in everything for secret in SECRETS.values())
    compile(registry.render_stubs(), "stubs", "exec")


async def test_effects_are_once_unless_the_selection_says_otherwise(tmp_path: Path) -> None:
    plain = Registry(source(tmp_path, None).make_tools())
    assert {tool.effects for tool in plain} == {"once"}
    lines = ["effects: {'*': suggested, addPet: idempotent}"]
    chosen = Registry(source(tmp_path, None, lines=lines).make_tools())
    effects = {tool.name.removeprefix("shop."): tool.effects for tool in chosen}
    assert effects == {
        "getPet": "read",
        "dropPet": "idempotent",
        "addPet": "idempotent",
        "listPets": "read",
        "sendForm": "once",
        "sendParts": "once",
        "putNote": "idempotent",
        "sendMany": "once",
    }


async def test_a_selection_takes_by_tag_path_and_id_and_leaves_out(tmp_path: Path) -> None:
    lines = ["include: {paths: ['/pets*'], operations: [sendMany]}", "exclude: {operations: ['drop*']}"]
    names = Registry(source(tmp_path, None, lines=lines).make_tools()).names()
    assert set(names) == {"shop.getPet", "shop.addPet", "shop.listPets", "shop.sendMany"}
    with pytest.raises(ToolLoadError, match="none is chosen"):
        source(tmp_path, None, lines=["include: {tags: [nothing]}"]).make_tools()


async def test_failures_are_what_they_are(tmp_path: Path, service: Service) -> None:
    gone = (404, {"Content-Type": "application/json"}, b'{"error": "no key-value-1 here\\u202e"}')
    service.answers = {
        "getPet": [
            gone,
            (429, {"Retry-After": "3"}, b"slow down"),
            (302, {"Location": "http://10.0.0.1/"}, b""),
            (0, {}, b""),
        ],
        "addPet": [(0, {}, b"")],
        "listPets": [(200, {"Content-Type": "application/json"}, b"[" * 5000)],
    }
    lines = ["effects: {'get*': read}"]
    async with opened(source(tmp_path, service, lines=lines)) as registry:
        with pytest.raises(HttpFailed, match="HTTP 404") as caught:
            await call(registry, "getPet", petId="1")
        assert "key-value-1" not in str(caught.value)
        assert caught.value.status is None
        with pytest.raises(HttpFailed, match="slow down") as caught:
            await call(registry, "getPet", petId="1")
        assert (caught.value.status, caught.value.retry_after) == (429, 3.0)
        with pytest.raises(HttpFailed, match="not followed"):
            await call(registry, "getPet", petId="1")
        with pytest.raises(ServiceUnreachable):
            await call(registry, "getPet", petId="1")
        with pytest.raises(OutcomeUnknown):
            await call(registry, "addPet", name="x")
        assert (await call(registry, "listPets")).startswith("[[[")


async def test_an_answer_larger_than_it_may_be_or_compressed_is_refused(
    tmp_path: Path, service: Service
) -> None:
    service.answers = {
        "getPet": [(200, {}, b"x" * 5000), (200, {"Content-Encoding": "gzip"}, b"\x1f\x8b" + b"x" * 100)]
    }
    lines = ["effects: {'get*': read}", "max_response_bytes: 4000"]
    async with opened(source(tmp_path, service, lines=lines)) as registry:
        with pytest.raises(ServiceUnreachable, match="larger"):
            await call(registry, "getPet", petId="1")
        with pytest.raises(ServiceUnreachable, match="compressed"):
            await call(registry, "getPet", petId="1")


@pytest.mark.parametrize("value", ["..", ".", ""])
async def test_a_value_cannot_leave_its_place_in_the_path(
    tmp_path: Path, service: Service, value: str
) -> None:
    async with opened(source(tmp_path, service)) as registry:
        with pytest.raises(ValueError, match="cannot stand in a path"):
            await call(registry, "dropPet", petId=value)
    assert service.requests == []


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "a\nb", "a\x00b", "ä"])
async def test_a_value_cannot_become_another_header(tmp_path: Path, service: Service, value: str) -> None:
    async with opened(source(tmp_path, service)) as registry:
        with pytest.raises(ValueError, match="printable ASCII"):
            await call(registry, "getPet", petId="1", X_Trace=value)
    assert service.requests == []


async def test_wrong_arguments_are_found_before_anything_is_sent(tmp_path: Path, service: Service) -> None:
    async with opened(source(tmp_path, service)) as registry:
        with pytest.raises(ArgumentsInvalid, match="at most 100") as caught:
            await call(registry, "getPet", petId="1", page_size=1000, ids=["x"])
        assert [each.path for each in caught.value.problems] == ["ids[0]", "page_size"]
        with pytest.raises(ArgumentsInvalid, match=r"parent\.name"):
            await call(registry, "addPet", name="a", parent={"name": 1})
    assert service.requests == []


async def test_a_secret_in_the_address_is_not_logged(
    tmp_path: Path, service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    each = source(tmp_path, service)
    assert set(SECRETS.values()) <= each.secrets
    async with opened(each) as registry:
        await call(registry, "listPets")
    assert service.requests
    assert "query value/2" not in caplog.text
    assert "query%20value" not in caplog.text


def _say(entry: object) -> Callable[..., list[object]]:
    def look_up(*_: object, **__: object) -> list[object]:
        return [entry]

    return look_up


async def test_private_addresses_are_refused_unless_they_were_named(
    tmp_path: Path, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = int(service.base.rsplit(":", 1)[1])
    entry = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))
    monkeypatch.setattr(socket, "getaddrinfo", _say(entry))  # the name service
    named = SimpleNamespace(base=f"http://inner.shop.example:{port}")
    async with opened(source(tmp_path, named, lines=["effects: {'*': read}"])) as registry:
        with pytest.raises(PermissionError, match="private_hosts"):
            await call(registry, "listPets")
    assert service.requests == []
    async with opened(source(tmp_path, named, lines=["private_hosts: ['*.shop.example']"])) as registry:
        await call(registry, "listPets")
    assert service.requests[0]["headers"]["host"] == f"inner.shop.example:{port}"


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        ("servers: []", "servers"),
        ("servers: ['ftp://x']", "no address"),
        ("servers: ['https://user@x']", "no address"),
        ("servers: ['https://x/{v}']", "no address"),
        ("servers: ['https://x']\nauth: {key: literal-secret}", "name of a secret"),
        ("servers: ['https://x']\nauth: {key: '${NOT_THERE_AT_ALL}'}", "there is no secret NOT_THERE_AT_ALL"),
        ("servers: ['https://x']\nefects: {}", "efects"),
        ("servers: ['https://x']\nservers: ['https://y']", "there twice"),
        ("servers: ['https://x']", "must be authenticated"),
    ],
)
async def test_a_selection_that_is_wrong_is_refused(tmp_path: Path, selection: str, message: str) -> None:
    with pytest.raises(ToolLoadError, match=message):
        await read_source("shop", write(tmp_path, selection=selection + "\n"), secrets=SECRETS).open()


async def test_a_document_without_selection_says_what_to_write(tmp_path: Path) -> None:
    path = tmp_path / "shop.json"
    path.write_text(json.dumps(DOCUMENT))
    with pytest.raises(ToolLoadError, match=r"write shop\.tools\.yaml .*https://shop\.example"):
        read_source("shop.json", path)


HOSTILE: dict[str, tuple[str, str]] = {
    "aliases": ("openapi: 3.0.0\na: &a [x]\nb: *a\npaths: {}\n", "aliases are not taken"),
    "bomb": (
        "\n".join([f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9) if n else 'x'}]" for n in range(9)]),
        "aliases",
    ),
    "depth": ("openapi: 3.0.0\nx: " + "[" * 5000, "deeper than|nesting depth"),
    "json depth": ('{"openapi": "3.0.0", "x": ' + "[" * 200_000, "recursion|Expecting"),
    "twice": ("openapi: 3.0.0\npaths: {}\npaths: {}\n", "there twice"),
    "python": ("openapi: !!python/object/apply:os.system ['true']\n", "could not determine a constructor"),
    "swagger": ('{"swagger": "2.0"}', "Swagger 2.0"),
    "nothing": ("just text", "no OpenAPI"),
    "not a number": ('{"openapi": "3.0.0", "x": NaN}', "NaN"),
}


@pytest.mark.parametrize("kind", HOSTILE)
async def test_a_document_made_to_hurt_is_an_error_with_its_place(tmp_path: Path, kind: str) -> None:
    text, message = HOSTILE[kind]
    with pytest.raises(ToolLoadError, match=message) as caught:
        read_source("shop", write(tmp_path, document=text, selection="servers: ['https://x']\n"))
    assert str(caught.value).startswith(str(tmp_path))


async def test_references_reach_nothing_outside_and_circles_end(tmp_path: Path) -> None:
    schemas: dict[str, Any] = {
        "A": {"$ref": "#/components/schemas/B"},
        "B": {"$ref": "#/components/schemas/A"},
        "Self": {
            "allOf": [
                {"$ref": "#/components/schemas/Self"},
                {"properties": {"me": {"$ref": "#/components/schemas/Self"}}},
            ]
        },
        "Wide": {"oneOf": [{"$ref": f"#/components/schemas/W{n}"} for n in range(200)]},
        **{
            f"W{n}": {"type": "object", "properties": {f"p{n}": {"$ref": "#/components/schemas/Wide"}}}
            for n in range(200)
        },
    }
    targets = [
        "#/components/schemas/A",
        "#/components/schemas/Self",
        "#/components/schemas/Wide",
        "#",
        "#/paths",
        "#/nothing",
        "file:///etc/passwd",
        "https://example.com/x.json",
        "other.yaml#/A",
        "#/components/schemas/%",
    ]
    paths = {
        f"/{n}": {
            "post": operation(
                f"op{n}",
                requestBody=body("application/json", {"$ref": target}),
                responses={
                    "200": {"description": "", "content": {"application/json": {"schema": {"$ref": target}}}}
                },
            )
        }
        for n, target in enumerate(targets)
    }
    document: dict[str, Any] = {"openapi": "3.0.0", "paths": paths, "components": {"schemas": schemas}}
    each = read_source("shop", write(tmp_path, document=document, selection="servers: ['https://x']\n"))
    registry = Registry(each.make_tools())
    assert len(registry.names()) == len(targets)
    compile(registry.render_stubs(), "stubs", "exec")
    assert "root:" not in json.dumps([tool.parameters for tool in registry])


async def test_a_hundred_thousand_operations_are_looked_through_and_few_are_chosen(tmp_path: Path) -> None:
    paths: dict[str, Any] = {f"/things/{n}": {"get": {"responses": {}}} for n in range(100_000)}
    document: dict[str, Any] = {"openapi": "3.0.0", "paths": paths}
    chosen = write(
        tmp_path, document=document, selection="servers: ['https://x']\ninclude: {paths: ['/things/9999*']}\n"
    )
    begun = time.process_time()
    registry = Registry(read_source("shop", chosen).make_tools())
    assert len(registry.names()) == 11
    assert time.process_time() - begun < 30
    document["paths"] = dict(list(paths.items())[:6000])
    with pytest.raises(ToolLoadError, match="at most 5000"):
        read_source(
            "shop", write(tmp_path, document=document, selection="servers: ['https://x']\n")
        ).make_tools()


async def test_names_are_repaired_and_unique_whatever_the_ids_are(tmp_path: Path) -> None:
    ids = ["a b", "a-b", "a_b", "x" * 500, "查询", "class", "", None, "same", "same", "\u202eevil", 7]
    paths: dict[str, Any] = {
        f"/p{n}/{{id}}": {"get": {"operationId": each, "responses": {}}} for n, each in enumerate(ids)
    }
    document: dict[str, Any] = {"openapi": "3.0.0", "paths": paths}
    each = read_source("shop", write(tmp_path, document=document, selection="servers: ['https://x']\n"))
    registry = Registry(each.make_tools())
    assert len(registry.names()) == len(ids)
    assert "shop.a_b" in registry.names()
    assert all(name.isascii() and len(name) <= 64 for name in registry.names())
    assert all(tool.parameters["required"] == ["id"] for tool in registry)
    assert any("no operationId" in note for note in each.notes)
    assert any("has the id 'same' too" in note for note in each.notes)
    assert all(note.isprintable() for note in each.notes)


@pytest.mark.parametrize("path", ["/../admin", "/a/%2e%2e/b", "/a/{b", "/{}"])
async def test_a_path_that_leads_elsewhere_is_refused(tmp_path: Path, path: str) -> None:
    document: dict[str, Any] = {"openapi": "3.0.0", "paths": {path: {"get": {"responses": {}}}}}
    each = read_source("shop", write(tmp_path, document=document, selection="servers: ['https://x/base']\n"))
    with pytest.raises(ToolLoadError):
        each.make_tools()


async def test_an_operation_with_servers_of_its_own_is_only_sent_to_confirmed_ones(tmp_path: Path) -> None:
    paths = {
        "/here": {"get": operation("here")},
        "/there": {"get": operation("there", servers=[{"url": "https://elsewhere.example"}])},
        "/both": {
            "servers": [{"url": "https://{v}.example/", "variables": {"v": {"default": "second"}}}],
            "get": operation("both"),
        },
    }
    document: dict[str, Any] = {
        "openapi": "3.0.0",
        "servers": [{"url": "https://first.example"}],
        "paths": paths,
    }
    lines = "servers: ['https://first.example', 'https://second.example']\n"
    each = read_source("shop", write(tmp_path, document=document, selection=lines))
    assert set(Registry(each.make_tools()).names()) == {"shop.here", "shop.both"}
    assert any("left out" in note for note in each.notes)


async def test_yaml_scalars_are_what_they_look_like(tmp_path: Path) -> None:
    (tmp_path / "shop.yaml").write_text(
        "openapi: 3.1.0\n"
        "servers: [{url: 'https://x'}]\n"
        "paths:\n"
        "  /c:\n"
        "    get:\n"
        "      operationId: list\n"
        "      parameters:\n"
        "        - {name: country, in: query, schema: {type: string, enum: [NO, SE], default: NO}}\n"
        "        - {name: since, in: query, schema: {type: string, default: 2026-01-01}}\n"
        "        - {name: max, in: query, schema: {type: [integer, 'null'], exclusiveMinimum: 0}}\n"
        "      responses: {200: {description: ok}}\n"
    )
    (tmp_path / "shop.tools.yaml").write_text("document: shop.yaml\nservers: ['https://x']\n")
    [tool] = read_source("shop.yaml", tmp_path / "shop.yaml").make_tools()
    assert tool.name == "shop.list"
    assert tool.parameters["properties"]["country"]["enum"] == ["NO", "SE"]
    assert tool.parameters["properties"]["since"]["default"] == "2026-01-01"
    assert tool.validate({"max": 3, "country": None}).canonical == b'{"max":3}'
    with pytest.raises(ArgumentsInvalid):
        tool.validate({"max": 0})
