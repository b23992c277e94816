"""One exchange: its limit is over all of it, whatever the server does."""

from __future__ import annotations

import contextlib
import socket
import ssl
import subprocess
import tempfile
import threading
import time
import unittest
from pathlib import Path
from typing import Any, Callable, Iterator

from regent_client import Cancel, Cancelled, Client, NotRegent, StoreUnavailable, OutcomeUnknown, _wire
from regent_client._calls import Calls
from regent_client._http import Transport, Unanswered, Unsent, Untrusted

PATIENCE = 60.0
OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"

Script = Callable[[socket.socket], None]


@contextlib.contextmanager
def listening(*scripts: Script, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """A server that does one script for each connection, in their order."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        for script in scripts:
            with contextlib.suppress(OSError):
                connection, _ = listener.accept()
                threading.Thread(target=run, args=(script, connection), daemon=True).start()

    def run(script: Script, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            if tls:
                with tls.wrap_socket(connection, server_side=True) as secure:
                    return script(secure)
            script(connection)

    threading.Thread(target=serve, daemon=True).start()
    with listener:
        yield f"http{'s' if tls else ''}://127.0.0.1:{listener.getsockname()[1]}"


def request(connection: socket.socket) -> bytes:
    text = b""
    while b"\r\n\r\n" not in text and (part := connection.recv(1 << 16)):
        text += part
    return text


def answers(text: bytes, times: int = 1) -> Script:
    def script(connection: socket.socket) -> None:
        for _ in range(times):
            request(connection)
            connection.sendall(text)
        connection.recv(1)

    return script


def drips(head: bytes, part: bytes) -> Script:
    """Sends the parts of a reply that never ends, until the client has gone."""

    def script(connection: socket.socket) -> None:
        request(connection)
        connection.sendall(head)
        while True:
            connection.sendall(part)
            time.sleep(0.01)

    return script


class Case(unittest.TestCase):
    def transport(self, url: str, **more: Any) -> Transport:
        found = Transport(_wire.address(url, False), **more)
        self.addCleanup(found.close)
        return found


class Exchanges(Case):
    def test_a_slow_reply_is_given_up_wherever_it_is_slow(self) -> None:
        for name, head, part in (
            ("silent", b"", b""), ("status", b"HTTP/1.1 2", b"0"), ("headers", b"HTTP/1.1 200 OK\r\nX: ", b"x"),
            ("body", b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n", b" "),
            ("chunks", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
            ("early hints", b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        ):
            with self.subTest(name), listening(drips(head, part)) as url:
                begun = time.monotonic()
                with self.assertRaises((Unanswered, Unsent)):
                    self.transport(url).exchange("GET", "/", limit=0.3)
                self.assertGreaterEqual(time.monotonic() - begun, 0.29)
                self.assertLess(time.monotonic() - begun, PATIENCE)

    def test_a_reply_that_was_cut_is_no_reply(self) -> None:
        for text in (b"", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n{}", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n", b"SSH-2.0-x\r\n"):
            def script(connection: socket.socket, text: bytes = text) -> None:
                request(connection)
                connection.sendall(text)

            with self.subTest(text), listening(script) as url, self.assertRaises(Unanswered):
                self.transport(url).exchange("GET", "/", limit=PATIENCE)

    def test_a_refusal_before_the_request_was_read_is_heard(self) -> None:
        def script(connection: socket.socket) -> None:
            connection.recv(100)
            connection.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\n{}")

        with listening(script) as url:
            transport = self.transport(url)
            self.assertEqual(transport.exchange("PUT", "/", b" " * (32 << 20), limit=PATIENCE).status, 413)
            self.assertEqual(transport._idle, [], "a connection is kept that has a part of a request")

    def test_a_reply_is_read_whole_in_each_form(self) -> None:
        for text in (OK, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n"):
            with self.subTest(text), listening(answers(text)) as url:
                self.assertEqual(self.transport(url).exchange("POST", "/", b"x", limit=PATIENCE).body, b"{}")

    def test_a_reply_until_the_end_of_the_connection(self) -> None:
        def script(connection: socket.socket) -> None:
            request(connection)
            connection.sendall(b"HTTP/1.0 200 OK\r\n\r\n{}")

        with listening(script) as url:
            self.assertEqual(self.transport(url).exchange("GET", "/", limit=PATIENCE).body, b"{}")

    def test_a_connection_is_used_again_and_not_after_the_server_has_closed_it(self) -> None:
        closed = threading.Event()

        def once(connection: socket.socket) -> None:
            for _ in range(2):
                request(connection)
                connection.sendall(OK)
            connection.shutdown(socket.SHUT_RDWR)
            closed.set()

        with listening(once, answers(OK, 2)) as url:
            t = self.transport(url)
            for _ in range(2):
                t.exchange("GET", "/", limit=PATIENCE)
            self.assertTrue(closed.wait(PATIENCE))
            t.exchange("GET", "/", limit=PATIENCE)

    def test_fresh_wants_another_connection(self) -> None:
        with listening(answers(OK), answers(OK)) as url:
            t = self.transport(url)
            t.exchange("GET", "/", limit=PATIENCE)
            t.exchange("GET", "/", limit=PATIENCE, fresh=True)

    def test_a_server_that_is_not_there_was_sent_nothing(self) -> None:
        with listening() as url:
            pass
        with self.assertRaisesRegex(Unsent, "cannot be reached"):
            self.transport(url).exchange("GET", "/", limit=PATIENCE)
        calls = Calls(url, None, False, None)
        with self.assertRaises(StoreUnavailable):
            calls.call("renew", "POST", "/", {}, changes=True)

    def test_a_lost_reply_is_unknown_only_of_what_changes_something(self) -> None:
        for changes, kind in ((True, OutcomeUnknown), (False, StoreUnavailable)):
            with listening(lambda connection: None) as url, self.assertRaises(kind):
                Calls(url, None, False, None).call("x", "POST", "/", {}, changes=changes, limit=PATIENCE)

    def test_a_cancel_ends_it_wherever_it_is(self) -> None:
        for head in (b"", b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"):
            arrived, cancel = threading.Event(), Cancel()

            def script(connection: socket.socket, head: bytes = head, arrived: threading.Event = arrived) -> None:
                request(connection)
                connection.sendall(head)
                arrived.set()
                connection.recv(1)

            with self.subTest(head), listening(script) as url:
                threading.Thread(target=lambda: arrived.wait(PATIENCE) and cancel.cancel(), daemon=True).start()
                with self.assertRaises(Cancelled), cancel:
                    self.transport(url).exchange("GET", "/", limit=10 * PATIENCE)

    def test_a_stream_ends_when_no_whole_line_comes(self) -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\nid: 1\r\n"
        with listening(drips(head, b"x")) as url, self.transport(url).stream("GET", "/", {}, limit=PATIENCE, silence=2) as stream:
            lines = stream.lines()
            self.assertEqual(next(lines), b"id: 1")
            with self.assertRaises(Unanswered):
                next(lines)

    def test_a_stream_line_has_a_limit(self) -> None:
        head = b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * (2 << 20)
        with listening(drips(head, b"x")) as url, self.transport(url).stream("GET", "/", {}, limit=PATIENCE, silence=PATIENCE) as stream:
            with self.assertRaisesRegex(Unanswered, "too long"):
                next(stream.lines())

    def test_a_stream_that_is_cancelled_ends(self) -> None:
        cancel = Cancel()
        with listening(answers(b"HTTP/1.1 200 OK\r\n\r\nid: 1\n")) as url, cancel:
            with self.transport(url).stream("GET", "/", {}, limit=PATIENCE, silence=10 * PATIENCE) as stream:
                lines = stream.lines()
                next(lines)
                threading.Timer(0.05, cancel.cancel).start()
                with self.assertRaises(Cancelled):
                    next(lines)


class Secure(Case):
    def setUp(self) -> None:
        folder = self.enterContext(tempfile.TemporaryDirectory()) if hasattr(self, "enterContext") else self._folder()
        self.certificate, key = Path(folder, "c.pem"), Path(folder, "k.pem")
        command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", str(key), "-out",
                   str(self.certificate), "-days", "2", "-subj", "/CN=regent", "-addext", "subjectAltName=IP:127.0.0.1"]
        try:
            subprocess.run(command, check=True, capture_output=True)
        except FileNotFoundError:
            self.skipTest("there is no openssl")
        self.server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.server.load_cert_chain(self.certificate, key)

    def _folder(self) -> str:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        return folder.name

    def test_a_campaign_at_a_server_whose_certificate_is_not_trusted_ends_at_once(self) -> None:
        with listening(answers(OK, 1), tls=self.server) as url, Client(url) as client:
            with self.assertRaisesRegex(NotRegent, "not accepted.*cafile"):
                client.lead("reports").acquire()

    def test_a_server_with_a_certificate_of_its_own(self) -> None:
        trusted = ssl.create_default_context(cafile=str(self.certificate))
        with listening(answers(OK, 2), tls=self.server) as url:
            t = self.transport(url, tls=trusted)
            for _ in range(2):
                self.assertEqual(t.exchange("GET", "/", limit=PATIENCE).body, b"{}")

    def test_a_certificate_that_is_not_trusted_is_sent_nothing(self) -> None:
        with listening(answers(OK), tls=self.server) as url, self.assertRaisesRegex(Untrusted, "self-signed certificate"):
            self.transport(url).exchange("GET", "/", limit=PATIENCE)

    def test_a_cancel_ends_it(self) -> None:
        trusted, cancel = ssl.create_default_context(cafile=str(self.certificate)), Cancel()

        def script(connection: socket.socket) -> None:
            request(connection)
            cancel.cancel()
            connection.recv(1)

        with listening(script, tls=self.server) as url, self.assertRaises(Cancelled), cancel:
            self.transport(url, tls=trusted).exchange("GET", "/", limit=10 * PATIENCE)

    def test_a_server_that_says_nothing_in_the_handshake_is_given_up(self) -> None:
        with listening(lambda connection: time.sleep(PATIENCE)) as url, self.assertRaises(Unsent):
            self.transport(url.replace("http", "https")).exchange("GET", "/", limit=0.3)


if __name__ == "__main__":
    unittest.main()
