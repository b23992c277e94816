"""Credentials that change: Client(credential=FileCredential(path)) or Client(credential=MetadataCredential(audience)).

Both are functions without arguments that return the present credential. They may be called from several threads."""

from __future__ import annotations

import base64
import binascii
import contextlib
import http.client
import json
import os
import threading
import time
import urllib.parse

MARGIN = 120.0  # seconds before its expiry at which a token is replaced
_TIMEOUT = 5.0  # seconds for one answer of the metadata server
_LIMIT = 16 << 10  # bytes of an answer; an ID token has about 1 KiB
_FLAVOR = "Metadata-Flavor"


class FileCredential:
    """A token in a file, which is read anew for each call, as one that a platform projects and rotates."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = os.fspath(path)

    def __call__(self) -> str:
        with open(self._path, encoding="ascii", errors="replace") as file:
            text = file.read(_LIMIT + 1).strip()
        if not text or len(text) > _LIMIT or not text.isascii() or not text.isprintable() or " " in text:
            raise OSError(f"{self._path} holds no token: it must be one line of visible ASCII characters, {_LIMIT} at most")
        return text

    def __repr__(self) -> str:
        return f"FileCredential({self._path!r})"


class MetadataCredential:
    """An ID token of the process's service account, from Google Cloud's metadata server.

    audience is the URL of the Regent service, or its custom audience. The token is kept, and replaced in the background before it
    expires; callers wait only if none is valid, all of them for one answer. GCE_METADATA_HOST names another server."""

    def __init__(self, audience: str) -> None:
        self._audience = audience
        self._lock = threading.Lock()
        self._last, self._expires = "", 0.0  # guarded by _lock
        self._call: _Call | None = None  # the one in progress; guarded by _lock

    def __call__(self) -> str:
        call: _Call | None
        with self._lock:
            left = self._expires - time.time()
            if left <= MARGIN and self._call is None:
                call = _Call()
                threading.Thread(target=self._replace, args=(call,), name="regent-token", daemon=True).start()
                self._call = call
            last, call = self._last, self._call
        if left > 0 or call is None:
            return last
        if not call.done.wait(2 * _TIMEOUT):  # the look-up of its name has no limit
            raise OSError("the metadata server has no token: no answer in time")
        if call.error is not None:
            raise OSError(f"the metadata server has no token: {call.error}") from call.error
        return call.token

    def _replace(self, call: _Call) -> None:
        expires = 0.0
        try:
            query = urllib.parse.urlencode({"audience": self._audience, "format": "full"})
            call.token = metadata(f"service-accounts/default/identity?{query}", _TIMEOUT)
            expires = expiry(call.token)
        except Exception as error:  # whatever it is, the callers wait
            call.error = error
        with self._lock:
            self._call = None
            if call.error is None:
                self._last, self._expires = call.token, expires
        call.done.set()

    def __repr__(self) -> str:
        return f"MetadataCredential({self._audience!r})"


class _Call:
    """One call of the metadata server, shared by all that wait for it."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self.token = ""
        self.error: Exception | None = None


def metadata(path: str, timeout: float) -> str:
    """Asks the metadata server of the instance, without a proxy.

    See https://cloud.google.com/run/docs/container-contract#metadata-server."""
    ends = time.monotonic() + timeout
    connection = http.client.HTTPConnection(os.environ.get("GCE_METADATA_HOST") or "metadata.google.internal", timeout=timeout)
    body = b""
    with contextlib.closing(connection):
        connection.request("GET", f"/computeMetadata/v1/instance/{path}", headers={_FLAVOR: "Google"})
        with connection.getresponse() as reply:
            while part := reply.read1(_LIMIT):
                body += part
                if len(body) > _LIMIT or time.monotonic() > ends:
                    raise OSError("its answer is too large or too slow")
    if reply.status != 200 or reply.getheader(_FLAVOR) != "Google":
        raise OSError(f"it answered with HTTP status {reply.status}")
    return body.decode("ascii", "replace").strip()


def expiry(token: str) -> float:
    """Returns when a token expires, in seconds since 1970. It does not verify the token: its recipient does."""
    try:
        claims = token.split(".")[1]
        expires = json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))["exp"]
    except (IndexError, KeyError, TypeError, ValueError, binascii.Error):
        expires = None
    if token.count(".") != 2 or type(expires) is not int or not token.isascii():
        raise ValueError("the answer is not a token")
    return float(expires)
