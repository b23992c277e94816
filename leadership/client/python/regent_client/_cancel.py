"""Cancellation of calls that block in another thread."""

from __future__ import annotations

import contextlib
import contextvars
import threading
import time
from contextvars import ContextVar
from typing import Callable, Iterator, TypeVar

from ._errors import Cancelled

T = TypeVar("T")


class Wake:
    """Wakes one thread that waits. A signal handler may set it: with threading.Event, which the handler may have
    interrupted within its lock, it would wait for itself."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()

    def set(self) -> None:
        """Ends the wait that is under way, or the next one."""
        with contextlib.suppress(RuntimeError):  # it is set
            self._lock.release()

    def wait(self, seconds: float) -> None:
        self._lock.acquire(timeout=seconds)


class Cancel:
    """Ends the calls of other threads. Calls that a thread makes within `with cancel:` raise Cancelled soon after
    another thread, or a signal handler, has called cancel.cancel():

        with cancel, client.lead("reports") as lease:
            ...

    It ends a campaign and single calls. A lease that was granted goes on until its own block ends, and its release
    is not cancelled.
    """

    def __init__(self) -> None:
        self._cancelled = False
        self._lock = threading.RLock()  # a signal handler may interrupt its holder
        self._hooks: dict[int, Callable[[], object]] = {}  # guarded by _lock

    def cancel(self) -> None:
        with self._lock:
            self._cancelled = True
            for hook in list(self._hooks.values()):
                hook()

    @property
    def cancelled(self) -> bool:
        return self._cancelled

    def check(self) -> None:
        """Raises Cancelled after cancel()."""
        if self._cancelled:
            raise Cancelled("the call was cancelled")

    def sleep(self, seconds: float) -> None:
        """Waits; raises Cancelled at once after cancel()."""
        end, wake = time.monotonic() + seconds, Wake()
        with self.hook(wake.set):
            while (left := end - time.monotonic()) > 0 and not self._cancelled:
                wake.wait(min(left, 1))  # a signal that comes right before a wait is seen only after it
        self.check()

    @contextlib.contextmanager
    def hook(self, hook: Callable[[], object]) -> Iterator[None]:
        """Calls the hook at cancel(), and at once if that was called before. It must not block."""
        with self._lock:
            self._hooks[id(hook)] = hook
            if self._cancelled:
                hook()
        try:
            yield
        finally:
            with self._lock:
                del self._hooks[id(hook)]

    def __enter__(self) -> Cancel:
        _scopes.set((*_scopes.get(), self))
        return self

    def __exit__(self, *_: object) -> None:
        _scopes.set(_scopes.get()[:-1])


_scopes: ContextVar[tuple[Cancel, ...]] = ContextVar("regent_client scopes", default=())


def current() -> Cancel:
    """The Cancel of the innermost block; one that is never cancelled outside of any."""
    scopes = _scopes.get()
    return scopes[-1] if scopes else Cancel()


@contextlib.contextmanager
def both(*either: Cancel) -> Iterator[Cancel]:
    """A block whose calls end when either is cancelled."""
    inner = Cancel()
    with contextlib.ExitStack() as stack:
        for outer in either:
            stack.enter_context(outer.hook(inner.cancel))
        yield stack.enter_context(inner)


def within(seconds: float, call: Callable[[], T], name: str) -> T:
    """Makes a call that may block without a limit, in a thread of its own, which goes on if it is given up. Raises
    TimeoutError after so many seconds, and Cancelled at once after the cancel() of the present block."""
    cancel, wake, end = current(), Wake(), time.monotonic() + seconds
    found: list[T] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            found.append(call())
        except BaseException as error:
            failed.append(error)
        wake.set()

    try:
        threading.Thread(target=contextvars.copy_context().run, args=(run,), name=f"regent-client {name}", daemon=True).start()
    except RuntimeError:  # no more threads, or the process is about to end
        run()
    with cancel.hook(wake.set):
        while not (found or failed or cancel.cancelled) and (left := end - time.monotonic()) > 0:
            wake.wait(min(left, 1))  # a signal that comes right before a wait is seen only after it
    cancel.check()
    if failed:
        raise failed[0]
    if not found:
        raise TimeoutError(f"no {name} in time")
    return found[0]
