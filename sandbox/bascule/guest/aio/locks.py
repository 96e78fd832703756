"""Locks of the asyncio facade. Waiters are served in the order in which they came."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from bascule.guest.futures import CancelledError, Future


class Lock:
    """Mutual exclusion between tasks."""

    __slots__ = ("_locked", "_waiters")

    def __init__(self) -> None:
        self._locked = False
        self._waiters: deque[Future] = deque()

    def __repr__(self) -> str:
        return f"<Lock {'locked' if self._locked else 'unlocked'}>"

    def locked(self) -> bool:
        """Return whether a task holds it."""
        return self._locked

    async def acquire(self) -> bool:
        """Wait until the lock is free, take it, return True."""
        if not self._locked and all(waiter.cancelled() for waiter in self._waiters):
            self._locked = True
            return True
        waiter = Future()
        self._waiters.append(waiter)
        try:
            try:
                await waiter
            finally:
                self._waiters.remove(waiter)
        except CancelledError:
            if not self._locked:
                self._wake_first()
            raise
        self._locked = True
        return True

    def release(self) -> None:
        """Free the lock.

        Raises:
            RuntimeError: nobody holds it.
        """
        if not self._locked:
            raise RuntimeError("Lock is not acquired.")
        self._locked = False
        self._wake_first()

    def _wake_first(self) -> None:
        if self._waiters and not self._waiters[0].done():
            self._waiters[0].set_result(True)

    async def __aenter__(self) -> None:
        await self.acquire()

    async def __aexit__(self, *exc: object) -> None:
        self.release()


class Event:
    """A flag that tasks wait for."""

    __slots__ = ("_flag", "_waiters")

    def __init__(self) -> None:
        self._flag = False
        self._waiters: deque[Future] = deque()

    def __repr__(self) -> str:
        return f"<Event {'set' if self._flag else 'unset'}>"

    def is_set(self) -> bool:
        """Return the flag."""
        return self._flag

    def set(self) -> None:
        """Raise the flag and wake everybody."""
        if not self._flag:
            self._flag = True
            for waiter in self._waiters:
                if not waiter.done():
                    waiter.set_result(True)

    def clear(self) -> None:
        """Lower the flag."""
        self._flag = False

    async def wait(self) -> bool:
        """Wait for the flag; return True."""
        if self._flag:
            return True
        waiter = Future()
        self._waiters.append(waiter)
        try:
            await waiter
        finally:
            self._waiters.remove(waiter)
        return True


class Condition:
    """Tasks that wait until another one says that something changed."""

    __slots__ = ("_lock", "_waiters")

    def __init__(self, lock: Lock | None = None) -> None:
        self._lock = Lock() if lock is None else lock
        self._waiters: deque[Future] = deque()

    def __repr__(self) -> str:
        return f"<Condition {'locked' if self._lock.locked() else 'unlocked'}>"

    def locked(self) -> bool:
        """Return whether a task holds the lock."""
        return self._lock.locked()

    async def acquire(self) -> bool:
        """Take the lock."""
        return await self._lock.acquire()

    def release(self) -> None:
        """Free the lock."""
        self._lock.release()

    async def wait(self) -> bool:
        """Free the lock, wait to be notified, take the lock again.

        Raises:
            RuntimeError: the lock is not held.
        """
        if not self._lock.locked():
            raise RuntimeError("cannot wait on un-acquired lock")
        waiter = Future()
        self._lock.release()
        cancelled: CancelledError | None = None
        try:
            self._waiters.append(waiter)
            try:
                await waiter
            finally:
                self._waiters.remove(waiter)
            return True
        except BaseException:
            # A notification that reached a task which is leaving goes to the next one.
            if waiter.done() and not waiter.cancelled():
                self._notify(1)
            raise
        finally:
            while True:
                try:
                    await self._lock.acquire()
                    break
                except CancelledError as error:
                    cancelled = error
            if cancelled is not None:
                raise cancelled

    async def wait_for(self, predicate: Callable[[], object]) -> object:
        """Wait until ``predicate()`` is true; return what it gave."""
        result = predicate()
        while not result:
            await self.wait()
            result = predicate()
        return result

    def notify(self, n: int = 1) -> None:
        """Wake ``n`` waiting tasks.

        Raises:
            RuntimeError: the lock is not held.
        """
        if not self._lock.locked():
            raise RuntimeError("cannot notify on un-acquired lock")
        self._notify(n)

    def _notify(self, n: int) -> None:
        for waiter in self._waiters:
            if n <= 0:
                return
            if not waiter.done():
                n -= 1
                waiter.set_result(False)

    def notify_all(self) -> None:
        """Wake every waiting task."""
        self.notify(len(self._waiters))

    async def __aenter__(self) -> None:
        await self.acquire()

    async def __aexit__(self, *exc: object) -> None:
        self.release()


class Semaphore:
    """At most ``value`` tasks at once."""

    __slots__ = ("_value", "_waiters")

    def __init__(self, value: int = 1) -> None:
        if value < 0:
            raise ValueError("Semaphore initial value must be >= 0")
        self._value = value
        self._waiters: deque[Future] = deque()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {'locked' if self.locked() else f'unlocked, value:{self._value}'}>"

    def locked(self) -> bool:
        """Return whether acquire() would wait."""
        return self._value == 0 or any(not waiter.cancelled() for waiter in self._waiters)

    async def acquire(self) -> bool:
        """Wait for a free place, take it, return True."""
        if not self.locked():
            self._value -= 1
            return True
        waiter = Future()
        self._waiters.append(waiter)
        try:
            try:
                await waiter
            finally:
                self._waiters.remove(waiter)
        except CancelledError:
            if waiter.done() and not waiter.cancelled():
                self._value += 1
            raise
        finally:
            while self._value > 0 and self._wake_next():
                pass
        return True

    def release(self) -> None:
        """Give a place back."""
        self._value += 1
        self._wake_next()

    def _wake_next(self) -> bool:
        for waiter in self._waiters:
            if not waiter.done():
                self._value -= 1
                waiter.set_result(True)
                return True
        return False

    async def __aenter__(self) -> None:
        await self.acquire()

    async def __aexit__(self, *exc: object) -> None:
        self.release()


class BoundedSemaphore(Semaphore):
    """A semaphore that notices when more places are given back than were taken."""

    __slots__ = ("_bound",)

    def __init__(self, value: int = 1) -> None:
        super().__init__(value)
        self._bound = value

    def release(self) -> None:
        """Give a place back.

        Raises:
            ValueError: nobody had taken one.
        """
        if self._value >= self._bound:
            raise ValueError("BoundedSemaphore released too many times")
        super().release()


class Barrier:
    """Tasks that wait for each other until ``parties`` of them are there."""

    __slots__ = ("_arrived", "_gate", "_parties")

    def __init__(self, parties: int) -> None:
        if parties < 1:
            raise ValueError("parties must be >= 1")
        self._parties = parties
        self._arrived = 0
        self._gate = Event()

    @property
    def parties(self) -> int:
        """Tasks that must arrive."""
        return self._parties

    @property
    def n_waiting(self) -> int:
        """Tasks that have arrived."""
        return self._arrived

    async def wait(self) -> int:
        """Wait for the others; return the number of this task, from 0."""
        number, gate = self._arrived, self._gate
        self._arrived += 1
        if self._arrived == self._parties:
            self._arrived = 0
            self._gate = Event()
            gate.set()
        else:
            await gate.wait()
        return number

    async def __aenter__(self) -> int:
        return await self.wait()

    async def __aexit__(self, *exc: object) -> None:
        return None
