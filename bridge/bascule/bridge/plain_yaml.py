"""YAML without its traps: no key twice, no anchors.

PyYAML takes the last of two equal keys, so that a second ``rules:`` silently replaces the first; and an alias
of an alias of an alias makes a few lines into more values than any host has memory for. Scalars are those of
YAML 1.2: the country code ``NO`` is a text and not false, ``010`` and ``2026-11-29`` are texts too.
"""

from __future__ import annotations

import re
from typing import Any

import yaml


class _PlainLoader(yaml.SafeLoader):
    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012  # the library's own class attribute

    def compose_node(self, parent: Any, index: Any) -> Any:
        loader: Any = self  # the stubs of PyYAML know little of its insides
        event = loader.peek_event()
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            raise _refused("anchors and aliases are not taken", event)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        seen: set[tuple[str, str]] = set()
        for key, _ in node.value:
            written = (key.tag, str(key.value))
            if written in seen:
                raise _refused(f"the key {key.value!r:.80} is there twice", key)
            seen.add(written)
        return super().construct_mapping(node, deep=deep)


_SCALARS = (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", r"~|null|Null|NULL", "~nN"),
    ("null", "", ""),
    ("int", r"[-+]?(?:0|[1-9][0-9]*)", "-+0123456789"),
    ("float", r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?", "-+.0123456789"),
    ("float", r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)", "-+."),
)
"""Tags, what they look like, and the characters they begin with."""

for _tag, _pattern, _begins in _SCALARS:
    _found = (f"tag:yaml.org,2002:{_tag}", re.compile(rf"(?:{_pattern})$"))
    for _character in _begins or [""]:
        _PlainLoader.yaml_implicit_resolvers.setdefault(_character, []).append(_found)


def _refused(problem: str, place: Any) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=place.start_mark)


def parse_yaml(text: bytes | str) -> object:
    """Return the data of one YAML document.

    Raises:
        ValueError: it is not valid, or uses what is not taken; the message names the place.
    """
    try:
        data: object = yaml.load(text, _PlainLoader)  # a safe loader, and stricter
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = "" if mark is None else f"line {mark.line + 1}, column {mark.column + 1}: "
        raise ValueError(f"{place}{error.problem or error.context}") from error
    except Exception as error:  # PyYAML raises whatever its constructors stumble over
        raise ValueError(str(error) or type(error).__name__) from error
    return data
