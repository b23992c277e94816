import assert from "node:assert/strict";
import { test } from "node:test";
import { Client, HistoryCompacted, IndexMismatch, InvalidArgument, PermissionDenied, RevisionMismatch } from "../src/index.ts";
import { watch } from "../src/watch.ts";
import { folder, message, reply, scripted, serve, take, until } from "./support.ts";

/** Leads so many times. */
async function terms(client: Client, election: string, count: number): Promise<void> {
  for (let i = 0; i < count; i++) await client.run(election, () => {}, { lease: "30s" });
}

test("a loop goes on after the server has started again", async (t) => {
  const server = await serve(t, `file:${folder(t)}`);
  const client = new Client(server.url, { candidate: "ann" });
  await terms(client, "plan", 2);
  const seen: number[] = [];
  let failed = 0;
  const loop = (async () => {
    for await (const e of client.observe("plan", { after: 0, onConnection: (e) => e && failed++ })) {
      seen.push(e.revision);
      if (seen.length === 8) break;
    }
  })();
  await until(() => seen.length === 4);
  await server.kill();
  await until(() => failed > 0);
  await server.start();
  await terms(client, "plan", 2);
  await loop;
  assert.deepEqual(seen, [1, 2, 3, 4, 5, 6, 7, 8]);
});

test("all elections of a prefix are observed", async (t) => {
  const server = await serve(t);
  const client = new Client(server.url, { candidate: "ann" });
  for (const election of ["jobs.a", "jobs.b", "other"]) await terms(client, election, 1);
  const states = await take(client.observe({ prefix: "jobs." }), 2);
  assert.deepEqual(states.map((s) => [s.election, s.type, s.revision]), [["jobs.a", undefined, 2], ["jobs.b", undefined, 2]]);
  assert.equal(states[0]!.cursor, undefined); // one cannot continue before all states are told
  await terms(client, "other", 1);
  await terms(client, "jobs.a", 1);
  const events: unknown[] = [];
  for await (const e of client.observe({ prefix: "jobs." }, { after: states[1]!.cursor })) {
    if (e.revision > 2) events.push([e.election, e.type, e.revision]); // others may come again
    if (e.revision === 4) break;
  }
  assert.deepEqual(events, [["jobs.a", "acquired", 3], ["jobs.a", "released", 4]]);
});

test("a watch tells of members that come and go", async (t) => {
  const server = await serve(t);
  const client = new Client(server.url);
  await terms(client, "plan", 1);
  const news = client.watch({ election: "plan", members: true });
  assert.equal((await news.next()).value.kind, "state");
  await client.join("plan", { candidateId: "bob", role: "worker", ttl: "10s" });
  await client.leave("plan", "bob");
  const told = [];
  for await (const n of news) {
    if (n.kind === "member" && told.push([n.member.id, n.member.role, n.member.change]) === 2) break;
  }
  assert.deepEqual(told, [["bob", "worker", "joined"], ["bob", "worker", "left"]]);
});

test("what would stay ends the loop with an error", async (t) => {
  const server = await serve(t);
  const client = new Client(server.url);
  await terms(client, "plan", 1);
  await assert.rejects(take(client.observe("plan", { after: 99 }), 1), RevisionMismatch);
  await assert.rejects(take(client.observe("Plan"), 1), InvalidArgument);
  await assert.rejects(take(client.observe({ prefix: "/" }), 1), InvalidArgument);
  await assert.rejects(take(client.observe(undefined as never), 1), /name an election, or/);
  await assert.rejects(take(client.follow("plan", 9), 1), IndexMismatch);
  const stop = new AbortController();
  const loop = take(client.observe("plan", { signal: stop.signal }), 9);
  stop.abort(new Error("enough"));
  await assert.rejects(loop, /enough/);
  await assert.rejects(take(client.observe("plan", { signal: stop.signal }), 9), /enough/);
});

const at = "2026-01-01T00:00:00Z";
const event = (revision: number): object => ({ election: "plan", revision, type: "acquired", at, leaderId: "ann", fencingToken: revision });

test("streams that break, lie and end are resumed where they were", async (t) => {
  const asked: string[] = [];
  const encodings = new Set<unknown>();
  const say = (...revisions: number[]): string => revisions.map((r) => message({ id: r, data: event(r) })).join("");
  const streams = [
    say(1, 2) + "id: 3\ndata: {\"half", // cut off
    say(2, 3), // one comes again
    say(3, 5), // one is left out
    message({ id: 4, data: { ...event(4), election: "other" } }),
    message({ name: "end", id: 3, data: { reason: "limit" } }),
    "", // nothing at all
    say(4, 5) + message({ name: "later", data: {} }) + message({ name: "end", data: { reason: "slow" } }),
    say(6),
    message({ name: "end", id: 6, data: { reason: "compacted" } }),
  ];
  const url = await scripted(t, (request, response) => {
    asked.push(String(request.headers["last-event-id"]));
    encodings.add(request.headers["accept-encoding"]);
    if (asked.length % 3 === 2) {
      streams.unshift("later");
      reply(response, 503, { type: "about:blank", status: 503, title: "no", code: "STORE_UNAVAILABLE", detail: "the store is away" });
    }
    response.headersSent || response.writeHead(200, { "content-type": "text/event-stream" });
    const stream = streams.shift()!;
    if (stream !== "later") response.write(stream, () => setImmediate(() => response.socket?.destroy()));
  });
  const seen: number[] = [];
  await assert.rejects(async () => {
    for await (const e of new Client(url).observe("plan", { after: 0 })) seen.push(e.revision);
  }, HistoryCompacted);
  assert.deepEqual(seen, [1, 2, 3, 4, 5, 6]);
  assert.deepEqual([...encodings], ["identity"]); // compression could hold events back
  assert.equal(asked[0], "0");
  assert.ok(asked.every((id, i) => i === 0 || Number(id) >= Number(asked[i - 1])), asked.join(" "));
});

test("refusals that would stay end a loop at once", async (t) => {
  let asked = 0;
  const url = await scripted(t, (_, response) => {
    asked++;
    reply(response, 403, { type: "about:blank", status: 403, title: "no", code: "PERMISSION_DENIED", detail: "ask an operator" });
  });
  await assert.rejects(take(new Client(url).observe("plan"), 1), PermissionDenied);
  assert.equal(asked, 1);
});

test("a stream that falls silent is opened anew, and one that is left is closed", async (t) => {
  let opened = 0;
  let closed = 0;
  const url = await scripted(t, (request, response) => {
    opened++;
    request.on("close", () => closed++);
    response.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders();
    if (opened === 2) response.write(message({ id: 1, data: event(1) }));
  });
  const { http } = new Client(url).means.calls;
  const errors: string[] = [];
  const news = watch(http, { election: "plan", after: 0, idle: 200, onConnection: (e) => void (e && errors.push(String((e as Error).cause))) });
  assert.equal((await news.next()).value.kind, "event");
  assert.match(errors[0]!, /nothing arrived for 0.2 s/);
  await news.return(undefined as never);
  await until(() => closed >= 2);
});
