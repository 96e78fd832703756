"""From an operation of a document to a tool: its arguments, its request, its result.

What scripts pass was validated; what the document says was tamed; what the operator confirmed decides where
the request goes. A request is put together here and sent by `ServiceClient`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, cast
from urllib.parse import quote, unquote

from pydantic import JsonValue

from bascule.tools.canonical import check_plain
from bascule.tools.context import ToolContext
from bascule.tools.errors import ToolLoadError
from bascule.tools.imported.bounds import MAX_ARGUMENT_NODES, MAX_RESULT_NODES
from bascule.tools.imported.failures import ServiceUnreachable
from bascule.tools.imported.narrowing import narrow_unions
from bascule.tools.imported.taming import Tamer, tame_pair
from bascule.tools.imported.tool import Member, Operation
from bascule.tools.openapi.bodies import Body, read_body, write_body
from bascule.tools.openapi.client import Request, ServiceClient
from bascule.tools.openapi.document import Document
from bascule.tools.openapi.operations import Found, describe
from bascule.tools.openapi.parameters import (
    STYLES,
    Place,
    RequestParameter,
    write_cookie,
    write_header,
    write_path,
    write_query,
)
from bascule.tools.openapi.security import Credential
from bascule.tools.openapi.selection import Selection
from bascule.tools.schema import JsonSchema, is_array, is_object

WHOLE_BODY: Final = "body:"
_NOT_PARAMETERS: Final = frozenset(
    {"accept", "content-type", "authorization", "host", "content-length", "cookie"}
)
_TOKEN: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~!#$%&'*+^`|")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How the requests of one operation are made."""

    method: str
    path: str
    base: str
    parameters: Mapping[str, RequestParameter]
    body: Body | None
    credentials: tuple[Credential, ...] = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    key_header: str | None
    accept: str
    timeout_s: float

    def make_request(self, arguments: Mapping[str, JsonValue], context: ToolContext) -> Request:
        """Return the request for some arguments.

        Raises:
            ValueError: one cannot be written where it belongs.
        """
        path, query, cookies = self.path, list[str](), list[str]()
        headers = {"Accept": self.accept, **self.headers}
        for key, value in arguments.items():
            parameter = self.parameters.get(key)
            if parameter is None:
                continue
            match parameter.place:
                case "path":
                    path = path.replace(f"{{{parameter.name}}}", write_path(parameter, value))
                case "query":
                    query += write_query(parameter, value)
                case "header":
                    headers[parameter.name] = write_header(parameter, value)
                case "cookie":
                    cookies.append(write_cookie(parameter, value))
        for credential in self.credentials:
            match credential.place:
                case "header":
                    headers[credential.name] = credential.value
                case "query":
                    query.append(f"{credential.name}={credential.value}")
                case "cookie":
                    cookies.append(f"{credential.name}={credential.value}")
        if cookies:
            headers["Cookie"] = "; ".join(cookies)
        if self.key_header is not None and context.idempotency_key:
            headers[self.key_header] = context.idempotency_key
        body = self._body(arguments)
        if body is not None:
            headers["Content-Type"] = body[1]
        url = self.base.rstrip("/") + path + (f"?{'&'.join(query)}" if query else "")
        return Request(
            method=self.method.upper(),
            url=url,
            headers=headers,
            body=None if body is None else body[0],
            timeout_s=self.timeout_s,
        )

    def _body(self, arguments: Mapping[str, JsonValue]) -> tuple[bytes, str] | None:
        if self.body is None:
            return None
        if WHOLE_BODY in arguments:
            return write_body(self.body, arguments[WHOLE_BODY])
        members: dict[str, JsonValue] = {
            key.removeprefix(WHOLE_BODY): value
            for key, value in arguments.items()
            if key.startswith(WHOLE_BODY)
        }
        return write_body(self.body, members) if members or self.body.required else None


def build(
    document: Document,
    found: Found,
    selection: Selection,
    client: ServiceClient,
    *,
    name: str,
    base: str,
    credentials: tuple[Credential, ...],
    hidden: frozenset[tuple[str, str]],
) -> Operation:
    """Return the tool's making for an operation.

    Args:
        base: confirmed address that requests go to.
        hidden: place and lower-case name of parameters that scripts do not pass: they authenticate.

    Raises:
        ToolLoadError: a parameter of the path is not described.
    """
    tamer = Tamer(document.resolve, side="argument", max_nodes=MAX_ARGUMENT_NODES)
    key_header = _key_header(found, selection)
    parameters: dict[str, RequestParameter] = {}
    members: list[Member] = []
    for plain in found.parameters:
        parameter = _read_parameter(plain, hidden, key_header)
        if parameter is not None:
            key = f"{parameter.place}:{parameter.name}"
            parameters[key] = parameter
            members.append(_member(key, parameter.name, plain, _schema_of(plain), tamer, parameter))
    path, more = _complete_path(found, parameters)
    parameters |= more
    members += [
        Member(name=key, wanted=each.name, schema={"type": "string"}, required=True)
        for key, each in more.items()
    ]
    body = read_body(document, found.plain.get("requestBody"), lambda schema: tamer.merge(tamer.find(schema)))
    if body is not None:
        members += _body_members(body, tamer)
    defs = tamer.definitions()
    tamed, defs = narrow_unions({"properties": {member.name: member.schema for member in members}}, defs)
    members = [replace(member, schema=tamed["properties"][member.name]) for member in members]
    effects = selection.effects_of(found.id, found.suggested)
    plan = Plan(
        method=found.method,
        path=path,
        base=base,
        parameters=parameters,
        body=body,
        credentials=credentials,
        headers=selection.headers,
        key_header=key_header,
        accept="application/json, text/*;q=0.5, */*;q=0.1",
        timeout_s=selection.timeout_s,
    )
    returns = _returns(document, found)

    async def call(arguments: dict[str, JsonValue], context: ToolContext) -> object:
        return await client.send(plan.make_request(arguments, context), effects=effects)

    return Operation(
        name=name,
        description=describe(found),
        members=tuple(sorted(_told_apart(members), key=lambda each: not each.required)),
        defs=defs,
        returns=returns,
        call=call,
        location=document.name,
        effects=effects,
        labels=selection.labels,
        timeout_s=selection.timeout_s,
        transient=(ServiceUnreachable,),
        checks_result=selection.check_responses and returns is not None,
    )


def _key_header(found: Found, selection: Selection) -> str | None:
    """Return the header the idempotency key goes into, None where a request changes nothing."""
    name = selection.idempotency_header
    return None if name is None or found.suggested == "read" else name


def _read_parameter(
    plain: JsonSchema, hidden: frozenset[tuple[str, str]], key_header: str | None
) -> RequestParameter | None:
    name, place = str(plain["name"]), plain["in"]
    lowered = name.lower()
    if place not in STYLES or (place, lowered) in hidden:
        return None
    if place == "header":
        is_ours = lowered in _NOT_PARAMETERS or (key_header is not None and lowered == key_header.lower())
        if is_ours or not all(character in _TOKEN for character in name):
            return None
    style = plain.get("style")
    chosen = style if isinstance(style, str) else STYLES[place]
    explode = plain.get("explode")
    return RequestParameter(
        name=name,
        place=cast("Place", place),
        style=chosen,
        explode=explode if isinstance(explode, bool) else chosen == "form",
        as_json="schema" not in plain and is_object(plain.get("content")),
    )


def _schema_of(plain: JsonSchema) -> object:
    if "schema" in plain:
        return plain["schema"]
    content = plain.get("content")
    media = next(iter(content.values()), None) if is_object(content) else None
    return media.get("schema", {}) if is_object(media) else {}


def _member(
    key: str, name: str, plain: JsonSchema, schema: object, tamer: Tamer, parameter: RequestParameter | None
) -> Member:
    told = plain.get("description")
    node: JsonSchema = (
        {**schema, "description": told}
        if is_object(schema) and isinstance(told, str)
        else cast("Any", schema)
    )
    return Member(
        name=key,
        wanted=name,
        schema=tamer.tame(node),
        required=plain.get("required") is True or (parameter is not None and parameter.place == "path"),
        default=_default_of(schema),
    )


def _default_of(schema: object) -> JsonValue:
    default: Any = schema.get("default") if is_object(schema) else None
    try:
        check_plain(default, path="")
    except ValueError:
        return None
    return cast("JsonValue", default)


def _complete_path(
    found: Found, parameters: Mapping[str, RequestParameter]
) -> tuple[str, dict[str, RequestParameter]]:
    """Return the path, encoded but for its variables, and the variables that no parameter describes."""
    known = {each.name for each in parameters.values() if each.place == "path"}
    more: dict[str, RequestParameter] = {}
    written: list[str] = []
    if any(unquote(segment) in (".", "..") for segment in found.path.split("/")):
        raise ToolLoadError(
            "tool_source_invalid", f"{found.id:.100}: its path leads out of the confirmed address"
        )
    rest = found.path
    while rest:
        before, brace, after = rest.partition("{")
        written.append(quote(before, safe="/:@!$&'()*+,;=~-._%"))
        if not brace:
            break
        name, closing, rest = after.partition("}")
        if not closing or not name:
            raise ToolLoadError("tool_source_invalid", f"{found.id:.100}: its path has a brace too many")
        written.append(f"{{{name}}}")
        if name not in known:
            more[f"path:{name}"] = RequestParameter(name=name, place="path", style="simple", explode=False)
            known.add(name)
    return "".join(written), more


def _body_members(body: Body, tamer: Tamer) -> list[Member]:
    if body.members is None:
        return [
            Member(name=WHOLE_BODY, wanted="body", schema=tamer.tame(body.schema), required=body.required)
        ]
    members: list[Member] = []
    for name, schema in body.members.items():
        found = tamer.find(schema)
        if found.get("readOnly") is True or not name or len(name) > 200:
            continue
        required = body.required and name in body.needed
        members.append(
            Member(
                name=f"{WHOLE_BODY}{name}",
                wanted=name,
                schema=tamer.tame(schema),
                required=required,
                default=_default_of(schema),
            )
        )
    return members


def _told_apart(members: list[Member]) -> list[Member]:
    """Name an argument after its place where another one has its name."""
    seen: set[str] = set()
    apart: list[Member] = []
    for member in members:
        wanted = member.wanted
        if wanted in seen:
            wanted = f"{member.name.partition(':')[0]}_{wanted}"
        seen.add(wanted)
        apart.append(replace(member, wanted=wanted))
    return apart


def _returns(document: Document, found: Found) -> JsonSchema | None:
    responses = found.plain.get("responses")
    if not is_object(responses):
        return None
    codes = sorted(code for code in responses if code.startswith("2"))
    for code in codes or ["default"]:
        content = document.find(responses.get(code)).get("content")
        for media_type, media in content.items() if is_object(content) else ():
            if "json" in str(media_type).lower() and is_object(media) and "schema" in media:
                tamer = Tamer(document.resolve, side="result", max_nodes=MAX_RESULT_NODES)
                return tame_pair(tamer, media["schema"]) or None
    return None


def document_servers(document: Document, listed: object) -> list[str]:
    """Return the addresses a list of servers names, its variables at their defaults."""
    found: list[str] = []
    for node in listed[:100] if is_array(listed) else ():
        url = node.get("url") if is_object(node) else None
        if not isinstance(url, str):
            continue
        variables = node.get("variables") if is_object(node) else None
        for name, variable in variables.items() if is_object(variables) else ():
            default = variable.get("default") if is_object(variable) else None
            url = url.replace(f"{{{name}}}", str(default))
        found.append(url.rstrip("/"))
    return found
