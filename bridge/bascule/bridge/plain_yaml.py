"""YAML without its traps: no key twice, no anchors.

PyYAML takes the last of two equal keys, so that a second ``rules:`` silently replaces the first; and an alias
of an alias of an alias makes a few lines into more values than any host has memory for.
"""

from __future__ import annotations

from typing import Any

import yaml


class _PlainLoader(yaml.SafeLoader):
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


def _refused(problem: str, place: Any) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=place.start_mark)


def parse_yaml(text: bytes | str) -> object:
    """Return the data of one YAML document.

    Raises:
        ValueError: it is not valid, or uses what is not taken; the message names the place.
    """
    try:
        data: object = yaml.load(text, _PlainLoader)  # a safe loader, and stricter
    except Exception as error:  # PyYAML raises whatever its constructors stumble over
        raise ValueError(str(error) or type(error).__name__) from error
    return data
