import type { Bounds } from "./calls.ts";
import { invalid } from "./errors.ts";
import { misread, type Call, type Http } from "./http.ts";
import { candidateID, path, quote, text, type LeaseRequest, type Schemas } from "./wire.ts";
import type {
  Acknowledgement, Checkpoint, ElectionEvent, ElectionPage, ElectionState, Explanation, JoinRequest, JournalHead, JournalPage, JournalSnapshot, Override,
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

/** @internal Makes a call about one election, and checks that the reply is about it. */
export async function about<T extends { election: string }>(http: Http, election: string, name: string, suffix: string, rest: Rest): Promise<T> {
  const call: Call = { name, path: path(election, suffix), changes: false, ...rest };
  const { body } = await http.call<T>(call);
  if (body.election !== election) throw misread(call, `it is about election ${quote(body.election)}, not ${quote(election)}`);
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

/** @internal Reads an election. */
export async function read(http: Http, election: string, options: ReadOptions = {}): Promise<ElectionState> {
  const { strong, minRevision } = options;
  const state = await about<ElectionState>(http, election, "read", "", get(options, { consistency: strong ? "strong" : undefined, minRevision }));
  const call = { name: "read", changes: false };
  if (state.revision < (minRevision ?? 0)) throw misread(call, `it is at revision ${state.revision}, but revision ${minRevision} was known`);
  if (strong && state.maxStalenessMs) throw misread(call, `it may be ${state.maxStalenessMs} ms old, but a strong read was asked for`);
  return state;
}

export interface ListOptions extends CallOptions {
  /** Only elections whose names begin so. */
  prefix?: string | undefined;
  /** How many elections a page has; 100 by default. */
  pageSize?: number | undefined;
}

/** @internal Yields the elections that the caller may read, in the order of their names, page by page. */
export async function* list(http: Http, options: ListOptions = {}): AsyncGenerator<ElectionState, void, void> {
  let pageToken: string | undefined;
  do {
    const query = { prefix: options.prefix || undefined, pageSize: options.pageSize, pageToken };
    const call: Call = { name: "list", path: "/v1/elections", changes: false, ...get(options, query) };
    const { body }: { body: ElectionPage } = await http.call<ElectionPage>(call);
    if (!Array.isArray(body.elections) || (body.nextPageToken && body.nextPageToken === pageToken)) throw misread(call, "it is no page");
    yield* body.elections as ElectionState[];
    pageToken = body.nextPageToken;
  } while (pageToken);
}

export interface EventsOptions extends CallOptions {
  /** The revision after which to begin; 0 by default. */
  after?: number | undefined;
  /** How many events at most; 100 by default. */
  limit?: number | undefined;
}

/** @internal Reads a part of an election's history, oldest first. HistoryCompacted: it is no longer kept. */
export async function events(http: Http, election: string, options: EventsOptions = {}): Promise<ElectionEvent[]> {
  const call: Call = { name: "events", path: path(election, "/events"), changes: false, ...get(options, { after: options.after, limit: options.limit }) };
  const { body } = await http.call<{ events: ElectionEvent[] }>(call);
  if (!Array.isArray(body.events)) throw misread(call, "it has no events");
  for (const e of body.events) if (e.election !== election) throw misread(call, `it has an event of election ${quote(e.election)}, not ${quote(election)}`);
  return body.events;
}

export interface CheckOptions extends CallOptions {
  /** With "write" also ReadOnly and NotReady are thrown: see the README of the API. "read" by default. */
  use?: "read" | "write" | undefined;
}

/** @internal Returns the election if the token is the current leader's, and throws TokenStale otherwise. */
export async function checkToken(http: Http, election: string, token: number, options: CheckOptions = {}): Promise<ElectionState> {
  const state = await about<ElectionState>(http, election, "check token", ":checkToken", { body: { fencingToken: token, use: options.use }, signal: options.signal });
  if (state.state !== "held" || state.fencingToken !== token) {
    throw misread({ name: "check token", changes: false }, `it has fencing token ${state.fencingToken}, not ${token}`);
  }
  return state;
}

/** @internal Says why a candidate does not lead. */
export function explain(http: Http, election: string, candidate: string, options: CallOptions = {}): Promise<Explanation> {
  candidateID(candidate);
  return about(http, election, "explain", `/candidates/${candidate}:explain`, get(options));
}

/** @internal Reads the standing orders of an election, the oldest first. */
export async function overrides(http: Http, election: string, options: CallOptions = {}): Promise<Override[]> {
  const call: Call = { name: "overrides", path: path(election, "/overrides"), changes: false, ...get(options) };
  const { body } = await http.call<{ overrides: Override[] }>(call);
  if (!Array.isArray(body.overrides)) throw misread(call, "it has no overrides");
  return body.overrides;
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

/** @internal Says which members follow a token, waiting for so many of them for up to that time. */
export function awaitAcknowledgement(http: Http, election: string, token: number, need: number, wait: number, options: CallOptions = {}): Promise<Acknowledgement> {
  const body = { fencingToken: token, need, wait: text(wait) };
  return about(http, election, "await acknowledgement", ":awaitAcknowledgement", { body, wait, signal: options.signal });
}

/** @internal Makes a call in the name of a lease. */
export function post<T extends { election: string }>(http: Http, suffix: string, lease: LeaseRequest, more: object, bounds: Bounds = {}): Promise<T> {
  return about(http, lease.election, suffix.slice(1), suffix, { body: as(lease, more), changes: true, ...bounds });
}

/** @internal Says that a successor has loaded what it needs. The token is that of the present leader. */
export function sayReady(http: Http, lease: LeaseRequest, options: CallOptions = {}): Promise<ElectionState> {
  return post(http, ":ready", lease, {}, { signal: options.signal });
}

/** @internal Makes an election for a part of the leader's task. */
export async function delegate(http: Http, lease: LeaseRequest, child: string, limits: object | undefined, options: CallOptions = {}): Promise<ElectionState> {
  const name = `${lease.election}.${child}`;
  const call: Call = { name: "delegate", path: path(lease.election, ":delegate"), changes: true, body: as(lease, { child, limits }), signal: options.signal };
  const { body } = await http.call<ElectionState>(call);
  if (body.election !== name) throw misread(call, `it is about election ${quote(body.election)}, not ${quote(name)}`);
  return body;
}

/** @internal */
export function putCheckpoint(http: Http, lease: LeaseRequest, content: object, options: CallOptions = {}): Promise<Checkpoint> {
  return about(http, lease.election, "put checkpoint", "/checkpoint", { method: "PUT", body: as(lease, content), changes: true, signal: options.signal });
}

/** @internal Begins or finishes an effect, as the suffix says. */
export async function changeEffect(
  http: Http, suffix: ":begin" | ":finish", lease: LeaseRequest, effectId: string, result: unknown, options: CallOptions = {},
): Promise<Schemas["Effect"]> {
  const reply = await post<Schemas["Effect"]>(http, suffix, lease, { effectId, result }, { signal: options.signal });
  if (reply.effectId !== effectId) throw misread({ name: suffix.slice(1), changes: true }, `it is about effect ${quote(reply.effectId)}, not ${quote(effectId)}`);
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
