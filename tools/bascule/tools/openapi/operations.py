"""The operations of a document: found, named, and put into words; nothing is sent here.

A document may leave out every id, use one twice, or write anything into it: names are made of what there is,
each its own. What cannot be called is left out with a note for the operator.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from bascule.tools.imported.words import clean_phrase, clean_text
from bascule.tools.openapi.document import Document
from bascule.tools.options import Effects
from bascule.tools.schema import JsonSchema, is_array, is_object

METHODS: Final[dict[str, Effects]] = {
    "get": "read",
    "head": "read",
    "options": "read",
    "put": "idempotent",
    "delete": "idempotent",
    "post": "once",
    "patch": "once",
    "trace": "read",
}
"""Methods, with the effects RFC 9110 suggests for them."""

MAX_TEXT_CHARS: Final = 1500
MAX_TAGS: Final = 50
_CURSORS: Final = frozenset(
    {"cursor", "page_token", "pagetoken", "next_token", "nexttoken", "continue", "starting_after", "after"}
)
_PAGES: Final = frozenset({"page", "offset", "page_number", "pagenumber", "skip", "start"})
_SIZES: Final = frozenset(
    {"limit", "per_page", "page_size", "pagesize", "count", "max_results", "maxresults"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One operation as the document has it; all of it untrusted.

    Attributes:
        id: its operationId, or method and path where it has none or shares it; different for all.
        plain: its own object; parameters: those of path and operation, references followed.
        servers: what the operation or its path says in place of the document, None for nothing.
        suggested: the effects its method suggests.
        notes: what was repaired.
    """

    id: str
    method: str
    path: str
    tags: list[str]
    plain: JsonSchema
    parameters: list[JsonSchema]
    servers: list[Any] | None
    suggested: Effects
    notes: tuple[str, ...]


def find_operations(document: Document) -> list[Found]:
    """Return every operation, in the order of the document."""
    listed = list(_walk(document))
    counts = Counter(_own_id(plain) for _, _, plain, _ in listed)
    return [
        _read(document, method, path, plain, shared, alone=counts[_own_id(plain)] == 1)
        for method, path, plain, shared in listed
    ]


def _walk(document: Document) -> Iterator[tuple[str, str, JsonSchema, JsonSchema]]:
    paths = document.data.get("paths")
    for path, node in paths.items() if is_object(paths) else ():
        item = document.find(node)
        for method in METHODS:
            plain = item.get(method)
            if is_object(plain) and path.startswith("/"):
                yield method, path, plain, item


def _own_id(plain: JsonSchema) -> str:
    own = plain.get("operationId")
    return own.strip() if isinstance(own, str) else ""


def _read(
    document: Document, method: str, path: str, plain: JsonSchema, shared: JsonSchema, *, alone: bool
) -> Found:
    own = _own_id(plain)
    notes: list[str] = []
    if not own:
        notes.append("it has no operationId")
    elif not alone:
        notes.append(f"another operation has the id {clean_phrase(own, max_chars=80)!r} too")
    if len(own) > 64:
        notes.append("its operationId is longer than 64 characters")
    if not (plain.get("summary") or plain.get("description")):
        notes.append("it has no summary and no description")
    tags = plain.get("tags")
    servers = plain.get("servers", shared.get("servers"))
    return Found(
        id=own if own and alone else f"{method} {path}",
        method=method,
        path=path,
        tags=[tag for tag in tags[:MAX_TAGS] if isinstance(tag, str)] if is_array(tags) else [],
        plain=plain,
        parameters=_parameters(document, shared, plain),
        servers=servers if is_array(servers) and servers else None,
        suggested=METHODS[method],
        notes=tuple(notes),
    )


def _parameters(document: Document, *holders: JsonSchema) -> list[JsonSchema]:
    """Return parameters, an operation's own in place of those of its path."""
    found: dict[tuple[str, str], JsonSchema] = {}
    for holder in holders:
        listed = holder.get("parameters")
        for node in listed[:500] if is_array(listed) else ():
            parameter = document.find(node)
            name, place = parameter.get("name"), parameter.get("in")
            if isinstance(name, str) and isinstance(place, str) and 0 < len(name) <= 200:
                found[place, name] = parameter
    return list(found.values())


def describe(found: Found) -> str:
    """Return what models are told of an operation."""
    summary = clean_phrase(found.plain.get("summary"), max_chars=200)
    more = clean_text(found.plain.get("description"), max_chars=MAX_TEXT_CHARS)
    if summary and not summary.endswith((".", "!", "?")):
        summary += "."
    if more.startswith(summary.rstrip(".")):
        summary = ""
    request = clean_phrase(f"{found.method.upper()} {found.path}", max_chars=200)
    parts = [summary, more, _paging(found), "Deprecated." if found.plain.get("deprecated") is True else ""]
    told = "\n\n".join(part for part in parts if part)
    return f"{told}\n\nRequest: {request}" if told else f"{request}."


def _paging(found: Found) -> str:
    """Say how further results are had, where parameters or a Link header tell."""
    names = {str(each["name"]).lower().replace("-", "_"): str(each["name"]) for each in found.parameters}
    said: list[str] = []
    for known, words in (
        (_CURSORS, "pass the cursor of the answer before as {}"),
        (_PAGES, "count up {}"),
        (_SIZES, "set how many at once with {}"),
    ):
        matching = [name for lowered, name in names.items() if lowered in known]
        if matching:
            said.append(words.format(clean_phrase(matching[0], max_chars=60)))
    has_link = _has_link(found.plain)
    if not said and not has_link:
        return ""
    if has_link:
        said.append("the answer's Link header names the next page")
    return f"Results come in pages: {'; '.join(said)}."


def _has_link(plain: JsonSchema) -> bool:
    responses = plain.get("responses")
    for response in list(responses.values())[:20] if is_object(responses) else ():
        headers = response.get("headers") if is_object(response) else None
        if is_object(headers) and any(name.lower() == "link" for name in headers):
            return True
    return False
