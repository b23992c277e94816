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
