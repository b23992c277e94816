"""Tokens that change."""

import base64
import json
import os
import pathlib
import tempfile
import threading
import time
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from unittest import mock

from regent_client import FileCredential, MetadataCredential
from regent_client._credentials import MARGIN, expiry


def id_token(expires, name="t"):
    part = base64.urlsafe_b64encode(json.dumps({"exp": expires, "name": name}).encode()).rstrip(b"=").decode()
    return f"e30.{part}.c2ln"


class OfFile(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "token"

    def test_it_is_read_for_each_call(self):
        token = FileCredential(self.path)
        for text in ("first\n", "second"):
            self.path.write_text(text)
            self.assertEqual(token(), text.strip())

    def test_what_is_no_token_is_refused_and_not_shown(self):
        token = FileCredential(self.path)
        for text in ("", " \n", "two secrets", "secret\nInjected: x", "secretö", "x" * 20000):
            self.path.write_text(text, encoding="utf-8")
            with self.subTest(text[:20]), self.assertRaises(OSError) as caught:
                token()
            self.assertNotIn("secret", str(caught.exception))

    def test_no_file_is_an_error_that_names_it(self):
        with self.assertRaisesRegex(OSError, "token"):
            FileCredential(self.path)()


class OfMetadataServer(unittest.TestCase):
    def setUp(self):
        self.asked, self.answers, self.flavor, self.gate = [], [], "Google", threading.Event()
        self.gate.set()
        test = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                test.asked.append((self.path, self.headers.get("Metadata-Flavor")))
                test.gate.wait(30)
                status, text = test.answers.pop(0)
                self.send_response(status)
                self.send_header("Metadata-Flavor", test.flavor)
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_):
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        environment = mock.patch.dict(os.environ, GCE_METADATA_HOST=f"127.0.0.1:{server.server_port}", http_proxy="http://127.0.0.1:1")
        environment.start()
        self.addCleanup(environment.stop)
        self.now = time.time()
        clock = mock.patch("regent_client._credentials.time.time", lambda: self.now)
        clock.start()
        self.addCleanup(clock.stop)

    def test_it_is_asked_for_the_audience_and_kept(self):
        token, text = MetadataCredential("https://regent.example/a b"), id_token(int(self.now) + 3600)
        self.answers = [(200, text + "\n")]
        self.assertEqual([token(), token(), token()], [text] * 3)
        self.assertEqual(self.asked, [(
            "/computeMetadata/v1/instance/service-accounts/default/identity?audience=https%3A%2F%2Fregent.example%2Fa+b&format=full", "Google",
        )])

    def test_many_threads_wait_for_one_answer(self):
        token, text, got = MetadataCredential("a"), id_token(int(self.now) + 3600), []
        self.answers = [(200, text)]
        self.gate.clear()
        threads = [threading.Thread(target=lambda: got.append(token())) for _ in range(20)]
        for thread in threads:
            thread.start()
        self.gate.set()
        for thread in threads:
            thread.join()
        self.assertEqual((got, len(self.asked)), ([text] * 20, 1))

    def test_it_is_replaced_before_it_expires_and_nobody_waits_for_that(self):
        token = MetadataCredential("a")
        first, second = id_token(int(self.now) + 3600, "first"), id_token(int(self.now) + 7200, "second")
        self.answers = [(200, first), (200, second)]
        self.assertEqual(token(), first)
        self.now += 3600 - MARGIN + 1
        self.gate.clear()
        self.assertEqual(token(), first)  # the next one is on its way
        self.gate.set()
        while token() == first:
            time.sleep(0.001)
        self.assertEqual((token(), len(self.asked)), (second, 2))

    def test_one_that_could_not_be_asked_for_is_asked_for_again(self):
        token, text = MetadataCredential("a"), id_token(int(self.now) + 3600)
        self.answers = [(200, text)]
        with mock.patch("threading.Thread.start", side_effect=RuntimeError("can't start new thread")), self.assertRaises(RuntimeError):
            token()
        self.assertEqual(token(), text)

    def test_an_expired_token_is_never_returned(self):
        token = MetadataCredential("a")
        self.answers = [(200, id_token(int(self.now) + 3600)), (500, "down"), (200, id_token(int(self.now) + 7300, "new"))]
        token()
        self.now += 3601
        with self.assertRaisesRegex(OSError, "500"):
            token()
        self.assertEqual(expiry(token()), int(self.now) - 3601 + 7300)

    def test_answers_of_something_else_are_errors(self):
        for answer in ((404, "no"), (200, "<html>login</html>"), (200, "a.b.c"), (200, id_token(int(self.now) + 3600, "x" * 20000))):
            self.answers = [answer]
            with self.subTest(answer[1][:10]), self.assertRaises(OSError):
                MetadataCredential("a")()
        self.flavor, self.answers = "", [(200, id_token(int(self.now) + 3600))]
        with self.assertRaises(OSError):
            MetadataCredential("a")()
