"""Whether a leader may write: heard by the stream of its election, where the policy asks for a quorum."""

from __future__ import annotations

from typing import Callable, Iterator

from ._backoff import Backoff
from ._calls import Calls, path
from ._stream import document, ended, messages, resume


def watch(calls: Calls, election: str, leader: str, hear: Callable[[bool], None]) -> None:
    """Calls hear with whether the leader must not write: when a stream has begun, and when that changes."""
    backoff = Backoff()

    def attempt() -> Iterator[None]:
        for message in messages(calls, "observe", path(election, "/events"), {}):
            backoff.reset()
            if message.name == "end":
                raise ended(message)
            change = document(message) if message.name == "member" else {}
            if change.get("id") == leader and change.get("change") in ("readOnly", "writable"):
                hear(change["change"] == "readOnly")
            yield

    for _ in resume(calls, attempt, backoff):
        pass
