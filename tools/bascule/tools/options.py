"""The options of the `tool` decorator: what each may be.

Every mistake is a `ToolDefinitionError` that names the place of the function.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection
from typing import Literal, get_args

from bascule.tools.errors import ToolDefinitionError
from bascule.tools.naming import check_word

Effects = Literal["read", "idempotent", "once"]
"""read: changes nothing. idempotent: twice is as once. once: must not happen twice; people may be asked."""

DEFAULT_TIMEOUT_S = 60.0
MAX_TIMEOUT_S = 3600.0


def check_options(name: str, effects: str, timeout_s: float, location: str | None) -> None:
    """Check what a call may do and how long it may take."""
    if effects not in get_args(Effects):
        raise ToolDefinitionError(
            "tool_option_invalid",
            f"{name}(): effects is {effects!r:.60}; it must be one of {', '.join(get_args(Effects))}",
            location=location,
        )
    if not 0 < timeout_s <= MAX_TIMEOUT_S:
        raise ToolDefinitionError(
            "tool_option_invalid",
            f"{name}(): timeout_s is {timeout_s}; it must be above 0 and at most {MAX_TIMEOUT_S:g}",
            location=location,
        )


def read_labels(name: str, labels: Collection[str], location: str | None) -> frozenset[str]:
    """Return the labels, each a word."""
    if isinstance(labels, str):
        raise ToolDefinitionError(
            "tool_option_invalid",
            f"{name}(): labels is a text; write a set, {{{labels!r:.60}}}",
            location=location,
        )
    for label in labels:
        check_word("label", label, location=location)
    return frozenset(labels)


def read_resource(resource: str | None, location: str | None) -> str | None:
    """Return the resource, a word or None."""
    if resource is not None:
        check_word("resource", resource, location=location)
    return resource


def read_secrets(
    name: str, secrets: Collection[str], context: str | None, location: str | None
) -> tuple[str, ...]:
    """Return the names of secrets, sorted; a tool without a context cannot be given any."""
    if isinstance(secrets, str):
        raise ToolDefinitionError(
            "tool_option_invalid",
            f"{name}(): secrets is a text; write a set of names, {{{secrets!r:.60}}}",
            location=location,
        )
    for secret in secrets:
        check_word("secret", secret, location=location)
    if secrets and context is None:
        raise ToolDefinitionError(
            "tool_option_invalid",
            f"{name}(): secrets are given in the context; add a parameter: context: ToolContext",
            location=location,
        )
    return tuple(sorted(set(secrets)))


def read_inline(name: str, function: object, location: str | None, *, inline: bool) -> bool:
    """Return whether the function runs on the event loop; an async one always does."""
    if inline and inspect.iscoroutinefunction(function):
        raise ToolDefinitionError(
            "tool_option_invalid",
            f"{name}(): inline is for synchronous functions; an async one never has a thread; leave it out",
            location=location,
        )
    return inline


def read_version(version: str | None, location: str | None) -> str | None:
    """Return the version, a word or None."""
    if version is not None:
        check_word("version", version, location=location)
    return version


def read_rate(name: str, rate: str | None, location: str | None) -> str | None:
    """Return the rate, if it reads as one."""
    if rate is None:
        return None
    from limits import parse  # only tools with a rate pay for the import

    try:
        parse(rate)
    except ValueError as error:
        raise ToolDefinitionError(
            "tool_option_invalid",
            f"{name}(): rate is {rate!r:.60}; write for example 10/minute",
            location=location,
        ) from error
    return rate
