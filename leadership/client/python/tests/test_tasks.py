"""What test_reads and test_leads ask of the client with threads, with asyncio: each method once, and cancelled tasks."""

import asyncio
import threading
from contextlib import aclosing

from regent_client import InvalidArgument, LeaseLost, Orphaned, Snapshot, aio
from tests.real import PATIENCE, RealCase


async def first(items, n):
    """The first items of an async generator, which goes on."""
    return [await anext(items) for _ in range(n)]


def within(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, PATIENCE))


class Tasks(RealCase):
    def client_of(self, candidate):
        return aio.Client(self.regent.url, candidate=candidate)

    def test_reading(self):
        async def main():
            async with self.client_of("ann") as client, client.lead("reports") as lease:
                self.assertEqual((await client.read("reports", strong=True)).leader_id, "ann")
                self.assertEqual([e.election async for e in client.list()], ["reports"])
                self.assertEqual([e.type for e in await client.events("reports")], ["acquired"])
                self.assertEqual((await client.check_token("reports", lease.token)).token, 1)
                self.assertFalse((await client.explain("reports", "bob")).leads)
                with self.assertRaises(InvalidArgument):
                    await client.read("../x")

        within(main())

    def test_members_follow(self):
        async def main():
            async with self.client_of("ann") as ann, self.client_of("bob") as bob, ann.lead("reports") as lease:
                async with bob.join("reports", role="worker") as member:
                    self.assertTrue(await lease.await_followers(1, within=PATIENCE))
                    self.assertEqual((member.id, member.leader, member.token, member.failure), ("bob", "ann", 1, None))
                    nodes = (await ann.members("reports")).nodes
                    self.assertEqual([(n.id, n.role) for n in nodes], [("ann", "leader"), ("bob", "worker")])
                    self.assertTrue((await ann.await_acknowledgement("reports", 1, token=1)).acknowledged)
                self.assertEqual([n.id for n in (await ann.members("reports")).nodes], ["ann"])

        within(main())

    def test_observing_many_at_once_and_a_restart(self):
        async def main():
            async with self.client_of("ann") as client:
                async def watch():
                    events = client.observe("reports", after=0)
                    seen = await first(events, 6)
                    await events.aclose()
                    return [(e.revision, e.type) for e in seen]

                watching = [asyncio.create_task(watch()) for _ in range(20)]  # more than a pool of threads has
                for i in range(3):
                    async with client.lead("reports"):
                        pass
                    if i == 1:
                        self.regent.stop(kill=True)
                        self.regent.start()
                want = [(1, "acquired"), (2, "released"), (3, "acquired"), (4, "released"), (5, "acquired"), (6, "released")]
                self.assertEqual(await asyncio.gather(*watching), [want] * 20)

        within(main())

    def test_what_is_left_behind(self):
        async def main():
            async with self.client_of("ann") as ann, self.client_of("bob") as bob:
                async with ann.lead("reports") as lease:
                    await lease.checkpoint.put([1], task="a")
                    self.assertEqual((await ann.checkpoint("reports")).data, [1])
                    self.assertEqual((await lease.journal.append("a"), await lease.journal.append_all([("t", "b"), ("t", "c")])), (1, 3))
                    await lease.journal.snapshot(1, "up to 1")
                    self.assertEqual([(await lease.begin_effect(name)).state for name in ("a", "b")], ["new", "new"])
                    await lease.finish_effect("a", 17)
                    proposed = asyncio.create_task(bob.propose("reports", "p", "scale", wait=30))
                    async with aclosing(lease.asked()) as asked:
                        self.assertEqual((await lease.decide((await anext(asked)).proposal_id, "accepted")).decision, (await proposed).decision)
                    self.assertEqual(len((await ann.proposals("reports")).decided), 1)
                    former = lease
                async with bob.lead("reports", inherit=True) as lease:
                    self.assertEqual(lease.inherited.task, "a")
                    self.assertEqual([e.effect_id for e in lease.in_doubt], ["b"])
                    self.assertEqual([(e.state, e.result) for e in (await bob.effects("reports")).effects], [("inDoubt", None), ("done", 17)])
                    await lease.checkpoint.put_at("gs://b/o")
                    self.assertEqual(await lease.journal.open(), 3)
                    self.assertEqual([i.index async for i in lease.journal.read()], [1, 2, 3])
                    await lease.journal.snapshot_at(3, "gs://b/s")
                    items = bob.follow("reports", member="carl")
                    item, = await first(items, 1)
                    self.assertEqual((type(item), item.index, item.uri), (Snapshot, 3, "gs://b/s"))
                    own = lease.journal.follow(after=3)
                    await lease.journal.append("d")
                    self.assertEqual([i.index for i in await first(items, 1) + await first(own, 1)], [4, 4])
                    with self.assertRaises(LeaseLost):
                        await former.journal.append("late")

        within(main())

    def test_a_promotion_that_is_cancelled_gives_the_lease_back(self):
        self.configure("reports", promotion=True)

        async def main():
            begun = asyncio.Event()

            async def prepare(lease):
                begun.set()
                await asyncio.Event().wait()

            async def lead():
                async with self.client_of("ann") as client, client.lead("reports", on_promotion=prepare):
                    self.fail("it leads")

            leading = asyncio.create_task(lead())
            await begun.wait()
            leading.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await leading

        within(main())
        self.assertEqual(self.client.read("reports", strong=True).state, "vacant")

    def test_delegating_and_leaving(self):
        async def main():
            async with self.client_of("ann") as client:
                async with client.lead("plan", lease="20s") as lease:
                    part = await client.lead(await lease.delegate("part"), via=lease).acquire()
                    with self.assertRaises(InvalidArgument):
                        await lease.request_approval("may I?", new_epoch=True)
                    await lease.step_down("tired", absence="1h")
                with self.assertRaises(Orphaned):
                    part.check()
                self.assertEqual((await client.events("plan"))[-1].reason, "tired")

        within(main())

    def test_a_cancelled_loop_leaves_no_thread_behind(self):
        async def main():
            async with self.client_of("ann") as client:
                self.configure("reports")

                async def watch():
                    async for _ in client.observe("reports"):
                        seen.set()

                async def stay():
                    async with client.join("reports"):
                        await asyncio.Event().wait()

                async def follow():
                    async for _ in client.follow("reports", member="carl"):
                        pass

                seen = asyncio.Event()
                tasks = [asyncio.create_task(run()) for run in (watch, stay, follow)]
                await seen.wait()
                while len((await client.members("reports")).nodes) < 2:
                    pass
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                left = [t for t in threading.enumerate() if t.name in ("regent-client call", "regent-client beside")]
                for thread in left:
                    await asyncio.to_thread(thread.join, PATIENCE / 3)
                self.assertFalse([t for t in left if t.is_alive()])

        within(main())
        self.assertEqual([n.id for n in self.client.members("reports").nodes if n.id == "ann"], [])
