"""The client for programs with asyncio: the same names as in regent_client.

    async with Client("http://127.0.0.1:8080") as client, client.lead("reports") as lease:
        await lease.run(work(lease))

Leases are renewed by threads, so a task that keeps the loop busy does not cost the lease. Each call that is under way
has a thread, too. A task that is cancelled in a call leaves nothing behind: a lease that is granted at that moment is
released before the task ends.
"""

from __future__ import annotations

import asyncio
import dataclasses
import weakref
from typing import Any, AsyncIterator, Coroutine, TypeVar

from ._async import AsyncLeads, AsyncReads
from ._base import Base
from ._campaign import Campaign, Options
from ._core import Core
from ._errors import LeaseReleased
from ._handle import Handle
from ._leads import Log
from ._outcome import ended, outcome_of
from ._stream import Beside
from ._term import Notice, Term
from ._threads import from_thread, in_loop, in_thread

T = TypeVar("T")


class Done:
    """Set once a lease is over, as an asyncio.Event is. is_set() looks at the clock, as Lease.valid does. wait() returns
    at the deadline or, if the process was stopped or the machine suspended then, within a second of resuming. It does not
    hold the lease, which is over once the program holds it no more."""

    def __init__(self, lease: Lease, loop: asyncio.AbstractEventLoop) -> None:
        self._lease, self._event = weakref.ref(lease), asyncio.Event()
        lease._listen(from_thread(loop, self._event.set), notices=False)

    def is_set(self) -> bool:
        lease = self._lease()
        return not lease or not lease.valid()

    async def wait(self) -> bool:
        if not self.is_set():
            await self._event.wait()
        return True


class Lease(AsyncLeads):
    """A lease, for a program with asyncio. Its methods may be called by the tasks of one loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, core: Core, term: Term, parent: Handle | None) -> None:
        super().__init__(core, term, parent)
        self._log = Log()
        self._news = asyncio.Event()
        self._listen(from_thread(loop, self._news.set))
        #: Set when the lease is over.
        self.done = Done(self, loop)

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs the work until it is done. If the lease is over before, the work is cancelled, and LeaseLost is raised once
        it has ended; work is not begun with a lease that is over. Each cancellation of the task is passed on to the work,
        and run returns when that has ended, never before."""
        if self.lost:
            work.close()
            self.check()
        task, over = asyncio.ensure_future(work), asyncio.ensure_future(self.done.wait())
        over.add_done_callback(lambda _: task.cancel())
        cancelled: asyncio.CancelledError | None = None
        while not task.done():
            try:
                await asyncio.wait([task])
            except asyncio.CancelledError as error:
                cancelled = error
                task.cancel()
        lost = over.done()
        over.cancel()
        if cancelled and (task.cancelled() or not task.exception()):
            raise cancelled
        if lost and task.cancelled():
            self.check()
        return task.result()

    async def notices(self) -> AsyncIterator[Notice]:
        """The changes that concern the term, from the grant on, as they come; ends when the lease is over. Where the policy
        asks for a quorum, a stream of the election tells meanwhile whether it is read-only."""
        seen, beside, heeds = 0, Beside(), False
        try:
            while True:
                self._news.clear()
                valid = self.valid()
                if valid and self._term.quorum and not heeds:
                    heeds = True
                    beside.go(self._watch_quorum)
                for notice in self._noticed(seen):
                    seen += 1
                    yield notice
                if not valid:
                    return
                await self._news.wait()
        finally:
            beside.stop()

    async def release(self, outcome: str = "", note: str = "") -> None:
        """Stops renewing and releases the lease, so that the next leader need not wait for its end. All that acts as
        leader must have stopped before. It is repeated until it is answered, for 5 s at most and within the lease, even
        if the task is cancelled. Does nothing if the lease is over. For the outcome see the client for threads."""
        said = outcome_of(outcome, note)
        await in_thread(lambda: self._release(outcome=said))


class Leading:
    """A campaign that is about to begin: a block that leads, or a call of acquire. See Client.lead."""

    def __init__(self, core: Core, election: str, options: Options) -> None:
        self._core, self._election, self._options = core, election, options
        self._lease: Lease | None = None

    async def acquire(self) -> Lease:
        """Waits until the candidate leads, and returns its lease. It is renewed until Lease.release is called, or until
        the program holds it no more."""
        loop = asyncio.get_running_loop()
        options = dataclasses.replace(
            self._options, on_succession=in_loop(loop, self._options.on_succession), on_promotion=in_loop(loop, self._options.on_promotion))
        campaign = Campaign(self._core, lambda *of: Lease(loop, *of), self._election, options)
        return await in_thread(campaign.run, undo=Handle._release)

    async def __aenter__(self) -> Lease:
        self._lease = await self.acquire()
        return self._lease

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        lease, self._lease = self._lease, None
        assert lease is not None
        lost = lease.lost
        await lease.release(*ended(error))
        if lost and error is None and not isinstance(lost, LeaseReleased):
            raise lost.with_traceback(None)


class Client(AsyncReads, Base[Leading]):
    """Calls one server. Its methods may be called by the tasks of one loop."""

    def _leading(self, election: str, options: Options) -> Leading:
        return Leading(self._core, election, options)

    async def aclose(self) -> None:
        """Ends all calls that are under way, and all later ones but the release of a lease. Leases that are held are not
        renewed any more: each is over at its deadline, or when its block ends, which releases it."""
        self._core.close()

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
