"""Calls of a server: names of paths, the credential of the caller, and errors by code."""

from __future__ import annotations

import json
import ssl
import time
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, Callable, Iterable, Iterator, Mapping
from urllib.parse import urlencode

from . import _cancel, _http, _reply
from ._errors import Cancelled, InvalidArgument, NotRegent, StoreUnavailable
from ._wire import address, check_election

LIMIT = 30.0  # seconds of a call, in addition to the wait that it asks for
MAX_WAIT = 60.0  # seconds that one call may wait
LARGE = 16 << 20  # bytes of a reply with many elections

#: The credential that identifies the caller, such as an ID token, or a function that returns it, called before each request,
#: in a thread of its own. A call does not wait for it for longer than its limit, or after it is cancelled.
Credential = str | Callable[[], str]


def path(election: str, suffix: str = "") -> str:
    """The path of an election or, with a suffix such as ":acquire", of something that belongs to it."""
    return f"/v1/elections/{check_election(election)}{suffix}"


class Calls:
    """Makes calls. Its methods may be called by several threads at once."""

    def __init__(self, server: str, credential: Credential | None, insecure: bool, tls: ssl.SSLContext | None) -> None:
        self._server, self._tls, self._credential = address(server, insecure), tls, credential
        self.begin()

    def begin(self) -> None:
        """Begins anew, without connections."""
        self._http = _http.Transport(self._server, self._tls)
        self._closed = _cancel.Cancel()

    def close(self) -> None:
        self._closed.cancel()
        self._http.close()

    def call(
        self, name: str, method: str, path: str, body: Mapping[str, Any] | None = None, *, changes: bool = False,
        query: Mapping[str, Any] | None = None, headers: Mapping[str, str] | None = None,
        limit: float = LIMIT, fresh: bool = False, largest: int = _http.MAX_REPLY, cleans: bool = False,
    ) -> dict[str, Any]:
        """Makes one call and returns the document of its success. `changes`: it may change something, so its outcome can
        be unknown. Members of the query that are None are left out. It ends within `limit` seconds. Nothing else
        ends a call that `cleans` up: neither the caller's block nor the end of the client. Raises the server's refusal,
        StoreUnavailable, OutcomeUnknown, NotRegent and Cancelled; it does not retry."""
        text = None if body is None else json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()
        end = time.monotonic() + limit
        with _cancel.both() if cleans else self._scope():
            head = {"Accept": "application/json", **self._head(limit), **(headers or {})}
            if text is not None:
                head["Content-Type"] = "application/json"
            try:
                left = end - time.monotonic()
                reply = self._http.exchange(method, path + _query(query), text, head, limit=left, fresh=fresh, largest=largest)
            except _http.Untrusted as error:
                raise _untrusted(name, error) from None
            except _http.Unsent as error:
                raise StoreUnavailable(f"{name}: {error}") from None
            except _http.Unanswered as error:
                raise _reply.lost(changes, f"{name}: {error}") from None
        return _reply.read(name, changes, replace(reply, body=_without(_secrets(body or {}, head), reply.body)))

    def stream(
        self, name: str, path: str, *, query: Mapping[str, Any] | None = None, headers: Mapping[str, str] | None = None, silence: float = 45.0,
    ) -> _http.Stream:
        """Opens a stream of events. Raises what call raises. Close it; Client.close does not."""
        with self._scope():
            head = {"Accept": "text/event-stream", **self._head(LIMIT), **(headers or {})}
            try:
                stream = self._http.stream("GET", path + _query(query), head, limit=LIMIT, silence=silence)
                if stream.status == 200 and stream.headers.get_content_type() == "text/event-stream":
                    return stream
                with stream:
                    reply = _http.Reply(stream.status, stream.headers, stream.body())
            except _http.Untrusted as error:
                raise _untrusted(name, error) from None
            except (_http.Unsent, _http.Unanswered) as error:
                raise StoreUnavailable(f"{name}: {error}") from None
        _reply.read(name, False, reply)
        raise StoreUnavailable(f"{name}: the reply is no stream of events")

    def _scope(self) -> AbstractContextManager[_cancel.Cancel]:
        return _cancel.both(_cancel.current(), self._closed)

    def _head(self, limit: float) -> dict[str, str]:
        if self._credential is None:
            return {}
        try:
            token = _cancel.within(limit, self._credential, "credential") if callable(self._credential) else self._credential
        except Cancelled:
            raise
        except Exception as error:
            raise StoreUnavailable(f"no credential to identify the caller: {error}") from error
        if not token or not token.isascii() or not token.isprintable() or " " in token:
            raise InvalidArgument("the credential that identifies the caller is empty, or has a space or another character that cannot be sent")
        return {"Authorization": f"Bearer {token}"}


def _secrets(body: Mapping[str, Any], head: Mapping[str, str]) -> Iterator[str]:
    """The keys and the token of a request. An error shows what the server says, which must not repeat them."""
    for holder in (body, *body.get("renewals", ())):
        if key := holder.get("key"):
            yield key
    token = head.get("Authorization", "").removeprefix("Bearer ")
    if len(token) >= 20:  # a shorter one may be a word of the reply
        yield token


def _without(secrets: Iterable[str], text: bytes) -> bytes:
    for secret in secrets:
        text = text.replace(secret.encode(), "…".encode())
    return text


def _untrusted(name: str, error: _http.Untrusted) -> NotRegent:
    return NotRegent(f"{name}: {error}; if it has an authority of its own, set tls=ssl.create_default_context(cafile=…)", 0)


def _query(query: Mapping[str, Any] | None) -> str:
    given = {name: value for name, value in (query or {}).items() if value is not None}
    return "?" + urlencode(given) if given else ""
