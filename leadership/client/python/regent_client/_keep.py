"""Renews the leases of a client in the background: one thread that plans, and one for each call that is under way."""

from __future__ import annotations

import logging
import threading
import weakref
from dataclasses import dataclass, field
from typing import Any, Callable

from . import _calls, _reply
from ._cancel import Cancel
from ._errors import OutcomeUnknown, RateLimited, RegentError
from ._gather import ALONE_FOR, Group, Groups, Member
from ._handle import Handle, Listeners
from ._term import Json, Next

log = logging.getLogger("regent_client")

MAX_SLEEP = 1.0  # seconds that a wait is trusted: waits stand still while the machine is suspended, and the clock does not

Answer = Json | RegentError


@dataclass(eq=False)
class _Flight:
    """A call that renews leases."""

    members: list[Member]
    group: Group
    bodies: list[dict[str, Any]] = field(default_factory=list)
    limit: float = 0.0
    fresh: bool = False
    cancel: Cancel = field(default_factory=Cancel)


class _Refused(Exception):
    """The server takes no batch, now or at all. That says nothing about any lease in it."""


class Keeper:
    """Holds leases weakly: one that no caller holds any more is not renewed."""

    def __init__(self, calls: _calls.Calls, clock: Callable[[], float]) -> None:
        self._calls, self._clock = calls, clock
        self._look = threading.Event()  # there may be something to do before the next renewal is due
        self._lock = threading.Lock()  # guards all below; taken before a lease's lock, never held while sending
        self._groups = Groups()
        self._leases: dict[Member, weakref.ref[Handle]] = {}
        self._listeners: dict[Member, Listeners] = {}  # of each lease, to be told when it is held no more
        self._flights: dict[Member, tuple[_Flight, float]] = {}  # of a lease that waits for an answer, and until when
        self._running = False
        self._closed = False

    def add(self, lease: Handle, next: Next) -> None:
        """Renews the lease from now on, until it is over."""
        member = Member(lease.election, lease.duration)
        with self._lock:
            if not self._running:
                threading.Thread(target=self._run, name="regent-client keeper", daemon=True).start()
                self._running = True
            self._leases[member], self._listeners[member] = weakref.ref(lease), lease._listeners
            self._groups.sleep(member, next)
        self.wake()

    def wake(self) -> None:
        """Looks again at which leases are over. Takes no lock."""
        self._look.set()

    def close(self) -> None:
        """Renews no more. The leases that are held still hear of their deadlines."""
        with self._lock:
            self._closed = True
            for member in self._leases:
                self._leave(member)
            leases = [lease for reference in self._leases.values() if (lease := reference())]
            for lease in leases:
                lease._unrenewed()
        if leases:
            log.warning("the client is closed, and the leases that it holds are not renewed any more: %s", ", ".join(l.election for l in leases))
        self.wake()

    def _run(self) -> None:
        pause: float | None = 0.0
        while pause is not None:
            if self._look.wait(pause):
                self._look.clear()
            try:
                pause = self._turn()
            except Exception:
                log.exception("planning renewals failed; trying again")
                pause = MAX_SLEEP

    def _turn(self) -> float | None:
        """Begins the renewals that are due. Returns in how many seconds to do so again, and None to end."""
        with self._lock:
            now = self._clock()
            soonest = self._sweep(now)
            if not self._leases:
                self._running = False
                return None
            if self._closed:
                return soonest
            flights = []
            for members in self._groups.due(now):
                try:
                    flights.append(self._begin(members, now))
                except Exception:  # the others go on, and _sweep plans these anew
                    log.exception("a renewal could not be begun; trying again")
            due = self._groups.next_due()
        for flight in flights:
            self._start(flight)
        return max(min(soonest, MAX_SLEEP if due is None else due - now), 0)

    def _sweep(self, now: float) -> float:
        """Drops leases that are over, gives up on answers that are late, and plans a renewal for a lease that an error has
        left without one. Returns in how many seconds to look again."""
        soonest = MAX_SLEEP
        for member, reference in list(self._leases.items()):
            lease = reference()
            left = lease.remaining() if lease else 0.0
            flight, until = self._flights.get(member, (None, 0.0))
            if not lease or not left:
                self._drop(member)
                continue
            if flight and now >= until:
                self._leave(member)
                self._then(member, lease, lease._heard(until, now, OutcomeUnknown("no answer to the renewal in time")))
            elif not flight and not member.asleep:
                self._groups.sleep(member, Next(now, 0, solo=True))
            soonest = min(soonest, left, until - now if flight and now < until else MAX_SLEEP)
        return soonest

    def _begin(self, members: list[Member], now: float) -> _Flight:
        group = members[0].group
        assert group is not None
        flight, patience = _Flight(members, group), dict[Member, float]()
        for member in members:
            lease = self._leases[member]()
            body, patience[member], fresh = lease._renewal(now) if lease else ({}, 0.0, False)
            flight.bodies.append(body)
            flight.limit, flight.fresh = max(flight.limit, patience[member]), flight.fresh or fresh
        self._flights |= {member: (flight, now + patience[member]) for member in members}
        return flight

    def _start(self, flight: _Flight) -> None:
        thread = threading.Thread(target=self._fly, args=(flight,), name="regent-client renewal", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # no more threads
            self._fly(flight)

    def _fly(self, flight: _Flight) -> None:
        """Makes the call, and has each lease hear its answer."""
        sent = self._clock()
        failure: Exception | None = None
        answers: list[Answer] = []
        try:
            with flight.cancel:
                answers = self._ask(flight)
        except RegentError as error:
            failure, answers = error, [error] * len(flight.members)
        except _Refused as error:
            failure = error
            log.warning("a batch of %d renewals was refused; for %d s its leases are renewed one by one: %s", len(flight.members), ALONE_FOR, error)
        except Exception as error:
            log.exception("a renewal failed")
            failure, answers = error, [OutcomeUnknown(f"the renewal failed: {type(error).__name__}")] * len(flight.members)
        now = self._clock()
        with self._lock:
            if len(flight.members) > 1:
                self._groups.heed(flight.group, now, failed=failure is not None, refused=isinstance(failure, _Refused))
            for i, member in enumerate(flight.members):
                lease = self._leases[member]() if self._flights.get(member, (None,))[0] is flight else None
                if lease:
                    del self._flights[member]
                    self._then(member, lease, lease._heard(sent, now, answers[i]) if answers else lease._alone(now))
        self.wake()

    def _ask(self, flight: _Flight) -> list[Answer]:
        """The answers to the renewals, in their order."""
        if len(flight.members) == 1:
            path = _calls.path(flight.members[0].election, ":renew")
            return [self._calls.call("renew", "POST", path, flight.bodies[0], changes=True, limit=flight.limit, fresh=flight.fresh)]
        renewals = [{"election": member.election, **body} for member, body in zip(flight.members, flight.bodies)]
        try:
            answer = self._calls.call(
                "batch renew", "POST", "/v1/elections:batchRenew", {"renewals": renewals},
                changes=True, limit=flight.limit, fresh=flight.fresh, largest=_calls.LARGE,
            )
        except RegentError as error:
            if isinstance(error, RateLimited) or not getattr(error, "will_help", False) and not flight.cancel.cancelled:
                raise _Refused(str(error)) from None
            raise
        return _results(answer, flight.members)

    def _then(self, member: Member, lease: Handle, next: Next | None) -> None:
        if next:
            self._groups.sleep(member, next)
        else:
            self._drop(member)

    def _drop(self, member: Member) -> None:
        self._leave(member)
        self._groups.leave(member)
        lease, listeners = self._leases.pop(member)(), self._listeners.pop(member)
        for listener, _ in [] if lease else list(listeners):
            listener()

    def _leave(self, member: Member) -> None:
        """The lease waits no more for its answer. A call that no lease waits for is cancelled."""
        flight, _ = self._flights.pop(member, (None, 0.0))
        if flight and not any(self._flights.get(other, (None,))[0] is flight for other in flight.members):
            flight.cancel.cancel()


def _results(answer: Json, members: list[Member]) -> list[Answer]:
    """The answers in a batch. One that does not answer its renewal spoils all."""
    results = answer.get("results")
    if not isinstance(results, list) or len(results) != len(members):
        raise OutcomeUnknown("the reply to the batch has not one result for each renewal")
    answers: list[Answer] = []
    for i, (result, member) in enumerate(zip(results, members)):
        given = result if isinstance(result, dict) else {}
        lease, error = given.get("lease"), given.get("error")
        refusal = _reply.problem(error, at=f"/renewals/{i}") if isinstance(error, dict) else None
        if given.get("election") != member.election or not (refusal or isinstance(lease, dict)):
            raise OutcomeUnknown(f"the result at /renewals/{i} is not about election {member.election!r}")
        answers.append(refusal or lease or {})
    return answers
