"""Server-sent events, as the HTML standard defines them (https://html.spec.whatwg.org/multipage/server-sent-events.html), without I/O.

Two differences: the field retry is ignored, because the SDK has its own backoff, and invalid UTF-8 is replaced by U+FFFD."""

from __future__ import annotations

from dataclasses import dataclass

MAX_MESSAGE = (512 + 64) << 10  # bytes of one event; the longest that a server sends is an entry of a journal


class TooLong(Exception):
    """The stream has an event that no server sends."""

    def __init__(self) -> None:
        super().__init__(f"it has an event of more than {MAX_MESSAGE} bytes")


@dataclass(frozen=True)
class Message:
    name: str  # empty: the standard's default
    data: str
    id: str  # the last of the stream, from this event or before


class Parser:
    """Takes the lines of a stream, and returns each message with the line that completes it. One that is cut off by
    the end of the stream is dropped."""

    def __init__(self) -> None:
        self._begun = False
        self._name = self._id = ""
        self._data: list[bytes] = []
        self._size = 0

    def take(self, line: bytes) -> Message | None:
        """Handles a line. One that begins with a colon is a comment: a field without a name."""
        if not self._begun:
            self._begun, line = True, line.removeprefix(b"\xef\xbb\xbf")
        if not line:
            return self._dispatch()
        self._size += len(line)
        if self._size > MAX_MESSAGE:
            raise TooLong
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"event":
            self._name = value.decode(errors="replace")
        elif name == b"data":
            self._data.append(value)
        elif name == b"id" and b"\0" not in value:
            self._id = value.decode(errors="replace")
        return None

    def _dispatch(self) -> Message | None:
        """Returns the message that an empty line completes. Its id stays in force for the following ones."""
        name = "" if self._name == "message" else self._name
        message = Message(name, b"\n".join(self._data).decode(errors="replace"), self._id) if self._data else None
        self._name, self._data, self._size = "", [], 0
        return message
