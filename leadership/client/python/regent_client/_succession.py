"""Handing a term over: what is heard of a hand-over, and what its successor does."""

from __future__ import annotations

import functools
import threading
from typing import Callable

from . import _cancel
from ._backoff import Backoff
from ._calls import Calls, path
from ._errors import RegentError
from ._model import Event, Succession
from ._stream import Beside, log, passes, sleep
from ._watch import Watch

_ATTEND_AFTER = 1.0  # seconds: most that are granted a lease at once need no stream


def after(now: Succession | None, event: Event) -> Succession | None:
    """The hand-over of a term after an event of its election."""
    if event.state is not None:
        return event.state.succession
    detail = event.detail or {}
    to = detail.get("candidateId" if event.type in ("assigned", "ready") else "to")
    if not isinstance(to, str):
        to = ""
    if event.type in ("handingOver", "assigned"):
        renamed = to and to != event.leader_id and (now is None or to != now.to)
        return Succession(to, ready=False, until=0.0) if renamed else now
    if event.type == "ready":
        return Succession(to, ready=True, until=0.0)
    if event.type == "yielded":
        return Succession(to, ready=True, until=0.0, yielded=True)
    if event.type in ("goesOn", "acquired") or not event.leader_id:
        return None
    return now


class Hearing:
    """What a leader hears of the hand-over of its term by the election's events."""

    def __init__(self, calls: Calls, election: str, leader: str, now: Succession | None) -> None:
        self._calls, self._election, self._leader = calls, election, leader
        self._changed = threading.Condition()
        self._now = now  # guarded by _changed

    def watch(self) -> None:
        for event in Watch(self._election, "", None).events(self._calls):
            if event.leader_id == self._leader:
                with self._changed:
                    self._now = after(self._now, event)
                    self._changed.notify_all()

    def ready(self, patience: float) -> bool:
        """Waits until there is a successor that is ready, for that long."""
        with self._changed:
            return self._changed.wait_for(lambda: self._now is not None and self._now.ready, patience)


class Heir:
    """Looks, while a candidate waits, after a hand-over to it.

    named --> on_succession --> says ready --> the leader yields --> its call that waits in line is granted
      ^              |                              |
      +-- another is named, or another leads: cancelled
    """

    def __init__(self, calls: Calls, election: str, candidate: str, key: str, load: Callable[[Succession], object] | None) -> None:
        self._calls, self._election, self._candidate = calls, election, candidate
        self._body = {"candidateId": candidate, "key": key}
        self._load = load
        self._prepares = False
        self._term = 0  # the token of the leader that is to hand over
        self._now: Succession | None = None
        self._work: Beside | None = None  # what prepares for it

    def attend(self) -> None:
        """Runs beside the campaign, until that is over."""
        sleep(self._calls, _ATTEND_AFTER)
        try:
            for event in Watch(self._election, "", None).events(self._calls):
                self._hear(event)
        finally:
            self._withdraw()

    def _hear(self, event: Event) -> None:
        now = after(self._now if event.token == self._term else None, event)
        mine = now is not None and now.to == self._candidate and event.leader_id != self._candidate
        if event.token != self._term or not mine:
            self._withdraw()
        self._term, self._now = event.token, now
        if mine and now and not now.ready and not self._prepares:
            self._prepares = True
            self._work = Beside()
            self._work.go(functools.partial(self._prepare, now, event.token))

    def _withdraw(self) -> None:
        """Ends what prepares for a hand-over that does not come. Nothing waits for what has begun to load: the candidate may
        have been granted the lease meanwhile, which is renewed already."""
        self._prepares = False
        if self._work:
            self._work.stop()

    def _prepare(self, named: Succession, token: int) -> None:
        """Loads what the successor needs, and says that it is ready to follow the leader with the token."""
        log.info("election %s: named as the successor of token %d", self._election, token)
        if self._load:
            try:
                self._load(named)
            except Exception as error:
                _cancel.current().check()  # it matters no more
                log.warning("election %s: the candidate does not take over; it waits in line as before: %s", self._election, error)
                return
        backoff = Backoff()
        while True:
            try:
                self._calls.call("say ready", "POST", path(self._election, ":ready"), {**self._body, "fencingToken": token}, changes=True)
                log.info("election %s: ready to take over", self._election)
                return
            except RegentError as error:
                if not passes(error):
                    raise
                pause = backoff.after(error)
            sleep(self._calls, pause)
