import { join, leave } from "./api.ts";
import { Backoff } from "./backoff.ts";
import { timer } from "./clock.ts";
import { LimitExceeded, NotFound, OutcomeUnknown, invalid, transient } from "./errors.ts";
import type { Http } from "./http.ts";
import { callback, type Log } from "./log.ts";
import { sleep } from "./resume.ts";
import type { ElectionState, JoinRequest } from "./schemas.ts";
import { linked, onAbort } from "./wait.ts";
import { candidateID, milliseconds, path, quote, text, type Duration } from "./wire.ts";
import { watch } from "./watch.ts";

/** The leader of an election, undefined for none, and the newest token, as a member has heard. */
export interface Told {
  leader: string | undefined;
  token: number;
}

/** Says which member a program is, and how. */
export interface MemberOptions {
  /** Unique among the members of the election, candidates included; the candidate of the Client by default. */
  id?: string | undefined;
  /** "follower" by default. */
  role?: "follower" | "worker" | "witness" | undefined;
  /** How long the member counts unless it joins again, from "10s" to "5m"; "30s" by default. */
  ttl?: Duration | undefined;
  /** For people: one line of at most 256 bytes. */
  note?: string | undefined;
  /**
   * Returns the newest fencing token that the member follows; 0 for none. It is asked every second.
   * Without it a member follows the newest token that it has heard of.
   */
  seenToken?: (() => number) | undefined;
  /** Called when the member has joined, and when it hears of a change. */
  onTold?: ((told: Told) => void) | undefined;
  /** Called with the error of each join that is tried again. */
  onFailure?: ((error: unknown) => void) | undefined;
  /** Ends the membership. */
  signal?: AbortSignal | undefined;
}

/** How often seenToken is asked, and how long the call that leaves, or a join before it, may take, in milliseconds. */
const seenEvery = 1_000;
const leaveLimit = 5_000;

/**
 * Keeps the program a member of an election until it is left: `await using` does that, and so do leave
 * and the signal. It joins again every third of its ttl, and at once when it follows another token. It
 * watches the election to hear of one; where that is not possible it hears of it when it joins. It goes
 * on while the server cannot be reached, has no room for more members, or knows no such election.
 */
export class Member implements AsyncDisposable {
  readonly election: string;
  /** "" while the default of the client is looked up, until it has joined. */
  id = "";
  /** Resolves when the membership has ended, and rejects with an error that would stay, such as PermissionDenied. */
  readonly done: Promise<void>;
  /** Resolves when the member has joined once; rejects if it never does. */
  readonly joined: Promise<void>;
  readonly #http: Http;
  readonly #options: MemberOptions;
  readonly #seenToken: (() => number | undefined) | undefined;
  readonly #onTold: ((told: Told) => void) | undefined;
  readonly #onFailure: ((error: unknown) => void) | undefined;
  readonly #ttl: number;
  readonly #end: AbortController;
  readonly #backoff = new Backoff();
  #wake: () => void = () => {};
  #seen = 0; // the token that it says it follows
  #now: Told = { leader: undefined, token: 0 };
  #at = -1; // the revision of that
  #told: Told | undefined;
  #answered = false; // a join was
  #unknown = false; // one may have arrived
  #due = false; // it has to say what it follows

  /** @internal */
  constructor(http: Http, log: Log, election: string, id: string | Promise<string>, options: MemberOptions) {
    path(election); // checks the name
    this.#http = http;
    this.election = election;
    if (typeof id === "string") this.id = candidateID(id);
    this.#options = options;
    this.#seenToken = callback(log, "seenToken", options.seenToken);
    this.#onTold = callback(log, "onTold", options.onTold);
    this.#onFailure = callback(log, "onFailure", options.onFailure);
    this.#ttl = milliseconds("ttl", options.ttl ?? "30s");
    if (this.#ttl < 10_000 || this.#ttl > 300_000) throw invalid(`ttl: it is from "10s" to "5m", not ${quote(options.ttl)}`);
    const { role = "follower", signal } = options;
    if (!["follower", "worker", "witness"].includes(role)) throw invalid(`role: it is "follower", "worker" or "witness", not ${quote(role)}`);
    let joined = (): void => {};
    this.joined = new Promise((resolve, reject) => {
      joined = resolve;
      queueMicrotask(() => this.done.then(() => reject(signal?.reason ?? new DOMException("the member has left", "AbortError")), reject));
    });
    this.joined.catch(() => {});
    const { controller, leave } = linked(signal);
    this.#end = controller;
    void this.#watch();
    this.done = this.#run(id, joined).finally(() => {
      leave();
      this.#end.abort();
    });
    this.done.catch(() => {}); // for those that ask
  }

  /** The leader and the newest token that the member has heard of. */
  get now(): Told {
    return { ...this.#now };
  }

  /** Ends the membership, and returns when it has ended; the ttl ends it if the call fails. */
  async leave(): Promise<void> {
    this.#end.abort();
    await this.done.catch(() => {});
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.leave();
  }

  async #run(id: string | Promise<string>, joined: () => void): Promise<void> {
    const { signal } = this.#end;
    try {
      if (typeof id !== "string") this.id = await id;
      while (!signal.aborted) {
        const pause = await this.#join();
        if (this.#answered) joined();
        await this.#rest(pause);
      }
    } catch (e) {
      if (!signal.aborted) throw e;
    } finally {
      if (this.#answered || this.#unknown) await leave(this.#http, this.election, this.id, { limit: leaveLimit }).catch(() => {});
    }
  }

  // Joins once, and returns the time until the next call. Throws what would stay.
  async #join(): Promise<number> {
    const { role = "follower", note } = this.#options;
    this.#seen = this.#follows();
    this.#due = false;
    this.#end.signal.throwIfAborted(); // seenToken may have ended it
    const request = { candidateId: this.id, role, ttl: text(this.#ttl), ...(this.#seen > 0 ? { seenToken: this.#seen } : {}), ...(note ? { note } : {}) };
    try {
      const state = await this.#joinOnce(request);
      this.#backoff.reset();
      this.#answered = true;
      if (this.#hear(state.revision, { leader: state.leaderId, token: state.fencingToken })) return 0; // it has to say so
      return (this.#ttl / 3) * (1 - Math.random() / 10);
    } catch (e) {
      if (this.#end.signal.aborted || e instanceof OutcomeUnknown) this.#unknown = true;
      if (!transient(e) && !(e instanceof LimitExceeded) && !(e instanceof NotFound)) throw e;
      if (!this.#end.signal.aborted) this.#onFailure?.(e);
      return this.#backoff.after(e);
    }
  }

  // Waits for the answer, also when the membership ends, for as long as it may take to leave: a join that is cut off may
  // be carried out after the member has left.
  async #joinOnce(request: JoinRequest): Promise<ElectionState> {
    const late = new AbortController();
    let cancel = (): void => {};
    const unhook = onAbort(this.#end.signal, () => (cancel = timer(leaveLimit, () => late.abort())));
    try {
      return await join(this.#http, this.election, request, { signal: late.signal });
    } finally {
      unhook();
      cancel();
    }
  }

  // Takes what the member has heard of, and reports whether it now follows another token.
  #hear(revision: number, now: Told): boolean {
    if (revision > this.#at || (revision === this.#at && now.token >= this.#now.token)) [this.#at, this.#now] = [revision, now];
    this.#tell();
    if (this.#seenToken || now.token <= this.#seen) return false;
    this.#seen = now.token;
    return true;
  }

  // Calls onTold if there is something to tell, once the member has joined.
  #tell(): void {
    const { leader, token } = this.#now;
    if (!this.#answered || (this.#told?.leader === leader && this.#told?.token === token)) return;
    this.#told = { leader, token };
    this.#onTold?.({ leader, token });
  }

  // The newest token that the member follows; the last one if seenToken cannot say.
  #follows(): number {
    const seen = this.#seenToken?.();
    return Number.isSafeInteger(seen) ? seen! : this.#seen;
  }

  // Returns when the member has to join again.
  async #rest(pause: number): Promise<void> {
    if (this.#due) return;
    const rest = new AbortController();
    const wake = (): void => rest.abort();
    this.#wake = wake;
    const leave = onAbort(this.#end.signal, wake);
    const looks = this.#seenToken && setInterval(() => this.#follows() !== this.#seen && wake(), seenEvery);
    await sleep(this.#end.signal.aborted ? 0 : pause, rest.signal);
    clearInterval(looks);
    leave();
  }

  // Hears of changes until the membership ends, or the watch does for good.
  async #watch(): Promise<void> {
    try {
      for await (const news of watch(this.#http, { election: this.election, signal: this.#end.signal })) {
        const heard = news.kind === "state" ? news.state : news.kind === "event" ? news.event : undefined;
        if (!heard || !this.#hear(heard.revision, { leader: heard.leaderId, token: heard.fencingToken })) continue;
        this.#due = true;
        this.#wake();
      }
    } catch {
      // the member hears of a new leader only when it joins
    }
  }
}
