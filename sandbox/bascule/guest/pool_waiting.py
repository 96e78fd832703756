"""``as_completed`` and ``wait`` of the concurrent.futures facade. Orders are those of lists."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from bascule.guest.pool_futures import PoolFuture, block_until

FIRST_COMPLETED = "FIRST_COMPLETED"
FIRST_EXCEPTION = "FIRST_EXCEPTION"
ALL_COMPLETED = "ALL_COMPLETED"


def as_completed(fs: Iterable[PoolFuture], timeout: float | None = None) -> Iterator[PoolFuture]:
    """Yield futures as they are done; those that are already come first, in the order given."""
    left = dict.fromkeys(fs)
    finished: deque[PoolFuture] = deque()

    def arrived(future: PoolFuture) -> None:
        finished.append(future)

    for future in left:
        future.add_done_callback(arrived)
    total = len(left)
    for _ in range(total):
        if not finished and not block_until(lambda: bool(finished), left, timeout):
            raise TimeoutError(f"{len(left)} (of {total}) futures unfinished")
        future = finished.popleft()
        left.pop(future, None)
        yield future


class DoneAndNotDone(NamedTuple):
    """What wait() returns."""

    done: set[PoolFuture]
    not_done: set[PoolFuture]


def wait(
    fs: Iterable[PoolFuture], timeout: float | None = None, return_when: str = ALL_COMPLETED
) -> DoneAndNotDone:
    """Wait for some or all; return those that are done and those that are not."""
    futures = list(dict.fromkeys(fs))

    def enough() -> bool:
        done = [future for future in futures if future.done()]
        return (
            len(done) == len(futures)
            or (return_when == FIRST_COMPLETED and bool(done))
            or (
                return_when == FIRST_EXCEPTION
                and any(not future.cancelled() and future.exception() is not None for future in done)
            )
        )

    block_until(enough, futures, timeout)
    return DoneAndNotDone(
        {future for future in futures if future.done()}, {future for future in futures if not future.done()}
    )
