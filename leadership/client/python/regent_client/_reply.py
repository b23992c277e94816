"""What the reply to a call means. Without I/O."""

from __future__ import annotations

import json
from typing import Any

from . import _http
from ._errors import (
    CODES, ApiError, Internal, NotRegent, OutcomeUnknown, PermissionDenied, RateLimited, RegentError, StoreUnavailable, Unauthenticated,
)
from ._wire import hidden

_MAX_START = 256  # bytes that an error shows of a reply that is not Regent's


def lost(changes: bool, detail: str) -> ApiError:
    """The error of a call whose answer is lost: it may have been carried out if it changes something."""
    return OutcomeUnknown(detail) if changes else StoreUnavailable(detail)


def read(name: str, changes: bool, reply: _http.Reply) -> dict[str, Any]:
    """The document of a success. Any other reply is raised."""
    kind = reply.headers.get_content_type()
    document = _members(reply.body)
    if reply.status == 200 and kind == "application/json":
        if document is None:
            raise lost(changes, f"{name}: the reply is no JSON object")
        return document
    if kind == "application/problem+json" and document is not None and (error := problem(document, reply.status)):
        raise error
    raise _foreign(name, changes, reply, kind)


def problem(document: dict[str, Any], status: int = 0, at: str = "") -> ApiError | None:
    """The error that a problem document is; None if it is none. `at` is the place of its request in a batch, which its
    fields do not name then. A newer server may have codes that this client does not know: their status says whether
    asking again may help."""
    code, detail, retry = (document.get(name) for name in ("code", "detail", "retryAfterMs"))
    if not isinstance(code, str) or not code:
        return None
    if at and isinstance(errors := document.get("errors"), list):
        document = {**document, "errors": [_out(one, at) for one in errors if isinstance(one, dict)]}
    kind, text = CODES.get(code), detail if isinstance(detail, str) else ""
    if kind is None:
        status = status or int(document.get("status") or 0)
        kind, text = (Internal if status >= 500 or status in (408, 429) else ApiError), f"{code}: {text}"
    return kind(text, document, retry_after=retry / 1000 if type(retry) is int and retry > 0 else 0.0)


def _out(field: dict[str, Any], at: str) -> dict[str, Any]:
    return {**field, "pointer": str(field.get("pointer") or "").removeprefix(at)}


def _foreign(name: str, changes: bool, reply: _http.Reply, kind: str) -> RegentError:
    """The error in a reply that is not Regent's. A front end refuses before it forwards; but after an error of its own
    (5xx), or a success, the request may have been forwarded."""
    status, start = reply.status, hidden(reply.body[:_MAX_START].decode("utf-8", "replace"))
    text = f"{name}: HTTP status {status} with {kind!r} is not a reply of Regent: {start!r}"
    if 300 <= status < 400:
        return NotRegent(
            f"{name}: the server answers with a redirect (HTTP status {status}), which is not followed: a request contains a "
            "key, which is for this server only. Give the client the address of Regent itself", status,
        )
    if "HTTP request to an HTTPS server" in start or "HTTP request was sent to HTTPS port" in start:
        text += "; call it with https://"
    seconds = reply.headers.get("Retry-After") or ""
    retry = float(seconds) if seconds.isdecimal() and len(seconds) < 10 else 0.0
    by_status: dict[int, type[ApiError]] = {401: Unauthenticated, 403: PermissionDenied, 429: RateLimited}
    if status in by_status:
        return by_status[status](text, retry_after=retry)
    if status >= 500 or status < 300 or status == 408:
        error = lost(changes, text)
        error.retry_after = retry
        return error
    return NotRegent(text, status)


def _members(text: bytes) -> dict[str, Any] | None:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None
