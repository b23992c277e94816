import { post } from "./api.ts";
import { Backoff } from "./backoff.ts";
import type { Clock } from "./clock.ts";
import { RegentError, transient } from "./errors.ts";
import type { Http } from "./http.ts";
import type { Lease } from "./lease.ts";
import type { Log } from "./log.ts";
import { HandOver, successionAfter } from "./succession.ts";
import type { Succession } from "./schemas.ts";
import { sleep } from "./wait.ts";
import { watch } from "./watch.ts";
import type { LeaseRequest } from "./wire.ts";

/** Tells a waiting candidate that the present leader is to hand over to it. */
export interface Named {
  election: string;
  /** The successor. */
  candidate: string;
  /** The present leader, and its token. */
  leader: string | undefined;
  token: number;
  /** About the milliseconds until the present term ends, ready or not; undefined if it is not known. */
  left: number | undefined;
  /** Fires when the hand-over does not come, and when the candidate leads already or has given up: end within a second then. */
  signal: AbortSignal;
}

/** Loads what the successor needs. When it returns, the candidate is ready. */
export type OnSuccession = (named: Named) => void | Promise<void>;

export interface SuccessionOptions {
  /** Called when a leader is to hand over to this candidate, which waits: it loads what a leader needs. */
  onSuccession?: OnSuccession | undefined;
  /** Called with a new lease where the election's policy has `promotion`: it loads what a leader needs, before the election may be written to. */
  onPromotion?: ((lease: Lease) => void | Promise<void>) | undefined;
}

/** How long a candidate has waited before it watches: most that are granted a lease at once need no stream. */
const attendAfter = 1_000;
/** How long after the leader's yield a waiting call may take to be granted, before the candidate asks anew. */
const claimAfter = 250;
/** How long onSuccession has for its end once its signal has fired. */
const endLimit = 1_000;

/** What an event, a state and a refusal have in common. */
interface Heard {
  revision: number;
  leaderId?: string;
  fencingToken: number;
}

/**
 * @internal Looks after a hand-over to a candidate that waits. It learns of one by the election's events
 * and, where these cannot be watched, by refusals.
 *
 *     named --> onSuccession --> says ready --> the leader yields --> acquires at once
 *       ^            |                                 |
 *       +-- another is named, or another leads: aborted+
 */
export class Heir {
  readonly #http: Http;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #as: LeaseRequest;
  readonly #load: OnSuccession | undefined;
  readonly #end = new AbortController();
  readonly #heard = new HandOver();
  #running: Promise<unknown>[] = [];
  #term = 0; // the token of the leader that is to hand over
  #work: AbortController | undefined; // ends what prepares for it
  #loaded = false; // onSuccession has returned
  #call: AbortController | undefined; // ends the present call
  #claims = false; // the next call asks without waiting

  constructor(http: Http, clock: Clock, log: Log, as: LeaseRequest, load: OnSuccession | undefined) {
    this.#http = http;
    this.#clock = clock;
    this.#log = log;
    this.#as = as;
    this.#load = load;
  }

  /** Watches the election until the heir is ended. */
  attend(): void {
    this.#running.push(this.#watch());
  }

  async #watch(): Promise<void> {
    const { signal } = this.#end;
    await sleep(this.#clock, attendAfter, signal);
    if (signal.aborted) return;
    try {
      for await (const news of watch(this.#http, { election: this.#as.election, signal })) {
        if (news.kind === "event") this.#hear(news.event, (s) => successionAfter(s, news.event));
        if (news.kind === "state") this.#hear(news.state, () => news.state.succession);
      }
    } catch (e) {
      if (!signal.aborted) this.#log("info", "the candidate hears of a hand-over only when its wait is over", { ...this.#about(), reason: e });
    }
  }

  /** Takes what a refusal says of the election. */
  refused(error: unknown): void {
    const p = error instanceof RegentError ? error.problem : undefined;
    if (!p || p.election !== this.#as.election || p.revision === undefined || p.fencingToken === undefined) return;
    this.#hear({ ...p, revision: p.revision, fencingToken: p.fencingToken } as Heard, () => p.succession);
  }

  #hear(at: Heard, change: (s: Succession | undefined) => Succession | undefined): void {
    const known = at.fencingToken === this.#term ? this.#heard.now : undefined;
    const now = change(known);
    if (!this.#heard.hear(at.revision, now)) return;
    const mine = now?.to === this.#as.candidate && at.leaderId !== this.#as.candidate;
    if (at.fencingToken !== this.#term || !mine) this.#withdraw();
    this.#term = at.fencingToken;
    if (!mine) return;
    if (now.yielded) this.#claim();
    else if (!now.ready && !this.#work) {
      this.#work = new AbortController();
      const { signal } = this.#work;
      const { election, candidate } = this.#as;
      this.#running.push(this.#prepare({ election, candidate, leader: at.leaderId, token: at.fencingToken, left: now.untilMs || undefined, signal }));
    }
  }

  // Ends what prepares for a hand-over that does not come.
  #withdraw(): void {
    this.#work?.abort();
    this.#work = undefined;
    this.#loaded = false;
  }

  // Loads what the successor needs, and says that it is ready.
  async #prepare(named: Named): Promise<void> {
    this.#log("info", "named as the successor", { ...this.#about(), leader: named.leader, token: named.token });
    const { signal } = named;
    try {
      if (!this.#loaded) await this.#load?.(named);
      this.#loaded = !signal.aborted;
      const backoff = new Backoff();
      while (!signal.aborted) {
        try {
          await post(this.#http, ":ready", { ...this.#as, token: named.token }, {}, { signal });
          return;
        } catch (e) {
          if (!transient(e)) throw e;
          await sleep(this.#clock, backoff.after(e), signal);
        }
      }
    } catch (e) {
      if (!signal.aborted) this.#log("warn", "the candidate does not take over; it waits in line as before", { ...this.#about(), reason: e });
    }
  }

  // Lets the candidate ask for the lease that was yielded to it. A call that waits in line is granted it, too, and usually sooner.
  #claim(): void {
    this.#claims = true;
    const call = this.#call;
    if (call) void sleep(this.#clock, claimAfter, call.signal).then(() => call.abort());
  }

  /** Begins a call. Returns what ends it, and whether it asks for what was yielded, without waiting. */
  begin(): { signal: AbortSignal; claims: boolean; end: () => void } {
    const call = new AbortController();
    const claims = this.#claims;
    this.#claims = false;
    if (!claims) this.#call = call;
    const end = (): void => {
      this.#call = undefined;
      call.abort();
    };
    return { signal: call.signal, claims, end };
  }

  /** Whether the next call asks for what was yielded. */
  get due(): boolean {
    return this.#claims;
  }

  /** Ends it, and returns when nothing of it runs any more, or when onSuccession does not heed its signal. */
  async end(): Promise<void> {
    this.#end.abort();
    this.#work?.abort();
    const given = new AbortController();
    const ended = Promise.all(this.#running).then(() => given.abort());
    await Promise.race([ended, sleep(this.#clock, endLimit, given.signal)]);
    if (!given.signal.aborted) this.#log("warn", "onSuccession goes on though its signal has fired; not waiting for it", this.#about());
  }

  #about(): Record<string, unknown> {
    return { election: this.#as.election, candidate: this.#as.candidate };
  }
}
