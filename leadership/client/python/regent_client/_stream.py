"""Streams that go on: over as many connections as it takes, for as long as what ends them may pass."""

from __future__ import annotations

import json
import logging
import random
import threading
from typing import Any, Callable, Generator, Iterator, Mapping, TypeVar

from . import _cancel, _http
from ._backoff import Backoff
from ._calls import Calls
from ._clock import now
from ._errors import ApiError, Cancelled, RegentError
from ._model import Malformed, parse
from ._sse import Message, Parser, TooLong

T = TypeVar("T")

log = logging.getLogger("regent_client")

SILENCE = 45.0  # seconds that a stream may bring no line, not even a ping; a server pings every 15 s
_LONG = 10.0  # seconds: an attempt that went on for longer was no failure


class StreamEnded(RegentError):
    """The server has ended the stream; it is to be opened again."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the server ended the stream: {reason}")
        self.reason = reason
        self.planned = reason in ("limit", "draining")


class Skipped(RegentError):
    """The stream broke off, has left something out, or has what it should not; a new one may be better."""


def messages(calls: Calls, name: str, path: str, query: Mapping[str, Any], last_id: str = "") -> Iterator[Message]:
    """Connects, and yields messages until the connection ends, which is an error in any case."""
    parser, head = Parser(), {"Accept-Encoding": "identity"}
    if last_id:
        head["Last-Event-ID"] = last_id
    with calls.stream(name, path, query=query, headers=head, silence=SILENCE) as stream, calls._closed.hook(lambda: _http._shut(stream._sock)):
        try:
            for line in stream.lines():
                if message := parser.take(line):
                    yield message
        except (_http.Unanswered, TooLong) as error:
            check(calls)
            raise Skipped(f"{name}: {error}") from None
    raise Skipped(f"{name}: the stream broke off")


def document(message: Message) -> dict[str, Any]:
    """The object that a message has."""
    try:
        found = json.loads(message.data)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise Skipped(f"the message {message.name!r} of the stream is no JSON object")
    return found


def ended(message: Message) -> StreamEnded:
    """The error of a stream that ends with that message."""
    return StreamEnded(str(document(message).get("reason")))


def read(kind: type[T], message: Message) -> T:
    """The document of a message as a value."""
    try:
        return parse(kind, document(message))
    except Malformed as error:
        raise Skipped(f"the message {message.name!r} of the stream is not valid: {error}") from error


def passes(error: Exception) -> bool:
    """Whether what failed so may succeed soon."""
    return isinstance(error, (StreamEnded, Skipped)) or isinstance(error, ApiError) and error.will_help


def resume(calls: Calls, attempt: Callable[[], Iterator[T]], backoff: Backoff) -> Generator[T, None, None]:
    """Yields what attempts yield until one ends without an error, or with one that would stay."""
    while True:
        began = now()
        try:
            yield from attempt()
            return
        except RegentError as error:
            if not passes(error):
                raise
            planned = isinstance(error, StreamEnded) and error.planned
            if planned or now() - began > _LONG:
                backoff.reset()
            pause = random.uniform(0, 0.1) if planned else backoff.after(error)
        sleep(calls, pause)


def check(calls: Calls) -> None:
    """Raises Cancelled if the caller's block is cancelled, or the client closed."""
    sleep(calls, 0)


def sleep(calls: Calls, seconds: float) -> None:
    """Waits; raises Cancelled at once if the caller's block is cancelled, or the client closed."""
    with calls._scope() as cancel:
        cancel.sleep(seconds)


class Beside:
    """Runs functions in threads of their own as long as its block lasts, and ends them with it, for which it waits for
    `patience` seconds at most."""

    def __init__(self, patience: float = 15.0) -> None:
        self._cancel, self._patience = _cancel.Cancel(), patience
        self._threads: list[threading.Thread] = []

    def go(self, run: Callable[[], object]) -> None:
        thread = threading.Thread(target=self._run, args=(run,), name="regent-client beside", daemon=True)
        thread.start()
        self._threads.append(thread)

    def _run(self, run: Callable[[], object]) -> None:
        try:
            with self._cancel:
                run()
        except Cancelled:
            pass
        except RegentError as error:
            log.warning("%s has ended: %s", getattr(run, "__qualname__", run), error)
        except Exception:
            log.exception("%s has ended", getattr(run, "__qualname__", run))

    def __enter__(self) -> Beside:
        return self

    def stop(self) -> None:
        """Ends what runs, and does not wait for it."""
        self._cancel.cancel()

    def __exit__(self, *_: object) -> None:
        self.stop()
        end = now() + self._patience
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(max(end - now(), 0))
