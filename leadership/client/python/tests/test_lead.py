"""Campaigns, blocks that lead, and cancellation, with threads, at a server that fails as the tests say."""

from __future__ import annotations

import functools
import json
import os
import pickle
import signal
import sys
import threading
import time
import unittest
from typing import Any, Callable
from unittest import mock

import regent_client
from regent_client import (
    Cancel, Cancelled, Client, ElectionDeleted, InvalidArgument, LeaseExpired, LeaseHeld, LeaseLost, NotEligible, OutcomeUnknown,
    PayloadTooLarge, RateLimited, StoreUnavailable,
)

from .case import Case
from .scripted import PATIENCE, Clock, Handler, Held, changed, cut, dribble, lost, raw, refuse, reply


class Leading(Case):

    def test_the_lease_is_released_after_an_exception_in_the_block(self) -> None:
        for error in (ValueError("ours"), KeyboardInterrupt(), SystemExit(3)):
            with self.subTest(error=error), self.assertRaises(type(error)):
                with self.client.lead("reports"):
                    raise error
            self.assertEqual(self.server.elections["reports"].leader, "")

    def test_each_call_of_lead_has_a_key_of_its_own(self) -> None:
        for _ in range(2):
            with self.client.lead("reports"):
                pass
        first, second = (r.body["key"] for r in self.server.of("acquire"))
        self.assertNotEqual(first, second)
        self.assertRegex(first, r"^[A-Za-z0-9_-]{43}$")

    def test_a_campaign_is_used_once(self) -> None:
        leading = self.client.lead("reports")
        with leading:
            pass
        with self.assertRaises(RuntimeError):
            leading.acquire()

    def test_options_reach_the_server(self) -> None:
        loads = iter((7, 5))
        self.server.faults["acquire"].append(refuse("STORE_UNAVAILABLE"))
        with self.client.lead("reports", lease="1m30s", priority=-3, capabilities=("gpu", "eu", "gpu"), load=lambda: next(loads),
                              metadata={"url": "x"}, note="here", role="candidate", inherit=True, statement=True):
            pass
        first, second = (r.body for r in self.server.of("acquire"))
        self.assertEqual({k: v for k, v in second.items() if k not in ("key", "wait")}, {
            "candidateId": "ann", "leaseDuration": "90s", "priority": -3, "capabilities": ["eu", "gpu"], "load": 5, "metadata": {"url": "x"},
            "note": "here", "role": "candidate", "inherit": True, "statement": True})
        self.assertEqual((first["load"], first["key"]), (7, second["key"]))

    def test_the_wait_is_limited(self) -> None:
        with self.new("bob").lead("reports"):
            with self.assertRaises(LeaseHeld), self.client.lead("reports", wait=0.05):
                pass

    def test_what_the_server_says_of_waiting_is_not_believed_beyond_what_has_passed(self) -> None:
        clock = Clock()
        client = self.new("ann", clock=clock)
        self.server.faults["acquire"].append(changed(waitedMs=50_000))
        with client.lead("reports") as lease:
            self.assertAlmostEqual(lease.remaining(), 600 * 0.999 - 1)

    def test_a_success_that_does_not_answer_the_call_is_not_believed(self) -> None:
        for wrong in ({"election": "other"}, {"leaderId": "bob"}, {"state": "vacant"}, {"expiresInMs": "60000"}, {"leaseDuration": 7}):
            with self.subTest(wrong):
                self.server.faults["acquire"].extend([changed(**wrong)] * 3)
                with self.assertRaises(OutcomeUnknown), self.client.lead("reports", wait=0):
                    self.fail("it leads")
                self.assertEqual(self.server.elections["reports"].leader, "", "a lease is left behind")

    def test_errors_that_another_call_does_not_change_end_the_campaign(self) -> None:
        for code, kind in (("INVALID_ARGUMENT", InvalidArgument), ("ELECTION_DELETED", ElectionDeleted), ("NOT_ELIGIBLE", NotEligible)):
            with self.subTest(code):
                self.server.faults["acquire"].append(refuse(code))
                with self.assertRaises(kind), self.client.lead("reports"):
                    pass

    def test_after_a_refusal_it_is_not_looked_for_a_lease(self) -> None:
        self.server.faults["acquire"].append(refuse("INVALID_ARGUMENT"))
        with self.assertRaises(InvalidArgument):
            self.client.lead("reports", inherit=True).acquire()
        with self.assertRaises(InvalidArgument):
            self.new("ann", credential="two words").lead("reports").acquire()
        self.assertEqual(self.server.of("read"), [])

    def test_a_server_that_is_away_is_asked_until_the_wait_is_over(self) -> None:
        self.server.close()
        with self.assertRaises(StoreUnavailable), self.client.lead("reports", wait=0.05):
            pass
        with self.assertRaises(StoreUnavailable), self.client.lead("reports", wait=0):
            pass

    def test_a_silent_server_is_not_waited_for_much_longer_than_the_wait(self) -> None:
        for wait in (0, 0.1):
            for verb in ("acquire", "read"):
                self.server.faults[verb].append(Held())
            begun = time.monotonic()
            with mock.patch("regent_client._campaign.SLACK", 0.3), mock.patch("regent_client._campaign.ABANDON_LIMIT", 0.3):
                with self.subTest(wait=wait), self.assertRaises(OutcomeUnknown), self.client.lead("reports", wait=wait):
                    self.fail("it leads")
            self.assertLess(time.monotonic() - begun, 20)
            self.server.vacate("reports")

    def test_a_pause_that_the_server_asks_for_is_no_longer_than_the_wait(self) -> None:
        self.server.faults["acquire"].extend([refuse("RATE_LIMITED", retryAfterMs=60_000)] * 3)
        begun = time.monotonic()
        with mock.patch("regent_client._campaign.SLACK", 0.3):
            for wait in (0, 0.1):
                with self.assertRaises(RateLimited), self.client.lead("reports", wait=wait):
                    self.fail("it leads")
        self.assertLess(time.monotonic() - begun, 20)

    def test_a_ballot_is_asked_again_at_its_turn(self) -> None:
        self.server.faults["acquire"].append(reply(409, {"code": "LEASE_HELD", "reason": "BALLOT", "detail": "bids are collected", "retryAfterMs": 10},
                                                   "application/problem+json"))
        with self.client.lead("reports", wait=0) as lease:
            self.assertEqual(lease.token, 1)

    def test_a_new_leader_says_that_it_serves_where_the_policy_asks(self) -> None:
        self.server.more["serving"] = False
        self.server.faults["serving"].extend((cut, reply(200, {})))
        with self.client.lead("reports"):
            self.assertEqual(len(self.server.of("serving")), 2)

    def test_a_reply_about_another_effect_is_not_believed(self) -> None:
        effect = {"election": "reports", "effectId": "mail", "state": "new", "fencingToken": 1, "leaderId": "ann", "at": "2027-03-01T12:00:00Z"}
        for more in ({"election": "others"}, {}, {"effectId": "letter"}):
            self.server.faults["begin"].append(reply(200, {**effect, **more}))
        with self.client.lead("reports") as lease:
            self.assertEqual(lease.begin_effect("mail").state, "new")
            with self.assertRaises(OutcomeUnknown):
                lease.begin_effect("mail")
        self.assertEqual(len(self.server.of("begin")), 3)

    def test_an_effect_that_is_begun_after_the_end_of_the_lease_is_not_to_be_caused(self) -> None:
        clock = Clock()
        effect = {"election": "reports", "effectId": "mail", "state": "new", "fencingToken": 1, "leaderId": "ann", "at": "2027-03-01T12:00:00Z"}

        def late(handler: Handler, act: Callable[[], Any]) -> None:
            clock.now += 600
            handler.answer(200, effect)

        self.server.faults["begin"].append(late)
        with self.assertRaises(LeaseExpired), self.new("ann", clock=clock).lead("reports") as lease:
            lease.begin_effect("mail")
            self.fail("the effect is new, and the lease over")

    def test_no_call_in_the_leaders_name_has_more_time_than_the_lease(self) -> None:
        self.server.expires = 29
        with self.client.lead("reports") as lease, mock.patch.object(lease._core.calls, "call", side_effect=InvalidArgument("no")) as called:
            for call in (lambda: lease.begin_effect("mail"), lambda: lease.checkpoint.put(1), lambda: lease.await_followers(1), lambda: next(lease.asked())):
                with self.assertRaises(InvalidArgument):
                    call()
            limits = [of.kwargs["limit"] for of in called.call_args_list]
        self.assertEqual(len(limits), 4)
        self.assertLess(max(limits), 29)

    def test_a_campaign_does_not_wait_for_what_runs_beside_it(self) -> None:
        go, ended = threading.Event(), []
        self.addCleanup(go.set)

        def attend(_: object) -> None:
            go.wait(PATIENCE)
            ended.append(1)

        with mock.patch("regent_client._campaign.Heir.attend", attend), self.client.lead("reports"):
            self.assertEqual(ended, [])

    def test_what_the_program_changes_meanwhile_is_not_sent(self) -> None:
        data: dict[str, Any] = {"a": []}

        def change(handler: Handler, act: Callable[[], Any]) -> None:
            data["a"].append(object())
            refuse("STORE_UNAVAILABLE")(handler, act)

        head = {"election": "reports", "index": 0, "snapshotIndex": 0}
        self.server.faults["acquire"].append(change)
        self.server.faults["open"].append(reply(200, head))
        self.server.faults["append"].extend((change, reply(200, {**head, "index": 1})))
        with self.client.lead("reports", metadata=data) as lease:
            data["a"].clear()
            self.assertEqual(lease.journal.append(data), 1)
        self.assertEqual([r.body.get("metadata") or r.body["entries"][0]["data"] for r in self.server.of("acquire", "append")], [{"a": []}] * 4)

    def test_what_is_too_large_is_not_sent(self) -> None:
        with self.client.lead("reports") as lease:
            lease.journal._log.index = 0
            calls = len(self.server.requests)
            for call in (
                lambda: lease.checkpoint.put("x" * (64 << 10)), lambda: lease.journal.append("x" * (512 << 10)),
                lambda: lease.journal.append_all([("", "x" * (256 << 10))] * 2), lambda: lease.journal.snapshot(1, "x" * (512 << 10)),
            ):
                with self.assertRaisesRegex(PayloadTooLarge, "put (it|data) elsewhere"):
                    call()
            for count in (0, 501):
                with self.assertRaisesRegex(InvalidArgument, "1 to 500"):
                    lease.journal.append_all([("", 1)] * count)
            self.assertEqual(len(self.server.requests), calls)

    def test_bad_input_says_what_to_do(self) -> None:
        bad: list[tuple[str, Callable[[], object]]] = [
            ("is no election", lambda: self.client.lead("Reports")),
            ("is no candidate", lambda: self.client.lead("reports", candidate="a b")),
            ("number of seconds, or text", lambda: self.client.lead("reports", lease="soon")),
            ("number of seconds, or text", lambda: self.client.lead("reports", wait=-1)),
            ("list of names", lambda: self.client.lead("reports", capabilities="gpu")),
            ("needs the lease", lambda: self.client.lead("reports", via_peer="eu")),
            ("use https://", lambda: Client("http://regent.example.com")),
            ("is not one such as", lambda: Client("http://[::1].example.com")),
            ("begin with http", lambda: Client("127.0.0.1:8080")),
            ("user or a password", lambda: Client("http://u:secret@127.0.0.1")),
            (r"without \? and #", lambda: Client("http://127.0.0.1/?x")),
            ("is no URL", lambda: Client("http://127.0.0.1:99999")),
        ]
        for text, call in bad:
            with self.subTest(text), self.assertRaisesRegex((InvalidArgument, ValueError), text) as caught:
                call()
            self.assertNotIn("secret", str(caught.exception))
        wrong: list[tuple[Callable[..., Any], list[dict[str, Any]]]] = [
            (functools.partial(Client, self.server.url), [{"credential": 5}, {"tls": "x"}, {"insecure": "no"}, {"candidate": ""}, {"clock": 1}]),
            (functools.partial(self.client.lead, "reports"), [
                {"via": "x"}, {"note": b"x"}, {"metadata": 5}, {"candidate": ""}, {"on_succession": 5}, {"on_promotion": 5}, {"priority": "high"},
                {"role": 1}, {"inherit": "no"}, {"statement": 1}, {"load": "low"}, {"capabilities": 5}, {"capabilities": b"gpu"}, {"via_peer": 5},
            ]),
        ]
        for make, options in wrong:
            for option in options:
                with self.subTest(option), self.assertRaisesRegex(InvalidArgument, next(iter(option))):
                    make(**option)
        with self.assertRaisesRegex(InvalidArgument, "leaves nothing"), self.client.lead("reports", margin=600):
            pass
        self.assertEqual(self.server.elections["reports"].leader, "")
        Client("http://regent.example.com", insecure=True).close()


class Cancelling(Case):

    def test_an_interrupt_while_it_waits_leaves_nothing_behind(self) -> None:
        held = Held()
        self.server.faults["acquire"].append(held)
        main = threading.main_thread().ident
        assert main
        self.beside(lambda: held.begun.wait(PATIENCE) and signal.pthread_kill(main, signal.SIGINT))
        with self.assertRaises(KeyboardInterrupt), self.client.lead("reports"):
            self.fail("it leads")
        self.assertEqual(self.server.elections["reports"].leader, "")

    def test_a_signal_handler_may_cancel(self) -> None:
        held, cancel = Held(), Cancel()
        self.server.faults["acquire"].append(held)
        before = signal.signal(signal.SIGTERM, lambda *_: cancel.cancel())
        self.addCleanup(signal.signal, signal.SIGTERM, before)
        self.beside(lambda: held.begun.wait(PATIENCE) and os.kill(os.getpid(), signal.SIGTERM))
        with self.assertRaises(Cancelled), cancel, self.client.lead("reports"):
            self.fail("it leads")
        self.assertEqual(self.server.elections["reports"].leader, "")

    def test_a_signal_handler_may_cancel_whatever_it_has_interrupted(self) -> None:
        """At each line of what waits. With a lock that is not reentrant the handler would wait for itself."""

        def interrupted(at: int) -> bool:
            """Waits, and cancels at a line, as a handler does. Returns whether there are so many."""
            cancel, left = Cancel(), at

            def trace(frame: Any, what: str, _: object) -> Any:
                nonlocal left
                left -= what == "line"
                if not left:
                    cancel.cancel()
                return trace

            sys.settrace(trace)
            try:
                cancel.sleep(0.01)
            except Cancelled:
                pass
            finally:
                sys.settrace(None)
            return left <= 0

        def run() -> int:
            return next(at for at in range(1, 1000) if not interrupted(at))

        thread, result = self.beside(run)
        thread.join(PATIENCE)
        self.assertGreater(result[0], 10)

    def cancelled(self) -> None:
        """Campaigns for a lease whose grant is held back, and gives up."""
        cancel = Cancel()
        thread, result = self.beside(lambda: self.client.lead("reports").acquire() if cancel.__enter__() else None)
        self.until(lambda: self.server.of("acquire"), "it asks")
        cancel.cancel()
        thread.join(PATIENCE)
        self.assertIsInstance(result[0], Cancelled)

    def test_a_lease_that_is_granted_soon_after_its_candidate_has_given_up_is_released(self) -> None:
        written = threading.Event()

        def slowly(handler: Handler, act: Callable[[], Any]) -> None:
            written.wait(PATIENCE)
            lost(handler, act)

        class Time:
            now = 0.0

            @classmethod
            def monotonic(cls) -> float:
                return cls.now

            @classmethod
            def sleep(cls, seconds: float) -> None:
                cls.now += seconds
                if cls.now > 1.9:
                    written.set()
                    self.until(lambda: self.server.elections["reports"].token, "the grant")

        self.server.faults["acquire"].append(slowly)
        with mock.patch("regent_client._campaign.time", Time):
            self.cancelled()
        written.set()
        self.until(lambda: self.server.elections["reports"].token, "the grant")
        self.assertEqual(self.server.elections["reports"].leader, "")

    def test_a_lease_that_may_have_been_granted_is_looked_for_after_reads_that_fail(self) -> None:
        self.server.faults["acquire"].append(Held())
        self.server.faults["read"].extend([refuse("STORE_UNAVAILABLE")] * 2)
        with mock.patch("regent_client._campaign.ABANDON_LIMIT", PATIENCE):
            self.cancelled()
        self.assertEqual(self.server.elections["reports"].leader, "")
        self.server.requests.clear()
        self.server.faults["acquire"].append(Held())
        self.server.faults["read"].append(refuse("PERMISSION_DENIED"))
        with self.assertLogs("regent_client", "WARNING") as logs:
            self.cancelled()
        self.assertIn("it ends by itself: PERMISSION_DENIED", "\n".join(logs.output))

    def test_a_credential_that_does_not_come_is_waited_for_within_the_limit_of_the_call(self) -> None:
        asked, go, got = threading.Event(), threading.Event(), []
        self.addCleanup(go.set)

        def credential() -> str:
            asked.set()
            go.wait(PATIENCE)
            got.append("token")
            return "token"

        client, cancel = self.new("ann", credential=credential), Cancel()
        with self.assertRaisesRegex(StoreUnavailable, "no credential in time"):
            client._core.calls.call("read", "GET", "/v1/elections/reports", limit=0.05, cleans=True)
        for call in (lambda: client.read("reports"), lambda: next(client.observe("reports"))):
            asked.clear()
            thread, result = self.beside(lambda: call() if cancel.__enter__() else None)
            self.assertTrue(asked.wait(PATIENCE))
            cancel.cancel()
            thread.join(PATIENCE)
            self.assertIsInstance(result[0], Cancelled)
        self.assertEqual((got, self.server.requests), ([], []))

    def test_close_ends_a_campaign(self) -> None:
        with self.new("bob").lead("reports"):
            thread, result = self.beside(self.client.lead("reports").acquire)
            self.until(lambda: len(self.server.of("acquire")) == 2, "it waits")
            self.client.close()
            thread.join(PATIENCE)
        self.assertIsInstance(result[0], Cancelled)

    def test_after_close_a_lease_is_over_at_its_deadline(self) -> None:
        self.server.expires = 1
        with self.new("bob", clock=(clock := Clock())) as client:
            lease = client.lead("reports", margin=0.1).acquire()
            notices, told = self.beside(lambda: list(lease.notices()))
        self.assertFalse(lease.done.wait(0.05), "it is over before its deadline")
        self.assertTrue(lease.valid())
        clock.now += 1
        self.assertTrue(lease.done.wait(PATIENCE))
        notices.join(PATIENCE)
        self.assertEqual(told, [[]])
        self.assertIn("the client was closed", str(lease.lost))
        self.until(lambda: not client._core.keeper._running, "the keeper ends")

    def test_a_block_that_leads_when_the_client_is_closed_releases(self) -> None:
        with self.client.lead("reports") as lease:
            self.client.close()
            self.assertTrue(lease.valid())
            with self.assertRaises(Cancelled):
                self.client.read("reports")
        self.assertEqual(self.server.elections["reports"].leader, "")

    def test_a_cancel_that_came_before_makes_no_call(self) -> None:
        cancel = Cancel()
        cancel.cancel()
        with self.assertRaises(Cancelled), cancel, self.client.lead("reports"):
            pass
        self.assertEqual(self.server.of("acquire"), [])

    def test_a_release_is_tried_for_no_longer_than_the_lease(self) -> None:
        self.server.expires, self.server.renew = 1, 5
        self.server.faults["release"].extend([dribble] * 50)
        lease = self.client.lead("reports").acquire()
        lease.release()  # a reply has no end of its own
        self.assertFalse(lease.valid())


class Secrets(Case):
    def test_the_key_and_the_token_are_in_no_text(self) -> None:
        self.server.renew = 0.03
        texts = []
        with self.assertLogs("regent_client", "DEBUG") as logs:
            client = self.new("ann", credential="tok-secret")
            lease = client.lead("reports").acquire()
            key = self.server.of("acquire")[0].body["key"]
            self.assertEqual(self.server.of("acquire")[0].headers["Authorization"], "Bearer tok-secret")
            echo = reply(502, {"you sent": [key, "tok-secret-" + "x" * 40]}, "text/plain")
            garbage = raw(f"{key}\r\n\r\n".encode())
            said = refuse("INVALID_ARGUMENT", detail=f"you sent {key}", errors=[{"pointer": key}])
            with self.assertRaises(InvalidArgument) as shown:
                self.server.faults["release"].append(said)
                lease._core.calls.call("release", "POST", "/v1/elections/x:release", {"key": key}, changes=True)
            texts += [str(shown.exception), repr(shown.exception.problem)]
            self.server.faults["renew"].extend((said, echo, garbage, cut))
            self.until(lambda: not self.server.faults["renew"], "the faults were met")
            texts += [repr(lease), str(lease), repr(lease.__dict__), repr(lease._term.__dict__), repr(client), repr(client._core.__dict__)]
            lease.release()
            texts += [repr(lease.lost), str(lease.lost)]
            with self.assertRaises(TypeError) as caught:
                pickle.dumps(lease._term.key)
            texts.append(str(caught.exception))
        bad = self.new("ann", credential="tok secret\n")
        with self.assertRaises(InvalidArgument) as refused:
            bad.lead("reports").acquire()
        texts.append(str(refused.exception))
        for text in texts + logs.output:
            for secret in (key, "tok-secret", "tok secret"):
                self.assertNotIn(secret, text)

    def test_a_token_may_be_a_function_that_is_asked_anew(self) -> None:
        tokens = iter(("one", "two"))
        client = self.new("ann", credential=lambda: next(tokens))
        with client.lead("reports"):
            pass
        self.assertEqual([r.headers["Authorization"] for r in self.server.requests], ["Bearer one", "Bearer two"])


@unittest.skipUnless(hasattr(os, "fork"), "this system has no fork")
class Forking(Case):
    def test_a_lease_is_over_in_a_child_and_the_child_does_not_release_it(self) -> None:
        self.clock = Clock()
        self.client = self.new("ann", clock=self.clock)
        lease = self.client.lead("reports").acquire()
        read, write = os.pipe()
        child = os.fork()
        if not child:
            try:
                said = {"valid": lease.valid(), "lost": isinstance(lease.lost, LeaseLost), "done": lease.done.is_set(), "waits": not lease.done.wait(5)}
                lease.release()
                with self.client.lead("child") as own:
                    self.clock.now += 201
                    self.client._core.keeper.wake()
                    while own.remaining() < 590:  # the locks of the server may be held here for ever
                        time.sleep(0.01)
                os.write(write, json.dumps(said).encode())
            finally:
                os._exit(0)
        os.close(write)
        with open(read, "rb") as pipe:
            said = json.load(pipe)
        os.waitpid(child, 0)
        self.assertEqual(said, {"valid": False, "lost": True, "done": True, "waits": False})
        self.assertTrue(lease.valid())
        self.assertEqual({r.election for r in self.server.of("release", "renew")}, {"child"})
        lease.release()


class Package(unittest.TestCase):
    def test_what_is_exported_exists(self) -> None:
        for name in regent_client.__all__:
            self.assertTrue(hasattr(regent_client, name), name)


if __name__ == "__main__":
    unittest.main()
