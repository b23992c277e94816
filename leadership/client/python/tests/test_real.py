"""The core at a real server, with threads and with asyncio."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from typing import Any

from regent_client import TermEnded, aio

from .real import PATIENCE, RealCase


class Leading(RealCase):
    def held(self, election: str = "reports") -> str:
        return self.client.read(election, strong=True).leader_id

    def operator(self, election: str, verb: str, **body: Any) -> None:
        self.operate("POST", f"/v1/elections/{election}:{verb}", {"actor": "olga", "reason": "a test", **body})

    def renewals(self, times: int, *leases: Any) -> None:
        """Waits until each lease was renewed so often."""
        for _ in range(times):
            seen = [lease._term.deadline for lease in leases]
            while any(lease.valid() and lease._term.deadline == before for lease, before in zip(leases, seen)):
                time.sleep(0.005)

    def test_an_evicted_leader_is_told_and_ends_in_time(self) -> None:
        with self.assertRaises(TermEnded) as caught, self.client.lead("reports", lease="5s") as lease:
            self.operator("reports", "evict", fencingToken=lease.token)
            kinds = [n.kind for n in lease.notices()]
        self.assertEqual((caught.exception.because, kinds), ("evicted", ["evicted"]))

    def test_a_leader_is_told_whether_it_may_write(self) -> None:
        self.configure("reports", quorum={"electorate": ["ann", "bob", "cyd"], "need": "majority", "grace": "1s"})
        with contextlib.ExitStack() as stack:
            with self.client.join("reports", member="bob"):
                lease = stack.enter_context(self.client.lead("reports", lease="10m"))
                notices = lease.notices()
            self.assertEqual((next(notices).kind, lease.read_only, lease.valid()), ("readOnly", True, True))
            with self.client.join("reports", member="cyd"):
                self.assertEqual((next(notices).kind, lease.read_only), ("writable", False))
            self.assertEqual(next(notices).kind, "readOnly")
        self.assertEqual(list(notices), [])

    def test_a_leader_with_asyncio_is_told_whether_it_may_write(self) -> None:
        self.configure("reports", quorum={"electorate": ["bob", "cyd", "dan"], "need": "majority", "grace": "1s"})

        async def main() -> None:
            async with aio.Client(self.regent.url, candidate="bob") as client, contextlib.AsyncExitStack() as stack:
                async with client.join("reports", member="cyd"):
                    lease = await stack.enter_async_context(client.lead("reports", lease="10m"))
                    notices = lease.notices()
                self.assertEqual((await notices.__anext__()).kind, "readOnly")
                async with client.join("reports", member="dan"):
                    self.assertEqual((await notices.__anext__()).kind, "writable")

        asyncio.run(main())

    def test_many_leases_are_renewed_in_few_calls(self) -> None:
        leases = [self.client.lead(f"e{i:02}", lease="6s").acquire() for i in range(30)]
        self.renewals(2, *leases)
        self.assertTrue(all(lease.valid() for lease in leases))
        for lease in leases:
            lease.release()
        self.assertEqual({r.leader_id for r in self.client.list()}, {""})

    def test_a_lease_that_stands_on_another(self) -> None:
        self.configure("region", leadersOf="world")
        self.configure("world")
        with self.client.lead("world", lease="20s") as world, self.client.lead("region", via=world, lease="20s") as lease:
            found = self.client.read("region", strong=True).via
            assert found is not None
            self.assertEqual((found["election"], found["fencingToken"]), ("world", world.token))
            self.assertTrue(lease.valid())

    def test_an_interrupt_ends_a_program_and_its_lease(self) -> None:
        for signals, code in ((signal.SIGINT, "with Client(sys.argv[1], candidate='bob') as c, c.lead('reports') as l: print(l.token, flush=True); time.sleep(1000)"),
                              (signal.SIGINT, "asyncio.run(main())")):
            program = f"""
import asyncio, sys, time
from regent_client import Client, aio
async def main():
    async with aio.Client(sys.argv[1], candidate='bob') as c, c.lead('reports') as l:
        print(l.token, flush=True)
        await asyncio.sleep(1000)
{code}
"""
            child = subprocess.Popen([sys.executable, "-B", "-c", program, self.regent.url], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            assert child.stdout
            self.assertTrue(child.stdout.readline())
            self.assertEqual(self.held(), "bob")
            os.kill(child.pid, signals)
            child.wait(PATIENCE)
            child.stdout.close()
            self.assertEqual(self.held(), "")


class Cancelling(RealCase):

    def test_tasks_that_are_cancelled_at_any_moment_leave_no_lease(self) -> None:
        async def lead(client: aio.Client, election: str) -> None:
            async with client.lead(election):
                await asyncio.sleep(0.003)

        async def main() -> None:
            async with aio.Client(self.regent.url, candidate="bob") as client:
                for i in range(40):
                    tasks = [asyncio.create_task(lead(client, f"e{n}")) for n in range(3)]
                    await asyncio.sleep(i / 2000)
                    for task in tasks:
                        task.cancel()
                    await asyncio.wait(tasks, timeout=PATIENCE)
                    for task in tasks:
                        self.assertTrue(task.cancelled() or task.exception() is None)
                left = [r.election async for r in client.list() if (await client.read(r.election, strong=True)).leader_id]
                self.assertEqual(left, [])

        asyncio.run(main())
