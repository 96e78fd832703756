"""The table of settings of a run: names, defaults, bounds and help, from which flags, environment and docs
are made.

Imports nothing of ours, so that the command line can show its help at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

KIB: Final = 1 << 10
MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One row of the table.

    Attributes:
        name: field of `Limits`; the flag is ``--name-with-dashes``, the environment name ``BASCULE_NAME``.
        default, minimum, maximum: in ``unit``; whole numbers when ``default`` is one.
        unit: as shown to people.
        help: one line.
    """

    name: str
    default: float
    minimum: float
    maximum: float
    unit: str
    help: str

    @property
    def flag(self) -> str:
        return "--" + self.name.replace("_", "-")

    @property
    def environment(self) -> str:
        return "BASCULE_" + self.name.upper()

    @property
    def whole(self) -> bool:
        return isinstance(self.default, int)


SETTINGS: Final[tuple[Setting, ...]] = (
    Setting(
        name="wall_s",
        default=30.0,
        minimum=0.1,
        maximum=3600.0,
        unit="s",
        help="Time the script itself may be running; waiting for tools and people does not count.",
    ),
    Setting(
        name="cpu_s", default=30.0, minimum=0.1, maximum=3600.0, unit="s", help="CPU time of the script."
    ),
    Setting(
        name="run_s",
        default=600.0,
        minimum=0.1,
        maximum=86_400.0,
        unit="s",
        help="Time of the whole run with its tools; waiting for people does not count.",
    ),
    Setting(
        name="start_s",
        default=30.0,
        minimum=0.1,
        maximum=600.0,
        unit="s",
        help="Time until the guest says hello.",
    ),
    Setting(
        name="memory_bytes",
        default=256 * MIB,
        minimum=16 * MIB,
        maximum=16 << 30,
        unit="bytes",
        help="Memory the script may add to the idle guest.",
    ),
    Setting(
        name="output_bytes",
        default=256 * KIB,
        minimum=1 * KIB,
        maximum=64 * MIB,
        unit="bytes",
        help="Printed text kept in all; a script that prints more ends there.",
    ),
    Setting(
        name="calls",
        default=1000,
        minimum=1,
        maximum=1_000_000,
        unit="calls",
        help="Tool calls in all; a script that makes more ends there.",
    ),
    Setting(
        name="in_flight",
        default=128,
        minimum=1,
        maximum=1024,
        unit="calls",
        help="Tools running at once for one run; further calls wait their turn.",
    ),
    Setting(
        name="result_bytes",
        default=16 * MIB,
        minimum=1 * KIB,
        maximum=64 * MIB,
        unit="bytes",
        help="One result; a larger one is an error of that call.",
    ),
    Setting(
        name="results_bytes",
        default=256 * MIB,
        minimum=1 * KIB,
        maximum=4 << 30,
        unit="bytes",
        help="All results of a run together; a script that asks for more ends there.",
    ),
    Setting(
        name="recursion",
        default=800,
        minimum=50,
        maximum=5000,
        unit="calls",
        help="Depth of nested function calls in the script.",
    ),
    Setting(
        name="hold_warm_s",
        default=30.0,
        minimum=0.0,
        maximum=86_400.0,
        unit="s",
        help="A run that waits this long for people or timers only gives its sandbox back.",
    ),
)
"""All settings of a run, in the order they are documented."""
