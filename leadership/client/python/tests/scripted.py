"""A Regent in memory that fails as a test says."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections import defaultdict, deque
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Callable, Iterator

PATIENCE = 60.0  # seconds after which a test that waits has failed


@dataclass
class Request:
    verb: str  # "acquire", "renew", "batchRenew", "release", "read", …
    election: str
    body: dict[str, Any]
    headers: dict[str, str]
    connection: tuple[str, int]
    at: float = field(default_factory=time.monotonic)


@dataclass
class Election:
    leader: str = ""
    key: str = ""
    token: int = 0
    revision: int = 0
    reason: str = ""  # of the next LEASE_LOST


Fault = Callable[["Handler", Callable[[], tuple[int, dict[str, Any]]]], None]


class Server:
    """Grants, renews and releases. `faults[verb]` are what happens to the next calls of the verb."""

    def __init__(self, expires: float = 600.0, renew: float = 200.0) -> None:
        self.expires, self.renew = expires, renew
        self.more: dict[str, Any] = {}  # members of each lease
        self.elections: dict[str, Election] = defaultdict(Election)
        self.faults: dict[str, deque[Fault]] = defaultdict(deque)
        self.requests: list[Request] = []
        self.gone = 0  # connections that clients have closed while they waited
        self.changed = threading.Condition()  # guards all above
        server = self

        class Bound(Handler):
            regent = server

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Bound)
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()

    def of(self, *verbs: str) -> list[Request]:
        with self.changed:
            return [r for r in self.requests if r.verb in verbs]

    def until(self, what: Callable[[], object], why: str) -> None:
        """Waits until it is so."""
        end = time.monotonic() + PATIENCE
        with self.changed:
            while not what():
                if time.monotonic() > end:
                    raise AssertionError(f"not within {PATIENCE:.0f} s: {why}; requests: {[(r.verb, r.election) for r in self.requests]}")
                self.changed.wait(0.02)

    def lease(self, name: str) -> dict[str, Any]:
        e = self.elections[name]
        lease = {"election": name, "state": "held" if e.leader else "vacant", "fencingToken": e.token, "revision": e.revision,
                 "leaseDuration": f"{self.expires:g}s", "configuration": {}}
        if e.leader:
            lease |= {"leaderId": e.leader, "expiresInMs": int(self.expires * 1000), "renewInMs": int(self.renew * 1000),
                      "ticket": f"ticket-{len(self.requests)}", **self.more}
        return lease

    def problem(self, name: str, code: str, **more: Any) -> tuple[int, dict[str, Any]]:
        status = {"LEASE_HELD": 409, "LEASE_LOST": 409, "NOT_FOUND": 404, "INVALID_ARGUMENT": 400}.get(code, 503)
        return status, {"type": f"urn:regent:problem:{code}", "title": code, "status": status, "code": code, "detail": f"{code} it is",
                        **(self.lease(name) if name and status == 409 else {}), **more}

    def vacate(self, name: str) -> None:
        with self.changed:
            self.elections[name].leader = self.elections[name].key = ""
            self.changed.notify_all()

    def act(self, request: Request, gone: Callable[[], bool]) -> tuple[int, dict[str, Any]]:
        """Does what the request asks for."""
        e, body = self.elections[request.election], request.body
        mine = (e.leader, e.key) == (body.get("candidateId"), body.get("key"))
        if request.verb == "acquire":
            return self.acquire(request, gone)
        if request.verb == "batchRenew":
            return 200, {"results": [self.result(one, i) for i, one in enumerate(body["renewals"])]}
        if request.verb == "read":
            return (200, self.lease(request.election)) if e.token else self.problem("", "NOT_FOUND")
        if request.verb in ("join", "leave"):
            return 200, self.lease(request.election)
        if request.verb == "release" and mine and body["fencingToken"] == e.token:
            e.leader, e.revision = "", e.revision + 1
            self.changed.notify_all()
        elif request.verb == "release":
            pass
        elif not mine or body["fencingToken"] != e.token:
            return self.problem(request.election, "LEASE_LOST", **({"reason": e.reason} if e.reason else {}))
        return 200, self.lease(request.election)

    def result(self, one: dict[str, Any], i: int) -> dict[str, Any]:
        status, document = self.act(Request("renew", one["election"], one, {}, ("", 0)), lambda: False)
        return {"election": one["election"], "lease" if status == 200 else "error": document}

    def acquire(self, request: Request, gone: Callable[[], bool]) -> tuple[int, dict[str, Any]]:
        e, body = self.elections[request.election], request.body
        begun = time.monotonic()
        end = begun + float(body.get("wait", "0ms")[:-2]) / 1000
        while e.leader and (e.leader, e.key) != (body["candidateId"], body["key"]):
            if time.monotonic() >= end:
                return self.problem(request.election, "LEASE_HELD", reason="HELD")
            self.changed.wait(0.02)
            if gone():  # is never granted
                self.gone += 1
                self.changed.notify_all()
                raise ConnectionError
        if not e.leader:
            e.leader, e.key, e.token, e.revision = body["candidateId"], body["key"], e.token + 1, e.revision + 1
        return 200, {**self.lease(request.election), "waitedMs": int((time.monotonic() - begun) * 1000)}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    regent: Server

    def log_message(self, *_: object) -> None:
        pass

    def handle(self) -> None:
        with contextlib.suppress(OSError):
            super().handle()

    def do_POST(self) -> None:
        text = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        name, _, verb = self.path.removeprefix("/v1/elections").removeprefix("/").partition(":")
        self.serve(verb, name, json.loads(text) if text else {})

    def do_GET(self) -> None:
        path, _, _ = self.path.partition("?")
        self.serve("read", path.removeprefix("/v1/elections/"), {})

    def serve(self, verb: str, election: str, body: dict[str, Any]) -> None:
        request = Request(verb, election, body, dict(self.headers), self.client_address)
        regent = self.regent
        with regent.changed:
            regent.requests.append(request)
            regent.changed.notify_all()
            fault = regent.faults[verb].popleft() if regent.faults[verb] else None

        def act() -> tuple[int, dict[str, Any]]:
            with regent.changed:
                return regent.act(request, self.gone)

        if fault:
            fault(self, act)
        else:
            self.answer(*act())

    def answer(self, status: int, document: dict[str, Any], kind: str = "") -> None:
        text = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", kind or ("application/json" if status == 200 else "application/problem+json"))
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def gone(self) -> bool:
        """Whether the client has closed the connection."""
        try:
            return self.connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True

    def cut(self) -> None:
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)


def lost(handler: Handler, act: Callable[[], Any]) -> None:
    """The request is carried out, and its reply is lost."""
    act()
    handler.cut()


def cut(handler: Handler, act: Callable[[], Any]) -> None:
    """The request is lost."""
    handler.cut()


def refuse(code: str, **more: Any) -> Fault:
    return lambda handler, act: handler.answer(*handler.regent.problem("", code, **more))


def reply(status: int, document: dict[str, Any], kind: str = "") -> Fault:
    return lambda handler, act: handler.answer(status, document, kind)


def changed(**members: Any) -> Fault:
    """The request is carried out, and the reply says something else."""

    def fault(handler: Handler, act: Callable[[], Any]) -> None:
        status, document = act()
        handler.answer(status, {**document, **members})

    return fault


def raw(text: bytes) -> Fault:
    """Other bytes than a reply."""

    def fault(handler: Handler, act: Callable[[], Any]) -> None:
        handler.wfile.write(text)
        handler.cut()

    return fault


class Held:
    """A fault: the request is carried out, and the reply is held until it is let go or the client has gone."""

    def __init__(self) -> None:
        self.begun, self.go, self.left = threading.Event(), threading.Event(), threading.Event()

    def __call__(self, handler: Handler, act: Callable[[], Any]) -> None:
        answer = act()
        self.begun.set()
        while not self.go.wait(0.02):
            if handler.gone():
                self.left.set()
                return handler.cut()
        handler.answer(*answer)


def dribble(handler: Handler, act: Callable[[], Any]) -> None:
    """The reply comes one byte at a time, and never ends."""
    act()
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n")
    for _ in range(100000):
        if handler.gone():
            break
        handler.wfile.write(b" ")
        time.sleep(0.02)
    handler.cut()


class Clock:
    """A clock that a test sets."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


@contextlib.contextmanager
def serving(**how: float) -> Iterator[Server]:
    server = Server(**how)
    try:
        yield server
    finally:
        server.close()
