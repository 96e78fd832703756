"""The threads of a script's pools: decides which of them runs. One at a time, and only while the loop waits.

The order is that in which functions were submitted and woken; the operating system has no say in it.
"""

from __future__ import annotations

import _thread
from collections import deque
from collections.abc import Callable

from bascule.guest.ending import RunEnded
from bascule.guest.workers import MAX_WORKERS, SPARE_WORKERS, Carrier, Worker


class Threads:
    """The workers of one loop and what carries them.

    Attributes:
        current: the worker that runs now, None on the main thread.
        runnable: workers whose turn comes, in order.
        run_ended: the end of the run, when it came on a worker's thread.
    """

    def __init__(self) -> None:
        self.current: Worker | None = None
        self.runnable: deque[Worker] = deque()
        self.run_ended: RunEnded | None = None
        self._control = _thread.allocate_lock()
        self._control.acquire()
        self._carriers: dict[Carrier, None] = {}
        self._idle: list[Carrier] = []
        self._parked: deque[Worker] = deque()

    @property
    def carried(self) -> int:
        """How many workers have a thread."""
        return len(self._carriers)

    @property
    def parked(self) -> bool:
        """Whether workers wait for a thread."""
        return bool(self._parked)

    @property
    def can_spare(self) -> bool:
        """Whether a parked worker may have a thread beyond the usual number, since nothing else can go on."""
        return bool(self._parked) and len(self._carriers) < MAX_WORKERS + SPARE_WORKERS

    def start(self, function: Callable[[], None]) -> None:
        """Run ``function`` on a thread of its own once the main thread waits."""
        self.runnable.append(Worker(self, function))

    def wake(self, worker: Worker) -> None:
        """Let a waiting worker run when its turn comes."""
        self.runnable.append(worker)

    def regain_control(self) -> None:
        """Give control back to the loop; called on a worker's thread."""
        self._control.release()

    def worker_ended(self, worker: Worker) -> None:
        """Free the thread of an ended worker and give control back."""
        carrier = worker.carrier
        assert carrier is not None
        carrier.worker = worker.carrier = None
        self._carriers.pop(carrier)
        self._idle.append(carrier)
        if self._parked and len(self._carriers) < MAX_WORKERS:
            self.runnable.append(self._parked.popleft())
        self._control.release()

    def run_next(self) -> None:
        """Run the first runnable worker until it waits or ends; one without a thread to have is parked."""
        worker = self.runnable.popleft()
        if worker.carrier is None and len(self._carriers) >= MAX_WORKERS:
            self._parked.append(worker)
        else:
            self._carry(worker)

    def run_parked(self) -> None:
        """Run the first parked worker on a spare thread until it waits or ends."""
        self._carry(self._parked.popleft())

    def _carry(self, worker: Worker) -> None:
        carrier = worker.carrier
        if carrier is None:
            carrier = worker.carrier = self._idle.pop() if self._idle else Carrier()
            carrier.worker = worker
            self._carriers[carrier] = None
        self.current = worker
        try:
            carrier.resume()
            self._control.acquire()
        finally:
            self.current = None
        if self.run_ended is not None:
            raise self.run_ended

    def reopen(self) -> None:
        """Forget what the last script of a session left behind."""
        self.runnable.clear()
        self._parked.clear()
        self._carriers.clear()
        self.run_ended = None

    def close(self) -> None:
        """Unwind what still waits."""
        for carrier in list(self._carriers):
            carrier.abandon()
            self._control.acquire()
        for carrier in self._idle:
            carrier.abandon()
        self._idle.clear()
