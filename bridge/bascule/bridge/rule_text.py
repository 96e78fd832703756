"""Reads the YAML of a rule file: safe types only, and no key twice: the last one would win silently."""

from __future__ import annotations

from typing import Any

import yaml


class _Loader(yaml.SafeLoader):
    """The safe loader, strict about keys."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        twice = sorted({key for key in keys if keys.count(key) > 1})
        if twice:
            raise yaml.constructor.ConstructorError(
                None, None, f"the key {twice[0]!r} stands twice in one mapping", node.start_mark
            )
        return super().construct_mapping(node, deep)


def read_yaml(text: bytes | str) -> object:
    """Return what YAML text says.

    Raises:
        ValueError: it is no valid YAML, or says something twice.
    """
    try:
        return yaml.load(text, Loader=_Loader)  # a safe loader
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError(str(error)) from error
