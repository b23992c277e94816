import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test, type TestContext } from "node:test";
import { InvalidArgument, RecordCorrupt, TokenStale, fenceSchema, guard, type Transaction } from "../src/index.ts";
import { folder } from "./support.ts";

/** Runs statements in SQLite, which Node.js 20 does not have: one line of JSON each, without a transaction of its own. */
const program = `
import json, sqlite3, sys
db = sqlite3.connect(sys.argv[1], timeout=20, isolation_level=None)
for line in sys.stdin:
    sql, values = json.loads(line)
    try:
        c = db.execute(sql, {str(i + 1): v for i, v in enumerate(values)})
        names = [d[0] for d in c.description or ()]
        answer = {"rows": [dict(zip(names, r)) for r in c.fetchall()], "rowCount": c.rowcount}
    except sqlite3.Error as e:
        answer = {"error": str(e)}
    print(json.dumps(answer), flush=True)
`;

/** A connection to a database, with the shape of node-postgres. */
async function connect(t: TestContext, path: string): Promise<Transaction & { run: (sql: string) => Promise<void> }> {
  const child = spawn("python3", ["-c", program, path], { stdio: ["pipe", "pipe", "inherit"] });
  await once(child, "spawn");
  t.after(() => child.kill("SIGKILL"));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const query: Transaction["query"] = async (sql, values) => {
    child.stdin.write(JSON.stringify([sql, values]) + "\n");
    const { error, ...result } = JSON.parse((await lines.next()).value as string) as { error?: string; rows: []; rowCount: number };
    if (error) throw new Error(error);
    return result;
  };
  return { query, run: async (sql) => void (await query(sql, [])) };
}

const writer = (token: number, election = "planner"): { election: string; token: number } => ({ election, token });

test("former leaders do not write", async (t) => {
  const path = join(folder(t), "db");
  const a = await connect(t, path);
  const b = await connect(t, path);
  await a.run(fenceSchema());
  await a.run(fenceSchema()); // a migration may run twice
  await a.run("CREATE TABLE log (token INTEGER)");
  const write = async (db: typeof a, token: number): Promise<void> => {
    await db.run("BEGIN");
    try {
      await guard(db, "invoices", writer(token));
      await db.run(`INSERT INTO log VALUES (${token})`);
      await db.run("COMMIT");
    } catch (e) {
      await db.run("ROLLBACK");
      throw e;
    }
  };
  await write(a, 33);
  await write(a, 33);
  await write(b, 34);
  await assert.rejects(write(a, 33), (e) => e instanceof TokenStale && /34 has written/.test(e.message));
  const { rows } = await a.query("SELECT token FROM log", []);
  assert.deepEqual(rows.map((r) => r["token"]), [33, 33, 34]);
});

test("a transaction waits for the one before, and then compares", async (t) => {
  const path = join(folder(t), "db");
  const a = await connect(t, path);
  const b = await connect(t, path);
  await a.run(fenceSchema("marks"));
  await a.run("BEGIN IMMEDIATE");
  await guard(a, "invoices", writer(34), "marks");
  const late = async (): Promise<void> => {
    await b.run("BEGIN IMMEDIATE"); // waits
    await guard(b, "invoices", writer(33), "marks");
  };
  const refused = assert.rejects(late(), TokenStale);
  await a.run("COMMIT");
  await refused;
});

test("wrong arguments and strange marks are refused", async (t) => {
  const db = await connect(t, join(folder(t), "db"));
  await db.run(fenceSchema());
  await db.run("BEGIN");
  await guard(db, "invoices", writer(1));
  await guard(db, "other", writer(1, "another"));
  await db.run("COMMIT");
  await assert.rejects(guard(db, "other", writer(1)), (e) => e instanceof InvalidArgument && /"another"/.test(e.message));
  for (const wrong of [writer(0), writer(1.5), writer(1, ""), {} as never]) await assert.rejects(guard(db, "invoices", wrong), InvalidArgument);
  await assert.rejects(guard(db, "", writer(1)), InvalidArgument);
  await assert.rejects(guard(db, "invoices", writer(1), "no; DROP"), InvalidArgument);
  assert.throws(() => fenceSchema('x"y'), InvalidArgument);
  await assert.rejects(guard({ query: async () => ({ rowCount: null, rows: [] }) }, "invoices", writer(1)), /does not count/);
  await assert.rejects(guard({ query: async () => ({ rowCount: 0, rows: [] }) }, "invoices", writer(1)), RecordCorrupt);
});

test("outside of a transaction guard is refused", async (t) => {
  const autocommits = (e: unknown): boolean => e instanceof InvalidArgument && /autocommit/.test(e.message);
  const db = await connect(t, join(folder(t), "db"));
  await db.run(fenceSchema());
  await assert.rejects(guard(db, "invoices", writer(1)), autocommits);
  await db.run("BEGIN"); // it has left none open
  await guard(db, "invoices", writer(1));
  await db.run("COMMIT");
  const postgres = (id: string | null): Transaction => ({ query: async (sql) => ({ rowCount: 1, rows: sql.includes("pg_current_xact_id_if_assigned()") ? [{ id }] : [] }) });
  await assert.rejects(guard(postgres(null), "invoices", writer(1)), autocommits);
  await guard(postgres("740"), "invoices", writer(1));
  const broken: Transaction = { query: async (sql) => { if (sql.startsWith("SELECT")) throw new Error("gone"); return { rowCount: 1, rows: [] }; } };
  await assert.rejects(guard(broken, "invoices", writer(1)), /gone/);
});

test("a Pool is refused before it is asked", async () => {
  class Pool {
    get totalCount(): number { return 1; } // as in node-postgres, beside those of idle and waiting clients
    query: Transaction["query"] = async () => assert.fail("it was asked");
  }
  await assert.rejects(guard(new Pool(), "invoices", writer(1)), (e) => e instanceof InvalidArgument && /Pool/.test(e.message));
});

test("the statements are those of the Go package", async () => {
  const go = readFileSync(process.env["REGENT_SQLFENCE"] ?? "../../../../../fence/sqlfence/table.go", "utf8").replace(/\s+/g, " ");
  const name = (sql: string): string[] => sql.replace(/\s+/g, " ").split('"regent_fence"').map((s) => s.trim());
  const asked: string[] = [];
  await guard({ query: async (sql) => (asked.push(sql), { rowCount: 0, rows: [{ election: "planner", fencing_token: "2" }] }) }, "r", writer(1)).catch(() => {});
  assert.equal(asked.length, 2);
  for (const sql of [fenceSchema(), ...asked]) for (const part of name(sql)) assert.ok(go.includes(part), part);
});
