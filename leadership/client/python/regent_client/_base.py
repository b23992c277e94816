"""What the clients with threads and with asyncio have in common: how they are made, and the options of lead."""

from __future__ import annotations

import ssl
from typing import Any, Callable, Generic, Iterable, Mapping, TypeVar

from . import _clock, _wire
from ._calls import Credential
from ._campaign import Options
from ._core import Core
from ._errors import InvalidArgument
from ._handle import Handle
from ._model import Succession

L = TypeVar("L")


class Base(Generic[L]):
    """See client.Client and aio.Client."""

    def __init__(
        self, server: str, *, candidate: str | None = None, credential: Credential | None = None, insecure: bool = False,
        tls: ssl.SSLContext | None = None, clock: Callable[[], float] = _clock.now,
    ) -> None:
        """`server` is a URL; http:// is for this machine only, unless `insecure` is set. `candidate` names this process; it
        is the host's name otherwise, so that orders against it hold after a restart. Two processes of one host are then
        incarnations of one candidate: one leads, and the other waits. `credential` identifies the caller. `tls` is for servers with certificates of their own.
        `clock` counts deadlines in seconds: nothing may set it, and it must run while the machine is suspended."""
        self._core = Core(server, candidate=candidate, credential=credential, insecure=insecure, tls=tls, clock=clock)

    @property
    def candidate(self) -> str:
        """The name under which this client leads."""
        return self._core.candidate

    def lead(
        self, election: str, *, lease: _wire.Duration | None = None, wait: _wire.Duration | None = None,
        margin: _wire.Duration = 0, candidate: str | None = None, role: str = "", priority: int = 0,
        capabilities: Iterable[str] = (), load: int | Callable[[], int] = 0, metadata: Mapping[str, Any] | None = None,
        note: str = "", via: Handle | None = None, via_peer: str = "", inherit: bool = False, statement: bool = False,
        on_succession: Callable[[Succession], object] | None = None, on_promotion: Callable[[Any], object] | None = None,
    ) -> L:
        """A block that leads: it waits in line until this candidate leads, renews the lease in the background, and
        releases it after the block.

        A block that finds out by lease.valid(), check() or done that the lease is over has to end soon, within the
        margin. If the lease was over before the end of a block that raises nothing, LeaseLost is raised after it.

        `lease` is the duration to ask for, 1 s to 24 h; the election's configuration decides otherwise. `wait` is how long
        to stand in line: None for as long as it takes; 0 to raise LeaseHeld if another candidate leads. Where the server
        does not answer, lead ends within 15 s after that. `margin` is the
        time before the end of the lease that the leader needs to stop: a tenth, 1 s at most, if it is left out.
        `metadata`, a JSON object, and `note`, a line, describe the leader to readers.

        Where the election's policy asks for it, these count: a greater `priority`; `capabilities`, names such as "gpu";
        a smaller `load`, a number, or a function that is asked before each call; the `role` "witness", which stands in
        line, counts for the quorum, and never leads.

        `via` is a lease of this process that the new one stands on, and ends with at the latest; `via_peer` names the
        service that has granted it, if it is another. `inherit` asks for the checkpoint that the last leader has left,
        for the effects that earlier leaders have not finished, and for open proposals. `statement` asks for a signed
        statement with the grant and each renewal: see lease.statement.

        `on_succession` is called, beside, on a candidate that waits when the present leader is to hand over to it: it loads
        what the successor needs. Once it returns, the candidate says that it is ready, and the lease passes to it when the
        leader has stopped; without it, it is ready at once. After an error it waits in line as before. If the lease is free
        before it has returned, the block begins all the same, beside it; what it does then no longer matters (with asyncio
        it is cancelled), so a block that needs what it loads has to wait for that itself. `on_promotion` is
        called with a new lease where the election's policy asks for that (promotion): once it returns, the election may be
        written to. After an error the lease is released, and the error raised. With asyncio both may be coroutine functions.

        Errors: LeaseHeld, once the wait is over; those that another call would not change, such as InvalidArgument,
        ElectionDeleted, PermissionDenied and NotEligible; Orphaned; Cancelled. A campaign that fails leaves no lease
        behind if the server can be reached.
        """
        kinds: Any  # mypy finds object in the table
        for name, value, want, kinds in (
            ("role", role, "a text", str), ("priority", priority, "an integer", int), ("metadata", metadata, "a dict", (Mapping, type(None))),
            ("note", note, "a text", str), ("via", via, "a lease of this process", (Handle, type(None))), ("via_peer", via_peer, "a text", str),
            ("inherit", inherit, "True or False", bool), ("statement", statement, "True or False", bool),
        ):
            _wire.check_type(name, value, want, isinstance(value, kinds))
        for name, function in (("on_succession", on_succession), ("on_promotion", on_promotion)):
            _wire.check_type(name, function, "a function", function is None or callable(function))
        _wire.check_type("load", load, "an integer, or a function that returns one", isinstance(load, int) or callable(load))
        name = candidate if candidate is not None else (via.candidate if via else self._core.candidate)
        if via and name != via.candidate:
            raise InvalidArgument(f"the candidate {name!r} cannot stand on the lease of {via.candidate!r}; leave candidate out")
        if via_peer and not via:
            raise InvalidArgument("via_peer needs the lease that it has granted; set via")
        if isinstance(capabilities, (str, bytes)) or not isinstance(capabilities, Iterable):
            raise InvalidArgument(f"capabilities is {capabilities!r}; it is a list of names")
        body = {
            "candidateId": _wire.check_candidate(name), "role": role, "priority": priority, "note": note, "inherit": inherit, "statement": statement,
            "capabilities": sorted(set(capabilities)), "metadata": None if metadata is None else _wire.encoded("metadata", dict(metadata))[0],
            "leaseDuration": None if lease is None else _wire.text(_wire.seconds(lease, "lease")),
        }
        return self._leading(election, Options(
            {member: value for member, value in body.items() if value or member == "metadata" and value is not None},
            None if wait is None else _wire.seconds(wait, "wait"), _wire.seconds(margin, "margin"),
            load, via, via_peer, on_succession, on_promotion,
        ))

    def _leading(self, election: str, options: Options) -> L:
        raise NotImplementedError
