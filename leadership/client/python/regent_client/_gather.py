"""Gathers the renewals of a client's leases into few calls. Without I/O, threads or a clock; not safe for several threads.

Each lease belongs to a group, and the leases of a group aim at the same instants: the marks of a grid that is the
group's own. A lease that is not on a mark yet is renewed up to a tenth of its duration early, once in each period, until
it is. The first of them that is due takes along all that may go; nothing waits, and a lease that is alone, or whose last
renewal has failed, is renewed by itself. The Go SDK does the same: see leadership/adr/0019.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from ._term import MAX_LEASE, Next, early

MAX_GROUP = 100  # leases in one call; a server sends as many to its store at once
ALONE_FOR = 600.0  # seconds that each lease is renewed by itself after batches were refused, or have failed


@dataclass(eq=False)
class Member:
    """A lease that is renewed."""

    election: str
    duration: float
    group: Group | None = None
    due: float = 0.0  # it is renewed then
    start: float = 0.0  # from then on it may go with another lease that is due
    solo: bool = False  # it goes by itself
    asleep: bool = False  # it waits to be renewed


@dataclass(eq=False)
class Group:
    """Up to MAX_GROUP leases, each of another election."""

    offset: float = field(default_factory=lambda: random.uniform(0, MAX_LEASE))  # processes that began together spread out
    members: dict[str, Member] = field(default_factory=dict)
    alone: float = 0.0  # until then there are no batches
    doubt: bool = False  # the last batch has failed

    def mark(self, until: float, step: float) -> float:
        """The last mark of the grid until then."""
        return until - (until - self.offset) % step


class Groups:
    def __init__(self) -> None:
        self._all: list[Group] = []

    def sleep(self, member: Member, next: Next) -> None:
        """Plans the next renewal. From now on a batch may take the lease along, unless it goes by itself."""
        self._join(member)
        member.asleep, member.solo = True, next.solo
        if next.solo:
            member.due = member.start = next.since + next.pause
        else:
            self._plan(member, next.since, next.pause)

    def leave(self, member: Member) -> None:
        """Removes a lease that is over."""
        member.asleep = False
        if member.group:
            del member.group.members[member.election]
            member.group = None

    def due(self, now: float) -> list[list[Member]]:
        """The leases to renew now, as the calls they go in. They are asleep no more."""
        calls = []
        for group in self._all:
            while first := next((m for m in group.members.values() if m.asleep and m.due <= now), None):
                calls.append(self._rouse(group, first, now))
        return calls

    def next_due(self) -> float | None:
        """When the next renewal is due."""
        return min((m.due for g in self._all for m in g.members.values() if m.asleep), default=None)

    def heed(self, group: Group, now: float, *, failed: bool, refused: bool) -> None:
        """Decides after a batch whether the group sends none for a time. An outage fails one batch: until it is over,
        each lease tries by itself."""
        if refused or failed and group.doubt:
            group.alone = now + ALONE_FOR
        group.doubt = failed

    def _rouse(self, group: Group, first: Member, now: float) -> list[Member]:
        first.asleep = False
        call = [first]
        if not first.solo and now >= group.alone:
            call += [m for m in group.members.values() if m.asleep and not m.solo and now >= m.start]
        for member in call:
            member.asleep = False
        return call

    def _join(self, member: Member) -> None:
        """Adds a lease to the first group that has room for it, so that groups stay full when leases end."""
        for group in self._all:
            if group is member.group:
                return
            if member.election not in group.members and len(group.members) < MAX_GROUP:
                break
        else:
            self._all.append(group := Group())
        self.leave(member)
        member.group = group
        group.members[member.election] = member

    def _plan(self, member: Member, sent: float, pause: float) -> None:
        """Sets when to renew a lease that was renewed at `sent`: after the pause at the latest. A lone lease is renewed
        up to a tenth of the pause early, at random."""
        group, latest = member.group, sent + pause
        assert group is not None
        member.due, member.start = sent + early(pause), latest - min(member.duration / 10, pause / 2)
        # servers say a third of a lease, less a tenth of that at most; so each pause has a mark
        step = member.duration * 0.295
        if len(group.members) == 1 or pause < step or step <= 0:
            return
        if (mark := group.mark(latest, step)) >= member.start:
            # leases that are still on their way to a mark must not draw this one away from it
            member.due, member.start = mark, max(mark - member.duration / 100, member.start)
        elif (mark := group.mark(member.start + step / 5, step / 5)) <= latest:
            member.due = mark
