import type { Calls } from "./calls.ts";
import { RateLimited, RegentError, transient } from "./errors.ts";
import type { Keeper } from "./keeper.ts";
import type { Election, LeaseRequest } from "./wire.ts";

/** How many leases go in one call; a server sends as many to its store at once. */
const maxGroup = 100;
/** Milliseconds for which each lease is renewed by itself after batches were refused, or have failed again and again. */
const aloneFor = 600_000;
const maxLease = 24 * 3_600_000;

/** @internal When a lease is renewed next, on the client's clock. */
export interface Plan {
  due: number;
  /** From then on it may go with another lease that is due. */
  from: number;
  /** It goes by itself. */
  solo: boolean;
}

/** @internal The place of a lease in a batch. */
export interface Seat {
  batch: Batch;
  at: number;
}

/** @internal What became of one renewal. */
export type Outcome = { sent: number; lease: Election; error?: undefined } | { sent: number; error: RegentError };

/** @internal Up to maxGroup leases, each of another election. They aim at the same instants, the marks of a grid. */
export class Group {
  readonly leases = new Map<string, Keeper>();
  /** Until then there are no batches. */
  alone = -Infinity;
  /** The last batch has failed. */
  doubt = false;
  readonly #offset = Math.random() * maxLease; // processes that began together spread out

  /** Returns when to renew next. A lone lease is renewed up to a tenth of the pause early, at random. */
  plan(duration: number, sent: number, pause: number): Plan {
    const latest = sent + pause;
    const soon = { due: sent + early(pause), from: latest - Math.min(duration / 10, pause / 2), solo: false };
    // servers say a third of a lease, less a tenth of that at most; so each pause has a mark
    const step = duration * 0.295;
    if (this.leases.size === 1 || pause < step) return soon;
    const mark = this.#mark(latest, step);
    // leases that are still on their way to a mark must not draw this one away from it
    if (mark >= soon.from) return { due: mark, from: Math.max(mark - duration / 100, soon.from), solo: false };
    const near = this.#mark(soon.from + step / 5, step / 5);
    return near <= latest ? { ...soon, due: near } : soon;
  }

  /** Returns the last mark of the grid until then. */
  #mark(until: number, step: number): number {
    const past = (until - this.#offset) % step;
    return until - (past < 0 ? past + step : past);
  }
}

/** Shortens a time by up to a tenth at random, so that leaders that began together spread out. */
function early(ms: number): number {
  return ms - (Math.random() * ms) / 10;
}

/**
 * @internal Gathers the renewals of a client's leases into few calls. A lease that is not on a mark of its
 * group yet is renewed up to a tenth of its duration early, once in each period, until it is. The first that is
 * due takes along all that are due too. None waits for another, and a lease that is alone, or whose last
 * renewal has failed, is renewed by itself. See leadership/adr/0019.
 */
export class Groups {
  readonly calls: Calls;
  #all: Group[] = [];

  constructor(calls: Calls) {
    this.calls = calls;
  }

  /** Plans the next renewal of a lease that was renewed at `sent`: after the pause at the latest. */
  sleep(k: Keeper, sent: number, pause: number): Plan {
    this.#join(k);
    k.plan = { ...k.group!.plan(k.term.duration, sent, pause), solo: k.term.states };
    k.asleep = true;
    return k.plan;
  }

  /** Plans the renewal of a lease by itself. */
  retry(k: Keeper, due: number): Plan {
    k.plan = { due, from: due, solo: true };
    k.asleep = true;
    return k.plan;
  }

  /** Ends the sleep of a lease that is due. Returns its seat in a batch; undefined if it is renewed by itself. */
  rouse(k: Keeper, now: number): Seat | undefined {
    if (!k.asleep) return k.taken();
    k.asleep = false;
    const group = k.group!;
    if (k.plan.solo || now < group.alone) return undefined;
    const others = [...group.leases.values()].filter((o) => o !== k && o.asleep && !o.plan.solo && now >= o.plan.from);
    if (others.length === 0) return undefined;
    const batch = new Batch(this.calls, group, [k, ...others]);
    others.forEach((o, i) => o.take({ batch, at: i + 1 }));
    return { batch, at: 0 };
  }

  /** Ends the sleep of a lease that is over. A batch that has taken it goes on for its others. */
  leave(k: Keeper): void {
    k.asleep = false;
    k.taken()?.batch.leave();
    this.#drop(k);
  }

  /** Adds a lease to the first group that has room, so that groups stay full when leases end. */
  #join(k: Keeper): void {
    const { election } = k.term;
    for (const group of this.#all) {
      if (group === k.group) return;
      if (group.leases.has(election) || group.leases.size >= maxGroup) continue;
      this.#drop(k);
      k.group = group;
      group.leases.set(election, k);
      return;
    }
    this.#drop(k);
    k.group = new Group();
    k.group.leases.set(election, k);
    this.#all.push(k.group);
  }

  #drop(k: Keeper): void {
    if (k.group?.leases.get(k.term.election) === k) k.group.leases.delete(k.term.election);
    k.group = undefined;
  }
}

/** @internal One call that renews several leases. */
export class Batch {
  readonly #answered: Promise<void>;
  readonly #controller = new AbortController();
  #waiting: number;
  #sent: number;
  #results: (Election | RegentError)[] = [];
  #error: RegentError | undefined; // of the batch as a whole

  constructor(calls: Calls, group: Group, leases: Keeper[]) {
    const { clock } = leases[0]!.term;
    this.#waiting = leases.length;
    const all = leases.map((k) => k.term.next());
    this.#sent = clock.now();
    this.#answered = this.#run(calls, group, all, () => clock.now());
  }

  async #run(calls: Calls, group: Group, all: LeaseRequest[], now: () => number): Promise<void> {
    try {
      this.#results = await calls.batchRenew(all, { signal: this.#controller.signal });
    } catch (e) {
      this.#error = e instanceof RegentError ? e : new RegentError("batch renew: it was given up", { cause: e });
    }
    const failed = this.#error !== undefined && !this.#controller.signal.aborted;
    // an outage fails one batch: until it is over, each lease tries by itself
    if (this.refused || (failed && group.doubt)) group.alone = now() + aloneFor;
    group.doubt = failed;
  }

  /** The server does not take this batch, now or at all. That says nothing about any lease in it. */
  get refused(): boolean {
    if (!this.#error || this.#controller.signal.aborted) return false;
    return !transient(this.#error) || this.#error instanceof RateLimited;
  }

  /** Waits for the answer to the lease at this place. Returns undefined if `ended` resolves before. */
  async wait(at: number, ended: Promise<void>): Promise<Outcome | undefined> {
    const answered = await Promise.race([this.#answered.then(() => true), ended.then(() => false)]);
    if (!answered) {
      this.leave();
      return undefined;
    }
    const result = this.#error ?? this.#results[at]!;
    return result instanceof RegentError ? { sent: this.#sent, error: result } : { sent: this.#sent, lease: result };
  }

  /** Ends the wait of a lease for the answer. When no lease waits, the call is cancelled. */
  leave(): void {
    if (--this.#waiting === 0) this.#controller.abort();
  }
}
