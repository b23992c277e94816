"""Watching elections: each event once, in order and without a gap, over as many connections as it takes."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Generator, Iterator

from ._backoff import Backoff
from ._calls import Calls, path
from ._errors import HistoryCompacted, InvalidArgument
from ._model import Event, Reading
from ._sse import Message
from ._stream import Skipped, document, ended, messages, read, resume
from ._wire import check_election

_CURSOR = re.compile(r"[!-~]{1,64}")
_REVISION = re.compile(r"0|[1-9][0-9]{0,15}")


class Watch:
    """The state of one observe(). The names of Go's SDK: leadership/client/watch.go, news.go."""

    def __init__(self, election: str | None, prefix: str, after: int | str | None, of: str | None = None) -> None:
        self._election, self._prefix, self._of = election, prefix, of
        self._cursor = "" if after is None else str(after)
        self._seen: dict[str, int] = {}  # last reported revision of each election
        self._snapshots: list[Reading] = []  # that the present stream has sent before ready
        self._missing = ("", 0)  # the event that the last stream has left out
        self._backoff = Backoff()
        self._begin()

    def _begin(self) -> None:
        if self._election is None:
            if self._cursor and not _CURSOR.fullmatch(self._cursor):
                raise InvalidArgument("after must be the cursor of the last event; omit it to begin with the present state")
            if not re.fullmatch(r"([a-z0-9][a-z0-9._-]{0,126})?", self._prefix):
                raise InvalidArgument(f"{self._prefix!r} is not the beginning of an election's name")
            if self._of is not None:
                check_election(self._of)
                if self._prefix:
                    raise InvalidArgument("prefix and of are for different elections; give one of them")
            return
        check_election(self._election)
        if self._prefix or self._of is not None:
            raise InvalidArgument("a prefix, or of, is for observing many elections; leave it out, or the election")
        if self._cursor:
            if not _REVISION.fullmatch(self._cursor):
                raise InvalidArgument(f"after must be the last revision, not {self._cursor!r}; omit it to begin with the present state")
            self._seen[self._election] = int(self._cursor)

    def events(self, calls: Calls) -> Generator[Event, None, None]:
        """Yields events until an error that would stay."""
        return resume(calls, lambda: self._listen(calls), self._backoff)

    def _listen(self, calls: Calls) -> Iterator[Event]:
        """Connects, and yields events until the connection ends."""
        where = "/v1/events" if self._election is None else path(self._election, "/events")
        self._snapshots = []
        for message in messages(calls, "observe", where, {"prefix": self._prefix or None, "of": self._of}, self._cursor):
            for event in self.receive(message):
                self._backoff.reset()
                yield event

    def receive(self, message: Message) -> list[Event]:
        """Handles a message of the stream, and returns what it tells. An error ends the connection."""
        handle = {"": self._event, "snapshot": self._snapshot, "ready": self._ready, "end": self._end}.get(message.name)
        return handle(message) if handle else []  # others are of later versions, or about reports and members

    def _snapshot(self, message: Message) -> list[Event]:
        """The state of an election. When many are watched, these are held back until all have arrived: if the
        connection broke before, the next one would not tell of a deletion in between."""
        reading = read(Reading, message)
        self._match(reading.election)
        if self._election is None:
            self._snapshots.append(reading)
            return []
        self._match_id(message, reading.revision)
        return self._state(reading, message.id)

    def _state(self, reading: Reading, cursor: str) -> list[Event]:
        if reading.revision <= self._seen.get(reading.election, -1):
            return []
        self._seen[reading.election], self._cursor = reading.revision, cursor
        at = reading.read_at
        return [Event(reading.election, reading.revision, reading.token, at=at, leader_id=reading.leader_id, cursor=cursor, state=reading)]

    def _ready(self, message: Message) -> list[Event]:
        """The end of the present states of many elections."""
        if self._election is not None:
            return []
        if not _CURSOR.fullmatch(message.id) or document(message).get("elections") != len(self._snapshots):
            raise Skipped("the stream has not told all elections")
        events = [event for reading in self._snapshots for event in self._state(reading, "")]
        self._snapshots, self._cursor = [], message.id
        if events:
            events[-1] = replace(events[-1], cursor=message.id)
        return events

    def _event(self, message: Message) -> list[Event]:
        """An event. One that is known moves the cursor of many elections on; it would move that of one back."""
        event = replace(read(Event, message), cursor=message.id)
        self._match_event(message, event)
        known = self._seen.get(event.election)
        if known is not None and event.revision > known + 1:
            self._miss(event.election, known + 1)
        stale = known is not None and event.revision <= known
        if self._election is None or not stale:
            self._cursor = message.id
        if stale:
            return []
        self._seen[event.election] = event.revision
        return [event]

    def _miss(self, election: str, revision: int) -> None:
        """Ends a stream that has left out an event. If the next one leaves it out again, it is lost for good."""
        text = f"the stream left out revision {revision} of election {election!r}"
        if self._missing == (election, revision):
            raise _compacted(text)
        self._missing = election, revision
        raise Skipped(text)

    def _end(self, message: Message) -> list[Event]:
        """The end of a stream: its reason, and where to resume."""
        stop = ended(message)
        if self._election is None:
            if self._cursor and _CURSOR.fullmatch(message.id):
                self._cursor = message.id  # it moves on even while the watched elections are quiet
        elif not self._cursor and message.id == "0":  # the election does not exist yet
            self._cursor, self._seen[self._election] = "0", 0
        raise _compacted("the stream fell too far behind") if stop.reason == "compacted" else stop

    def _match(self, election: str) -> None:
        if self._election is not None:
            right = election == self._election
        elif self._of is not None:
            right = election == self._of or bool(re.fullmatch(re.escape(self._of) + r"\.([1-9][0-9]?|100)", election))
        else:
            right = election.startswith(self._prefix)
        if not right:
            raise Skipped(f"the stream is about election {election[:140]!r}, which is not watched")

    def _match_event(self, message: Message, event: Event) -> None:
        self._match(event.election)
        if event.revision < 1 or not event.type:
            raise Skipped("an event has no revision or no type")
        if self._election is not None:
            self._match_id(message, event.revision)
        elif not self._cursor:
            raise Skipped("an event comes before the present state is complete")
        elif not _CURSOR.fullmatch(message.id):
            raise Skipped("an event has no valid id")

    def _match_id(self, message: Message, revision: int) -> None:
        if message.id != str(revision):
            raise Skipped(f"revision {revision} has the id {message.id[:64]!r}")


def _compacted(text: str) -> HistoryCompacted:
    return HistoryCompacted(f"{text}; observe again without after to begin with the present state")
