import assert from "node:assert/strict";
import { getEventListeners, getMaxListeners } from "node:events";
import { createServer, type RequestListener, type Server } from "node:http";
import { type AddressInfo } from "node:net";
import { test, type TestContext } from "node:test";
import { inspect } from "node:util";
import { Client, InvalidArgument, OutcomeUnknown, PermissionDenied, RateLimited, RegentError, StoreUnavailable, Unauthenticated, fileCredential } from "../src/index.ts";
import { Http, type Call } from "../src/http.ts";
import { systemClock } from "../src/clock.ts";
import { Script, held, unreachable } from "./scripted.ts";

/** Starts a server for the test, and returns its address. */
async function serve(t: TestContext, answer: RequestListener): Promise<string> {
  const server: Server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const http = (server: string, credential?: string): Http => new Http({ server, insecure: false, credential, fetch, clock: systemClock() });
const change: Call = { name: "change", path: "/v1/elections/reports:acquire", body: { key: "k".repeat(43) }, changes: true };

test("a body that is slow ends with the time for the whole exchange", async (t) => {
  const server = await serve(t, (_, response) => {
    response.writeHead(200, { "content-type": "application/json" });
    const drip = setInterval(() => response.write(" "), 5);
    response.on("close", () => clearInterval(drip));
  });
  await assert.rejects(http(server).call({ ...change, limit: 100 }), OutcomeUnknown);
  await assert.rejects(http(server).call({ ...change, limit: 100, changes: false }), StoreUnavailable);
});

test("a request that may have been sent has an unknown outcome, one that was not has none", async (t) => {
  const server = await serve(t, (request) => request.socket.destroy());
  await assert.rejects(http(server).call(change), OutcomeUnknown);
  await assert.rejects(http(server).call({ ...change, changes: false }), StoreUnavailable);
  const closed = createServer();
  await new Promise<void>((resolve) => closed.listen(0, "127.0.0.1", resolve));
  const { port } = closed.address() as AddressInfo;
  await new Promise((resolve) => closed.close(resolve));
  await assert.rejects(http(`http://127.0.0.1:${port}`).call(change), StoreUnavailable);
});

test("what a reply that is not Regent's means, by its status", async (t) => {
  const meanings: [number, typeof RegentError][] = [
    [200, OutcomeUnknown], [401, Unauthenticated], [403, PermissionDenied], [404, RegentError], [408, OutcomeUnknown], [429, RateLimited], [502, OutcomeUnknown], [504, OutcomeUnknown],
  ];
  for (const [status, of] of meanings) {
    const server = await serve(t, (_, response) => response.writeHead(status, { "content-type": "text/html", "retry-after": "7" }).end("<p>" + "k".repeat(43)));
    await assert.rejects(http(server).call(change), (e: RegentError) => {
      assert.equal(e.constructor, of, String(status));
      assert.equal(e.retryAfter, 7_000);
      assert.ok(e.message.includes(String(status)) && !e.message.includes("k".repeat(43)), "it repeats what may be a secret");
      return true;
    });
  }
});

test("a bearer token that cannot be sent is refused without being shown", async () => {
  for (const token of ["", "secret\nsecret", "secret\u00e9"]) {
    await assert.rejects(http("http://127.0.0.1:1", token).call(change), (e: Error) => e instanceof InvalidArgument && !inspect(e, { depth: 9 }).includes("secret\\n") && !/secret./.test(e.message));
  }
});

test("a credential that fails makes the call fail with nothing done", async () => {
  const failing = new Http({ server: "http://127.0.0.1:1", insecure: false, credential: () => Promise.reject(new Error("no metadata")), fetch, clock: systemClock() });
  await assert.rejects(failing.call(change), StoreUnavailable);
  const silent = new Http({ server: "http://127.0.0.1:1", insecure: false, credential: () => new Promise<string>(() => {}), fetch, clock: systemClock() });
  await assert.rejects(silent.call({ ...change, limit: 20 }), StoreUnavailable);
});

test("what stays is not tried again, and the error at the end of a wait says what failed last", async () => {
  const s = new Script();
  const untrusted = (): Promise<never> => Promise.reject(new TypeError("fetch failed", { cause: Object.assign(new Error("self-signed certificate"), { code: "DEPTH_ZERO_SELF_SIGNED_CERT" }) }));
  s.on("acquire", untrusted);
  await assert.rejects(s.client().lead("reports"), (e: RegentError) => e.code === "" && /certificate is not trusted: self-signed/.test(e.message));
  await assert.rejects(s.client({ credential: fileCredential("/no/such/file") }).lead("reports"), Unauthenticated);
  await assert.rejects(s.client({ credential: () => undefined as never }).lead("reports"), InvalidArgument);
  assert.throws(() => s.client({ credential: 5 as never }), InvalidArgument);
  assert.equal(s.asked.length, 1);
  s.on("acquire", unreachable);
  const failing = assert.rejects(s.client().lead("reports", { wait: "20s" }), /acquire: no answer: refused \(STORE_UNAVAILABLE\)/);
  await s.clock.advance(20_000);
  await failing;
});

test("an address must be of this machine or encrypted, and is repeated in no error", () => {
  for (const server of ["http://127.0.0.1:8080", "http://127.9.9.9", "http://[::1]:8080/", "http://localhost/regent/", "https://regent.example.com", "http://[::ffff:127.0.0.1]"]) {
    assert.ok(new Client(server), server);
  }
  assert.ok(new Client("http://regent.example.com", { insecure: true }));
  for (const server of ["regent.example.com", "http://regent.example.com", "http://10.0.0.1", "http://localhost.example.com", "ftp://127.0.0.1", "http://", "http://ann:secret@127.0.0.1", "https://regent.example.com/?secret", "https://regent.example.com/#secret", "http://127.0.0.1:99999"]) {
    assert.throws(() => new Client(server), (e: Error) => e instanceof InvalidArgument && !/secret/.test(inspect(e)), server);
  }
});

test("a prefix of the path is kept", async (t) => {
  const paths: (string | undefined)[] = [];
  const server = await serve(t, (request, response) => {
    paths.push(request.url);
    response.writeHead(200, { "content-type": "application/json; charset=utf-8" }).end(JSON.stringify(held()));
  });
  await using lease = await new Client(server + "/regent/", { candidate: "ann" }).lead("reports");
  assert.equal(lease.token, 1);
  assert.deepEqual(paths, ["/regent/v1/elections/reports:acquire"]);
});

test("everything may share one signal without a warning, and leaves it", async (t) => {
  const warnings: Error[] = [];
  const warn = (w: Error): void => void warnings.push(w);
  process.on("warning", warn);
  t.after(() => process.off("warning", warn));
  const server = await serve(t, (_, response) => void setTimeout(() => response.writeHead(503).end(), 50));
  const stop = new AbortController();
  const { signal } = stop;
  const client = new Client(server);
  const many = <T>(call: () => Promise<T>): Promise<unknown> => Promise.allSettled(Array.from({ length: 30 }, call));
  const loops = Array.from({ length: 30 }, () => client.observe("plan", { signal }));
  const members = loops.map((_, i) => client.member("plan", { id: `bob-${i}`, signal }));
  const looping = loops.map((loop) => loop.next().catch(() => {}));
  await many(() => http(server).call({ ...change, signal }));
  await many(() => client.run("plan", () => {}, { signal, wait: 0, handOverWithin: "6s" }));
  assert.equal(getMaxListeners(signal), Infinity);
  await Promise.all(members.map((m) => m.leave()));
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(warnings, []);
  assert.equal(getEventListeners(signal, "abort").length, 30, "only the loops listen");
  stop.abort();
  await Promise.all(looping);
  assert.equal(getEventListeners(signal, "abort").length, 0);
});
