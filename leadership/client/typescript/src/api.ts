import type { Bounds } from "./calls.ts";
import { invalid } from "./errors.ts";
import { misread, type Call, type Http } from "./http.ts";
import { candidateID, path, quote, type LeaseRequest, type Schemas } from "./wire.ts";
import type {
  Checkpoint, ElectionState, Explanation, JoinRequest, JournalHead, JournalPage, JournalSnapshot,
} from "./schemas.ts";

/** What a call may have beside its arguments. */
export interface CallOptions {
  /** Ends the call, which then throws its reason. */
  signal?: AbortSignal | undefined;
}

/** What a call is sent with, beside its path. */
type Rest = Omit<Call, "name" | "path" | "changes"> & { changes?: boolean };

/** Limits the replies that are pages and trees: twice a full page with the largest metadata. */
const maxPage = 16 << 20;

/** @internal Makes a call about one election, and checks that the reply is about it, or about `of`. */
export async function about<T extends { election: string }>(http: Http, election: string, name: string, suffix: string, rest: Rest, of = election): Promise<T> {
  const call: Call = { name, path: path(election, suffix), changes: false, ...rest };
  const { body } = await http.call<T>(call);
  if (body.election !== of) throw misread(call, `it is about election ${quote(body.election)}, not ${quote(of)}`);
  return body;
}

/** @internal What a read is sent with. */
export const get = (options: CallOptions, query: Record<string, string | number | undefined> = {}): Rest => ({ method: "GET", query, signal: options.signal, maxReply: maxPage });

/** The body of a call in the name of a lease. */
const as = (r: LeaseRequest, more: object): object => ({ candidateId: r.candidate, key: r.key.reveal(), fencingToken: r.token, ...more });

export interface ReadOptions extends CallOptions {
  /** Asks the store; otherwise the answer may be `maxStalenessMs` old. */
  strong?: boolean | undefined;
  /** Refuses anything older than this revision: RevisionMismatch if the store has not reached it. */
  minRevision?: number | undefined;
}

export interface ListOptions extends CallOptions {
  /** Only elections whose names begin so. */
  prefix?: string | undefined;
  /** How many elections a page has; 100 by default. */
  pageSize?: number | undefined;
}

export interface EventsOptions extends CallOptions {
  /** The revision after which to begin; 0 by default. */
  after?: number | undefined;
  /** How many events at most; 100 by default. */
  limit?: number | undefined;
}

export interface CheckOptions extends CallOptions {
  /** With "write" also ReadOnly and NotReady are thrown: see the README of the API. "read" by default. */
  use?: "read" | "write" | undefined;
}

/** @internal Says why a candidate does not lead. */
export function explain(http: Http, election: string, candidate: string, bounds: Bounds = {}): Promise<Explanation> {
  candidateID(candidate);
  return about(http, election, "explain", `/candidates/${candidate}:explain`, { ...get(bounds), ...bounds });
}

/** @internal Makes the caller a member until the ttl of the request is over, and returns who leads. */
export function join(http: Http, election: string, request: JoinRequest, options: CallOptions = {}): Promise<ElectionState> {
  candidateID(request.candidateId);
  return about(http, election, "join", ":join", { body: request, changes: true, signal: options.signal });
}

/** @internal Ends a membership at once. To leave twice is like once. */
export async function leave(http: Http, election: string, id: string, bounds: Bounds = {}): Promise<void> {
  candidateID(id);
  await about(http, election, "leave", ":leave", { body: { candidateId: id }, changes: true, ...bounds });
}

/** @internal Makes a call in the name of a lease. */
export function post<T extends { election: string }>(http: Http, suffix: string, lease: LeaseRequest, more: object, bounds: Bounds = {}, of?: string): Promise<T> {
  return about(http, lease.election, suffix.slice(1), suffix, { body: as(lease, more), changes: true, ...bounds }, of);
}

/** @internal */
export function putCheckpoint(http: Http, lease: LeaseRequest, content: object, options: CallOptions = {}): Promise<Checkpoint> {
  return about(http, lease.election, "put checkpoint", "/checkpoint", { method: "PUT", body: as(lease, content), changes: true, signal: options.signal });
}

/** @internal Begins or finishes an effect, as the suffix says. */
export async function changeEffect(
  http: Http, suffix: ":begin" | ":finish", lease: LeaseRequest, effect: { effectId: string; attemptId?: string; result?: unknown }, options: CallOptions = {},
): Promise<Schemas["Effect"]> {
  const reply = await post<Schemas["Effect"]>(http, suffix, lease, effect, { signal: options.signal });
  if (reply.effectId !== effect.effectId) throw misread({ name: suffix.slice(1), changes: true }, `it is about effect ${quote(reply.effectId)}, not ${quote(effect.effectId)}`);
  return reply;
}

export interface JournalOptions extends CallOptions {
  /** The index after which to begin; 0 by default. */
  after?: number | undefined;
  /** That of the page which was read last; 0 by default. */
  generation?: number | undefined;
  /** How many entries at most; 100 by default. */
  limit?: number | undefined;
  /** A follower, and up to which entry it has applied the journal. */
  member?: string | undefined;
  applied?: number | undefined;
}

/** @internal Reads a part of a journal. HistoryCompacted: it is only to be had as a snapshot. */
export function readJournal(http: Http, election: string, options: JournalOptions = {}): Promise<JournalPage> {
  const { after, generation, limit, member, applied } = options;
  if (member !== undefined) candidateID(member);
  return about(http, election, "journal", "/journal", get(options, { after, generation: generation || undefined, limit, member, applied: applied || undefined }));
}

/** @internal Reads the newest snapshot of a journal. NotFound: it has none. */
export function readSnapshot(http: Http, election: string, options: CallOptions = {}): Promise<JournalSnapshot> {
  return about(http, election, "read snapshot", "/journal/snapshot", get(options));
}

/** @internal */
export function putSnapshot(http: Http, lease: LeaseRequest, content: object, options: CallOptions = {}): Promise<JournalHead> {
  return about(http, lease.election, "put snapshot", "/journal/snapshot", { method: "PUT", body: as(lease, content), changes: true, signal: options.signal });
}

/** @internal Refuses data that JSON cannot express; null is no data. */
export function checkData(field: string, data: unknown): void {
  let text: string | undefined;
  try {
    text = JSON.stringify(data);
  } catch (e) {
    throw invalid(`${field} cannot be written as JSON: ${e instanceof Error ? e.message : String(e)}`);
  }
  if (text === undefined || text === "null") throw invalid(`${field} must be something that JSON can express, and not null`);
}
