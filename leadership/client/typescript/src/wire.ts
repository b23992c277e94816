import { randomBytes } from "node:crypto";
import { inspect } from "node:util";
import { invalid } from "./errors.ts";
import { isObject, misread, type Call } from "./http.ts";
import type { components } from "./openapi.ts";

/** The documents of the API, as openapi.yaml defines them. */
export type Schemas = components["schemas"];
/** An election as the server says that it is. */
export type Election = Schemas["Lease"];
/** A time span: milliseconds, or a text such as "30s", "1m30s" or "1500ms". */
export type Duration = number | string;

const units: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

/** @internal Returns a duration in whole milliseconds. The name is for errors. */
export function milliseconds(name: string, d: Duration): number {
  let ms = typeof d === "number" ? d : NaN;
  if (typeof d === "string" && /^(\d+(\.\d+)?(ms|s|m|h))+$/.test(d)) {
    ms = 0;
    for (const [, count, , unit] of d.matchAll(/(\d+(\.\d+)?)(ms|[smh])/g)) ms += Number(count) * units[unit!]!;
    ms = Math.round(ms * 1e6) / 1e6;
  }
  if (!Number.isSafeInteger(ms) || ms < 0) {
    throw invalid(`${name}: a duration is a number of whole milliseconds, or a text such as "30s", "1m30s" or "1500ms", not ${quote(d)}`);
  }
  return ms;
}

/** @internal Returns a duration as the API reads it. */
export function text(ms: number): string {
  return `${ms}ms`;
}

/** @internal Shows a value in an error. */
export function quote(value: unknown): string {
  return inspect(value, { depth: 1, maxStringLength: 80, breakLength: Infinity });
}

/** @internal Refuses options that are no object, and a signal that is none. */
export function checkOptions(options: unknown): void {
  if (!isObject(options)) throw invalid(`options: they are an object, or left out, not ${quote(options)}`);
  const { signal } = options;
  const { aborted, addEventListener } = (signal ?? {}) as Partial<AbortSignal>;
  if (signal !== undefined && (typeof aborted !== "boolean" || typeof addEventListener !== "function")) throw invalid(`signal: it is an AbortSignal, not ${quote(signal)}`);
}

/** @internal Refuses what is no function, unless it is left out. */
export function checkFunction(name: string, call: unknown): void {
  if (call !== undefined && typeof call !== "function") throw invalid(`${name}: it is a function, not ${quote(call)}`);
}

/** @internal Returns the path of an election, or of what belongs to it. A wrong name could change the meaning of the path. */
export function path(election: string, suffix = ""): string {
  if (typeof election !== "string" || !/^[a-z0-9]([a-z0-9._-]{0,126}[a-z0-9])?$/.test(election)) {
    throw invalid(
      `${quote(election)} is not the name of an election: 1 to 128 of a-z, 0-9 and "._-", beginning and ending with a letter or a digit`,
    );
  }
  return `/v1/elections/${election}${suffix}`;
}

/** @internal Checks the id of a candidate. */
export function candidateID(id: string): string {
  if (typeof id !== "string" || !/^[A-Za-z0-9._@:-]{1,128}$/.test(id)) {
    throw invalid(`${quote(id)} is not the id of a candidate: 1 to 128 of A-Z, a-z, 0-9 and "._@:-"`);
  }
  return id;
}

/** @internal A secret, which is shown nowhere by accident. */
export class Secret {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  /** Returns a new key of a lease. */
  static key(): Secret {
    return new Secret(randomBytes(32).toString("base64url"));
  }

  reveal(): string {
    return this.#text;
  }

  toString(): string {
    return "[secret]";
  }
}

/** @internal A lease as a call names it. */
export interface LeaseRequest {
  election: string;
  candidate: string;
  key: Secret;
  token: number;
  ticket?: string;
  report?: Schemas["Report"];
  statement?: boolean;
}

/** @internal Returns the body of a renewal or a release. */
export function leaseBody(r: LeaseRequest): Schemas["RenewRequest"] {
  return {
    candidateId: r.candidate,
    key: r.key.reveal(),
    fencingToken: r.token,
    ...(r.ticket ? { ticket: r.ticket } : {}),
    ...(r.report ? { report: r.report } : {}),
    ...(r.statement ? { statement: true } : {}),
  };
}

/** @internal What a lease must say to be the answer to a call. */
export interface Expected {
  election: string;
  /** It may be a seat of that election. */
  seats?: boolean;
  /** It must be held; by this leader and under this token, if they are given. */
  held?: boolean;
  leader?: string;
  token?: number;
}

const maxTicket = 1024;

/**
 * @internal Checks that a document is a lease and answers the call, and returns it. A proxy between
 * may mix up replies, and a leader that believes in another's lease leads without one.
 */
export function readLease<T extends Election>(k: Pick<Call, "name" | "changes">, body: unknown, x: Expected): T {
  const wrong = whatIsWrong(body) || whatDiffers(body as T, x);
  if (wrong) throw misread(k, wrong);
  const lease = body as T;
  if (typeof lease.ticket !== "string" || lease.ticket.length > maxTicket) delete lease.ticket; // a leader does as well without
  return lease;
}

const isCount = (n: unknown): n is number => Number.isSafeInteger(n) && (n as number) >= 0;
const isCountOrAbsent = (n: unknown): boolean => n === undefined || isCount(n);

/** Says why a document is no lease; "" if it is one. */
function whatIsWrong(body: unknown): string {
  if (!isObject(body)) return "it is no JSON object";
  const { state, fencingToken, revision, leaderId, expiresInMs } = body;
  if (typeof body.election !== "string" || !body.election) return "a lease without an election";
  if (state !== "held" && state !== "vacant") return `a lease in the state ${quote(state)}`;
  if (!isCount(fencingToken) || !isCount(revision)) return "a lease without a fencing token or a revision that can be counted with";
  if (![body.renewInMs, body.waitedMs, body.endsInMs, expiresInMs].every(isCountOrAbsent)) return "a time that is no number of milliseconds";
  if (state === "held" && (typeof leaderId !== "string" || !leaderId || fencingToken < 1 || expiresInMs === undefined)) {
    return "a lease that is held without a leader, a fencing token or its remaining time";
  }
  return "";
}

/** Says why a lease does not answer a call; "" if it does. */
function whatDiffers(lease: Election, x: Expected): string {
  const seat = x.seats && lease.seat !== undefined && lease.of === x.election && lease.election === `${x.election}.${lease.seat}`;
  if (lease.election !== x.election && !seat) return `it is about election ${quote(lease.election)}, not ${quote(x.election)}`;
  if (!x.held) return "";
  if (lease.state !== "held") return `it says that election ${quote(x.election)} is vacant`;
  if (x.leader !== undefined && lease.leaderId !== x.leader) return `it says that ${quote(lease.leaderId)} leads, not ${quote(x.leader)}`;
  if (x.token !== undefined && lease.fencingToken !== x.token) return `it has the fencing token ${lease.fencingToken}, not ${x.token}`;
  return "";
}

/** @internal Returns the duration of a lease as the API writes it ("90s", "1.5s"), in milliseconds; 0 for anything else. */
export function written(duration: unknown): number {
  const [, seconds] = /^(\d+(?:\.\d+)?)s$/.exec(String(duration)) ?? [];
  return Math.floor(Number(seconds ?? 0) * 1000);
}
