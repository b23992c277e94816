"""What a leader may do beside leading, at a real server."""

import itertools
import threading
from contextlib import closing

from regent_client import (
    Entry, IndexMismatch, InvalidArgument, LeaseLost, NotEligible, NotFound, NotReady, Orphaned, PayloadTooLarge, Reading, Snapshot, TokenStale,
)
from regent_client._leads import ask
from tests.real import PATIENCE, RealCase, until


class HandOver(RealCase):
    def types(self):
        return [(e.type, e.leader_id) for e in self.client.events("reports")]

    def test_the_successor_loads_and_then_leads_without_a_vacancy(self):
        loaded, named = threading.Event(), []

        def load(succession):
            named.append(succession)
            loaded.set()

        def succeed():
            with self.new("bob").lead("reports", on_succession=load) as lease:
                self.assertEqual(lease.token, 2)

        with self.client.lead("reports") as lease:
            done = self.beside(succeed)
            until(lambda: self.client.explain("reports", "bob").reasons and "bob" in [n.id for n in self.client.members("reports").nodes])
            lease.hand_over(within=PATIENCE)
            self.assertTrue(loaded.is_set() and lease.valid())
        done()
        self.assertEqual((len(named), named[0].to, named[0].ready), (1, "bob", False))
        self.assertEqual(self.types(), [
            ("acquired", "ann"), ("handingOver", "ann"), ("ready", "ann"), ("yielded", "ann"), ("released", ""), ("acquired", "bob"), ("released", ""),
        ])

    def test_with_nobody_in_line_the_term_goes_on(self):
        with self.client.lead("reports") as lease:
            with self.assertRaises(NotEligible):
                lease.hand_over()
            lease.check()
        self.assertEqual(self.types(), [("acquired", "ann"), ("released", "")])

    def test_a_successor_that_is_not_ready_in_time_is_told_of_and_the_line_goes_on(self):
        stop, asked = threading.Event(), threading.Event()
        self.addCleanup(stop.set)

        def load(_):
            asked.set()
            stop.wait()
            raise RuntimeError("its disk is full")

        def wait_in_line():
            with self.new("bob").lead("reports", on_succession=load):
                pass

        with self.client.lead("reports", lease="2s") as lease:
            done = self.beside(wait_in_line)
            until(lambda: "bob" in [n.id for n in self.client.members("reports").nodes])
            with self.assertRaises(NotReady):
                lease.hand_over("bob", within="3s")
        done()  # the lease ends what is loaded for nothing
        stop.set()
        self.assertEqual([t for t, _ in self.types() if t in ("ready", "yielded")], [])

    def test_a_successor_that_another_has_replaced_says_nothing_and_loads_again_when_it_is_named_again(self):
        may, loads = threading.Event(), []
        self.addCleanup(may.set)

        def load_of(candidate):
            def load(_):
                loads.append(candidate)
                may.wait(PATIENCE)

            return load

        def wait_in_line(candidate):
            with self.new(candidate).lead("reports", on_succession=load_of(candidate)):
                pass

        with self.client.lead("reports") as lease:
            done = [self.beside(lambda: wait_in_line("bob")), self.beside(lambda: wait_in_line("eve"))]
            until(lambda: len(self.client.members("reports").nodes) == 3)
            for named in ("bob", "eve"):
                ask(lease, Reading, "hand over", ":handOver", {"to": named})  # as hand_over does, which then waits
                until(lambda: named in loads)
            again = self.beside(lambda: lease.hand_over("bob", within="5m"))
            until(lambda: loads == ["bob", "eve", "bob"])
            may.set()
            again()
        for end in done:
            end()
        self.assertEqual([e.detail["candidateId"] for e in self.client.events("reports") if e.type == "ready"], ["bob"])

    def test_what_no_server_would_take_is_refused(self):
        with self.client.lead("reports") as lease:
            for more in ({"to": "a b"}, {"to": "ann"}, {"within": "soon"}, {"within": "1h"}):
                with self.subTest(more), self.assertRaises(InvalidArgument):
                    lease.hand_over(**more)
            lease.check()

    def test_a_new_leader_prepares_where_the_policy_asks_for_it(self):
        self.configure("reports", promotion=True)
        prepared = []

        def prepare(lease):
            with self.assertRaises(NotReady):
                self.client.check_token("reports", lease.token, use="write")
            prepared.append(lease.token)

        with self.client.lead("reports", on_promotion=prepare) as lease:
            self.client.check_token("reports", lease.token, use="write")
        self.assertEqual(prepared, [1])

    def test_a_leader_that_cannot_prepare_gives_the_lease_back(self):
        self.configure("reports", promotion=True)
        broken = RuntimeError("no disk")

        def prepare(_):
            raise broken

        with self.assertRaises(RuntimeError) as caught, self.client.lead("reports", on_promotion=prepare):
            self.fail("it leads")
        self.assertIs(caught.exception, broken)
        self.assertEqual(self.client.read("reports", strong=True).state, "vacant")


class LeftBehind(RealCase):
    def test_a_checkpoint_is_inherited_and_the_former_leader_cannot_put_another(self):
        with self.assertRaises(NotFound):
            self.client.checkpoint("reports")
        with self.client.lead("reports") as former:
            former.checkpoint.put({"done": [1, 2], "of": "ö"}, task="page 2")
            self.assertEqual(self.client.checkpoint("reports").data, {"done": [1, 2], "of": "ö"})
        with self.new("bob").lead("reports", inherit=True) as lease:
            left = lease.inherited
            self.assertEqual((left.leader_id, left.token, left.task, left.data, left.ended_because), ("ann", 1, "page 2", {"done": [1, 2], "of": "ö"}, "released"))
            lease.checkpoint.put_at("gs://bucket/object#17", sha256="9f" * 32)
            there = self.client.checkpoint("reports")
            self.assertEqual((there.leader_id, there.token, there.uri, there.sha256, there.data), ("bob", 2, "gs://bucket/object#17", "9f" * 32, None))
            with self.assertRaises(LeaseLost):
                former.checkpoint.put(1)
            for data in (None, {1, 2}, float("nan"), "\ud800"):
                with self.subTest(data), self.assertRaises(InvalidArgument):
                    lease.checkpoint.put(data)
            lease.check()
        with self.client.lead("reports") as lease:
            self.assertIsNone(lease.inherited)

    def test_an_effect_is_done_once_and_one_that_is_not_finished_is_in_doubt(self):
        with self.client.lead("reports", inherit=True) as former:
            self.assertEqual((former.in_doubt, self.client.effects("reports").effects), ([], []))
            with self.assertRaises(NotFound):
                former.finish_effect("mail-1")
            self.assertEqual([former.begin_effect("mail-1").state for _ in range(2)], ["new", "inDoubt"])
            for _ in range(2):
                former.finish_effect("mail-1", {"id": "ö"})
            with self.assertRaises(InvalidArgument):
                former.finish_effect("mail-1", {"id": 2})
            former.begin_effect("mail-2")
            holder = former._term.holder()
        with self.new("bob").lead("reports", inherit=True) as lease:
            self.assertEqual([(e.effect_id, e.state, e.token, e.leader_id) for e in lease.in_doubt], [("mail-2", "inDoubt", 1, "ann")])
            for suffix in (":begin", ":finish"):
                with self.subTest(suffix), self.assertRaises(TokenStale):
                    self.client._core.calls.call("late", "POST", "/v1/elections/reports" + suffix, {**holder, "effectId": "mail-2"}, changes=True)
            with self.assertRaises(LeaseLost):
                former.begin_effect("mail-3")
            done = lease.begin_effect("mail-1")
            self.assertEqual((done.state, done.token, done.leader_id, done.result, done.election), ("done", 1, "ann", {"id": "ö"}, "reports"))
            self.assertEqual(lease.begin_effect("mail-2").state, "inDoubt")
            lease.finish_effect("mail-2")
            lease.begin_effect("mail-3")
            found = self.client.effects("reports")
            self.assertEqual((found.token, [(e.effect_id, e.state, e.token, e.result) for e in found.effects]), (
                2, [("mail-1", "done", 1, {"id": "ö"}), ("mail-2", "done", 2, None), ("mail-3", "begun", 2, None)]))
            for effect in ("", "a b", "x" * 129, None, 1):
                with self.subTest(effect), self.assertRaises(InvalidArgument):
                    lease.begin_effect(effect)
            for result, error in (({1, 2}, InvalidArgument), ("x" * (1 << 10), PayloadTooLarge)):
                with self.subTest(error), self.assertRaises(error):
                    lease.finish_effect("mail-3", result)
            lease.check()

    def test_a_proposal_is_made_heard_of_and_decided_once(self):
        dora = self.new("dora")
        with self.assertRaises(NotFound):
            dora.propose("reports", "p", "scale")
        with self.client.lead("reports", inherit=True) as former:
            self.assertEqual(former.open_proposals, [])
            made = dora.propose("reports", "p", "scale", {"to": 3})
            self.assertEqual((made.candidate_id, made.data, made.decision, made.election), ("dora", {"to": 3}, None, "reports"))
            asked, answers = former.asked(), []
            self.assertEqual(next(asked), made)
            done = self.beside(lambda: answers.append(dora.propose("reports", "q", "stop", ttl="1m", wait="30s")))
            self.assertEqual(next(asked).proposal_id, "q")
            for _ in range(2):
                decided = former.decide("q", "rejected", "not now").decision
                self.assertEqual((decided.verdict, decided.note, decided.token, decided.leader_id), ("rejected", "not now", 1, "ann"))
            done()
            self.assertEqual([p.decision for p in answers], [decided])
            with self.assertRaises(InvalidArgument):
                former.decide("q", "accepted")
            with self.assertRaises(NotFound):
                former.decide("r", "accepted")
            holder = former._term.holder()
        self.assertEqual(list(asked), [])
        with self.new("bob").lead("reports", inherit=True) as lease:
            self.assertEqual(lease.open_proposals, [made])
            with self.assertRaises(LeaseLost):
                former.decide("p", "accepted")
            lease.decide("p", "accepted")
            with self.assertRaises(TokenStale):
                self.client._core.calls.call(
                    "late", "POST", "/v1/elections/reports:decide", {**holder, "proposalId": "p", "verdict": "accepted"}, changes=True)
            found = self.client.proposals("reports")
            self.assertEqual((found.open, [(p.proposal_id, p.decision.token) for p in found.decided]), ([], [("q", 1), ("p", 2)]))
            self.assertEqual(dora.propose("reports", "p", "scale", {"to": 3}, wait=30).decision.verdict, "accepted")
        for name, kind, more, error in (
            ("p", "scale", {}, InvalidArgument), ("a b", "k", {}, InvalidArgument), ("s", "", {}, InvalidArgument), ("s", "k", {"data": {1}}, InvalidArgument),
            ("s", "k", {"ttl": 5, "wait": 6}, InvalidArgument), ("s", "k", {"data": "x" * (2 << 10)}, PayloadTooLarge),
        ):
            with self.subTest(name=name, more=more), self.assertRaises(error):
                dora.propose("reports", name, kind, **more)

    def test_a_journal_is_appended_to_read_and_followed(self):
        with self.client.lead("reports") as lease, closing(self.new("bob").follow("reports", member="bob")) as items:
            self.assertEqual((lease.journal.index, lease.journal.append({"a": 1}, type="put")), (0, 1))
            self.assertEqual(lease.journal.append_all([("put", {"b": 2}), ("", [3])]), 3)
            seen = [(i.index, i.type, i.data, i.token) for i in itertools.islice(items, 3)]
            self.assertEqual(seen, [(1, "put", {"a": 1}, 1), (2, "put", {"b": 2}, 1), (3, "", [3], 1)])
            self.assertEqual([i.index for i in lease.journal.read()], [1, 2, 3])
            self.assertEqual([i.index for i in lease.journal.read(after=2)], [3])
            self.assertTrue(self.client.await_acknowledgement("reports", 1, journal_index=2, wait=PATIENCE).acknowledged)
            lease.journal.snapshot(2, {"a": 1, "b": 2})
            first, second = lease.journal.read()
            self.assertEqual((type(first), first.index, first.data, type(second), second.index), (Snapshot, 2, {"a": 1, "b": 2}, Entry, 3))
            self.assertEqual(lease.journal.append("four"), 4)
            self.assertEqual(next(items).index, 4)

    def test_a_former_leader_cannot_append_and_the_next_sees_all(self):
        with self.client.lead("reports") as former:
            former.journal.append(1)
            journal = former.journal
        with self.new("bob").lead("reports") as lease:
            self.assertEqual([(i.index, i.data) for i in lease.journal.read()], [(1, 1)])
            self.assertEqual(lease.journal.append(2), 2)
            with self.assertRaises(LeaseLost):
                journal.append(3)
            self.assertEqual(lease.journal.open(), 2)

    def test_a_follower_goes_on_over_a_restart_and_a_snapshot(self):
        with closing(self.new("bob").follow("reports")) as items:
            with self.client.lead("reports") as lease:
                lease.journal.append_all([("", i) for i in range(3)])
                lease.journal.append_all([("", i) for i in range(2)])
                self.assertEqual(next(items).index, 1)
                self.regent.stop(kill=True)
                self.regent.start()
                lease.journal.append(5)
                lease.journal.snapshot(3, "up to 3")
            seen = [(type(i).__name__, i.index) for i in itertools.islice(items, 5)]
            self.assertEqual(seen, [("Entry", n) for n in range(2, 7)])  # they had been read already
        with closing(self.new("eve").follow("reports")) as items:
            seen = [(type(i).__name__, i.index) for i in itertools.islice(items, 4)]
            self.assertEqual(seen, [("Snapshot", 3), ("Entry", 4), ("Entry", 5), ("Entry", 6)])

    def test_an_index_that_the_journal_has_not_reached_is_refused(self):
        with self.client.lead("reports") as lease:
            lease.journal.append(1)
            with self.assertRaises(IndexMismatch):
                next(self.client.follow("reports", after=7))
            for after in (-1, True, "1"):
                with self.subTest(after), self.assertRaises(InvalidArgument):
                    self.client.follow("reports", after=after)
            with self.assertRaises(InvalidArgument):
                lease.journal.append_all([])

    def test_another_writer_of_the_same_lease_is_found_out(self):
        with self.client.lead("reports") as lease:
            lease.journal.append(1)
            holder = lease._term.holder()
            body = {**holder, "after": 1, "entries": [{"data": "theirs"}]}
            self.client._core.calls.call("append", "POST", "/v1/elections/reports/journal:append", body)
            with self.assertRaises(IndexMismatch):
                lease.journal.append("ours")
            self.assertEqual((lease.journal.open(), lease.journal.append("ours")), (2, 3))


class Tree(RealCase):
    def test_a_part_is_delegated_and_its_lease_ends_with_this_one(self):
        self.configure("plan", delegation={"depth": 2, "children": 4, "budget": 100})
        with self.client.lead("plan", lease="20s") as lease:
            child = lease.delegate("chapter-2", depth=1, children=2, budget=30)
            self.assertEqual((child, lease.delegate("chapter-2", depth=1, children=2, budget=30)), ("plan.chapter-2", child))
            part = self.client.lead(child, via=lease).acquire()
            self.assertEqual(self.client.read(child, strong=True).via, {"election": "plan", "fencingToken": 1})
            with self.assertRaises(InvalidArgument):
                lease.delegate("Not a name")
        with self.assertRaises(Orphaned):
            part.check()


class Leaving(RealCase):
    def test_a_leader_steps_down_with_a_reason_and_stays_away(self):
        with self.client.lead("reports") as lease:
            for reason, absence in (("", 0), ("x" * 257, 0), ("two\nlines", 0), ("tired", "1ms"), ("tired", "800h")):
                with self.subTest((reason[:9], absence)), self.assertRaises(InvalidArgument):
                    lease.step_down(reason, absence=absence)
            lease.check()
            lease.step_down("my disk fails", absence="1h")
            self.assertFalse(lease.valid())
        last = self.client.events("reports")[-1]
        self.assertEqual((last.leader_id, last.previous_leader_id, last.reason), ("", "ann", "my disk fails"))
        self.assertIn("BANNED", [why["code"] for why in self.client.explain("reports", "ann").reasons])

    def test_the_history_says_how_the_work_has_ended(self):
        with self.client.lead("reports"):
            pass
        with self.assertRaises(ValueError), self.client.lead("reports"):
            raise ValueError("no disk\tis left\nat all")
        with self.assertRaises(SystemExit), self.client.lead("reports"):
            raise SystemExit(3)
        with self.client.lead("reports") as lease:
            for outcome, note in (("fine", ""), ("", "why"), ("failed", "x" * 257), ("failed", "two\nlines")):
                with self.subTest((outcome, note[:9])), self.assertRaises(InvalidArgument):
                    lease.release(outcome, note)
            lease.check()
            lease.release("failed", "no input")
        self.client.lead("reports").acquire().release()
        ends = [e for e in self.client.events("reports") if e.type == "released"]
        self.assertEqual([((e.detail or {}).get("outcome"), e.reason) for e in ends], [
            ("done", ""), ("failed", "ValueError"), ("stopped", ""), ("failed", "no input"), (None, "")])

    def test_an_approval_is_asked_for_where_the_policy_needs_one(self):
        with self.client.lead("plain") as lease, self.assertRaises(InvalidArgument):
            lease.request_approval("may I go on?")
        self.configure("reports", approval={"every": "1h"})
        with self.client.lead("reports") as lease:
            lease.request_approval("may I go on?")
            self.assertEqual([e.type for e in self.client.events("reports")], ["configured", "acquired", "approvalRequested"])
            self.assertNotIn("newEpoch", self.client.events("reports")[-1].detail)
        with self.client.lead("reports") as lease:
            lease.request_approval("a new task", new_epoch=True)
            last = self.client.events("reports")[-1]
            self.assertEqual((last.type, last.reason, last.detail["newEpoch"]), ("approvalRequested", "a new task", True))

    def test_a_block_whose_lease_was_released_inside_ends_without_an_error(self):
        with self.client.lead("reports") as lease:
            lease.release()
        with self.assertRaises(LeaseLost):
            lease.hand_over()
