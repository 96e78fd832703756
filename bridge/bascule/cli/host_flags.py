"""Flags that several commands have: which engine and runtime to use, and which secrets tools get."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

DockerHostFlag = Annotated[str | None, typer.Option("--docker-host", help="Address of the engine.")]
RuntimeFlag = Annotated[
    str | None, typer.Option("--runtime", help="Container runtime, as the engine names it.")
]
SecretFlag = Annotated[
    Optional[list[str]],  # noqa: UP045  # read by typer at run time
    typer.Option("--secret", metavar="NAME", help="Environment variable that tools may use. Repeatable."),
]
