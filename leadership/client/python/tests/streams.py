"""A server that answers as a test says, and that breaks off as no real one does on request."""

import json
import socket
import threading


class Scripted:
    """Serves connections one after the other: each takes the next answer, which is bytes to send, or a function of the
    connection; after the last all take otherwise. Requests are kept, as (first line, headers, body)."""

    def __init__(self, test, *answers):
        self.answers, self.requests = list(answers), []
        self.otherwise = reply(503, "STORE_UNAVAILABLE")
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()
        test.addCleanup(self._listener.close)

    def _serve(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection):
        with connection, connection.makefile("rb") as reader:
            first, headers = reader.readline().decode().split(" HTTP")[0], {}
            while line := reader.readline().strip().decode():
                name, _, value = line.partition(": ")
                headers[name.lower()] = value
            body = reader.read(int(headers.get("content-length", 0)))
            self.requests.append((first, headers, json.loads(body) if body else None))
            answer = self.answers.pop(0) if self.answers else self.otherwise
            if callable(answer):
                answer(connection)
            else:
                connection.sendall(answer)


def reply(status, code="", **members):
    """An answer in JSON: a problem if it has a code."""
    if code:
        members = {"type": f"urn:regent:problem:{code}", "title": code, "status": status, "detail": "as scripted", "code": code, **members}
    body = json.dumps(members).encode()
    kind = "application/problem+json" if code else "application/json"
    return f"HTTP/1.1 {status} x\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body


def stream(*messages, cut=b""):
    """A stream of messages that then breaks off."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\nretry: 1000\n\n"
    return head + b"".join(messages) + cut


def message(data, id="", name=""):
    lines = [f"event: {name}"] * bool(name) + [f"id: {id}"] * bool(id) + ["data: " + json.dumps(data)]
    return ("\n".join(lines) + "\n\n").encode()


def event(revision, election="reports", id=None, type="acquired", **members):
    data = {"election": election, "revision": revision, "type": type, "at": "2027-03-01T12:00:00Z", "fencingToken": revision, **members}
    return message(data, str(revision) if id is None else id)


def snapshot(revision, election="reports", id=None, **members):
    data = {
        "election": election, "state": "vacant", "fencingToken": revision, "revision": revision, "leaseDuration": "30s",
        "readAt": "2027-03-01T12:00:00Z", "configuration": {}, **members,
    }
    return message(data, str(revision) if id is None else id, "snapshot")


def end(reason, id=""):
    return message({"reason": reason}, id, "end")
