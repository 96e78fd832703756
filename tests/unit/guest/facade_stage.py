"""A run's facades without the rest of the guest: what the facade tests share.

The guards here read attributes freely: what facades do is tested here, what scripts may read of them in
``tests/escape/test_reachability.py`` with the real guards.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any, NoReturn, cast

from bascule.guest.clock import Clock
from bascule.guest.environment import Environment
from bascule.guest.facade import Facade, Rows
from bascule.guest.facades import Modules, build_modules
from bascule.guest.loop import Loop
from bascule.guest.output import Output

NOW = 1_767_225_600.25
"""2026-01-01T00:00:00.25Z."""


class OpenGuards:
    """Guards that let everything through and remember what they were told."""

    def __init__(self) -> None:
        self.admitted: list[Rows] = []
        self.own: set[type] = set()
        self.read_names: list[str] = []

    def read(self, value: object, name: str, /) -> Any:
        self.read_names.append(name)
        return getattr(value, name)

    def owns(self, cls: type, /) -> bool:
        return cls in self.own

    def adopt(self, cls: type, /) -> None:
        self.own.add(cls)

    def view(self, cls: type, /) -> object:
        return cls

    def number(self, value: object, /) -> int:
        return id(value)

    def number_of(self, value: object, /) -> int | None:
        return id(value)

    def admit(self, rows: Rows, /) -> None:
        self.admitted.append(rows)


@dataclass
class SleepRecord:
    """Stands for the loop: remembers how long the script wanted to sleep."""

    slept_s: list[float] = field(default_factory=list[float])

    def sleep(self, seconds: float) -> None:
        self.slept_s.append(seconds)


class Stage:
    """One run's facades and everything they can touch."""

    def __init__(self, *, seed: int = 7) -> None:
        self.guards = OpenGuards()
        self.clock = Clock(NOW)
        self.sleeps = SleepRecord()
        self.output = Output(cap_bytes=1 << 20, hand_over=lambda: None, overflow=_overflow)
        self.environment = Environment(
            clock=self.clock, rng=random.Random(seed), output=self.output, loop=cast(Loop, self.sleeps)
        )
        self.modules: Modules = build_modules(self.environment, self.guards)

    def __getitem__(self, name: str) -> Any:
        return cast(Any, self.modules[name])

    def owned(self, cls: type) -> Any:
        """Count a class as made by the script."""
        self.guards.adopt(cls)
        return cls

    def members(self, name: str) -> dict[str, object]:
        """Return what a facade holds."""
        return dict(vars(self.modules[name]))

    def printed(self) -> str:
        return self.output.take()


def _overflow(size: int) -> NoReturn:
    raise AssertionError(f"printed {size} bytes")


def names_of(facade: Facade) -> set[str]:
    """Return the public names a facade gives."""
    return {name for name in vars(facade) if not name.startswith("_")}
