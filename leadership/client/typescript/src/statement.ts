import { createPublicKey, verify, type JsonWebKey, type KeyObject } from "node:crypto";
import { isObject } from "./http.ts";
import { quote } from "./wire.ts";

/** What a statement says. Instants are of the store's clock, in seconds since 1970. */
export interface Statement {
  election: string;
  fencingToken: number;
  /** The leader. */
  sub: string;
  iat: number;
  exp: number;
  principal?: string;
  iss?: string;
  of?: string;
  seat?: number;
}

/** The statement is bad, has expired, or is about something else. */
export class BadStatement extends Error {
  override name = "BadStatement";
}

/**
 * A JSON Web Key Set, as a server publishes it at /.well-known/jwks.json. Keep it for some minutes, and read it again for
 * a statement whose key is not known.
 */
export interface StatementKeys {
  keys: readonly (JsonWebKey & { kid?: string; alg?: string; use?: string })[];
}

export interface VerifyOptions {
  /** What the statement must be about. */
  election?: string;
  token?: number;
  /** Seconds since 1970; by default of this machine. A clock that is behind believes in the lease for as much longer. */
  now?: number;
}

const maxStatement = 8 << 10;
/** Seconds that the clock of this machine may be behind the store's. */
const maxAhead = 5;
/** Seconds; more than any lease lasts. */
const longest = 24 * 3600 + 60;
const texts = Object.entries({ election: /^[a-z0-9]([a-z0-9._-]{0,126}[a-z0-9])?$/, sub: /^[A-Za-z0-9._@:-]{1,128}$/, principal: /^/, iss: /^/ });
const algorithms: ReadonlyMap<string, string> = new Map([["OKP Ed25519", "EdDSA"], ["EC P-256", "ES256"]]);

/**
 * Returns what a statement says that one of the keys has signed, and that has not ended. Throws BadStatement.
 *
 * It proves that this token was granted to this leader, until then by the store's clock. It does not prove that the
 * leader still leads: it may have released, been ended, and there may be a newer token. A resource still compares tokens.
 */
export function verifyStatement(statement: string, set: StatementKeys, o: VerifyOptions = {}): Statement {
  const parts = statement.split(".");
  if (parts.length !== 3 || statement.length > maxStatement) throw new BadStatement("form: a statement has three parts, with dots between them");
  const [header, payload, signature] = parts.map(decode) as [Buffer, Buffer, Buffer];
  const head = compact(header);
  if (!head || Object.keys(head).sort().join() !== "alg,kid,typ" || head.typ !== "regent+jwt" || typeof head.kid !== "string") {
    throw new BadStatement("header: it must have alg, kid and the typ regent+jwt, and nothing else");
  }
  const [by, key] = find(set, head.kid);
  if (head.alg !== by) throw new BadStatement(`algorithm: the key is for ${by}`);
  const message = Buffer.from(`${parts[0]}.${parts[1]}`);
  if (signature.length !== 64 || !verify(by === "EdDSA" ? null : "sha256", message, { key, dsaEncoding: "ieee-p1363" }, signature)) {
    throw new BadStatement("signature: it is wrong");
  }
  const said = compact(payload);
  if (!said) throw new BadStatement("claims: they must be one JSON object with each name once and without spaces");
  check(said, o);
  return said;
}

/** Returns the key of that id and its algorithm. Keys of other kinds and for other uses count for nothing. */
function find(set: StatementKeys, kid: string): [string, KeyObject] {
  for (const jwk of set.keys) {
    const by = algorithms.get(`${jwk.kty} ${jwk.crv}`);
    if (jwk.kid !== kid || kid === "" || !by || (jwk.alg ?? by) !== by || (jwk.use ?? "sig") !== "sig") continue;
    try {
      return [by, createPublicKey({ key: jwk, format: "jwk" })];
    } catch {
      continue; // it is no key
    }
  }
  throw new BadStatement("key: the statement's key is not known");
}

/** Reads base64url in its canonical form. */
function decode(text: string): Buffer {
  const bytes = Buffer.from(text, "base64url");
  if (text === "" || bytes.toString("base64url") !== text) throw new BadStatement("form: each part must be base64url in its canonical form");
  return bytes;
}

/** Reads an object that is written without spaces and with each name once; undefined for anything else. */
function compact(bytes: Buffer): Record<string, unknown> | undefined {
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    const found: unknown = JSON.parse(text);
    return isObject(found) && JSON.stringify(found) === text ? found : undefined;
  } catch {
    return undefined;
  }
}

function check(said: Record<string, unknown>, o: VerifyOptions): asserts said is Record<string, unknown> & Statement {
  for (const [name, form] of texts) {
    const value = said[name] ?? "";
    if (typeof value !== "string" || !form.test(value)) throw new BadStatement(`claims: ${name} is missing or wrong`);
  }
  const [token, iat, exp] = ["fencingToken", "iat", "exp"].map((name) => {
    if (!Number.isSafeInteger(said[name]) || (said[name] as number) < 1) throw new BadStatement(`claims: ${name} must be an integer from 1 to 2^53-1`);
    return said[name] as number;
  }) as [number, number, number];
  const now = o.now ?? Date.now() / 1000;
  if (exp < iat || exp - iat > longest) throw new BadStatement("claims: exp must be after iat, by the length of a lease");
  if (!(now < exp)) throw new BadStatement("expired: the lease has ended");
  if (iat > now + maxAhead) throw new BadStatement("not yet valid: the clock of this machine is behind the store's");
  if (o.election && said.election !== o.election) throw new BadStatement(`election: the statement is about ${quote(said.election)}`);
  if (o.token && token !== o.token) throw new BadStatement(`token: the statement is about token ${token}`);
}
