"""The driver of the Python package, with threads and with asyncio: see the package comment of test/clients."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import logging
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any, Callable

sys.path.insert(0, str(Path(__file__).resolve().parents[4] / "leadership" / "client" / "python"))

import regent_client  # noqa: E402
from regent_client import ApiError, Cancel, Cancelled, Handle, LeaseExpired, RegentError, aio  # noqa: E402

ELECTION = os.environ["REGENT_ELECTION"]
OPTIONS: dict[str, Any] = json.loads(os.environ.get("REGENT_DRIVER") or "{}")
TICK = 0.02  # seconds
AFTERWARDS = 10  # ticks once the lease is over

_printing = threading.Lock()


def now() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def write(event: str, **members: Any) -> None:
    line = json.dumps({"event": event, **{name: value for name, value in members.items() if value not in (None, "")}})
    with _printing:
        print(line, flush=True)


def code_of(error: BaseException) -> str:
    if isinstance(error, LeaseExpired):
        return "DEADLINE"
    if isinstance(error, ApiError):
        return error.code
    return "CANCELLED" if isinstance(error, (Cancelled, asyncio.CancelledError)) else "OTHER"


def fail(call: str, error: BaseException) -> None:
    write("error", call=call, code=code_of(error), detail=str(error) or type(error).__name__)


def tick(lease: Handle) -> bool:
    at, token, valid = now(), lease.token, lease.valid()
    write("tick", at=at, token=token, valid=valid, remainingMs=int(lease.remaining() * 1000))
    return valid


def tell_lost(lease: Handle) -> None:
    assert lease.lost is not None
    write("lost", at=now(), token=lease.token, code=code_of(lease.lost), detail=str(lease.lost))


def tell_seen(event: Any) -> None:
    write("seen", revision=event.revision, type=event.type, token=event.token)


def how() -> dict[str, Any]:
    return {"lease": os.environ["REGENT_LEASE"], "wait": 0 if OPTIONS.get("try") else None}


def listen(obey: Callable[[str, str], None]) -> None:
    """Takes commands until the test is gone."""
    for line in sys.stdin:
        verb, _, argument = line.strip().partition(" ")
        obey(verb, argument)
    os._exit(1)


class Threads:
    """Drives the client with threads."""

    def __init__(self) -> None:
        self.client = regent_client.Client(os.environ["REGENT_SERVER"], candidate=os.environ["REGENT_CANDIDATE"])
        self.cancel = Cancel()  # of all that is under way
        self.watching = Cancel()
        self.stopped = threading.Event()
        self.beside: list[threading.Thread] = []
        self.lease: regent_client.Lease | None = None

    def run(self) -> None:
        threading.Thread(target=listen, args=(self.obey,), daemon=True).start()
        if OPTIONS.get("idle"):
            with contextlib.suppress(Cancelled):
                self.cancel.sleep(86400)
        else:
            self.campaign()
        self.end()
        for thread in self.beside:
            thread.join()
        self.client.close()

    def end(self) -> None:
        self.cancel.cancel()
        self.watching.cancel()

    def obey(self, verb: str, argument: str) -> None:
        if verb == "cancel" or verb == "stop" and not self.lease:
            self.end()
        elif verb == "stop":
            self.stopped.set()
            self.watching.cancel()
        elif verb == "report" and self.lease:
            self.lease.report(progress=int(argument))
        elif verb in ("watch", "call"):
            thread = threading.Thread(target=getattr(self, verb), args=(argument,))
            self.beside.append(thread)
            thread.start()
        else:
            raise SystemExit(f"the command {verb} is unknown, or needs a lease")

    def campaign(self) -> None:
        while True:
            write("asking", at=now())
            lost = False
            try:
                with self.cancel, self.client.lead(ELECTION, **how()) as self.lease:
                    try:
                        lost = self.body(self.lease)
                    finally:
                        token, self.lease = self.lease.token, None
                if not lost:
                    write("released", at=now(), token=token)
            except RegentError as error:
                if not lost:
                    fail("lead", error)
            if not lost or not OPTIONS.get("again") or self.cancel.cancelled:
                return

    def body(self, lease: regent_client.Lease) -> bool:
        """Ticks until it is told to end, or the lease is over. Returns whether the lease was lost."""
        write("leading", at=now(), token=lease.token)
        lost, left = False, AFTERWARDS
        while left:
            valid = tick(lease)
            if self.stopped.is_set() or self.cancel.cancelled:
                return lost
            if lost:
                left -= 1
            elif not valid:
                lease.done.wait()
                lost = True
                tell_lost(lease)
            time.sleep(TICK)
        return lost

    def watch(self, after: str) -> None:
        try:
            with self.watching:
                for event in self.client.observe(ELECTION, after=int(after) if after else None):
                    tell_seen(event)
        except RegentError as error:
            if not self.stopped.is_set():
                fail("watch", error)
            if OPTIONS.get("idle"):
                self.end()

    def call(self, kind: str) -> None:
        client, lease = self.client, self.lease
        calls: dict[str, Callable[[], object]] = {
            "read": lambda: client.read(ELECTION, strong=True), "members": lambda: client.members(ELECTION),
            "follow": lambda: [tell_item(item) for item in itertools.islice(client.follow(ELECTION), 5)],
            "checkpoint": lambda: lease.checkpoint.put("here"), "newer": lambda: lease.checkpoint.put("there"),
            "propose": lambda: tell_decision(client.propose(ELECTION, "ask", "ask", wait="5m")), "decide": lambda: lease.decide("ask", "accepted"),
            "begin": lambda: write("item", type=lease.begin_effect("once").state), "finish": lambda: lease.finish_effect("once", "here"),
            "append": lambda: lease.journal.append("here"), "handover": lambda: lease.hand_over(),
            "check": lambda: client.check_token(ELECTION, lease.token),
        }
        try:
            with self.cancel:
                calls[kind]()
            write("done", call=kind)
        except Exception as error:
            fail(kind, error)


class Tasks:
    """Drives the client with asyncio. What the command cancel cancels are tasks."""

    def __init__(self) -> None:
        self.client = aio.Client(os.environ["REGENT_SERVER"], candidate=os.environ["REGENT_CANDIDATE"])
        self.lease: aio.Lease | None = None
        self.beside: set[asyncio.Task[None]] = set()
        self.watches: set[asyncio.Task[None]] = set()

    def run(self) -> None:
        asyncio.run(self.main())

    async def main(self) -> None:
        loop = asyncio.get_running_loop()
        self.stopped = asyncio.Event()
        self.leading = asyncio.ensure_future(asyncio.sleep(86400) if OPTIONS.get("idle") else self.campaign())
        threading.Thread(target=listen, args=(lambda *of: loop.call_soon_threadsafe(self.obey, *of),), daemon=True).start()
        await asyncio.wait([self.leading])
        self.end()
        if self.beside:
            await asyncio.wait(self.beside)
        if not self.leading.cancelled():
            self.leading.result()
        await self.client.aclose()

    def end(self) -> None:
        for task in (self.leading, *self.beside):
            task.cancel()

    def obey(self, verb: str, argument: str) -> None:
        if verb == "cancel" or verb == "stop" and not self.lease:
            self.end()
        elif verb == "stop":
            self.stopped.set()
            for task in self.watches:
                task.cancel()
        elif verb == "report" and self.lease:
            self.lease.report(progress=int(argument))
        elif verb in ("watch", "call"):
            task = asyncio.ensure_future(getattr(self, verb)(argument))
            self.beside.add(task)
            if verb == "watch":
                self.watches.add(task)
        else:
            os._exit(1)

    async def campaign(self) -> None:
        lost = True
        while lost:
            write("asking", at=now())
            lost, token = False, 0
            try:
                async with self.client.lead(ELECTION, **how()) as lease:
                    self.lease, token = lease, lease.token
                    try:
                        lost = await self.body(lease)
                    finally:
                        token, self.lease = lease.token, None
                if not lost:
                    write("released", at=now(), token=token)
            except asyncio.CancelledError as error:
                if not token:
                    fail("lead", error)
                elif not lost:
                    write("released", at=now(), token=token)
                return
            except RegentError as error:
                if not lost:
                    fail("lead", error)
            lost = lost and bool(OPTIONS.get("again"))

    async def body(self, lease: aio.Lease) -> bool:
        write("leading", at=now(), token=lease.token)
        lost, left = False, AFTERWARDS
        while left:
            valid = tick(lease)
            if self.stopped.is_set():
                return lost
            if lost:
                left -= 1
            elif not valid:
                await lease.done.wait()
                lost = True
                tell_lost(lease)
            await asyncio.sleep(TICK)
        return lost

    async def watch(self, after: str) -> None:
        try:
            async for event in self.client.observe(ELECTION, after=int(after) if after else None):
                tell_seen(event)
        except (RegentError, asyncio.CancelledError) as error:
            if not self.stopped.is_set():
                fail("watch", error)
            if OPTIONS.get("idle"):
                self.leading.cancel()

    async def call(self, kind: str) -> None:
        client, lease = self.client, self.lease
        calls: dict[str, Callable[[], Any]] = {
            "read": lambda: client.read(ELECTION, strong=True), "members": lambda: client.members(ELECTION),
            "follow": lambda: follow(client),
            "checkpoint": lambda: lease.checkpoint.put("here"), "newer": lambda: lease.checkpoint.put("there"),
            "propose": lambda: propose(client), "decide": lambda: lease.decide("ask", "accepted"),
            "begin": lambda: begin(lease), "finish": lambda: lease.finish_effect("once", "here"),
            "append": lambda: lease.journal.append("here"), "handover": lambda: lease.hand_over(),
            "check": lambda: client.check_token(ELECTION, lease.token),
        }
        try:
            await calls[kind]()
            write("done", call=kind)
        except (Exception, asyncio.CancelledError) as error:
            fail(kind, error)


def tell_decision(proposal: Any) -> None:
    write("item", type=proposal.decision and proposal.decision.verdict)


async def propose(client: Any) -> None:
    tell_decision(await client.propose(ELECTION, "ask", "ask", wait="5m"))


async def begin(lease: Any) -> None:
    write("item", type=(await lease.begin_effect("once")).state)


def tell_item(item: Any) -> None:
    write("item", revision=item.index, type="snapshot" if isinstance(item, regent_client.Snapshot) else "entry")


async def follow(client: aio.Client) -> None:
    async with contextlib.aclosing(client.follow(ELECTION)) as items:
        for _ in range(5):
            tell_item(await anext(items))


def main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(relativeCreated)d %(name)s: %(message)s")
    try:
        driver = Tasks() if OPTIONS.get("style") == "asyncio" else Threads()
    except RegentError as error:
        fail("lead", error)
    else:
        driver.run()
    write("end")


if __name__ == "__main__":
    main()
