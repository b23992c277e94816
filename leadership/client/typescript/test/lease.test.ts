import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";
import { InvalidArgument, LeaseLost, type Lease } from "../src/index.ts";
import { Script, broken, late, ok, refuse, reply, held, settle, silent, unreachable, vacant } from "./scripted.ts";

/** Returns a script whose server grants and renews leases, and a lease of it. */
async function leading(more: Record<string, unknown> = {}): Promise<[Script, Lease]> {
  const s = new Script();
  s.on("acquire", ok(more));
  s.on("renew", ok(more));
  s.on("release", vacant);
  return [s, await s.client().lead("reports")];
}

const lost = (lease: Lease): LeaseLost => {
  assert.throws(() => lease.check(), LeaseLost);
  try {
    lease.check();
  } catch (e) {
    return e as LeaseLost;
  }
  throw new Error("unreachable");
};

test("the deadline counts from before the request left", async () => {
  const s = new Script();
  s.on("acquire", late(s, 4_000, ok()));
  const asking = s.client().lead("reports");
  await s.clock.advance(4_000);
  const lease = await asking;
  assert.equal(lease.remaining(), 30_000 * 0.999 - 1_000 - 4_000);
});

test("what the server says that it waited moves the deadline, less the drift of two clocks, and no more than it may have been", async () => {
  for (const [waitedMs, counts] of [[3_000, 3_000], [59_000, 4_000]] as const) {
    const s = new Script();
    s.on("acquire", late(s, 4_000, ok({ waitedMs })));
    const asking = s.client().lead("reports");
    await s.clock.advance(4_000);
    const left = (await asking).remaining();
    const want = (counts * 0.999 + 30_000) * 0.999 - 1_000 - 4_000;
    assert.ok(left <= want && left > want - 2, `${left}, want ${want}`);
  }
});

test("the resolution of the clock is counted against the leader", async () => {
  const [s, lease] = await leading();
  const left = lease.remaining();
  Object.assign(s.clock, { resolution: 10 });
  assert.equal(lease.remaining(), left - 10);
});

test("a margin shortens the belief, and one that leaves nothing is refused and the lease given back", async () => {
  const s = new Script();
  s.on("acquire", ok());
  s.on("get", ok());
  s.on("release", vacant);
  const lease = await s.client().lead("reports", { margin: "5s" });
  assert.equal(lease.remaining(), 30_000 * 0.999 - 5_000);
  await assert.rejects(s.client().lead("reports", { margin: "30s" }), InvalidArgument);
  assert.equal(s.of("release").length, 1);
  await assert.rejects(s.client().lead("reports", { margin: "2s", lease: "2s" }), InvalidArgument);
  assert.equal(s.of("acquire").length, 2, "the second is refused before it is sent");
});

test("no timer decides: the clock is read at each question", async () => {
  const [s, lease] = await leading();
  const { signal } = lease;
  s.clock.jump(29_000);
  assert.equal(signal.aborted, false, "no timer has fired");
  assert.equal(lease.valid(), false);
  assert.equal(signal.aborted, true);
  assert.equal(lost(lease).end, "DEADLINE");
});

test("the signal fires at the deadline though nothing asks", async () => {
  const [s, lease] = await leading();
  s.on("renew", silent);
  const { signal } = lease;
  await s.clock.advance(28_969);
  assert.equal(signal.aborted, false);
  await s.clock.advance(2);
  assert.equal(signal.aborted, true);
  assert.ok(signal.reason instanceof LeaseLost);
});

test("a log that throws costs no lease", async () => {
  const s = new Script();
  for (const call of ["acquire", "renew"]) s.on(call, ok());
  const log = (): never => {
    throw new Error("the disk is full");
  };
  const lease = await s.client({ log }).lead("reports");
  s.on("renew", unreachable);
  await s.clock.advance(12_000);
  s.on("renew", ok());
  await s.clock.advance(60_000);
  assert.ok(lease.valid());
});

test("an answer that arrives with the deadline passed extends nothing", async () => {
  const [s, lease] = await leading();
  const deaf = new Script(); // ignores that its caller gives up
  s.on("renew", (asked) => new Promise((resolve) => deaf.clock.timer(1, () => resolve(ok()(asked) as Response))));
  await s.clock.advance(10_000);
  s.clock.jump(20_000);
  await deaf.clock.advance(1); // before any timer has fired
  await settle();
  assert.equal(lease.valid(), false);
});

test("a lease that the policy has ended says so", async () => {
  const [s, lease] = await leading();
  s.on("renew", refuse(409, "LEASE_LOST", { reason: "DEPOSED" }));
  await s.clock.advance(10_000);
  assert.equal(lost(lease).reason, "DEPOSED");
  const kinds = [];
  for await (const n of lease.notices()) kinds.push(n.kind);
  assert.deepEqual(kinds, ["tripped"]);
});

const failures = {
  STORE_UNAVAILABLE: refuse(503, "STORE_UNAVAILABLE"),
  OUTCOME_UNKNOWN: refuse(504, "OUTCOME_UNKNOWN"),
  DRAINING: refuse(503, "DRAINING"),
  RATE_LIMITED: refuse(429, "RATE_LIMITED"),
  INTERNAL: refuse(500, "INTERNAL"),
  "an answer of a proxy": () => new Response("<html>", { status: 502 }),
  "a success that is not Regent's": () => new Response("{}", { headers: { "content-type": "application/json" } }),
  "no answer": broken,
  "no connection": unreachable,
  "another candidate's lease": ok({ leaderId: "bob" }),
  "another election": ok({ election: "others" }),
  "another token": ok({ fencingToken: 2 }),
  "a lease without its time": ok({ expiresInMs: undefined }),
  "a time that is no number": ok({ expiresInMs: "30000" }),
};
for (const [name, answer] of Object.entries(failures)) {
  test(`a renewal with ${name} is repeated, and extends nothing`, async () => {
    const [s, lease] = await leading();
    const before = s.clock.now() + lease.remaining();
    s.on("renew", answer);
    await s.clock.advance(20_000);
    assert.ok(lease.valid(), "it leads until its deadline");
    assert.equal(s.clock.now() + lease.remaining(), before);
    assert.ok(s.of("renew").length >= 2, "it is repeated");
    s.on("renew", ok());
    await s.clock.advance(8_000);
    assert.ok(lease.remaining() > 15_000, "an answer extends it again");
    s.on("renew", answer);
    await s.clock.advance(60_000);
    assert.equal(lost(lease).end, "DEADLINE");
  });
}

test("a server that claims more than the lease has is not believed", async () => {
  const [, lease] = await leading({ expiresInMs: 3_000_000 });
  assert.ok(lease.remaining() < 30_000);
});

test("an epoch of another leader, or of no later token, is the end", async () => {
  for (const more of [{ leaderId: "bob", fencingToken: 2 }, { fencingToken: 1 }, { election: "others", fencingToken: 2 }]) {
    const [s, lease] = await leading();
    s.on("renew", refuse(409, "LEASE_LOST", { ...held(more), reason: "EPOCH" }));
    await s.clock.advance(10_000);
    assert.equal(lost(lease).end, "LEASE_LOST");
  }
});

test("await using releases after the block, also when it throws", async () => {
  const [s] = await leading();
  const block = async (): Promise<void> => {
    await using lease = await s.client().lead("reports");
    assert.ok(lease.valid());
    assert.equal(s.of("release").length, 0);
    throw new Error("from the body");
  };
  await assert.rejects(block(), /from the body/);
  assert.equal(s.of("release").length, 1);
});

test("a lease whose deadline has passed is not released", async () => {
  const [s, lease] = await leading();
  s.clock.jump(40_000);
  await lease.release();
  assert.equal(s.of("release").length, 0);
});

test("a release that meets a new epoch releases the token of that", async () => {
  const [s, lease] = await leading();
  s.on("release", ok({ fencingToken: 3 }), vacant);
  await lease.release();
  assert.deepEqual(s.of("release").map((a) => a.body.fencingToken), [1, 3]);
});

test("a release says how the work has ended, if the server takes that", async () => {
  const said = (s: Script): unknown[] => s.of("release").map((a) => [a.body.outcome, a.body.note]);
  const [s, lease] = await leading();
  for (const wrong of [{ outcome: "fine" }, { note: "why" }, { outcome: "failed", note: "x".repeat(257) }, { outcome: "failed", note: "two\nlines" }]) {
    await assert.rejects(lease.release(wrong as never), InvalidArgument);
  }
  assert.ok(lease.valid());
  await lease.release({ outcome: "failed", note: "no input" });
  await lease.release({ outcome: "done" });
  assert.deepEqual(said(s), [["failed", "no input"]]);
  const [old, other] = await leading();
  old.on("release", refuse(400, "INVALID_ARGUMENT"), vacant);
  await other.release({ outcome: "done" });
  assert.deepEqual(said(old), [["done", undefined], [undefined, undefined]]);
});

test("run says done, failed, or stopped", async () => {
  const s = new Script();
  s.on("acquire", ok());
  s.on("release", vacant);
  await s.client().run("reports", () => 7);
  await assert.rejects(s.client().run("reports", () => { throw new Error("no disk\tis left\nat all"); }));
  const stop = new AbortController();
  await s.client().run("reports", () => stop.abort(), { signal: stop.signal });
  assert.deepEqual(s.of("release").map((a) => [a.body.outcome, a.body.note]), [
    ["done", undefined], ["failed", undefined], ["stopped", undefined],
  ]);
});

test("stepping down from a lease that is over says so", async () => {
  const [s, lease] = await leading();
  s.on("stepDown", vacant);
  s.clock.jump(40_000);
  await assert.rejects(lease.stepDown("tired"), (e: LeaseLost) => e.end === "DEADLINE");
  const [other, second] = await leading();
  other.on("renew", refuse(409, "LEASE_LOST"));
  await other.clock.advance(10_000);
  await assert.rejects(second.stepDown("tired"), (e: LeaseLost) => e.end === "LEASE_LOST");
  const [, third] = await leading();
  await third.release();
  await assert.rejects(third.stepDown("tired"), (e: LeaseLost) => e.end === "RESIGNED");
  assert.equal(s.of("stepDown").length + other.of("stepDown").length, 0);
});

const effect = { election: "reports", effectId: "mail", state: "new", fencingToken: 1, leaderId: "ann", at: "2026-01-01T00:00:00Z" };

test("an effect is not new once the lease is over by the clock, though no timer has fired", async () => {
  const suspended = async (verb: string): Promise<Lease> => {
    const [s, lease] = await leading();
    s.on(verb, () => {
      s.clock.jump(40_000);
      return reply(effect);
    });
    return lease;
  };
  const lease = await suspended("begin");
  await assert.rejects(lease.beginEffect("mail"), (e: LeaseLost) => e.end === "DEADLINE");
  await (await suspended("finish")).finishEffect("mail"); // what is done is done
});

test("an answer about another effect is not believed", async () => {
  const [s, lease] = await leading();
  s.on("begin", () => reply({ ...effect, effectId: "letter" }), () => reply(effect));
  const begun = lease.beginEffect("mail");
  await s.clock.advance(5_000);
  assert.equal((await begun).effectId, "mail");
  assert.equal(s.of("begin").length, 2);
});

test("wrong arguments are refused, and the lease goes on", async () => {
  const [s, lease] = await leading();
  s.on("open", () => reply({ election: "reports", index: 0 }));
  for (const report of [null, 5, "ok", []]) assert.throws(() => lease.report(report as never), InvalidArgument);
  const journal = await lease.journal();
  for (const entries of [null, 5, [null], ["a"]]) await assert.rejects(journal.append(entries as never), InvalidArgument);
  await assert.rejects(journal.append({ data: 1 }, null as never), InvalidArgument);
  await assert.rejects(lease.checkpoint.put(1, { signal: {} as never }), InvalidArgument);
  await assert.rejects(lease.beginEffect("mail", null as never), InvalidArgument);
  await assert.rejects(lease.handOver(null as never), InvalidArgument);
  await assert.rejects(lease.stepDown("tired", null as never), InvalidArgument);
  assert.ok(lease.valid());
});

test("releasing twice is one release, and nothing is renewed afterwards", async () => {
  const [s, lease] = await leading();
  await Promise.all([lease.release(), lease[Symbol.asyncDispose]()]);
  assert.equal(lease.valid(), false);
  await s.clock.advance(60_000);
  assert.equal(s.of("release").length, 1);
  assert.equal(s.of("renew").length, 0);
});

test("run tells that the lease was over before its body returned", async () => {
  const [s] = await leading();
  s.on("renew", refuse(409, "LEASE_LOST"));
  const running = s.client().run("reports", (lease) => new Promise<void>((resolve) => lease.signal.addEventListener("abort", () => resolve())));
  const failed = assert.rejects(running, (e: LeaseLost) => e.end === "LEASE_LOST" && !e.overran);
  await s.clock.advance(12_000);
  await failed;

  s.on("renew", silent);
  let finish: () => void = () => {};
  const overrun = s.client().run("reports", () => new Promise<void>((resolve) => (finish = resolve)));
  const over = assert.rejects(overrun, (e: LeaseLost) => e.end === "DEADLINE" && e.overran);
  await s.clock.advance(31_000);
  finish();
  await over;
});

test("the signal of the call ends the term, and the lease is released after the body", async () => {
  const s = new Script();
  s.on("acquire", ok());
  s.on("renew", ok());
  s.on("release", vacant);
  const stop = new AbortController();
  const lease = await s.client().lead("reports", { signal: stop.signal });
  stop.abort(new Error("enough"));
  assert.equal(lease.valid(), false);
  assert.throws(() => lease.check(), /enough/);
  assert.equal(s.of("release").length, 0);
  await lease.release();
  assert.equal(s.of("release").length, 1);
});

test("a lease ends with the one that it stands on", async () => {
  const s = new Script();
  s.on("acquire", ok(), ok({ election: "parts" }));
  const parent = await s.client().lead("reports");
  const lease = await s.client().lead("parts", { via: parent });
  assert.deepEqual(s.of("acquire")[1]!.body.via, { election: "reports", fencingToken: 1 });
  s.on("renew", ok({ election: "parts" })); // the parent is not renewed
  s.clock.jump(28_970);
  assert.equal(lease.valid(), false);
  assert.equal(lost(lease).end, "ORPHANED");
  await assert.rejects(s.client().lead("parts", { via: parent, candidate: "bob" }), InvalidArgument);
});

test("neither the key nor the bearer token is shown", async () => {
  const s = new Script();
  s.on("acquire", ok());
  s.on("renew", (asked) => new Response(`you sent ${JSON.stringify(asked.body)} ${asked.headers.get("authorization")}`, { status: 502 }));
  const bearer = "bearer-of-" + "x".repeat(40);
  const client = s.client({ credential: bearer });
  const lease = await client.lead("reports");
  await s.clock.advance(40_000);
  const key = String(s.of("acquire")[0]!.body.key);
  assert.equal(key.length, 43);
  assert.equal(s.asked[0]!.headers.get("authorization"), "Bearer " + bearer);
  const why = lost(lease);
  const all = [inspect(lease, { depth: 9, showHidden: true }), JSON.stringify(lease), inspect(client, { depth: 9, showHidden: true }), inspect(why, { depth: 9 }), JSON.stringify(why), why.stack, ...s.logged].join("\n");
  assert.match(all, /502/);
  assert.ok(!all.includes(key), "the key is shown");
  assert.ok(!all.includes(bearer), "the bearer token is shown");
});
