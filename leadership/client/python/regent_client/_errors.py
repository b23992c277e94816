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
    """An error with a code. Each code is a class of its own."""

    code: ClassVar[str] = ""
    transient: ClassVar[bool] = False  # the same call may succeed soon

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

    waits: ClassVar[bool] = False  # it is transient if the server says when to try again


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


class InvalidArgument(ApiError, ValueError):
    """The request is wrong; correct it before sending it again."""

    code = "INVALID_ARGUMENT"


class Unauthenticated(ApiError):
    """The server does not know who calls: send a token."""

    code, waits = "UNAUTHENTICATED", True


class PermissionDenied(ApiError):
    """The caller has no right to do this."""

    code = "PERMISSION_DENIED"


class NotFound(ApiError):
    """It does not exist."""

    code = "NOT_FOUND"


class MethodNotAllowed(ApiError):
    """The path has other methods."""

    code = "METHOD_NOT_ALLOWED"


class NotAcceptable(ApiError):
    """The server has no reply of that type."""

    code = "NOT_ACCEPTABLE"


class RequestTimeout(ApiError):
    """The request did not arrive in time, and nothing was done."""

    code, transient = "REQUEST_TIMEOUT", True


class LeaseHeld(ApiError):
    """Another candidate leads, or no grant is possible yet: see reason."""

    code = "LEASE_HELD"


class LeaseLost(ApiError):
    """The lease is over: stop now."""

    code = "LEASE_LOST"


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

    code = "TOKEN_STALE"


class ElectionDeleted(ApiError):
    """The election has no leader until an operator configures it anew."""

    code = "ELECTION_DELETED"


class NotEligible(ApiError):
    """The candidate lacks what the election's policy requires."""

    code, waits = "NOT_ELIGIBLE", True


class NotReady(ApiError):
    """The leader has not said that it serves, or its successor that it is ready."""

    code = "NOT_READY"


class DepthExceeded(ApiError):
    """The election is as deep in the tree as its limits allow."""

    code = "DEPTH_EXCEEDED"


class IndexMismatch(ApiError):
    """The journal has entries that the caller does not know of."""

    code = "INDEX_MISMATCH"


class ReadOnly(ApiError):
    """Too few members of the electorate are present: do not write."""

    code = "READ_ONLY"


class LimitExceeded(ApiError):
    """There is no room for more; end something first."""

    code = "LIMIT_EXCEEDED"


class HistoryCompacted(ApiError):
    """The events, or entries, are no longer kept."""

    code = "HISTORY_COMPACTED"


class RevisionMismatch(ApiError):
    """The election has changed since it was read."""

    code = "REVISION_MISMATCH"


class PayloadTooLarge(ApiError):
    """The body is too large."""

    code = "PAYLOAD_TOO_LARGE"


class UriTooLong(ApiError):
    """The URI is too long."""

    code = "URI_TOO_LONG"


class UnsupportedMediaType(ApiError):
    """The server takes no body of that type."""

    code = "UNSUPPORTED_MEDIA_TYPE"


class RateLimited(ApiError):
    """Too many requests; send this one again later."""

    code, transient = "RATE_LIMITED", True


class Internal(ApiError):
    """The server failed; its log has the cause under the request id."""

    code, transient = "INTERNAL", True


class RecordCorrupt(ApiError):
    """The store's record cannot be trusted, and nothing is granted on it."""

    code, transient = "RECORD_CORRUPT", True


class RecordTooNew(ApiError):
    """The record needs a newer version of the server; nothing was done."""

    code, transient = "RECORD_TOO_NEW", True


class StoreUnavailable(ApiError):
    """Nothing was done; try again, a leader until its own deadline."""

    code, transient = "STORE_UNAVAILABLE", True


class Draining(ApiError):
    """The instance is shutting down and nothing was done; try again."""

    code, transient = "DRAINING", True


class OutcomeUnknown(ApiError):
    """It may have been done; the same call again finds out."""

    code, transient = "OUTCOME_UNKNOWN", True


CODES: dict[str, type[ApiError]] = {kind.code: kind for kind in ApiError.__subclasses__()}
