import { Backoff } from "./backoff.ts";
import type { Calls } from "./calls.ts";
import { ElectionDeleted, InvalidArgument, LeaseLost, OutcomeUnknown, RegentError } from "./errors.ts";
import type { Group, Groups, Outcome, Plan, Seat } from "./groups.ts";
import type { Log } from "./log.ts";
import { refusesReport } from "./report.ts";
import { maxSleep, type Term } from "./term.ts";
import { sleep } from "./wait.ts";
import type { LeaseRequest } from "./wire.ts";

/** The shortest time for one renewal, in milliseconds. */
const minTry = 250;
/** The shortest pause after a failed renewal. */
const minRetry = 50;

/** @internal Milliseconds for one exchange: a part of the remaining time, so that a silent connection does not use up all of it. */
export function patience(left: number): number {
  return Math.min(Math.max(left / 3, minTry), left);
}

/** @internal Renews one lease until it is over. */
export class Keeper {
  readonly term: Term;
  /** Resolves when renewing has stopped. */
  readonly stopped: Promise<void>;
  // of Groups
  plan: Plan = { due: 0, from: 0, solo: true };
  asleep = false;
  group: Group | undefined;
  readonly #calls: Calls;
  readonly #groups: Groups;
  readonly #log: Log;
  readonly #backoff = new Backoff();
  /** Why the last answer had no statement. */
  #unsigned: string | undefined;
  #seat: Seat | undefined;
  #wake = new AbortController();

  /** Begins to renew a lease that was granted in reply to what was sent at that time. */
  constructor(term: Term, calls: Calls, groups: Groups, log: Log) {
    this.term = term;
    this.#calls = calls;
    this.#groups = groups;
    this.#log = log;
    this.stopped = this.#keep(term.clock.now());
  }

  /** Gives a lease that is asleep its place in a batch. */
  take(seat: Seat): void {
    this.asleep = false;
    this.#seat = seat;
    this.#wake.abort();
  }

  /** Takes its place away again. */
  taken(): Seat | undefined {
    const seat = this.#seat;
    this.#seat = undefined;
    return seat;
  }

  async #keep(now: number): Promise<void> {
    this.#noteUnsigned(this.term.grant.statementError);
    let next = this.#groups.sleep(this, now, this.#pause(this.term.grant.renewInMs ?? 0));
    while (await this.#await(next)) {
      const seat = this.#groups.rouse(this, this.term.clock.now());
      next = this.#heard(await this.#renew(seat));
    }
    this.#groups.leave(this);
    const { end, cause } = this.term;
    if (end !== undefined && end !== "RESIGNED") this.#log("error", "no longer leader", { ...about(this.term), reason: cause });
  }

  /** Waits until the lease is to be renewed, or was taken into a batch. Reports whether it is still valid. */
  async #await(next: Plan): Promise<boolean> {
    for (;;) {
      const left = this.term.remaining();
      const d = next.due - this.term.clock.now();
      if (left === 0) return false;
      if (d <= 0 || !this.asleep) return true;
      this.#wake = new AbortController();
      await sleep(this.term.clock, Math.min(d, left, maxSleep), this.term.signal, this.#wake.signal);
    }
  }

  /** Sends one renewal, or waits for that of its batch. */
  async #renew(seat: Seat | undefined): Promise<Outcome> {
    if (seat) {
      const outcome = await this.#together(seat);
      if (!outcome.error || !seat.batch.refused) return outcome;
      this.term.reports.unanswered();
      this.#log("warn", "a batch of renewals was refused; renewing each lease by itself", { reason: outcome.error });
    }
    const request = this.term.next();
    const sent = this.term.clock.now();
    try {
      const bounds = { signal: this.term.signal, limit: patience(this.term.remaining()) };
      return { sent, lease: await this.#calls.renew(request, bounds) };
    } catch (e) {
      return { sent, error: e instanceof RegentError ? e : new OutcomeUnknown("renew: it was given up", { cause: e }) };
    }
  }

  async #together(seat: Seat): Promise<Outcome> {
    const given = new AbortController();
    const ended = sleep(this.term.clock, patience(this.term.remaining()), this.term.signal, given.signal);
    const outcome = await seat.batch.wait(seat.at, ended);
    given.abort(); // ends the timer
    return outcome ?? { sent: 0, error: new OutcomeUnknown("batch renew: no answer in time (OUTCOME_UNKNOWN)") };
  }

  /** Takes what became of a renewal, and returns when to send the next. */
  #heard({ sent, ...outcome }: Outcome): Plan {
    if (!outcome.error) return this.#renewed(sent, outcome.lease);
    const { term } = this;
    const { error } = outcome;
    term.reports.unanswered();
    const epoch = epochOf(error, term);
    if (epoch) return this.#follow(epoch);
    if (error instanceof LeaseLost || error instanceof ElectionDeleted) {
      term.lose(error);
      return this.plan;
    }
    if (term.reports.failed && refusesReport(error)) {
      term.reports.refused(term.clock.now());
      this.#log("warn", "the server refuses the report; renewing without it", { ...about(term), reason: error });
      return this.#groups.retry(this, term.clock.now());
    }
    if (error instanceof InvalidArgument) term.ticket = undefined; // a server of an older version refuses it
    return this.#failed(error);
  }

  #renewed(sent: number, lease: Parameters<Term["extend"]>[1]): Plan {
    const failed = this.term.failure !== undefined;
    if (this.term.extend(sent, lease) === 0) return this.plan;
    if (failed) this.#log("info", "renewed again", about(this.term));
    this.#noteUnsigned(lease.statementError);
    this.#backoff.reset();
    return this.#groups.sleep(this, sent, this.#pause(lease.renewInMs ?? 0));
  }

  /** Logs why an answer has no statement, unless the last one said the same. */
  #noteUnsigned(why: string | undefined): void {
    if (why && why !== this.#unsigned) this.#log("warn", "the lease has no statement", { ...about(this.term), reason: why });
    this.#unsigned = why;
  }

  /** Renews at once under the token of a new epoch. Until that is answered, the old deadline and the old token count. */
  #follow(epoch: number): Plan {
    this.term.epoch = epoch;
    this.term.ticket = undefined;
    return this.#groups.retry(this, this.term.clock.now());
  }

  /** A renewal that failed says nothing about who leads, so the deadline stands. */
  #failed(error: RegentError): Plan {
    const left = this.term.remaining();
    if (left > 0 && !this.term.failure) {
      this.#log("warn", "the lease could not be renewed; trying until the deadline", { ...about(this.term), remaining: left, reason: error });
    }
    this.term.failure = error;
    return this.#groups.retry(this, this.term.clock.now() + Math.max(Math.min(this.#backoff.after(error), left / 4), minRetry));
  }

  /** Returns the longest time until the next renewal: as the server says, but early enough for a retry, and never zero. */
  #pause(renewIn: number): number {
    return Math.max(Math.min(renewIn, this.term.remaining() / 2), minRetry);
  }
}

/** @internal Returns the token of the new epoch of a lease that goes on, if the refusal says so; else 0. */
export function epochOf(error: RegentError, term: Term): number {
  const p = error.problem;
  if (!(error instanceof LeaseLost) || p?.reason !== "EPOCH" || p.state !== "held") return 0;
  const token = p.fencingToken;
  const ours = p.election === term.election && p.leaderId === term.candidate;
  return ours && Number.isSafeInteger(token) && token! > (term.epoch || term.token) ? token! : 0;
}

/** @internal What log lines say of a lease. */
export function about({ election, candidate, token }: Pick<LeaseRequest, "election" | "candidate" | "token">): Record<string, unknown> {
  return { election, candidate, token };
}
