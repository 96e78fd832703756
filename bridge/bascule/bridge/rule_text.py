"""Reads the YAML of a rule file: what is written is what is meant.

Safe types only; no key twice, because the last one would win silently; scalars as in YAML 1.2, so that the
country code ``NO`` is a text and not false, and ``010`` or ``2026-11-29`` are texts too.
"""

from __future__ import annotations

import re
from typing import Any

import yaml


class _Loader(yaml.SafeLoader):
    """The safe loader, strict about keys and with few implicit types."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012  # the library's own class attribute

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        twice = sorted({key for key in keys if keys.count(key) > 1})
        if twice:
            raise yaml.constructor.ConstructorError(
                None, None, f"the key {twice[0]!r} stands twice in one mapping", node.start_mark
            )
        return super().construct_mapping(node, deep)


_SCALARS = (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", r"~|null|Null|NULL", "~nN"),
    ("null", "", ""),
    ("int", r"[-+]?(?:0|[1-9][0-9]*)", "-+0123456789"),
    ("float", r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?", "-+.0123456789"),
)
"""Tags, what they look like, and the characters they begin with."""

for _tag, _pattern, _begins in _SCALARS:
    _found = (f"tag:yaml.org,2002:{_tag}", re.compile(rf"(?:{_pattern})$"))
    for _character in _begins or [""]:
        _Loader.yaml_implicit_resolvers.setdefault(_character, []).append(_found)


def read_yaml(text: bytes | str) -> object:
    """Return what YAML text says.

    Raises:
        ValueError: it is no valid YAML, or says something twice.
    """
    try:
        return yaml.load(text, Loader=_Loader)  # a safe loader
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError(str(error)) from error
