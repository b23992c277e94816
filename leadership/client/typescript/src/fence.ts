import { InvalidArgument, RecordCorrupt, TokenStale } from "./errors.ts";

/**
 * A connection to PostgreSQL or SQLite with a transaction that was begun, such as a client of
 * node-postgres. A Pool is none: each of its queries may run on another connection. SQLite drivers
 * need a small adapter: both number parameters $1, $2, $3 here.
 */
export interface Transaction {
  query(sql: string, values: (string | number)[]): Promise<{ rowCount: number | null; rows: Record<string, unknown>[] }>;
}

/** Who writes: a lease, or the election and the token that a leader has passed on. */
export interface Writer {
  readonly election: string;
  readonly token: number;
}

/** The default name of the table of marks. */
export const defaultTable = "regent_fence";

/** Names that mean the same with and without quotes in PostgreSQL and SQLite, optionally after a schema. */
const identifier = /^([a-z_][a-z0-9_]{0,62}\.)?[a-z_][a-z0-9_]{0,62}$/;

function quoted(table: string): string {
  if (!identifier.test(table)) {
    throw new InvalidArgument(`a table's name must have at most 63 of a-z, 0-9 and '_', optionally after a schema and a '.', unlike ${JSON.stringify(table)}`);
  }
  return `"${table.replace(".", '"."')}"`;
}

/**
 * Returns the statement that creates the table of marks if it does not exist, for migrations. It is
 * the table of the Go package sqlfence and of the Python package. Do not delete a row while a former
 * leader may still be active: the mark would be lost.
 */
export function fenceSchema(table: string = defaultTable): string {
  return `CREATE TABLE IF NOT EXISTS ${quoted(table)} (
	resource      TEXT   NOT NULL PRIMARY KEY,
	election      TEXT   NOT NULL,
	fencing_token BIGINT NOT NULL CHECK (fencing_token > 0)
)`;
}

/**
 * Raises the mark of the resource to the leader's token, or throws why the leader must not write to
 * it. Call it first in a transaction; it covers everything that the transaction does after it. Once
 * that has committed, no leader with a lower token can write to the resource. A resource is any text
 * that the writers agree on, such as a table's name. guard waits for other transactions that have
 * checked the resource.
 *
 * After any error the caller must roll back. TokenStale: a later leader has written; stop acting as
 * leader, unless a renewal brings a newer token. InvalidArgument: the resource is of another election,
 * or an argument is wrong; or there is no transaction (autocommit, or a Pool), so that the mark would
 * not cover what follows. RecordCorrupt: the row was not written by a fence. Any other error is the
 * driver's own: the transaction may be repeated.
 */
export async function guard(tx: Transaction, resource: string, writer: Writer, table: string = defaultTable): Promise<void> {
  const { election, token } = writer;
  if (!/^[a-z0-9._-]{1,128}$/.test(election) || !Number.isSafeInteger(token) || token < 1) {
    throw new InvalidArgument("the writer has no election or no fencing token; pass the lease");
  }
  if (resource === "") throw new InvalidArgument("the resource's name is empty");
  if ("totalCount" in tx) throw new InvalidArgument("guard needs a connection, and this is a Pool: take a client of it, and begin a transaction there");
  const name = quoted(table);
  const raised = await tx.query(
    `INSERT INTO ${name} AS mark (resource, election, fencing_token) VALUES ($1, $2, $3)
	ON CONFLICT (resource) DO UPDATE SET fencing_token = excluded.fencing_token
	WHERE mark.election = excluded.election AND mark.fencing_token <= excluded.fencing_token`,
    [resource, election, token],
  );
  if (typeof raised.rowCount !== "number") {
    throw new InvalidArgument("this driver does not count the rows that it has written; see Transaction");
  }
  if (raised.rowCount === 1) {
    if (await begun(tx)) return;
    throw new InvalidArgument("guard needs a transaction, and the connection is in autocommit mode: begin one first");
  }
  // the row is locked even if it was not changed, so this read sees what the upsert saw
  const { rows } = await tx.query(`SELECT election, fencing_token FROM ${name} WHERE resource = $1`, [resource]);
  throw refusal(resource, writer, rows[0]);
}

/** Reports whether a transaction is open, right after a write: in PostgreSQL only then a later statement has the write's id. */
async function begun(tx: Transaction): Promise<boolean> {
  try {
    const { rows } = await tx.query("SELECT CAST(pg_current_xact_id_if_assigned() AS TEXT) AS id", []);
    return typeof rows[0]?.["id"] === "string";
  } catch (e) {
    if (!/no such function/.test(String(e))) throw e;
  }
  // SQLite, in which an error leaves the transaction as it is
  try {
    await tx.query("BEGIN", []);
  } catch (e) {
    if (/within a transaction/.test(String(e))) return true;
    throw e;
  }
  await tx.query("ROLLBACK", []);
  return false;
}

function refusal(resource: string, { election, token }: Writer, row: Record<string, unknown> | undefined): Error {
  const of = row?.["election"];
  const mark = Number(row?.["fencing_token"]); // node-postgres returns a BIGINT as a text
  if (typeof of === "string" && of !== election) {
    return new InvalidArgument(`the resource ${JSON.stringify(resource)} is fenced by election ${JSON.stringify(of)}, not ${JSON.stringify(election)}`);
  }
  if (mark > token) {
    return new TokenStale(`token ${token} of election ${JSON.stringify(election)} is stale: ${mark} has written; unless a renewal brings a newer token, stop acting as leader`);
  }
  return new RecordCorrupt(`the mark of ${JSON.stringify(resource)} was not raised to token ${token}: the table differs from fenceSchema()`);
}
