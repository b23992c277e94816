"""One exchange with a server, with a limit on all of it, and streams. Knows nothing of elections."""

from __future__ import annotations

import contextlib
import http.client
import io
import socket
import ssl
import threading
import time
from dataclasses import dataclass
from typing import Any, Callable, Iterator, Mapping

from . import _cancel
from ._wire import Address, hidden

MAX_REPLY = 1 << 20  # bytes of a reply, unless a call says otherwise
MAX_LINE = 1 << 20  # bytes of a line of a stream
_DIAL = 5.0  # seconds to connect to one address
_IDLE = 16  # connections that are kept
_SLICE = 1.0  # seconds of one system call: a signal that comes right before it is seen only after it


class Unsent(Exception):
    """The request did not reach the server."""


class Untrusted(Exception):
    """The server's certificate is not accepted, so nothing was sent."""


class Unanswered(Exception):
    """The request may have reached the server, and its answer did not arrive whole."""


@dataclass(frozen=True)
class Reply:
    status: int
    headers: http.client.HTTPMessage  # a mapping; any case finds them
    body: bytes


class _Wire(io.RawIOBase):
    """A connected socket as http.client wants it. Each operation ends when the time of the whole exchange does. Only
    its owner closes the socket."""

    def __init__(self, sock: socket.socket, end: float) -> None:
        self._sock, self.end = sock, end

    def _hurry(self) -> None:
        left = self.end - time.monotonic()
        if left <= 0:
            raise TimeoutError("no whole answer in time")
        self._sock.settimeout(min(left, _SLICE))

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while True:
            self._hurry()
            with contextlib.suppress(TimeoutError):
                return self._sock.recv_into(buffer)

    def sendall(self, data: Any) -> None:
        rest = memoryview(data)
        while rest:
            self._hurry()
            with contextlib.suppress(TimeoutError):
                rest = rest[self._sock.send(rest[: 1 << 16]) :]

    def makefile(self, *_: Any) -> io.BufferedReader:
        return io.BufferedReader(self)

    def close(self) -> None:
        """http.client closes it before it reads the body."""


class Stream:
    """An answer that is read line by line. Close it."""

    def __init__(self, sock: socket.socket, wire: _Wire, response: http.client.HTTPResponse, silence: float) -> None:
        self.status, self.headers = response.status, response.headers
        self._sock, self._wire, self._response, self._silence = sock, wire, response, silence

    def body(self) -> bytes:
        """All of an answer that is no stream, such as an error."""
        with _told():
            return self._response.read(MAX_REPLY)

    def lines(self) -> Iterator[bytes]:
        """The lines, without their ends. Raises Unanswered if one is not whole in time, or when the connection breaks;
        Cancelled. A stream that ends as it should just ends."""
        cancel = _cancel.current()
        with cancel.hook(lambda: _shut(self._sock)):
            while True:
                self._wire.end = time.monotonic() + self._silence
                with _told(cancel):
                    line = self._response.readline(MAX_LINE + 1)
                cancel.check()  # it ends the stream, too
                if not line:
                    return
                if not line.endswith(b"\n"):
                    raise Unanswered("the stream was cut within a line" if len(line) <= MAX_LINE else "a line of the stream is too long")
                yield line.rstrip(b"\r\n")

    def close(self) -> None:
        _close(self._sock)

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Transport:
    """Connections to one server. Its methods may be called by several threads at once. Redirects are not followed, and
    proxies of the environment are not used."""

    def __init__(self, server: Address, tls: ssl.SSLContext | None = None) -> None:
        self._server = server
        self._tls = tls or (ssl.create_default_context() if server.secure else None)
        self._lock = threading.Lock()
        self._idle: list[socket.socket] = []  # guarded by _lock
        self._closed = False

    def exchange(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None, *,
        limit: float, fresh: bool = False, largest: int = MAX_REPLY,
    ) -> Reply:
        """Sends a request and reads all of its answer within `limit` seconds. `fresh` wants a new connection: it can
        take seconds until a dead one is noticed. Raises Unsent, Untrusted, Unanswered, Cancelled."""
        cancel, end = _cancel.current(), time.monotonic() + limit
        with self._connection(cancel, end, fresh) as (sock, keep):
            with _told(cancel):
                _, response = self._ask(sock, end, method, path, body, headers)
                text = response.read(largest + 1)
            cancel.check()  # it ends the reply, too
            if len(text) > largest:
                raise Unanswered(f"the reply is larger than {largest} bytes")
            if response.length:
                raise Unanswered("the reply was cut")
            if not response.will_close:
                keep()
            return Reply(response.status, response.headers, text)

    def stream(self, method: str, path: str, headers: Mapping[str, str], *, limit: float, silence: float) -> Stream:
        """Sends a request, and returns when the answer begins, within `limit` seconds. Each line must arrive within
        `silence` seconds of the one before. Raises Unsent, Unanswered, Cancelled."""
        cancel, end = _cancel.current(), time.monotonic() + limit
        with self._connection(cancel, end, fresh=True) as (sock, keep):
            with _told(cancel):
                wire, response = self._ask(sock, end, method, path, None, headers)
            keep(False)
            return Stream(sock, wire, response, silence)

    def close(self) -> None:
        """Closes the connections that are not in use. Later ones are closed after their use."""
        with self._lock:
            self._closed, idle, self._idle = True, self._idle, []
        for sock in idle:
            _close(sock)

    def _ask(
        self, sock: socket.socket, end: float, method: str, path: str, body: bytes | None, headers: Mapping[str, str] | None,
    ) -> tuple[_Wire, http.client.HTTPResponse]:
        connection = http.client.HTTPConnection(self._server.host, self._server.port)
        connection.auto_open = 0
        wire = _Wire(sock, end)
        connection.sock = wire
        try:
            connection.request(method, self._server.path + path, body, {"Host": self._server.authority, **(headers or {})})
        except ConnectionError as error:
            with contextlib.suppress(OSError, http.client.HTTPException):
                response = connection.getresponse()  # the server may have refused the request before it had all of it
                response.will_close = True
                return wire, response
            raise error
        return wire, connection.getresponse()

    @contextlib.contextmanager
    def _connection(self, cancel: _cancel.Cancel, end: float, fresh: bool) -> Iterator[tuple[socket.socket, Callable[..., None]]]:
        """A connection for the block, closed after it unless the block calls the second: to have it kept for later
        calls, or with False to own it itself."""
        cancel.check()
        sock = (None if fresh else self._kept()) or self._dial(cancel, end)
        whose = "closed"

        def keep(pool: bool = True) -> None:
            nonlocal whose
            whose = "kept" if pool else "given"

        try:
            with cancel.hook(lambda: _shut(sock)):
                yield sock, keep
        finally:
            if whose == "closed" or whose == "kept" and not self._keep(sock):
                _close(sock)

    def _keep(self, sock: socket.socket) -> bool:
        with self._lock:
            kept = not self._closed and len(self._idle) < _IDLE
            if kept:
                self._idle.append(sock)
            return kept

    def _kept(self) -> socket.socket | None:
        """A connection that is not in use and that the server has not closed."""
        while True:
            with self._lock:
                if not self._idle:
                    return None
                sock = self._idle.pop()
            if _quiet(sock):
                return sock
            _close(sock)

    def _dial(self, cancel: _cancel.Cancel, end: float) -> socket.socket:
        errors = []
        try:
            for family, kind, protocol, _, where in _resolve(self._server, end):
                try:
                    return self._connect(socket.socket(family, kind, protocol), where, cancel, end)
                except ssl.SSLCertVerificationError as error:
                    raise Untrusted(f"the certificate of {self._server.authority} is not accepted: {error.verify_message}") from None
                except OSError as error:
                    cancel.check()
                    errors.append(str(error))
        except (OSError, UnicodeError) as error:  # the latter for what is no name
            errors.append(str(error))
        raise Unsent(f"{self._server.authority} cannot be reached: {'; '.join(errors)}")

    def _connect(self, sock: socket.socket, where: Any, cancel: _cancel.Cancel, end: float) -> socket.socket:
        try:
            with cancel.hook(lambda: _shut(sock)):
                sock.settimeout(_left(end))
                sock.connect(where)
                _settle(sock)
                if self._tls:
                    sock.settimeout(_left(end))
                    sock = self._tls.wrap_socket(sock, server_hostname=self._server.host, do_handshake_on_connect=False)
                    sock.do_handshake()
            cancel.check()
            return sock
        except BaseException:
            _close(sock)
            raise


def _left(end: float) -> float:
    left = end - time.monotonic()
    if left <= 0:
        raise TimeoutError("no connection in time")
    return min(left, _DIAL)


def _resolve(server: Address, end: float) -> list[Any]:
    """The addresses of the server. Looking up a name has no limit of its own."""

    def look() -> list[Any]:
        return list(socket.getaddrinfo(server.host, server.port, type=socket.SOCK_STREAM))

    if server.host.replace(".", "").isdecimal() or ":" in server.host:
        return look()
    return _cancel.within(_left(end), look, "address")


def _settle(sock: socket.socket) -> None:
    """Has small requests sent at once, and dead connections noticed within seconds."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 5), ("TCP_KEEPINTVL", 2), ("TCP_KEEPCNT", 2)):
        if hasattr(socket, name):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


@contextlib.contextmanager
def _told(cancel: _cancel.Cancel | None = None) -> Iterator[None]:
    """Turns errors of the connection into Unanswered, or Cancelled if that is behind them."""
    try:
        yield
    except (OSError, http.client.HTTPException, ValueError) as error:
        if cancel:
            cancel.check()
        # the text of a ValueError repeats what was to be sent
        raise Unanswered(f"no answer: {type(error).__name__}" + ("" if isinstance(error, ValueError) else f": {hidden(str(error))}"[:300])) from None


def _quiet(sock: socket.socket) -> bool:
    """Whether nothing has arrived on a connection that waits for nothing: not even its end."""
    try:
        sock.setblocking(False)
        socket.socket.recv(sock, 1, socket.MSG_PEEK)  # that of SSLSocket cannot peek
    except BlockingIOError:
        return True
    except OSError:
        pass
    return False


def _shut(sock: socket.socket) -> None:
    """Ends the operations that other threads have under way."""
    with contextlib.suppress(OSError):
        socket.socket.shutdown(sock, socket.SHUT_RDWR)  # that of SSLSocket would go on in plain text


def _close(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):
        sock.close()
