import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { test } from "node:test";
import { Client, InvalidArgument, LeaseHeld, LeaseLost, NotEligible, NotReady, type LeadOptions } from "../src/index.ts";
import { successionAfter } from "../src/succession.ts";
import type { ElectionEvent } from "../src/schemas.ts";
import { Script, held, ok, refuse, vacant } from "./scripted.ts";
import { line, message, reply, scripted, serve, until } from "./support.ts";

const clientOf = (url: string, candidate: string): Client => new Client(url, { candidate });

/** The types of the events of an election. */
const history = async (client: Client): Promise<string[]> => (await client.events("plan")).map((e) => e.type);

test("a successor whose call is not answered asks for what was yielded to it", async (t) => {
  const asked: string[] = [];
  const state = { election: "plan", state: "held", leaderId: "ann", fencingToken: 1, revision: 1, leaseDuration: "30s", expiresInMs: 30_000, readAt: "2026-01-01T00:00:00Z" };
  const event = (revision: number, type: string, detail: object): string =>
    message({ id: revision, data: { election: "plan", revision, type, at: state.readAt, leaderId: "ann", fencingToken: 1, detail } });
  let stream: ServerResponse | undefined;
  const url = await scripted(t, (request, response) => {
    let body = "";
    request.on("data", (part: Buffer) => (body += part));
    request.on("end", () => {
      const verb = request.url!.replace(/.*[:/]/, "");
      asked.push(verb + (body.includes('"wait"') ? " and waits" : ""));
      if (verb === "events") {
        stream = response.writeHead(200, { "content-type": "text/event-stream" });
        stream.write(message({ name: "snapshot", id: 1, data: state }) + event(2, "handingOver", { to: "bob" }));
      } else if (verb === "ready") {
        reply(response, 200, { ...state, revision: 3 });
        stream!.write(event(3, "ready", { candidateId: "bob" }) + event(4, "yielded", { to: "bob" }));
      } else if (verb === "release" || asked.at(-1) === "acquire") {
        reply(response, 200, { ...state, leaderId: "bob", fencingToken: 2, revision: 5, renewInMs: 10_000 });
      } // the call that waits is not answered
    });
  });
  const lease = await clientOf(url, "bob").lead("plan");
  assert.equal(lease.token, 2);
  await lease.release();
  assert.deepEqual(asked.sort(), ["acquire", "acquire and waits", "events", "ready", "release"]); // a request may be late
});

test("a hand-over goes through a connection that is cut", async (t) => {
  const server = await serve(t);
  const proxy = await line(t, () => server.url);
  const ann = clientOf(proxy.url, "ann");
  await using first = await ann.lead("plan");
  const waiting = clientOf(proxy.url, "bob").lead("plan");
  await until(async () => (await ann.members("plan")).nodes.length === 2);
  const cutting = setInterval(() => proxy.cut(), 150);
  t.after(() => clearInterval(cutting));
  await first.handOver({ to: "bob", within: "1m" }).catch((e) => assert.ok(e instanceof NotEligible, String(e)));
  clearInterval(cutting);
  await first.release();
  await using second = await waiting;
  assert.equal(second.token, 2);
  await second.release();
});

test("a successor that is not ready in time leaves the leader to end its work", async (t) => {
  const server = await serve(t);
  const ann = clientOf(server.url, "ann");
  await using first = await ann.lead("plan", { lease: "2s" });
  let aborted = false;
  const stop = new AbortController();
  const bob = clientOf(server.url, "bob").lead("plan", {
    signal: stop.signal,
    onSuccession: ({ signal }) => new Promise((resolve) => signal.addEventListener("abort", () => {
      aborted = true;
      resolve();
    })),
  });
  await until(async () => (await ann.members("plan")).nodes.length === 2);
  await assert.rejects(first.handOver({ within: "1s" }), NotReady);
  await first.release();
  await using second = await bob; // it is the next in line all the same
  assert.equal(second.token, 2);
  await until(() => aborted);
  await second.release();
});

test("a candidate that leads does not wait for an onSuccession that does not end", async () => {
  for (const aborts of [false, true]) {
    const s = new Script();
    const named = refuse(409, "LEASE_HELD", held({ leaderId: "bob", succession: { to: "ann", since: "2026-01-01T00:00:00Z", untilMs: 30_000, ready: false } }));
    s.on("acquire", named, ok({ fencingToken: 2, revision: 2 })); // bob has died meanwhile
    s.on("release", vacant);
    const stop = new AbortController();
    let signal: AbortSignal | undefined;
    const asking = s.client().lead("reports", { signal: stop.signal, onSuccession: (n) => { signal = n.signal; return new Promise(() => {}); } });
    const ended = asking.then((lease) => lease.valid(), (e: unknown) => String(e));
    await s.clock.advance(500);
    assert.equal(s.of("acquire").length, 2);
    assert.ok(signal?.aborted);
    if (aborts) stop.abort(new Error("enough"));
    await s.clock.advance(1_000);
    assert.equal(await ended, aborts ? "Error: enough" : true);
    assert.equal(s.of("release").length, aborts ? 1 : 0);
    if (!aborts) await (await asking).release();
  }
});

test("run hands over when its signal fires", async (t) => {
  const server = await serve(t);
  const ann = clientOf(server.url, "ann");
  const stop = new AbortController();
  let leads = false;
  const first = ann.run("plan", (lease) => {
    leads = true;
    return new Promise<boolean>((resolve) => lease.signal.addEventListener("abort", () => resolve(lease.succession?.ready ?? false)));
  }, { signal: stop.signal, handOverWithin: "1m" });
  await until(() => leads);
  const second = clientOf(server.url, "bob").lead("plan");
  await until(async () => (await ann.members("plan")).nodes.length === 2);
  stop.abort();
  assert.equal(await first, true); // the successor was ready when the body was stopped
  await using lease = await second;
  assert.deepEqual((await history(ann)).slice(-3), ["yielded", "released", "acquired"]);
  await lease.release();
});

test("run stops at once when its signal fires and no candidate waits", async (t) => {
  const server = await serve(t);
  const stop = new AbortController();
  const client = clientOf(server.url, "ann");
  const led = client.run("plan", (lease) => {
    stop.abort();
    return new Promise<void>((resolve) => lease.signal.addEventListener("abort", () => resolve()));
  }, { signal: stop.signal, handOverWithin: "6s" });
  await led;
  assert.deepEqual(await history(client), ["acquired", "released"]);
  await assert.rejects(client.run("plan", () => assert.fail(), { signal: stop.signal, handOverWithin: "6s" }), { name: "AbortError" });
});

async function configure(url: string, policy: object): Promise<void> {
  const reply = await fetch(`${url}/v1/elections/plan`, { method: "PUT", headers: { "content-type": "application/json", "if-none-match": "*" }, body: JSON.stringify({ policy }) });
  assert.equal(reply.status, 200, await reply.text());
}

test("a new leader serves once it has prepared, where the policy asks for that", async (t) => {
  const server = await serve(t);
  await configure(server.url, { promotion: true });
  const client = clientOf(server.url, "ann");
  const write = (token: number): Promise<unknown> => client.checkToken("plan", token, { use: "write" });
  const options: LeadOptions = { onPromotion: (lease) => assert.rejects(write(lease.token), NotReady) };
  await using lease = await client.lead("plan", options);
  await write(lease.token);
  await lease.release();
  const failing = client.lead("plan", { onPromotion: () => { throw new Error("the state is not readable"); } });
  await assert.rejects(failing, /not readable/);
  assert.equal((await client.read("plan", { strong: true })).state, "vacant");
});

test("a leader steps down with a reason, and asks for an approval", async (t) => {
  const server = await serve(t);
  const client = clientOf(server.url, "ann");
  const other = await client.lead("other");
  await assert.rejects(other.requestApproval("the second phase begins"), InvalidArgument); // the policy needs none
  await other.release();
  await configure(server.url, { approval: { every: "1h" } });
  const lease = await client.lead("plan");
  for (const reason of ["", "a\nb", "x".repeat(257), null as never, 7 as never]) await assert.rejects(lease.stepDown(reason), InvalidArgument);
  await assert.rejects(lease.stepDown("tired", { absence: "1ms" }), InvalidArgument);
  assert.ok(lease.valid());
  await assert.rejects(lease.requestApproval("x", 7 as never), InvalidArgument);
  await lease.requestApproval("the second phase begins", { newEpoch: true });
  const asked = (await client.events("plan")).at(-1)!;
  assert.deepEqual([asked.type, asked.reason, asked.detail?.["newEpoch"]], ["approvalRequested", "the second phase begins", true]);
  await lease.stepDown("the disk is full", { absence: "1m" });
  await assert.rejects(lease.stepDown("again"), (e: LeaseLost) => e.end === "RESIGNED" && /without this reason/.test(e.message));
  const last = (await client.events("plan")).at(-1)!;
  assert.deepEqual([last.type, last.reason], ["released", "the disk is full"]);
  await assert.rejects(client.lead("plan", { wait: 0 }), LeaseHeld);
  assert.deepEqual((await client.explain("plan", "ann")).reasons.map((r) => r.code).slice(0, 1), ["BANNED"]);
});

test("wrong arguments of a leader's calls are refused, and the lease goes on", async (t) => {
  const server = await serve(t);
  await using lease = await clientOf(server.url, "ann").lead("plan");
  await assert.rejects(lease.handOver({ within: "1ms" }), InvalidArgument);
  await assert.rejects(lease.handOver({ to: "a b" }), InvalidArgument);
  await assert.rejects(lease.awaitFollowers(0), InvalidArgument);
  await assert.rejects(lease.delegate("A"), InvalidArgument);
  assert.ok(lease.valid());
  await lease.release();
  await assert.rejects(lease.handOver(), LeaseLost);
  await assert.rejects(lease.checkpoint.put(1), LeaseLost);
});

test("the events of a hand-over are understood", () => {
  const event = (type: string, detail: object, leaderId?: string): ElectionEvent => ({
    election: "plan", revision: 2, type, at: "2026-01-01T00:00:00Z", fencingToken: 1, detail: detail as Record<string, never>, ...(leaderId ? { leaderId } : {}),
  });
  const named = successionAfter(undefined, event("handingOver", { to: "bob", endsBy: "2026-01-01T00:00:30Z" }, "ann"))!;
  assert.deepEqual([named.to, named.untilMs, named.ready], ["bob", 30_000, false]);
  assert.equal(successionAfter(undefined, event("assigned", { candidateId: "bob" }, "ann"))?.to, "bob");
  assert.equal(successionAfter(undefined, event("assigned", { candidateId: "ann" }, "ann")), undefined);
  assert.equal(successionAfter(named, event("ready", { candidateId: "bob" }, "ann"))?.ready, true);
  assert.equal(successionAfter(named, event("serving", {}, "ann"))?.ready, false);
  assert.equal(successionAfter(named, event("yielded", { to: "bob" }, "ann"))?.yielded, true);
  for (const type of ["goesOn", "acquired"]) assert.equal(successionAfter(named, event(type, {}, "ann")), undefined);
  assert.equal(successionAfter(named, event("configured", {}, "ann")), named);
  assert.equal(successionAfter(named, event("released", {})), undefined);
});
