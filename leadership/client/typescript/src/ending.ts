import { RegentError, invalid } from "./errors.ts";
import type { Lease } from "./lease.ts";
import type { Log } from "./log.ts";
import { onAbort } from "./wait.ts";
import { milliseconds, quote, type Duration } from "./wire.ts";

/** What run does beside leading. */
export interface RunOptions {
  /**
   * When the signal fires while the body runs, run first hands over, within that time ("1s" to "10m"): the body goes
   * on until the successor is ready, for half of the time at most, and only then the lease's signal fires. Without
   * it, or if no candidate waits, that fires at once.
   */
  handOverWithin?: Duration | undefined;
  /**
   * How many members must follow the new token before the body is called. run gives the lease back, and throws
   * NotFollowed, if fewer do within its duration.
   */
  awaitFollowers?: number | undefined;
}

/** Too few members followed the new token, so run gave the lease back without calling its body. */
export class NotFollowed extends RegentError {}

/** @internal Refuses a wrong number of followers; 0 is none. */
export function checkNeed(need: unknown): void {
  const right = need === undefined || (Number.isInteger(need) && (need as number) >= 0 && (need as number) <= 10_000);
  if (!right) throw invalid(`awaitFollowers: the number of followers is an integer from 0 to 10000, not ${quote(need)}`);
}

/** @internal Waits for followers, for one duration of the lease. */
export async function followed(lease: Lease, need: number | undefined): Promise<void> {
  if (!need) return;
  const late = AbortSignal.timeout(lease.duration);
  try {
    await lease.awaitFollowers(need, { signal: late });
  } catch (e) {
    if (!late.aborted || !lease.valid()) throw e;
    throw new NotFollowed(`fewer than ${need} members follow the new token within ${lease.duration / 1000} s`);
  }
}

/** @internal The signal of a term that hands over when its caller's signal fires. */
export class EndsWithHandOver {
  readonly #outer: AbortSignal | undefined;
  readonly #within: number;
  readonly #log: Log;
  readonly #controller = new AbortController();
  readonly #returned = new AbortController();
  readonly #leave: () => void;
  #lease: Lease | undefined;
  #handing: Promise<void> | undefined;

  constructor(outer: AbortSignal | undefined, within: Duration, log: Log) {
    this.#within = milliseconds("handOverWithin", within);
    if (this.#within < 1_000 || this.#within > 600_000) throw invalid(`handOverWithin: a hand-over takes "1s" to "10m", not ${quote(within)}`);
    this.#outer = outer;
    this.#log = log;
    this.#leave = onAbort(outer, () => this.#end());
    if (outer?.aborted) this.#end();
  }

  /** For the lease: fires at once until it leads, and after the hand-over from then on. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  leads(lease: Lease): void {
    this.#lease = lease;
  }

  /** The body has returned, or is not called. Resolves when nothing of a hand-over runs any more. */
  async returned(): Promise<void> {
    this.#leave();
    this.#returned.abort();
    await this.#handing;
  }

  #end(): void {
    const fire = (): void => this.#controller.abort(this.#outer?.reason);
    if (this.#lease) this.#handing = this.#handOver(this.#lease).finally(fire);
    else fire();
  }

  async #handOver(lease: Lease): Promise<void> {
    const late = setTimeout(() => this.#returned.abort(), this.#within / 2);
    try {
      await lease.handOver({ to: lease.succession?.to, within: this.#within, signal: this.#returned.signal });
    } catch (e) {
      this.#log("info", "there is no hand-over; the lease will be released", { election: lease.election, token: lease.token, reason: e });
    } finally {
      clearTimeout(late);
    }
  }
}
