"""The client with asyncio, against a server that fails as the tests say."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import inspect
import itertools
import os
import subprocess
import sys
import threading
import time
import unittest
from typing import Any, Callable

from regent_client import LeaseExpired, LeaseReleased, _async, _leads, client
from regent_client.aio import Client, Lease

from .scripted import PATIENCE, Clock, Held, Server, cut, serving


class Case(unittest.IsolatedAsyncioTestCase):
    def setUp(self) -> None:
        self.server = Server()
        self.addCleanup(self.server.close)
        self.clock = Clock()

    async def asyncSetUp(self) -> None:
        asyncio.get_running_loop().set_debug(False)  # it warns of the loops that a test stops
        self.client = await self.new("ann")
        self.bob = await self.new("bob")

    async def new(self, candidate: str, **how: Any) -> Client:
        client = Client(self.server.url, candidate=candidate, **how)
        self.addAsyncCleanup(client.aclose)
        return client

    async def until(self, what: Callable[[], object], why: str) -> None:
        end = time.monotonic() + PATIENCE
        while not what():
            self.assertLess(time.monotonic(), end, why)
            await asyncio.sleep(0.01)

    async def lead(self, body: float = 1000) -> None:
        async with self.client.lead("reports"):
            await asyncio.sleep(body)

    def leader(self) -> str:
        return self.server.elections["reports"].leader


class Leading(Case):

    async def test_a_busy_loop_does_not_cost_the_lease(self) -> None:
        self.server.renew = 0.03
        async with self.client.lead("reports"):
            self.server.until(lambda: len(self.server.of("renew")) > 3, "it is renewed while the loop stands")

    async def test_work_returns_what_it_returns_and_raises_what_it_raises(self) -> None:
        async def fail() -> None:
            raise ValueError("ours")

        async with self.client.lead("reports") as lease:
            self.assertEqual(await lease.run(asyncio.sleep(0, "done")), "done")
            with self.assertRaisesRegex(ValueError, "ours"):
                await lease.run(fail())

    async def test_work_is_not_begun_with_a_lease_that_is_over(self) -> None:
        async with self.client.lead("reports") as lease:
            pass
        begun: list[int] = []

        async def work() -> None:
            begun.append(1)

        with self.assertRaises(LeaseReleased):
            await lease.run(work())
        self.assertEqual(begun, [])

    async def test_work_has_ended_before_the_release_however_often_it_is_cancelled(self) -> None:
        begun, patience, ended = asyncio.Event(), 3, []

        async def work() -> None:
            begun.set()
            for _ in range(patience):
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.sleep(PATIENCE / 6)
            await asyncio.sleep(0.05)
            ended.append(self.leader())
            raise ValueError("at its clean-up")

        async def main() -> None:
            async with self.client.lead("reports") as lease:
                await lease.run(work())

        task = asyncio.create_task(main())
        await asyncio.wait_for(begun.wait(), PATIENCE)
        for _ in range(patience):
            self.assertFalse(task.done())
            task.cancel()
            await asyncio.sleep(0.02)
        with self.assertRaisesRegex(ValueError, "at its clean-up"):
            await asyncio.wait_for(task, PATIENCE)
        self.assertEqual((ended, self.leader()), (["ann"], ""))

    async def test_work_that_heeds_a_cancellation_ends_as_cancelled(self) -> None:
        async with self.client.lead("reports") as lease:
            for work in (asyncio.sleep(1000), self.tidy()):
                task = asyncio.create_task(lease.run(work))
                await asyncio.sleep(0.01)
                task.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await task

    async def tidy(self) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(PATIENCE / 6)

    async def test_done_is_set_at_the_deadline(self) -> None:
        client = await self.new("ann", clock=self.clock)
        with self.assertRaises(LeaseExpired):
            async with client.lead("reports") as lease:
                self.clock.now += 600
                self.assertTrue(lease.done.is_set())
                await asyncio.wait_for(lease.done.wait(), PATIENCE)

    async def test_a_lease_that_no_task_holds_is_not_renewed(self) -> None:
        lease = await self.client.lead("reports").acquire()
        done = lease.done
        self.assertFalse(done.is_set())
        gc.disable()
        self.addCleanup(gc.enable)
        del lease
        await asyncio.wait_for(done.wait(), PATIENCE)
        self.assertTrue(done.is_set())
        await self.until(lambda: not self.client._core.keeper._running, "the keeper ends")

    async def test_notices_come_as_they_are_told_and_end_with_the_lease(self) -> None:
        self.server.renew = 0.03
        async with self.client.lead("reports") as lease:
            self.server.more.update(endsBecause="drained", endsBy="2027-01-01T00:00:00Z", endsInMs=500_000)
            notices = lease.notices()
            self.assertEqual((await notices.__anext__()).kind, "drained")
            self.server.more.clear()
            self.assertEqual((await notices.__anext__()).kind, "goesOn")
        self.assertEqual([n async for n in notices], [])


class Names(unittest.TestCase):
    def test_each_method_takes_what_that_of_the_client_with_threads_takes(self) -> None:
        for threads, tasks in ((client.Client, Client), (client.Lease, Lease), (_leads.Checkpoints, _async.AsyncCheckpoints), (_leads.Journal, _async.AsyncJournal)):
            for name, method in inspect.getmembers(threads, inspect.isfunction):
                if name[0] != "_" and name != "close":
                    with self.subTest(f"{threads.__name__}.{name}"):
                        of = [[(p.name, p.kind, p.default) for p in inspect.signature(f).parameters.values()] for f in (method, getattr(tasks, name))]
                        self.assertEqual(*of)


class Cancelling(Case):
    async def stop(self, task: asyncio.Task[Any]) -> None:
        task.cancel()
        await asyncio.wait([task], timeout=PATIENCE)
        self.assertTrue(task.cancelled(), task)

    async def test_a_grant_that_arrives_in_the_same_moment_is_released(self) -> None:
        task = asyncio.create_task(self.client.lead("reports").acquire())
        await asyncio.sleep(0)
        self.server.until(lambda: self.leader() == "ann", "the grant")
        time.sleep(0.1)  # the thread has the lease, and the loop has not been told
        await self.stop(task)
        self.assertEqual(self.leader(), "")

    async def test_before_the_first_step_no_call_is_made(self) -> None:
        task = asyncio.create_task(self.lead())
        await self.stop(task)
        self.assertEqual(self.server.requests, [])

    async def test_twice_it_ends_at_once_and_is_released_all_the_same(self) -> None:
        held = Held()
        self.server.faults["release"].append(held)
        task = asyncio.create_task(self.lead(0))
        await self.until(held.begun.is_set, "the release")
        task.cancel()
        await asyncio.sleep(0.05)
        await self.stop(task)
        self.assertFalse(held.left.is_set())
        held.go.set()
        await self.until(lambda: self.leader() == "", "the release")

    async def test_a_join_that_may_have_been_done_is_taken_back(self) -> None:
        async def stay() -> None:
            async with self.client.join("reports"):
                await asyncio.Event().wait()

        held = Held()
        self.server.faults["join"].append(held)
        task = asyncio.create_task(stay())
        await self.until(held.begun.is_set, "the join")
        task.cancel()
        await asyncio.sleep(0.05)
        self.assertEqual(self.server.of("leave"), [])
        held.go.set()
        await asyncio.wait([task], timeout=PATIENCE)
        self.assertTrue(task.cancelled(), task)
        self.assertEqual(len(self.server.of("leave")), 1)

    async def test_after_the_end_of_all_nothing_is_left(self) -> None:
        tasks = [asyncio.create_task(self.lead()) for _ in range(5)]
        await self.until(lambda: len(self.server.of("acquire")) >= 5, "they ask")
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks, timeout=PATIENCE)
        self.assertEqual(self.leader(), "")
        await self.until(lambda: not [t for t in threading.enumerate() if t.name.startswith("regent-client")], "all threads end")


class Loops(unittest.TestCase):
    def process(self, server: Server, seen: Callable[[], object], body: str) -> None:
        """Runs a program that cancels its task once that is seen, and ends."""
        program = f"""
import asyncio, sys
from regent_client.aio import Client

async def lead(client):
    async with client.lead("reports"):
        await asyncio.sleep(PATIENCE / 6)

async def main():
    async with Client({server.url!r}, candidate="ann") as client:
        task = asyncio.create_task(lead(client))
        await asyncio.to_thread(sys.stdin.readline)
        task.cancel()
        {body}

asyncio.run(main())
"""
        folder = os.path.dirname(os.path.dirname(__file__))
        with subprocess.Popen([sys.executable, "-B", "-c", program], cwd=folder, stdin=subprocess.PIPE) as child:
            try:
                server.until(seen, "it is granted the lease")
                child.communicate(b"go on\n", timeout=PATIENCE)
            finally:
                child.kill()
        self.assertEqual(child.returncode, 0)

    def test_a_process_does_not_end_before_its_release(self) -> None:
        for verb, body in itertools.product(("release", "acquire"), ("await asyncio.sleep(0)", "await client.aclose()", "pass")):
            with self.subTest(verb=verb, body=body), serving() as server:
                held = Held()
                if verb == "acquire":
                    server.faults["acquire"].append(held)
                server.faults["release"].extend((cut, cut))  # the process has to go on
                seen = held.begun.is_set if verb == "acquire" else lambda: server.elections["reports"].leader
                self.process(server, seen, body)
                self.assertEqual(server.elections["reports"].leader, "")

    def test_an_interrupt_of_the_program_releases(self) -> None:
        server = Server()
        self.addCleanup(server.close)

        async def main() -> None:
            async with Client(server.url, candidate="ann") as client, client.lead("reports"):
                raise KeyboardInterrupt

        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(main())
        self.assertEqual(server.elections["reports"].leader, "")


if __name__ == "__main__":
    unittest.main()
