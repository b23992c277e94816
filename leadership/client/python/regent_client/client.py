"""The client for programs with threads."""

from __future__ import annotations

import math
import threading
import time
import weakref
from typing import Iterator

from . import _cancel
from ._base import Base
from ._campaign import Campaign, Options
from ._core import Core
from ._errors import LeaseReleased
from ._handle import Handle
from ._leads import Leads, Log
from ._outcome import ended, outcome_of
from ._reads import Reads
from ._stream import Beside
from ._term import Notice, Term


class Done(threading.Event):
    """Set once a lease is over. is_set() looks at the clock, as Lease.valid does. wait() returns at the deadline or, if
    the process was stopped or the machine suspended then, within a second of resuming. It does not hold the lease, which
    is over once the program holds it no more."""

    def __init__(self, lease: Lease) -> None:
        super().__init__()
        self._lease = weakref.ref(lease)

    def is_set(self) -> bool:
        lease = self._lease()
        return not lease or not lease.valid() or super().is_set()

    def wait(self, timeout: float | None = None) -> bool:
        end = math.inf if timeout is None else time.monotonic() + timeout
        while not self.is_set() and (left := end - time.monotonic()) > 0:
            super().wait(min(left, 1))  # nothing sets it in a process that was forked off
        return self.is_set()


class Lease(Leads, Handle):
    """A lease, for a program with threads."""

    def __init__(self, core: Core, term: Term, parent: Handle | None) -> None:
        super().__init__(core, term, parent)
        self._log = Log()
        #: Set when the lease is over.
        self.done = Done(self)
        self._listen(self.done.set, notices=False)

    @property
    def _lease(self) -> Handle:
        return self

    def notices(self) -> Iterator[Notice]:
        """The changes that concern the term, from the grant on, as they come; ends when the lease is over. Where the policy
        asks for a quorum, a stream of the election tells meanwhile whether it is read-only."""
        news, seen, cancel = _cancel.Wake(), 0, _cancel.current()
        unlisten, beside, heeds = self._listen(news.set), Beside(), False
        try:
            with cancel.hook(news.set):
                while True:
                    cancel.check()
                    valid = self.valid()
                    if valid and self._term.quorum and not heeds:
                        heeds = True
                        beside.go(self._watch_quorum)
                    for notice in self._noticed(seen):
                        seen += 1
                        yield notice
                    if not valid:
                        return
                    news.wait(1)
        finally:
            beside.stop()
            unlisten()

    def release(self, outcome: str = "", note: str = "") -> None:
        """Stops renewing and releases the lease, so that the next leader need not wait for its end. All that acts as
        leader must have stopped before. It is repeated until it is answered, for 5 s at most and within the lease. Does
        nothing if the lease is over. It is not for a signal handler, which has interrupted what acts as leader: raise
        SystemExit there, so that the block ends.

        The outcome is "done", "failed" or "stopped", and the note a line about it. The election's history keeps both, and
        its policy may count failed terms. InvalidArgument: there is no such outcome, and the lease goes on."""
        self._release(outcome=outcome_of(outcome, note))


class Leading:
    """A campaign that is about to begin: a block that leads, or a call of acquire. See Client.lead."""

    def __init__(self, campaign: Campaign[Lease]) -> None:
        self._campaign = campaign
        self._lease: Lease | None = None

    def acquire(self) -> Lease:
        """Waits until the candidate leads, and returns its lease. It is renewed until Lease.release is called, or until
        the program holds it no more."""
        return self._campaign.run()

    def __enter__(self) -> Lease:
        self._lease = self.acquire()
        return self._lease

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        lease, self._lease = self._lease, None
        assert lease is not None
        lost = lease.lost
        lease.release(*ended(error))
        if lost and error is None and not isinstance(lost, LeaseReleased):
            raise lost.with_traceback(None)


class Client(Reads, Base[Leading]):
    """Calls one server. Its methods may be called by several threads at once.

        with Client("http://127.0.0.1:8080") as client, client.lead("reports") as lease:
            while lease.valid() and (report := next(reports, None)):
                save(report, fence=lease.token)
    """

    def _leading(self, election: str, options: Options) -> Leading:
        return Leading(Campaign(self._core, Lease, election, options))

    def close(self) -> None:
        """Ends all calls that are under way in other threads, and all later ones but the release of a lease. Leases that
        are held are not renewed any more: each is over at its deadline, or when its block ends, which releases it."""
        self._core.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
