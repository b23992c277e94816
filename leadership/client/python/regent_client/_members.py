"""Being a member of an election: a follower, a worker or a witness."""

from __future__ import annotations

import threading
from typing import Any, Callable

from ._backoff import Backoff
from ._calls import Calls, path
from ._errors import InvalidArgument, LimitExceeded, NotFound, RegentError
from ._model import Event, Reading, answer
from ._stream import check, log, passes, sleep
from ._term import early
from ._watch import Watch
from ._wire import Duration, check_candidate, seconds, text

ROLES = ("follower", "worker", "witness")
_LOOK = 1.0  # seconds between two looks at what the member follows
_JOIN = 10.0  # seconds for a join, which nothing else ends: one that is cut off may be carried out after the member has left
_LEAVE = 5.0  # seconds for the call of a member that leaves


class Membership:
    """What keeps a member in an election. It works as Go's SDK: leadership/client/members.go."""

    def __init__(self, calls: Calls, election: str, member: str, role: str, ttl: Duration, note: str, seen: Callable[[], int] | None) -> None:
        if role not in ROLES:
            raise InvalidArgument(f"a role is one of {', '.join(ROLES)}, not {role!r}")
        self._calls, self.election, self.id = calls, election, check_candidate(member)
        self._ttl = seconds(ttl, "ttl")
        self._body: dict[str, Any] = {"candidateId": member, "role": role, "ttl": text(self._ttl)}
        if note:
            self._body["note"] = note
        self._seen = seen
        self._lock = threading.Condition()
        self._seen_last = 0  # what seen has returned last
        self._follows = 0  # the token that the member has said; guarded by _lock, as the next two
        self._revision = -1  # of leader and token
        self._news = "", 0
        self._backoff = Backoff()
        self.failure: RegentError | None = None  # of the last join

    @property
    def leader(self) -> str:
        """The leader that the member has heard of last; empty if there is none."""
        return self._news[0]

    @property
    def token(self) -> int:
        """The newest fencing token that the member has heard of."""
        return self._news[1]

    def begin(self) -> None:
        """Joins for the first time, or leaves it to stay if that may succeed later."""
        try:
            self._join()
        except RegentError as error:
            self._note(error)

    def stay(self) -> None:
        """Joins again every third of the time to live, and at once when the member follows another token. It goes on
        while the server cannot be reached, has no room for more members, or knows no such election."""
        while True:
            if self.failure:
                sleep(self._calls, self._backoff.after(self.failure))
            else:
                self._rest(early(self._ttl / 3))
            try:
                self._join()
                self.failure = None
                self._backoff.reset()
            except RegentError as error:
                self._note(error)

    def watch(self) -> None:
        """Hears of changes by the election's events. Where it cannot, the member hears of them when it joins."""
        for event in Watch(self.election, "", None).events(self._calls):
            self._hear(event)

    def leave(self) -> None:
        """Ends the membership. If the call fails, the time to live does."""
        try:
            self._calls.call("leave", "POST", path(self.election, ":leave"), {"candidateId": self.id}, changes=True, limit=_LEAVE, cleans=True)
        except RegentError as error:
            log.info("election %s: the member could not leave; it vanishes when its time is over: %s", self.election, error)

    def _join(self) -> None:
        follows = self._following()
        if self._seen:
            check(self._calls)  # it may have taken so long that the member has left
        seen = {"seenToken": follows} if follows else {}
        found = self._calls.call("join", "POST", path(self.election, ":join"), {**self._body, **seen}, changes=True, limit=_JOIN, cleans=True)
        with self._lock:
            self._follows = follows
        self._hear(answer(Reading, found, self.election, changes=True))

    def _note(self, error: RegentError) -> None:
        self.failure = error
        if not passes(error) and not isinstance(error, (LimitExceeded, NotFound)):
            raise error

    def _hear(self, news: Event | Reading) -> None:
        """Takes who leads, from the election's events or the answer to a call."""
        with self._lock:
            if (news.revision, news.token) >= (self._revision, self.token):
                self._revision, self._news = news.revision, (news.leader_id, news.token)
            self._lock.notify_all()

    def _stale(self) -> bool:
        """Whether the member follows another token than it has said; without seen it follows the newest."""
        return self._following() != self._follows

    def _following(self) -> int:
        """The token that the member follows: while seen fails, the last one."""
        if not self._seen:
            return self.token
        try:
            self._seen_last = self._seen()
        except Exception:
            log.exception("election %s: seen has failed; the member goes on, and follows token %s as before", self.election, self._seen_last)
        return self._seen_last

    def _rest(self, pause: float) -> None:
        """Returns when the member has to join again."""
        while pause > 0 and not self._stale():
            with self._lock:
                self._lock.wait(min(pause, _LOOK))
            check(self._calls)
            pause -= _LOOK
