"""Unit tests of agent.py's rule, on a clock of their own."""

import unittest

import agent


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


def reply(**changes):
    return {"election": "reports", "leaderId": "ann", "fencingToken": 7, "expiresInMs": 30000, "renewInMs": 10000, **changes}


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

    def test_ids_are_valid_and_differ(self):
        self.assertRegex(agent.default_candidate(), r"^[A-Za-z0-9._@:-]{1,128}$")
        self.assertNotEqual(agent.default_candidate(), agent.default_candidate())


if __name__ == "__main__":
    unittest.main()
