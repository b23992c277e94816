"""Whether a leader may write, and that it is asked something: heard by the stream of its election."""

from __future__ import annotations

from typing import Callable, Iterator

from ._backoff import Backoff
from ._calls import Calls, path
from ._stream import document, ended, messages, resume


def watch(calls: Calls, election: str, leader: str, hear: Callable[[str], None]) -> None:
    """Calls hear with "readOnly" or "writable" when a stream has begun, if the policy asks for a quorum, and when that
    changes; and with "asked" when a stream has begun, for there may be proposals, and for each one that comes."""
    backoff = Backoff()

    def attempt() -> Iterator[None]:
        first = True
        for message in messages(calls, "observe", path(election, "/events"), {}):
            backoff.reset()
            if first:
                first = False
                hear("asked")
            if message.name == "end":
                raise ended(message)
            change = document(message) if message.name == "member" else {}
            if change.get("id") == leader and change.get("change") in ("readOnly", "writable", "asked"):
                hear(change["change"])
            yield

    for _ in resume(calls, attempt, backoff):
        pass
