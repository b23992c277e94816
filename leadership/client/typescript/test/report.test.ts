import assert from "node:assert/strict";
import { test } from "node:test";
import { InvalidArgument, type Lease, type Notice } from "../src/index.ts";
import { Script, ok, refuse, settle, unreachable } from "./scripted.ts";
import { message } from "./support.ts";

async function leading(more: Record<string, unknown> = {}): Promise<[Script, Lease]> {
  const s = new Script();
  s.on("acquire", ok(more));
  s.on("renew", ok(more));
  return [s, await s.client().lead("reports")];
}

const reports = (s: Script): unknown[] => s.of("renew").map((a) => a.body.report);

test("a report goes with the next renewal, and the next one with the third after it", async () => {
  const [s, lease] = await leading();
  lease.report({ progress: 1, custom: { a: 1, b: 2 } });
  await s.clock.advance(10_000);
  lease.report({ progress: 5, health: "ok", custom: { b: null, c: [3] } });
  lease.report({ progress: 3 });
  await s.clock.advance(40_000);
  assert.deepEqual(reports(s).slice(0, 4), [
    { progress: 1, custom: { a: 1, b: 2 } }, undefined, undefined, { progress: 5, custom: { a: 1, c: [3] }, health: "ok" },
  ]);
});

test("a report that has not changed is not sent again", async () => {
  const [s, lease] = await leading();
  lease.report({ progress: 1 });
  await s.clock.advance(100_000);
  assert.equal(reports(s).filter((r) => r).length, 1);
});

test("every renewal may carry a report while the term is about to end for want of progress", async () => {
  const [s, lease] = await leading({ endsBecause: "stuck", endsBy: "2026-01-01T00:00:30Z", endsInMs: 30_000 });
  for (let i = 1; i <= 3; i++) {
    lease.report({ progress: i });
    await s.clock.advance(10_000);
  }
  assert.deepEqual(reports(s).slice(0, 3), [{ progress: 1 }, { progress: 2 }, { progress: 3 }]);
});

test("a report that is refused does not end the lease, and is not sent again", async () => {
  const [s, lease] = await leading();
  s.on("renew", refuse(400, "INVALID_ARGUMENT", { errors: [{ pointer: "/report/health", detail: "too long" }] }), ok());
  lease.report({ progress: 1 });
  await s.clock.advance(60_000);
  assert.ok(lease.valid());
  assert.deepEqual(reports(s).slice(0, 2), [{ progress: 1 }, undefined]);
  assert.equal(s.of("renew")[1]!.at, s.of("renew")[0]!.at, "the renewal without it goes at once");
  lease.report({ progress: 2 });
  await s.clock.advance(500_000);
  assert.equal(reports(s).filter((r) => r).length, 1, "not for ten minutes");
  await s.clock.advance(100_000);
  assert.equal(reports(s).filter((r) => r).length, 2);
});

test("after a failure the lease comes first, and the report later", async () => {
  const [s, lease] = await leading();
  s.on("renew", unreachable, ok());
  lease.report({ progress: 1 });
  await s.clock.advance(30_000);
  assert.deepEqual(reports(s).slice(0, 3), [{ progress: 1 }, undefined, { progress: 1 }]);
});

test("what no server would take is refused at once, and changes nothing", async () => {
  const [s, lease] = await leading();
  lease.report({ progress: 1 });
  const cycle: Record<string, unknown> = {};
  cycle.self = cycle;
  const wrong = [{ progress: -1 }, { tasks: 0.5 }, { health: 7 }, { other: 1 }, { custom: [1] }, { custom: { big: "x".repeat(2_048) } }, { custom: { cycle } }, { custom: { f: () => 1 } }];
  for (const w of wrong) assert.throws(() => lease.report(w as never), InvalidArgument, JSON.stringify(Object.keys(w)));
  await s.clock.advance(10_000);
  assert.deepEqual(reports(s)[0], { progress: 1 });
});

test("notices tell of the end of the term, once for each change, and end with the lease", async () => {
  const [s, lease] = await leading();
  const seen: Notice[] = [];
  const reading = (async () => {
    for await (const n of lease.notices()) seen.push(n);
  })();
  s.on("renew", ok({ endsBecause: "evicted", endsBy: "2026-01-01T00:01:00Z", endsInMs: 60_000 }));
  await s.clock.advance(35_000);
  assert.deepEqual(seen.map((n) => n.kind), ["evicted"]);
  assert.ok(seen[0]!.left! > 50_000 && seen[0]!.left! <= 60_000);
  assert.equal(lease.ending()?.because, "evicted");
  s.on("renew", ok());
  await s.clock.advance(10_000);
  s.on("renew", ok({ endsBecause: "approval", endsBy: "2026-01-01T00:02:00Z", endsInMs: 20_000, expiresInMs: 20_000 }), refuse(503, "STORE_UNAVAILABLE"));
  await s.clock.advance(40_000);
  await reading;
  assert.deepEqual(seen.map((n) => n.kind), ["evicted", "goesOn", "approvalDue"]);
  assert.throws(() => lease.check(), /the term has ended: approval/);
});

test("a leader that could be stuck is told only when the end is near, one that stands on another lease never", async () => {
  for (const [because, left] of [["stuck", 60_000], ["parent", 5_000]] as const) {
    const [s, lease] = await leading({ endsBecause: because, endsBy: "2026-01-01T00:01:00Z", endsInMs: left });
    await s.clock.advance(15_000);
    void lease.release();
    for await (const n of lease.notices()) assert.fail(n.kind);
  }
});

test("where a quorum is asked for, a leader that reads notices is told whether it may write", async () => {
  const quorum = { configuration: { leaseDuration: "30s", policy: { quorum: { electorate: ["ann", "bob"], need: "majority" } } } };
  const [s, lease] = await leading(quorum);
  let stream: ReadableStreamDefaultController<Uint8Array>;
  s.on("watch", () => new Response(new ReadableStream({ start: (c) => void (stream = c) }), { headers: { "content-type": "text/event-stream" } }));
  const say = async (id: string, change: string): Promise<void> => {
    stream.enqueue(new TextEncoder().encode(message({ name: "member", data: { id, role: "leader", change } })));
    await settle();
  };
  await settle();
  assert.equal(s.of("watch").length, 0, "before the notices are asked for");
  const seen: string[] = [];
  const reading = (async () => {
    for await (const n of lease.notices()) seen.push(n.kind);
  })();
  await settle();
  for (const [id, change] of [["ann", "writable"], ["bob", "readOnly"], ["ann", "readOnly"], ["ann", "readOnly"], ["ann", "vanished"]] as const) await say(id, change);
  assert.deepEqual([seen, lease.readOnly, lease.valid()], [["readOnly"], true, true]);
  await say("ann", "writable");
  await say("ann", "readOnly");
  s.on("renew", ok()); // the policy asks for none any more
  await s.clock.advance(10_000);
  await say("ann", "readOnly");
  assert.deepEqual([seen, lease.readOnly], [["readOnly", "writable", "readOnly", "writable"], false]);
  void lease.release();
  await reading;
  await settle();
  assert.ok(s.of("watch").length === 1 && s.of("watch")[0]!.signal.aborted, "the stream ends with the lease");
});
