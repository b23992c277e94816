"""The protocol, on a clock of its own: no server, no threads."""

from __future__ import annotations

import re
import unittest
from pathlib import Path
from typing import Any

from regent_client import (
    CODES, Deposed, ElectionDeleted, InvalidArgument, LeaseExpired, LeaseLost, OutcomeUnknown, RegentError, StoreUnavailable, TermEnded,
    cksum_priority,
)
from regent_client import _report, _wire
from regent_client._gather import MAX_GROUP, Groups, Member
from regent_client._term import Next, Term, mismatch

KEY = _wire.Key()


def answer(**members: Any) -> dict[str, Any]:
    return {"election": "reports", "state": "held", "leaderId": "ann", "fencingToken": 7, "leaseDuration": "30s", "expiresInMs": 30000,
            "renewInMs": 10000, **members}


def granted(sent: float = 1000.0, now: float | None = None, wait: float = 60.0, margin: float = 1.0, **members: Any) -> Term:
    return Term(sent, sent if now is None else now, wait, KEY, answer(**members), margin)


class Deadlines(unittest.TestCase):
    def test_the_deadline_is_counted_from_before_the_request_was_sent(self) -> None:
        self.assertAlmostEqual(granted(1000, 1020).left(1020), 30 * 0.999 - 1 - 20)

    def test_what_was_waited_in_line_is_added_less_what_two_clocks_may_differ(self) -> None:
        self.assertAlmostEqual(granted(1000, 1060, waitedMs=50000).left(1060), 50 * 0.999**2 + 30 * 0.999 - 1 - 60)

    def test_no_more_waiting_is_believed_than_was_asked_for_or_has_passed(self) -> None:
        self.assertAlmostEqual(granted(1000, 1060, wait=10, waitedMs=50000).left(1060), max(10 * 0.999**2 + 30 * 0.999 - 1 - 60, 0))
        self.assertAlmostEqual(granted(1000, 1005, waitedMs=50000).left(1005), 5 * 0.999**2 + 30 * 0.999 - 1 - 5)

    def test_an_answer_that_claims_more_than_a_lease_has_is_cut(self) -> None:
        self.assertAlmostEqual(granted(expiresInMs=10**9).left(1000), 30 * 0.999 - 1)

    def test_at_the_deadline_it_is_over_for_good(self) -> None:
        term = granted()
        self.assertGreater(term.left(1028.96), 0)
        self.assertEqual(term.left(1028.97), 0)
        self.assertEqual(term.left(1000), 0, "the clock has gone back")
        self.assertIsInstance(term.over, LeaseExpired)
        self.assertIsNone(term.heard(1028, 1028, answer()))
        self.assertEqual(term.left(1028), 0)

    def test_a_renewal_that_is_late_revives_nothing(self) -> None:
        term = granted()
        self.assertIsNone(term.heard(1010, 1029, answer()))
        self.assertEqual(term.left(1011), 0)

    def test_a_renewal_counts_from_when_it_was_sent(self) -> None:
        term = granted()
        self.assertIsNotNone(term.heard(1010, 1015, answer()))
        self.assertAlmostEqual(term.left(1015), 10 + 30 * 0.999 - 1 - 15)

    def test_an_answer_never_moves_the_deadline_back(self) -> None:
        term = granted()
        before = term.deadline
        term.heard(1010, 1011, answer(expiresInMs=5000))
        self.assertEqual(term.deadline, before)


class Answers(unittest.TestCase):
    def test_only_a_success_of_this_very_lease_extends(self) -> None:
        for wrong in ({"election": "other"}, {"leaderId": "bob"}, {"fencingToken": 8}, {"state": "vacant"}, {"state": 1}, {"expiresInMs": None}, {"expiresInMs": True}):
            with self.subTest(wrong):
                term = granted()
                before = term.deadline
                next = term.heard(1010, 1010, answer(**wrong))
                self.assertEqual((term.deadline, next and next.solo), (before, True))
                self.assertIsInstance(term.failure, OutcomeUnknown)

    def test_what_does_not_say_who_leads_is_retried_before_the_deadline(self) -> None:
        for error in (StoreUnavailable(), OutcomeUnknown(), InvalidArgument("x"), RegentError("?"), *(CODES[c]() for c in ("DRAINING", "RATE_LIMITED", "NOT_FOUND"))):
            with self.subTest(repr(error)):
                term = granted()
                before, next = term.deadline, term.heard(1010, 1010, error)
                assert next
                self.assertEqual(term.deadline, before)
                self.assertTrue(next.solo)
                self.assertLess(next.since + next.pause, before)
                self.assertIs(term.failure, error)

    def test_a_retry_is_never_later_than_a_quarter_of_what_is_left(self) -> None:
        term = granted()
        next = term.heard(1010, 1024.97, StoreUnavailable(retry_after=60))
        assert next
        self.assertAlmostEqual(next.pause, 1)

    def test_lease_lost_ends_it_at_once(self) -> None:
        for error, kind in ((LeaseLost("x"), LeaseLost), (ElectionDeleted("x"), LeaseLost), (LeaseLost("x", {"reason": "DEPOSED"}), Deposed)):
            term = granted()
            self.assertIsNone(term.heard(1001, 1001, error))
            self.assertIs(type(term.over), kind)
            self.assertEqual(term.left(1001), 0)

    def test_a_new_epoch_counts_only_once_a_renewal_with_its_token_succeeds(self) -> None:
        term = granted(ticket="t1")
        epoch = LeaseLost("x", answer(fencingToken=9, reason="EPOCH"))
        next = term.heard(1010, 1010, epoch)
        self.assertEqual(next, Next(1010, 0, True))
        self.assertEqual((term.token, term.renewal(1010)["fencingToken"], "ticket" in term.renewal(1010)), (7, 9, False))
        before = term.deadline
        term.heard(1011, 1011, answer(fencingToken=7))
        self.assertEqual(term.deadline, before, "an answer with the old token")
        term.heard(1012, 1012, answer(fencingToken=9))
        self.assertEqual(term.token, 9)
        self.assertGreater(term.deadline, before)
        self.assertEqual([n.kind for n in term.notices], ["newEpoch"])

    def test_an_epoch_that_is_not_ones_own_or_not_later_is_a_loss(self) -> None:
        for wrong in ({"leaderId": "bob"}, {"fencingToken": 7}, {"fencingToken": 6}, {"state": "vacant"}, {"election": "x"}):
            term = granted()
            self.assertIsNone(term.heard(1010, 1010, LeaseLost("x", answer(**{"fencingToken": 9, "reason": "EPOCH", **wrong}))))
            self.assertIsNotNone(term.over)

    def test_the_ticket_is_that_of_the_newest_answer_and_has_at_most_one_kib(self) -> None:
        for ticket, want in (("t1", "t1"), ("x" * 1024, "x" * 1024), ("x" * 1025, None), (7, None), (None, None)):
            term = granted(ticket="old")
            term.heard(1001, 1001, answer(ticket=ticket))
            self.assertEqual(term.renewal(1001).get("ticket"), want)

    def test_a_renewal_is_due_as_the_server_says_but_early_enough_for_a_retry(self) -> None:
        for said, want in ((10000, 10.0), (29000, 28.97 / 2), (0, 0.05)):
            next = granted().heard(1000, 1000, answer(renewInMs=said))
            assert next
            self.assertAlmostEqual(next.pause, want)

    def test_patience_leaves_time_for_other_tries(self) -> None:
        term = granted()
        self.assertAlmostEqual(term.patience(1000), 28.97 / 3)
        self.assertAlmostEqual(term.patience(1028.5), 0.25)
        self.assertAlmostEqual(term.patience(1028.87), 0.1)

    def test_mismatch_says_why(self) -> None:
        self.assertEqual(mismatch(answer(), "reports", "ann", 7), "")
        self.assertIn("'x", mismatch(answer(election="x" * 10**6), "reports"))
        self.assertLess(len(mismatch(answer(election="x" * 10**6), "reports")), 300)


class Ends(unittest.TestCase):
    AT = "2027-01-01T00:00:00Z"

    def test_a_term_that_has_ended_is_said_so(self) -> None:
        term = granted(endsBecause="evicted", endsBy=self.AT, endsInMs=30000)
        self.assertEqual(term.left(1029), 0)
        assert isinstance(term.over, TermEnded)
        self.assertEqual(term.over.because, "evicted")

    def test_each_change_of_the_end_is_one_notice(self) -> None:
        term = granted()
        for members in ({"endsBecause": "approval", "endsBy": self.AT, "endsInMs": 50000},) * 2 + ({},) * 2:
            term.heard(1001, 1001, answer(**members))
        self.assertEqual([n.kind for n in term.notices], ["approvalDue", "goesOn"])

    def test_a_quorum_is_heard_of_only_where_it_is_asked_for(self) -> None:
        term = granted(configuration={"policy": {"quorum": {"electorate": ["ann", "bob"]}}})
        for read_only in (False, True, True, False, True):
            term.hear_read_only(read_only)
        self.assertEqual([n.kind for n in term.notices], ["readOnly", "writable", "readOnly"])
        for policy in ({"policy": {"maxTerm": "8h"}}, {"policy": None}, "nonsense"):
            term.heard(1001, 1001, answer(configuration=policy))
            term.hear_read_only(True)
            self.assertFalse(term.quorum or term.read_only)
        self.assertEqual([n.kind for n in term.notices][3:], ["writable"])

    def test_stuck_is_news_only_when_it_is_near_and_a_parent_never(self) -> None:
        term = granted(endsBecause="stuck", endsBy=self.AT, endsInMs=90000)
        term.heard(1001, 1001, answer(endsBecause="parent", endsBy=self.AT, endsInMs=30000))
        self.assertEqual(term.notices, [])
        term.heard(1002, 1002, answer(endsBecause="stuck", endsBy=self.AT, endsInMs=30000))
        self.assertEqual([n.kind for n in term.notices], ["stuck"])


class Reports(unittest.TestCase):
    def test_counters_never_fall_and_maps_are_merged(self) -> None:
        one = _report.merge({}, {"progress": 5, "custom": {"a": 1, "b": 2}, "health": "ok", "eta": "20m"})
        two = _report.merge(one, {"progress": 3, "custom": {"b": None, "c": 3}})
        self.assertEqual(two, {"progress": 5, "custom": {"a": 1, "c": 3}, "health": "ok", "eta": "1200s"})

    def test_what_the_program_does_later_with_a_value_is_no_part_of_the_report(self) -> None:
        reports, jobs = _report.Reporting(), dict[str, object]()
        reports.add({"custom": {"jobs": jobs}})
        jobs["since"] = object()
        reports.add({"custom": {1: 2}})
        reports.add({"custom": {1: None}})
        self.assertEqual(reports.next(0, False), {"custom": {"jobs": {}}})

    def test_what_no_server_would_take_is_refused_and_changes_nothing(self) -> None:
        for bad in ({"progress": -1}, {"progress": 1.5}, {"progress": True}, {"x": 1}, {"health": 7}, {"custom": []}, {"custom": {"a": object()}},
                    {"custom": {"a": "x" * 2048}}, {"custom": {"a": float("nan")}}):
            with self.subTest(bad):
                reports = _report.Reporting()
                with self.assertRaises(InvalidArgument):
                    reports.add(bad)
                self.assertIsNone(reports.next(0, False))

    def test_at_most_every_third_renewal_has_one(self) -> None:
        reports, sent = _report.Reporting(), []
        for i in range(9):
            reports.add({"progress": i + 1})
            sent.append(reports.next(i, False) is not None)
            reports.answered()
        self.assertEqual(sent, [True, False, False] * 3)

    def test_it_goes_at_once_while_the_term_ends_for_want_of_progress(self) -> None:
        term = granted()
        for progress in (1, 2, 3):
            term.reports.add({"progress": progress})
            self.assertEqual(term.renewal(1000)["report"], {"progress": progress})
            term.heard(1000, 1000, answer(endsBecause="stuck", endsBy=Ends.AT, endsInMs=20000))

    def test_after_a_failure_the_lease_comes_first(self) -> None:
        reports = _report.Reporting()
        reports.add({"progress": 1})
        self.assertIsNotNone(reports.next(0, False))
        self.assertTrue(reports.unanswered())
        self.assertIsNone(reports.next(0, True))
        reports.answered()
        self.assertIsNotNone(reports.next(0, False))

    def test_a_report_that_was_refused_is_not_sent_again_for_ten_minutes(self) -> None:
        term = granted()
        term.reports.add({"progress": 1})
        self.assertIn("report", term.renewal(1000))
        self.assertEqual(term.heard(1000, 1000, InvalidArgument("no")), Next(1000, 0, True))
        term.reports.add({"progress": 2})
        self.assertNotIn("report", term.renewal(1001))
        term.heard(1001, 1001, answer())
        self.assertIsNone(term.reports.next(1599, False))
        self.assertIsNotNone(term.reports.next(1601, False))


class Gathering(unittest.TestCase):
    def members(self, groups: Groups, n: int, since: float = 0.0) -> list[Member]:
        members = [Member(f"e{i}", 30.0) for i in range(n)]
        for member in members:
            groups.sleep(member, Next(since, 10, False))
        return members

    def test_a_lone_lease_goes_by_itself_up_to_a_tenth_early(self) -> None:
        groups = Groups()
        member, = self.members(groups, 1)
        self.assertTrue(9 <= member.due <= 10)
        self.assertEqual(groups.due(member.due - 0.01), [])
        self.assertEqual(groups.due(member.due), [[member]])
        self.assertEqual(groups.due(20), [], "it is under way")

    def test_leases_come_to_go_together_and_none_later_than_its_time(self) -> None:
        groups = Groups()
        latest = {m: i * 0.7 + 10 for i, m in enumerate(self.members(groups, 12))}
        for i, member in enumerate(latest):
            groups.sleep(member, Next(i * 0.7, 10, False))
        calls = []
        while len(calls) < 200:
            now = groups.next_due()
            assert now is not None
            for call in groups.due(now):
                calls.append(len(call))
                for member in call:
                    self.assertLessEqual(now, latest[member] + 1e-6)
                    latest[member] = now + 10
                    groups.sleep(member, Next(now, 10, False))
        self.assertEqual(set(calls[-20:]), {12})

    def test_a_lease_that_failed_goes_by_itself(self) -> None:
        groups = Groups()
        members = self.members(groups, 3)
        groups.sleep(members[2], Next(9.9, 0.1, True))
        self.assertEqual(sorted(map(len, groups.due(10))), [1, 2])

    def test_no_group_has_more_than_a_call_takes_nor_an_election_twice(self) -> None:
        groups = Groups()
        self.members(groups, MAX_GROUP + 1)
        self.members(groups, 1)
        calls = groups.due(10)
        self.assertEqual(sum(map(len, calls)), MAX_GROUP + 2)
        for call in calls:
            self.assertEqual(len({m.election for m in call}), len(call))
        self.assertLessEqual(max(map(len, calls)), MAX_GROUP)

    def test_after_a_refused_batch_each_goes_by_itself_for_ten_minutes(self) -> None:
        groups = Groups()
        members = self.members(groups, 3)
        group = members[0].group
        assert group
        groups.due(10)
        groups.heed(group, 10, failed=True, refused=True)
        for now, want in ((20, [1, 1, 1]), (700, [3])):
            for member in members:
                groups.sleep(member, Next(now - 10, 10, False))
            self.assertEqual([len(c) for c in groups.due(now)], want)

    def test_one_failed_batch_changes_nothing_and_two_do(self) -> None:
        groups = Groups()
        group = self.members(groups, 2)[0].group
        assert group
        groups.heed(group, 10, failed=True, refused=False)
        self.assertLess(group.alone, 10)
        groups.heed(group, 20, failed=True, refused=False)
        self.assertGreater(group.alone, 600)


class Forms(unittest.TestCase):
    def test_durations(self) -> None:
        for given, want in (("30s", 30), ("1m30s", 90), ("1500ms", 1.5), ("1h", 3600), (2, 2), (0.5, 0.5), ("1.5s", 1.5)):
            self.assertAlmostEqual(_wire.seconds(given, "x"), want)
        for bad in ("", "30", "s", "-1s", -1, True, None, [], float("nan"), "1s 2s"):
            with self.subTest(bad), self.assertRaises(InvalidArgument):
                _wire.seconds(bad, "x")  # type: ignore[arg-type]

    def test_the_checksum_is_that_of_cksum(self) -> None:
        for text, crc in (("123456789", 930766865), ("a", 1220704766), ("agent-1", 3074249056), ("", 4294967295)):
            self.assertEqual(cksum_priority(text), crc - 2**31)

    def test_there_is_one_class_for_each_code_of_the_specification(self) -> None:
        spec = Path(__file__).parent / "../../../../httpapi/openapi.yaml"
        if not spec.exists():
            self.skipTest("the specification is not here")
        table = spec.read_text().partition("      x-status:\n")[2]
        status = {code: int(number) for code, number in re.findall(r"^ {8}([A-Z_]+): (\d{3})$", table, re.M)}
        self.assertGreater(len(status), 20)
        self.assertEqual(set(CODES), set(status))
        for code, kind in CODES.items():
            self.assertEqual(kind.transient, status[code] >= 500 or status[code] in (408, 429), code)
            self.assertTrue(kind.__doc__)


if __name__ == "__main__":
    unittest.main()
