"""Calls that block, for asyncio: each in a thread of its own, which ends with the task that waits for it."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import inspect
import threading
from typing import Any, Callable, TypeVar

from ._cancel import Cancel, current
from ._errors import Cancelled

T = TypeVar("T")

CLEAN_UP = 10.0  # seconds to wait for a thread whose task was cancelled; what it cleans up takes 5 s at most


async def in_thread(call: Callable[[], T], undo: Callable[[T], object] | None = None) -> T:
    """Calls a function that may block, in a thread. If the task is cancelled, so is what the function does, and the task
    ends once the function has cleaned up. A result that the task does not get, because it was cancelled in the same
    moment, is undone by the second function, in the same thread. The clean-up goes on even if the task is cancelled once
    more, and the process does not end before it.

    The default executor would not do: a few candidates that wait in line would use up all of its threads."""
    loop, cancel, settled = asyncio.get_running_loop(), Cancel(), threading.Event()
    result: asyncio.Future[T] = loop.create_future()
    ended: asyncio.Future[None] = loop.create_future()

    def run() -> None:
        try:
            with cancel:
                value = call()
            _tell(loop, result.set_result, value)
            while undo and not settled.wait(1) and not loop.is_closed():
                pass
            if undo and (cancel.cancelled or not settled.is_set()):
                undo(value)
        except BaseException as error:
            _tell(loop, result.set_exception, error)
        _tell(loop, ended.set_result, None)

    thread = threading.Thread(target=run, name="regent-client call", daemon=True)
    thread.start()
    try:
        value = await result
    except (asyncio.CancelledError, GeneratorExit) as error:
        cancel.cancel()
        settled.set()
        _outlive(thread)
        if isinstance(error, asyncio.CancelledError):
            await asyncio.wait([ended], timeout=CLEAN_UP)
            if not result.cancelled():
                result.exception()  # it came in the same moment
        raise
    settled.set()
    return value


def _tell(loop: asyncio.AbstractEventLoop, setter: Callable[[Any], None], value: object) -> None:
    """Has the loop settle a future, unless it is settled."""

    def settle() -> None:
        with contextlib.suppress(asyncio.InvalidStateError):
            setter(value)

    from_thread(loop, settle)()


def _outlive(thread: threading.Thread) -> None:
    """Has the end of the process wait for a thread that cleans up. All other threads end with the process."""
    with contextlib.suppress(RuntimeError):  # no more threads
        threading.Thread(target=thread.join, args=(CLEAN_UP,), name="regent-client clean-up", daemon=False).start()


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
        with cancel.hook(future.cancel):
            try:
                return future.result()
            except concurrent.futures.CancelledError:
                cancel.check()
                raise Cancelled("the call was cancelled") from None

    return run
