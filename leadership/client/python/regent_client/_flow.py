"""What the clients with threads and with asyncio share: flows.

A flow is a generator that decides, and leaves all waiting to its shell: it yields what is to be done next (Call, Open,
Read, Sleep), and is sent the outcome or thrown the error. Emit passes an item on to the caller's loop. A shell closes
the stream of a flow when the flow ends, however that is."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from typing import Any, Callable, Generator, Mapping, TypeVar

from ._backoff import Backoff
from ._clock import now
from ._errors import ApiError, NotRegent, OutcomeUnknown, RegentError, StoreUnavailable
from ._model import Malformed, parse
from ._sse import Message, Parser, TooLong

T = TypeVar("T")


@dataclass(frozen=True)
class Call:
    """One exchange. Its outcome is the document of a success."""

    method: str
    path: str  # below /v1
    body: Mapping[str, Any] | None = None
    query: Mapping[str, str] = field(default_factory=dict)
    wait: float = 0.0  # seconds that the server is asked to wait
    mutates: bool = False  # a lost answer leaves the outcome unknown


@dataclass(frozen=True)
class Open:
    """Connects a stream of events, in the place of the flow's last one."""

    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    last_event_id: str = ""


@dataclass(frozen=True)
class Read:
    """Reads a line of the flow's stream. Its outcome is None at the end."""


@dataclass(frozen=True)
class Sleep:
    seconds: float
    until: Any = None  # an Event of the shell's kind that ends it, too


@dataclass(frozen=True)
class Emit:
    item: Any


Step = Call | Open | Read | Sleep | Emit
Flow = Generator[Step, Any, T]


def ask(kind: type[T], call: Call, election: str = "") -> Flow[T]:
    """Makes a call whose answer is of that kind and, unless it is empty, about that election."""
    document = yield call
    try:
        answer = parse(kind, document)
        if election and getattr(answer, "election", "") not in ("", election):
            raise Malformed("it is about another election")
    except Malformed as error:
        lost = OutcomeUnknown if call.mutates else StoreUnavailable
        raise lost(f"the answer to {call.method} {call.path} does not belong to this call: {error}") from error
    return answer


class StreamEnded(RegentError):
    """The server has ended the stream; it is to be opened again."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the server ended the stream: {reason}")
        self.reason = reason
        self.planned = reason in ("limit", "draining")


class Skipped(RegentError):
    """The stream broke off, has left something out, or has what it should not; a new one may be better."""


def next_message(parser: Parser) -> Flow[Message]:
    """Waits for the next message of the stream."""
    while True:
        line = yield Read()
        if line is None:
            raise Skipped("the stream broke off")
        try:
            message = parser.take(line)
        except TooLong as error:
            raise Skipped(str(error)) from error
        if message:
            return message


def document(message: Message) -> dict[str, Any]:
    """Returns the object that a message has."""
    try:
        found = json.loads(message.data)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise Skipped(f"the message {message.name!r} of the stream is no JSON object")
    return found


def ended(message: Message) -> StreamEnded:
    """Returns the error of a stream that ends with that message."""
    return StreamEnded(str(document(message).get("reason")))


def read(kind: type[T], message: Message) -> T:
    """Returns the document of a message as a value."""
    try:
        return parse(kind, document(message))
    except Malformed as error:
        raise Skipped(f"the message {message.name!r} of the stream is not valid: {error}") from error


def passes(error: Exception) -> bool:
    """Reports whether what failed so may succeed soon."""
    if isinstance(error, NotRegent):
        return error.status < 300 or error.status >= 500 or error.status in (408, 429)
    return isinstance(error, (StreamEnded, Skipped)) or isinstance(error, ApiError) and error.will_help


_LONG = 10.0  # seconds: an attempt that went on for longer was no failure


def persist(attempt: Callable[[], Flow[T]], backoff: Backoff) -> Flow[T]:
    """Makes attempts until one succeeds, or fails in a way that would stay."""
    while True:
        began = now()
        try:
            return (yield from attempt())
        except Exception as error:
            if not passes(error):
                raise
            planned = isinstance(error, StreamEnded) and error.planned
            if planned or now() - began > _LONG:
                backoff.reset()
            pause = random.uniform(0, 0.1) if planned else backoff.after(error)
        yield Sleep(pause)
