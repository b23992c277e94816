import assert from "node:assert/strict";
import { test } from "node:test";
import { HistoryCompacted, InvalidArgument } from "../src/errors.ts";
import { Ended, Garbled, Permanent } from "../src/resume.ts";
import type { ElectionEvent } from "../src/schemas.ts";
import { Watcher, type News } from "../src/watch.ts";

const event = (revision: number, election = "plan"): ElectionEvent => ({ election, revision, type: "acquired", at: "2026-01-01T00:00:00Z", fencingToken: revision });
const state = (revision: number, election = "plan"): object => ({ election, revision, state: "vacant", fencingToken: 0, readAt: "2026-01-01T00:00:00Z" });
const send = (w: Watcher, name: string, id: string, data: object): News[] => w.receive({ name, id, data: JSON.stringify(data) });
const kinds = (news: News[]): string[] => news.map((n) => (n.kind === "event" ? `${n.event.election}:${n.event.revision}` : n.kind) + `@${n.cursor}`);

test("a watch of one election resumes without doubles", () => {
  const w = new Watcher({ election: "plan" });
  assert.deepEqual(w.call(), { path: "/v1/elections/plan/events", query: {}, headers: {} });
  assert.deepEqual(kinds(send(w, "snapshot", "3", state(3))), ["state@3"]);
  assert.deepEqual(kinds(send(w, "", "4", event(4))), ["plan:4@4"]);
  assert.deepEqual(kinds(send(w, "", "4", event(4))), []);
  assert.deepEqual(kinds(send(w, "", "2", event(2))), []);
  assert.deepEqual(w.call().headers, { "Last-Event-ID": "4" });
  assert.deepEqual(kinds(send(w, "report", "", {})), []);
  assert.deepEqual(kinds(send(w, "of a later version", "", {})), []);
});

test("a gap ends the stream, and is final if the next stream has it too", () => {
  const w = new Watcher({ election: "plan", after: 4 });
  assert.throws(() => send(w, "", "6", event(6)), (e) => !(e instanceof Permanent) && /left out revision 5/.test(String(e)));
  assert.equal(w.cursor, "4");
  assert.throws(() => send(w, "", "6", event(6)), (e) => e instanceof Permanent && e.error instanceof HistoryCompacted);
});

test("an election that does not exist yet is watched from its first event on", () => {
  const w = new Watcher({ election: "plan" });
  assert.throws(() => send(w, "end", "0", { reason: "limit" }), (e) => e instanceof Ended && e.planned);
  assert.equal(w.cursor, "0");
  assert.throws(() => send(w, "", "2", event(2)), /left out revision 1/);
});

test("the states of all elections are told when all have arrived", () => {
  const w = new Watcher({ prefix: "p" });
  assert.deepEqual(w.call(), { path: "/v1/events", query: { prefix: "p" }, headers: {} });
  assert.deepEqual(send(w, "snapshot", "", state(1, "pa")), []);
  assert.throws(() => send(w, "", "c1", event(2, "pa")), Garbled);
  w.connected(); // the stream broke, and another begins
  assert.deepEqual(send(w, "snapshot", "", state(2, "pa")), []);
  assert.deepEqual(send(w, "snapshot", "", state(1, "pb")), []);
  assert.throws(() => send(w, "ready", "c2", { elections: 3 }), /3 elections after 2/);
  w.connected();
  send(w, "snapshot", "", state(2, "pa"));
  assert.deepEqual(kinds(send(w, "ready", "c2", { elections: 1 })), ["state@", "ready@c2"]);
  assert.deepEqual(kinds(send(w, "", "c3", event(3, "pa"))), ["pa:3@c3"]);
  assert.deepEqual(kinds(send(w, "", "c4", event(2, "pa"))), []); // it may come again
  assert.equal(w.cursor, "c4");
  assert.throws(() => send(w, "end", "c9", { reason: "draining" }), Ended);
  assert.equal(w.cursor, "c9");
  assert.throws(() => send(w, "end", "c9", { reason: "compacted" }), (e) => e instanceof Permanent);
});

test("an election is watched with its seats", () => {
  const w = new Watcher({ of: "gpu", after: "c1" });
  assert.deepEqual(w.call(), { path: "/v1/events", query: { of: "gpu" }, headers: { "Last-Event-ID": "c1" } });
  for (const name of ["gpu", "gpu.1", "gpu.100"]) assert.deepEqual(kinds(send(w, "", "c2", event(1, name))), [`${name}:1@c2`]);
  for (const name of ["gp", "gpu.0", "gpu.101", "gpu.other", "gpux1"]) assert.throws(() => send(w, "", "c3", event(1, name)), Garbled);
});

test("a message that was not asked for ends the stream", () => {
  const w = new Watcher({ election: "plan", after: "1" });
  const no = (name: string, id: string, data: unknown): void => {
    assert.throws(() => w.receive({ name, id, data: typeof data === "string" ? data : JSON.stringify(data) }), Garbled);
  };
  no("", "2", event(2, "other"));
  no("", "3", event(2));
  no("", "2", { ...event(2), type: undefined });
  no("", "2", "no JSON");
  no("", "2", "null");
  no("snapshot", "2", { ...state(2), revision: "2" });
  assert.equal(w.cursor, "1");
});

test("wrong requests are refused before anything is sent", () => {
  for (const request of [
    { election: "Plan" }, { election: "" }, { election: "../x" }, { election: "plan", prefix: "p" }, { election: "plan", of: "plan" }, { of: "Plan" }, { of: "plan", prefix: "p" }, { election: "plan", after: "01" },
    { election: "plan", after: -1 }, { election: "plan", member: "a b" }, { after: "two words" }, { members: true }, { member: "ann" },
  ]) {
    assert.throws(() => new Watcher(request), InvalidArgument, JSON.stringify(request));
  }
});
