"""What the clients with threads and with asyncio share."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import logging
import os
import re
import secrets
import socket
import ssl
import weakref
from typing import Callable

from . import _clock
from ._calls import Calls, Credential
from ._credentials import metadata
from ._keep import Keeper
from ._wire import check_candidate, check_type

log = logging.getLogger("regent_client")


class Core:
    """A server to call, the leases that are renewed there, and the candidate's name."""

    def __init__(
        self, server: str, *, candidate: str | None = None, credential: Credential | None = None, insecure: bool = False,
        tls: ssl.SSLContext | None = None, clock: Callable[[], float] = _clock.now,
    ) -> None:
        check_type("credential", credential, "a text or a function that returns one", credential is None or isinstance(credential, str) or callable(credential))
        check_type("insecure", insecure, "True or False", isinstance(insecure, bool))
        check_type("tls", tls, "an ssl.SSLContext", tls is None or isinstance(tls, ssl.SSLContext))
        check_type("clock", clock, "a function", callable(clock))
        self.calls = Calls(server, credential, insecure, tls)
        self.candidate = default_candidate() if candidate is None else check_candidate(candidate)
        self.clock = clock
        self.keeper = Keeper(self.calls, clock)
        _all.add(self)

    def forked(self) -> None:
        """In a child the leases and connections are the parent's, and none of its threads runs."""
        self.calls.begin()
        self.keeper = Keeper(self.calls, self.clock)

    def close(self) -> None:
        self.keeper.close()
        self.calls.close()


_all: weakref.WeakSet[Core] = weakref.WeakSet()


def _forked() -> None:
    for core in list(_all):
        core.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


def default_candidate() -> str:
    """The name of this host's candidate, the same after a restart, so that orders against it hold: the host's name or, on
    Cloud Run, where all hosts have one name, that of the service and the end of the instance's id, or of the job and the
    number of the task. Where there is no such name it ends with 64 random bits, and the log says so."""
    name = socket.gethostname()
    stable = name.split(".")[0].lower() not in ("", "localhost")
    if job := os.environ.get("CLOUD_RUN_JOB", ""):
        name, stable = f"{job}-{os.environ.get('CLOUD_RUN_TASK_INDEX', '')}", True
    elif service := os.environ.get("K_SERVICE", ""):
        instance = ""
        with contextlib.suppress(OSError, http.client.HTTPException):
            instance = metadata("id", 1.0)[-12:]
        name, stable = f"{service}.{instance}", instance != ""
    if not stable:
        name = (name or "agent").removesuffix(".") + "." + secrets.token_hex(8)
    candidate = re.sub(r"[^A-Za-z0-9._@:-]", "-", name)
    if len(candidate) > 128:
        candidate = candidate[:111] + "." + hashlib.sha256(name.encode()).hexdigest()[:16]
    if not stable:
        log.warning("this host has no name of its own: the candidate is %s now, and another one after a restart, so that no order against it holds; "
                    "give Client a candidate", candidate)
    return candidate


def cksum_priority(candidate: str) -> int:
    """A priority that every program computes alike from the candidate's name: the checksum that `printf %s NAME | cksum`
    prints, less 2^31."""
    text, length, crc = candidate.encode(), len(candidate.encode()), 0
    while length:
        text += bytes([length & 0xFF])
        length >>= 8
    for byte in text:
        crc ^= byte << 24
        for _ in range(8):
            crc = (crc << 1 ^ (0x04C11DB7 if crc & 1 << 31 else 0)) & 0xFFFFFFFF
    return (crc ^ 0xFFFFFFFF) - 2**31
