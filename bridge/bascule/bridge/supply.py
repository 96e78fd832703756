"""Where the sandboxes of one executor come from: a backend that was given, or one that is opened once.

Nothing falls back: the isolation that was asked for is opened, or there is an error.
"""

from __future__ import annotations

import asyncio
from typing import Final

from bascule.bridge.guest import sandbox_limits
from bascule.bridge.limits import Limits
from bascule.bridge.matching import User
from bascule.sandbox import Backend, Isolation, PoolLimits, Reuse, WarmPool, open_backend

POOL_CEILING: Final = 64
"""Sandboxes of one executor alive at once; further runs wait their turn."""


class Supply:
    """Opens the backend of an executor, and closes what it has opened.

    Args:
        given: a ready backend, which is not closed here; a pool is used as this user's share of it.
        limits: of the runs, for sandboxes that are started ahead.

    Attributes:
        backend: what is open; None before and after.
    """

    def __init__(
        self,
        given: Backend | None,
        *,
        isolation: Isolation,
        limits: Limits,
        warm: int | None,
        reuse: Reuse,
        principal: str,
        docker_host: str | None,
        runtime: str | None,
    ) -> None:
        self.backend = given.for_principal(principal) if isinstance(given, WarmPool) else given
        self._owned = given is None
        self._isolation: Isolation = isolation
        self._limits = limits
        self._warm = warm
        self._reuse: Reuse = reuse
        self._principal = principal
        self._docker_host = docker_host
        self._runtime = runtime

    async def open(self) -> Backend:
        """Return the backend, opened if it is not; one caller at a time.

        Raises:
            SandboxError: there is none to be had; the message says what to do.
        """
        if self.backend is None:
            backend = await asyncio.to_thread(
                open_backend, self._isolation, docker_host=self._docker_host, runtime=self._runtime
            )
            await backend.sweep()
            self.backend = self._pooled(backend)
        return self.backend

    async def close(self) -> None:
        """Close the backend, if it was opened here."""
        backend, self.backend = self.backend, None
        if backend is not None and self._owned:
            await backend.close()

    def _pooled(self, backend: Backend) -> Backend:
        floor = 1 if self._warm is None else self._warm
        pool = WarmPool(
            backend,
            limits=PoolLimits(floor=floor, ceiling=max(POOL_CEILING, floor)),
            reuse=self._reuse,
            principal=self._principal,
        )
        if self._warm:
            pool.keep_ready(sandbox_limits(self._limits))
        return pool


def share(backend: Backend, user: User | None) -> Backend:
    """Return the backend as this user's share of it, so that users who wait are served in turn."""
    if user is None or not isinstance(backend, WarmPool):
        return backend
    return backend.for_principal(user.name)
