"""What leaders are asked: the sides of the proposer and of the leader."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generator

from . import _cancel, _quorum
from ._backoff import Backoff
from ._calls import LARGE, LIMIT, MAX_WAIT, path
from ._errors import ApiError, InvalidArgument, OutcomeUnknown
from ._model import JSON, Proposal, Proposals, answer
from ._stream import Beside, sleep
from ._wire import encoded, text

if TYPE_CHECKING:
    from ._core import Core
    from ._handle import Handle

MAX_DATA = 2 << 10  # bytes of the JSON of one proposal


def propose(core: Core, election: str, body: dict[str, Any], data: JSON, ttl: float, wait: float) -> Proposal:
    """See Client.propose. Asks again when a call has waited for as long as one may, and after what may pass."""
    if wait > ttl:
        raise InvalidArgument(f"the proposal is kept for {ttl:g} s, so wait for no longer than that, and not for {wait:g} s")
    body["ttl"] = text(ttl)
    if data is not None:
        body["data"] = encoded("data", data, MAX_DATA, "put it elsewhere, and propose where it is")[0]
    end, backoff = core.clock() + wait, Backoff()
    while True:
        part = max(min(end - core.clock(), MAX_WAIT), 0)
        try:
            reply = core.calls.call("propose", "POST", path(election, ":propose"), {**body, "wait": text(part)}, changes=True, limit=LIMIT + part)
            found = answer(Proposal, reply, election, changes=True)
            if found.proposal_id != body["proposalId"]:
                raise OutcomeUnknown("propose: the reply is about another proposal")
            if found.decision or core.clock() >= end:
                return found
        except ApiError as error:
            if not error.will_help or core.clock() >= end:
                raise
            sleep(core.calls, min(backoff.after(error), end - core.clock()))


def proposals_to(lease: Handle) -> Generator[Proposal, None, None]:
    """See Lease.asked. A thread beside hears that there may be some; this one reads them."""
    news, cancel, beside = _cancel.Wake(), _cancel.current(), Beside()
    asked, seen = True, set[str]()

    def hear(change: str) -> None:
        nonlocal asked
        if change == "asked":
            asked = True
            news.set()

    unlisten = lease._listen(news.set, notices=False)
    beside.go(lambda: _quorum.watch(lease._core.calls, lease.election, lease.candidate, hear))
    try:
        with cancel.hook(news.set):
            while lease.valid():
                cancel.check()
                if asked:
                    asked = False
                    try:
                        found = lease._core.calls.call("proposals", "GET", path(lease.election, "/proposals"), largest=LARGE, limit=min(LIMIT, lease.remaining()))
                    except ApiError as error:
                        if not error.will_help:
                            raise
                        asked = True  # try again in a moment
                        news.wait(1)
                        continue
                    open = answer(Proposals, found, lease.election).open
                    fresh = [p for p in open if p.proposal_id not in seen]
                    seen = {p.proposal_id for p in open}
                    yield from fresh if lease.valid() else ()
                else:
                    news.wait(1)
    finally:
        beside.stop()
        unlisten()
