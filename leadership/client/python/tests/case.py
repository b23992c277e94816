"""A test of the client with threads, at a scripted server."""

from __future__ import annotations

import threading
import unittest
from typing import Any, Callable

from regent_client import Client

from .scripted import Server


class Case(unittest.TestCase):
    def setUp(self) -> None:
        self.server = Server()
        self.addCleanup(self.server.close)
        self.client = self.new("ann")

    def new(self, candidate: str, **how: Any) -> Client:
        client = Client(self.server.url, candidate=candidate, **how)
        self.addCleanup(client.close)
        return client

    def until(self, what: Callable[[], object], why: str) -> None:
        self.server.until(what, why)

    def beside(self, call: Callable[[], object]) -> tuple[threading.Thread, list[Any]]:
        """Calls it in a thread, and keeps what it returned or raised."""
        result: list[Any] = []

        def run() -> None:
            try:
                result.append(call())
            except BaseException as error:
                result.append(error)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        return thread, result
