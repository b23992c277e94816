"""Following a journal: each entry once, in order and without a gap, whichever instance serves it."""

from __future__ import annotations

from typing import Callable, TypeVar

from ._backoff import Backoff
from ._errors import HistoryCompacted, IndexMismatch, InvalidArgument
from ._flow import Call, Emit, Flow, Open, Skipped, Sleep, ask, ended, next_message, passes, persist, read
from ._model import Entry, JournalPage, Snapshot
from ._sse import Message, Parser
from ._wire import check_candidate, check_election

T = TypeVar("T")
_PAGE = 1000  # entries
_TELL, _STAY = 1.0, 10.0  # seconds: how often a follower may say how far it is, and how often it does to stay a member


class Follow:
    """The state of one follow(). It works as Go's SDK: leadership/client/follow.go."""

    def __init__(self, election: str, after: int, member: str | None = None) -> None:
        if type(after) is not int or after < 0:
            raise InvalidArgument(f"after must be the index of an entry, or 0 for all, not {after!r}")
        self._path = f"/elections/{check_election(election)}/journal"
        self._election, self._last, self._applied = election, after, after
        self._member = None if member is None else check_candidate(member)
        self._missing = 0  # the entry that was left out last
        self._backoff = Backoff()

    def flow(self) -> Flow[None]:
        """Emits items until an error that would stay."""
        yield from self._persist(self._first)
        yield from self._persist(self._listen)

    def up_to(self, end: int) -> Flow[None]:
        """Emits the items up to that index."""
        while self._last < end:
            page = yield from self._persist(lambda: self._page(min(end - self._last, _PAGE)))
            if not page.entries:
                raise IndexMismatch(f"the journal of election {self._election!r} has no entry after {self._last}, and {end} was written")
            yield from self._take_all(page)

    def tell(self) -> Flow[None]:
        """Says how far the follower is, as long as the other flow goes on."""
        told, since = self._applied, 0.0
        while True:
            if self._applied != told or since >= _STAY:
                applied = self._applied
                try:
                    yield Call("GET", self._path, query={**self._query(applied), "limit": "1"})
                    told, since = applied, 0.0
                except HistoryCompacted:
                    told, since = applied, 0.0
                except Exception as error:
                    if not passes(error):
                        return
            yield Sleep(_TELL)
            since += _TELL

    def _persist(self, attempt: Callable[[], Flow[T]]) -> Flow[T]:
        """Makes attempts, and emits entries that are only to be had as a snapshot as one."""

        def once() -> Flow[T]:
            while True:
                try:
                    return (yield from attempt())
                except HistoryCompacted:
                    yield from self._catch_up()

        return (yield from persist(once, self._backoff))

    def _query(self, after: int) -> dict[str, str]:
        query = {"after": str(after)}
        if self._member is not None:
            query |= {"member": self._member, "applied": str(self._applied)}
        return query

    def _page(self, limit: int) -> Flow[JournalPage]:
        call = Call("GET", self._path, query={**self._query(self._last), "limit": str(limit)})
        return (yield from ask(JournalPage, call, self._election))

    def _first(self) -> Flow[None]:
        """Reads the first page, which tells whether the journal has reached the index at all."""
        page = yield from self._page(_PAGE)
        if page.index < self._last:
            raise IndexMismatch(
                f"the journal of election {self._election!r} is at index {page.index}, and {self._last} was asked for; its store was "
                "restored or is another one: begin again from 0"
            )
        yield from self._take_all(page)

    def _listen(self) -> Flow[None]:
        yield Open(self._path, self._query(self._last))
        parser = Parser()
        while True:
            message = yield from next_message(parser)
            if message.name == "end":
                raise ended(message)
            if message.name == "entry":
                yield from self._take(_entry(message))

    def _take_all(self, page: JournalPage) -> Flow[None]:
        for entry in page.entries:
            yield from self._take(entry)

    def _take(self, entry: Entry) -> Flow[None]:
        """Emits an entry if it is the next one."""
        due = self._last + 1
        if entry.index > due:
            text = f"entry {due} of the journal of election {self._election!r} was left out"
            if self._missing == due:
                raise IndexMismatch(text + " twice")
            self._missing = due
            raise Skipped(text)
        if entry.index == due:
            yield from self._emit(entry)

    def _emit(self, item: Entry | Snapshot) -> Flow[None]:
        self._backoff.reset()
        self._last = item.index
        yield Emit(item)
        self._applied = self._last  # the caller's loop has done its work

    def _catch_up(self) -> Flow[None]:
        """Emits the snapshot behind which the journal goes on."""
        snapshot = yield from ask(Snapshot, Call("GET", self._path + "/snapshot"))
        if snapshot.index <= self._last:
            raise Skipped(f"the snapshot ends at {snapshot.index}, and entries after {self._last} are said to be had as a snapshot only")
        yield from self._emit(snapshot)


def _entry(message: Message) -> Entry:
    entry = read(Entry, message)
    if message.id != str(entry.index):
        raise Skipped(f"entry {entry.index} has the id {message.id[:64]!r}")
    return entry
