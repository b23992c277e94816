"""Unit tests of agent.py's rule, on a clock of their own."""

import unittest
from unittest import mock

import agent


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


def reply(**changes):
    return {"election": "reports", "leaderId": "ann", "fencingToken": 7, "expiresInMs": 30000, "renewInMs": 10000, **changes}


class Worth(unittest.TestCase):
    def test_the_checksum_is_that_of_cksum(self):
        for text, crc in (("123456789", 930766865), ("a", 1220704766), ("agent-1", 3074249056), ("", 4294967295)):
            self.assertEqual(agent.cksum_priority(text), crc - 2**31)

    def test_the_load_is_asked_before_each_call(self):
        loads = iter((7, 5))
        ours = agent._Agent("http://127.0.0.1", "reports", "ann", "cksum", ("gpu", "eu", "gpu"), lambda: next(loads))
        self.assertEqual(ours._worth(), {"priority": agent.cksum_priority("ann"), "capabilities": ["eu", "gpu"], "load": 7})
        self.assertEqual(ours._worth()["load"], 5)

    def test_what_is_no_worth_is_refused(self):
        for priority, names in (("high", ()), (1.5, ()), (0, ("a b",)), (0, ("",))):
            with self.subTest((priority, names)), self.assertRaises(agent.Refused):
                agent._Agent("http://127.0.0.1", "reports", "ann", priority, names)

    def test_a_candidate_that_says_nothing_sends_nothing(self):
        self.assertEqual(agent._Agent("http://127.0.0.1", "reports", "ann")._worth(), {})


class Rule(unittest.TestCase):
    def setUp(self):
        self.clock = Clock()
        self.lease = self.granted()

    def granted(self, **changes):
        lease = agent.Lease("reports", "ann", 7, self.clock)
        self.assertTrue(lease.extend(1000.0, reply(**changes)))
        return lease

    def test_the_deadline_is_counted_from_before_the_request_was_sent(self):
        self.clock.now = 1020.0  # the reply took 20 s
        self.assertAlmostEqual(self.granted().remaining(), 30 * 0.999 - 1 - 20)

    def test_what_was_waited_in_line_is_added(self):
        self.clock.now = 1100.0
        self.assertAlmostEqual(self.granted(waitedMs=100000).remaining(), 100 * 0.999 * 0.999 + 30 * 0.999 - 1 - 100)

    def test_the_margin_of_a_short_lease_is_a_tenth(self):
        self.assertAlmostEqual(self.granted(expiresInMs=2000).remaining(), 1.998 * 0.9)

    def test_a_reply_that_took_as_long_as_the_lease_begins_nothing(self):
        self.clock.now = 1029.0
        self.assertFalse(agent.Lease("reports", "ann", 7, self.clock).extend(1000.0, reply()))

    def test_it_is_over_at_the_deadline_whatever_timers_do(self):
        self.clock.now = 1028.9
        self.assertTrue(self.lease.valid())
        self.clock.now = 1028.97
        self.assertFalse(self.lease.valid())
        self.assertEqual(self.lease.remaining(), 0)

    def test_a_renewal_counts_from_when_it_was_sent(self):
        self.clock.now = 1015.0
        self.assertTrue(self.lease.extend(1010.0, reply()))
        self.assertAlmostEqual(self.lease.remaining(), 1010 + 30 * 0.999 - 1 - 1015)

    def test_the_ticket_is_that_of_the_last_reply_and_has_at_most_one_kib(self):
        for ticket, want in (("t1", {"ticket": "t1"}), ("x" * 1024, {"ticket": "x" * 1024}), ("x" * 1025, {}), (7, {}), (None, {})):
            with self.subTest(ticket):
                self.assertTrue(self.lease.extend(1000.0, reply(ticket=ticket)))
                self.assertEqual(self.lease.ticket, want)
        self.assertTrue(self.lease.extend(1000.0, reply(ticket="t2")))
        self.assertTrue(self.lease.extend(1000.0, reply()))
        self.assertEqual(self.lease.ticket, {})

    def test_what_is_not_ours_extends_nothing(self):
        for other in ({"election": "other"}, {"leaderId": "bob"}, {"fencingToken": 8}, {"fencingToken": "7"}, {"expiresInMs": None},
                      {"expiresInMs": "30000"}, {"expiresInMs": 30000.0}, {"expiresInMs": True}, {"expiresInMs": -1}, {"waitedMs": "9"}):  # fmt: skip
            with self.subTest(other):
                before = self.lease.deadline
                self.assertFalse(self.lease.extend(1010.0, reply(**other)))
                self.assertEqual(self.lease.deadline, before)
        for missing in reply():
            short = reply()
            del short[missing]
            self.assertFalse(self.lease.extend(1010.0, short))
        self.assertFalse(self.lease.extend(1010.0, {}))

    def test_a_renewal_that_comes_after_the_deadline_revives_nothing(self):
        self.clock.now = 1029.5
        self.assertFalse(self.lease.extend(1020.0, reply()))
        self.assertFalse(self.lease.valid())

    def test_a_lease_that_is_over_stays_over(self):
        self.lease.end("LEASE_LOST")
        self.assertFalse(self.lease.extend(1000.0, reply()))
        self.assertFalse(self.lease.valid())
        self.assertEqual(self.lease.why, "LEASE_LOST")
        self.clock.now = 2000.0
        self.assertFalse(self.lease.valid())
        self.assertEqual(self.lease.why, "LEASE_LOST")

    def test_a_new_epoch_takes_over_its_token_only_with_a_success_in_time(self):
        self.assertFalse(self.lease.extend(1010.0, reply(fencingToken=8)))
        self.assertFalse(self.lease.extend(1010.0, reply(), 8))
        self.assertEqual(self.lease.token, 7)
        self.assertTrue(self.lease.extend(1010.0, reply(fencingToken=8), 8))
        self.assertEqual(self.lease.token, 8)
        self.clock.now = 1039.5
        self.assertFalse(self.lease.extend(1030.0, reply(fencingToken=9), 9))
        self.assertEqual(self.lease.token, 8)

    def test_only_an_epoch_of_its_own_lease_is_followed(self):
        ann = agent._Agent("http://127.0.0.1:1", "reports", "ann")
        epoch = reply(fencingToken=8, reason="EPOCH", state="held")
        self.assertEqual(ann._epoch(epoch, 7), 8)
        for other in ({"reason": "DEPOSED"}, {"leaderId": "bob"}, {"election": "other"}, {"fencingToken": 7}, {"fencingToken": "8"}, {"state": "vacant"}):  # fmt: skip
            with self.subTest(other):
                self.assertEqual(ann._epoch({**epoch, **other}, 7), 0)

    def test_why_it_is_over_says_why_the_term_ended(self):
        self.assertTrue(self.lease.extend(1000.0, reply(expiresInMs=20000, endsInMs=20000, endsBecause="evicted")))
        self.assertAlmostEqual(self.lease.ends_in(), 20 * 0.999)
        self.assertTrue(self.lease.extend(1000.0, reply(endsInMs=90000, endsBecause="stuck")))
        self.clock.now = 1029.0
        self.assertFalse(self.lease.valid())
        self.assertIn("no renewal", self.lease.why)
        lease = self.lease = agent.Lease("reports", "ann", 7, self.clock)
        self.clock.now = 1000.0
        self.assertTrue(lease.extend(1000.0, reply(endsInMs=30000, endsBecause="evicted")))
        self.clock.now = 1029.0
        self.assertFalse(lease.valid())
        self.assertEqual(lease.why, "its term has ended: evicted")

    def test_reports_are_merged_and_counters_never_fall(self):
        self.lease.report(progress=5, health="ok", dependencies={"bq": "ok", "gcs": "slow"})
        self.lease.report(progress=3, tasks=1, dependencies={"gcs": "ok"})
        want = {"progress": 5, "tasks": 1, "health": "ok", "dependencies": {"bq": "ok", "gcs": "ok"}}
        self.assertEqual(self.lease.next_report(), {"report": want})
        for bad in ({"progress": -1}, {"progress": "6"}, {"progress": True}, {"progres": 6}, {"custom": 1}, {"health": 1}, {"health": "x" * 2048}):
            with self.subTest(bad), self.assertRaises(ValueError):
                self.lease.report(**bad)
        self.assertEqual(self.lease.next_report(), {"report": want})

    def test_a_changed_report_goes_with_every_third_renewal(self):
        sent = []
        for progress in range(9):
            self.lease.report(progress=progress)
            sent.append(self.lease.next_report())
            self.lease.reported(sent[-1])
        self.assertEqual([i for i, report in enumerate(sent) if report], [0, 3, 6])
        for _ in range(9):
            report = self.lease.next_report()
            sent.append(report)
            self.lease.reported(report)
        self.assertEqual(len([r for r in sent[9:] if r]), 1)

    def test_progress_goes_with_the_next_renewal_while_the_term_is_about_to_end_without(self):
        for _ in range(3):
            self.lease.report(progress=self.lease._report.get("progress", 0) + 1)
            self.assertTrue(self.lease.extend(1000.0, reply(endsInMs=25000, endsBecause="stuck")))
            report = self.lease.next_report()
            self.assertTrue(report)
            self.lease.reported(report)

    def test_the_candidate_is_the_host_and_the_same_after_a_restart(self):
        def on(host, **environment):
            with mock.patch.dict(agent.os.environ, environment, clear=True), mock.patch("socket.gethostname", lambda: host), \
                    mock.patch.object(agent, "log", said.append):
                return agent.default_candidate()

        said = []
        self.assertEqual(on("writer-7d4b9"), "writer-7d4b9")
        self.assertEqual(on("a b/ü"), "a-b--")
        self.assertRegex(on("r" * 200), r"^r{111}\.[0-9a-f]{16}$")
        self.assertEqual(on("localhost", CLOUD_RUN_JOB="nightly", CLOUD_RUN_TASK_INDEX="3"), "nightly-3")
        with mock.patch.object(agent, "_instance", lambda: "b0a8c5a3ed4e"):
            self.assertEqual(on("localhost", K_SERVICE="writer"), "writer.b0a8c5a3ed4e")
        self.assertEqual(said, [])
        for host in ("localhost.localdomain", ""):
            self.assertRegex(on(host), r"^[A-Za-z0-9._@:-]{1,128}$")
            self.assertNotEqual(on(host), on(host))
        self.assertRegex(on("localhost", K_SERVICE="writer", GCE_METADATA_HOST="127.0.0.1:1"), r"^writer\.[0-9a-f]{16}$")
        self.assertEqual(len(said), 7)
        self.assertIn("set REGENT_CANDIDATE", said[0])


if __name__ == "__main__":
    unittest.main()
