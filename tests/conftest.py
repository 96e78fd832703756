"""What every test shares: asyncio as the one event loop, and the rule that `engine` tests need an engine.

Nothing here starts an engine: `.ci/with-engine` does. Without one the marked tests fail with the reason,
they do not skip, because a machine without an engine has proven nothing about containers.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ("tests.second_attempts",)

# How long an example takes says something about the machine only. In CI the examples are always the same.
settings.register_profile(
    "any-machine",
    settings.get_profile("ci" if os.environ.get("CI") else "default"),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("any-machine")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Run `@pytest.mark.anyio` tests on asyncio only; the product uses nothing else."""
    return "asyncio"
