"""What a program holds of a lease, with threads or with asyncio: all of it that does not block."""

from __future__ import annotations

import logging
import os
import threading
import time
from typing import TYPE_CHECKING, Any, Callable, Mapping, TypeVar

from . import _cancel, _calls, _quorum
from ._backoff import Backoff
from ._errors import ApiError, Cancelled, LeaseLost, LeaseReleased, Orphaned, RegentError, TokenStale
from ._model import Checkpoint, Effect, Effects, Proposal, answer
from ._term import Json, Next, Notice, Term, number, patience

if TYPE_CHECKING:
    from ._core import Core

T = TypeVar("T")

#: What is called when the lease is over and, with True, when a notice came.
Listeners = list[tuple[Callable[[], None], bool]]

log = logging.getLogger("regent_client")

RELEASE_LIMIT = 5.0  # seconds for the release of a lease


class Handle:
    """The leadership of an election while it lasts. It is renewed in the background until it is lost or released, or
    could not be renewed in time. Then it is over for good.

    Its methods compare the deadline with the clock when they are called. A timer may fire late, and a process may be
    stopped for an hour between two instructions; so check before each step that matters, and send the token with each
    write: it is the token that protects, where the write arrives.

    It may be used by several threads. In a process that was forked off, it is over.
    """

    def __init__(self, core: Core, term: Term, parent: Handle | None) -> None:
        self._core, self._term, self._parent = core, term, parent
        self._lock = threading.RLock()  # guards the term; never held while sending or logging
        self._listeners: Listeners = []  # guarded by _lock; none holds the lease: one that is held no more is gone at once
        self._pid = os.getpid()
        self._yields = False  # the server may know of a successor
        if parent:
            parent._listen(core.keeper.wake, notices=False)

    def __repr__(self) -> str:
        return f"<lease of {self.election!r} by {self.candidate!r}, token {self.token}, {'valid' if self.valid() else 'over'}>"

    @property
    def election(self) -> str:
        return self._term.election

    @property
    def candidate(self) -> str:
        return self._term.candidate

    @property
    def token(self) -> int:
        """The fencing token. Send it with every write. It rises if an operator begins a new epoch while the lease goes on,
        with a notice: what was begun before with the old one is refused then, on purpose."""
        return self._term.token

    @property
    def statement(self) -> str:
        """The newest signed statement that this leader holds the lease, to show to others, who verify it by
        statement.verify; empty if lead was called without statement=True, or if the server could not sign. It ends when
        the lease would without a renewal, so ask for it each time."""
        return self._term.statement

    @property
    def duration(self) -> float:
        """How many seconds the lease lasts after each renewal, by the store's clock."""
        return self._term.duration

    def valid(self) -> bool:
        """Whether the caller may believe that it leads. Once false, it stays false."""
        return self.remaining() > 0

    def remaining(self) -> float:
        """Seconds until the deadline; 0 if the lease is over. The margin is already deducted."""
        if self._pid != os.getpid():
            return 0.0
        cause = self._parent.lost if self._parent else None
        with self._lock:
            was = self._term.over
            if was is None and cause:
                self._term.end(Orphaned(f"election {self.election!r}, token {self.token}: the lease that it stands on has ended: {cause}"))
            left = self._term.left(self._core.clock())
            over = self._term.over if was is None else None
            if over:
                self._tell()
        if over:
            log.error("no longer leader: %s", over)
        return left

    def check(self) -> None:
        """Raises LeaseLost if the lease is over, as a class that says why: LeaseExpired, TermEnded, Deposed, Orphaned."""
        if (lost := self.lost) is not None:
            raise lost.with_traceback(None)

    @property
    def lost(self) -> LeaseLost | None:
        """Why the lease is over; None while it is valid."""
        if self.remaining():
            return None
        return self._term.over or LeaseLost("the lease belongs to the process that has forked this one")

    @property
    def ends_because(self) -> str:
        """Why the term ends however often the lease is renewed, as "evicted" or "maxTerm"; empty if it has no such end."""
        return self._term.ends_because

    def ends_in(self) -> float | None:
        """Seconds until then; None if the term has no such end. A leader that obeys valid() need not look at it."""
        with self._lock:
            return self._term.ends_in(self._core.clock())

    @property
    def read_only(self) -> bool:
        """Whether the election has lost its quorum, so that the leader must not write: as it was heard last, by notices()."""
        return self._term.read_only

    @property
    def inherited(self) -> Checkpoint | None:
        """What the last leader left behind, if lead was called with inherit=True; None for none."""
        found = self._term.grant.get("inherited")
        return None if found is None else answer(Checkpoint, found)

    @property
    def in_doubt(self) -> list[Effect]:
        """The effects that earlier leaders had begun and not finished when the lease was granted, if lead was called with
        inherit=True. Find out whether their targets have them, and finish them."""
        return answer(Effects, {"election": self.election, "effects": self._term.grant.get("inDoubt") or []}).effects

    @property
    def open_proposals(self) -> list[Proposal]:
        """The proposals that were open when the lease was granted, if lead was called with inherit=True. See asked."""
        return [answer(Proposal, found, self.election) for found in self._term.grant.get("proposals") or []]

    def report(self, **what: Any) -> None:
        """Says what the leader does: counters (progress, tasks, tokens_used, calls, errors), of which the larger value
        counts; eta, a duration; health, one line; and the dicts capabilities, dependencies and custom, whose members are
        replaced, and removed by None. A next renewal brings it to the server, at most every third. A server that refuses
        a report does not end the lease. Raises InvalidArgument for a report that no server would take."""
        with self._lock:
            self._term.reports.add(what)

    def _listen(self, listener: Callable[[], None], *, notices: bool = True) -> Callable[[], None]:
        """Has the listener called, by any thread, when the lease is over or, unless told otherwise, a notice came; at once
        if that was before. It must not block, or hold the lease. Returns a function that ends this."""
        one = (listener, notices)
        with self._lock:
            self._listeners.append(one)
            if notices and self._term.notices or self._term.over:
                listener()

        def end() -> None:
            with self._lock:
                self._listeners.remove(one)

        return end

    def _tell(self) -> None:
        """Call with _lock held."""
        for listener, notices in list(self._listeners):
            if notices or self._term.over:
                listener()

    def _noticed(self, seen: int) -> list[Notice]:
        with self._lock:
            return self._term.notices[seen:]

    def _watch_quorum(self) -> None:
        """Hears whether the leader may write, until it is cancelled."""

        def hear(change: str) -> None:
            read_only = change == "readOnly"
            with self._lock:
                if change == "asked" or self._term.over or read_only == self._term.read_only:
                    return
                self._term.hear_read_only(read_only)
                self._tell()
            log.info("election %s, token %d: read-only: %s", self.election, self.token, read_only)

        _quorum.watch(self._core.calls, self.election, self.candidate, hear)

    def _renewal(self, now: float) -> tuple[dict[str, Any], float, bool]:
        """The body of the next renewal, how many seconds it may take, and whether it wants a new connection."""
        with self._lock:
            return self._term.renewal(now), self._term.patience(now), self._term.failure is not None

    def _heard(self, sent: float, now: float, answer: Json | RegentError) -> Next | None:
        """Takes the answer to a renewal. Returns when to renew next; None if the lease is over."""
        if not self.valid():
            return None
        with self._lock:
            term = self._term
            failing, token, notices, quorum, unsigned = term.failure is not None, term.token, len(term.notices), term.quorum, term.unsigned
            next = term.heard(sent, now, answer)
            if term.over or len(term.notices) > notices or term.quorum != quorum:
                self._tell()
            news, over, failure, left = term.notices[notices:], term.over, term.failure, term.left(now)
            unsigned = term.unsigned if term.unsigned != unsigned else ""
        for notice in news:
            log.info("election %s, token %d: notice %s, left %.1f s", term.election, notice.token, notice.kind, notice.left)
        if over:
            log.error("no longer leader: %s", over)
        elif failure and not failing:
            log.warning(
                "election %s, token %d: the lease could not be renewed; trying until the deadline, in %.1f s: %s",
                term.election, token, left, failure)
        elif failing and not failure:
            log.info("election %s, token %d: renewed again", term.election, term.token)
        if unsigned:
            log.warning("election %s, token %d: the lease has no statement: %s", term.election, token, unsigned)
        return next

    def _unrenewed(self) -> None:
        """The client is closed: the lease goes on until its deadline."""
        with self._lock:
            self._term.failure = Cancelled("the client was closed")

    def _alone(self, now: float) -> Next | None:
        """The batch that the lease went in was refused: it is renewed by itself at once."""
        if not self.valid():
            return None
        with self._lock:
            self._term.reports.unanswered()
            return Next(now, 0, solo=True)

    def _persist(self, call: Callable[[dict[str, Any], float], T]) -> T:
        """Makes a call in the leader's name, with the members that name the lease and the limit of the call, and repeats it
        while the server cannot be reached, could do nothing, or has not answered, until the lease is over. After
        OutcomeUnknown it may have been carried out. An answer that comes after the deadline is LeaseLost, too: the caller
        must not act on it. A leader that hears that its lease is lost stops."""
        backoff, cancel = Backoff(), _cancel.current()
        while True:
            self.check()
            with self._lock:
                token, holder = self._term.token, self._term.holder()
            try:
                found = call(holder, min(_calls.LIMIT, self.remaining()))
            except ApiError as error:
                stale = isinstance(error, TokenStale) and self.token > token
                epoch = self._term.epoch_of(error, token)  # the next renewal brings its token
                if isinstance(error, LeaseLost) and not epoch:
                    self._lose(error)
                if not (error.will_help or stale or epoch):
                    raise
                cancel.sleep(min(backoff.after(error), self.remaining()))
                if not self.valid():
                    raise
            else:
                self.check()
                return found

    def _lose(self, error: ApiError) -> None:
        with self._lock:
            if self._term.over is None:
                self._term.lose(error)
                self._tell()

    def _release(self, suffix: str = "", body: Mapping[str, Any] | None = None, outcome: Mapping[str, Any] | None = None) -> RegentError | None:
        """Stops renewing and releases the lease, unless its deadline has passed. What acts as leader must have stopped. A
        lease that is over only because the one that it stands on has ended is released, too: the server still has it.
        With a suffix another call is to end the lease; if that is refused, the lease is released. Where there may be a
        successor, the lease is yielded to it, which the server refuses while that is not ready. If the server takes no
        outcome, the lease is released without it. Returns why the call that was asked for has not ended the lease."""
        left = self.remaining()
        if self._pid != os.getpid():
            return self.lost
        with self._lock:
            if isinstance(self._term.over, Orphaned):
                left = self._term.deadline - self._core.clock()
            elif self._term.over is None:
                self._term.end(LeaseReleased(f"election {self.election!r}, token {self.token}: the lease was released"))
                self._tell()
        self._core.keeper.wake()
        if left <= 0:
            return self._term.over
        end = self._core.clock() + min(left, RELEASE_LIMIT)
        if not suffix and (self._yields or self._term.ends_because == "handOver"):
            suffix = ":yield"
        error = self._give_back(end, suffix or ":release", (body if suffix else outcome) or {})
        refused = error
        for less in ([outcome or {}] if suffix else []) + ([{}] if outcome else []):
            if not refused or isinstance(refused, LeaseLost) or getattr(refused, "will_help", False):
                break
            refused = self._give_back(end, ":release", less)
        return error

    def _give_back(self, end: float, suffix: str, body: Mapping[str, Any]) -> RegentError | None:
        """Releases until it is answered, or the end. A release is idempotent, and of a successor's lease it is refused."""
        term, backoff, holder = self._term, Backoff(), {**self._term.holder(), **body}
        error: RegentError | None = None
        while (left := end - self._core.clock()) > 0:
            try:
                told = self._core.calls.call(
                    suffix[1:], "POST", _calls.path(term.election, suffix), holder, changes=True, limit=patience(left), fresh=error is not None, cleans=True)
            except RegentError as failed:
                error = failed
                if isinstance(error, LeaseLost) or not getattr(error, "will_help", False):
                    break
                time.sleep(max(min(backoff.after(error), end - self._core.clock()), 0))
                continue
            later = number(told, "fencingToken")
            if told.get("state") != "held" or told.get("leaderId") != term.candidate or later <= holder["fencingToken"]:
                log.info("election %s, token %d: released", term.election, term.token)
                return None
            holder["fencingToken"] = later  # of a new epoch not heard of; that of another incarnation is refused
        if suffix == ":release" and not isinstance(error, LeaseLost):
            log.warning("election %s, token %d: the lease could not be released; it will expire: %s", term.election, term.token, error)
        return error
