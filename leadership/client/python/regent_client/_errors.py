"""The errors: one class for each code of Regent, under ApiError; what the client itself finds out, under RegentError.

    RegentError
      ApiError            the server refused, or nothing is known of the outcome: see ApiError.code
        LeaseHeld, NotFound, StoreUnavailable, OutcomeUnknown, …
        LeaseLost         the lease is over
          LeaseExpired    its deadline has passed
            TermEnded     … because the term has ended: see TermEnded.because
          Deposed         the election's policy has ended the term
          Orphaned        the lease that it stands on has ended
          LeaseReleased   it was released
      NotRegent           the answer is not one of Regent
      Cancelled           the call was cancelled
"""

from __future__ import annotations

import re
from typing import Any, ClassVar, Mapping


class RegentError(Exception):
    """What this package raises."""


class Cancelled(RegentError):
    """The call was cancelled, by its Cancel or by Client.close."""


class NotRegent(RegentError):
    """The answer is not one of Regent: of a proxy, a front end, or another kind of server; or its certificate is not accepted,
    and status is 0."""

    def __init__(self, detail: str, status: int) -> None:
        super().__init__(detail)
        self.status = status


class ApiError(RegentError):
    """An error with a code. Each code is a class of its own, with the same words for a name."""

    code: ClassVar[str] = ""
    transient: ClassVar[bool] = False  # the same call may succeed soon
    waits: ClassVar[bool] = False  # it is transient if the server says when to try again

    def __init_subclass__(cls, *, transient: bool = False, waits: bool = False) -> None:
        if ApiError in cls.__bases__:  # others have the code of the class above them
            cls.code = re.sub("(?<=[a-z])(?=[A-Z])", "_", cls.__name__).upper()
            cls.transient, cls.waits = transient, waits

    def __init__(self, detail: str = "", problem: Mapping[str, Any] | None = None, *, retry_after: float = 0.0) -> None:
        super().__init__(detail)
        self.detail = detail
        #: The problem document (RFC 9457) in full. If the error is about an election, it has that as it was found.
        self.problem: Mapping[str, Any] = problem or {}
        #: When asking again may help, in seconds; 0 if that is not known.
        self.retry_after = retry_after

    def __str__(self) -> str:
        return f"{self.code}: {self.detail}" if self.detail else self.code

    @property
    def reason(self) -> str:
        """Why, in one word, as "HELD" of LeaseHeld; empty if there is none."""
        return _text(self.problem.get("reason"))

    @property
    def request_id(self) -> str:
        """Under which the server's log has the call."""
        return _text(self.problem.get("requestId"))

    @property
    def field(self) -> str:
        """With InvalidArgument: the field that is wrong, such as "policy.maxTerm"."""
        errors = self.problem.get("errors")
        first = errors[0] if isinstance(errors, list) and errors and isinstance(errors[0], dict) else {}
        pointer = _text(first.get("pointer")).removeprefix("/").replace("/", ".")
        return _text(first.get("parameter")) or pointer

    @property
    def will_help(self) -> bool:
        """Whether the same call may succeed soon."""
        return self.transient or self.waits and self.retry_after > 0


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


class InvalidArgument(ApiError, ValueError):
    """The request is wrong; correct it before sending it again."""


class Unauthenticated(ApiError, waits=True):
    """The server does not know who calls: send a token."""


class PermissionDenied(ApiError):
    """The caller has no right to do this."""


class NotFound(ApiError):
    """It does not exist."""


class MethodNotAllowed(ApiError):
    """The path has other methods."""


class NotAcceptable(ApiError):
    """The server has no reply of that type."""


class RequestTimeout(ApiError, transient=True):
    """The request did not arrive in time, and nothing was done."""


class LeaseHeld(ApiError):
    """Another candidate leads, or no grant is possible yet: see reason."""


class LeaseLost(ApiError):
    """The lease is over: stop now."""


class LeaseExpired(LeaseLost):
    """The deadline passed before a renewal was answered."""


class TermEnded(LeaseExpired):
    """The deadline passed because the term has ended, however often it is renewed."""

    def __init__(self, detail: str, because: str) -> None:
        super().__init__(detail)
        self.because = because


class Deposed(LeaseLost):
    """The election's policy has ended the term."""


class Orphaned(LeaseLost):
    """The lease that this one stands on has ended."""


class LeaseReleased(LeaseLost):
    """The lease was released by its own process."""


class TokenStale(ApiError):
    """The token is not that of the present leader; do not act on it."""


class ElectionDeleted(ApiError):
    """The election has no leader until an operator configures it anew."""


class NotEligible(ApiError, waits=True):
    """The candidate lacks what the election's policy requires."""


class NotReady(ApiError):
    """The leader has not said that it serves, or its successor that it is ready."""


class DepthExceeded(ApiError):
    """The election is as deep in the tree as its limits allow."""


class IndexMismatch(ApiError):
    """The journal has entries that the caller does not know of."""


class ReadOnly(ApiError):
    """Too few members of the electorate are present: do not write."""


class LimitExceeded(ApiError):
    """There is no room for more; end something first."""


class HistoryCompacted(ApiError):
    """The events, or entries, are no longer kept."""


class RevisionMismatch(ApiError):
    """The election has changed since it was read."""


class PayloadTooLarge(ApiError):
    """The body is too large."""


class UriTooLong(ApiError):
    """The URI is too long."""


class UnsupportedMediaType(ApiError):
    """The server takes no body of that type."""


class RateLimited(ApiError, transient=True):
    """Too many requests; send this one again later."""


class Internal(ApiError, transient=True):
    """The server failed; its log has the cause under the request id."""


class RecordCorrupt(ApiError, transient=True):
    """The store's record cannot be trusted, and nothing is granted on it."""


class RecordTooNew(ApiError, transient=True):
    """The record needs a newer version of the server; nothing was done."""


class StoreUnavailable(ApiError, transient=True):
    """Nothing was done; try again, a leader until its own deadline."""


class Draining(ApiError, transient=True):
    """The instance is shutting down and nothing was done; try again."""


class OutcomeUnknown(ApiError, transient=True):
    """It may have been done; the same call again finds out."""


CODES: dict[str, type[ApiError]] = {kind.code: kind for kind in ApiError.__subclasses__()}
