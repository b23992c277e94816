"""Calls that block, for asyncio: each in a thread of its own, which ends with the task that waits for it."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import functools
import inspect
import threading
from typing import Any, Callable, Coroutine, TypeVar

from ._cancel import Cancel, current
from ._errors import Cancelled

T = TypeVar("T")

CLEAN_UP = 10.0  # seconds to wait for a thread whose task was cancelled; what it cleans up takes 5 s at most

_cleaning: set[asyncio.Task[None]] = set()  # the loop holds its tasks weakly


async def in_thread(call: Callable[[], T], undo: Callable[[T], object] | None = None) -> T:
    """Calls a function that may block, in a thread. If the task is cancelled, so is what the function does, and the task
    ends once the function has cleaned up. A result that the task does not get, because it was cancelled in the same
    moment, is undone by the second function, in a thread as well.

    The default executor would not do: a few candidates that wait in line would use up all of its threads."""
    loop, cancel = asyncio.get_running_loop(), Cancel()
    result: asyncio.Future[T] = loop.create_future()

    def run() -> None:
        try:
            with cancel:
                value = call()
        except BaseException as error:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(_settle, result.set_exception, error)
            return
        try:
            loop.call_soon_threadsafe(_settle, result.set_result, value)
        except RuntimeError:
            if undo:
                undo(value)

    threading.Thread(target=run, name="regent-client call", daemon=True).start()
    try:
        return await asyncio.shield(result)
    except asyncio.CancelledError:
        cancel.cancel()
        await _clean_up(_undone(result, undo))
        raise


def _settle(setter: Callable[[Any], None], value: object) -> None:
    with contextlib.suppress(asyncio.InvalidStateError):
        setter(value)


async def _undone(result: asyncio.Future[T], undo: Callable[[T], object] | None) -> None:
    await asyncio.wait([result])
    if result.exception() is None and undo:
        await in_thread(functools.partial(undo, result.result()))


async def _clean_up(work: Coroutine[Any, Any, None]) -> None:
    """Waits for the work, which goes on even if the task is cancelled once more."""
    task = asyncio.ensure_future(work)
    _cleaning.add(task)
    task.add_done_callback(_cleaning.discard)
    await asyncio.wait([task], timeout=CLEAN_UP)


def from_thread(loop: asyncio.AbstractEventLoop, call: Callable[[], object]) -> Callable[[], None]:
    """A function that any thread may call, and that has the loop make the call."""

    def told() -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(call)

    return told


def in_loop(loop: asyncio.AbstractEventLoop, call: Callable[[Any], object] | None) -> Callable[[Any], object] | None:
    """A function for threads that has the loop make the call, and waits for its outcome. If the call is a coroutine
    function, it is cancelled with what the thread does."""
    if call is None:
        return None
    called = call

    def run(argument: Any) -> object:
        async def make() -> object:
            found = called(argument)
            return await found if inspect.isawaitable(found) else found

        future = asyncio.run_coroutine_threadsafe(make(), loop)
        cancel = current()
        with cancel.hook(functools.partial(_stop, future)):
            try:
                return future.result()
            except concurrent.futures.CancelledError:
                cancel.check()
                raise Cancelled("the call was cancelled") from None

    return run


def _stop(future: concurrent.futures.Future[Any]) -> None:
    future.cancel()
