#!/usr/bin/env python3
"""Leads an election of Regent: around a command, or around a function of yours.

One file to copy; Python 3.9 or later, the standard library, nothing else. As a program it waits for an election, runs a command
while it leads, and stops it before the lease is over:

    REGENT_SERVER=http://127.0.0.1:8080 python3 agent.py reports -- ./make-reports

As a library it calls a function, which checks before each act that it still leads:

    def work(lease):
        while lease.valid() and (report := next(reports, None)):
            save(report, fence=lease.token)

    agent.lead("http://127.0.0.1:8080", "reports", work)

The rule. A leader stops by itself, at the latest at

    sent + waitedMs × 0.998 + expiresInMs × 0.999 − margin

where `sent` was read before the request left, on a clock that runs while the machine sleeps. The deadline is compared with that clock
at every check, so no timer can be late. Only a success that names this election, this candidate and this token extends it.
LEASE_LOST and ELECTION_DELETED end it at once; after no answer, or any other, it tries again until the deadline.

The token must reach the write. A process that is stopped at the wrong moment, or whose agent was killed, acts late in spite of
every deadline. Send `lease.token` (REGENT_FENCING_TOKEN) with each write; the service that takes it must refuse a token lower than
one it has seen.
"""

from __future__ import annotations

import contextlib
import glob
import http.client
import ipaddress
import json
import math
import os
import queue
import random
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.parse
from typing import Any, Callable, TypeVar

DRIFT = 0.999  # a clock may be wrong by 0.1 %; what was waited is by two clocks, the server's and ours
MARGIN = 0.1  # of the lease, a second at most: how long before its end the deadline is
GRACE = 0.1  # of the lease: how long before the deadline a command is told to stop; at the deadline it is killed
WAIT = 30.0  # seconds to wait in one call
TICK = 0.02  # seconds between two polls
DEFAULT_SERVER = "http://127.0.0.1:8080"

T = TypeVar("T")
Reply = dict[str, Any]
Question = Callable[[], bool]


class Refused(Exception):
    """Asking again would not help; says what to do."""


class LeaseLost(Exception):
    """The lease ended before the work did; says why."""


class Stopped(Exception):
    """The campaign was asked to stop."""


def boottime() -> float:
    """Seconds on a clock that runs while the machine sleeps. Where there is none (outside Linux) it is the monotonic clock, which may
    stand still meanwhile: after a sleep only the token helps there."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME) / 1e9
    return time.monotonic()


class Lease:
    """The right to lead. Ask `valid()` before each act, and send `token` with each write. Once it is over it stays so."""

    def __init__(self, election: str, candidate: str, token: int, clock: Callable[[], float] = boottime) -> None:
        self.election, self.candidate, self.token = election, candidate, token
        self.length = 0.0  # seconds that the last reply gave
        self.renew_in = 0.0  # seconds until the next renewal, as the last reply advised
        self.ticket: Reply = {}  # member of the next renewal, if the last reply had one: it spares the server a read
        self.deadline = math.inf  # on the clock; finite from the first extension on, which is the grant
        self.why = ""  # it is over
        self._clock = clock
        self._lock = threading.RLock()  # guards deadline and why

    def valid(self) -> bool:
        return self.remaining() > 0

    def remaining(self) -> float:
        """Seconds until the deadline; 0 once the lease is over."""
        with self._lock:
            left = self.deadline - self._clock()
            if left <= 0:
                self.why = self.why or "no renewal was answered before the deadline"
            return 0.0 if self.why else left

    def extend(self, sent: float, reply: Reply) -> bool:
        """Takes the reply to what was sent at `sent`, and says whether the lease is valid by it. One that is late, or not ours, extends nothing."""
        expires, waited, renew = reply.get("expiresInMs"), reply.get("waitedMs", 0), reply.get("renewInMs")
        ours = (self.election, self.candidate, self.token) == (reply.get("election"), reply.get("leaderId"), reply.get("fencingToken"))
        if not ours or not all(type(n) is int and n >= 0 for n in (self.token, expires, waited, renew)):
            return False
        with self._lock:
            if self.valid():
                self.length, self.renew_in = expires / 1000 * DRIFT, renew / 1000
                ticket = reply.get("ticket")
                self.ticket = {"ticket": ticket} if isinstance(ticket, str) and len(ticket) <= 1024 else {}
                self.deadline = sent + waited / 1000 * DRIFT * DRIFT + self.length - min(self.length * MARGIN, 1)
            return self.valid()

    def patience(self) -> float:
        """Seconds to wait for one answer, so that there is time for several tries in a lease."""
        return min(max(self.length / 8, 0.3), 10)

    def end(self, why: str) -> None:
        with self._lock:
            self.why = self.why or why


def lead(server: str, election: str, work: Callable[[Lease], T], *, candidate: str = "", stopped: Question = lambda: False) -> T:
    """Waits until it leads, calls `work(lease)` while the lease is kept in the background, then releases it.

    `work` returns soon after `lease.valid()` became false, or when it is done, and has by then stopped all that it has started: only
    then is the lease released. Returns what `work` returned. `stopped` is called while it waits. Raises LeaseLost if the lease ended
    before the work, Stopped, and Refused. Each call is another incarnation with a key of its own, for a key is spent with its release.
    """
    agent = _Agent(server, election, candidate or default_candidate())
    lease = agent.campaign(stopped)
    done = threading.Event()
    keeper = threading.Thread(target=agent.keep, args=(lease, done), daemon=True)
    keeper.start()
    try:
        result = work(lease)
    finally:
        done.set()
        keeper.join()
        if lease.valid():
            agent.release(lease)
    if lease.why:
        raise LeaseLost(lease.why)
    return result


def default_candidate() -> str:
    """A unique name. On Cloud Run every host is called localhost, so the revision stands for it."""
    host = os.environ.get("K_REVISION") or socket.gethostname() or "agent"
    return re.sub(r"[^A-Za-z0-9._@:-]", "-", host)[:100] + "-" + secrets.token_hex(5)


def _is_here(host: str) -> bool:
    """Whether the host is this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class _Agent:
    """One incarnation of a candidate. Its key is in no log, no environment and on no command line."""

    def __init__(self, server: str, election: str, candidate: str) -> None:
        try:
            url = urllib.parse.urlsplit(server)
            url.port  # which only now is looked at
        except ValueError:
            url = urllib.parse.SplitResult("", "", "", "", "")
        # All of it is checked: of [::1].example, urlsplit names ::1 as the host.
        host = re.fullmatch(r"([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?", url.netloc)
        if url.scheme not in ("http", "https") or not host or url.query or url.fragment or re.search(r"[\s\x00-\x1f@]", server):
            raise Refused(f"{server!r} is no server; set REGENT_SERVER to an address such as http://127.0.0.1:8080")
        if url.scheme == "http" and not _is_here(host[1].strip("[]").lower()) and os.environ.get("REGENT_INSECURE") != "true":
            raise Refused(f"{server!r} is on another machine, and over http:// the key can be read on the way; "
                          "use https://, or set REGENT_INSECURE=true")
        if not re.fullmatch(r"[a-z0-9]([a-z0-9._-]{0,126}[a-z0-9])?", election):
            raise Refused(f"{election!r} is no election; a name is 1 to 128 of a-z 0-9 . _ - and begins and ends with a letter or a digit")
        if not re.fullmatch(r"[A-Za-z0-9._@:-]{1,128}", candidate):
            raise Refused(f"{candidate!r} is no candidate; set REGENT_CANDIDATE to 1 to 128 of A-Z a-z 0-9 . _ @ : -, or leave it out")
        self._connect = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
        self._address, self._path = url.netloc, f"{url.path.rstrip('/')}/v1/elections/{election}"
        self._election, self._candidate, self._key = election, candidate, secrets.token_urlsafe(32)

    def campaign(self, stopped: Question) -> Lease:
        """Waits until it leads. The same key keeps the place in the queue, and finds a grant whose reply was lost."""
        tries = 0
        while not stopped():
            sent = boottime()
            status, reply = self._ask("acquire", {"wait": f"{WAIT:.0f}s"}, WAIT + 10, stopped)
            lease = Lease(self._election, self._candidate, reply.get("fencingToken", 0))
            if status == 200 and lease.extend(sent, reply):
                return lease
            why = reply.get("detail") or f"the answer is {status}; is this the address of a Regent server?"
            if reply.get("code") == "ELECTION_DELETED" or (400 <= status < 500 and status not in (408, 409, 429)):
                raise Refused(why)
            tries = 0 if boottime() - sent >= WAIT else tries + 1  # a call that took its time was pause enough
            if tries == 1:
                log(f"waits to lead {self._election}: {why}")
            pause = min(0.05 * 2**tries, 4) * random.uniform(0.5, 1) if tries else 0  # a place in the queue is kept for 5 s
            while boottime() < sent + pause and not stopped():
                time.sleep(TICK)
        raise Stopped

    def keep(self, lease: Lease, done: threading.Event) -> None:
        """Renews until done, or until the lease is over."""
        pause, failed = lease.renew_in * random.uniform(0.9, 1), False
        while not done.wait(min(pause, lease.remaining())) and lease.valid():
            sent = boottime()
            status, reply = self._ask("renew", {"fencingToken": lease.token, **lease.ticket}, lease.patience(), done.is_set)
            if status == 200 and lease.extend(sent, reply):
                pause, failed = lease.renew_in * random.uniform(0.9, 1), False
                continue
            why = reply.get("detail") or f"the answer is {status}"
            if status == 409 and reply.get("code") in ("LEASE_LOST", "ELECTION_DELETED"):
                return lease.end(why)
            if status == 400:
                lease.ticket = {}  # a server of an older version refuses it
            if not failed and not done.is_set():
                log(f"could not renew token {lease.token}, and tries again until the deadline: {why}")
            pause, failed = min(lease.length / 20, 2) * random.uniform(0.5, 1), True

    def release(self, lease: Lease) -> None:
        """Gives the lease back, so that the next need not wait for its end. Asks until it is answered, for 5 s and within the lease."""
        end = boottime() + min(5.0, lease.remaining())
        while (left := end - boottime()) > 0:
            status, _ = self._ask("release", {"fencingToken": lease.token}, min(left, lease.patience()), lambda: False)
            if status in (200, 409):
                return
            time.sleep(0.1 * random.uniform(0.5, 1))
        log(f"could not release {self._election}; the lease ends by itself")

    def _ask(self, verb: str, body: Reply, seconds: float, stopped: Question) -> tuple[int, Reply]:
        """One exchange, on a connection of its own, for so many seconds in all and no longer than until `stopped`. The status is 0 if there was
        no answer, and the outcome is unknown."""
        connection = self._connect(self._address, timeout=seconds)
        text = json.dumps({"candidateId": self._candidate, "key": self._key, **body})
        answers: queue.SimpleQueue[tuple[int, Reply]] = queue.SimpleQueue()
        over = threading.Event()

        def exchange() -> None:
            try:
                connection.connect()
                if not over.is_set():
                    connection.request("POST", f"{self._path}:{verb}", text, {"Content-Type": "application/json"})
                    response = connection.getresponse()
                    answers.put((response.status, _members(response.read(1 << 20))))
            except Exception as e:
                answers.put((0, {"detail": f"{self._address} does not answer: {e}"}))
            finally:
                connection.close()

        threading.Thread(target=exchange, daemon=True).start()
        end = boottime() + seconds
        try:
            while boottime() < end and not stopped():
                with contextlib.suppress(queue.Empty):
                    return answers.get(timeout=TICK)
            return 0, {"detail": f"{self._address} does not answer in time"}
        finally:
            over.set()
            with contextlib.suppress(OSError):  # closing the connection ends the wait
                if sock := connection.sock:
                    sock.shutdown(socket.SHUT_RDWR)


def _members(text: bytes) -> Reply:
    with contextlib.suppress(ValueError):
        if isinstance(reply := json.loads(text), dict):
            return reply
    return {}


def run(lease: Lease, command: list[str], stopped: Question) -> int:
    """Runs the command in a session of its own until it ends, the lease is about to end, or `stopped`. All of it is gone when this returns."""
    names = {"REGENT_ELECTION": lease.election, "REGENT_FENCING_TOKEN": str(lease.token), "REGENT_CANDIDATE_ID": lease.candidate}
    try:
        child = subprocess.Popen(command, env={"REGENT_SERVER": DEFAULT_SERVER, **os.environ, **names}, start_new_session=True)
    except OSError as error:
        raise Refused(f"{command[0]!r} cannot be run: {error.strerror}; name another after --") from None
    try:
        log(f"leads {lease.election} as {lease.candidate} with fencing token {lease.token}")
        while child.poll() is None and lease.remaining() > GRACE * lease.length and not stopped():
            time.sleep(TICK)
        if child.returncode is None and not stopped():
            lease.end("no renewal was answered in time")
    finally:
        _end(child, min(boottime() + GRACE * lease.length, lease.deadline))
    return child.returncode if child.returncode >= 0 else 128 - child.returncode


def _end(child: subprocess.Popen[bytes], kill_at: float) -> None:
    """Sends the child's group SIGTERM, at kill_at SIGKILL, and returns when nothing of it runs."""
    how: int = signal.SIGTERM
    with contextlib.suppress(ProcessLookupError):
        while child.poll() is None or _alive(child.pid):
            os.killpg(child.pid, how)
            how = signal.SIGKILL if boottime() >= kill_at else 0
            time.sleep(TICK / 4)


def _alive(group: int) -> bool:
    """Whether anything of the group runs. A dead process counts as one until its parent has asked for it, so look what it is."""
    os.killpg(group, 0)
    if not os.path.exists("/proc/self/stat"):
        return True
    for name in glob.glob("/proc/[0-9]*/stat"):
        with contextlib.suppress(OSError), open(name, "rb") as stat:
            state, _, its, *_ = stat.read().rpartition(b")")[2].split()
            if int(its) == group and state not in (b"Z", b"X"):
                return True
    return False


def log(text: str) -> None:
    print(f"agent.py: {text}", file=sys.stderr, flush=True)


USAGE = """usage: agent.py ELECTION -- COMMAND [ARGUMENT...]

Runs COMMAND while it leads ELECTION. REGENT_SERVER is the server (http://127.0.0.1:8080), REGENT_CANDIDATE the name to lead by.
The command finds REGENT_ELECTION, REGENT_FENCING_TOKEN, REGENT_CANDIDATE_ID and REGENT_SERVER in its environment.
Exit codes: the command's own; 2 wrong use; 4 the lease was lost; 128 + n ended by signal n."""


def main(arguments: list[str]) -> int:
    if len(arguments) < 3 or arguments[1] != "--":
        print(USAGE, file=sys.stderr)
        return 2
    election, _, *command = arguments
    server, candidate = os.environ.get("REGENT_SERVER") or DEFAULT_SERVER, os.environ.get("REGENT_CANDIDATE", "")
    signals: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:  # as nohup wants it
            signal.signal(number, lambda got, _: signals.append(got))

    def stopped() -> bool:
        return bool(signals)

    try:
        if shutil.which(command[0]) is None:
            raise Refused(f"{command[0]!r} is no command that can be run; name one after --")
        code = lead(server, election, lambda lease: run(lease, command, stopped), candidate=candidate, stopped=stopped)
    except Refused as e:
        log(str(e))
        return 2
    except LeaseLost as e:
        log(f"the lease is lost, and the command stopped: {e}")
        code = 4
    except Stopped:
        code = 0
    return 128 + signals[0] if signals else code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
