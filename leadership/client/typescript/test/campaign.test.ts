import assert from "node:assert/strict";
import { test } from "node:test";
import { ElectionDeleted, InvalidArgument, LeaseHeld, NotEligible, OutcomeUnknown, PermissionDenied, StoreUnavailable, cksumPriority, defaultCandidate, type LeadOptions } from "../src/index.ts";
import { scripted } from "./support.ts";
import { Script, broken, late, ok, refuse, settle, silent, unreachable, vacant } from "./scripted.ts";

const inLine = refuse(409, "LEASE_HELD", { reason: "HELD" });

test("a grant to another candidate, or of another election, is not believed", async () => {
  for (const more of [{ leaderId: "bob" }, { election: "others" }, { fencingToken: 0 }, { state: "vacant" }]) {
    const s = new Script();
    s.on("acquire", ok(more), ok());
    const asking = s.client().lead("reports");
    await s.clock.advance(5_000);
    assert.equal((await asking).candidate, "ann");
    assert.equal(s.of("acquire").length, 2);
  }
});

test("without a wait it is refused at once, and tries three times if there is no answer", async () => {
  const s = new Script();
  s.on("acquire", inLine);
  await assert.rejects(s.client().lead("reports", { wait: 0 }), LeaseHeld);
  assert.equal(s.of("acquire").length, 1);
  assert.equal(s.of("acquire")[0]!.body.wait, undefined);
  s.on("acquire", unreachable);
  const failing = assert.rejects(s.client().lead("reports", { wait: 0 }), StoreUnavailable);
  await s.clock.advance(10_000);
  await failing;
  assert.equal(s.of("acquire").length, 4);
});

test("a candidate that has bid asks again when its turn comes, though it does not wait", async () => {
  const s = new Script();
  s.on("acquire", refuse(409, "LEASE_HELD", { reason: "BALLOT", retryAfterMs: 2_500 }), ok());
  const asking = s.client().lead("reports", { wait: 0 });
  await s.clock.advance(3_000);
  await asking;
  const [first, second] = s.of("acquire");
  assert.equal(second!.at - first!.at, 2_500);
});

test("a wait that is over throws the refusal", async () => {
  const s = new Script();
  s.on("acquire", (asked) => late(s, Number.parseInt(String(asked.body.wait)), inLine)(asked));
  let error: unknown = undefined as unknown;
  s.client().lead("reports", { wait: "1m30s" }).catch((e) => (error = e));
  await s.clock.advance(89_999);
  assert.ok(!error);
  await s.clock.advance(1);
  assert.ok(error instanceof LeaseHeld);
  assert.deepEqual(s.of("acquire").map((a) => a.body.wait), ["60000ms", "30000ms"]);
});

test("an error that another call would not change ends the campaign", async () => {
  for (const [status, code, of] of [
    [400, "INVALID_ARGUMENT", InvalidArgument], [403, "PERMISSION_DENIED", PermissionDenied], [409, "ELECTION_DELETED", ElectionDeleted], [409, "NOT_ELIGIBLE", NotEligible],
  ] as const) {
    const s = new Script();
    s.on("acquire", refuse(status, code));
    await assert.rejects(s.client().lead("reports"), of);
    assert.equal(s.of("acquire").length, 1);
  }
});

// Where an abort can come, and what the server has done by then.
const aborts = {
  "the request is under way": (s: Script) => s.on("acquire", silent),
  "the body of the reply is under way": (s: Script) => s.on("acquire", () => new Response(new ReadableStream({ start: (c) => c.enqueue(new TextEncoder().encode('{"elec')) }), { headers: { "content-type": "application/json" } })),
  "it waits to ask again, after a reply was lost": (s: Script) => s.on("acquire", broken),
};
for (const [name, prepare] of Object.entries(aborts)) {
  test(`an abort while ${name} releases a lease that was granted, by the same key`, async () => {
    const s = new Script();
    prepare(s);
    s.on("get", vacant, ok({ fencingToken: 7 })); // the grant is still on its way at first
    s.on("release", broken, vacant);
    const stop = new AbortController();
    let error: unknown = undefined as unknown;
    s.client().lead("reports", { signal: stop.signal }).catch((e) => (error = e));
    await settle();
    stop.abort(new Error("enough"));
    await s.clock.advance(6_000);
    assert.match(String(error), /enough/);
    const [release, again] = s.of("release");
    assert.deepEqual([release!.body.fencingToken, release!.body.key], [7, s.of("acquire")[0]!.body.key]);
    assert.equal(again!.body.key, release!.body.key);
    const before = s.asked.length;
    await s.clock.advance(60_000);
    assert.equal(s.asked.length, before, "nothing goes on");
  });
}

test("the look for a lease that is not wanted goes on when reads fail, and for as long as the request may be under way", async () => {
  for (const reads of [[broken, refuse(503, "STORE_UNAVAILABLE"), () => new Response("<html>", { status: 502 }), ok({ fencingToken: 7 })], [vacant]]) {
    const s = new Script();
    s.on("acquire", silent);
    s.on("get", ...reads);
    s.on("release", vacant);
    const stop = new AbortController();
    const failing = assert.rejects(s.client().lead("reports", { signal: stop.signal }), /enough/);
    await settle();
    stop.abort(new Error("enough"));
    await s.clock.advance(2_000);
    if (reads.length === 1) s.on("get", ok({ fencingToken: 7 })); // granted only now
    await s.clock.advance(4_000);
    await failing;
    assert.equal(s.of("release")[0]?.body.fencingToken, 7);
  }
});

test("a look that never succeeds is told", async () => {
  const s = new Script();
  s.on("acquire", silent);
  s.on("get", refuse(503, "STORE_UNAVAILABLE"));
  const stop = new AbortController();
  const failing = assert.rejects(s.client().lead("reports", { signal: stop.signal }), /enough/);
  await settle();
  stop.abort(new Error("enough"));
  await s.clock.advance(5_100);
  await failing;
  assert.match(s.logged.join("\n"), /it ends by itself.*STORE_UNAVAILABLE/);
});

test("an abort while the bearer token is asked for sends nothing more than a look", async () => {
  const s = new Script();
  const stop = new AbortController();
  let asked = 0;
  const credential = (): Promise<string> => (asked++ === 0 ? new Promise<string>(() => {}) : Promise.resolve("t"));
  s.on("get", vacant);
  const failing = assert.rejects(s.client({ credential }).lead("reports", { signal: stop.signal }), /enough/);
  await settle();
  stop.abort(new Error("enough"));
  await s.clock.advance(6_000);
  await failing;
  assert.equal(s.of("acquire").length, 0);
});

test("an abort after the refusal releases nothing", async () => {
  const s = new Script();
  s.on("acquire", inLine);
  const stop = new AbortController();
  const failing = assert.rejects(s.client().lead("reports", { signal: stop.signal }), /enough/);
  await settle();
  stop.abort(new Error("enough"));
  await s.clock.advance(1_000);
  await failing;
  assert.deepEqual(s.asked.map((a) => a.verb), ["acquire"]);
});

test("a signal that has fired before asks nothing", async () => {
  const s = new Script();
  await assert.rejects(s.client().lead("reports", { signal: AbortSignal.abort(new Error("enough")) }), /enough/);
  assert.equal(s.asked.length, 0);
});

test("giving up is over within 5 s, even if the server is silent", async () => {
  const s = new Script();
  const stop = new AbortController();
  let error: unknown = undefined as unknown;
  s.client().lead("reports", { signal: stop.signal }).catch((e) => (error = e));
  await settle();
  stop.abort(new Error("enough"));
  await s.clock.advance(4_900);
  assert.ok(!error);
  await s.clock.advance(200);
  assert.match(String(error), /enough/);
});

test("a server that falls silent ends a campaign within 15 s after its wait", async () => {
  const seats = ok({ state: "vacant", leaderId: undefined, expiresInMs: undefined, configuration: { leaseDuration: "30s", policy: { seats: 2 } } });
  for (const [wait, ms] of [[0, 0], ["90s", 90_000]] as const) {
    const s = new Script();
    s.on("get", seats); // and it does not explain
    let error: unknown = undefined as unknown;
    s.client().lead("reports", { wait }).catch((e) => (error = e));
    await s.clock.advance(ms + 15_100);
    assert.ok(error instanceof OutcomeUnknown, String(error));
  }
});

test("it says what the candidate is worth, the load anew with each call", async () => {
  const s = new Script();
  let load = 3;
  s.on("acquire", refuse(503, "STORE_UNAVAILABLE"), ok());
  const asking = s.client().lead("reports", {
    lease: "10s", priority: "cksum", capabilities: ["gpu", "eu", "gpu"], load: () => load++, metadata: { at: "here" }, note: "works", role: "candidate", inherit: true,
  });
  await s.clock.advance(2_000);
  await asking;
  const [first, second] = s.of("acquire").map(({ body: { key: _, wait: __, ...body } }) => body);
  assert.deepEqual(first, {
    candidateId: "ann", leaseDuration: "10000ms", priority: cksumPriority("ann"), capabilities: ["eu", "gpu"], load: 3,
    metadata: { at: "here" }, note: "works", role: "candidate", inherit: true,
  });
  assert.equal(second!.load, 4);
});

test("what cannot be is refused before anything is sent, and the error says what can", async () => {
  const s = new Script();
  const client = s.client();
  const wrong: [Parameters<typeof client.lead>, RegExp][] = [
    [["Reports"], /is not the name of an election/],
    [["a/b"], /is not the name of an election/],
    [["reports", { candidate: "ann ann" }], /is not the id of a candidate/],
    [["reports", { lease: "30" }], /"30s"/],
    [["reports", { lease: 1.5 }], /whole milliseconds/],
    [["reports", { wait: "-1s" }], /wait/],
    [["reports", { priority: 0.5 }], /priority/],
    [["reports", { capabilities: ["a b"] }], /capabilities/],
    [["reports", { load: -1 }], /load/],
    [["reports", { viaPeer: "other" }], /viaPeer/],
    [["reports", { capabilities: "gpu" as never }], /\['gpu'\]/],
    [["reports", { onSuccession: "load" as never }], /onSuccession: it is a function/],
    [["reports", { onPromotion: {} as never }], /onPromotion: it is a function/],
    [["reports", { signal: {} as never }], /AbortSignal/],
    [["reports", null as never], /options/],
  ];
  for (const [args, says] of wrong) {
    await assert.rejects(client.lead(...args), (e: Error) => e instanceof InvalidArgument && says.test(e.message));
  }
  await assert.rejects(client.run("reports", "work" as never), InvalidArgument);
  for (const awaitFollowers of [NaN, -1, "1" as never]) await assert.rejects(client.run("reports", () => {}, { awaitFollowers }), InvalidArgument);
  assert.throws(() => client.observe("reports", null as never), InvalidArgument);
  assert.throws(() => client.member("reports", { onTold: 5 as never }), InvalidArgument);
  assert.equal(s.asked.length, 0);
});

test("a time to retry that is none does not make it ask without a pause", async () => {
  for (const retryAfterMs of ["soon", {}, -5_000, null]) {
    const s = new Script();
    s.on("acquire", refuse(503, "STORE_UNAVAILABLE", { retryAfterMs }), refuse(503, "STORE_UNAVAILABLE", { retryAfterMs }), ok());
    s.on("renew", refuse(503, "STORE_UNAVAILABLE", { retryAfterMs }), ok());
    const asking = s.client().lead("reports");
    await s.clock.advance(1_000);
    const [first, second, third] = s.of("acquire");
    assert.ok(second!.at - first!.at >= 50 && third!.at - second!.at >= 100);
    const lease = await asking;
    await s.clock.advance(60_000);
    assert.ok(lease.valid());
  }
});

test("the options may be undefined, and capabilities are no text", () => {
  const name: string | undefined = process.env["NO_SUCH_NAME"];
  const options: LeadOptions = { candidate: name, lease: name, wait: name, margin: name, note: name, viaPeer: name, capabilities: new Set(["gpu"]), onSuccession: undefined, onPromotion: undefined };
  // @ts-expect-error: a text is iterable, too
  options.capabilities = "gpu";
  assert.ok(new Script().client({ candidate: name, credential: name }));
});

test("the priority by cksum is that of cksum", () => {
  // $(($(printf %s ann | cksum | cut -d' ' -f1) - 2147483648))
  assert.equal(cksumPriority("ann"), -596111967);
  assert.equal(cksumPriority("a-much-longer-candidate.0123456789abcdef"), 1197918189);
});

test("a default candidate is the same after a restart, where the host has a name of its own", async (t) => {
  const logged: string[] = [];
  const log = (level: string, message: string): void => void logged.push(`${level} ${message}`);
  const on = async (env: Record<string, string>): Promise<string> => {
    const names = ["CLOUD_RUN_JOB", "CLOUD_RUN_TASK_INDEX", "K_SERVICE", "GCE_METADATA_HOST"];
    for (const name of names) if (env[name] === undefined) delete process.env[name]; else process.env[name] = env[name];
    try {
      return await defaultCandidate(log);
    } finally {
      for (const name of names) delete process.env[name];
    }
  };
  const url = await scripted(t, (_, response) => void response.writeHead(200, { "Metadata-Flavor": "Google" }).end("0069c7a98896d7d4a8c5a3ed\n"));
  const metadata = { K_SERVICE: "writer", GCE_METADATA_HOST: new URL(url).host };
  assert.equal(await on(metadata), "writer.d7d4a8c5a3ed");
  assert.equal(await on({ CLOUD_RUN_JOB: "nightly", CLOUD_RUN_TASK_INDEX: "3", K_SERVICE: "writer" }), "nightly-3");
  assert.equal(await on({ CLOUD_RUN_JOB: "a b/ü" }), "a-b---");
  const long = await on({ CLOUD_RUN_JOB: "j".repeat(200), CLOUD_RUN_TASK_INDEX: "1" });
  assert.match(long, /^j{111}\.[0-9a-f]{16}$/);
  assert.notEqual(await on({ CLOUD_RUN_JOB: "j".repeat(200), CLOUD_RUN_TASK_INDEX: "2" }), long);
  assert.deepEqual(logged, []);
  const gone = { K_SERVICE: "writer", GCE_METADATA_HOST: "127.0.0.1:1" };
  const first = await on(gone);
  assert.match(first, /^writer\.[0-9a-f]{16}$/);
  assert.notEqual(await on(gone), first);
  assert.equal(logged.length, 2);
  assert.match(logged[0]!, /^warn this host has no name of its own/);
});
