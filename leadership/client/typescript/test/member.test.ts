import assert from "node:assert/strict";
import { test } from "node:test";
import { Client, InvalidArgument, NotFollowed, PermissionDenied, type Told } from "../src/index.ts";
import { line, reply, scripted, serve, take, until } from "./support.ts";

const ids = async (client: Client): Promise<string[]> => (await client.members("plan")).nodes.map((n) => `${n.id}:${n.role}:${n.term ?? ""}`);

test("a member joins, follows each new token, and leaves", async (t) => {
  const server = await serve(t);
  const client = new Client(server.url, { candidate: "ann" });
  const told: Told[] = [];
  const failures: unknown[] = [];
  const member = client.member("plan", { id: "bob", role: "worker", ttl: "5m", note: "builds", onTold: (now) => told.push(now), onFailure: (e) => failures.push(e) });
  await until(() => failures.length > 0); // there is no such election yet
  const first = await client.lead("plan");
  await member.joined;
  await first.awaitFollowers(1);
  assert.deepEqual(await ids(client), ["ann:leader:1", "bob:worker:1"]);
  assert.deepEqual(member.now, { leader: "ann", token: 1 });
  await first.release();
  await until(() => member.now.leader === undefined);
  const second = await client.lead("plan");
  await second.awaitFollowers(1, { signal: AbortSignal.timeout(60_000) }); // it joins again before its time, a third of the ttl
  assert.deepEqual(told.at(-1), { leader: "ann", token: 2 });
  await member.leave();
  await member.leave(); // twice is like once
  await member.done;
  assert.deepEqual(await ids(client), ["ann:leader:2"]);
  await second.release();
});

test("a member says what the program follows, and goes on when the server was away", async (t) => {
  const server = await serve(t);
  const proxy = await line(t, () => server.url);
  const leader = new Client(server.url, { candidate: "ann" });
  await using lease = await leader.lead("plan");
  let follows = 0;
  let failures = 0;
  await using member = new Client(proxy.url).member("plan", { id: "bob", seenToken: () => follows, onFailure: () => failures++ });
  await member.joined;
  assert.deepEqual(await ids(leader), ["ann:leader:1", "bob:follower:"]);
  proxy.refuses = true;
  proxy.cut();
  follows = 1;
  await until(() => failures > 0);
  proxy.refuses = false;
  await lease.awaitFollowers(1);
  await lease.release();
});

test("a member that is disposed of, or whose signal fires, has left", async (t) => {
  const server = await serve(t);
  const client = new Client(server.url, { candidate: "ann" });
  await using lease = await client.lead("plan");
  {
    await using member = client.member("plan", { id: "bob" });
    await member.joined;
    assert.equal((await ids(client)).length, 2);
  }
  assert.equal((await ids(client)).length, 1);
  const stop = new AbortController();
  const member = client.member("plan", { id: "cat", signal: stop.signal });
  await member.joined;
  stop.abort();
  await member.done;
  assert.equal((await ids(client)).length, 1);
  const late = client.member("plan", { id: "dan", signal: stop.signal });
  await late.done;
  await assert.rejects(late.joined, { name: "AbortError" });
  await lease.release();
});

test("a member waits for the answer to its join before it leaves: one that is cut off may be carried out afterwards", async (t) => {
  const heard: string[] = [];
  let answer = (): void => {};
  const url = await scripted(t, (request, response) => {
    if (request.method !== "POST") return; // its stream
    heard.push(request.url!.split(":")[1]!);
    const say = (): void => reply(response, 200, { election: "plan", state: "vacant", fencingToken: 1, revision: 1, readAt: "2026-01-01T00:00:00Z" });
    if (heard.length === 1) answer = say;
    else say();
  });
  const member = new Client(url).member("plan", { id: "bob", seenToken: () => 0 });
  await until(() => heard.length === 1);
  const left = member.leave();
  answer();
  await left;
  await member.joined;
  assert.deepEqual(heard, ["join", "leave"]);
});

test("an error that would stay ends the membership", async (t) => {
  let joins = 0;
  const url = await scripted(t, (request, response) => {
    if (request.method === "POST") joins++;
    reply(response, 403, { type: "about:blank", status: 403, title: "no", code: "PERMISSION_DENIED", detail: "ask an operator" });
  });
  const member = new Client(url).member("plan", { id: "bob" });
  await assert.rejects(member.done, PermissionDenied);
  await assert.rejects(member.joined, PermissionDenied);
  assert.equal(joins, 1);
  const client = new Client(url);
  assert.throws(() => client.member("plan", { ttl: "1s" }), /"10s" to "5m"/);
  assert.throws(() => client.member("plan", { role: "leader" as never }), InvalidArgument);
  assert.throws(() => client.member("Plan"), InvalidArgument);
});

test("a callback that throws ends nothing, and is logged", async (t) => {
  const server = await serve(t);
  const logged: string[] = [];
  const client = new Client(server.url, { candidate: "ann", log: (level, message, { reason }) => void logged.push(`${level} ${message} ${String(reason)}`) });
  await using lease = await client.lead("plan");
  const mistake = (name: string) => (): never => {
    throw new Error(`a mistake in ${name}`);
  };
  const rejects = async (): Promise<void> => { throw new Error("a mistake, later"); };
  await using member = client.member("plan", { id: "bob", seenToken: mistake("seenToken"), onTold: mistake("onTold") });
  await using other = client.member("plan", { id: "cat", onTold: rejects });
  await Promise.all([member.joined, other.joined, lease.awaitFollowers(1)]);
  const [state] = await take(client.observe("plan", { onConnection: mistake("onConnection") }), 1);
  assert.equal(state!.leaderId, "ann");
  const before = logged.length;
  await until(() => logged.slice(before).some((l) => l.includes("seenToken"))); // it is asked every second
  await Promise.all([member.leave(), other.leave()]);
  const said = logged.join("\n");
  for (const what of ["seenToken", "onTold", "onConnection", "later"]) assert.match(said, new RegExp(`error .* has thrown; the client goes on Error: a mistake.* ${what}`));
  await lease.release();
});

test("a leader that is not followed gives its lease back", async (t) => {
  const server = await serve(t);
  const client = new Client(server.url, { candidate: "ann" });
  await assert.rejects(client.run("plan", () => assert.fail("it was called"), { lease: "1s", awaitFollowers: 1 }), NotFollowed);
  assert.equal((await client.read("plan", { strong: true })).state, "vacant");
  await using member = client.member("plan", { id: "bob" });
  assert.equal(await client.run("plan", (lease) => lease.token, { awaitFollowers: 1 }), 2);
  await member.leave();
});
