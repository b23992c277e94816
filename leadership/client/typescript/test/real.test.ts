// With a real server, whose address is in REGENT_TEST_SERVER.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Client } from "../src/index.ts";

const server = process.env.REGENT_TEST_SERVER ?? "";
const skip = server ? false : "there is no REGENT_TEST_SERVER";

test("many leases of a client go on together", { skip }, async () => {
  const client = new Client(server, { candidate: "ann" });
  const names = Array.from({ length: 12 }, (_, i) => `many-${i}`);
  const leases = await Promise.all(names.map((name) => client.lead(name, { lease: "30s" })));
  const revisions = await Promise.all(names.map(async (name) => (await client.read(name, { strong: true })).lastHeartbeat));
  assert.ok(leases.every((l) => l.valid()) && revisions.every((at) => at));
  await Promise.all(leases.map((l) => l.release()));
  for (const name of names) assert.equal((await client.read(name, { strong: true })).state, "vacant");
});

test("a seat whose grant is lost is got again, or given back", { skip }, async () => {
  const body = JSON.stringify({ policy: { seats: 2 } });
  const made = await fetch(`${server}/v1/elections/gpu`, { method: "PUT", headers: { "Content-Type": "application/json", "If-None-Match": "*" }, body });
  assert.ok(made.ok, await made.text());
  let lose = 1;
  const losing: typeof fetch = async (url, init) => {
    const reply = await fetch(url, init);
    if (!String(url).endsWith(":acquire") || lose-- <= 0) return reply;
    await reply.text();
    throw new TypeError("terminated");
  };
  const client = new Client(server, { candidate: "ann", fetch: losing });
  const lease = await client.lead("gpu", { lease: "30s" });
  const why = await client.explain("gpu", "ann");
  assert.deepEqual([why.leads, `gpu.${why.seat}`, lease.token], [true, lease.election, 1]);
  const { seats, nodes } = await client.members("gpu");
  assert.deepEqual([seats, nodes.map((n) => [n.id, n.role, n.seat])], [2, [["ann", "leader", why.seat]]]);
  await lease.release();
  lose = 1000;
  await assert.rejects(client.lead("gpu", { wait: 0 }));
  const left = await Promise.all([1, 2].map((n) => client.read(`gpu.${n}`, { strong: true })));
  assert.deepEqual(left.map((l) => l.state), ["vacant", "vacant"]);
  assert.equal(left[0]!.fencingToken + left[1]!.fencingToken, 2);
});
