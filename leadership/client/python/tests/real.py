"""A Regent of its own for a test: the binary that REGENT_BINARY names."""

import json
import os
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.request

from regent_client import Client

PATIENCE = 60.0  # seconds after which a test that waits has failed


def until(what):
    """Waits until it is so."""
    end = time.monotonic() + PATIENCE
    while not what():
        if time.monotonic() > end:
            raise AssertionError(f"not within {PATIENCE:.0f} s")
        time.sleep(0.01)


class Regent:
    """`regent serve`, which can be stopped and started again, at the same address and with the same store."""

    def __init__(self, test, *flags):
        folder = tempfile.TemporaryDirectory()
        test.addCleanup(folder.cleanup)
        self._address = "127.0.0.1:0"  # of its own choice when it starts for the first time
        self._flags = (*flags, "--store", "file:" + os.path.join(folder.name, "store"))
        self.start()
        test.addCleanup(self.stop)

    def start(self):
        ours = ("REGENT_", "FIRESTORE_", "SPANNER_", "PUBSUB_")  # a server refuses emulators without --dev
        environment = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        command = [os.environ["REGENT_BINARY"], "serve", "--listen", self._address, *self._flags]
        self._process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, env=environment)
        for line in self._process.stderr:
            if (said := json.loads(line)).get("message") == "serving":
                break
        else:
            raise AssertionError(f"{command} does not serve")
        self._address = said["address"]
        self.url = f"http://{self._address}"
        threading.Thread(target=self._process.stderr.read, daemon=True).start()

    def stop(self, kill=False):
        (self._process.kill if kill else self._process.terminate)()
        self._process.wait()
        self._process.stderr.close()


@unittest.skipUnless(os.environ.get("REGENT_BINARY"), "SKIPPED, NOT PROVED: set REGENT_BINARY to a regent")
class RealCase(unittest.TestCase):
    """A test with a server."""

    def setUp(self):
        self.regent = Regent(self, *self.flags)
        self.client = self.new("ann")

    flags = ()

    def new(self, candidate):
        client = Client(self.regent.url, candidate=candidate)
        self.addCleanup(client.close)
        return client

    def configure(self, election, **policy):
        """Creates an election, or gives it a policy, as an operator does."""
        body = {"leaseDuration": "30s", **({"policy": policy} if policy else {})}
        return self.operate("PUT", f"/v1/elections/{election}", body)

    def operate(self, method, path, body=None):
        """Makes an operator's call, whatever the revision of the election is."""
        headers = {"If-None-Match": "*"} if method == "PUT" else {"If-Match": '"1"'}
        while True:
            request = urllib.request.Request(self.regent.url + path, method=method, headers=headers)
            if body is not None:
                request.data = json.dumps(body).encode()
                request.add_header("Content-Type", "application/json")
            try:
                with urllib.request.urlopen(request, timeout=30) as reply:
                    return json.load(reply)
            except urllib.error.HTTPError as error:
                problem = json.load(error)
                if error.code != 412:
                    raise AssertionError(problem) from error
                headers = {"If-Match": f'"{problem["revision"]}"'}

    def beside(self, run):
        """Runs a function in a thread; the test fails with its error, at the latest at its end."""
        failed = []

        def attempt():
            try:
                run()
            except BaseException as error:
                failed.append(error)

        thread = threading.Thread(target=attempt, daemon=True)
        thread.start()

        def end():
            thread.join(PATIENCE)
            self.assertFalse(thread.is_alive(), f"{run} does not end")
            if failed:
                raise failed[0]

        self.addCleanup(end)
        return end
