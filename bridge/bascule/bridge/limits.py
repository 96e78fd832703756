"""The limits of a run, checked against the table of settings.

Every limit is finite and an omitted one has a safe default; unlimited cannot be expressed. Values come from
the operator (constructor, flags, environment) and are trusted once they lie within their bounds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Final

from bascule.bridge.errors import LimitsError
from bascule.bridge.settings import KIB, MIB, SETTINGS, Setting
from bascule.wire import GuestLimits
from bascule.wire.codec import MAX_GUEST_FRAME_BYTES

GUEST_GRACE_S: Final = 2.0
"""Seconds the host waits beyond the guest's own deadline, so that the guest's better message can arrive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of one run; see `SETTINGS` for bounds and meaning.

    Raises:
        LimitsError: a value lies outside its bounds.
    """

    wall_s: float = 30.0
    cpu_s: float = 30.0
    run_s: float = 600.0
    start_s: float = 30.0
    memory_bytes: int = 256 * MIB
    output_bytes: int = 256 * KIB
    calls: int = 1000
    in_flight: int = 128
    result_bytes: int = 16 * MIB
    results_bytes: int = 256 * MIB
    recursion: int = 800
    hold_warm_s: float = 30.0

    def __post_init__(self) -> None:
        for setting in SETTINGS:
            _check(setting, getattr(self, setting.name))

    def for_guest(self) -> GuestLimits:
        """Return the share of the limits that the guest enforces on itself."""
        return GuestLimits(
            wall_s=self.wall_s,
            cpu_s=self.cpu_s,
            memory_bytes=self.memory_bytes,
            output_bytes=self.output_bytes,
            recursion=self.recursion,
            calls=self.calls,
            frame_bytes=MAX_GUEST_FRAME_BYTES,
        )


def read_limits(
    given: Mapping[str, float | None], environment: Mapping[str, str], *, base: Limits | None = None
) -> Limits:
    """Return limits from flags, then environment, then ``base``.

    Args:
        given: values by setting name; None means not given.
        environment: usually ``os.environ``; only the names of `SETTINGS` are read.

    Raises:
        LimitsError: a value is not a number or lies outside its bounds.
    """
    base = base or Limits()
    values: dict[str, float] = {field.name: getattr(base, field.name) for field in fields(Limits)}
    for setting in SETTINGS:
        flag = given.get(setting.name)
        text = environment.get(setting.environment)
        if flag is not None:
            values[setting.name] = flag
        elif text is not None:
            values[setting.name] = _parse(setting, text)
    return Limits(**values)  # type: ignore[arg-type]  # _check refuses fractions where whole numbers are due


def _parse(setting: Setting, text: str) -> float:
    try:
        return int(text) if setting.whole else float(text)
    except ValueError:
        raise LimitsError(f"{setting.environment} must be a number in {setting.unit}, not {text!r}") from None


def _check(setting: Setting, value: float) -> None:
    if setting.whole and not isinstance(value, int):
        raise LimitsError(f"{setting.name} must be a whole number of {setting.unit}, not {value!r}")
    if not math.isfinite(value) or not setting.minimum <= value <= setting.maximum:
        raise LimitsError(
            f"{setting.name} must be between {setting.minimum:g} and {setting.maximum:g} {setting.unit},"
            f" not {value!r}"
        )
