"""An OpenAPI document, read within bounds: JSON or YAML, 3.0 or 3.1, and never anything beside itself.

The document is not trusted: no anchors, no references to files or addresses, bounded size and depth. Whether
it says the truth about its service is found out by calling it.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

import yaml

from bascule.tools.errors import ToolLoadError
from bascule.tools.imported.taming import read_pointer
from bascule.tools.schema import JsonSchema, is_object

MAX_DOCUMENT_BYTES: Final = 64 << 20
MAX_YAML_BYTES: Final = 16 << 20
MAX_DEPTH: Final = 200

_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_Events: Any = getattr(yaml, "CLoader", yaml.Loader)


class _PlainLoader(_Base):  # type: ignore[misc]  # which base there is depends on how PyYAML was built
    """Scalars of YAML 1.2 with text keys: ``NO`` is a text, a date is a text, ``200:`` is the key "200"."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012  # the library's own class attribute

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.MarkedYAMLError(problem="a key is no text", problem_mark=key.start_mark)
            if key.value in found:
                raise yaml.MarkedYAMLError(
                    problem=f"the key {key.value!r:.80} is there twice", problem_mark=key.start_mark
                )
            found[str(key.value)] = self.construct_object(value, deep=True)
        return found


_PlainLoader.add_constructor("tag:yaml.org,2002:map", _PlainLoader.construct_mapping)

_SCALARS: Final = (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", r"~|null|Null|NULL|", "~nN"),
    ("int", r"[-+]?[0-9]{1,300}", "-+0123456789"),
    ("float", r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?", "-+.0123456789"),
)

for _tag, _pattern, _begins in _SCALARS:
    _found = (f"tag:yaml.org,2002:{_tag}", re.compile(rf"(?:{_pattern})$"))
    for _character in [*_begins, *([""] if _tag == "null" else [])]:
        _PlainLoader.yaml_implicit_resolvers.setdefault(_character, []).append(_found)


class Document:
    """One document.

    Args:
        name: how it is called in messages.
        data: its content.

    Raises:
        ToolLoadError: it is no OpenAPI 3.0 or 3.1.
    """

    def __init__(self, name: str, data: object) -> None:
        version = data.get("openapi") if is_object(data) else None
        if not is_object(data) or not isinstance(version, str) or not re.match(r"3\.[01](?:\.|$)", version):
            said = (
                "Swagger 2.0; convert it first"
                if is_object(data) and "swagger" in data
                else "no OpenAPI 3.0 or 3.1"
            )
            raise ToolLoadError("tool_source_invalid", f"{name}: it is {said}")
        self.name = name
        self.data: JsonSchema = data

    def resolve(self, reference: str) -> object:
        """Return what a reference within the document names; None for nothing and for any other document."""
        return read_pointer(self.data, reference)

    def find(self, node: object) -> JsonSchema:
        """Return an object, through references; the empty one where there is none."""
        for _ in range(16):
            if not is_object(node):
                return {}
            reference = node.get("$ref")
            if not isinstance(reference, str):
                return node
            node = self.resolve(reference)
        return {}


def read_document(name: str, path: Path) -> Document:
    """Read a file.

    Raises:
        ToolLoadError: naming the file and, where there is one, the line.
    """
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_DOCUMENT_BYTES + 1)
        if len(raw) > MAX_DOCUMENT_BYTES:
            raise ToolLoadError("tool_source_invalid", f"{name}: larger than {MAX_DOCUMENT_BYTES} bytes")
        text = raw.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ToolLoadError("tool_source_invalid", f"{name}: {error}") from error
    return Document(name, parse_text(name, text))


def parse_text(name: str, text: str) -> object:
    """Return the data of a JSON or YAML text.

    Raises:
        ToolLoadError: it is neither, or uses what is not taken.
    """
    if text.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(text, parse_constant=_refuse_constant)
        except json.JSONDecodeError as error:
            raise ToolLoadError("tool_source_invalid", f"{name}:{error.lineno}: {error.msg}") from error
        except (ValueError, RecursionError) as error:
            raise ToolLoadError("tool_source_invalid", f"{name}: {error}") from error
    return parse_yaml(name, text)


def parse_yaml(name: str, text: str) -> object:
    """Return the data of a YAML text.

    Raises:
        ToolLoadError: naming the line.
    """
    if len(text) > MAX_YAML_BYTES:
        raise ToolLoadError("tool_source_invalid", f"{name}: YAML of more than {MAX_YAML_BYTES} characters")
    try:
        depth = 0
        for event in yaml.parse(text, Loader=_Events):
            mark: Any = event.start_mark
            if isinstance(event, yaml.AliasEvent):
                raise yaml.MarkedYAMLError(problem="aliases are not taken", problem_mark=mark)
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
            if depth > MAX_DEPTH:
                raise yaml.MarkedYAMLError(problem=f"deeper than {MAX_DEPTH}", problem_mark=mark)
        data: object = yaml.load(text, _PlainLoader)
    except yaml.MarkedYAMLError as error:
        line = "" if error.problem_mark is None else f":{error.problem_mark.line + 1}"
        raise ToolLoadError("tool_source_invalid", f"{name}{line}: {error.problem}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ToolLoadError("tool_source_invalid", f"{name}: {error}") from error
    return data


def _refuse_constant(constant: str) -> object:
    raise ValueError(f"{constant} is no JSON")
