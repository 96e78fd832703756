"""What the guest's tests share: the threads of pools are measured when the tests are."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from bascule.guest.workers import Carrier


@pytest.fixture(scope="session", autouse=True)
def threads_are_measured() -> Iterator[None]:
    """Hand the tracer of a coverage run to the guest's threads, which are made below ``threading``."""
    carrier: Any = Carrier
    serve = carrier._serve

    def measured(self: Carrier) -> None:
        sys.settrace(threading.gettrace())
        serve(self)

    carrier._serve = measured
    yield
    carrier._serve = serve
