"""Campaigning: asks for the lease, in line or once, until it is granted; leaves none behind when it gives up."""

from __future__ import annotations

import logging
import math
import time
from dataclasses import dataclass
from typing import Any, Callable, Generic, TypeVar

from . import _cancel, _wire
from ._backoff import Backoff
from ._calls import LIMIT, MAX_WAIT, path
from ._core import Core
from ._errors import ApiError, Cancelled, InvalidArgument, LeaseHeld, LeaseLost, NotFound, Orphaned, OutcomeUnknown, RateLimited, RegentError
from ._handle import Handle
from ._model import Succession
from ._stream import Beside
from ._succession import Heir
from ._term import Term, default_margin, lease_seconds, mismatch, number, patience, seat_of

log = logging.getLogger("regent_client")

H = TypeVar("H", bound=Handle)

TRIES = 3  # without waiting
LINE_PAUSE = 4.0  # the longest pause of a candidate in line: the server keeps its place for 5 s
SLACK = 10.0  # seconds that a campaign may take longer than its wait, for a server that does not answer
ABANDON_LIMIT = 5.0  # seconds for the release of a lease that may have been granted to a campaign that failed
UNDER_WAY = 2.5  # seconds of these in which the server may still carry out a call whose caller has given up
_LOOK_PAUSE = 0.5  # seconds, the longest pause between two looks for such a lease
_HEIR_LIMIT = 1.0  # seconds that a granted campaign waits for what runs beside it: its lease is renewed already
_TURNS = ("BALLOT", "OUTRANKED", "QUORUM")  # reasons of LeaseHeld that say when a candidate that has bid should ask again


@dataclass(frozen=True)
class Options:
    """How to campaign, checked: see Base.lead."""

    body: dict[str, Any]  # members of each acquire
    wait: float | None
    margin: float  # 0 for the default
    load: int | Callable[[], int]
    via: Handle | None
    via_peer: str
    on_succession: Callable[[Succession], object] | None = None
    on_promotion: Callable[[Any], object] | None = None


class Campaign(Generic[H]):
    """One incarnation of a candidate: all its calls use one key, so at most one lease is granted."""

    def __init__(self, core: Core, kind: Callable[[Core, Term, Handle | None], H], election: str, options: Options) -> None:
        self._core, self._kind, self._asked = core, kind, options
        self._election, self._path, self._key = election, path(election, ":acquire"), _wire.Key()
        self._candidate: str = self._asked.body["candidateId"]
        self._backoff, self._begun = Backoff(), False
        self._sent = 0.0  # when the last call began
        self._failure: RegentError | None = None  # of the last call
        self._unknown = False  # a lease may have been granted

    def run(self) -> H:
        """Waits until the candidate leads, and returns its lease, which is renewed from then on."""
        if self._begun:
            raise RuntimeError("call lead for each block: the key of a campaign is spent with its release")
        self._begun = True
        parent, orphaned = self._asked.via, _cancel.Cancel()
        unlisten = parent._listen(orphaned.cancel, notices=False) if parent else lambda: None
        try:
            with _cancel.both(_cancel.current(), orphaned) as cancel:
                with Beside(_HEIR_LIMIT) as beside:
                    if self._asked.wait != 0 and self._asked.body.get("role") != "witness":
                        heir = Heir(self._core.calls, self._election, self._candidate, self._key.text, self._asked.on_succession)
                        beside.go(heir.attend)
                    lease = self._lead(cancel)
            self._promote(lease)
            return lease
        except BaseException as error:  # a KeyboardInterrupt, too, leaves no lease behind
            self._abandon()
            if isinstance(error, Cancelled) and parent and parent.lost:
                raise self._orphaned(parent) from None
            raise
        finally:
            unlisten()

    def _orphaned(self, parent: Handle) -> Orphaned:
        return Orphaned(f"election {self._election!r}: the lease to stand on has ended: {parent.lost}")

    def _lead(self, cancel: _cancel.Cancel) -> H:
        wait = self._asked.wait
        until = math.inf if wait is None else self._core.clock() + wait
        last = until + SLACK
        tries = 0
        while True:
            tries += 1
            left = min(max(until - self._core.clock(), 0), MAX_WAIT)
            try:
                return self._ask(left, min(LIMIT + left, max(last - self._core.clock(), 0)))
            except ApiError as error:
                now = self._core.clock()
                if not self._again(error, left):
                    raise
                pause = self._pause(error, left)
                if wait == 0 and _turn(error):
                    last += pause
                if wait == 0 and (tries >= TRIES or now + pause >= last) or wait and now >= until:
                    raise
                cancel.sleep(min(pause, until - now) if wait else pause)

    def _again(self, error: ApiError, wait: float) -> bool:
        """Whether to ask again after the error. With LEASE_LOST the lease of an earlier call, whose reply was lost or
        late, was over when this one renewed it."""
        if isinstance(error, Orphaned):
            return False
        if isinstance(error, LeaseHeld):
            return wait > 0 or self._asked.wait != 0 or _turn(error) > 0
        return isinstance(error, LeaseLost) or error.will_help

    def _ask(self, wait: float, limit: float) -> H:
        body: dict[str, Any] = {**self._asked.body, "key": self._key.text, **self._via()}
        if wait >= 0.001:
            body["wait"] = f"{int(wait * 1000)}ms"
        given = self._asked.load
        if load := given() if callable(given) else given:
            body["load"] = load
        self._sent = self._core.clock()
        settled = self._unknown
        self._unknown = True  # unless an answer says otherwise
        try:
            grant = self._core.calls.call("acquire", "POST", self._path, body, changes=True, limit=limit)
            if wrong := mismatch(grant, seat_of(grant, self._election), self._candidate) or ("" if lease_seconds(grant) else "it has no duration"):
                raise OutcomeUnknown(f"acquire: the reply does not answer this call: {wrong}")
            settled = True
            return self._granted(wait, grant)
        except ApiError as error:
            self._note(error, settled)
            raise

    def _via(self) -> dict[str, Any]:
        parent = self._asked.via
        if not parent:
            return {}
        if parent.lost:
            raise self._orphaned(parent)
        peer = {"peer": self._asked.via_peer} if self._asked.via_peer else {}
        return {"via": {"election": parent.election, "fencingToken": parent.token, **peer}}

    def _granted(self, wait: float, grant: dict[str, Any]) -> H:
        duration = lease_seconds(grant)
        margin = self._asked.margin or default_margin(duration)
        if margin >= duration:
            raise InvalidArgument(
                f"a margin of {margin} s leaves nothing of a lease of {duration} s; ask for a longer lease, or use a shorter margin")
        now = self._core.clock()
        term = Term(self._sent, now, wait, self._key, grant, margin, states=bool(self._asked.body.get("statement")))
        lease = self._kind(self._core, term, self._asked.via)
        if not lease.valid():
            self._backoff.reset()  # the next call gets the same lease, renewed, or a new one
            raise OutcomeUnknown("acquire: the lease was over when its grant arrived; ask for a longer lease, or use a shorter margin")
        self._core.keeper.add(lease, term.first(now))
        log.info("election %s: leading as %s with token %d, %.1f s", term.election, term.candidate, term.token, lease.remaining())
        if term.unsigned:
            log.warning("election %s, token %d: the lease has no statement: %s", term.election, term.token, term.unsigned)
        return lease

    def _note(self, error: ApiError, unknown: bool) -> None:
        """Records a call that returned no lease. A refusal shows that no earlier call was granted."""
        refused = isinstance(error, LeaseHeld)
        inherits = error.will_help and bool(self._asked.body.get("inherit"))  # it is read after the grant
        self._unknown = not refused and (unknown or isinstance(error, OutcomeUnknown) or inherits)
        if error.will_help and not self._failure:
            log.warning("election %s: no answer to the campaign; retrying: %s", self._election, error)
        self._failure = error if error.will_help else None

    def _pause(self, error: ApiError, wait: float) -> float:
        """The time until the next call: none after one that waited in line for its time, and exactly until its turn for
        a candidate that has bid without waiting."""
        turn = _turn(error)
        if not wait and turn or isinstance(error, LeaseHeld) and self._core.clock() - self._sent >= wait / 2:
            self._backoff.reset()
            return turn if not wait else 0.0
        pause = self._backoff.after(error)
        return pause if isinstance(error, RateLimited) else min(pause, LINE_PAUSE)

    def _promote(self, lease: H) -> None:
        """Says that the new leader serves, where the election's policy asks for that."""
        if lease._term.grant.get("serving") is not False:
            return
        try:
            if self._asked.on_promotion:
                self._asked.on_promotion(lease)
            serving = path(lease._term.election, ":serving")
            lease._persist(lambda holder, limit: self._core.calls.call("say serving", "POST", serving, holder, changes=True, limit=limit))
        except BaseException:
            self._unknown = False
            lease._release()
            raise

    def _abandon(self) -> None:
        """Releases a lease that was granted in a call whose answer was lost, came too late or is not wanted. Such a call
        may still be in progress when its caller gives up, so a vacant election is read again, as after a failed read."""
        if not self._unknown:
            return
        began, backoff, failure = time.monotonic(), Backoff(), None
        while (left := began + ABANDON_LIMIT - time.monotonic()) > 0:
            failure = None
            try:
                lease = self._look(patience(left))
            except RegentError as error:
                failure = error
                if not getattr(error, "will_help", False):
                    break
            else:
                if lease.get("leaderId") == self._candidate:
                    return self._give_back(lease["election"], number(lease, "fencingToken"), began + ABANDON_LIMIT)
                if lease.get("state") == "held" or time.monotonic() >= began + UNDER_WAY:
                    return
            time.sleep(min(backoff.after(failure), _LOOK_PAUSE, left))
        if failure:
            log.warning("election %s: a lease may have been granted that is not wanted; it ends by itself: %s", self._election, failure)

    def _look(self, limit: float) -> dict[str, Any]:
        """The election, or its seat at which the candidate leads; empty if there is none."""
        try:
            lease = self._strong(self._election, limit)
            if lease.get("configuration", {}).get("policy", {}).get("seats"):
                why = self._core.calls.call("explain", "GET", path(self._election, f"/candidates/{self._candidate}:explain"), limit=limit, cleans=True)
                if seat := why.get("seat"):
                    lease = self._strong(f"{self._election}.{seat}", limit)
            return lease
        except NotFound:
            return {}

    def _strong(self, election: str, limit: float) -> dict[str, Any]:
        return self._core.calls.call("read", "GET", path(election), query={"consistency": "strong"}, limit=limit, cleans=True)

    def _give_back(self, election: str, token: int, end: float) -> None:
        """The server refuses it for another incarnation; a lease that is not released expires."""
        body = {"candidateId": self._candidate, "key": self._key.text, "fencingToken": token}
        backoff = Backoff()
        while (left := end - time.monotonic()) > 0:
            try:
                self._core.calls.call("release", "POST", path(election, ":release"), body, changes=True, limit=patience(left), cleans=True)
                return
            except RegentError as error:
                if isinstance(error, LeaseLost) or not getattr(error, "will_help", False):
                    return
                time.sleep(min(backoff.after(error), left))


def _turn(error: ApiError) -> float:
    """When a candidate that has bid should ask again, and 0 for any other error."""
    return error.retry_after if isinstance(error, LeaseHeld) and error.reason in _TURNS else 0.0
