import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { BadStatement, verifyStatement, type StatementKeys } from "../src/index.ts";

interface Row {
  name: string;
  want: string;
  statement: string;
  nowMs: number;
  election?: string;
  token?: number;
}

test("the table that all verifiers share", async (t) => {
  const table = JSON.parse(readFileSync(process.env.REGENT_STATEMENTS!, "utf8")) as { keys: StatementKeys; rows: Row[] };
  for (const { name, want, statement, nowMs, ...about } of table.rows) {
    await t.test(name, () => {
      let said = "";
      try {
        const claims = verifyStatement(statement, table.keys, { ...about, now: nowMs / 1000 });
        assert.deepEqual([claims.fencingToken, claims.sub, claims.election.slice(0, 7)], [34, "agent-1", "reports"]);
      } catch (e) {
        if (!(e instanceof BadStatement)) throw e;
        said = e.message;
      }
      assert.equal(said.split(":")[0], want, said);
    });
  }
});
