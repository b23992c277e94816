"""Following a journal: each entry once, in order and without a gap, whichever instance serves it."""

from __future__ import annotations

from typing import Any, Callable, Generator, Iterator

from ._backoff import Backoff
from ._calls import LARGE, Calls, path
from ._errors import HistoryCompacted, IndexMismatch, InvalidArgument, NotFound, RegentError
from ._model import Entry, JournalPage, Snapshot, answer
from ._sse import Message
from ._stream import Skipped, ended, messages, passes, read, resume, sleep
from ._wire import check_candidate

Item = Entry | Snapshot

_PAGE = 1000  # entries
_TELL, _STAY = 1.0, 10.0  # seconds: how often a follower may say how far it is, and how often it does to stay a member


class Follow:
    """The state of one follow(). It works as Go's SDK: leadership/client/follow.go."""

    def __init__(self, calls: Calls, election: str, after: int, member: str | None = None) -> None:
        if type(after) is not int or after < 0:
            raise InvalidArgument(f"after must be the index of an entry, or 0 for all, not {after!r}")
        self._calls, self._election, self._path = calls, election, path(election, "/journal")
        self._member = None if member is None else check_candidate(member)
        self._generation = 0  # of the journal; another one after its store was restored
        self._last = self._applied = after  # passed on, and worked on by the caller's loop
        self._missing = 0  # the entry that was left out last
        self._backoff = Backoff()

    @property
    def tells(self) -> bool:
        return self._member is not None

    def items(self) -> Generator[Item, None, None]:
        """Yields items until an error that would stay."""
        yield from self._resume(self._first)
        yield from self._resume(self._listen)

    def up_to(self, end: int) -> Generator[Item, None, None]:
        """Yields the items up to that index."""
        while self._last < end:
            yield from self._resume(lambda: self._next(end))

    def tell(self) -> None:
        """Says how far the follower is, until the client's call is cancelled. Runs beside items."""
        told, since = self._applied, 0.0
        while True:
            applied = self._applied
            if applied != told or since >= _STAY:
                try:
                    self._page(1, applied)
                    told, since = applied, 0.0
                except HistoryCompacted:
                    told, since = applied, 0.0
                except RegentError as error:
                    if not passes(error):
                        return
            sleep(self._calls, _TELL)
            since += _TELL

    def _resume(self, attempt: Callable[[], Iterator[Item]]) -> Iterator[Item]:
        """Makes attempts, and yields entries that are only to be had as a snapshot as one."""

        def once() -> Iterator[Item]:
            while True:
                try:
                    return (yield from attempt())
                except HistoryCompacted as error:
                    yield from self._catch_up(error.problem.get("generation", 0))

        return resume(self._calls, once, self._backoff)

    def _page(self, limit: int, after: int) -> JournalPage:
        query = {**self._query(after), "limit": limit}
        return answer(JournalPage, self._calls.call("journal", "GET", self._path, query=query, largest=LARGE), self._election)

    def _read(self, limit: int) -> JournalPage:
        page = self._page(limit, self._last)
        self._generation = page.generation
        return page

    def _query(self, after: int) -> dict[str, Any]:
        return {"after": after, "generation": self._generation or None, "member": self._member, "applied": None if self._member is None else self._applied}

    def _first(self) -> Iterator[Item]:
        """Reads the first page, which tells whether the journal has reached the index at all."""
        page = self._read(_PAGE)
        if page.index < self._last:
            raise IndexMismatch(
                f"the journal of election {self._election!r} is at index {page.index}, and {self._last} was asked for; it is "
                "another one: begin again from 0"
            )
        yield from self._take_all(page)

    def _next(self, end: int) -> Iterator[Item]:
        page = self._read(min(end - self._last, _PAGE))
        if not page.entries:
            raise IndexMismatch(f"the journal of election {self._election!r} has no entry after {self._last}, and {end} was written")
        yield from self._take_all(page)

    def _listen(self) -> Iterator[Item]:
        for message in messages(self._calls, "follow", self._path, self._query(self._last)):
            if message.name == "end":
                raise ended(message)
            if message.name == "entry":
                yield from self._take(_entry(message, self._generation))

    def _take_all(self, page: JournalPage) -> Iterator[Item]:
        for entry in page.entries:
            yield from self._take(entry)

    def _take(self, entry: Entry) -> Iterator[Item]:
        """Yields an entry if it is the next one."""
        due = self._last + 1
        if entry.index > due:
            text = f"entry {due} of the journal of election {self._election!r} was left out"
            if self._missing == due:
                raise IndexMismatch(text + " twice")
            self._missing = due
            raise Skipped(text)
        if entry.index == due:
            yield from self._emit(entry)

    def _emit(self, item: Item) -> Iterator[Item]:
        self._backoff.reset()
        self._last = item.index
        yield item
        self._applied = self._last  # the caller's loop has done its work

    def _catch_up(self, generation: int) -> Iterator[Item]:
        """Yields the snapshot behind which the journal goes on. After the store was restored there may be none."""
        restored = generation != self._generation
        try:
            snapshot = answer(Snapshot, self._calls.call("read snapshot", "GET", self._path + "/snapshot"))
        except NotFound:
            if not restored:
                raise
            snapshot = Snapshot(0, 0, "")
        if snapshot.index <= self._last and not restored:
            raise Skipped(f"the snapshot ends at {snapshot.index}, and entries after {self._last} are said to be had as a snapshot only")
        self._generation = generation
        yield from self._emit(snapshot)


def _entry(message: Message, generation: int) -> Entry:
    entry = read(Entry, message)
    if message.id != (f"{generation}:{entry.index}" if generation else str(entry.index)):
        raise Skipped(f"entry {entry.index} has the id {message.id[:64]!r}")
    return entry
