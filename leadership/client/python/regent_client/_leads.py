"""What a leader may do beside leading. These methods block; regent_client.aio has them for asyncio.

Calls in the leader's name are repeated while the server cannot be reached, or has not answered, until the lease is over.
After OutcomeUnknown, and after LeaseLost, they may have been carried out."""

from __future__ import annotations

import json
import secrets
import threading
from typing import Any, Generator, Iterable, Literal, TypeVar

from . import _cancel
from ._backoff import Backoff
from ._calls import LIMIT, MAX_WAIT, path
from ._errors import ApiError, IndexMismatch, InvalidArgument, NotReady, OutcomeUnknown, PayloadTooLarge, TokenStale
from ._follow import Follow, Item
from ._handle import Handle
from ._model import JSON, Acknowledgement, Checkpoint, Effect, JournalHead, Proposal, Reading, answer
from ._proposals import proposals_to
from ._stream import Beside
from ._succession import Hearing
from ._wire import Duration, check_candidate, encoded, seconds, text

T = TypeVar("T")

MAX_CHECKPOINT = 64 << 10  # bytes of the JSON of one
MAX_RESULT = 1 << 10  # of an effect
MAX_APPEND = 512 << 10  # of all entries of one append, and of a snapshot
MAX_ENTRIES = 500  # of one append


class Log:
    """What a leader knows of its journal and its checkpoint."""

    def __init__(self) -> None:
        self.turn = threading.Lock()  # held while an append is under way; guards the index
        self.index: int | None = None  # of the last entry that is known of; None before the journal is open
        self.sequence = 0  # of the last checkpoint that is known of


class Leads:
    """What a leader may do: see client.Lease."""

    _log: Log

    @property
    def _lease(self) -> Handle:
        raise NotImplementedError

    @property
    def checkpoint(self) -> Checkpoints:
        """What this leader leaves behind for the next one."""
        return Checkpoints(self._lease, self._log)

    @property
    def journal(self) -> Journal:
        """The election's journal: a log under the fence."""
        return Journal(self._lease, self._log)

    def hand_over(self, to: str | None = None, *, within: Duration = 30, reason: str = "") -> None:
        """Names a successor, the best candidate that waits unless one is given, and blocks until that is ready; the
        leader goes on meanwhile. When it returns, stop what acts as leader and end the block: the lease then passes to
        the successor without a vacancy.

        The term ends `within` that time (1 s to 10 min), but not before the end that the lease had. hand_over waits for
        half of it, and leaves the other half for stopping.

        Errors: NotEligible, if no candidate waits or an operator has assigned the election to another one: the term goes
        on. NotReady, if the successor was not ready in time: end the block all the same; the lease passes to it if it is
        ready by then. LeaseHeld, with what bars the successor. LeaseLost."""
        if not 1 <= seconds(within, "within") <= 600:
            raise InvalidArgument(f"a hand-over takes 1 s to 10 min, not {within!r}")
        body = {"within": text(seconds(within, "within"))}
        body |= {name: value for name, value in (("to", to and check_candidate(to)), ("reason", reason)) if value}
        self._lease._yields = True
        lease = ask(self._lease, Reading, "hand over", ":handOver", body)
        now = lease.succession
        if now is None:
            raise OutcomeUnknown("hand over: the reply names no successor")
        if now.ready:
            return
        hearing = Hearing(self._lease._core.calls, self._lease.election, self._lease.candidate, now)
        with Beside() as beside:
            beside.go(hearing.watch)
            end = self._lease._core.clock() + now.until / 2
            while not hearing.ready(min(max(end - self._lease._core.clock(), 0), 0.25)):
                _cancel.current().check()
                self._lease.check()
                if self._lease._core.clock() >= end:
                    raise NotReady(f"the successor {now.to!r} is not ready after {now.until / 2:.1f} s, and the term ends; stop, and end the block")

    def await_followers(self, need: int, *, within: Duration | None = None) -> bool:
        """Blocks until so many members follow the token of the lease, the leader not counted: before the leader does what
        a follower of the former one would contradict, or before a shutdown. Returns whether they do, False only once
        `within` is over. Errors: LeaseLost, and those that another call would not change."""
        backoff, end = Backoff(), None if within is None else self._lease._core.clock() + seconds(within, "within")
        while True:
            began, left = self._lease._core.clock(), self._lease.remaining()
            wait = min(MAX_WAIT, left / 2, MAX_WAIT if end is None else max(end - began, 0))
            body = {"fencingToken": self._lease.token, "need": need, "wait": text(wait)}
            failure: ApiError | None = None
            try:
                where = path(self._lease.election, ":awaitAcknowledgement")
                found = self._lease._core.calls.call("await acknowledgement", "POST", where, body, limit=min(LIMIT + wait, left))
                if answer(Acknowledgement, found, self._lease.election).acknowledged:
                    self._lease.check()
                    return True
            except ApiError as error:
                # an instance that has not heard of the token yet may call it stale; a renewal tells
                if not error.will_help and not isinstance(error, TokenStale):
                    raise
                failure = error
            self._lease.check()
            if end is not None and self._lease._core.clock() >= end:
                return False
            if failure or self._lease._core.clock() - began < wait / 2:
                _cancel.current().sleep(min(backoff.after(failure), self._lease.remaining()))
            else:
                backoff.reset()

    def delegate(self, child: str, *, depth: int | None = None, children: int | None = None, budget: int | None = None) -> str:
        """Makes an election for a part of the leader's task, and returns its name: this one's, a dot, and child. A lease
        there never outlives what this one was known to have: campaign with lead(name, via=lease) in this process. The
        limits are what its leader may delegate in turn; by default one level less, as many children, and no budget. The
        same call again changes nothing. Errors: DepthExceeded, LimitExceeded, InvalidArgument, LeaseLost."""
        limits = {name: value for name, value in (("depth", depth), ("children", children), ("budget", budget)) if value is not None}
        name = f"{self._lease.election}.{child}"
        made = ask(self._lease, Reading, "delegate", ":delegate", {"child": child, **({"limits": limits} if limits else {})}, name)
        return made.election

    def begin_effect(self, effect_id: str) -> Effect:
        """Notes that the leader is about to cause an effect, such as "invoice-2026-11", and returns how it stands. Returns
        once the note is durable. Only with the state "new" the leader may cause the effect; it calls finish_effect right
        after. "done": a leader has finished it, with this result. "inDoubt": an earlier leader, or an earlier call, which
        may have been another process with this lease, has begun it and not finished it; find out whether the target has
        it, and finish it.

        This is not exactly once: a leader that stops in between leaves the effect in doubt. A target that takes an
        idempotency key should get the effect's id as that. Errors: TokenStale, once a later leader has begun one, or has
        inherited; LeaseLost, also if the answer came after the end of the lease; LimitExceeded, if too many are not
        finished; InvalidArgument; OutcomeUnknown."""
        return self._effect("begin effect", ":begin", {"effectId": effect_id, "attemptId": secrets.token_hex(16)})

    def finish_effect(self, effect_id: str, result: JSON = None) -> None:
        """Notes that an effect was caused, so that no leader causes it again: the result, for those that begin it later,
        is anything that json can write, 1 KiB at most; None for none. The same call again changes nothing.

        Errors: those of begin_effect; NotFound, if it was not begun; InvalidArgument, if it is done with another result;
        PayloadTooLarge."""
        body = {"effectId": effect_id}
        if result is not None:
            body["result"] = encoded("result", result, MAX_RESULT, "put it elsewhere, and give where it is")[0]
        self._effect("finish effect", ":finish", body)

    def _effect(self, name: str, suffix: str, body: dict[str, Any]) -> Effect:
        found = ask(self._lease, Effect, name, suffix, body)
        if found.effect_id != body["effectId"]:
            raise OutcomeUnknown(f"{name}: the reply is about another effect")
        return found

    def decide(self, proposal_id: str, verdict: Literal["accepted", "rejected"], note: str = "") -> Proposal:
        """Decides a proposal, once and for good; the proposer, if it waits, is told. The same call again changes nothing.

        Errors: TokenStale, once a later leader has decided one; LeaseLost; NotFound, if there is no such proposal or its
        ttl is over; InvalidArgument, also if it is decided otherwise; OutcomeUnknown."""
        body = {"proposalId": proposal_id, "verdict": verdict, **({"note": note} if note else {})}
        found = ask(self._lease, Proposal, "decide", ":decide", body)
        if found.proposal_id != proposal_id:
            raise OutcomeUnknown("decide: the reply is about another proposal")
        return found

    def asked(self) -> Generator[Proposal, None, None]:
        """Yields the proposals to the leader of the election that are open, and then each one as it comes, until the lease
        is over. It hears of them by a stream; what was decided meanwhile is left out."""
        return proposals_to(self._lease)

    def request_approval(self, note: str, *, new_epoch: bool = False) -> None:
        """Asks operators to let the term go on, with a line for them; with new_epoch under the next token, as for a new
        task. Asking again before they have answered changes nothing. InvalidArgument: the election's policy needs no
        approval."""
        ask(self._lease, Reading, "request approval", ":requestApproval", {"note": note, **({"newEpoch": True} if new_epoch else {})})

    def step_down(self, reason: str, *, absence: Duration = 0) -> None:
        """Releases the lease with a reason of one line, which the election's history keeps. The candidate is not granted
        the lease again for `absence`, 1 s to 30 days, if it is given. All that acts as leader must have stopped before.
        InvalidArgument: the reason or the time is none, and the lease goes on. If the server takes no reason, the lease is
        released without one, and its error is raised. LeaseLost: the lease was over before, and the candidate may be
        granted it again."""
        length = seconds(absence, "absence")
        if not reason or "\n" in reason or len(reason.encode()) > 256:
            raise InvalidArgument("a reason is one line of 1 to 256 bytes")
        if length and not 1 <= length <= 30 * 24 * 3600:
            raise InvalidArgument(f"a candidate steps down for 1 s to 30 days, not for {length} s")
        refused = self._lease._release(":stepDown", {"reason": reason, **({"for": text(length)} if length else {})})
        if refused:
            raise refused.with_traceback(None)


def ask(lease: Handle, kind: type[T], name: str, suffix: str, body: dict[str, Any], about: str = "", method: str = "POST") -> T:
    """Makes a call in the leader's name whose answer is about its election, unless another is named."""

    def once(holder: dict[str, Any], limit: float) -> T:
        found = lease._core.calls.call(name, method, path(lease.election, suffix), {**holder, **body}, changes=True, limit=limit)
        return answer(kind, found, about or lease.election, changes=True)

    return lease._persist(once)


class Checkpoints:
    """See Lease.checkpoint. Errors: TokenStale, once a later leader has inherited; LeaseLost; PayloadTooLarge, for which
    put_at is the remedy; OutcomeUnknown."""

    def __init__(self, lease: Handle, log: Log) -> None:
        self._lease, self._log = lease, log

    def put(self, data: JSON, *, task: str = "") -> None:
        """Replaces the election's checkpoint, for the next leader to inherit: data is anything that json can write but
        None, 64 KiB at most, and task one line that says what it is about. Returns once it is durable."""
        self._put({"data": encoded("data", data, MAX_CHECKPOINT, "put it elsewhere, and use put_at")[0]}, task)

    def put_at(self, uri: str, *, sha256: str = "", task: str = "") -> None:
        """Is put for data that is elsewhere. sha256 is its sum in hexadecimal, if that is known."""
        self._put({"uri": uri, **({"sha256": sha256} if sha256 else {})}, task)

    def _put(self, what: dict[str, Any], task: str) -> None:
        if task:
            what["task"] = task
        while True:
            what["sequence"] = self._log.sequence + 1
            try:
                self._log.sequence = ask(self._lease, Checkpoint, "put checkpoint", "/checkpoint", what, method="PUT").sequence
                return
            except IndexMismatch as error:
                self._log.sequence = error.problem.get("index", 0)
                if self._log.sequence == what["sequence"] - 1:
                    raise


class Journal:
    """The journal of an election, to which its leader appends. It may be used by several threads; appends are made one
    after the other. The first use opens it: from then on no earlier leader can append, and what read yields is complete.
    Errors: those of Checkpoints."""

    def __init__(self, lease: Handle, log: Log) -> None:
        self._lease, self._log = lease, log

    @property
    def index(self) -> int:
        """The index of the last entry that the leader knows of; 0 if there is none."""
        with self._log.turn:
            return self._opened()

    def open(self) -> int:
        """Opens the journal, again if it was, and returns the index of its last entry. After an append that has failed
        with OutcomeUnknown or IndexMismatch it finds out what is there."""
        with self._log.turn:
            self._log.index = None
            return self._opened()

    def append(self, data: JSON, *, type: str = "") -> int:
        """Appends an entry and returns its index. What it returns is durable. Data is anything that json can write but
        None. After OutcomeUnknown it may be in the journal, or still get there: the same call again finds out, and
        appends it once."""
        return self.append_all([(type, data)])

    def append_all(self, entries: Iterable[tuple[str, JSON]]) -> int:
        """Appends entries, given as type and data, all or none, and returns the index of the last one: up to 500 with
        512 KiB of data together."""
        batch: list[dict[str, Any]] = []
        room, less = MAX_APPEND, "append fewer at once, or put data elsewhere"
        for type, data in entries:
            item, size = encoded(f"entries/{len(batch)}/data", data, room, less, MAX_APPEND)
            batch.append({"data": item, **({"type": type} if type else {})})
            room -= size
        if not 0 < len(batch) <= MAX_ENTRIES:
            raise InvalidArgument(f"{len(batch)} entries; append 1 to {MAX_ENTRIES} at once")
        with self._log.turn:
            begin = self._opened()
            head = self._head(":append", {"after": begin, "entries": batch})
            if head.index != begin + len(batch):
                raise OutcomeUnknown(f"append: the reply says index {head.index}, not {begin + len(batch)}")
            self._log.index = head.index
            return head.index

    def read(self, *, after: int = 0) -> Generator[Item, None, None]:
        """Yields what the journal has after an index, up to the present end: a snapshot if the first of these entries are
        only to be had as one, and then each entry once, in order and without a gap."""
        return Follow(self._lease._core.calls, self._lease.election, after).up_to(self.index)

    def follow(self, *, after: int = 0) -> Generator[Item, None, None]:
        """Is Client.follow for this election."""
        return Follow(self._lease._core.calls, self._lease.election, after).items()

    def snapshot(self, up_to: int, data: JSON) -> None:
        """Puts a snapshot, 512 KiB at most, in the place of all entries up to an index: they are deleted, and readers that
        need them get the snapshot instead."""
        self._head("/snapshot", {"upTo": up_to, "data": encoded("data", data, MAX_APPEND, "put it elsewhere, and use snapshot_at")[0]}, "PUT")

    def snapshot_at(self, up_to: int, uri: str) -> None:
        """Is snapshot for data that is elsewhere."""
        self._head("/snapshot", {"upTo": up_to, "uri": uri}, "PUT")

    def _opened(self) -> int:
        if self._log.index is None:
            self._log.index = self._head(":open", {}).index
        return self._log.index

    def _head(self, suffix: str, body: dict[str, Any], method: str = "POST") -> JournalHead:
        return ask(self._lease, JournalHead, "journal" + suffix, "/journal" + suffix, body, method=method)
