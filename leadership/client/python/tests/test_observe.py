"""observe(): each event once, in order and without a gap, over whatever connections."""

import threading
import time
import unittest
from itertools import islice
from unittest import mock

from regent_client import Cancelled, Client, HistoryCompacted, InvalidArgument, PermissionDenied, RevisionMismatch
from regent_client._sse import MAX_MESSAGE, Message, Parser, TooLong
from tests.streams import Scripted, end, event, message, reply, snapshot, stream


class Lines(unittest.TestCase):
    def parse(self, text):
        parser = Parser()
        return [found for line in text.split(b"\n") if (found := parser.take(line))]

    def test_messages_are_as_the_standard_says(self):
        text = b"\xef\xbb\xbfevent: a\ndata: 1\ndata:2\nid: 7\n\n: ping\n\ndata\n\nevent: message\ndata:  x\n\nid: 8\n\ndata: cut"
        self.assertEqual(self.parse(text), [Message("a", "1\n2", "7"), Message("", "", "7"), Message("", " x", "7")])

    def test_an_id_stays_in_force_and_one_with_nul_is_ignored(self):
        self.assertEqual([m.id for m in self.parse(b"id: 1\ndata: a\n\nid: 2\0\ndata: b\n\nid\ndata: c\n\n")], ["1", "1", ""])

    def test_a_message_that_is_too_long_is_an_error(self):
        parser = Parser()
        parser.take(b"data: " + b"x" * (MAX_MESSAGE - 10))
        with self.assertRaises(TooLong):
            parser.take(b"data: 1234")


class Observe(unittest.TestCase):
    def setUp(self):
        for patch in (mock.patch("regent_client._backoff._MIN", 0.001), mock.patch("regent_client._stream.random.uniform", return_value=0)):
            patch.start()
            self.addCleanup(patch.stop)

    def observe(self, *answers, election="reports", **more):
        self.server = Scripted(self, *answers)
        client = Client(self.server.url, candidate="ann")
        self.addCleanup(client.close)
        return client.observe(election, **more)

    def seen(self, events, n):
        found = [(e.type, e.revision) for e in islice(events, n)]
        events.close()
        return found

    def cursors(self):
        return [headers.get("last-event-id") for _, headers, _ in self.server.requests]

    def test_it_begins_with_the_present_state(self):
        events = self.observe(stream(snapshot(7, state="held", leaderId="bob", expiresInMs=900), event(8, leaderId="ann")))
        first, second = islice(events, 2)
        self.assertEqual((first.type, first.leader_id, first.token, first.cursor, first.state.expires_in), ("", "bob", 7, "7", 0.9))
        self.assertEqual((second.type, second.leader_id, second.token, second.cursor, second.state), ("acquired", "ann", 8, "8", None))
        events.close()

    def test_it_resumes_where_a_stream_was_cut_anywhere(self):
        whole = stream(snapshot(1), event(2), event(3))
        for at in range(len(whole)):
            with self.subTest(at):
                events = self.observe(whole[:at], stream(event(2), event(3)) if b"id: 1" in whole[:at] and self.told(whole[:at]) else whole, stream(event(4)))
                found = self.seen(events, 3)
                self.assertEqual(found, [("", 1), ("acquired", 2), ("acquired", 3)])

    @staticmethod
    def told(text):
        return text.count(b"\n\n") > 1

    def test_after_a_cursor_there_is_no_state(self):
        self.assertEqual(self.seen(self.observe(stream(event(5), event(6)), after=4), 2), [("acquired", 5), ("acquired", 6)])
        self.assertEqual(self.cursors(), ["4"])

    def test_doubles_are_dropped_and_the_cursor_does_not_go_back(self):
        events = self.observe(stream(event(5), event(6), event(5)), stream(event(6), event(7)), after=4)
        self.assertEqual(self.seen(events, 3), [("acquired", 5), ("acquired", 6), ("acquired", 7)])
        self.assertEqual(self.cursors(), ["4", "6"])

    def test_a_gap_opens_the_stream_anew_and_twice_the_same_is_an_error(self):
        events = self.observe(stream(event(5), event(7)), stream(event(6), event(7)), stream(event(9)), stream(event(9)), after=4)
        found = []
        with self.assertRaisesRegex(HistoryCompacted, "revision 8"):
            for one in events:
                found.append(one.revision)
        self.assertEqual((found, self.cursors()), ([5, 6, 7], ["4", "5", "7", "7"]))

    def test_errors_that_stay_are_raised_and_others_pass(self):
        events = self.observe(
            reply(503, "STORE_UNAVAILABLE"), reply(429, "RATE_LIMITED", retryAfterMs=1), reply(200), reply(502, "x"), b"garbage\r\n\r\n", b"",
            stream(b"data: {]\n\n"), stream(b"data: []\n\n"), stream(message({"election": "other", "revision": 5, "type": "acquired", "fencingToken": 1}, "5")),
            stream(message({"reason": "limit"}, "4", "end")), stream(event(5, id="6")), stream(event(5)), reply(403, "PERMISSION_DENIED"),
            after=4,
        )
        first = next(events)
        self.assertEqual((first.revision, first.cursor), (5, "5"))
        with self.assertRaises(PermissionDenied):
            next(events)
        with self.assertRaises(RevisionMismatch):
            next(self.observe(reply(412, "REVISION_MISMATCH"), after=4))

    def test_what_is_of_a_later_version_is_ignored(self):
        news = message({"report": {}}, "", "report") + message({"x": 1}, "", "of tomorrow")
        self.assertEqual(self.seen(self.observe(stream(news, event(5, tomorrow={"a": 1}, type="of tomorrow")), after=4), 1), [("of tomorrow", 5)])

    def test_an_election_that_does_not_exist_yet_loses_nothing(self):
        events = self.observe(stream(end("limit", "0")), stream(event(1), event(2)))
        self.assertEqual(self.seen(events, 2), [("acquired", 1), ("acquired", 2)])
        self.assertEqual(self.cursors(), [None, "0"])

    def test_states_of_many_are_held_back_until_all_have_arrived(self):
        start = message({"elections": 2}, "c-9", "ready")
        other = message({"elections": 3}, "c-9", "ready")
        events = self.observe(
            stream(snapshot(3, "a.1", id="x"), snapshot(4, "a.2", id="x")),  # and breaks off
            stream(snapshot(3, "a.1", id="x"), snapshot(4, "a.2", id="x"), other),
            stream(snapshot(3, "a.1", id="x"), snapshot(5, "a.2", id="x"), start, event(4, "a.1", id="c-10")),
            stream(event(4, "a.1", id="c-10"), event(1, "a.3", id="c-11"), end("limit", "c-20")),
            stream(event(2, "a.3", id="c-21")),
            election=None, prefix="a.",
        )
        found = [(e.election, e.type, e.revision, e.cursor) for e in islice(events, 5)]
        self.assertEqual(found, [
            ("a.1", "", 3, ""), ("a.2", "", 5, "c-9"), ("a.1", "acquired", 4, "c-10"), ("a.3", "acquired", 1, "c-11"), ("a.3", "acquired", 2, "c-21"),
        ])
        self.assertEqual(self.cursors(), [None, None, None, "c-10", "c-20"])
        self.assertEqual(self.server.requests[0][0], "GET /v1/events?prefix=a.")
        events.close()

    def test_what_cannot_be_observed_is_refused_at_once(self):
        for more in ({"election": "Not a name"}, {"election": ""}, {"after": -1}, {"after": "x"}, {"prefix": "a."}, {"of": "a"}, {"election": None, "prefix": "A"},
                     {"election": None, "of": "A"}, {"election": None, "prefix": "a.", "of": "a"},
                     {"election": None, "after": "a b"}, {"election": None, "after": "ö"}, {"after": "1\r\nX: y"}):
            with self.subTest(more), self.assertRaises(InvalidArgument):
                self.observe(**more)
        self.assertEqual(self.server.requests, [])

    def test_a_silent_stream_is_replaced(self):
        held, ended = threading.Event(), []
        self.addCleanup(held.set)

        def silent(connection):
            connection.sendall(stream(event(5), cut=b"data: part of a li"))
            ended.append(held.wait(30))

        with mock.patch("regent_client._stream.SILENCE", 0.2):
            self.assertEqual(self.seen(self.observe(silent, stream(event(6)), after=4), 2), [("acquired", 5), ("acquired", 6)])
        self.assertEqual(ended, [])

    def test_close_ends_a_loop_that_waits(self):
        held, waiting = threading.Event(), threading.Event()
        self.addCleanup(held.set)

        def silent(connection):
            connection.sendall(stream(event(5)))
            waiting.set()
            held.wait(30)

        self.server = Scripted(self, silent)
        client = Client(self.server.url, candidate="ann")
        events = client.observe("reports", after=4)
        next(events)
        waiting.wait(10)
        closing = threading.Timer(0.05, client.close)
        closing.start()
        began = time.monotonic()
        with self.assertRaises(Cancelled):
            next(events)
        self.assertLess(time.monotonic() - began, 20)
        closing.join()
