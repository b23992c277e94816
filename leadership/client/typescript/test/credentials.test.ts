import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { Client, Unauthenticated, fileCredential, metadataCredential } from "../src/index.ts";
import { folder, reply, scripted, until } from "./support.ts";

/** A token that expires after so many seconds. */
function idToken(seconds: number, n = 0): string {
  const part = (o: object): string => Buffer.from(JSON.stringify(o)).toString("base64url");
  return [part({ alg: "RS256" }), part({ exp: Math.floor(Date.now() / 1000) + seconds, n }), "c2lnbmF0dXJl"].join(".");
}

interface Metadata {
  asked: number;
  answer: string | (() => Promise<string>);
  status: number;
  headers: Record<string, string>;
  seen: (string | undefined)[];
}

/** A metadata server, which the environment names. */
async function metadata(t: TestContext, answer: Metadata["answer"]): Promise<Metadata> {
  const m: Metadata = { asked: 0, answer, status: 200, headers: { "Metadata-Flavor": "Google" }, seen: [] };
  const url = await scripted(t, (request, response) => {
    m.asked++;
    m.seen.push(request.url, request.headers["metadata-flavor"] as string | undefined);
    void (async () => response.writeHead(m.status, m.headers).end(typeof m.answer === "string" ? m.answer : await m.answer()))();
  });
  process.env["GCE_METADATA_HOST"] = new URL(url).host;
  t.after(() => delete process.env["GCE_METADATA_HOST"]);
  return m;
}

test("the metadata server is asked as Cloud Run documents it, and once for many callers", async (t) => {
  const token = idToken(3600);
  const m = await metadata(t, token + "\n");
  const ask = metadataCredential("https://regent.example.com");
  assert.deepEqual(await Promise.all([ask(), ask(), ask()]), [token, token, token]);
  assert.equal(await ask(), token);
  assert.equal(m.asked, 1);
  assert.deepEqual(m.seen, ["/computeMetadata/v1/instance/service-accounts/default/identity?audience=https%3A%2F%2Fregent.example.com&format=full", "Google"]);
});

test("a token is replaced before it expires, and used meanwhile", async (t) => {
  const old = idToken(60, 1); // less than the margin
  let answer!: (token: string) => void;
  const m = await metadata(t, old);
  const ask = metadataCredential("a");
  assert.equal(await ask(), old);
  m.answer = () => new Promise((resolve) => (answer = resolve));
  assert.equal(await ask(), old);
  assert.equal(await ask(), old);
  await until(() => answer !== undefined);
  const next = idToken(3600, 2);
  answer(next);
  await until(async () => (await ask()) === next);
  assert.equal(m.asked, 2);
});

test("an expired token is not used, and a failure is not kept", async (t) => {
  const m = await metadata(t, idToken(-10));
  const ask = metadataCredential("a");
  await ask();
  m.status = 404;
  await assert.rejects(ask(), /HTTP status 404/);
  m.status = 200;
  m.answer = "no token";
  await assert.rejects(ask(), /is not a token/);
  m.answer = idToken(3600);
  assert.equal(await ask(), m.answer);
});

test("what is no metadata server is not believed", async (t) => {
  const m = await metadata(t, idToken(3600));
  const ask = metadataCredential("a");
  m.headers = {};
  await assert.rejects(ask(), /HTTP status 200/);
  m.headers = { "Metadata-Flavor": "Google" };
  m.answer = "x".repeat(20_000);
  await assert.rejects(ask(), /does not answer/);
  process.env["GCE_METADATA_HOST"] = "127.0.0.1:9";
  await assert.rejects(ask(), /does not answer/);
});

test("the file of a token is read anew for each request, and no error shows it", async (t) => {
  const seen: (string | undefined)[] = [];
  const url = await scripted(t, (request, response) => {
    seen.push(request.headers.authorization);
    reply(response, 200, { elections: [] });
  });
  const path = join(folder(t), "token");
  const client = new Client(url, { credential: fileCredential(path) });
  const list = async (): Promise<void> => { for await (const e of client.list()) assert.fail(e.election); };
  await assert.rejects(list(), (e: Error) => e instanceof Unauthenticated && /no such file/.test(e.message)); // there is none yet
  for (const token of ["secret-one", "secret-two"]) {
    writeFileSync(path, ` ${token}\n`);
    await list();
  }
  assert.deepEqual(seen, ["Bearer secret-one", "Bearer secret-two"]);
  writeFileSync(path, "secret\nlines");
  await assert.rejects(list(), (e: Error) => !/secret/.test(`${e} ${e.stack} ${String(e.cause)}`) && /does not have one token/.test(String(e.cause)));
});
