import assert from "node:assert/strict";
import { test } from "node:test";
import { type Lease } from "../src/index.ts";
import { Script, held, ok, refuse, reply, silent, unreachable, type Asked } from "./scripted.ts";

interface Renewal {
  election: string;
  fencingToken: number;
  ticket?: string;
}

const entries = (asked: Asked): Renewal[] => asked.body.renewals as Renewal[];
const lease = ({ election }: { election: string }): Record<string, unknown> => held({ election, ticket: "of " + election });
const result = ({ election }: Renewal): object => ({ election, lease: lease({ election }) });
const renewed = (asked: Asked): Response => reply({ results: entries(asked).map(result) });
const alone = (asked: Asked): Response => reply(lease(asked));

/** Returns a script and the leases of three elections of one client. The first may be due before the others can go with it. */
async function leading(): Promise<[Script, Lease[]]> {
  const s = new Script();
  const names = ["a", "b", "c"];
  s.on("acquire", ...names.map((election) => ok({ election })));
  s.on("renew", alone);
  s.on("release", ok({ election: "a", state: "vacant" }));
  s.on("batchRenew", renewed);
  const client = s.client();
  const leases = [];
  for (const name of names) leases.push(await client.lead(name));
  return [s, leases];
}

test("leases of one client are renewed together", async () => {
  const [s, leases] = await leading();
  await s.clock.advance(300_000);
  assert.ok(leases.every((l) => l.valid()));
  assert.ok(s.of("renew").length <= 1, `${s.of("renew").length} renewed by themselves`);
  const last = s.of("batchRenew").slice(-5);
  assert.ok(last.every((a) => entries(a).length === 3), "after some periods all go in one call");
  assert.ok(last.every((a) => entries(a).every((r) => r.ticket === "of " + r.election)), "with their tickets");
  assert.ok(s.of("batchRenew").length < 50, `${s.of("batchRenew").length} calls in ten lives of a lease`);
});

test("each lease of a batch has its own answer", async () => {
  const [s, [a, b, c]] = await leading();
  const answers = (asked: Asked): Response =>
    reply({ results: entries(asked).map((r) => (r.election === "b" ? { election: "b", error: { code: "LEASE_LOST", status: 409, detail: "it says so", title: "", type: "" } } : result(r))) });
  s.on("batchRenew", answers);
  await s.clock.advance(100_000);
  assert.deepEqual([a!.valid(), b!.valid(), c!.valid()], [true, false, true]);
});

const wrong: Record<string, (asked: Asked) => Response> = {
  "in another order": (asked) => reply({ results: entries(asked).map(result).reverse() }),
  "too few": (asked) => reply({ results: entries(asked).map(result).slice(1) }),
  "of another leader": (asked) => reply({ results: entries(asked).map((r) => ({ election: r.election, lease: held({ election: r.election, leaderId: "bob" }) })) }),
  "of another token": (asked) => reply({ results: entries(asked).map((r) => ({ election: r.election, lease: held({ election: r.election, fencingToken: 9 }) })) }),
};
for (const [name, answer] of Object.entries(wrong)) {
  test(`results ${name} extend nothing`, async () => {
    const [s, leases] = await leading();
    s.on("renew", silent);
    s.on("batchRenew", answer);
    await s.clock.advance(40_000);
    assert.ok(leases.every((l) => !l.valid()));
  });
}

test("a batch that fails is followed by renewals of each lease", async () => {
  for (const failure of [unreachable, silent, refuse(503, "STORE_UNAVAILABLE"), refuse(404, "NOT_FOUND"), refuse(429, "RATE_LIMITED"), () => new Response("gone", { status: 404 })]) {
    const [s, leases] = await leading();
    s.on("batchRenew", failure);
    s.on("renew", alone);
    await s.clock.advance(60_000);
    assert.ok(leases[0]!.valid());
    assert.ok(s.of("renew").length > 3);
  }
});

test("a server that takes no batches is asked for none for ten minutes", async () => {
  const [s] = await leading();
  s.on("batchRenew", refuse(404, "NOT_FOUND"));
  s.on("renew", alone);
  await s.clock.advance(60_000);
  assert.equal(s.of("batchRenew").length, 1);
});

test("a lease that is released leaves a batch that is under way to the others", async () => {
  const [s, leases] = await leading();
  await s.clock.advance(100_000); // until they go together
  const waiting: (() => void)[] = [];
  s.on("batchRenew", (asked) => new Promise((resolve) => waiting.push(() => resolve(renewed(asked)))));
  while (waiting.length === 0) await s.clock.advance(100);
  s.on("batchRenew", renewed);
  const releasing = leases[0]!.release();
  waiting[0]!();
  await s.clock.advance(1_000);
  await releasing;
  await s.clock.advance(60_000);
  assert.deepEqual(leases.map((l) => l.valid()), [false, true, true]);
  assert.ok(entries(s.of("batchRenew").at(-1)!).every((r) => r.election !== "a"));
});

test("a batch for which no lease waits any more is cancelled", async () => {
  const [s, leases] = await leading();
  s.on("batchRenew", silent);
  while (s.of("batchRenew").length === 0) await s.clock.advance(100);
  const { signal } = s.of("batchRenew")[0]!;
  assert.equal(signal.aborted, false);
  for (const lease of leases) void lease.release();
  await s.clock.advance(100);
  assert.equal(signal.aborted, true);
});

test("the log says once why there is no statement", async () => {
  const s = new Script();
  s.on("acquire", ok({ statementError: "no key" }));
  let n = 0;
  s.on("renew", (asked) => reply({ ...lease(asked), statementError: ++n < 5 ? "no key" : "the key is away" }));
  await s.client().lead("reports", { statement: true });
  while (n < 10) await s.clock.advance(1000);
  const said = s.logged.filter((line) => line.startsWith("warn the lease has no statement"));
  assert.deepEqual(said.map((line) => line.slice(line.lastIndexOf("}") + 2)), ["no key", "the key is away"]);
});

test("leases with statements are renewed by themselves", async () => {
  const s = new Script();
  s.on("acquire", ok({ election: "a", statement: "a 0" }), ok({ election: "b", statement: "b 0" }));
  let n = 0;
  s.on("renew", (asked) => reply({ ...lease(asked), ...(++n < 20 ? { statement: `${asked.election} ${n}` } : {}) }));
  s.on("release", ok({ election: "a", state: "vacant" }));
  const client = s.client();
  const leases = [await client.lead("a", { statement: true }), await client.lead("b", { statement: true })];
  assert.deepEqual(leases.map((l) => l.statement), ["a 0", "b 0"]);
  await s.clock.advance(30_000);
  assert.ok(leases.every((l) => /^[ab] [1-9]/.test(l.statement!)), "of the last renewal");
  await s.clock.advance(300_000);
  assert.ok(leases.every((l) => l.statement === undefined && l.valid()), "the server cannot sign any more");
  assert.equal(s.of("batchRenew").length, 0);
  assert.ok([...s.of("acquire"), ...s.of("renew")].every((a) => a.body.statement === true));
});
