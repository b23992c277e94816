import { Belief, type Remains } from "./belief.ts";
import type { Grant } from "./calls.ts";
import type { Clock } from "./clock.ts";
import { ElectionDeleted, LeaseLost, RegentError, type End } from "./errors.ts";
import { HandOver } from "./succession.ts";
import { Notices, cuts, noticeOf, termEnd, type TermEnd } from "./notice.ts";
import { Reporting } from "./report.ts";
import { onAbort } from "./wait.ts";
import { written, type Election, type LeaseRequest, type Secret } from "./wire.ts";

/** @internal How long a timer is trusted: timers stand still while the machine sleeps, and the lease's clock does not. */
export const maxSleep = 1000;

/** @internal What a term begins with. */
export interface TermOptions {
  clock: Clock;
  key: Secret;
  /** When the request with the grant left. */
  sent: number;
  grant: Grant;
  margin: number;
  /** Ends the term from outside. */
  signal: AbortSignal | undefined;
  /** The lease that it stands on. */
  parent: Term | undefined;
  /** Asks for a signed statement with each renewal. */
  states?: boolean;
}

/**
 * @internal The state of one lease: a deadline, which answers move on, and the end. It sends nothing.
 *
 *     valid --deadline, LEASE_LOST, ELECTION_DELETED, abort, release--> over, for good
 *
 * Every question compares the deadline with the clock. A timer only sees to it that the signal fires.
 */
export class Term {
  readonly clock: Clock;
  readonly election: string;
  readonly candidate: string;
  readonly key: Secret;
  readonly duration: number;
  readonly grant: Grant;
  readonly reports = new Reporting();
  readonly notices = new Notices();
  readonly handOver = new HandOver();
  token: number;
  /** For the next renewal. */
  ticket: string | undefined;
  readonly states: boolean;
  /** Of the last answer. */
  statement: string | undefined;
  /** The token of a new epoch, under which the lease goes on once a renewal with it was answered; 0 for none. */
  epoch = 0;
  /** Of the last renewal; undefined if it was answered. */
  failure: RegentError | undefined;
  /** Why it is over. */
  cause: unknown;
  /** Which end it is; undefined while it lasts, or if it was ended from outside. */
  end: End | undefined;
  over = false;
  readonly #belief: Belief;
  readonly #controller = new AbortController();
  readonly #outer: AbortSignal | undefined;
  readonly #parent: Term | undefined;
  /** Called once the policy asks for a quorum. */
  onQuorum: (() => void) | undefined;
  readOnly = false;
  #quorum = false;
  #ends: TermEnd | undefined;
  #noticed = "";
  #cancelAlarm: () => void = () => {};
  #leave: (() => void)[] = [];
  readonly #look = (): void => this.look();

  constructor(o: TermOptions) {
    const { clock, grant } = o;
    this.clock = clock;
    this.grant = grant;
    this.election = grant.election;
    this.candidate = grant.leaderId!;
    this.token = grant.fencingToken;
    this.ticket = grant.ticket;
    this.states = o.states ?? false;
    this.statement = grant.statement;
    this.key = o.key;
    this.duration = written(grant.leaseDuration);
    this.#outer = o.signal;
    this.#parent = o.parent;
    this.#belief = new Belief(o.sent, this.#now(), grant.waitedMs ?? 0, remains(grant), o.margin);
    this.#ends = termEnd(o.sent, Math.max(0, Math.min(grant.waitedMs ?? 0, clock.now() - o.sent)), grant);
    this.handOver.hear(grant.revision, grant.succession);
    this.heed(grant);
    this.#leave = [onAbort(this.#outer, this.#look), onAbort(this.#parent?.signal, this.#look)];
    this.look();
  }

  /** The time now, or a little later. */
  #now(): number {
    return this.clock.now() + this.clock.resolution;
  }

  /** Ends the term if its deadline has passed, and otherwise sees to the next look. */
  look(): void {
    this.#cancelAlarm();
    const left = this.remaining();
    if (left > 0) this.#cancelAlarm = this.clock.timer(Math.min(left, maxSleep), this.#look);
  }

  /** Aborted at the end, with the cause. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Milliseconds until the deadline; 0 once the term is over. */
  remaining(): number {
    if (!this.over && this.#outer?.aborted) this.finish(this.#outer.reason);
    if (!this.over && this.#parent && this.#parent.remaining() === 0) this.#orphan(this.#parent);
    const left = this.#belief.left(this.#now());
    if (!this.over && left === 0) this.#expire();
    return this.over ? 0 : left;
  }

  /** Milliseconds until the deadline, even if the term was ended before it. */
  untilDeadline(): number {
    return this.#belief.left(this.#now());
  }

  /** Reports whether the lease may have ended in the store by now. */
  get overran(): boolean {
    return this.#now() >= this.#belief.leaseEnd;
  }

  /** Ends the term. */
  finish(cause: unknown, end?: End): void {
    if (this.over) return;
    this.over = true;
    this.cause = cause;
    this.end = end;
    this.#cancelAlarm();
    for (const leave of this.#leave) leave();
    this.notices.close();
    this.#controller.abort(cause);
  }

  #orphan(parent: Term): void {
    this.finish(this.lost("ORPHANED", `the lease of election ${parent.election} that it stands on has ended`, { cause: parent.cause }), "ORPHANED");
  }

  #expire(): void {
    const ends = this.#ends;
    const why = cuts(ends, this.#belief)
      ? `the term has ended: ${ends.because}`
      : "the lease could not be renewed before its deadline" + (this.failure ? `: ${this.failure.message}` : "");
    this.finish(this.lost("DEADLINE", why, { cause: this.failure }), "DEADLINE");
  }

  lost(end: End, why: string, details: { cause?: unknown; problem?: RegentError["problem"] }): LeaseLost {
    const { cause, problem } = details;
    return new LeaseLost(`election ${this.election}, token ${this.token}: ${why}`, {
      end,
      ...(cause === undefined ? {} : { cause }),
      ...(problem ? { problem } : {}),
    });
  }

  /** Ends the term because the server said so. */
  lose(error: RegentError): void {
    if (error.reason === "DEPOSED") this.post("tripped");
    if (error instanceof ElectionDeleted) {
      this.finish(this.lost("ELECTION_DELETED", error.message, { cause: error }), "ELECTION_DELETED");
    } else {
      this.finish(this.lost("LEASE_LOST", error.message, { problem: error.problem }), "LEASE_LOST");
    }
  }

  /** Returns the next renewal. */
  next(): LeaseRequest {
    const now = this.clock.now();
    const urgent = this.#ends?.because === "stuck" && this.#ends.on - now <= this.duration;
    const report = this.reports.next(now, urgent);
    return {
      ...this.named(),
      token: this.epoch || this.token,
      ...(this.ticket ? { ticket: this.ticket } : {}),
      ...(report ? { report } : {}),
      ...(this.states ? { statement: true } : {}),
    };
  }

  /** Returns the lease as a call names it. */
  named(): LeaseRequest {
    return { election: this.election, candidate: this.candidate, key: this.key, token: this.token };
  }

  /**
   * Takes the answer to a renewal that left at `sent`, unless the deadline has passed meanwhile: a lease
   * that is over is never revived. Returns the remaining time.
   */
  extend(sent: number, answer: Election): number {
    if (this.remaining() === 0) return 0;
    this.ticket = answer.ticket;
    this.statement = answer.statement;
    this.failure = undefined;
    const epoch = this.epoch;
    if (epoch) this.token = epoch;
    this.epoch = 0;
    this.#belief.renewed(sent, this.#now(), remains(answer));
    this.#ends = termEnd(sent, 0, answer);
    this.reports.answered();
    this.handOver.hear(answer.revision, answer.succession);
    if (epoch) this.post("newEpoch");
    this.noteEnd();
    this.heed(answer);
    return this.remaining();
  }

  /** Takes from an answer, if there is one, whether the policy asks for a quorum. */
  heed(answer?: Election): void {
    if (answer) this.#quorum = answer.configuration?.policy?.quorum !== undefined;
    if (!this.#quorum) return this.hearReadOnly(false);
    this.onQuorum?.();
    this.onQuorum = undefined;
  }

  /** Posts a notice if it is news whether the leader must not write. */
  hearReadOnly(now: boolean): void {
    if (now === this.readOnly || (now && !this.#quorum)) return;
    this.readOnly = now;
    this.post(now ? "readOnly" : "writable");
  }

  /** Posts a notice if the end of the term has changed. */
  noteEnd(): void {
    const kind = noticeOf(this.#ends, this.#belief);
    const now = kind && this.#ends ? `${kind} ${this.#ends.at}` : "";
    if (now === this.#noticed) return;
    this.#noticed = now;
    if (kind && this.#ends) this.post(kind, Math.max(0, this.#ends.on - this.clock.now()));
    else this.post("goesOn");
  }

  post(kind: string, left?: number): void {
    this.notices.post({ kind, election: this.election, token: this.token, ...(left === undefined ? {} : { left }) });
  }

  /** When and why the term ends however often it is renewed; undefined if it has no such end. */
  ending(): { at: string; because: string; left: number; near: boolean } | undefined {
    const ends = this.#ends;
    return ends && { at: ends.at, because: ends.because, left: Math.max(0, ends.on - this.#now()), near: cuts(ends, this.#belief) };
  }
}

function remains(answer: Election): Remains {
  return { left: answer.expiresInMs ?? 0, duration: written(answer.leaseDuration) };
}
