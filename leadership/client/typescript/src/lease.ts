import { randomUUID } from "node:crypto";

import { Backoff } from "./backoff.ts";
import { changeEffect, checkData, post, type CallOptions } from "./api.ts";
import type { Bounds, Calls } from "./calls.ts";
import { InvalidArgument, LeaseLost, transient } from "./errors.ts";
import { Journal } from "./journal.ts";
import { about, patience, type Keeper } from "./keeper.ts";
import {
  LeaderCheckpoint, awaitFollowers, delegate, handOver, persist, stepDownBody,
  type DelegationLimits, type HandOverOptions, type RequestApprovalOptions, type StepDownOptions,
} from "./leader.ts";
import type { Log } from "./log.ts";
import type { Notice } from "./notice.ts";
import { asked, decide } from "./proposals.ts";
import { watchQuorum } from "./quorum.ts";
import type { Report } from "./report.ts";
import type { Effect, Inheritance, JournalHead, Proposal, Succession } from "./schemas.ts";
import type { Term } from "./term.ts";
import { checkOutcome, type ReleaseOptions } from "./outcome.ts";
import { sleep } from "./wait.ts";
import { checkOptions, type Election, type LeaseRequest } from "./wire.ts";

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
  /** What the leader leaves behind for the next one. */
  readonly checkpoint: LeaderCheckpoint;
  #release: Promise<void> | undefined;
  #outcome: ReleaseOptions = {};
  #stepsDown: { reason: string; for?: string } | undefined;
  #refused: unknown; // how the server has refused that
  #heeds = false; // the notices were asked for

  /** @internal */
  constructor(term: Term, keeper: Keeper, calls: Calls, log: Log) {
    this.#term = term;
    this.#keeper = keeper;
    this.#calls = calls;
    this.#log = log;
    this.checkpoint = new LeaderCheckpoint(this.#leader);
  }

  get #leader(): { http: Calls["http"]; term: Term } {
    return { http: this.#calls.http, term: this.#term };
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

  /**
   * The newest signed statement that this leader holds the lease, to show to others, who check it by verifyStatement;
   * undefined without the option statement, or if the server could not sign. It ends when the lease would without a
   * renewal, so ask for it each time.
   */
  get statement(): string | undefined {
    return this.#term.statement;
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

  /**
   * Returns what concerns the term, from its beginning on; ends with the lease. Where the policy asks for a
   * quorum, a stream of the election tells from the first call on whether it is read-only.
   */
  notices(): AsyncGenerator<Notice, void, undefined> {
    if (!this.#heeds) {
      this.#heeds = true;
      this.#term.onQuorum = () => void watchQuorum(this.#calls.http, this.#term, this.#log);
      this.#term.heed();
    }
    return this.#term.notices.read();
  }

  /** Reports whether the election has lost its quorum, so that the leader must not write: as was heard last, by notices. */
  get readOnly(): boolean {
    return this.#term.readOnly;
  }

  /** What the last leader had left when this lease was granted; undefined if nothing, or without the option inherit. */
  get inherited(): Inheritance | undefined {
    return this.#term.grant.inherited;
  }

  /**
   * The effects that earlier leaders had begun and not finished when this lease was granted, with the option
   * inherit. Find out whether their targets have them, and finish them.
   */
  get inDoubt(): Effect[] {
    return this.#term.grant.inDoubt ?? [];
  }

  /**
   * Notes that the leader is about to cause an effect, such as "invoice-2026-11", and returns how it stands once
   * the note is durable. Only with the state "new" the leader may cause the effect; it calls finishEffect right
   * after. "done": a leader has finished it, with this result. "inDoubt": an earlier leader, or an earlier call,
   * which may have been another process with this lease, has begun it and not finished it; find out whether the
   * target has it, and finish it. It throws if the lease is over when the answer comes: the next leader has the
   * effect in doubt then.
   *
   * This is not exactly once: a leader that stops in between leaves the effect in doubt. A target that takes an
   * idempotency key should get the effect's id as that. It is repeated as checkpoint.put is. Errors: TokenStale,
   * once a later leader has begun one, or has inherited; LeaseLost; LimitExceeded, if too many are not finished;
   * InvalidArgument; OutcomeUnknown.
   */
  async beginEffect(id: string, options: CallOptions = {}): Promise<Effect> {
    const attemptId = randomUUID();
    const effect = await persist(this.#leader, options, (r, o) => changeEffect(this.#calls.http, ":begin", r, { effectId: id, attemptId }, o));
    this.check(); // the timer that cuts the call off may be late
    return effect;
  }

  /**
   * Notes that an effect was caused, so that no leader causes it again: the result, for those that begin it later,
   * is any JSON but null, of at most 1 KiB, or left out. The same call again changes nothing. Errors: those of
   * beginEffect; NotFound, if it was not begun; InvalidArgument, if it is done with another result;
   * PayloadTooLarge.
   */
  async finishEffect(id: string, result?: unknown, options: CallOptions = {}): Promise<void> {
    if (result !== undefined) checkData("result", result);
    await persist(this.#leader, options, (r, o) => changeEffect(this.#calls.http, ":finish", r, { effectId: id, result }, o));
  }

  /** The proposals that were open when this lease was granted, with the option inherit. See asked. */
  get openProposals(): Proposal[] {
    return this.#term.grant.proposals ?? [];
  }

  /**
   * Yields the proposals to the leader of the election that are open, and then each one as it comes, until the lease
   * is over. It hears of them by a stream; what was decided meanwhile is left out.
   */
  asked(options: CallOptions = {}): AsyncGenerator<Proposal, void, undefined> {
    return asked(this.#leader, options);
  }

  /**
   * Decides a proposal, once and for good; the proposer, if it waits, is told. The same call again changes nothing.
   * It is repeated as checkpoint.put is. Errors: TokenStale, once a later leader has decided one; LeaseLost; NotFound,
   * if there is no such proposal or its ttl is over; InvalidArgument, also if it is decided otherwise; OutcomeUnknown.
   */
  decide(id: string, verdict: "accepted" | "rejected", note = "", options: CallOptions = {}): Promise<Proposal> {
    return decide(this.#leader, id, verdict, note, options);
  }

  /** Opens the election's journal: no earlier leader can append to it any more, so what it reads is complete. */
  async journal(options: CallOptions = {}): Promise<Journal> {
    const head = await persist(this.#leader, options, (r, o) => post<JournalHead>(this.#calls.http, "/journal:open", r, {}, o));
    return new Journal(this.#leader, head.index);
  }

  /**
   * Makes an election for a part of the leader's task, and returns its name: that of this election, a dot, and
   * child. A lease there never outlives what this one was known to have. The same call again changes nothing.
   */
  delegate(child: string, limits?: DelegationLimits, options: CallOptions = {}): Promise<string> {
    return delegate(this.#leader, child, limits, options);
  }

  /** Waits until at least so many members follow the token; the leader itself does not count. */
  awaitFollowers(need: number, options: CallOptions = {}): Promise<void> {
    return awaitFollowers(this.#leader, need, options);
  }

  /**
   * Names a successor, by default the best candidate that waits, and returns when that is ready; the leader goes
   * on meanwhile. End the work then, and release: the lease passes to the successor without a vacancy.
   *
   * From the call on the term ends, `within` that time at the latest. Half of it is for the successor, the other
   * half for stopping. NotEligible: no candidate waits; the term goes on then. NotReady: the successor was not
   * ready in time; end the work all the same.
   */
  async handOver(options: HandOverOptions = {}): Promise<void> {
    checkOptions(options);
    return handOver(this.#leader, options);
  }

  /** The hand-over of the term as far as the leader has heard of it, its own or another's; undefined if there is none. */
  get succession(): Succession | undefined {
    return this.#term.handOver.now;
  }

  /** Asks operators to let the term go on, with a note of one line for them. See ending, and the notice approvalDue. */
  async requestApproval(note: string, options: RequestApprovalOptions = {}): Promise<void> {
    checkOptions(options);
    await post(this.#calls.http, ":requestApproval", this.#term.named(), { note, ...(options.newEpoch && { newEpoch: true }) }, options);
  }

  /**
   * Is release with a reason, which the election's history keeps: one line of at most 256 bytes. With `absence`
   * the candidate is not granted the lease again for that long. InvalidArgument: nothing was done, and the lease
   * goes on. After any other error it is released all the same, without the reason.
   */
  async stepDown(reason: string, options: StepDownOptions = {}): Promise<void> {
    checkOptions(options);
    const body = stepDownBody(reason, options);
    if (this.#release) throw this.#term.lost("RESIGNED", "it was released before, without this reason", {});
    this.#stepsDown = body;
    await this.release();
    if (this.#refused !== undefined) throw this.#refused;
  }

  /**
   * Stops renewing and releases the lease, so that the next leader need not wait for its end. Everything that
   * acts as leader must have stopped before. It repeats until it is answered, for 5 s and within the lease; it
   * throws nothing, for a lease that is not released ends by itself. One whose deadline has passed is left.
   *
   * The election's history keeps the outcome of the work and a note about it, and its policy may count failed
   * terms. Rejects with InvalidArgument if there is no such outcome; the lease goes on then.
   */
  async release(options: ReleaseOptions = {}): Promise<void> {
    checkOptions(options);
    checkOutcome(options);
    if (!this.#release) this.#outcome = options;
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
    if (term.end === "LEASE_LOST" || term.end === "ELECTION_DELETED") {
      this.#refused = term.cause;
      return;
    }
    const until = term.clock.now() + Math.min(releaseTimeout, term.untilDeadline());
    const left = (): number => Math.min(until - term.clock.now(), term.untilDeadline());
    if (await this.#endOtherwise(left)) return;
    await release(this.#calls, term.named(), left, term, this.#log, this.#outcome);
  }

  // Steps down with the reason, or yields to a successor that is ready. Reports whether nothing is left to do. A
  // yield that the server refuses has changed nothing.
  async #endOtherwise(left: () => number): Promise<boolean> {
    const term = this.#term;
    const body = this.#stepsDown;
    if (!body && !term.handOver.yields) return false;
    const call = (r: LeaseRequest, bounds: Bounds): Promise<Election> => post(this.#calls.http, body ? ":stepDown" : ":yield", r, body ?? {}, bounds);
    const failure = await endBy(call, term.named(), left, term);
    if (failure === undefined) this.#log("info", body ? "stepped down" : "yielded", about(term.named()));
    if (body) this.#refused = typeof failure === "string" ? term.cause : failure;
    return failure === undefined;
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
export async function release(
  calls: Calls, r: LeaseRequest, left: () => number, term: Pick<Term, "clock">, log: Log, { outcome, note }: ReleaseOptions = {},
): Promise<void> {
  const by = (said: ReleaseOptions): Promise<unknown> => endBy((r, bounds) => calls.release(r, said, bounds), r, left, term);
  let failure = await by(outcome ? { outcome, ...(note && { note }) } : {});
  if (outcome && failure instanceof InvalidArgument) failure = await by({}); // the server takes no outcome
  if (failure === undefined) log("info", "resigned", about(r));
  else log("warn", "the lease is not released; it ends by itself", { ...about(r), reason: failure });
}

/** @internal Ends a lease by a call, as release does. Returns why it is not ended; undefined if it is. */
export async function endBy(call: (r: LeaseRequest, bounds: Bounds) => Promise<Election>, r: LeaseRequest, left: () => number, term: Pick<Term, "clock">): Promise<unknown> {
  const backoff = new Backoff();
  let failure: unknown = "its deadline has passed";
  for (let time = left(); time > 0; time = left()) {
    try {
      const lease = await call(r, { limit: patience(time) });
      if (lease.state !== "held" || lease.leaderId !== r.candidate || lease.fencingToken <= r.token) return undefined;
      r = { ...r, token: lease.fencingToken }; // of another incarnation it is refused: the key is not its own
    } catch (e) {
      if (e instanceof LeaseLost) return undefined;
      failure = e;
      if (!transient(e)) break;
      await sleep(term.clock, Math.min(backoff.after(e), Math.max(left(), 0)));
    }
  }
  return failure;
}
