"""Gives a command one flag for each row of the table of limits: its bounds, its default, its words."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Optional

import typer

from bascule.bridge.settings import SETTINGS


def add_limit_flags(function: Callable[..., None], annotations: Mapping[str, Any]) -> Callable[..., None]:
    """Return a command that typer reads: the function's own flags, then those of the limits.

    Args:
        function: takes its flags and, as further keywords, the limits by name; None is not given.
        annotations: of the function's own flags, as typer reads them.
    """

    def command(**values: Any) -> None:
        function(**values)

    defaults = {name: parameter.default for name, parameter in inspect.signature(function).parameters.items()}
    flags: dict[str, Any] = dict(annotations)
    for setting in SETTINGS:
        number = int if setting.whole else float
        option = typer.Option(
            setting.flag,
            min=setting.minimum,
            max=setting.maximum,
            metavar=setting.unit.upper(),
            help=f"{setting.help} Default: {setting.default:,}. Environment: {setting.environment}.",
            rich_help_panel="Limits",
        )
        flags[setting.name] = Annotated[Optional[number], option]  # noqa: UP045  # built at run time
        defaults[setting.name] = None
    kind = inspect.Parameter.KEYWORD_ONLY
    parameters = [
        inspect.Parameter(name, kind, default=defaults[name], annotation=annotation)
        for name, annotation in flags.items()
    ]
    command.__doc__ = function.__doc__
    command.__annotations__ = flags
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # typer looks here
    return command
