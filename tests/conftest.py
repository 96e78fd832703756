"""What every test shares: asyncio as the one event loop, and the rule that `engine` tests need an engine.

Nothing here starts an engine: `.ci/with-engine` does. Without one the marked tests fail with the reason,
they do not skip, because a machine without an engine has proven nothing about containers.
"""

from __future__ import annotations

import pytest

pytest_plugins = ("tests.second_attempts",)


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Run `@pytest.mark.anyio` tests on asyncio only; the product uses nothing else."""
    return "asyncio"
