import { explain } from "./api.ts";
import { Backoff } from "./backoff.ts";
import type { AcquireRequest, Calls } from "./calls.ts";
import { candidacy, marginOf, type LeadOptions } from "./candidate.ts";
import type { Clock } from "./clock.ts";
import { LeaseHeld, LeaseLost, NotFound, OutcomeUnknown, RateLimited, RegentError, invalid, transient } from "./errors.ts";
import type { Groups } from "./groups.ts";
import { Heir } from "./heir.ts";
import { defaultLimit } from "./http.ts";
import { Keeper, about, patience } from "./keeper.ts";
import { Lease, release } from "./lease.ts";
import type { Log } from "./log.ts";
import { Term } from "./term.ts";
import { linked, sleep } from "./wait.ts";
import { Secret, milliseconds, written, type Election } from "./wire.ts";

/** How long one call stands in line, in milliseconds: as long as a server lets it. */
const maxWait = 60_000;
/** How many calls are made that do not stand in line. */
const triesWithoutWait = 3;
/** The longest pause of a candidate in line: the server keeps its place for 5 s. */
const maxLinePause = 4000;
/** How much longer than its wait a campaign may take, in milliseconds, if the server does not answer. */
const slack = 10_000;
/** Milliseconds for the release of a lease that is not wanted any more. */
const abandonTimeout = 5000;
/** How long after its caller has gone a request may still be granted a lease: a write of a slow store takes so long. */
const underWay = 2500;
/** The longest pause between two looks for such a lease. */
const maxLookPause = 500;

/** @internal What a campaign needs of its client. */
export interface Means {
  calls: Calls;
  groups: Groups;
  clock: Clock;
  log: Log;
}

/**
 * @internal One candidate that asks for one lease. All its calls use one key, so at most one lease is granted,
 * and one that is not wanted any more is released.
 */
export class Campaign {
  readonly #means: Means;
  readonly #election: string;
  readonly #candidate: string;
  readonly #o: LeadOptions;
  readonly #key = Secret.key();
  readonly #base: ReturnType<typeof candidacy>;
  readonly #wait: number; // in all; Infinity for no limit
  readonly #backoff = new Backoff();
  readonly #heir: Heir;
  #unknown = false; // a lease may have been granted of which the caller has not heard
  #sent = 0;
  #failed = false;

  constructor(means: Means, election: string, candidate: string, o: LeadOptions) {
    this.#means = means;
    this.#election = election;
    this.#candidate = candidate;
    this.#o = o;
    this.#base = candidacy(o, candidate);
    this.#wait = o.wait === undefined ? Infinity : milliseconds("wait", o.wait);
    const as = { election, candidate, key: this.#key, token: 0 };
    this.#heir = new Heir(means.calls.http, means.clock, means.log, as, o.onSuccession);
  }

  /** Asks until it leads. Throws the reason of the signal, or an error that another call would not change. */
  async run(): Promise<Lease> {
    const parent = this.#o.via?.signal;
    const { controller, leave } = linked(this.#o.signal, parent);
    const { signal } = controller;
    if (this.#wait > 0 && this.#o.role !== "witness") this.#heir.attend();
    let lease: Lease;
    try {
      lease = await this.#ask(signal);
    } catch (e) {
      await this.#abandon();
      throw e;
    } finally {
      await this.#heir.end();
      leave();
    }
    if (!signal.aborted) return lease;
    await lease.release();
    throw signal.reason;
  }

  async #ask(signal: AbortSignal): Promise<Lease> {
    const { clock } = this.#means;
    const end = clock.now() + this.#wait;
    let last = end + slack;
    for (let round = 1; ; round++) {
      signal.throwIfAborted();
      const wait = Math.floor(Math.min(maxWait, Math.max(0, end - clock.now())));
      try {
        return await this.#once(wait, last - clock.now(), signal);
      } catch (e) {
        signal.throwIfAborted();
        if (this.#heir.due) continue; // its own lease waits for it
        const turn = turnOf(e);
        const held = e instanceof LeaseHeld;
        // with LEASE_LOST the lease of an earlier call, whose reply was lost or late, was over when this one renewed it
        if (!held && !(e instanceof LeaseLost) && !transient(e)) throw e;
        const pause = this.#pause(e, held, wait);
        if (this.#wait === 0) last += turn;
        if (this.#wait === 0 ? (held && !turn) || round === triesWithoutWait || clock.now() + pause >= last : clock.now() >= end) throw e;
        await sleep(clock, Math.min(pause, this.#wait === 0 ? Infinity : end - clock.now()), signal);
      }
    }
  }

  async #once(wait: number, left: number, signal: AbortSignal): Promise<Lease> {
    const { calls, clock, groups, log } = this.#means;
    const turn = this.#heir.begin();
    const request = this.#request(turn.claims ? 0 : wait);
    const { controller: call, leave } = linked(signal, turn.signal);
    this.#sent = clock.now();
    const sent = this.#sent;
    let grant;
    try {
      grant = await calls.acquire(request, { signal: call.signal, limit: Math.min(defaultLimit + request.wait, left) });
    } catch (e) {
      this.#heir.refused(e);
      this.#note(e);
      throw e;
    } finally {
      turn.end();
      leave();
    }
    this.#unknown = true; // until the caller has the lease
    const margin = marginOf(this.#o, written(grant.leaseDuration));
    const term = new Term({ clock, key: this.#key, sent, grant, margin, signal: this.#o.signal, parent: this.#o.via?.term, states: this.#o.statement ?? false });
    if (term.remaining() === 0) {
      signal.throwIfAborted();
      this.#backoff.reset(); // the next call gets the same lease, renewed, or a new one
      throw new OutcomeUnknown("acquire: the lease was over when its grant arrived; ask for a longer lease, or use a shorter margin (OUTCOME_UNKNOWN)");
    }
    term.noteEnd();
    log("info", "leading", { ...about(term), remaining: term.remaining() });
    return new Lease(term, new Keeper(term, calls, groups, log), calls, log);
  }

  #request(wait: number): AcquireRequest {
    const { via, viaPeer, load } = this.#o;
    via?.check();
    const now = typeof load === "function" ? load() : (load ?? 0);
    if (!Number.isSafeInteger(now) || now < 0) throw invalid("load: it is an integer, 0 or more");
    const body = {
      ...this.#base,
      key: this.#key.reveal(),
      ...(now ? { load: now } : {}),
      ...(via ? { via: { election: via.election, fencingToken: via.token, ...(viaPeer ? { peer: viaPeer } : {}) } } : {}),
    };
    return { election: this.#election, body, wait };
  }

  /** Notes a call that returned no lease. A refusal shows that no earlier call was granted. */
  #note(e: unknown): void {
    if (e instanceof LeaseHeld) this.#unknown = false;
    else if (!(e instanceof RegentError) || e instanceof OutcomeUnknown || this.#o.inherit) this.#unknown = true;
    if (transient(e) && !this.#failed) {
      this.#failed = true;
      this.#means.log("warn", "no answer to the campaign; retrying", { election: this.#election, candidate: this.#candidate, reason: e });
    }
    if (!transient(e)) this.#failed = false;
  }

  /**
   * Returns the time until the next call: none after a call that stood in line for its time, and until its turn
   * for a candidate that has bid without waiting.
   */
  #pause(e: unknown, held: boolean, wait: number): number {
    const turn = turnOf(e);
    if (wait === 0 && turn) return turn;
    if (held && wait > 0 && this.#means.clock.now() - this.#sent >= wait / 2) {
      this.#backoff.reset();
      return 0;
    }
    const d = this.#backoff.after(e);
    return e instanceof RateLimited ? d : Math.min(d, maxLinePause);
  }

  /**
   * Releases a lease that was granted in a call whose answer was lost, or is not wanted any more. Such a call may
   * still be in progress, so a vacant election is read again.
   */
  async #abandon(): Promise<void> {
    if (!this.#unknown) return;
    const { calls, clock, log } = this.#means;
    const began = clock.now();
    const left = (): number => began + abandonTimeout - clock.now();
    const backoff = new Backoff();
    let failure: unknown;
    for (let time = left(); time > 0; time = left()) {
      try {
        const lease = await this.#look(patience(time));
        if (lease?.leaderId === this.#candidate) {
          // the server refuses it for another incarnation
          const r = { election: lease.election, candidate: this.#candidate, key: this.#key, token: lease.fencingToken };
          return await release(calls, r, left, { clock }, log);
        }
        if (lease?.state === "held" || clock.now() - began >= underWay) return;
        failure = undefined;
      } catch (e) {
        failure = e;
        if (!transient(e)) break;
      }
      await sleep(clock, Math.min(backoff.after(failure), maxLookPause, Math.max(left(), 0)));
    }
    if (failure) log("warn", "a lease may have been granted that is not wanted; it ends by itself", { election: this.#election, candidate: this.#candidate, reason: failure });
  }

  /** Reads the election, or its seat at which the candidate leads; undefined if there is none. */
  async #look(limit: number): Promise<Election | undefined> {
    try {
      const { calls } = this.#means;
      const lease = await calls.get(this.#election, { limit });
      if (!lease.configuration?.policy?.seats) return lease;
      const { seat } = await explain(calls.http, this.#election, this.#candidate, { limit });
      return seat ? await calls.get(`${this.#election}.${seat}`, { limit }) : lease;
    } catch (e) {
      if (e instanceof NotFound) return undefined;
      throw e;
    }
  }
}

/** Returns when a candidate that has bid should ask again, in milliseconds; 0 for any other error. */
function turnOf(e: unknown): number {
  return e instanceof LeaseHeld && ["BALLOT", "OUTRANKED", "QUORUM"].includes(e.reason) ? e.retryAfter : 0;
}
