"""What any client may ask, leader or not. These methods block; regent_client.aio has them for asyncio."""

from __future__ import annotations

from typing import Any, Callable, Generator, Literal, TypeVar

from . import _proposals
from ._calls import LARGE, LIMIT, MAX_WAIT, path
from ._core import Core
from ._errors import Cancelled, RegentError
from ._follow import Follow, Item
from ._members import Membership
from ._model import JSON, Acknowledgement, Checkpoint, Effects, Event, Explanation, History, Members, Page, Proposal, Proposals, Reading, answer
from ._stream import Beside
from ._watch import Watch
from ._wire import Duration, check_candidate, seconds, text

T = TypeVar("T")
Events = list[Event]


class Joined:
    """What a Member and an AsyncMember tell."""

    def __init__(self, membership: Membership) -> None:
        self._membership = membership

    @property
    def id(self) -> str:
        return self._membership.id

    @property
    def leader(self) -> str:
        """The leader that the member has heard of last; empty if there is none."""
        return self._membership.leader

    @property
    def token(self) -> int:
        """The newest fencing token that the member has heard of; 0 for none."""
        return self._membership.token

    @property
    def failure(self) -> Exception | None:
        """Why the last try to join has failed; None if it has not. The next one follows."""
        return self._membership.failure


class Member(Joined):
    """A membership that lasts as long as its block. See Client.join."""

    def __init__(self, membership: Membership) -> None:
        super().__init__(membership)
        self._beside = Beside()

    def __enter__(self) -> Member:
        try:
            self._membership.begin()
            self._beside.go(self._membership.stay)
            self._beside.go(self._membership.watch)
        except BaseException as error:  # a KeyboardInterrupt, too, leaves no member behind
            if isinstance(error, Cancelled) or not isinstance(error, RegentError):
                self.__exit__()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self._beside.__exit__(*error)
        self._membership.leave()


class Reads:
    """Reading, observing and being a member."""

    _core: Core

    def read(self, election: str, *, strong: bool = False, known: int = 0) -> Reading:
        """Reads an election. Unless it is a strong read, which asks the store, the answer may be slightly old: see
        Reading.max_staleness. `known` is the highest revision that the caller has seen, than which nothing older is told."""
        query = {"consistency": "strong" if strong else None, "minRevision": known or None}
        return self._get(Reading, election, "", query)

    def list(self, prefix: str = "") -> Generator[Reading, None, None]:
        """Yields all elections whose names begin so, ordered by name, without deleted ones."""
        token = None
        while token != "":
            query = {"prefix": prefix or None, "pageSize": 1000, "pageToken": token}
            page = answer(Page, self._core.calls.call("list", "GET", "/v1/elections", query=query, largest=LARGE))
            yield from page.elections
            token = page.next_page_token

    def events(self, election: str, *, after: int = 0, limit: int = 100) -> Events:
        """Reads a part of an election's history, oldest first."""
        return self._get(History, election, "/events", {"after": after, "limit": limit}).events

    def observe(
        self, election: str | None = None, *, prefix: str = "", of: str | None = None, after: int | str | None = None
    ) -> Generator[Event, None, None]:
        """Yields who leads an election, or each whose name begins with the prefix, or with `of` an election and each of
        its seats: first the present state, as an event whose type is empty, and then each event as it happens, once, in order and without a gap. It reconnects and
        resumes when the connection breaks or falls silent, and while the server cannot be reached. It reads no faster
        than the loop, which ends it by leaving it.

        `after` is the cursor of the last event that was seen, to continue after it: of one election a revision, 0 for
        all. A resumed loop over many elections may repeat events: ignore those that are not newer than what you have
        seen of an election.

        It goes on until an error that would stay: HistoryCompacted (the events in between are no longer kept; begin
        again without after), RevisionMismatch (the election has not reached the revision: the store was restored, or is
        another one), InvalidArgument, PermissionDenied, Cancelled."""
        return Watch(election, prefix, after, of).events(self._core.calls)

    def check_token(self, election: str, token: int, *, use: Literal["read", "write"] = "read") -> Reading:
        """Returns the election if the token is its leader's, and raises TokenStale otherwise. With use="write" also
        ReadOnly, while too few members are present, and NotReady, until a new leader serves."""
        body = {"fencingToken": token, "use": use}
        return answer(Reading, self._core.calls.call("check token", "POST", path(election, ":checkToken"), body), election)

    def explain(self, election: str, candidate: str | None = None) -> Explanation:
        """Says why a candidate, this client's unless it is named, does not lead."""
        name = check_candidate(self._core.candidate if candidate is None else candidate)
        return self._get(Explanation, election, f"/candidates/{name}:explain")

    def members(self, election: str) -> Members:
        """Reads an election as a cluster: its members with their roles, what token each follows, and a status."""
        return self._get(Members, election, "/members")

    def join(
        self, election: str, *, role: Literal["follower", "worker", "witness"] = "follower", member: str | None = None,
        ttl: Duration = 30, note: str = "", seen: Callable[[], int] | None = None,
    ) -> Member:
        """A block that is a member of an election, by this client's candidate's name unless another is given. It joins
        again every third of `ttl` (10 s to 5 min), also after errors that may pass, and leaves at the end; a member that
        has died vanishes after ttl. `seen` returns the newest fencing token that the member follows, 0 for none; it is
        asked every second, and what it has returned last counts while it fails. Without it the member follows the newest
        that it has heard of."""
        name = self._core.candidate if member is None else member
        return Member(Membership(self._core.calls, election, name, role, ttl, note, seen))

    def await_acknowledgement(
        self, election: str, need: int, *, token: int = 0, journal_index: int = 0, wait: Duration = 0
    ) -> Acknowledgement:
        """Says which members follow a token, or have applied the journal up to an index. With `wait` it blocks until
        `need` do, for a minute at most; too few are no error: see Acknowledgement.acknowledged."""
        length = min(seconds(wait, "wait"), MAX_WAIT)
        body: dict[str, Any] = {"need": need, "wait": text(length)}
        body |= {name: value for name, value in (("fencingToken", token), ("journalIndex", journal_index)) if value}
        where = path(election, ":awaitAcknowledgement")
        return answer(Acknowledgement, self._core.calls.call("await acknowledgement", "POST", where, body, limit=LIMIT + length), election)

    def checkpoint(self, election: str) -> Checkpoint:
        """Reads what a leader has left behind. NotFound: there is nothing. A successor asks for it by lead(inherit=True)
        instead, because of what a late put could still change."""
        return self._get(Checkpoint, election, "/checkpoint")

    def effects(self, election: str) -> Effects:
        """Reads the effects that leaders have begun and finished; see Lease.begin_effect. Old ones are forgotten."""
        return self._get(Effects, election, "/effects")

    def propose(
        self, election: str, proposal_id: str, kind: str, data: JSON = None, *, ttl: Duration = 600, wait: Duration = 0, candidate: str | None = None
    ) -> Proposal:
        """Asks the leader of an election for a decision, now or within `ttl` (1 s to 24 h); the election may be vacant. kind is one line of at most 64 bytes, and data what else the leader has to know: anything
        that json can write, 2 KiB at most; None for nothing. The proposer is this client's candidate unless another is
        named; it needs no lease. The same call again is about the same proposal: take a new id for each.

        With `wait`, up to ttl, it blocks until there is a decision, also while the server cannot be reached. It returns the
        proposal as it stands: without a decision it is open.

        Errors: NotFound, if the election does not exist, or the proposal is kept no longer; LimitExceeded, with 8 open ones
        of one proposer, or 64 of the election; InvalidArgument, also if the id is that of another proposal; PayloadTooLarge."""
        body = {"candidateId": check_candidate(self._core.candidate if candidate is None else candidate), "proposalId": proposal_id, "kind": kind}
        return _proposals.propose(self._core, election, body, data, seconds(ttl, "ttl"), seconds(wait, "wait"))

    def proposals(self, election: str) -> Proposals:
        """Reads the proposals of an election that are open, and the last that were decided. None is kept after its ttl."""
        return self._get(Proposals, election, "/proposals")

    def follow(self, election: str, *, after: int = 0, member: str | None = None) -> Generator[Item, None, None]:
        """Yields the entries of an election's journal after an index, 0 for all, and then each one as it is appended:
        once, in order and without a gap. It reconnects and resumes as observe does. If the next entries are only to be
        had as a snapshot, it yields that first, and goes on behind it. A journal without entries yields nothing until it
        has some.

        With `member` the caller is a member of the election by that name, and tells, once a second at most, up to which
        item the loop has done its work: members shows how far it lags behind, and await_acknowledgement waits for it.

        Errors: IndexMismatch, if the journal has not reached the index: its store was restored, or is another one;
        InvalidArgument, PermissionDenied, Cancelled."""
        return _followed(Follow(self._core.calls, election, after, member))

    def _get(self, kind: type[T], election: str, suffix: str, query: dict[str, Any] | None = None) -> T:
        return answer(kind, self._core.calls.call(kind.__name__.lower(), "GET", path(election, suffix), query=query, largest=LARGE), election)


def _followed(follow: Follow) -> Generator[Item, None, None]:
    with Beside() as beside:
        if follow.tells:
            beside.go(follow.tell)
        yield from follow.items()
