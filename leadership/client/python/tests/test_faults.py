"""Replies that are lost, journals that are cut, and members that are refused."""

import contextlib
import http.client
import itertools
import threading
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from unittest import mock

from regent_client import Cancel, Cancelled, Client, Event, FileCredential, IndexMismatch, InvalidArgument, OutcomeUnknown, PermissionDenied, StoreUnavailable
from regent_client._members import Membership
from tests.real import PATIENCE, RealCase, until
from tests.streams import Scripted, end, message, reply, stream

HEADERS = ("Accept", "Content-Type", "Last-Event-ID")


class Losing:
    """Passes calls on to a server, and loses the replies to the next calls whose path ends so."""

    def __init__(self, test, server):
        self.lose = {}
        here = self

        class Handler(BaseHTTPRequestHandler):
            def do(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                there = http.client.HTTPConnection(server.removeprefix("http://"), timeout=PATIENCE)
                with contextlib.closing(there), contextlib.suppress(OSError):
                    there.request(self.command, self.path, body, {n: v for n, v in self.headers.items() if n in HEADERS})
                    answer = there.getresponse()
                    suffix = next((s for s, n in here.lose.items() if self.path.endswith(s) and n), None)
                    if suffix:
                        answer.read()
                        here.lose[suffix] -= 1
                        return
                    self.send_response(answer.status)
                    self.send_header("Content-Type", answer.headers["Content-Type"])
                    self.end_headers()
                    while part := answer.read1(1 << 16):
                        self.wfile.write(part)

            do_GET = do_POST = do_PUT = do

            def log_message(self, *_):
                pass

        proxy = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{proxy.server_port}"
        threading.Thread(target=proxy.serve_forever, args=(0.02,), daemon=True).start()
        test.addCleanup(proxy.server_close)
        test.addCleanup(proxy.shutdown)


class LostReplies(RealCase):
    def setUp(self):
        super().setUp()
        self.way = Losing(self, self.regent.url)
        self.client = Client(self.way.url, candidate="ann")
        self.addCleanup(self.client.close)

    def test_a_call_whose_reply_is_lost_is_made_again_and_done_once(self):
        self.configure("reports", promotion=True, approval={"every": "1h"}, delegation={"children": 1})
        self.way.lose = dict.fromkeys((
            ":acquire", ":serving", ":delegate", "/checkpoint", ":begin", ":finish", ":open", ":append", "/snapshot", ":requestApproval", ":stepDown"), 1)
        with self.client.lead("reports") as lease:
            self.assertEqual(lease.delegate("part"), "reports.part")
            lease.checkpoint.put("here")
            self.assertEqual(lease.begin_effect("mail").state, "new")
            lease.finish_effect("mail", 17)
            self.assertEqual([lease.journal.append(text) for text in ("a", "b")], [1, 2])
            lease.journal.snapshot(1, "a")
            lease.request_approval("may I?")
            lease.step_down("tired")
        self.assertEqual(set(self.way.lose.values()), {0})
        direct = self.new("eve")
        self.assertEqual([e.type for e in direct.events("reports")], ["configured", "acquired", "serving", "delegated", "approvalRequested", "released"])
        self.assertEqual([i.index for i in itertools.islice(direct.follow("reports"), 2)], [1, 2])
        self.assertEqual([(e.state, e.result) for e in direct.effects("reports").effects], [("done", 17)])

    def test_a_seat_whose_grant_is_lost_is_got_again_or_given_back(self):
        self.configure("gpu", seats=2)
        self.way.lose = {":acquire": 1}
        with self.client.lead("gpu") as lease:
            why = self.client.explain("gpu")
            self.assertEqual((why.leads, f"gpu.{why.seat}", lease.token), (True, lease.election, 1))
            members = self.client.members("gpu")
            self.assertEqual((members.seats, [(n.id, n.role, n.seat) for n in members.nodes]), (2, [("ann", "leader", why.seat)]))
            self.assertEqual(self.client.check_token(lease.election, 1).leader_id, "ann")
        self.way.lose = {":acquire": 1000}
        with self.assertRaises(OutcomeUnknown), self.client.lead("gpu", wait=0):
            self.fail("it leads without a lease")
        seats = [self.client.read(f"gpu.{n}", strong=True) for n in (1, 2)]
        self.assertEqual([(s.state, s.leader_id) for s in seats], [("vacant", "")] * 2)
        self.assertEqual(sum(s.token for s in seats), 2)

    def test_a_hand_over_whose_replies_are_lost_is_done_once(self):
        self.way.lose = {":handOver": 1, ":ready": 1, ":yield": 1}

        def succeed():
            with Client(self.way.url, candidate="bob") as client, client.lead("reports") as lease:
                self.assertEqual(lease.token, 2)

        with self.client.lead("reports") as lease:
            done = self.beside(succeed)
            until(lambda: "bob" in [n.id for n in self.client.members("reports").nodes])
            lease.hand_over(within=PATIENCE)
        done()
        self.assertEqual(
            [e.type for e in self.new("eve").events("reports")], ["acquired", "handingOver", "ready", "yielded", "released", "acquired", "released"])
        self.assertEqual(set(self.way.lose.values()), {0})


class ScriptedCase(unittest.TestCase):
    def setUp(self):
        patch = mock.patch("regent_client._backoff._MIN", 0.001)
        patch.start()
        self.addCleanup(patch.stop)

    def client_of(self, *answers, **more):
        self.server = Scripted(self, *answers)
        client = Client(self.server.url, candidate="ann", **more)
        self.addCleanup(client.close)
        return client


def entry(index):
    return {"index": index, "fencingToken": 1, "at": "2027-03-01T12:00:00Z", "data": index}


def page(*indexes, index=None, snapshot=0):
    return reply(200, election="reports", index=indexes[-1] if index is None else index, snapshotIndex=snapshot, entries=[entry(i) for i in indexes])


def told(index, id=None):
    return message(entry(index), str(index) if id is None else id, "entry")


def snapshot(index):
    return reply(200, election="reports", upTo=index, fencingToken=1, at="2027-03-01T12:00:00Z", data="all")


class Follow(ScriptedCase):
    def follow(self, n, *answers, **more):
        items = self.client_of(*answers).follow("reports", **more)
        found = [i.index for i in itertools.islice(items, n)]
        items.close()
        return found

    def paths(self):
        return [first.removeprefix("GET /v1/elections/reports/journal") for first, _, _ in self.server.requests]

    def test_each_entry_once_wherever_a_stream_is_cut(self):
        whole = stream(told(2), told(3))
        for at in range(0, len(whole), 7):
            rest = stream(*(told(i) for i in range(1, 5)))
            with self.subTest(at):
                self.assertEqual(self.follow(4, page(1), whole[:at], rest), [1, 2, 3, 4])

    def test_it_resumes_after_the_last_entry(self):
        self.assertEqual(self.follow(4, page(1, 2), stream(told(3), end("limit", "3")), reply(503, "DRAINING"), stream(told(4))), [1, 2, 3, 4])
        self.assertEqual(self.paths(), ["?after=0&limit=1000", "?after=2", "?after=3", "?after=3"])

    def test_an_entry_that_is_left_out_twice_is_an_error(self):
        items = self.client_of(page(1), stream(told(3)), stream(told(2), told(4)), stream(told(4))).follow("reports")
        self.assertEqual([i.index for i in itertools.islice(items, 2)], [1, 2])
        with self.assertRaisesRegex(IndexMismatch, "entry 3 .* twice"):
            next(items)

    def test_what_is_only_to_be_had_as_a_snapshot_is_one(self):
        compacted = reply(410, "HISTORY_COMPACTED", index=3)
        self.assertEqual(self.follow(3, compacted, snapshot(3), page(4), stream(told(5))), [3, 4, 5])
        self.assertEqual(self.follow(3, page(1), compacted, snapshot(3), stream(told(4))), [1, 3, 4])
        self.assertEqual(self.follow(2, page(1), stream(end("compacted", "1")), compacted, snapshot(1), compacted, snapshot(2)), [1, 2])

    def test_what_is_no_journal_of_regent_is_asked_for_again(self):
        strange = (reply(200), reply(200, election="other", index=1, snapshotIndex=0, entries=[]), reply(200, election="reports", index="1"), page(2, index=2))
        self.assertEqual(self.follow(2, *strange, page(1), stream(told(2, id="3")), stream(told(2))), [1, 2])
        self.assertEqual(len(self.server.requests), 7)

    def test_errors_that_stay_are_raised(self):
        with self.assertRaises(PermissionDenied):
            self.follow(1, reply(403, "PERMISSION_DENIED"))
        with self.assertRaisesRegex(IndexMismatch, "at index 2, and 7"):
            self.follow(1, page(1, 2), after=7)


class Calls(ScriptedCase):
    def test_a_member_does_not_go_back(self):
        member = Membership(self.client_of()._core.calls, "reports", "bob", "follower", 30, "", None)
        for revision, leader, token, want in ((5, "ann", 3, ("ann", 3)), (4, "", 2, ("ann", 3)), (5, "ann", 3, ("ann", 3)), (6, "", 3, ("", 3))):
            member._hear(Event("reports", revision, token, leader_id=leader))
            self.assertEqual((member.leader, member.token), want)

    def test_a_token_is_read_for_each_call_and_in_no_error(self):
        tokens = iter(("first-secret", "second-secret", "third secret"))
        client = self.client_of(reply(403, "PERMISSION_DENIED"), reply(404, "NOT_FOUND"), credential=lambda: next(tokens))
        for kind in (PermissionDenied, Exception, InvalidArgument):
            with self.assertRaises(kind) as caught:
                client.members("reports")
            self.assertNotIn("secret", str(caught.exception) + repr(client))
        self.assertEqual([h["authorization"] for _, h, _ in self.server.requests], ["Bearer first-secret", "Bearer second-secret"])

    def test_a_token_that_cannot_be_had_passes(self):
        client = self.client_of(credential=FileCredential("/nonexistent/token"))
        with self.assertRaisesRegex(StoreUnavailable, "/nonexistent/token"):
            client.members("reports")

    def test_an_answer_to_another_call_is_none(self):
        leads = {"state": "vacant", "fencingToken": 1, "revision": 1, "leaseDuration": "30s", "readAt": "now"}
        for answer in (reply(200, election="other", **leads), reply(200, **leads), reply(200, election="reports", **{**leads, "revision": "1"})):
            with self.subTest(answer), self.assertRaisesRegex(StoreUnavailable, "does not answer"):
                self.client_of(answer).read("reports")

    def test_a_member_that_may_not_join_is_told_at_once_and_one_that_may_later_tries_again(self):
        with self.assertRaises(PermissionDenied), self.client_of(reply(403, "PERMISSION_DENIED")).join("reports"):
            self.fail("it has joined")
        reading = dict(election="reports", state="held", leaderId="bob", fencingToken=3, revision=5, leaseDuration="30s", readAt="now")
        client = self.client_of()  # which answers STORE_UNAVAILABLE
        with client.join("reports") as member:
            self.assertIsInstance(member.failure, StoreUnavailable)
            self.server.otherwise = reply(200, **reading)
            until(lambda: not member.failure and member.token == 3)
            self.assertEqual(member.leader, "bob")

    def test_a_cancelled_block_ends_a_loop(self):
        held = threading.Event()
        self.addCleanup(held.set)

        def silent(connection):
            connection.sendall(stream(told(2)))
            held.wait(PATIENCE)

        client, cancel = self.client_of(page(1), silent), Cancel()
        with cancel:
            items = client.follow("reports")
            self.assertEqual([i.index for i in itertools.islice(items, 2)], [1, 2])
            threading.Timer(0.05, cancel.cancel).start()
            with self.assertRaises(Cancelled):
                next(items)

    def test_an_append_whose_outcome_is_unknown_at_the_end_of_the_lease_says_so(self):
        grant = dict(election="reports", state="held", leaderId="ann", fencingToken=1, revision=1, leaseDuration="2s", expiresInMs=2000, renewInMs=1000)
        head = reply(200, election="reports", index=0, snapshotIndex=0)
        client = self.client_of(reply(200, **grant), head, *[b""] * 1000)  # the replies to all that follows are lost
        lease = client.lead("reports", wait=0).acquire()
        with self.assertRaises(OutcomeUnknown):
            lease.journal.append(1)
        self.assertFalse(lease.valid())
