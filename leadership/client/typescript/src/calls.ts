import { RegentError, ofProblem } from "./errors.ts";
import { isObject, misread, type Http } from "./http.ts";
import { leaseBody, path, readLease, text, type Election, type Expected, type LeaseRequest, type Schemas } from "./wire.ts";

/** @internal How long one call may take, and what ends it. */
export interface Bounds {
  signal?: AbortSignal | undefined;
  limit?: number;
}

/** @internal A lease that was granted. */
export type Grant = Schemas["Grant"] & Election;

/** @internal What an acquire asks for. */
export interface AcquireRequest {
  election: string;
  body: Schemas["AcquireRequest"];
  /** Milliseconds. */
  wait: number;
}

/** @internal The calls of a leader. They do not retry. */
export class Calls {
  readonly http: Http;

  constructor(http: Http) {
    this.http = http;
  }

  async acquire(r: AcquireRequest, bounds: Bounds = {}): Promise<Grant> {
    const k = { name: "acquire", path: path(r.election, ":acquire"), changes: true, wait: r.wait, ...bounds };
    const body = r.wait > 0 ? { ...r.body, wait: text(r.wait) } : r.body;
    const reply = await this.http.call({ ...k, body });
    const grant = readLease<Grant>(k, reply.body, { election: r.election, seats: true, held: true, leader: r.body.candidateId });
    grant.waitedMs = Math.min(grant.waitedMs ?? 0, r.wait); // it moves the deadline later
    return grant;
  }

  renew(r: LeaseRequest, bounds: Bounds = {}): Promise<Election> {
    return this.#lease("renew", r, { election: r.election, held: true, leader: r.candidate, token: r.token }, bounds);
  }

  release(r: LeaseRequest, said: { outcome?: string; note?: string } = {}, bounds: Bounds = {}): Promise<Election> {
    return this.#lease("release", r, { election: r.election }, bounds, said);
  }

  /** Reads an election from the store. */
  async get(election: string, bounds: Bounds = {}): Promise<Election> {
    const k = { name: "read", path: path(election), changes: false, ...bounds };
    const reply = await this.http.call({ ...k, method: "GET", query: { consistency: "strong" } });
    return readLease(k, reply.body, { election });
  }

  /** Renews several leases. The results are in the order of the requests: a lease, or its error. */
  async batchRenew(batch: LeaseRequest[], bounds: Bounds = {}): Promise<(Election | RegentError)[]> {
    const k = { name: "batch renew", path: "/v1/elections:batchRenew", changes: true, maxReply: 16 << 20, ...bounds };
    const renewals = batch.map((r) => ({ election: r.election, ...leaseBody(r) }));
    const { body } = await this.http.call<{ results: unknown }>({ ...k, body: { renewals } });
    const { results } = body;
    if (!Array.isArray(results) || results.length !== batch.length) throw misread(k, `it has not ${batch.length} results`);
    return batch.map((r, i) => this.#result(k, r, results[i]));
  }

  #result(k: { name: string; changes: boolean }, r: LeaseRequest, result: unknown): Election | RegentError {
    if (!isObject(result) || result.election !== r.election) throw misread(k, "a result is about another election");
    const { error } = result;
    if (isObject(error) && typeof error.code === "string" && error.code) return ofProblem("renew", error as unknown as Schemas["Problem"]);
    return readLease(k, result.lease, { election: r.election, held: true, leader: r.candidate, token: r.token });
  }

  async #lease(name: string, r: LeaseRequest, x: Expected, bounds: Bounds, said: object = {}): Promise<Election> {
    const k = { name, path: path(r.election, ":" + name), changes: true, ...bounds };
    const reply = await this.http.call({ ...k, body: { ...leaseBody(r), ...said } });
    return readLease(k, reply.body, x);
  }
}
