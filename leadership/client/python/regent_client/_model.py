"""What the server says, as values. Durations are in seconds. Times are RFC 3339 texts by the store's clock, for people.

Members that this version does not know are ignored; those that are objects stay dictionaries, as the API documents them."""

from __future__ import annotations

import collections.abc
import dataclasses
import functools
import re
import typing
from dataclasses import dataclass
from typing import Any, Mapping, TypeVar

from ._errors import OutcomeUnknown, StoreUnavailable

T = TypeVar("T")
JSON = Any
Object = Mapping[str, Any]
_OURS = {"ours": True}  # of a field: it is in no document


class Malformed(ValueError):
    """A document is not what the API promises."""


@dataclass(frozen=True)
class Succession:
    """A hand-over that is under way."""

    to: str
    ready: bool
    until: float  # what is left of the present term
    yielded: bool = False


@dataclass(frozen=True)
class Reading:
    """An election at one point in time. Only the token protects a resource: what was read may have changed since."""

    election: str
    state: str  # "held" or "vacant"
    token: int  # of the leader or, if there is none, of the last one
    revision: int
    lease_duration: str
    read_at: str
    leader_id: str = ""  # empty: nobody leads
    expires_in: float = 0.0
    locked_for: float = 0.0
    max_staleness: float = 0.0  # how old the answer was at most when it was sent; 0: it was read for this call
    ends_by: str = ""
    ends_because: str = ""
    ends_in: float = 0.0
    succession: Succession | None = None
    serving: bool = True
    deleted: bool = False
    note: str = ""
    metadata: Object | None = None
    report: Object | None = None
    reported_at: str = ""
    via: Object | None = None
    configuration: Object | None = None


@dataclass(frozen=True)
class Page:
    elections: list[Reading]
    next_page_token: str = ""  # empty: this is the last page


@dataclass(frozen=True)
class Event:
    """One revision of an election. observe() yields the present state first, as an event whose type is empty."""

    election: str
    revision: int
    token: int
    type: str = ""
    at: str = ""
    leader_id: str = ""  # after the change; empty: nobody leads
    previous_leader_id: str = ""
    request_id: str = ""
    actor: str = ""
    reason: str = ""
    detail: Object | None = None
    # observe(after=cursor) continues after this event. It is empty while the present states of many elections are told.
    cursor: str = dataclasses.field(default="", metadata=_OURS)
    state: Reading | None = dataclasses.field(default=None, metadata=_OURS)  # if type is empty


@dataclass(frozen=True)
class History:
    events: list[Event]
    next_after: int = 0


@dataclass(frozen=True)
class Node:
    id: str
    role: str
    term: int = 0  # the newest token that it follows; 0: not known
    last_heartbeat_ago: float = 0.0
    position: int | None = None  # in line, from 1
    note: str = ""
    applied: int | None = None
    lag: int | None = None
    seat: int = 0  # of which it is a member; 0: of the election itself


@dataclass(frozen=True)
class Members:
    """An election as a cluster."""

    election: str
    cluster_size: int
    term: int
    status: str
    participation: float
    complete: bool
    nodes: list[Node]
    leader: str = ""
    read_only: bool = False
    journal_index: int = 0
    seats: int = 0  # that the election has; nodes are then those of all seats, too
    quorum: Object | None = None


@dataclass(frozen=True)
class Acknowledgement:
    """Which members follow a token, or have applied the journal."""

    election: str
    need: int
    acknowledged: bool
    complete: bool
    follow: list[str]
    missing: list[str]
    token: int = 0
    journal_index: int = 0


@dataclass(frozen=True)
class Explanation:
    election: str
    candidate_id: str
    leads: bool
    reasons: list[Object]
    seat: int = 0  # at which it leads, of an election with seats
    read_at: str = ""


@dataclass(frozen=True)
class Checkpoint:
    """What a leader has left behind: data, or the uri where it is."""

    token: int
    leader_id: str
    at: str
    election: str = ""
    sequence: int = 0  # how many the leader has put
    task: str = ""
    data: JSON = None
    uri: str = ""
    sha256: str = ""
    ended_because: str = ""  # of what was inherited: why that leader's term ended, if it was the last


@dataclass(frozen=True)
class Effect:
    """What a leader has noted before it caused it. The states are "new" (the answer to begin_effect: the caller may cause
    it), "begun", "done", and "inDoubt" (begun under an earlier token, or by an earlier call, and not finished); later
    versions may add some."""

    effect_id: str
    state: str
    token: int  # of the leader that began it or, if it is done, of the one that finished it
    leader_id: str
    at: str
    election: str = ""
    result: JSON = None  # if it is done and has one


@dataclass(frozen=True)
class Effects:
    election: str
    effects: list[Effect]  # those that were changed last at the end
    token: int = 0  # the highest under which effects were begun, finished or inherited; 0: none


@dataclass(frozen=True)
class Decision:
    """What a leader has said of a proposal. It never changes."""

    verdict: str  # "accepted" or "rejected"
    token: int  # of the leader
    leader_id: str
    at: str
    note: str = ""


@dataclass(frozen=True)
class Proposal:
    """What the leader of an election is asked."""

    election: str
    proposal_id: str
    candidate_id: str  # of the proposer
    kind: str
    at: str
    until: str  # it is kept until then, by the store's clock; a decision for the ttl anew
    data: JSON = None
    principal: str = ""  # as which the proposer has called, if that was verified
    decision: Decision | None = None  # None while it is open


@dataclass(frozen=True)
class Proposals:
    election: str
    open: list[Proposal]
    decided: list[Proposal]  # the last ones, in the order of their decisions


@dataclass(frozen=True)
class Entry:
    """An entry of a journal."""

    index: int
    token: int
    at: str
    type: str = ""
    data: JSON = None


@dataclass(frozen=True)
class Snapshot:
    """Stands for all entries of a journal up to its index: what was built from them is to be replaced by it. After the
    store was restored from a backup it comes anew; if there is none, its index is 0 and it has no data: begin with nothing."""

    index: int
    token: int
    at: str
    data: JSON = None
    uri: str = ""


@dataclass(frozen=True)
class JournalHead:
    election: str
    index: int
    snapshot_index: int
    token: int = 0


@dataclass(frozen=True)
class JournalPage:
    election: str
    index: int
    snapshot_index: int
    entries: list[Entry]
    token: int = 0
    generation: int = 0  # see Snapshot


_NAMES = {"token": "fencingToken"}  # beside those that differ by their case alone
_PLAIN = {"participation"}  # other floats are durations, in members whose names end with Ms


def parse(kind: type[T], document: object) -> T:
    """Makes a value of a document of the API. Raises Malformed if a member is missing or of another type."""
    if not isinstance(document, dict):
        raise Malformed(f"it is {type(document).__name__}, not an object")
    values: dict[str, Any] = {}
    hashable: Any = kind
    for field, name, hint, required in _fields(hashable):
        if document.get(name) is not None:
            values[field] = _value(hint, name, document[name])
        elif required:
            raise Malformed(f"it has no member {name}")
    return kind(**values)


def answer(kind: type[T], document: object, election: str = "", *, changes: bool = False) -> T:
    """The document of a success as a value, which is about that election if one is named."""
    try:
        found = parse(kind, document)
        if election and getattr(found, "election", election) not in ("", election):
            raise Malformed("it is about another election")
    except Malformed as error:
        raise (OutcomeUnknown if changes else StoreUnavailable)(f"the reply does not answer this call: {error}") from error
    return found


@functools.lru_cache(None)
def _fields(kind: Any) -> list[tuple[str, str, Any, bool]]:
    """Returns of each field its name here, that in a document, its type, and whether it must be there."""
    hints = typing.get_type_hints(kind)
    fields = [f for f in dataclasses.fields(kind) if not f.metadata]
    return [(f.name, _name(kind, f.name, hints[f.name]), hints[f.name], f.default is dataclasses.MISSING) for f in fields]


def _name(kind: type[Any], field: str, hint: object) -> str:
    if kind is Snapshot and field == "index":
        return "upTo"
    name = re.sub(r"_([a-z])", lambda m: m[1].upper(), _NAMES.get(field, field))
    return name + "Ms" if hint is float and name not in _PLAIN else name


def _value(hint: Any, name: str, value: object) -> Any:
    if type(None) in typing.get_args(hint):
        hint = typing.get_args(hint)[0]
    origin = typing.get_origin(hint)
    if hint is Any:
        return value
    if origin is list and isinstance(value, list):
        return [_value(typing.get_args(hint)[0], name, item) for item in value]
    if dataclasses.is_dataclass(hint) and isinstance(value, dict):
        return parse(hint, value)
    if origin is collections.abc.Mapping and isinstance(value, dict):
        return value
    if hint is float and (type(value) is int or type(value) is float):
        return value if name in _PLAIN else value / 1000
    if hint in (int, str, bool) and type(value) is hint:
        return value
    raise Malformed(f"its member {name} is {type(value).__name__}")
