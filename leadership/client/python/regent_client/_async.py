"""For asyncio: what a client may ask, and a leader do, as in regent_client. Each call that waits has a thread."""

from __future__ import annotations

from typing import AsyncGenerator, Callable, Generator, Iterable, Literal, TypeVar

from . import _cancel
from ._core import Core
from ._follow import Item
from ._handle import Handle
from ._leads import Checkpoints, Journal, Leads, Log
from ._model import JSON, Acknowledgement, Checkpoint, Effect, Effects, Event, Explanation, Members, Proposal, Proposals, Reading
from ._reads import Events, Joined, Member, Reads
from ._threads import in_thread
from ._wire import Duration

T = TypeVar("T")


async def iterate(items: Generator[T, None, None]) -> AsyncGenerator[T, None]:
    """Yields the items of a generator that blocks."""
    cancel, end = _cancel.Cancel(), object()

    def step() -> T | object:
        with _cancel.current().hook(cancel.cancel), cancel:
            return next(items, end)

    try:
        while (item := await in_thread(step)) is not end:
            yield item  # type: ignore[misc]
    finally:
        await in_thread(items.close)


class _Reads(Reads):
    def __init__(self, core: Core) -> None:
        self._core = core


class AsyncMember(Joined):
    """A membership that lasts as long as its block. See Client.join."""

    def __init__(self, member: Member) -> None:
        super().__init__(member._membership)
        self._member = member

    async def __aenter__(self) -> AsyncMember:
        await in_thread(self._member.__enter__, undo=Member.__exit__)
        return self

    async def __aexit__(self, *_: object) -> None:
        await in_thread(self._member.__exit__)


class AsyncReads:
    """Reading, observing and being a member: see regent_client.Client for each."""

    _core: Core

    @property
    def _reads(self) -> Reads:
        return _Reads(self._core)

    async def read(self, election: str, *, strong: bool = False, known: int = 0) -> Reading:
        return await in_thread(lambda: self._reads.read(election, strong=strong, known=known))

    def list(self, prefix: str = "") -> AsyncGenerator[Reading, None]:
        return iterate(self._reads.list(prefix))

    async def events(self, election: str, *, after: int = 0, limit: int = 100) -> Events:
        return await in_thread(lambda: self._reads.events(election, after=after, limit=limit))

    def observe(
        self, election: str | None = None, *, prefix: str = "", of: str | None = None, after: int | str | None = None
    ) -> AsyncGenerator[Event, None]:
        return iterate(self._reads.observe(election, prefix=prefix, of=of, after=after))

    async def check_token(self, election: str, token: int, *, use: Literal["read", "write"] = "read") -> Reading:
        return await in_thread(lambda: self._reads.check_token(election, token, use=use))

    async def explain(self, election: str, candidate: str | None = None) -> Explanation:
        return await in_thread(lambda: self._reads.explain(election, candidate))

    async def members(self, election: str) -> Members:
        return await in_thread(lambda: self._reads.members(election))

    def join(
        self, election: str, *, role: Literal["follower", "worker", "witness"] = "follower", member: str | None = None,
        ttl: Duration = 30, note: str = "", seen: Callable[[], int] | None = None,
    ) -> AsyncMember:
        return AsyncMember(self._reads.join(election, role=role, member=member, ttl=ttl, note=note, seen=seen))

    async def await_acknowledgement(
        self, election: str, need: int, *, token: int = 0, journal_index: int = 0, wait: Duration = 0
    ) -> Acknowledgement:
        return await in_thread(
            lambda: self._reads.await_acknowledgement(election, need, token=token, journal_index=journal_index, wait=wait))

    async def checkpoint(self, election: str) -> Checkpoint:
        return await in_thread(lambda: self._reads.checkpoint(election))

    async def effects(self, election: str) -> Effects:
        return await in_thread(lambda: self._reads.effects(election))

    async def propose(
        self, election: str, proposal_id: str, kind: str, data: JSON = None, *, ttl: Duration = 600, wait: Duration = 0, candidate: str | None = None
    ) -> Proposal:
        return await in_thread(lambda: self._reads.propose(election, proposal_id, kind, data, ttl=ttl, wait=wait, candidate=candidate))

    async def proposals(self, election: str) -> Proposals:
        return await in_thread(lambda: self._reads.proposals(election))

    def follow(self, election: str, *, after: int = 0, member: str | None = None) -> AsyncGenerator[Item, None]:
        return iterate(self._reads.follow(election, after=after, member=member))


class _Leads(Leads):
    def __init__(self, lease: Handle, log: Log) -> None:
        self._of, self._log = lease, log

    @property
    def _lease(self) -> Handle:
        return self._of


class AsyncLeads(Handle):
    """What a leader may do: see regent_client.Lease for each."""

    _log: Log

    @property
    def _leads(self) -> Leads:
        return _Leads(self, self._log)

    @property
    def checkpoint(self) -> AsyncCheckpoints:
        """What this leader leaves behind for the next one."""
        return AsyncCheckpoints(self._leads.checkpoint)

    @property
    def journal(self) -> AsyncJournal:
        """The election's journal: a log under the fence."""
        return AsyncJournal(self._leads.journal)

    async def hand_over(self, to: str | None = None, *, within: Duration = 30, reason: str = "") -> None:
        await in_thread(lambda: self._leads.hand_over(to, within=within, reason=reason))

    async def await_followers(self, need: int, *, within: Duration | None = None) -> bool:
        return await in_thread(lambda: self._leads.await_followers(need, within=within))

    async def delegate(self, child: str, *, depth: int | None = None, children: int | None = None, budget: int | None = None) -> str:
        return await in_thread(lambda: self._leads.delegate(child, depth=depth, children=children, budget=budget))

    async def begin_effect(self, effect_id: str) -> Effect:
        return await in_thread(lambda: self._leads.begin_effect(effect_id))

    async def finish_effect(self, effect_id: str, result: JSON = None) -> None:
        await in_thread(lambda: self._leads.finish_effect(effect_id, result))

    async def decide(self, proposal_id: str, verdict: Literal["accepted", "rejected"], note: str = "") -> Proposal:
        return await in_thread(lambda: self._leads.decide(proposal_id, verdict, note))

    def asked(self) -> AsyncGenerator[Proposal, None]:
        return iterate(self._leads.asked())

    async def request_approval(self, note: str, *, new_epoch: bool = False) -> None:
        await in_thread(lambda: self._leads.request_approval(note, new_epoch=new_epoch))

    async def step_down(self, reason: str, *, absence: Duration = 0) -> None:
        await in_thread(lambda: self._leads.step_down(reason, absence=absence))


class AsyncCheckpoints:
    """See regent_client.Lease.checkpoint."""

    def __init__(self, of: Checkpoints) -> None:
        self._of = of

    async def put(self, data: JSON, *, task: str = "") -> None:
        await in_thread(lambda: self._of.put(data, task=task))

    async def put_at(self, uri: str, *, sha256: str = "", task: str = "") -> None:
        await in_thread(lambda: self._of.put_at(uri, sha256=sha256, task=task))


class AsyncJournal:
    """See regent_client.Lease.journal."""

    def __init__(self, of: Journal) -> None:
        self._of = of

    async def open(self) -> int:
        """Opens the journal, again if it was, and returns the index of its last entry."""
        return await in_thread(self._of.open)

    async def append(self, data: JSON, *, type: str = "") -> int:
        return await in_thread(lambda: self._of.append(data, type=type))

    async def append_all(self, entries: Iterable[tuple[str, JSON]]) -> int:
        return await in_thread(lambda: self._of.append_all(entries))

    async def read(self, *, after: int = 0) -> AsyncGenerator[Item, None]:
        items = await in_thread(lambda: self._of.read(after=after))
        async for item in iterate(items):
            yield item

    def follow(self, *, after: int = 0) -> AsyncGenerator[Item, None]:
        return iterate(self._of.follow(after=after))

    async def snapshot(self, up_to: int, data: JSON) -> None:
        await in_thread(lambda: self._of.snapshot(up_to, data))

    async def snapshot_at(self, up_to: int, uri: str) -> None:
        await in_thread(lambda: self._of.snapshot_at(up_to, uri))
