"""Renewing, expiring, and batches, with threads, at a server that fails as the tests say."""

from __future__ import annotations

import contextlib
import gc
import itertools
import threading
import time
import unittest
from typing import Any, Callable
from unittest import mock

from regent_client import Deposed, LeaseExpired, LeaseLost, Orphaned, TermEnded

from . import scripted
from .case import Case
from .scripted import PATIENCE, Clock, Held, changed, lost, refuse


class Renewing(Case):
    def setUp(self) -> None:
        super().setUp()
        self.server.renew = 0.03

    def renewed(self, times: int = 1) -> None:
        before = len(self.server.of("renew"))
        self.until(lambda: len(self.server.of("renew")) >= before + times, "a renewal")

    def test_a_deposed_leader_is_told_so(self) -> None:
        with self.assertRaises(Deposed), self.client.lead("reports") as lease:
            self.server.faults["renew"].append(refuse("LEASE_LOST", reason="DEPOSED"))
            self.assertEqual([n.kind for n in lease.notices()], ["tripped"])

    def test_after_a_failure_another_connection_is_used(self) -> None:
        with self.client.lead("reports"):
            self.renewed(2)
            used = {r.connection for r in self.server.requests}
            self.assertEqual(len(used), 1, "connections are not reused")
            self.server.faults["renew"].append(refuse("STORE_UNAVAILABLE"))
            self.until(lambda: not self.server.faults["renew"], "the fault was met")
            self.renewed()
            self.assertNotIn(self.server.requests[-1].connection, used)

    def test_an_epoch_of_another_leader_is_the_end(self) -> None:
        with self.assertRaises(LeaseLost), self.client.lead("reports") as lease:
            with self.server.changed:
                e = self.server.elections["reports"]
                e.token, e.reason, e.leader = 5, "EPOCH", "bob"
            self.assertTrue(lease.done.wait(PATIENCE))

    def test_a_report_that_is_refused_does_not_end_the_lease(self) -> None:
        def refuses(handler: scripted.Handler, act: Callable[[], Any]) -> None:
            self.server.faults["renew"].append(refuses)
            if "report" in self.server.requests[-1].body:
                refuse("INVALID_ARGUMENT", errors=[{"pointer": "/report", "detail": "no"}])(handler, act)
            else:
                handler.answer(*act())

        self.server.faults["renew"].append(refuses)
        with self.client.lead("reports") as lease:
            lease.report(progress=1)
            self.until(lambda: [r for r in self.server.of("renew") if "report" in r.body], "a report")
            self.renewed(4)
            self.assertTrue(lease.valid())
        self.assertEqual(len([r for r in self.server.of("renew") if "report" in r.body]), 1)

    def test_a_ticket_that_is_refused_is_left_out(self) -> None:
        self.server.faults["renew"].append(refuse("INVALID_ARGUMENT", errors=[{"pointer": "/ticket", "detail": "unknown"}]))
        with self.client.lead("reports"):
            self.renewed(2)
            self.assertNotIn("ticket", self.server.of("renew")[1].body)

    def test_a_leader_that_asks_has_a_statement_of_its_newest_renewal(self) -> None:
        self.server.more["statement"] = "first"
        with self.client.lead("reports", statement=True) as lease, self.client.lead("others", statement=True):
            self.assertEqual(lease.statement, "first")
            self.server.more["statement"] = "second"
            self.until(lambda: lease.statement == "second", "a renewal")
            del self.server.more["statement"]
            self.until(lambda: lease.statement == "", "the server cannot sign")
            self.assertEqual(self.server.of("batchRenew"), [])
            self.assertTrue(all(r.body["statement"] is True for r in self.server.of("renew")))

    def test_the_log_says_once_why_there_is_no_statement(self) -> None:
        self.server.more["statementError"] = "no key"
        with self.assertLogs("regent_client", "WARNING") as logs, self.client.lead("reports", statement=True):
            self.renewed(3)
            self.server.more["statementError"] = "the key is away"
            self.renewed(6)
        parts = [line.split(": ", 1)[1] for line in logs.output]
        self.assertEqual([part.rpartition(": ")[2] for part in parts], ["no key", "the key is away"])

    def test_notices_tell_of_the_end_of_the_term(self) -> None:
        with self.client.lead("reports") as lease:
            self.server.more.update(endsBecause="evicted", endsBy="2027-01-01T00:00:00Z", endsInMs=500_000)
            notices = lease.notices()
            notice = next(notices)
            self.assertEqual(notice.kind, "evicted")
            self.assertAlmostEqual(notice.left, 500, delta=30)
            self.assertEqual(lease.ends_because, "evicted")
            self.assertIsNotNone(lease.ends_in())
            self.server.more.clear()
            self.assertEqual(next(notices).kind, "goesOn")
            self.assertIsNone(lease.ends_in())
        self.assertEqual(list(notices), [])

    def test_the_log_says_when_it_fails_and_when_it_renews_again(self) -> None:
        with self.assertLogs("regent_client", "INFO") as logs, self.client.lead("reports"):
            self.server.faults["renew"].append(refuse("STORE_UNAVAILABLE"))
            self.until(lambda: not self.server.faults["renew"], "the fault was met")
            self.renewed(2)
        text = "\n".join(logs.output)
        for part in ("leading as ann with token 1", "could not be renewed; trying until the deadline", "renewed again", "released"):
            self.assertIn(part, text)


class Starting(Case):
    """Where a thread cannot be started for once."""

    def fails(self, name: str, *which: int) -> contextlib.AbstractContextManager[object]:
        start, count = threading.Thread.start, itertools.count()

        def fail(thread: threading.Thread) -> None:
            if thread.name == name and next(count) in which:
                raise RuntimeError("can't start new thread")
            start(thread)

        return mock.patch.object(threading.Thread, "start", fail)

    def test_the_next_lease_is_renewed(self) -> None:
        self.server.renew = 0.03
        with self.fails("regent-client keeper", 0):
            with self.assertRaises(RuntimeError):
                self.client.lead("reports").acquire()
            with self.client.lead("reports"):
                self.until(lambda: self.server.of("renew"), "a renewal")

    def test_a_candidate_and_a_member_leave_nothing_behind(self) -> None:
        with self.fails("regent-client beside", 0, 2):
            with self.assertRaisesRegex(RuntimeError, "can't start"):
                self.client.lead("reports").acquire()
            member = self.client.join("reports")
            with self.assertRaisesRegex(RuntimeError, "can't start"), member:
                self.fail("it is a member")
        self.assertEqual([thread.is_alive() for thread in member._beside._threads], [False])
        self.assertEqual(len(self.server.of("leave")), 1)


class Staying(Case):
    def test_a_member_goes_on_when_its_function_fails(self) -> None:
        says: list[Any] = [3, OSError("away"), OSError("still away")]

        def seen() -> int:
            said = says.pop(0) if says else 4
            if isinstance(said, OSError):
                raise said
            return said

        self.server.faults["join"].extend([changed(readAt="2027-03-01T12:00:00Z")] * 2)
        with mock.patch("regent_client._members._LOOK", 0.01), self.assertLogs("regent_client") as logs, self.client.join("reports", seen=seen):
            self.until(lambda: len(self.server.of("join")) == 2, "it follows another token")
        self.assertEqual([r.body["seenToken"] for r in self.server.of("join")], [3, 4])
        self.assertEqual(len([line for line in logs.output if "follows token 3 as before" in line]), 2)


class Expiring(Case):
    """With a clock that the test sets; the server does not renew before."""

    def setUp(self) -> None:
        super().setUp()
        self.clock = Clock()
        self.client = self.new("ann", clock=self.clock)

    def pass_(self, seconds: float) -> None:
        self.clock.now += seconds
        self.client._core.keeper.wake()

    def test_the_deadline_decides_and_no_timer(self) -> None:
        with self.assertRaises(LeaseExpired), self.client.lead("reports") as lease:
            self.clock.now += 600 * 0.999 - 1 - 0.001
            self.assertTrue(lease.valid())
            self.clock.now += 0.002
            self.assertFalse(lease.valid())
            self.assertTrue(lease.done.is_set())
            self.assertEqual(lease.remaining(), 0)
        self.assertEqual(self.server.of("release"), [], "a lease whose deadline has passed was released")

    def test_done_is_set_and_logged_at_the_deadline_without_a_question(self) -> None:
        with self.assertLogs("regent_client") as logs, contextlib.suppress(LeaseExpired), self.client.lead("reports") as lease:
            self.pass_(600)
            self.assertTrue(threading.Event.wait(lease.done, PATIENCE))
        self.assertEqual(len([line for line in logs.output if "no longer leader" in line]), 1)

    def test_what_is_over_never_revives(self) -> None:
        held = Held()
        self.server.faults["renew"].append(held)
        with self.assertRaises(LeaseExpired), self.client.lead("reports") as lease:
            self.pass_(201)
            self.assertTrue(held.begun.wait(PATIENCE), "no renewal")
            self.clock.now += 400
            self.assertFalse(lease.valid())
            held.go.set()  # the renewal has succeeded, and is late
            self.clock.now -= 500  # and the clock goes back
            for _ in range(10):
                self.assertFalse(lease.valid())
                time.sleep(0.01)
        self.assertEqual(self.server.of("release"), [])

    def test_a_renewal_counts_from_before_it_was_sent(self) -> None:
        held = Held()
        self.server.faults["renew"].append(held)
        with self.client.lead("reports") as lease:
            self.pass_(210)
            self.assertTrue(held.begun.wait(PATIENCE))
            self.clock.now += 50
            held.go.set()
            self.until(lambda: lease.remaining() > 390, "the renewal is taken")
            self.assertAlmostEqual(lease.remaining(), 600 * 0.999 - 1 - 50)

    def test_the_end_of_the_term_is_told(self) -> None:
        self.server.more.update(endsBecause="maxTerm", endsBy="2027-01-01T00:00:00Z", endsInMs=600_000)
        with self.assertRaises(TermEnded) as caught, self.client.lead("reports"):
            self.clock.now += 600
        self.assertEqual(caught.exception.because, "maxTerm")
        self.assertIn("as long as the election's policy allows", str(caught.exception))

    def test_an_exception_of_the_block_wins_over_the_end_of_the_lease(self) -> None:
        with self.assertRaisesRegex(ValueError, "ours"), self.client.lead("reports"):
            self.clock.now += 600
            raise ValueError("ours")

    def test_a_lease_that_no_caller_holds_is_not_renewed(self) -> None:
        lease = self.client.lead("reports").acquire()
        keeper = self.client._core.keeper
        done = lease.done
        self.assertFalse(done.is_set())
        gc.disable()
        self.addCleanup(gc.enable)
        del lease  # without a cycle it is gone at once
        self.assertTrue(done.is_set())
        self.assertTrue(done.wait(PATIENCE))
        self.until(lambda: not keeper._running, "the keeper ends")
        self.assertEqual(self.server.of("renew"), [])

    def test_a_lease_that_stands_on_another_ends_with_it(self) -> None:
        parent = self.client.lead("world").acquire()
        with self.assertRaises(Orphaned), self.client.lead("region", via=parent) as lease:
            self.assertTrue(lease.valid())
            parent.release()
            self.assertFalse(lease.valid())
            self.assertTrue(lease.done.wait(PATIENCE))
            self.assertEqual(self.server.elections["region"].leader, "ann")
        self.assertEqual(self.server.elections["region"].leader, "", "the server has it until it expires")
        self.assertEqual(self.server.of("acquire")[1].body["via"], {"election": "world", "fencingToken": 1})
        with self.assertRaises(Orphaned), self.client.lead("region", via=parent):
            pass

    def test_a_leader_whose_lease_is_over_is_told_that_it_has_not_stepped_down(self) -> None:
        with contextlib.suppress(LeaseExpired), self.client.lead("reports") as lease:
            self.clock.now += 600
            with self.assertRaises(LeaseExpired):
                lease.step_down("tired", absence=60)
        self.server.faults["stepDown"].append(refuse("LEASE_LOST"))
        with self.client.lead("others") as lease, self.assertRaises(LeaseLost):
            lease.step_down("tired", absence=60)

    def test_a_campaign_ends_with_the_lease_to_stand_on(self) -> None:
        parent = self.client.lead("world").acquire()
        with self.new("bob").lead("region"):
            thread, result = self.beside(self.client.lead("region", via=parent).acquire)
            self.until(lambda: len(self.server.of("acquire")) == 3, "it waits")
            parent.release()
            thread.join(PATIENCE)
        self.assertIsInstance(result[0], Orphaned)


class Batches(Case):
    """Several leases of one client, on a clock that the test sets."""

    def setUp(self) -> None:
        super().setUp()
        self.clock = Clock()
        self.client = self.new("ann", clock=self.clock)
        self.leases = [self.client.lead(f"e{i}").acquire() for i in range(5)]

    def renew(self) -> None:
        self.clock.now += 200
        self.client._core.keeper.wake()

    def renewed(self) -> None:
        self.until(lambda: all(lease.remaining() > 590 for lease in self.leases), "all are renewed")

    def test_a_renewal_that_cannot_be_begun_is_tried_again_and_hinders_no_other(self) -> None:
        with self.assertLogs("regent_client", "ERROR"), mock.patch.object(self.leases[2], "_renewal", side_effect=ValueError("no")):
            self.renew()
            self.until(lambda: all(lease.remaining() > 590 for lease in self.leases if lease is not self.leases[2]), "the others are renewed")
        self.client._core.keeper.wake()
        self.renewed()

    def test_leases_that_fall_due_together_go_in_one_call(self) -> None:
        self.renew()
        self.renewed()
        self.assertEqual(len(self.server.of("batchRenew")), 1)
        self.assertEqual(self.server.of("renew"), [])
        self.assertEqual({r["election"] for r in self.server.of("batchRenew")[0].body["renewals"]}, {lease.election for lease in self.leases})

    def test_each_has_its_own_answer(self) -> None:
        self.server.vacate("e3")
        self.renew()
        self.until(lambda: not self.leases[3].valid(), "one is lost")
        self.leases.pop(3)
        self.renewed()

    def test_a_server_without_batches_renews_each_by_itself(self) -> None:
        self.server.faults["batchRenew"].append(refuse("NOT_FOUND"))
        self.renew()
        self.renewed()
        self.assertEqual(len(self.server.of("renew")), 5)
        self.renew()
        self.renewed()
        self.assertEqual(len(self.server.of("batchRenew")), 1)

    def test_a_batch_that_fails_is_followed_by_single_renewals(self) -> None:
        self.server.faults["batchRenew"].append(lost)
        self.renew()
        self.until(lambda: len(self.server.of("batchRenew")) == 1, "a batch")
        while not all(lease.remaining() > 590 for lease in self.leases) and self.clock.now < 1300:
            self.clock.now += 0.01  # retries are planned on the clock
            self.client._core.keeper.wake()
            time.sleep(0.001)
        self.assertLess(self.clock.now, 1300)
        self.assertEqual(len(self.server.of("renew")), 5)

    def test_results_that_do_not_answer_extend_nothing(self) -> None:
        def swapped(handler: scripted.Handler, act: Callable[[], Any]) -> None:
            status, document = act()
            handler.answer(status, {"results": document["results"][::-1]})

        before = [lease.remaining() for lease in self.leases]
        self.server.faults["batchRenew"].append(swapped)
        self.server.faults["renew"].extend([refuse("STORE_UNAVAILABLE")] * 1000)
        self.renew()
        self.until(lambda: all(lease._term.failure for lease in self.leases), "the answer was heard")
        for lease, left in zip(self.leases, before):
            self.assertAlmostEqual(lease.remaining(), left - 200)


if __name__ == "__main__":
    unittest.main()
