// With a real server, whose address is in REGENT_TEST_SERVER.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Client, LeaseHeld } from "../src/index.ts";

const server = process.env.REGENT_TEST_SERVER ?? "";
const skip = server ? false : "there is no REGENT_TEST_SERVER";
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

test("leads, renews and releases, and tokens rise", { skip }, async () => {
  const client = new Client(server, { candidate: "ann" });
  const bob = new Client(server, { candidate: "bob" });
  let first: number;
  {
    await using lease = await client.lead("real", { lease: "5s" });
    first = lease.token;
    await assert.rejects(bob.lead("real", { wait: 0 }), (e: LeaseHeld) => e instanceof LeaseHeld && e.problem?.leaderId === "ann");
    lease.report({ progress: 3, eta: "20m", custom: { of: ["work"] } });
    for (let now = await client.read("real", { strong: true }); now.report === undefined; now = await client.read("real", { strong: true })) await pause(50);
    lease.check();
  }
  assert.equal(await bob.run("real", (lease) => lease.token), first + 1);
});

test("many leases of a client go on together", { skip }, async () => {
  const client = new Client(server, { candidate: "ann" });
  const names = Array.from({ length: 12 }, (_, i) => `many-${i}`);
  const leases = await Promise.all(names.map((name) => client.lead(name, { lease: "30s" })));
  const revisions = await Promise.all(names.map(async (name) => (await client.read(name, { strong: true })).lastHeartbeat));
  assert.ok(leases.every((l) => l.valid()) && revisions.every((at) => at));
  await Promise.all(leases.map((l) => l.release()));
  for (const name of names) assert.equal((await client.read(name, { strong: true })).state, "vacant");
});

test("a candidate that gives up leaves nothing behind", { skip }, async () => {
  const client = new Client(server, { candidate: "ann" });
  const giveUp = async (delay: number): Promise<void> => {
    const election = `given-up-${delay}`;
    const stop = new AbortController();
    const asking = client.lead(election, { signal: stop.signal }).then((lease) => lease.release(), () => {});
    await pause(delay);
    stop.abort();
    await asking;
    const now = await client.read(election, { strong: true }).catch(() => ({ state: "vacant" }));
    assert.equal(now.state, "vacant", `after ${delay} ms`);
  };
  await Promise.all(Array.from({ length: 10 }, (_, i) => giveUp(2 * i)));
});
