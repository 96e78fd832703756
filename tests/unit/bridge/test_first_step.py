"""A coroutine is run up to its first wait; what is left behaves as if it had been awaited from the start."""

from __future__ import annotations

import asyncio

import pytest

from bascule.bridge.first_step import begin

pytestmark = pytest.mark.anyio


async def test_what_ends_at_once_leaves_nothing_to_await() -> None:
    done: list[str] = []

    async def quick() -> None:
        done.append("quick")

    assert begin(quick()) is None
    assert done == ["quick"]


async def test_an_error_before_the_first_wait_is_raised_at_once() -> None:
    async def broken() -> None:
        raise ValueError("now")

    with pytest.raises(ValueError, match="now"):
        begin(broken())


async def test_the_rest_goes_on_through_several_waits_and_may_fail_in_them() -> None:
    seen: list[object] = []
    first: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    second: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def slow() -> None:
        seen.append(await first)
        try:
            await second
        except ValueError as error:
            seen.append(str(error))
        await asyncio.sleep(0)
        seen.append("end")

    rest = begin(slow())
    assert rest is not None
    assert seen == []
    first.set_result(1)
    second.set_exception(ValueError("later"))
    await rest
    assert seen == [1, "later", "end"]


async def test_a_timeout_around_the_rest_cancels_the_coroutine() -> None:
    seen: list[str] = []

    async def stuck() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    rest = begin(stuck())
    assert rest is not None
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await rest
    assert seen == ["cancelled"]
