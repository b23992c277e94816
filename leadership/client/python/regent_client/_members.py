"""Being a member of an election: a follower, a worker or a witness."""

from __future__ import annotations

from typing import Any, Callable

from ._backoff import Backoff
from ._errors import InvalidArgument, LimitExceeded, NotFound
from ._flow import Call, Flow, Sleep, ask, passes
from ._model import Event, Reading
from ._term import early
from ._wire import Duration, check_candidate, check_election, seconds, text

ROLES = ("follower", "worker", "witness")
_LOOK = 1.0  # seconds between two looks at what the member follows


class Membership:
    """The state of one join(), which its flows keep up. It works as Go's SDK: leadership/client/members.go.

    woken is an Event of the shell's kind."""

    def __init__(
        self, election: str, member: str, role: str, ttl: Duration, note: str, seen: Callable[[], int] | None, woken: Any
    ) -> None:
        if role not in ROLES:
            raise InvalidArgument(f"a role is one of {', '.join(ROLES)}, not {role!r}")
        self.election, self.member = check_election(election), check_candidate(member)
        self._ttl = seconds(ttl, "ttl")
        self._body: dict[str, Any] = {"candidateId": member, "role": role, "ttl": text(self._ttl)}
        if note:
            self._body["note"] = note
        self._seen, self._follows, self._woken = seen, 0, woken
        self._revision = -1  # of leader and token
        self._backoff = Backoff()
        self.failure: Exception | None = None  # of the last join
        #: What the member has heard last: the leader, empty for none, and the newest token.
        self.leader, self.token = "", 0

    def join(self) -> Flow[None]:
        """Joins once."""
        follows = self._seen() if self._seen else self._follows
        seen = {"seenToken": follows} if follows else {}
        call = Call("POST", f"/elections/{self.election}:join", {**self._body, **seen}, mutates=True)
        reading = yield from ask(Reading, call, self.election)
        self._follows = follows
        self.hear(reading)

    def begin(self) -> Flow[None]:
        """Joins for the first time, or leaves it to stay if that may succeed later."""
        try:
            yield from self.join()
        except Exception as error:
            self._note(error)

    def stay(self) -> Flow[None]:
        """Joins again every third of the time to live, and at once when the member follows another token. It goes on
        while the server cannot be reached, has no room for more members, or knows no such election."""
        while True:
            if self.failure:
                yield Sleep(self._backoff.after(self.failure))
            else:
                yield from self._rest(early(self._ttl / 3))
            try:
                yield from self.join()
                self.failure = None
                self._backoff.reset()
            except Exception as error:
                self._note(error)

    def _note(self, error: Exception) -> None:
        if not passes(error) and not isinstance(error, (LimitExceeded, NotFound)):
            raise error
        self.failure = error

    def leave(self) -> Call:
        return Call("POST", f"/elections/{self.election}:leave", {"candidateId": self.member}, mutates=True)

    def hear(self, news: Event | Reading) -> None:
        """Takes who leads, from the election's events or the answer to a call."""
        if (news.revision, news.token) >= (self._revision, self.token):
            self._revision, self.leader, self.token = news.revision, news.leader_id, news.token
        if self._stale():
            self._woken.set()

    def _stale(self) -> bool:
        """Reports whether the member follows another token than it has said; without seen it follows the newest."""
        ours = self._seen() if self._seen else self.token
        return ours != self._follows

    def _rest(self, pause: float) -> Flow[None]:
        """Returns when the member has to join again."""
        while pause > 0 and not self._stale():
            yield Sleep(min(pause, _LOOK), self._woken)
            pause -= _LOOK
