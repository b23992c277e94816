import * as api from "./api.ts";
import { about, get, type CallOptions } from "./api.ts";
import { Calls } from "./calls.ts";
import { Campaign, type Means } from "./campaign.ts";
import { defaultCandidate, idOf, type LeadOptions } from "./candidate.ts";
import { systemClock, type Clock } from "./clock.ts";
import { EndsWithHandOver, checkNeed, followed, type RunOptions } from "./ending.ts";
import { LeaseLost, invalid } from "./errors.ts";
import { Groups } from "./groups.ts";
import { Http, misread, type Call, type Credential } from "./http.ts";
import { index } from "./journal.ts";
import { JournalReader, type FollowOptions, type JournalItem } from "./journal_reader.ts";
import { promote } from "./leader.ts";
import type { Lease } from "./lease.ts";
import { callback, harmless, type Log } from "./log.ts";
import { Member, type MemberOptions } from "./member.ts";
import type { ReleaseOptions } from "./outcome.ts";
import { proposals, propose, type ProposeOptions } from "./proposals.ts";
import { observe, type Observable, type ObserveOptions, type Observed } from "./observe.ts";
import type {
  Checkpoint, Effects, ElectionEvent, ElectionPage, ElectionState, Explanation, JoinRequest, Members, Override, Proposal, Proposals, Tree,
} from "./schemas.ts";
import { watch, type News, type WatchRequest } from "./watch.ts";
import { candidateID, checkFunction, checkOptions, path, quote } from "./wire.ts";

/** How a client calls its server. Everything may be left out. */
export interface ClientOptions {
  /** The candidate that leads, unless a call names another; by default this host: see defaultCandidate. */
  candidate?: string | undefined;
  /** What identifies the caller, such as an ID token; a function is asked before each request. */
  credential?: Credential | undefined;
  /**
   * Allows http:// to other machines. Keys and credentials can then be read, and used, on the way. Right only where
   * something else encrypts the connection, such as a tunnel.
   */
  insecure?: boolean | undefined;
  /** Gets a line when a lease is granted, cannot be renewed, is renewed again, and ends; by default nothing does. */
  log?: Log | undefined;
  /** Makes the requests; by default the global fetch. */
  fetch?: typeof fetch | undefined;
  /** Counts deadlines; by default systemClock(). */
  clock?: Clock | undefined;
}

/** Calls one server. The leases of a client are renewed together. */
export class Client {
  readonly #means: Means;
  readonly #candidate: string | undefined;
  #drawn: Promise<string> | undefined;

  /** Does not connect. Throws InvalidArgument for an address that is wrong, or of another machine over http://. */
  constructor(server: string, options: ClientOptions = {}) {
    checkOptions(options);
    checkFunction("log", options.log);
    const clock = options.clock ?? systemClock();
    const call = options.fetch ?? globalThis.fetch;
    const http = new Http({ server, insecure: options.insecure ?? false, credential: options.credential, fetch: call, clock });
    const calls = new Calls(http);
    this.#means = { calls, groups: new Groups(calls), clock, log: harmless(options.log) };
    this.#candidate = options.candidate;
  }

  /**
   * Stands in line until it leads the election, and returns the lease, which is renewed in the background.
   *
   *     await using lease = await client.lead("reports", { signal });
   *     while (lease.valid()) await work(lease.token, lease.signal);
   *
   * The lease is released at the end of the block, after its body; without `await using`, call release in a
   * finally block, or use run. Throws the reason of the signal if that is aborted, and errors that another call
   * would not change. Nothing stays behind then: a lease that was granted at the last moment is released.
   */
  async lead(election: string, options: LeadOptions = {}): Promise<Lease> {
    path(election); // refuses a wrong name
    checkOptions(options);
    checkFunction("onPromotion", options.onPromotion);
    checkFunction("onSuccession", options.onSuccession);
    const candidate = await idOf(options, () => this.#id());
    const lease = await new Campaign(this.#means, election, candidate, options).run();
    try {
      const { onPromotion } = options;
      await promote({ http: this.#http, term: lease.term }, onPromotion && (() => onPromotion(lease)), options);
      return lease;
    } catch (e) {
      await lease.release();
      throw e;
    }
  }

  /**
   * Leads once: calls the body when it leads, waits for it, and then releases the lease, with the outcome done,
   * failed if the body throws, or stopped if the signal is aborted. Returns what the body returns. Throws what lead and the body throw, and LeaseLost if the lease was over before the body returned.
   */
  async run<T>(election: string, body: (lease: Lease) => T | Promise<T>, options: LeadOptions & RunOptions = {}): Promise<T> {
    checkOptions(options);
    if (typeof body !== "function") throw invalid("run: it needs a function that does the work");
    checkNeed(options.awaitFollowers);
    const { handOverWithin, ...rest } = options;
    if (handOverWithin === undefined) return await this.#run(election, body, rest);
    const ends = new EndsWithHandOver(rest.signal, handOverWithin, this.#means.log);
    try {
      return await this.#run(election, body, { ...rest, signal: ends.signal }, ends);
    } finally {
      await ends.returned();
    }
  }

  async #run<T>(election: string, body: (lease: Lease) => T | Promise<T>, options: LeadOptions & RunOptions, ends?: EndsWithHandOver): Promise<T> {
    const lease = await this.lead(election, options);
    let result: T;
    let lost: LeaseLost | undefined;
    let outcome: ReleaseOptions = { outcome: "stopped" };
    let began = false;
    try {
      await followed(lease, options.awaitFollowers);
      ends?.leads(lease);
      began = true;
      result = await body(lease);
      if (!options.signal?.aborted) outcome = { outcome: "done" };
    } catch (e) {
      if (began && lease.valid() && !options.signal?.aborted) outcome = { outcome: "failed" };
      throw e;
    } finally {
      await ends?.returned();
      lease.valid();
      const { cause } = lease.term;
      if (cause instanceof LeaseLost && cause.end !== "RESIGNED") {
        lost = cause;
        lost.overran = lease.term.overran;
      }
      await lease.release(outcome);
    }
    if (lost) throw lost;
    return result;
  }

  /**
   * Yields who leads an election: first the present state, and then each event as it happens, once, in order and
   * without a gap. A broken connection is restored. With a prefix, all elections whose names begin so; there an event
   * may come again after a break: drop those whose revision is not greater than the last one of their election.
   *
   *     for await (const now of client.observe("reports")) console.log(now.leaderId, now.fencingToken);
   *
   * It throws the reason of the signal, or an error that would stay, such as PermissionDenied, RevisionMismatch (the
   * election has not reached `after`: the store was restored, or is another one) and HistoryCompacted (what comes
   * after the cursor is no longer kept): the caller has missed events then.
   */
  observe(what: Observable, options: ObserveOptions = {}): AsyncGenerator<Observed, never, void> {
    checkOptions(options);
    return observe(this.#http, what, this.#told(options));
  }

  /** Is observe with all that a stream tells: also of members, and when the states are complete. */
  watch(request: WatchRequest): AsyncGenerator<News, never, void> {
    checkOptions(request);
    return watch(this.#http, this.#told(request));
  }

  /**
   * Yields the entries of an election's journal after an index, 0 for all, and then each one as it is appended:
   * once, in order and without a gap. Entries that are only to be had as a snapshot come as one. With `member` it
   * tells, at most once a second, up to which item the loop has done its work; a member that has lost its state
   * takes another id.
   *
   * It throws the reason of the signal, or an error that would stay, such as IndexMismatch if the journal has not
   * reached `after`: its store was restored, or is another one.
   */
  follow(election: string, after = 0, options: FollowOptions = {}): AsyncGenerator<JournalItem, void, void> {
    path(election); // refuses a wrong name
    checkOptions(options);
    if (options.member !== undefined) candidateID(options.member);
    return new JournalReader(this.#http, election, index("after", after), options.member, options.signal).follow();
  }

  /** Keeps the program a member of the election, until the member is left or disposed of: `await using`. */
  member(election: string, options: MemberOptions = {}): Member {
    checkOptions(options);
    return new Member(this.#http, this.#means.log, election, options.id ?? this.#id(), options);
  }

  /** Reads an election as a cluster: its members, what token each follows, the quorum, and a status. */
  members(election: string, options: CallOptions = {}): Promise<Members> {
    return about(this.#http, election, "members", "/members", get(options));
  }

  /** Makes the caller a member until the ttl is over, and returns who leads. See member, which stays one. */
  join(election: string, request: JoinRequest, options: CallOptions = {}): Promise<ElectionState> {
    return api.join(this.#http, election, request, options);
  }

  /** Ends a membership at once. */
  leave(election: string, id: string, options: CallOptions = {}): Promise<void> {
    return api.leave(this.#http, election, id, options);
  }

  /** Reads an election, as it was `maxStalenessMs` ago at most. */
  async read(election: string, options: api.ReadOptions = {}): Promise<ElectionState> {
    const { strong, minRevision } = options;
    const state = await about<ElectionState>(this.#http, election, "read", "", get(options, { consistency: strong ? "strong" : undefined, minRevision }));
    const call = { name: "read", changes: false };
    if (state.revision < (minRevision ?? 0)) throw misread(call, `it is at revision ${state.revision}, but revision ${minRevision} was known`);
    if (strong && state.maxStalenessMs) throw misread(call, `it may be ${state.maxStalenessMs} ms old, but a strong read was asked for`);
    return state;
  }

  /** Yields the elections that the caller may read, in the order of their names, page by page. */
  async *list(options: api.ListOptions = {}): AsyncGenerator<ElectionState, void, void> {
    let pageToken: string | undefined;
    do {
      const query = { prefix: options.prefix || undefined, pageSize: options.pageSize, pageToken };
      const call: Call = { name: "list", path: "/v1/elections", changes: false, ...get(options, query) };
      const { body }: { body: ElectionPage } = await this.#http.call<ElectionPage>(call);
      if (!Array.isArray(body.elections) || (body.nextPageToken && body.nextPageToken === pageToken)) throw misread(call, "it is no page");
      yield* body.elections as ElectionState[];
      pageToken = body.nextPageToken;
    } while (pageToken);
  }

  /** Reads a part of an election's history, oldest first. HistoryCompacted: it is no longer kept. */
  async events(election: string, options: api.EventsOptions = {}): Promise<ElectionEvent[]> {
    const call: Call = { name: "events", path: path(election, "/events"), changes: false, ...get(options, { after: options.after, limit: options.limit }) };
    const { body } = await this.#http.call<{ events: ElectionEvent[] }>(call);
    if (!Array.isArray(body.events)) throw misread(call, "it has no events");
    for (const e of body.events) if (e.election !== election) throw misread(call, `it has an event of election ${quote(e.election)}, not ${quote(election)}`);
    return body.events;
  }

  /** Returns the election if the token is the current leader's, and throws TokenStale otherwise. */
  async checkToken(election: string, token: number, options: api.CheckOptions = {}): Promise<ElectionState> {
    const state = await about<ElectionState>(this.#http, election, "check token", ":checkToken", { body: { fencingToken: token, use: options.use }, signal: options.signal });
    if (state.state !== "held" || state.fencingToken !== token) {
      throw misread({ name: "check token", changes: false }, `it has fencing token ${state.fencingToken}, not ${token}`);
    }
    return state;
  }

  /** Says why a candidate does not lead. */
  explain(election: string, candidate: string, options: CallOptions = {}): Promise<Explanation> {
    return api.explain(this.#http, election, candidate, options);
  }

  /** Reads the standing orders of an election, the oldest first. */
  async overrides(election: string, options: CallOptions = {}): Promise<Override[]> {
    const call: Call = { name: "overrides", path: path(election, "/overrides"), changes: false, ...get(options) };
    const { body } = await this.#http.call<{ overrides: Override[] }>(call);
    if (!Array.isArray(body.overrides)) throw misread(call, "it has no overrides");
    return body.overrides;
  }

  /** Reads an election with what was delegated below it. */
  tree(election: string, options: CallOptions = {}): Promise<Tree> {
    return about(this.#http, election, "tree", "/tree", get(options));
  }

  /** Reads the checkpoint of an election. NotFound: it has none. */
  checkpoint(election: string, options: CallOptions = {}): Promise<Checkpoint> {
    return about(this.#http, election, "checkpoint", "/checkpoint", get(options));
  }

  /** Reads the effects that leaders have begun and finished; see Lease.beginEffect. Old ones are forgotten. */
  effects(election: string, options: CallOptions = {}): Promise<Effects> {
    return about(this.#http, election, "effects", "/effects", get(options));
  }

  /**
   * Asks the leader of an election for a decision, now or within the ttl; the election may be vacant. `kind` is one
   * line of at most 64 bytes. The proposer needs no lease. The same call again is about the same proposal: take a new
   * id for each. With `wait` it resolves once there is a decision, also over failures of the server. It resolves to
   * the proposal as it stands: without a decision it is open.
   *
   * Errors: NotFound, if the election does not exist, or the proposal is kept no longer; LimitExceeded, with 8 open
   * ones of one proposer, or 64 of the election; InvalidArgument, also if the id is that of another proposal;
   * PayloadTooLarge; the reason of the signal.
   */
  async propose(election: string, proposalId: string, kind: string, options: ProposeOptions = {}): Promise<Proposal> {
    checkOptions(options);
    return propose(this.#http, this.#means.clock, election, proposalId, kind, options.candidate ?? (await this.#id()), options);
  }

  /** Reads the proposals of an election that are open, and the last that were decided. None is kept after its ttl. */
  proposals(election: string, options: CallOptions = {}): Promise<Proposals> {
    return proposals(this.#http, election, options);
  }

  /** What onConnection throws does not end the loop. */
  #told<T extends ObserveOptions>(options: T): T {
    return { ...options, onConnection: callback(this.#means.log, "onConnection", options.onConnection) };
  }

  get #http(): Http {
    return this.#means.calls.http;
  }

  #id(): string | Promise<string> {
    return this.#candidate ?? (this.#drawn ??= defaultCandidate(this.#means.log));
  }

  /** @internal */
  get means(): Means {
    return this.#means;
  }
}
