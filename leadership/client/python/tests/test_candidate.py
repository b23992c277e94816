"""The default candidate."""

import os
import unittest
from unittest import mock

from regent_client._core import default_candidate


def on(host, **environment):
    with mock.patch.dict(os.environ, environment, clear=True), mock.patch("socket.gethostname", lambda: host):
        return default_candidate()


class DefaultCandidate(unittest.TestCase):
    def test_it_is_the_same_after_a_restart(self):
        with self.assertNoLogs("regent_client"), mock.patch("regent_client._core.metadata", lambda *_: "0069c7a98896d7d4a8c5a3ed"):
            for host, environment, want in (
                ("writer-7d4b9-x2k", {}, "writer-7d4b9-x2k"),
                ("a b/ü", {}, "a-b--"),
                ("localhost", {"K_SERVICE": "writer"}, "writer.d7d4a8c5a3ed"),
                ("localhost", {"CLOUD_RUN_JOB": "nightly", "CLOUD_RUN_TASK_INDEX": "3"}, "nightly-3"),
            ):
                self.assertEqual(on(host, **environment), want)
            self.assertRegex(on("r" * 200), r"^r{111}\.[0-9a-f]{16}$")
            self.assertNotEqual(on("r" * 200), on("r" * 199))

    def test_without_a_name_it_is_drawn_and_the_log_says_so(self):
        for host, environment, want in (
            ("localhost.localdomain", {}, r"localhost\.localdomain"),
            ("", {}, "agent"),
            ("localhost", {"K_SERVICE": "writer", "GCE_METADATA_HOST": "127.0.0.1:1"}, "writer"),
        ):
            with self.assertLogs("regent_client", "WARNING") as logged:
                first = on(host, **environment)
            self.assertEqual(len(logged.output), 1)
            self.assertIn(first, logged.output[0])
            self.assertRegex(first, want + r"\.[0-9a-f]{16}$")
            self.assertNotEqual(on(host, **environment), first)
