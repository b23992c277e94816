"""The protocol of a leader, without I/O, threads or a clock: deadlines, what an answer means, and what to do next.

The rule. A leader stops by itself, at the latest at

    sent + (waited × 0.999 + expiresIn) × 0.999 − margin

where `sent` was read before the request left. Only a success that names this election, this candidate and this token
moves that on. What is over stays over.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any, Mapping

from ._backoff import Backoff
from ._errors import ApiError, Deposed, ElectionDeleted, InvalidArgument, LeaseExpired, LeaseLost, OutcomeUnknown, RegentError, TermEnded
from ._report import Reporting
from ._wire import Key

MAX_LEASE = 24 * 3600.0
MAX_MARGIN = 1.0  # the largest default margin
MAX_TICKET = 1024
MIN_TRY = 0.25  # the shortest limit of a renewal
MIN_RETRY = 0.05  # the shortest pause after a failed renewal

Json = Mapping[str, Any]


def slow(duration: float) -> float:
    """The least that a clock which is slow by 0.1 % may show after the duration."""
    return duration * 0.999


def deadline(sent: float, waited: float, left: float, margin: float) -> float:
    """From when on the leader's clock it must not believe that it leads."""
    return sent + slow(slow(waited) + left) - margin


def number(document: Json, name: str) -> int:
    """An integer of a document, 0 if there is none."""
    value = document.get(name)
    return value if type(value) is int and value >= 0 else 0


def seat_of(grant: Json, election: str) -> str:
    """The election that a grant may be about: the one that was asked for, or one of its seats."""
    return f"{election}.{grant.get('seat')}" if grant.get("of") == election and grant.get("seat") else election


def mismatch(lease: Json, election: str, leader: str = "", token: int = 0) -> str:
    """Why the lease cannot be the answer to a call about the election, by its leader if one is named; empty if it can.
    A proxy may mix up replies, and a leader that believes in another's lease leads without one."""
    if lease.get("election") != election:
        return f"it is about election {_short(lease.get('election'))}, not {election!r}"
    held = lease.get("state") == "held"
    if not held and lease.get("state") != "vacant":
        return "it is no lease"
    if held and (not lease.get("leaderId") or number(lease, "fencingToken") < 1 or type(lease.get("expiresInMs")) is not int):
        return "it is held without a leader, a fencing token or its remaining time"
    if leader and not held:
        return "it says that the election is vacant"
    if leader and lease.get("leaderId") != leader:
        return f"it says that {_short(lease.get('leaderId'))} leads, not {leader!r}"
    if token and lease.get("fencingToken") != token:
        return f"it has fencing token {number(lease, 'fencingToken')}, not {token}"
    return ""


def _short(value: object) -> str:
    return repr(value)[:150]


@dataclass(frozen=True)
class Notice:
    """A change that concerns the term of a leader.

    Kinds: "evicted", "drained", "handOver", "maxTerm", "approvalDue", "stuck": the term ends, in `left` seconds.
    "goesOn": it does not any more. "newEpoch": the lease goes on with another token. "tripped": the policy has ended it.
    "readOnly": the quorum that the policy asks for is lost; the lease goes on, and its leader must not write.
    "writable": it is back.
    """

    kind: str
    token: int
    left: float = 0.0


@dataclass(frozen=True)
class Next:
    """When to renew next: `pause` after `since` at the latest, with other leases or by itself."""

    since: float
    pause: float
    solo: bool


class Term:
    """What a leader may believe of one lease. Not safe for several threads at once."""

    def __init__(self, sent: float, now: float, wait: float, key: Key, grant: Json, margin: float, *, states: bool = False) -> None:
        """`grant` is the answer, at now, to a request that left at `sent` and was to wait that long; it has been checked
        by mismatch. Nothing is left of the term if the answer took too long. `states` asks for statements."""
        self.states, self.statement, self.unsigned = states, "", ""  # unsigned: why there is no statement
        self.election, self.candidate, self.key = str(grant["election"]), str(grant["leaderId"]), key
        self.token: int = grant["fencingToken"]
        self.margin, self.duration = margin, lease_seconds(grant)
        self.over: LeaseLost | None = None  # why it is over
        self.failure: RegentError | None = None  # of the last renewal; None if it was answered
        self.ends_because, self.ends_at, self._ends_on = "", "", 0.0
        self.notices: list[Notice] = []
        self.quorum = self.read_only = False  # whether the policy asks for one, and whether it is lost
        self.reports = Reporting()
        self.grant = grant
        self._ticket, self._epoch, self._backoff, self._noted = "", 0, Backoff(), ("", "")
        # what was waited moves the deadline later, so more than was asked for, or has passed, is not believed
        waited = min(number(grant, "waitedMs") / 1000, wait, max(now - sent, 0))
        self.deadline = self._until(sent, waited, grant)
        self._take(sent, waited, now, grant)

    def left(self, now: float) -> float:
        """Seconds until the deadline; 0 from then on, even if the clock goes back."""
        if self.over is None and now >= self.deadline:
            self.end(self._expired())
        return 0.0 if self.over else self.deadline - now

    def end(self, why: LeaseLost) -> None:
        self.over = self.over or why

    def ends_in(self, now: float) -> float | None:
        """Seconds until the instant that no renewal passes; None if there is none."""
        return max(self._ends_on - now, 0.0) if self.ends_because else None

    @property
    def lease_end(self) -> float:
        """The earliest moment at which the lease can have ended in the store."""
        return self.deadline + self.margin

    @property
    def cut(self) -> bool:
        """Whether the lease ends with the term: renewals do not move the deadline on any more."""
        return self.ends_because != "" and self.lease_end >= self._ends_on - 1e-6

    def patience(self, now: float) -> float:
        """The limit of one renewal."""
        return patience(self.left(now))

    def holder(self) -> dict[str, Any]:
        """How a call in the leader's name names the lease."""
        return {"candidateId": self.candidate, "key": self.key.text, "fencingToken": self.token}

    def renewal(self, now: float) -> dict[str, Any]:
        """The body of the next renewal."""
        body: dict[str, Any] = {**self.holder(), "fencingToken": self._epoch or self.token}
        if self._ticket:
            body["ticket"] = self._ticket
        if self.states:
            body["statement"] = True
        urgent = self.ends_because == "stuck" and self._ends_on - now <= self.duration
        if report := self.reports.next(now, urgent):
            body["report"] = report
        return body

    def heard(self, sent: float, now: float, answer: Json | RegentError) -> Next | None:
        """Takes the answer to a renewal that left at `sent`. None: the term is over."""
        if not isinstance(answer, RegentError):
            wrong = mismatch(answer, self.election, self.candidate, self._epoch or self.token)
            if not wrong:
                return self._renewed(sent, now, answer)
            answer = OutcomeUnknown(f"the reply does not answer the renewal: {wrong}")
        reported = self.reports.unanswered()
        if later := self.epoch_of(answer):
            # A renewal cannot be granted a new lease if this one was over meanwhile, as an acquire could.
            self._epoch, self._ticket = later, ""
            return Next(now, 0, solo=True) if self.left(now) else None
        if isinstance(answer, (LeaseLost, ElectionDeleted)):
            self.lose(answer)
            return None
        if isinstance(answer, InvalidArgument):
            if reported and answer.field.split(".")[0] != "ticket":
                self.reports.refused(now)
                self.failure = answer
                return Next(now, 0, solo=True) if self.left(now) else None
            self._ticket = ""  # a server of an older version refuses it
        return self._failed(now, answer)

    def lose(self, answer: ApiError) -> None:
        """Ends the term because the server said so."""
        kind = LeaseLost
        if answer.reason == "DEPOSED":
            kind = Deposed
            self.notices.append(Notice("tripped", self.token))
        self.end(kind(f"election {self.election!r}, token {self.token}: {answer.detail}", answer.problem))

    def epoch_of(self, answer: RegentError, asked: int = 0) -> int:
        """The token under which the lease goes on, if a refusal says that an operator has begun a new epoch; else 0. The
        server has compared the key: the lease is still the caller's."""
        if not isinstance(answer, LeaseLost) or answer.reason != "EPOCH" or mismatch(answer.problem, self.election, self.candidate):
            return 0
        later = number(answer.problem, "fencingToken")
        return later if later > (asked or self._epoch or self.token) else 0

    def _until(self, sent: float, waited: float, answer: Json) -> float:
        """The deadline by an answer. One that claims more than a lease can have is cut to that."""
        left = min(number(answer, "expiresInMs") / 1000, lease_seconds(answer) or MAX_LEASE, MAX_LEASE)
        return deadline(sent, waited, left, self.margin)

    def _renewed(self, sent: float, now: float, answer: Json) -> Next | None:
        if not self.left(now):
            return None
        if self._epoch:
            self.token, self._epoch = self._epoch, 0
            self.notices.append(Notice("newEpoch", self.token))
        self.failure = None
        self._backoff.reset()
        self.reports.answered()
        self.deadline = max(self.deadline, self._until(sent, 0, answer))
        self._take(sent, 0, now, answer)
        left = self.left(now)
        return Next(sent, self._pause(answer, left), solo=self.states) if left else None

    def _take(self, sent: float, waited: float, now: float, answer: Json) -> None:
        """Takes from an answer what is news beside the deadline."""
        ticket, because, at = answer.get("ticket"), answer.get("endsBecause"), answer.get("endsBy")
        self._ticket = ticket if isinstance(ticket, str) and len(ticket) <= MAX_TICKET else ""
        self.statement, self.unsigned = str(answer.get("statement") or ""), str(answer.get("statementError") or "")
        self.ends_because, self.ends_at = (because, at) if isinstance(because, str) and isinstance(at, str) else ("", "")
        self._ends_on = deadline(sent, waited, number(answer, "endsInMs") / 1000, 0)
        self._note(now)
        self.quorum = _asks_quorum(answer)
        if not self.quorum:
            self.hear_read_only(False)

    def hear_read_only(self, now: bool) -> None:
        """Makes a notice if it is news whether the leader must not write."""
        if now != self.read_only and (self.quorum or not now):
            self.read_only = now
            self.notices.append(Notice("readOnly" if now else "writable", self.token))

    def _note(self, now: float) -> None:
        """Makes a notice if the end of the term has changed. Each report of progress moves the end of a leader that could
        be stuck: it is news only when it is near. That of a lease that stands on another one moves with each renewal."""
        kind = {"parent": "", "approval": "approvalDue"}.get(self.ends_because, self.ends_because)
        if kind == "stuck" and not self.cut:
            kind = ""
        noted = (kind, self.ends_at if kind else "")
        if noted != self._noted:
            self._noted = noted
            self.notices.append(Notice(kind or "goesOn", self.token, max(self._ends_on - now, 0) if kind else 0.0))

    def first(self, now: float) -> Next:
        """When to renew for the first time."""
        return Next(now, self._pause(self.grant, self.left(now)), solo=self.states)

    def _pause(self, answer: Json, left: float) -> float:
        """The longest time until the next renewal: as the server says, but early enough for a retry, and never zero."""
        return max(min(number(answer, "renewInMs") / 1000, left / 2), MIN_RETRY)

    def _failed(self, now: float, error: RegentError) -> Next | None:
        """A renewal failed, or its outcome is unknown. That says nothing about who leads, so the deadline stands."""
        self.failure = error
        left = self.left(now)
        return Next(now, max(min(self._backoff.after(error), left / 4), MIN_RETRY), solo=True) if left else None

    def _expired(self) -> LeaseExpired:
        about = f"election {self.election!r}, token {self.token}: "
        if self.cut:
            return TermEnded(f"{about}the term has ended: {_WHY.get(self.ends_because, self.ends_because)}", self.ends_because)
        why = f": {self.failure}" if self.failure else ""
        return LeaseExpired(f"{about}the lease could not be renewed before its deadline{why}")


def _asks_quorum(lease: Json) -> bool:
    """Whether the policy in an answer asks for a quorum."""
    found: object = lease
    for name in ("configuration", "policy", "quorum"):
        found = found.get(name) if isinstance(found, dict) else None
    return bool(found)


_WHY = {
    "maxTerm": "it was as long as the election's policy allows",
    "approval": "it needed an approval by an operator",
    "stuck": "the leader has reported no progress for as long as the election's policy allows",
    "evicted": "an operator has evicted the leader",
    "drained": "an operator has paused the election",
    "handOver": "the lease passes to another candidate",
    "parent": "the lease that this one stands on has ended, or could not be read",
}


def default_margin(duration: float) -> float:
    """How long before the end of its lease a leader stops believing in it."""
    return min(duration / 10, MAX_MARGIN)


def lease_seconds(lease: Json) -> float:
    """The duration of a lease, which the API writes in seconds, as "1.5s"; 0 if it cannot be read."""
    text = lease.get("leaseDuration")
    try:
        return float(text[:-1]) if isinstance(text, str) and text.endswith("s") else 0.0
    except ValueError:
        return 0.0


def patience(left: float) -> float:
    """The limit of one call of several that there is time for: a part of what is left, so that a silent connection does not
    use up all of it."""
    return min(max(left / 3, MIN_TRY), left)


def early(duration: float) -> float:
    """The duration, shortened by up to a tenth at random, so that leaders that began together spread out."""
    return duration * random.uniform(0.9, 1)
