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
LEASE_LOST and ELECTION_DELETED end it at once; after no answer, or any other, it tries again until the deadline. With LEASE_LOST and the
reason EPOCH an operator has begun a new epoch: the lease goes on under the token that the answer names, once a renewal with it succeeds.
Then `lease.token` rises, and a command, which cannot learn a new token, is stopped and started anew.

Where the election's policy asks what a candidate is worth, `lead` takes it: `priority=10` or `priority="cksum"`, `capabilities=["gpu"]`, and
`load=queue_length`, a number or a function that is asked before each call. The program takes REGENT_PRIORITY, REGENT_CAPABILITIES
(gpu,eu) and REGENT_LOAD. A candidate that lacks a capability that the policy requires is refused.

What the leader does may be reported: `lease.report(progress=412, health="ok")`, or in the file that REGENT_REPORT_FILE names, as a JSON
object that the command rewrites. A report that is refused does not end the lease. `lease.ends_because` and `lease.ends_in()` say whether
and when the term ends however often it is renewed, as when an operator evicts the leader.

A leader whose policy needs approvals asks operators for one: `lease.request_approval("the draft is ready")`, or by the file that
REGENT_APPROVAL_FILE names, as a JSON object such as {"note": "the draft is ready"} that the command rewrites. With new_epoch=True, or
"newEpoch": true, it asks to go on under the next token, as for a new task.

The token must reach the write. A process that is stopped at the wrong moment, or whose agent was killed, acts late in spite of
every deadline. Send `lease.token` (REGENT_FENCING_TOKEN) with each write; the service that takes it must refuse a token lower than
one it has seen.
"""

from __future__ import annotations

import contextlib
import glob
import hashlib
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
from typing import Any, Callable, Iterable, TypeVar

DRIFT = 0.999  # a clock may be wrong by 0.1 %; what was waited is by two clocks, the server's and ours
MARGIN = 0.1  # of the lease, a second at most: how long before its end the deadline is
GRACE = 0.1  # of the lease: how long before the deadline a command is told to stop; at the deadline it is killed
WAIT = 30.0  # seconds to wait in one call
TICK = 0.02  # seconds between two polls
DEFAULT_SERVER = "http://127.0.0.1:8080"

COUNTERS = ("progress", "tasks", "tokensUsed", "calls", "errors")  # of a report; cumulative for the term
MAX_REPORT = 2048  # bytes
REPORT_EVERY = 3  # renewals; one with a report costs the store more

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
        self.outcome, self.note = "done", ""  # how the work ended, for the release
        self.ends_because = ""  # why no renewal goes beyond ends_in(), such as "evicted" or "stuck"; empty if there is no such end
        self._ends_at = math.inf  # that, on the clock
        self._end = math.inf  # of the lease, on the clock
        self._report: Reply = {}
        self._told = "{}"  # the last report that was taken or refused
        self._plain = 0  # how many renewals go without a report before the next
        self._agent: _Agent | None = None  # which renews it
        self._clock = clock
        self._lock = threading.RLock()  # guards all that changes

    def valid(self) -> bool:
        return self.remaining() > 0

    def remaining(self) -> float:
        """Seconds until the deadline; 0 once the lease is over."""
        with self._lock:
            left = self.deadline - self._clock()
            if left <= 0:
                self.why = self.why or self.expiry()
            return 0.0 if self.why else left

    def ends_in(self) -> float:
        """Seconds until the term ends; infinity if it has no such end."""
        with self._lock:
            return max(self._ends_at - self._clock(), 0.0)

    def expiry(self) -> str:
        """Why the deadline passes."""
        with self._lock:
            if self._end >= self._ends_at:
                return f"its term has ended: {self.ends_because}"
            return "no renewal was answered before the deadline"

    def report(self, **what: Any) -> None:
        """Adds to what renewals tell of the work: counters, of which the larger value counts, eta (as "20m"), health, and the objects
        capabilities, dependencies and custom, whose members are replaced. Raises ValueError for what no server would take."""
        with self._lock:
            merged = dict(self._report)
            for name, value in what.items():
                if name in COUNTERS:
                    if type(value) is not int or value < 0:
                        raise ValueError(f"{name} is {value!r}, and a counter is an integer, 0 or more")
                    merged[name] = max(value, merged.get(name, 0))
                elif name in ("capabilities", "dependencies", "custom"):
                    if not isinstance(value, dict):
                        raise ValueError(f"{name} is {value!r}, and has to be an object")
                    merged[name] = {**merged.get(name, {}), **value}
                elif name in ("eta", "health") and isinstance(value, str):
                    merged[name] = value
                else:
                    raise ValueError(f"{name!r} is no part of a report, or {value!r} is no value for it")
            if len(json.dumps(merged, separators=(",", ":"), ensure_ascii=False).encode()) > MAX_REPORT:
                raise ValueError(f"a report has at most {MAX_REPORT} bytes")
            self._report = merged

    def request_approval(self, note: str, new_epoch: bool = False, until: Question = lambda: False) -> None:
        """Asks operators to let the term go on, with a line for them; asking again before they have answered changes nothing. Raises Refused,
        or ConnectionError if there was no answer, `until` was true or the lease is over: ask again then, if it is valid."""
        assert self._agent is not None
        body = {"fencingToken": self.token, "note": note, **({"newEpoch": True} if new_epoch else {})}
        status, reply = self._agent._ask("requestApproval", body, self.patience(), lambda: until() or not self.valid())
        why = reply.get("detail") or f"the answer is {status}"
        if 400 <= status < 500 and status not in (408, 429):
            raise Refused(why)
        if status != 200:
            raise ConnectionError(why)

    def next_report(self) -> Reply:
        """Member of the next renewal, if there is something new: with every third, or with each while the term is about to end
        without progress."""
        with self._lock:
            stuck = self.ends_because == "stuck" and self.ends_in() <= self.length
            if json.dumps(self._report) == self._told or self._plain > 0 and not stuck:
                return {}
            return {"report": self._report}

    def reported(self, sent: Reply) -> None:
        """Notes that the renewal with this member, or without, was answered; a report that was refused is not sent again."""
        with self._lock:
            self._plain = REPORT_EVERY - 1 if sent else max(self._plain - 1, 0)
            if sent:
                self._told = json.dumps(sent["report"])

    def extend(self, sent: float, reply: Reply, token: int | None = None) -> bool:
        """Takes the reply to what was sent at `sent`, and says whether the lease is valid by it. One that is late, or not ours, extends nothing.
        `token` is that of a new epoch, which becomes the lease's own."""
        token = self.token if token is None else token
        expires, waited, renew = reply.get("expiresInMs"), reply.get("waitedMs", 0), reply.get("renewInMs")
        ours = (self.election, self.candidate, token) == (reply.get("election"), reply.get("leaderId"), reply.get("fencingToken"))
        if not ours or not all(type(n) is int and n >= 0 for n in (token, expires, waited, renew)):
            return False
        because, ends = reply.get("endsBecause"), reply.get("endsInMs", 0)
        with self._lock:
            if self.valid():
                self.token = token
                begin = sent + waited / 1000 * DRIFT * DRIFT
                limited = isinstance(because, str) and type(ends) is int
                self.ends_because = because if limited else ""
                self._ends_at = begin + ends / 1000 * DRIFT if limited else math.inf
                self.length, self.renew_in = expires / 1000 * DRIFT, renew / 1000
                ticket = reply.get("ticket")
                self.ticket = {"ticket": ticket} if isinstance(ticket, str) and len(ticket) <= 1024 else {}
                self._end = begin + self.length
                self.deadline = self._end - min(self.length * MARGIN, 1)
            return self.valid()

    def patience(self) -> float:
        """Seconds to wait for one answer, so that there is time for several tries in a lease."""
        return min(max(self.length / 8, 0.3), 10)

    def end(self, why: str) -> None:
        with self._lock:
            self.why = self.why or why


def lead(server: str, election: str, work: Callable[[Lease], T], *, candidate: str = "", stopped: Question = lambda: False,
         priority: int | str = 0, capabilities: Iterable[str] = (), load: int | Callable[[], int] = 0) -> T:
    """Waits until it leads, calls `work(lease)` while the lease is kept in the background, then releases it.

    `work` returns soon after `lease.valid()` became false, or when it is done, and has by then stopped all that it has started: only
    then is the lease released. Returns what `work` returned. `stopped` is called while it waits. Raises LeaseLost if the lease ended
    before the work, Stopped, and Refused. Each call is another incarnation with a key of its own, for a key is spent with its release.

    Of the rest what the election's policy asks for counts: the greater priority, from -2^31 to 2^31-1 ("cksum" is cksum_priority of the
    candidate), the capabilities, the smaller load.
    """
    agent = _Agent(server, election, candidate or default_candidate(), priority, capabilities, load)
    lease = agent.campaign(stopped)
    done = threading.Event()
    keeper = threading.Thread(target=agent.keep, args=(lease, done), daemon=True)
    keeper.start()
    try:
        result = work(lease)
    except Exception as error:
        lease.outcome, lease.note = "failed", type(error).__name__
        raise
    except BaseException:
        lease.outcome = "stopped"
        raise
    finally:
        done.set()
        keeper.join()
        if lease.valid():
            agent.release(lease)
    if lease.why:
        raise LeaseLost(lease.why)
    return result


def default_candidate() -> str:
    """The name of this host's candidate, the same after a restart, so that orders against it hold."""
    name = socket.gethostname()
    stable = name.split(".")[0].lower() not in ("", "localhost")
    if job := os.environ.get("CLOUD_RUN_JOB"):
        name, stable = f"{job}-{os.environ.get('CLOUD_RUN_TASK_INDEX', '')}", True
    elif service := os.environ.get("K_SERVICE"):  # on Cloud Run every host is called localhost
        instance = _instance()
        name, stable = f"{service}.{instance}" if instance else service, bool(instance)
    if not stable:
        name = f"{name or 'agent'}.{secrets.token_hex(8)}"
        log(f"this host has no name of its own: the candidate is {name} now, and another one next time; orders against it do not hold then: set REGENT_CANDIDATE")
    candidate = re.sub(r"[^A-Za-z0-9._@:-]", "-", name)
    return candidate if len(candidate) <= 128 else candidate[:111] + "." + hashlib.sha256(name.encode()).hexdigest()[:16]


def _instance() -> str:
    """The end of the instance's id on Cloud Run; "" if that is not known within a second."""
    connection = http.client.HTTPConnection(os.environ.get("GCE_METADATA_HOST") or "metadata.google.internal", timeout=1)
    with contextlib.closing(connection), contextlib.suppress(OSError, http.client.HTTPException):
        connection.request("GET", "/computeMetadata/v1/instance/id", headers={"Metadata-Flavor": "Google"})
        reply = connection.getresponse()
        text = reply.read(1024).decode("ascii", "replace").strip()
        if reply.status == 200 and reply.getheader("Metadata-Flavor") == "Google":
            return text[-12:]
    return ""


def cksum_priority(candidate: str) -> int:
    """The checksum that `printf %s CANDIDATE | cksum` prints, less 2^31: a priority that every program computes alike."""
    text, length, crc = candidate.encode(), len(candidate.encode()), 0
    while length:
        text += bytes([length & 0xFF])
        length >>= 8
    for byte in text:
        crc ^= byte << 24
        for _ in range(8):
            crc = (crc << 1 ^ (0x04C11DB7 if crc & 1 << 31 else 0)) & 0xFFFFFFFF
    return (crc ^ 0xFFFFFFFF) - 2**31


def _is_here(host: str) -> bool:
    """Whether the host is this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class _Agent:
    """One incarnation of a candidate. Its key is in no log, no environment and on no command line."""

    def __init__(self, server: str, election: str, candidate: str, priority: int | str = 0, capabilities: Iterable[str] = (),
                 load: int | Callable[[], int] = 0) -> None:
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
        self._priority = cksum_priority(candidate) if priority == "cksum" else priority
        self._capabilities, self._load = sorted(set(capabilities)), load if callable(load) else lambda: load
        if type(self._priority) is not int:
            raise Refused(f"{priority!r} is no priority; set REGENT_PRIORITY to an integer, or to cksum")
        for name in self._capabilities:
            if not re.fullmatch(r"[A-Za-z0-9._@:-]{1,64}", name):
                raise Refused(f"{name!r} is no capability; set REGENT_CAPABILITIES to names such as gpu,eu")

    def _worth(self) -> Reply:
        """Members of an acquire: what the candidate is worth now."""
        worth = {"priority": self._priority, "capabilities": self._capabilities, "load": self._load()}
        return {name: value for name, value in worth.items() if value}

    def campaign(self, stopped: Question) -> Lease:
        """Waits until it leads. The same key keeps the place in the queue, and finds a grant whose reply was lost."""
        tries = 0
        while not stopped():
            sent = boottime()
            status, reply = self._ask("acquire", {"wait": f"{WAIT:.0f}s", **self._worth()}, WAIT + 10, stopped)
            lease = Lease(self._election, self._candidate, reply.get("fencingToken", 0))
            if status == 200 and lease.extend(sent, reply):
                lease._agent = self
                return lease
            why = reply.get("detail") or f"the answer is {status}; is this the address of a Regent server?"
            if reply.get("code") in ("ELECTION_DELETED", "NOT_ELIGIBLE") or (400 <= status < 500 and status not in (408, 409, 429)):
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
        token, pause, failed, told = lease.token, lease.renew_in * random.uniform(0.9, 1), False, ""
        while not done.wait(min(pause, lease.remaining())) and lease.valid():
            sent = boottime()
            report = {} if failed else lease.next_report()  # after a failure the lease comes first
            status, reply = self._ask("renew", {"fencingToken": token, **lease.ticket, **report}, lease.patience(), done.is_set)
            if status == 200 and lease.extend(sent, reply, token):
                lease.reported(report)
                pause, failed = lease.renew_in * random.uniform(0.9, 1), False
                told = _notice(lease, told)
                continue
            why = reply.get("detail") or f"the answer is {status}"
            if status == 409 and reply.get("code") in ("LEASE_LOST", "ELECTION_DELETED"):
                if not (later := self._epoch(reply, token)):
                    return lease.end(why)
                token, pause, lease.ticket = later, 0, {}  # until it is answered, the old deadline counts
                continue
            if status == 400 and report:
                log(f"the report is refused, and the lease renewed without it: {why}")
                lease.reported(report)
                pause, failed = 0, True
                continue
            if status == 400:
                lease.ticket = {}  # a server of an older version refuses it
            if not failed and not done.is_set():
                log(f"could not renew token {lease.token}, and tries again until the deadline: {why}")
            pause, failed = min(lease.length / 20, 2) * random.uniform(0.5, 1), True

    def _epoch(self, reply: Reply, token: int) -> int:
        """The token under which the lease goes on, if the refusal says that an operator has begun a new epoch; else 0."""
        later = reply.get("fencingToken")
        ours = (self._election, self._candidate, "held") == (reply.get("election"), reply.get("leaderId"), reply.get("state"))
        return later if reply.get("reason") == "EPOCH" and ours and type(later) is int and later > token else 0

    def release(self, lease: Lease) -> None:
        """Gives the lease back, so that the next need not wait for its end. Asks until it is answered, for 5 s and within the lease."""
        end, token = boottime() + min(5.0, lease.remaining()), lease.token
        said = {"outcome": lease.outcome, **({"note": lease.note} if lease.note else {})}
        while (left := end - boottime()) > 0:
            status, reply = self._ask("release", {"fencingToken": token, **said}, min(left, lease.patience()), lambda: False)
            if status == 200 and reply.get("leaderId") == self._candidate and type(later := reply.get("fencingToken")) is int and later > token:
                token = later  # of a new epoch that it has not heard of; that of another incarnation is refused
                continue
            if status in (200, 409):
                return
            if status == 400:
                said = {}  # an older server knows no outcome
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


def _notice(lease: Lease, told: str) -> str:
    """Logs a change of the end of the term; returns what there is to compare the next one with. Each report moves the end of a leader that
    could be stuck: that is no news until it is near."""
    now = lease.ends_because
    if now == "stuck" and lease.ends_in() > lease.length:
        now = ""
    if now != told:
        log(f"the term of {lease.election} ends in {lease.ends_in():.0f} s: {now}" if now else f"the term of {lease.election} goes on")
    return now


def run(lease: Lease, command: list[str], stopped: Question) -> int:
    """Runs the command in a session of its own until it ends, the lease is about to end, or `stopped`; anew in each new epoch. All of it is
    gone when this returns."""
    reports, approvals = _ReportFile("report", os.environ.get("REGENT_REPORT_FILE", "")), _File("request", os.environ.get("REGENT_APPROVAL_FILE", ""))
    while True:
        code, again = _run(lease, command, stopped, reports, approvals)
        if not again or not lease.valid() or stopped():
            if stopped():
                lease.outcome = "stopped"
            elif code:
                lease.outcome, lease.note = "failed", f"exit status {code}"
            return code
        log(f"a new epoch of {lease.election} has begun, and the command starts anew")


def _run(lease: Lease, command: list[str], stopped: Question, reports: _ReportFile, approvals: _File) -> tuple[int, bool]:
    """Runs the command under one token. Returns its exit code, and whether it was stopped because that token is stale."""
    token, again = lease.token, False
    names = {"REGENT_ELECTION": lease.election, "REGENT_FENCING_TOKEN": str(token), "REGENT_CANDIDATE_ID": lease.candidate}
    reports.begin()
    approvals.begin()

    def over() -> bool:
        return child.poll() is not None or lease.remaining() <= GRACE * lease.length or lease.token != token or stopped()

    def request(now: Reply) -> None:
        if set(now) - {"note", "newEpoch"}:
            raise ValueError("it has a note, and newEpoch or not, and nothing else")
        lease.request_approval(now.get("note", ""), now.get("newEpoch") is True, over)
        log("operators are asked for an approval")

    try:
        child = subprocess.Popen(command, env={"REGENT_SERVER": DEFAULT_SERVER, **os.environ, **names}, start_new_session=True)
    except OSError as error:
        raise Refused(f"{command[0]!r} cannot be run: {error.strerror}; name another after --") from None
    try:
        log(f"leads {lease.election} as {lease.candidate} with fencing token {token}")
        while not over():
            reports.read(lambda now: reports.add(lease, now))
            approvals.read(request)
            time.sleep(TICK)
        if child.returncode is None and not stopped():
            if again := lease.token != token and lease.remaining() > GRACE * lease.length:
                log("the token of the command is stale, and it is stopped")
            else:
                lease.end(lease.expiry())
    finally:
        _end(child, min(boottime() + GRACE * lease.length, lease.deadline))
    return child.returncode if child.returncode >= 0 else 128 - child.returncode, again


class _File:
    """A file that commands rewrite: a JSON object for the server."""

    def __init__(self, what: str, path: str) -> None:
        self._what, self._path, self._seen, self._bad, self._next = what, path, self._look(path), False, 0.0

    @staticmethod
    def _look(path: str) -> tuple[int, int, int] | None:
        with contextlib.suppress(OSError):
            stat = os.stat(path)
            return stat.st_ino, stat.st_mtime_ns, stat.st_size
        return None

    def begin(self) -> None:
        """What an earlier command has left in the file is not the next one's."""
        self._seen = self._look(self._path)

    def read(self, take: Callable[[Reply], None]) -> None:
        """Takes what the file says, if it has changed. What is none is logged once, and ignored; what was not answered is taken again."""
        if not self._path or boottime() < self._next or (seen := self._look(self._path)) in (None, self._seen):
            return
        self._seen = seen
        try:
            if not os.path.isfile(self._path) or seen[2] > MAX_REPORT:
                raise ValueError(f"it is no file of at most {MAX_REPORT} bytes")
            with open(self._path, encoding="utf-8") as file:
                now = json.load(file)
            if not isinstance(now, dict):
                raise ValueError("it is no JSON object")
            if self._look(self._path) != seen:  # it was being written: what was read may not be what was looked at
                self._seen = None
                return
            take(now)
            self._bad = False
        except ConnectionError:
            self._seen, self._next = None, boottime() + 1
        except Refused as error:
            log(f"the {self._what} in {self._path} is refused: {error}")
        except (OSError, ValueError, TypeError) as error:
            if not self._bad:
                log(f"the {self._what} in {self._path} is ignored: {error}")
            self._bad = True


class _ReportFile(_File):
    """The counters of several commands under one lease are added."""

    def __init__(self, what: str, path: str) -> None:
        super().__init__(what, path)
        self._before: dict[str, int] = {}
        self._now: Reply = {}

    def begin(self) -> None:
        self._before = {name: self._before.get(name, 0) + self._now.get(name, 0) for name in COUNTERS}
        self._now = {}
        super().begin()

    def add(self, lease: Lease, now: Reply) -> None:
        lease.report(**{name: value + self._before.get(name, 0) if name in COUNTERS else value for name, value in now.items()})
        self._now = now


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

Runs COMMAND while it leads ELECTION. REGENT_SERVER is the server (http://127.0.0.1:8080), REGENT_CANDIDATE the name to lead by
(that of this host).
REGENT_PRIORITY (a number, or cksum), REGENT_CAPABILITIES (gpu,eu) and REGENT_LOAD count where the election's policy says so.
With REGENT_REPORT_FILE it reports what COMMAND writes there: a JSON object such as {"progress": 412, "health": "ok"}.
With REGENT_APPROVAL_FILE it asks operators for an approval when COMMAND rewrites that: {"note": "the draft is ready"}.
The command finds REGENT_ELECTION, REGENT_FENCING_TOKEN, REGENT_CANDIDATE_ID and REGENT_SERVER in its environment.
Exit codes: the command's own; 2 wrong use; 4 the lease was lost; 128 + n ended by signal n."""


def _settings() -> dict[str, Any]:
    """What the environment says of the candidate."""
    priority, names, load = (os.environ.get(f"REGENT_{name}", "") for name in ("PRIORITY", "CAPABILITIES", "LOAD"))
    if priority and priority != "cksum" and not re.fullmatch(r"-?[0-9]{1,10}", priority):
        raise Refused(f"{priority!r} is no priority; set REGENT_PRIORITY to an integer, or to cksum")
    if load and not re.fullmatch(r"[0-9]{1,10}", load):
        raise Refused(f"{load!r} is no load; set REGENT_LOAD to an integer, 0 or more")
    return {"priority": priority if priority == "cksum" else int(priority or 0), "capabilities": names.split(",") if names else (), "load": int(load or 0)}


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
        code = lead(server, election, lambda lease: run(lease, command, stopped), candidate=candidate, stopped=stopped, **_settings())
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
