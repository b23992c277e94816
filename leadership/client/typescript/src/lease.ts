import { Backoff } from "./backoff.ts";
import type { Calls } from "./calls.ts";
import { LeaseLost, transient } from "./errors.ts";
import { patience, type Keeper } from "./keeper.ts";
import type { Log } from "./log.ts";
import type { Notice } from "./notice.ts";
import type { Report } from "./report.ts";
import type { Term } from "./term.ts";
import { sleep } from "./wait.ts";
import type { LeaseRequest } from "./wire.ts";

/** Milliseconds for the release after the body. */
const releaseTimeout = 5000;

/**
 * The leadership of an election while it lasts. It is renewed in the background until it is lost or released,
 * or could not be renewed before its deadline. Then it is over for good.
 *
 * Every question compares the deadline with the clock. A timer may be late, and a process may be stopped for an
 * hour between two instructions: so ask before each step that matters, and send the token with each write. The
 * lease may end right after the question; it is the token that protects, where the write arrives.
 */
export class Lease {
  readonly #term: Term;
  readonly #keeper: Keeper;
  readonly #calls: Calls;
  readonly #log: Log;
  #release: Promise<void> | undefined;

  /** @internal */
  constructor(term: Term, keeper: Keeper, calls: Calls, log: Log) {
    this.#term = term;
    this.#keeper = keeper;
    this.#calls = calls;
    this.#log = log;
  }

  get election(): string {
    return this.#term.election;
  }

  /** The leader's id. */
  get candidate(): string {
    return this.#term.candidate;
  }

  /**
   * The fencing token: send it with every write. It does not change when the lease is over. It rises while the
   * lease goes on when an operator begins a new epoch: what was begun with the old one is stale then.
   */
  get token(): number {
    return this.#term.token;
  }

  /** Reports whether the caller may believe that it leads. Once false, it stays false. */
  valid(): boolean {
    return this.remaining() > 0;
  }

  /** Milliseconds until the deadline; 0 once the lease is over. */
  remaining(): number {
    return this.#term.remaining();
  }

  /** Throws why the lease is over, a LeaseLost or the reason of the signal that ended it; returns while it lasts. */
  check(): void {
    if (this.remaining() === 0) throw this.#term.cause;
  }

  /**
   * Fires when the lease is over, with the reason that check throws: at the deadline or, if the process was
   * stopped then, within a second after. It also fires when the lease is released.
   */
  get signal(): AbortSignal {
    this.remaining(); // a signal that is asked for now tells what the clock tells
    return this.#term.signal;
  }

  /** Milliseconds that the lease lasts after each heartbeat, by the store's clock. */
  get duration(): number {
    return this.#term.duration;
  }

  /**
   * When and why the term ends however often the lease is renewed, as the last answer said: `left` is in
   * milliseconds, and `near` says that the present deadline is this end. Undefined if the term has no such end.
   */
  ending(): { at: string; because: string; left: number; near: boolean } | undefined {
    return this.#term.ending();
  }

  /**
   * Says what the leader does. A report that has changed goes with a next renewal, at most with every third.
   * One that the server refuses does not end the lease. Throws InvalidArgument for what no server would take.
   */
  report(report: Report): void {
    this.#term.reports.add(report);
  }

  /** Returns what concerns the term, from its beginning on; ends with the lease. */
  notices(): AsyncGenerator<Notice, void, undefined> {
    return this.#term.notices.read();
  }

  /**
   * Stops renewing and releases the lease, so that the next leader need not wait for its end. Everything that
   * acts as leader must have stopped before. It repeats until it is answered, for 5 s and within the lease; it
   * throws nothing, for a lease that is not released ends by itself. One whose deadline has passed is left.
   */
  release(): Promise<void> {
    return (this.#release ??= this.#giveUp());
  }

  /** Calls release. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }

  async #giveUp(): Promise<void> {
    const term = this.#term;
    term.remaining();
    term.finish(term.lost("RESIGNED", "the leader has resigned", {}), "RESIGNED");
    await this.#keeper.stopped;
    if (term.end === "LEASE_LOST" || term.end === "ELECTION_DELETED") return;
    const until = term.clock.now() + Math.min(releaseTimeout, term.untilDeadline());
    await release(this.#calls, term.named(), () => Math.min(until - term.clock.now(), term.untilDeadline()), term, this.#log);
  }

  /** @internal */
  get term(): Term {
    return this.#term;
  }

  toJSON(): { election: string; candidate: string; token: number } {
    return { election: this.election, candidate: this.candidate, token: this.token };
  }
}

/**
 * @internal Releases a lease, and retries until it is answered or no time is left. A release with a token from
 * before a new epoch, of which the leader has not heard, does nothing: the answer has the token to release.
 */
export async function release(calls: Calls, r: LeaseRequest, left: () => number, term: Pick<Term, "clock">, log: Log): Promise<void> {
  const backoff = new Backoff();
  let failure: unknown = "its deadline has passed";
  for (let time = left(); time > 0; time = left()) {
    try {
      const lease = await calls.release(r, { limit: patience(time) });
      if (lease.state !== "held" || lease.leaderId !== r.candidate || lease.fencingToken <= r.token) {
        return log("info", "resigned", aboutRequest(r));
      }
      r = { ...r, token: lease.fencingToken }; // of another incarnation it is refused: the key is not its own
    } catch (e) {
      if (e instanceof LeaseLost) return;
      failure = e;
      if (!transient(e)) break;
      await sleep(term.clock, Math.min(backoff.after(e), Math.max(left(), 0)));
    }
  }
  log("warn", "the lease is not released; it ends by itself", { ...aboutRequest(r), reason: failure });
}

function aboutRequest(r: LeaseRequest): Record<string, unknown> {
  return { election: r.election, candidate: r.candidate, token: r.token };
}
