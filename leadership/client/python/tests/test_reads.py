"""Reading, observing and being a member, at a real server."""

import itertools
from contextlib import closing

from regent_client import InvalidArgument, NotFound, TokenStale
from tests.real import PATIENCE, RealCase, until


class Reads(RealCase):
    def test_who_leads_can_be_read(self):
        with self.assertRaises(NotFound):
            self.client.read("reports", strong=True)
        with self.client.lead("reports", note="the weekly ones", metadata={"at": "host-1"}) as lease:
            now = self.client.read("reports", strong=True)
            self.assertEqual((now.election, now.state, now.leader_id, now.token), ("reports", "held", "ann", lease.token))
            self.assertEqual((now.note, now.metadata, now.serving), ("the weekly ones", {"at": "host-1"}, True))
            self.assertTrue(0 < now.expires_in <= 30)
            self.assertEqual(self.client.check_token("reports", lease.token, use="write").leader_id, "ann")
        self.assertEqual(self.client.read("reports", strong=True).state, "vacant")
        self.assertEqual(self.client.read("reports", known=2).revision, 2)
        with self.assertRaises(TokenStale):
            self.client.check_token("reports", 1)
        self.assertEqual([e.type for e in self.client.events("reports")], ["acquired", "released"])
        self.assertEqual([e.revision for e in self.client.events("reports", after=1)], [2])

    def test_all_elections_are_listed(self):
        names = [f"a.{i:04}" for i in range(3)] + ["b"]
        for name in names:
            self.configure(name)
        self.assertEqual([e.election for e in self.client.list()], names)
        self.assertEqual([e.election for e in self.client.list("a.")], names[:3])

    def test_it_is_explained_why_a_candidate_does_not_lead(self):
        with self.client.lead("reports"):
            self.assertTrue(self.client.explain("reports").leads)
            why = self.new("bob").explain("reports")
            self.assertEqual((why.leads, why.candidate_id, why.reasons[0]["code"], why.reasons[0]["leaderId"]), (False, "bob", "HELD", "ann"))
            self.assertEqual(self.client.explain("reports", "bob").candidate_id, "bob")

    def test_names_that_would_change_the_path_are_refused(self):
        for call in (self.client.read, self.client.members, self.client.explain, self.client.checkpoint, self.client.events, self.client.follow):
            with self.subTest(call), self.assertRaises(InvalidArgument):
                call("../other")
        with self.assertRaises(InvalidArgument):
            self.client.explain("reports", "../bob")


class Observe(RealCase):
    flags = ("--stream-limit", "1s")

    def test_all_of_a_prefix(self):
        for name in ("a.1", "b"):
            self.configure(name)
        with closing(self.client.observe(prefix="a.")) as events:
            first = next(events)
            self.assertEqual((first.election, first.type, first.state.state), ("a.1", "", "vacant"))
            for name in ("b", "a.2", "a.1"):
                with self.client.lead(name):
                    pass
            seen = [(e.election, e.type) for e in itertools.islice(events, 4)]
            self.assertCountEqual(seen, [("a.2", "acquired"), ("a.2", "released"), ("a.1", "acquired"), ("a.1", "released")])

    def test_an_election_and_its_seats(self):
        for name in ("gpu", "gpu.1", "gpu.other"):
            self.configure(name)
        with closing(self.client.observe(of="gpu")) as events:
            self.assertEqual([e.election for e in itertools.islice(events, 2)], ["gpu", "gpu.1"])
            for name in ("gpu.other", "gpu.1"):
                with self.client.lead(name):
                    pass
            self.assertEqual([(e.election, e.type) for e in itertools.islice(events, 2)], [("gpu.1", "acquired"), ("gpu.1", "released")])

    def test_an_election_can_be_observed_before_it_exists(self):
        created = self.beside(lambda: self.configure("later"))
        with closing(self.client.observe("later")) as events:
            self.assertEqual(next(events).revision, 1)
        created()


class Members(RealCase):
    def nodes(self):
        return {node.id: (node.role, node.term) for node in self.client.members("reports").nodes}

    def test_members_follow_the_leader_until_their_blocks_end(self):
        self.configure("reports")
        with self.new("bob").join("reports", note="shard 3", ttl="5m") as bob, self.new("w").join("reports", role="witness", member="wim") as wim:
            self.assertEqual((bob.id, bob.leader, bob.token, bob.failure), ("bob", "", 0, None))
            with self.client.lead("reports") as lease:
                self.assertTrue(lease.await_followers(2, within=PATIENCE))
                self.assertEqual(self.nodes(), {"ann": ("leader", 1), "bob": ("follower", 1), "wim": ("witness", 1)})
                self.assertEqual((bob.leader, bob.token, wim.token), ("ann", 1, 1))
                cluster = self.client.members("reports")
                self.assertEqual((cluster.leader, cluster.term, cluster.status, cluster.cluster_size), ("ann", 1, "healthy", 3))
                self.assertEqual(next(n for n in cluster.nodes if n.id == "bob").note, "shard 3")
                self.assertFalse(lease.await_followers(3, within=0.1))
                self.assertEqual(self.client.await_acknowledgement("reports", 2, token=1).follow, ["bob", "wim"])
        self.assertEqual(self.nodes(), {})

    def test_a_member_says_what_it_follows_by_its_own_account(self):
        self.configure("reports")
        mine = 0
        with self.client.lead("reports") as lease, self.new("bob").join("reports", seen=lambda: mine, ttl="5m"):
            self.assertFalse(lease.await_followers(1, within=0.1))
            mine = lease.token
            self.assertTrue(lease.await_followers(1, within=PATIENCE))

    def test_a_member_joins_again_after_the_server_has_forgotten_it(self):
        self.configure("reports")
        with self.new("bob").join("reports"):
            self.regent.stop(kill=True)
            self.regent.start()
            with self.client.lead("reports") as lease:  # a new token, so it joins at once
                self.assertTrue(lease.await_followers(1, within=PATIENCE))

    def test_an_election_that_does_not_exist_yet_can_be_joined(self):
        with self.new("bob").join("reports") as bob:
            self.assertIsInstance(bob.failure, NotFound)
            with self.client.lead("reports") as lease:
                self.assertTrue(lease.await_followers(1, within=PATIENCE))
            until(lambda: bob.failure is None)  # the server knows of the join before bob hears the answer

    def test_what_is_no_membership_is_refused(self):
        for more in ({"role": "leader"}, {"ttl": "1 hour"}, {"ttl": "1s"}, {"member": "a b"}, {"note": "two\nlines"}):
            with self.subTest(more), self.assertRaises(InvalidArgument), self.client.join("reports", **more):
                pass
