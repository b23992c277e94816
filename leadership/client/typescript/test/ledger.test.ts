import assert from "node:assert/strict";
import { test } from "node:test";
import { changeEffect, putCheckpoint } from "../src/api.ts";
import { Client, InvalidArgument, LeaseLost, NotFound, PayloadTooLarge, TokenStale, type JournalItem, type Proposal } from "../src/index.ts";
import { folder, line, serve, take, until } from "./support.ts";

const text = (i: JournalItem): string => (i.kind === "entry" ? `${i.index}:${JSON.stringify(i.entry.data)}` : `upTo ${i.index}:${JSON.stringify(i.snapshot.data)}`);

async function all(items: AsyncIterable<JournalItem>): Promise<string[]> {
  const texts: string[] = [];
  for await (const i of items) texts.push(text(i));
  return texts;
}

test("the next leader inherits what the last one has left", async (t) => {
  const server = await serve(t);
  const client = new Client(server.url, { candidate: "ann" });
  await assert.rejects(client.checkpoint("plan"), NotFound);
  await client.run("plan", async (lease) => {
    assert.equal(lease.inherited, undefined);
    await lease.checkpoint.put({ done: [1, 2] }, { task: "chapter 2" });
  }, { inherit: true });
  const { task, data, leaderId } = await client.checkpoint("plan");
  assert.deepEqual([task, data, leaderId], ["chapter 2", { done: [1, 2] }, "ann"]);
  const lease = await client.lead("plan", { inherit: true });
  assert.deepEqual([lease.inherited?.fencingToken, lease.inherited?.endedBecause, lease.inherited?.data], [1, "released", { done: [1, 2] }]);
  await lease.checkpoint.putAt("gs://bucket/object", { sha256: "a".repeat(64) });
  assert.equal((await client.checkpoint("plan")).uri, "gs://bucket/object");
  await assert.rejects(lease.checkpoint.put("x".repeat(70_000)), PayloadTooLarge);
  for (const wrong of [null, undefined, () => 1, 1n]) await assert.rejects(lease.checkpoint.put(wrong), InvalidArgument);
  const cycle: Record<string, unknown> = {};
  cycle["self"] = cycle;
  await assert.rejects(lease.checkpoint.put(cycle), /cannot be written as JSON/);
  await lease.release();
});

test("an effect is done once, and one that is not finished is in doubt for the next leader", async (t) => {
  const server = await serve(t);
  const ann = new Client(server.url, { candidate: "ann" });
  const former = await ann.lead("plan", { inherit: true });
  assert.deepEqual([former.inDoubt, (await ann.effects("plan")).effects], [[], []]);
  await assert.rejects(former.finishEffect("mail-1"), NotFound);
  for (const state of ["new", "inDoubt"]) assert.equal((await former.beginEffect("mail-1")).state, state);
  for (let i = 0; i < 2; i++) await former.finishEffect("mail-1", { id: "ö" });
  await assert.rejects(former.finishEffect("mail-1", { id: 2 }), InvalidArgument);
  await former.beginEffect("mail-2");
  const named = former.term.named();
  await former.release();
  await using lease = await new Client(server.url, { candidate: "bob" }).lead("plan", { inherit: true });
  assert.deepEqual(lease.inDoubt.map((e) => [e.effectId, e.state, e.fencingToken, e.leaderId]), [["mail-2", "inDoubt", 1, "ann"]]);
  for (const suffix of [":begin", ":finish"] as const) await assert.rejects(changeEffect(ann.means.calls.http, suffix, named, { effectId: "mail-2" }), TokenStale);
  await assert.rejects(former.beginEffect("mail-3"), LeaseLost);
  const { state, fencingToken, result } = await lease.beginEffect("mail-1");
  assert.deepEqual([state, fencingToken, result], ["done", 1, { id: "ö" }]);
  assert.equal((await lease.beginEffect("mail-2")).state, "inDoubt");
  await lease.finishEffect("mail-2");
  await lease.beginEffect("mail-3");
  const found = await ann.effects("plan");
  assert.equal(found.fencingToken, 2);
  assert.deepEqual(found.effects.map((e) => [e.effectId, e.state, e.fencingToken]), [["mail-1", "done", 1], ["mail-2", "done", 2], ["mail-3", "begun", 2]]);
  for (const id of ["", "a b", "x".repeat(129), undefined, 1]) await assert.rejects(lease.beginEffect(id as string), InvalidArgument);
  for (const wrong of [null, () => 1, 1n]) await assert.rejects(lease.finishEffect("mail-3", wrong), InvalidArgument);
  await assert.rejects(lease.finishEffect("mail-3", "x".repeat(1024)), PayloadTooLarge);
  await lease.release();
});

test("a proposal is made, heard of and decided once, and what is open is inherited", async (t) => {
  const server = await serve(t);
  const [ann, dora] = [new Client(server.url, { candidate: "ann" }), new Client(server.url, { candidate: "dora" })];
  await assert.rejects(dora.propose("plan", "p", "scale"), NotFound);
  const former = await ann.lead("plan", { inherit: true });
  assert.deepEqual(former.openProposals, []);
  const made = await dora.propose("plan", "p", "scale", { data: { to: 3 } });
  assert.deepEqual([made.candidateId, made.data, made.decision], ["dora", { to: 3 }, undefined]);
  const asked = former.asked();
  assert.deepEqual((await asked.next()).value, made);
  const answer = dora.propose("plan", "q", "stop", { ttl: "1m", wait: "30s" });
  assert.equal(((await asked.next()).value as Proposal).proposalId, "q");
  for (let i = 0; i < 2; i++) {
    const { decision } = await former.decide("q", "rejected", "not now");
    assert.deepEqual([decision?.verdict, decision?.note, decision?.fencingToken, decision?.leaderId], ["rejected", "not now", 1, "ann"]);
  }
  assert.equal((await answer).decision?.verdict, "rejected");
  await assert.rejects(former.decide("q", "accepted"), InvalidArgument);
  await assert.rejects(former.decide("r", "accepted"), NotFound);
  await former.release();
  assert.equal((await asked.next()).done, true);
  await using lease = await new Client(server.url, { candidate: "bob" }).lead("plan", { inherit: true });
  assert.deepEqual(lease.openProposals, [made]);
  await assert.rejects(former.decide("p", "accepted"), LeaseLost);
  await lease.decide("p", "accepted");
  const found = await ann.proposals("plan");
  assert.deepEqual([found.open, found.decided.map((p) => [p.proposalId, p.decision?.fencingToken])], [[], [["q", 1], ["p", 2]]]);
  for (const [id, kind, options, error] of [
    ["p", "scale", {}, InvalidArgument], ["a b", "k", {}, InvalidArgument], ["s", "", {}, InvalidArgument], ["s", "k", { data: null }, InvalidArgument],
    ["s", "k", { ttl: "5s", wait: "6s" }, InvalidArgument], ["s", "k", { data: "x".repeat(2048) }, PayloadTooLarge],
  ] as const) await assert.rejects(dora.propose("plan", id, kind, options), error);
  await lease.release();
});

test("a follower sees each index once, through cuts, snapshots and a restart", async (t) => {
  const server = await serve(t, `file:${folder(t)}`);
  const proxy = await line(t, () => server.url);
  const writer = new Client(server.url, { candidate: "ann" });
  await using lease = await writer.lead("plan", { lease: "2m" });
  const journal = await lease.journal();
  const seen: JournalItem[] = [];
  const following = (async () => {
    for await (const i of new Client(proxy.url).follow("plan", 0, { member: "bob" })) {
      seen.push(i);
      if (i.index === 40) break;
    }
  })();
  for (let i = 1; i <= 40; i++) {
    await journal.append({ data: i });
    if (i % 7 === 0) proxy.cut();
    if (i === 20) {
      await until(() => seen.at(-1)?.index === 20);
      await server.kill();
      proxy.cut();
      await server.start();
    }
  }
  await following;
  assert.deepEqual(seen.map((i) => i.index), Array.from({ length: 40 }, (_, i) => i + 1));
  await journal.snapshot(30, { sum: 465 });
  const late = await take(new Client(server.url).follow("plan"), 11);
  assert.deepEqual([text(late[0]!), text(late[1]!), late.at(-1)!.index], ["upTo 30:{\"sum\":465}", "31:31", 40]);
  assert.equal((await all(journal.read()))[0], "upTo 30:{\"sum\":465}");
  await lease.release();
});

test("a follower tells how far it has come", async (t) => {
  const server = await serve(t);
  const client = new Client(server.url, { candidate: "ann" });
  await using lease = await client.lead("plan");
  const journal = await lease.journal();
  await journal.append([{ data: 1 }, { data: 2 }]);
  const stop = new AbortController();
  let works!: () => void;
  const work = new Promise<void>((resolve) => (works = resolve));
  const following = (async () => {
    for await (const i of client.follow("plan", 0, { member: "bob", signal: stop.signal })) if (i.index === 2) await work;
  })();
  const applied = async (): Promise<number | undefined> => (await client.members("plan")).nodes.find((n) => n.id === "bob")?.applied;
  await until(async () => (await applied()) === 1); // it has taken the second, and not done its work yet
  works();
  await until(async () => (await applied()) === 2);
  stop.abort();
  await assert.rejects(following, { name: "AbortError" });
  await lease.release();
});

test("a late checkpoint of a former leader is refused once the next has inherited", async (t) => {
  const server = await serve(t);
  const ann = new Client(server.url, { candidate: "ann" });
  const first = await ann.lead("plan", { lease: "1s" });
  const named = first.term.named();
  await first.release();
  await using second = await new Client(server.url, { candidate: "bob" }).lead("plan", { inherit: true });
  await assert.rejects(putCheckpoint(ann.means.calls.http, named, { data: 1, sequence: 1 }), (e) => e instanceof TokenStale || e instanceof LeaseLost);
  await second.release();
});

test("elections below others are made by their leader, and read as a tree", async (t) => {
  const server = await serve(t);
  const client = new Client(server.url, { candidate: "ann" });
  await using lease = await client.lead("plan");
  assert.equal(await lease.delegate("chapter-2", { children: 4 }), "plan.chapter-2");
  assert.equal(await lease.delegate("chapter-2", { children: 4 }), "plan.chapter-2"); // twice is like once
  await using below = await new Client(server.url, { candidate: "bob" }).lead("plan.chapter-2");
  assert.equal(below.ending()?.because, "parent");
  const tree = await client.tree("plan");
  assert.deepEqual([tree.election, tree.complete, tree.children.map((c) => [c.election, c.leaderId])], ["plan", true, [["plan.chapter-2", "bob"]]]);
  await using also = await client.lead("shadow", { via: lease }); // ends with it
  await lease.release();
  assert.equal(also.valid(), false);
  assert.throws(() => also.check(), (e) => e instanceof LeaseLost && e.end === "ORPHANED");
});

test("elections are listed page by page", async (t) => {
  const server = await serve(t);
  const client = new Client(server.url, { candidate: "ann" });
  const names = ["a1", "a2", "a3", "b1"];
  for (const name of names) await client.run(name, () => {});
  const listed: string[] = [];
  for await (const e of client.list({ pageSize: 2 })) listed.push(e.election);
  assert.deepEqual(listed, names);
  assert.equal((await take(client.list({ prefix: "a", pageSize: 1 }), 9)).length, 3);
  const state = await client.read("a1", { strong: true });
  assert.equal((await client.read("a1", { minRevision: state.revision })).revision, state.revision);
  await assert.rejects(client.read("none"), NotFound);
  await assert.rejects(client.checkToken("a1", 1), TokenStale);
  assert.deepEqual(await client.overrides("a1"), []);
});
